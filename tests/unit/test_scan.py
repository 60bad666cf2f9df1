"""The scan finds what the rules include, reports what cannot be read, and never ends early."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from qmd.errors import InputError, NotFoundError, QmdError, UnreadableFileError
from qmd.ingest.read_file import read_file
from qmd.ingest.rules import Rules
from qmd.ingest.scan import Scan, ScannedFile, ScanSkip, scan
from qmd.ingest.why import exclusion_of_new_file, judge_path
from qmd.system.beneath import MAX_DEPTH
from qmd.values import FileState


def make(root: Path, files: list[str]) -> None:
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file, encoding="utf-8")


def run(
    root: Path, mask: str = "**/*.md", ignore: tuple[str, ...] = (), max_bytes: int = 1000
) -> tuple[list[str], dict[str, str], dict[str, int]]:
    """Paths found, reasons of the skips by path, counts of the exclusions."""
    walk = scan(root, Rules(root, mask, ignore, max_bytes))
    items = list(walk)
    found = [item.path for item in items if isinstance(item, ScannedFile)]
    skipped = {item.path: item.reason for item in items if isinstance(item, ScanSkip)}
    return found, skipped, walk.excluded


def reason(root: Path, path: str, max_bytes: int = 1000) -> str:
    return judge_path(Rules(root, "**/*.md", (), max_bytes), path).detail["rule"]


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so the rights of files are tested as somebody else."""
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(65534)
    except OSError as error:
        pytest.skip(f"root cannot become nobody here: {error}")
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def reachable_root() -> Iterator[Path]:
    """A folder that nobody can reach, too: tmp_path lies in a private one."""
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)


def test_built_in_exclusions_are_counted_and_a_pruned_folder_counts_as_one(tmp_path: Path) -> None:
    make(tmp_path, [
        "a.md", ".hidden.md", ".obsidian/x.md", ".git/a.md", ".git/b.md", "x/node_modules/y/z.md",
        "node_modules/a.md", "__pycache__/a.md", "build/b.md", "dist/c.md", "vendor/d.md",
        "p.png", "x/q.png", "ignored/a.md", "ignored/b.md", "x/drafts/a.md", "x/.y/z.md",
    ])  # fmt: skip
    (tmp_path / ".qmdignore").write_text("ignored\n")
    found, skipped, excluded = run(tmp_path, ignore=("drafts/",))
    assert found == ["a.md", "build/b.md", "dist/c.md", "vendor/d.md"]
    assert skipped == {}
    assert excluded == {
        "hidden": 5, "node_modules": 2, "__pycache__": 1, "mask": 2, ".qmdignore": 1,
        "ignore option": 1,
    }  # fmt: skip


def test_a_root_that_is_hidden_or_lies_below_hidden_folders_is_read(tmp_path: Path) -> None:
    root = tmp_path / ".config/node_modules/.notes"
    make(root, ["a.md"])
    assert run(root)[0] == ["a.md"]


def test_files_come_in_the_order_of_their_paths(tmp_path: Path) -> None:
    make(
        tmp_path,
        ["b.md", "a/b.md", "a.md", "a-b.md", "a/b/c.md", "A.md", "中.md", "a/a.md", "a b.md"],
    )
    found, _, _ = run(tmp_path)
    assert found == sorted(found)
    assert len(found) == 9


def test_a_found_file_carries_what_stat_says(tmp_path: Path) -> None:
    make(tmp_path, ["x/a.md"])
    os.utime(tmp_path / "x/a.md", ns=(1, 1_700_000_000_123_456_789))
    (found,) = scan(tmp_path, Rules(tmp_path, "**/*.md"))
    status = (tmp_path / "x/a.md").stat()
    state = FileState(6, 1_700_000_000_123_456_789, status.st_ino, status.st_dev)
    assert found == ScannedFile("x/a.md", state)


def test_names_stay_as_they_are_on_the_disk(tmp_path: Path) -> None:
    names = [
        "cafe\u0301.md", "caf\u00e9.md", "new\nline.md", " space .md", "tab\t.md",
        "\u202eevil.md", "back\\slash.md", "quo'te\".md", "%20.md", "\x7f\x1b[31m.md",
        "n" * 252 + ".md",
    ]  # fmt: skip
    make(tmp_path, names)
    assert run(tmp_path)[0] == sorted(path.name for path in tmp_path.iterdir())
    assert len(run(tmp_path)[0]) == len(names)


@pytest.fixture
def chains(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Makes a folder with two chains of folders within each other, and a file at each end."""
    depths: list[int] = []

    def make_chains(depth: int) -> Path:
        root = tmp_path / str(depth)
        root.mkdir()
        depths.append(depth)
        for first in "ab":
            descriptor = os.open(root, os.O_RDONLY)
            for name in [first, *["d"] * (depth - 1)]:
                os.mkdir(name, dir_fd=descriptor)
                inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            os.close(os.open("end.md", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
            os.close(descriptor)
        return root

    yield make_chains
    for depth in depths:  # shutil.rmtree, which would clean up, does recurse
        for path in (f"{first}/" + "d/" * (depth - 1) for first in "ab"):
            (tmp_path / str(depth) / path / "end.md").unlink()
            for level in range(depth, 0, -1):
                (tmp_path / str(depth) / "/".join(path.split("/")[:level])).rmdir()


def test_folders_within_each_other_are_listed_up_to_a_limit(
    chains: Callable[[int], Path],
) -> None:
    root = chains(MAX_DEPTH)
    ends = [f"{first}/" + "d/" * (MAX_DEPTH - 1) + "end.md" for first in "ab"]
    assert run(root)[0] == ends
    rules = Rules(root, "**/*.md")
    assert set(scan(root, rules).at(ends)) == set(ends)
    assert judge_path(rules, ends[0]).indexed
    root = chains(MAX_DEPTH + 1)
    too_deep = [f"{first}/" + "d/" * (MAX_DEPTH - 1) + "d" for first in "ab"]
    rules = Rules(root, "**/*.md")
    skips = [item for item in scan(root, rules) if isinstance(item, ScanSkip)]
    assert [(skip.path, skip.reason) for skip in skips] == [(each, "too deep") for each in too_deep]
    assert all(skip.is_directory for skip in skips)
    assert scan(root, rules).at([f"{too_deep[0]}/end.md"]) == {too_deep[0]: skips[:1]}
    verdict = judge_path(rules, f"{too_deep[0]}/end.md")
    assert verdict.detail == {"rule": "too deep", "subject": too_deep[0]}
    new = exclusion_of_new_file(rules, f"{too_deep[0]}/new.md")
    assert new is not None and new.detail["rule"] == "too deep"


@pytest.mark.unmeasured
@pytest.mark.skipif(sys.platform != "linux", reason="other systems open whole paths")
def test_a_scan_opens_a_few_names_for_each_folder_however_deep(
    chains: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = 0
    open_name = os.open

    def counted(*arguments: Any, **options: Any) -> int:
        nonlocal opened
        opened += 1
        return open_name(*arguments, **options)

    roots = {depth: chains(depth) for depth in (50, 200, 450)}
    monkeypatch.setattr(os, "open", counted)
    counts = {}
    for depth, root in roots.items():
        opened = 0
        assert len(run(root)[0]) == 2
        counts[depth] = opened
    assert all(count <= 4 * 2 * depth + 20 for depth, count in counts.items()), counts


def test_a_folder_that_is_moved_while_the_scan_is_in_it_leads_nowhere_else(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    make(root, ["a/b/one.md", "a/c/two.md", "d/three.md"])
    make(outside, ["c/theirs.md"])
    walk = iter(scan(root, Rules(root, "**/*.md")))
    first = next(walk)
    (root / "a/b").rename(outside / "b")  # its ".." is another folder now
    paths = [first.path, *(item.path for item in walk)]
    assert paths == ["a/b/one.md", "a/c/two.md", "d/three.md"]


def test_symlinks_are_skipped_with_the_reason_that_fits_and_explain_agrees(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(root, ["a.md", "real/b.md"])
    make(tmp_path, ["outside.md", "root-sibling/c.md"])
    links = {
        "inside.md": "a.md",
        "inside-dir": "real",
        "out.md": "../outside.md",
        "out-dir": "../root-sibling",
        "out-absolute.md": str(tmp_path / "outside.md"),
        "dangling.md": "nothing.md",
        "dangling-out.md": "../nothing.md",
        "loop.md": "loop.md",
        "ping.md": "pong.md",
        "pong.md": "ping.md",
        "up": "..",
        "self": ".",
        "through.md": "out-dir/c.md",
        "picture.png": "../outside.png",
        "node_modules": "../root-sibling",
        ".hidden": "../root-sibling",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    found, skipped, excluded = run(root)
    assert found == ["a.md", "real/b.md"]
    assert skipped == {
        "inside.md": "symlink inside the collection",
        "inside-dir": "symlink inside the collection",
        "self": "symlink inside the collection",
        "out.md": "symlink out of the collection",
        "out-dir": "symlink out of the collection",
        "out-absolute.md": "symlink out of the collection",
        "through.md": "symlink out of the collection",
        "up": "symlink out of the collection",
        "dangling.md": "dangling symlink",
        "dangling-out.md": "symlink out of the collection",
        "loop.md": "symlink loop",
        "ping.md": "symlink loop",
        "pong.md": "symlink loop",
    }
    assert excluded == {"mask": 1, "node_modules": 1, "hidden": 1}
    assert {path: reason(root, path) for path in skipped} == skipped
    assert reason(root, "inside-dir/b.md") == "symlink inside the collection"
    assert reason(root, "out-dir/c.md") == "symlink out of the collection"


def test_a_root_that_is_itself_a_symlink_is_followed(tmp_path: Path) -> None:
    make(tmp_path, ["real/a.md"])
    (tmp_path / "real/inside.md").symlink_to(tmp_path / "real/a.md")
    (tmp_path / "link").symlink_to("real")
    found, skipped, _ = run(tmp_path / "link")
    assert found == ["a.md"]
    assert skipped == {"inside.md": "symlink inside the collection"}
    assert read_file(tmp_path / "link", "a.md")[0] == b"real/a.md"


def test_special_files_are_reported_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.md")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.md"))
        found, skipped, _ = run(tmp_path)
    assert found == []
    assert skipped == {"fifo.md": "special file", "s.md": "special file"}
    assert reason(tmp_path, "fifo.md") == "special file"


def test_a_file_over_the_limit_is_too_large_and_one_at_the_limit_is_not(tmp_path: Path) -> None:
    (tmp_path / "at.md").write_bytes(b"x" * 1000)
    (tmp_path / "over.md").write_bytes(b"x" * 1001)
    (tmp_path / "over.txt").write_bytes(b"x" * 1001)
    found, skipped, excluded = run(tmp_path)
    assert (found, skipped, excluded) == (["at.md"], {"over.md": "too large"}, {"mask": 1})
    assert reason(tmp_path, "over.md") == "too large"


def test_names_that_are_no_utf_8_are_reported_in_a_form_that_can_be_printed(tmp_path: Path) -> None:
    bad = [b"caf\xe9.md", b"dir\xff"]
    try:
        (tmp_path / os.fsdecode(bad[1])).mkdir()
        for path in (bad[0], bad[1] + b"/a.md", b"caf\xe9.txt", b".caf\xe9.md"):
            (tmp_path / os.fsdecode(path)).touch()
    except OSError as error:
        pytest.skip(f"this file system refuses such names: {error}")
    make(tmp_path, ["good.md"])
    found, skipped, excluded = run(tmp_path)
    assert found == ["good.md"]
    assert skipped == {r"caf\xe9.md": "bad file name", r"dir\xff": "bad file name"}
    assert excluded == {"mask": 1, "hidden": 1}
    assert reason(tmp_path, os.fsdecode(bad[0])) == "bad file name"
    assert judge_path(Rules(tmp_path, "**"), os.fsdecode(bad[1]) + "/a.md").path == r"dir\xff"
    (tmp_path / ".qmdignore").write_bytes(b"caf\xe9.md\n")
    assert run(tmp_path)[1] == {r"dir\xff": "bad file name"}


def test_a_folder_that_cannot_be_listed_is_reported_and_the_rest_is_found(
    reachable_root: Path,
) -> None:
    make(reachable_root, ["a.md", "closed/b.md", "names-only/c.md", "z.md"])
    (reachable_root / "closed").chmod(0)
    (reachable_root / "names-only").chmod(0o744 if os.geteuid() == 0 else 0o400)
    try:
        with as_nobody():
            items = list(scan(reachable_root, Rules(reachable_root, "**/*.md")))
            assert reason(reachable_root, "closed/b.md") == "unreadable"
            assert reason(reachable_root, "names-only/c.md") == "unreadable"
    finally:
        for name in ("closed", "names-only"):
            (reachable_root / name).chmod(0o755)
    assert [item.path for item in items if isinstance(item, ScannedFile)] == ["a.md", "z.md"]
    skips = [(i.path, i.reason, i.is_directory) for i in items if isinstance(i, ScanSkip)]
    assert skips == [("closed", "unreadable", True), ("names-only/c.md", "unreadable", False)]


def test_a_file_that_cannot_be_opened_is_found_and_reading_it_says_why(
    reachable_root: Path,
) -> None:
    make(reachable_root, ["a.md"])
    (reachable_root / "a.md").chmod(0)
    with as_nobody():
        (found,) = scan(reachable_root, Rules(reachable_root, "**/*.md"))
        assert isinstance(found, ScannedFile)
        with pytest.raises(UnreadableFileError, match="Permission denied"):
            read_file(reachable_root, "a.md")


def test_a_missing_root_is_an_error_and_never_an_empty_result(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(NotFoundError) as caught:
        scan(gone, Rules(gone, "**/*.md"))
    assert caught.value.hint
    with pytest.raises(NotFoundError):
        judge_path(Rules(gone, "**/*.md"), "a.md")


def test_a_root_that_is_a_file_or_cannot_be_listed_is_an_error(reachable_root: Path) -> None:
    make(reachable_root, ["a.md", "closed/b.md"])
    file, closed = reachable_root / "a.md", reachable_root / "closed"
    with pytest.raises(InputError, match="is not a folder"):
        scan(file, Rules(file, "**/*.md"))
    closed.chmod(0)
    try:
        with as_nobody(), pytest.raises(InputError, match="cannot be read"):
            scan(closed, Rules(closed, "**/*.md"))
    finally:
        closed.chmod(0o755)


def advance_to(items: Iterator[ScannedFile | ScanSkip], path: str) -> None:
    for item in items:
        if item.path == path:
            return
    raise AssertionError(f"{path} did not come")


def test_a_folder_that_becomes_a_link_during_the_scan_is_not_entered(tmp_path: Path) -> None:
    make(tmp_path, ["root/a/1.md", "root/b/1.md", "outside/secret.md"])
    root = tmp_path / "root"
    items = iter(scan(root, Rules(root, "**/*.md")))
    advance_to(items, "a/1.md")
    (root / "b").rename(tmp_path / "was b")
    (root / "b").symlink_to(tmp_path / "outside")
    assert [item.path for item in items] == []


def test_folders_and_files_that_vanish_during_the_scan_do_not_end_it(tmp_path: Path) -> None:
    make(tmp_path, ["a/1.md", "a/2.md", "a/3.md", "b/1.md", "c/1.md", "d.md", "e/1.md"])
    walk: Scan = scan(tmp_path, Rules(tmp_path, "**/*.md"))
    items = iter(walk)
    advance_to(items, "a/1.md")
    (tmp_path / "a/2.md").unlink()
    shutil.rmtree(tmp_path / "b")
    shutil.rmtree(tmp_path / "c")
    (tmp_path / "c").write_text("now a file")
    make(tmp_path, ["e/0.md"])
    # What was listed before it vanished is told all the same; reading it says that it is gone.
    assert [item.path for item in items] == ["a/2.md", "a/3.md", "d.md", "e/0.md", "e/1.md"]


@pytest.mark.parametrize("replace", [False, True])
def test_a_root_that_vanishes_during_the_scan_is_an_error(tmp_path: Path, replace: bool) -> None:
    root = tmp_path / "disk"
    make(root, ["a/1.md", "b/1.md"])
    items = iter(scan(root, Rules(root, "**/*.md")))
    advance_to(items, "a/1.md")
    root.rename(tmp_path / "elsewhere")
    if replace:
        root.mkdir()
    with pytest.raises(QmdError):
        list(items)


@pytest.mark.parametrize("path", ["", ".", "../a.md", "x/../../a.md", "/etc/passwd", "a\0.md"])
def test_explain_refuses_what_is_no_path_below_the_root(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError):
        judge_path(Rules(tmp_path, "**/*.md"), path)


def test_explain_tells_folders_missing_files_and_included_files_apart(tmp_path: Path) -> None:
    make(tmp_path, ["x/a.md"])
    assert reason(tmp_path, "x/a.md") == "included"
    assert reason(tmp_path, "./x//a.md") == "included"
    assert reason(tmp_path, "x/") == "directory"
    assert reason(tmp_path, "x/b.md") == "missing"
    assert reason(tmp_path, "x/a.md/b.md") == "missing"


@pytest.mark.parametrize("ignore", [("",), ("  ",), ("a\nb",), ("!",), ("[a",)])
def test_an_ignore_option_that_can_match_nothing_is_refused(
    tmp_path: Path, ignore: tuple[str, ...]
) -> None:
    with pytest.raises(InputError):
        Rules(tmp_path, "**/*.md", ignore)


def test_ignore_options_take_braces_and_folders(tmp_path: Path) -> None:
    make(tmp_path, ["a.md", "drafts/b.md", "x/drafts/c.md", "x/tmp.md", "old/y/d.md", "x/old/e.md"])
    found, _, excluded = run(tmp_path, ignore=("drafts", "{tmp,temp}.md", "./old/**"))
    assert found == ["a.md", "x/old/e.md"]
    assert excluded == {"ignore option": 4}
    verdict = judge_path(Rules(tmp_path, "**/*.md", ("drafts",)), "x/drafts/c.md")
    assert verdict.detail == {
        "rule": "ignore option", "subject": "x/drafts", "line": 1, "pattern": "drafts"
    }  # fmt: skip
