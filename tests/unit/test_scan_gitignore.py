"""Ignore files mean what git says they mean; git itself is the oracle."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from qmd.ingest.patterns import MAX_WILD_PATTERNS, IgnoreFile, parse_ignore_lines
from qmd.ingest.rules import MAX_IGNORE_FILE_BYTES, Rules
from qmd.ingest.scan import ScannedFile, ScanSkip, scan
from qmd.ingest.why import judge_path

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

TREE = [
    "a.md", "b.md", "A.MD", "x", "-.md", "]x.md", "#hash.md", "!bang.md", "sp ace.md",
    "trailing ", "tab\t", "star*.md", "back\\slash.md", "notes/a.md", "notes/deep/a.md",
    "notes/deep/er/b.md", "foo/bar/baz.md", "foo/baz.md", "build/out.md", "deep/foo/bar/x.md",
    "keep/keep.md", "keep/other.md", "keep/sub/keep.md", "x1.md", "x9.md", "xa.md",
    "line\rbreak.md", "line\x0bfeed.md", "line\u2028feed.md",
]  # fmt: skip

TRICKY = [
    "*.md",
    "/*.md",
    "notes",
    "notes/",
    "/notes/",
    "notes/*",
    "notes/**",
    "**/a.md",
    "notes/**/a.md",
    "notes/**/er",
    "foo/bar",
    "/foo",
    "**/foo/bar",
    "*",
    "*\n!*/\n!a.md",
    "*\n!/keep/\n!/keep/**",
    "/keep/*\n!/keep/keep.md",
    "keep/\n!keep/keep.md",
    "!a.md\n*.md",
    "*.md\n!a.md",
    "[ab].md",
    "[!a].md",
    "[^a].md",
    "[]-]*.md",
    "[a-].md",
    "[-a].md",
    "x[[:digit:]].md",
    "x[[:alpha:][:digit:]].md",
    "x[[:nonsense:]].md",
    "x[9-1].md",
    "x[1-9a].md",
    "[a",
    "a\\.md",
    "star\\*.md",
    "back\\\\slash.md",
    "back[\\\\]slash.md",
    "\\#hash.md",
    "#hash.md",
    "\\!bang.md",
    "!bang.md",
    "sp ace.md  ",
    "trailing ",
    "trailing\\ ",
    "trailing\\  ",
    "tab\t",
    "a.md\r\nb.md\r\n",
    "\ufeffa.md",
    "line\rbreak.md",
    "line\x0bfeed.md",
    "line\u2028feed.md",
    "a.md\\",
    "/",
    "//",
    "!",
    "**",
    "**/",
    "/**",
    "*/",
    "***/a.md",
    "notes/***",
    "notes//a.md",
    "./a.md",
    "notes/deep/",
    "notes/d*p/e?/b.md",
    "n*s/**/e*/b.md",
    "?.md",
    "*[*]*",
    "foo[/]bar",
    "foo?bar",
    "foo*baz.md",
    "   ",
    "\\",
]


def make(root: Path, files: list[str]) -> None:
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file, encoding="utf-8")


def git(directory: Path, *arguments: str) -> bytes:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=environment, capture_output=True, check=True
    )
    return done.stdout


def listed_by_git(directory: Path) -> set[str]:
    """What git would add, hidden files aside."""
    names = git(directory, "ls-files", "-o", "-z", "--exclude-standard").split(b"\0")
    return {
        path
        for path in map(os.fsdecode, names)
        if path and not any(part.startswith(".") for part in path.split("/"))
    }


def listed_by_scan(root: Path, ignore: tuple[str, ...] = ()) -> set[str]:
    return {f.path for f in scan(root, Rules(root, "**", ignore)) if isinstance(f, ScannedFile)}


@pytest.fixture(scope="module")
def work_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path_factory.mktemp("worktree")
    git(root, "init", "-q")
    make(root, TREE)
    return root


@pytest.mark.parametrize("text", TRICKY, ids=repr)
def test_a_gitignore_excludes_what_git_excludes(work_tree: Path, text: str) -> None:
    (work_tree / ".gitignore").write_bytes(text.encode())
    assert listed_by_scan(work_tree) == listed_by_git(work_tree)


@needs_git
def test_nested_gitignores_count_from_their_own_folder(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, TREE)
    (tmp_path / ".gitignore").write_text("*.md\n!keep.md\n")
    (tmp_path / "notes/.gitignore").write_text("!a.md\n/deep/a.md\n")
    (tmp_path / "foo/.gitignore").write_text("!bar/baz.md\n")
    found = listed_by_scan(tmp_path)
    assert found == listed_by_git(tmp_path)
    assert {"notes/a.md", "foo/bar/baz.md", "keep/keep.md"} <= found
    assert not {"notes/deep/a.md", "foo/baz.md", "a.md"} & found


@needs_git
@pytest.mark.parametrize(
    ("top", "middle", "excluded"),
    [
        ("*.tmp.md\n/top-only.md\n", "", {"x.tmp.md"}),
        ("mid/vault/deep/\n", "", {"deep/c.md"}),
        ("**/deep\n", "", {"deep/c.md", "vault/deep/d.md"}),
        ("**/deep\n", "!deep\n", set()),
        ("/mid/vault/a.md\n", "/vault/b.md\n", {"a.md", "b.md"}),
        ("mid/*\n!mid/vault\nb.md\n", "", {"b.md"}),
    ],
)
def test_gitignores_above_the_root_hold_up_to_the_top_of_the_work_tree(
    tmp_path: Path, top: str, middle: str, excluded: set[str]
) -> None:
    (tmp_path / ".gitignore").write_text("*\n")  # above the work tree: must not matter
    repository = tmp_path / "repo"
    vault = repository / "mid/vault"
    files = ["a.md", "b.md", "x.tmp.md", "top-only.md", "deep/c.md", "vault/deep/d.md"]
    make(vault, files)
    git(repository, "init", "-q")
    (repository / ".gitignore").write_text(top)
    (repository / "mid/.gitignore").write_text(middle)
    assert listed_by_scan(vault) == set(files) - excluded
    assert listed_by_scan(vault) == listed_by_git(vault)


@pytest.mark.parametrize("text", ["vault/\n", "/mid/\n", "mid/vault\n", "/mid/vault/*\n", "*\n"])
def test_a_root_that_the_repository_ignores_as_a_whole_is_read_all_the_same(
    tmp_path: Path, text: str
) -> None:
    vault = tmp_path / "mid/vault"
    make(vault, ["a.md", "deep/b.md"])
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text(text)
    (vault / ".gitignore").write_text("/deep/\n")
    assert listed_by_scan(vault) == {"a.md"}


def test_a_gitignore_outside_any_work_tree_holds_below_its_folder_only(tmp_path: Path) -> None:
    make(tmp_path, ["vault/a.md", "vault/b.md"])
    (tmp_path / ".gitignore").write_text("a.md\n")
    (tmp_path / "vault/.gitignore").write_text("b.md\n")
    assert listed_by_scan(tmp_path / "vault") == {"a.md"}


def test_qmdignore_is_stronger_than_gitignore_and_options_are_stronger_still(
    tmp_path: Path,
) -> None:
    make(tmp_path, ["a.md", "b.md", "c.md", "d/e.md"])
    (tmp_path / ".gitignore").write_text("a.md\nb.md\nd/\n")
    (tmp_path / ".qmdignore").write_text("!a.md\n!b.md\n!d/\nc.md\n")
    assert listed_by_scan(tmp_path) == {"a.md", "b.md", "d/e.md"}
    assert listed_by_scan(tmp_path, ("b.md", "!c.md")) == {"a.md", "c.md", "d/e.md"}


def test_a_star_heavy_pattern_costs_no_exponential_time(tmp_path: Path) -> None:
    text = "*a" * 60 + "b\n" + "/" + "**/a*/" * 30 + "b\n" + "x/" + "*a*/" * 20 + "b\n"
    file = IgnoreFile(parse_ignore_lines(text, ".gitignore", ".gitignore"))
    assert file.match("a" * 250, "a" * 250, False) is None
    assert file.match("a/" * 120 + "c", "c", False) is None
    assert file.match("a" * 250 + "b", "a" * 250 + "b", False) is not None
    assert file.match("a/" * 120 + "b", "b", False) is not None


def test_ignore_files_that_cannot_be_applied_are_reported_and_do_not_stop_the_scan(
    tmp_path: Path,
) -> None:
    (tmp_path / "elsewhere").write_text("*.md\n")
    root = tmp_path / "root"
    make(root, ["a.md", "dir/b.md", "fifo/c.md", "big/d.md", "big/e.md"])
    (root / ".gitignore").symlink_to(tmp_path / "elsewhere")
    (root / "dir/.gitignore").mkdir()
    os.mkfifo(root / "fifo/.qmdignore")
    filler = "# filler\n" * (MAX_IGNORE_FILE_BYTES // 9 + 1)
    (root / "big/.gitignore").write_text("d.md\n" + filler + "e.md\n")
    items = list(scan(root, Rules(root, "**/*.md")))
    found = [item.path for item in items if isinstance(item, ScannedFile)]
    problems = {item.path for item in items if isinstance(item, ScanSkip)}
    assert found == ["a.md", "big/e.md", "dir/b.md", "fifo/c.md"]
    assert problems == {".gitignore", "fifo/.qmdignore", "big/.gitignore"}


def test_an_ignore_file_in_a_legacy_encoding_excludes_the_name_of_the_same_bytes(
    tmp_path: Path,
) -> None:
    (tmp_path / ".gitignore").write_bytes("重要.md\n".encode("gb18030") + "笔记.md\n".encode())
    make(tmp_path, ["重要.md", "笔记.md"])
    assert listed_by_scan(tmp_path) == {"重要.md"}


def test_a_decomposed_name_on_the_disk_is_ignored_by_its_composed_spelling(tmp_path: Path) -> None:
    make(tmp_path, ["cafe\u0301.md", "other.md"])
    (tmp_path / ".gitignore").write_text("caf\u00e9.md\n", encoding="utf-8")
    assert listed_by_scan(tmp_path) == {"other.md"}


def test_explain_names_the_file_the_line_and_the_pattern_and_its_remedy_works(
    tmp_path: Path,
) -> None:
    make(tmp_path, ["sub/[draft] a.md", "sub/private/b.md", "ok.md"])
    (tmp_path / "sub/.gitignore").write_text("# comment\n\n*draft*\nprivate/\n")
    rules = Rules(tmp_path, "**/*.md")
    file = judge_path(rules, "sub/[draft] a.md")
    assert file.detail == {
        "rule": ".gitignore",
        "subject": "sub/[draft] a.md",
        "ignore_file": "sub/.gitignore",
        "line": 3,
        "pattern": "*draft*",
    }
    folder = judge_path(rules, "sub/private/b.md")
    assert (folder.path, folder.detail["line"]) == ("sub/private", 4)
    remedies = [file.remedy or "", folder.remedy or ""]
    lines = [text.split("add the line ")[1].split(" to .qmdignore")[0] for text in remedies]
    (tmp_path / ".qmdignore").write_text("\n".join(lines) + "\n")
    assert listed_by_scan(tmp_path) == {"ok.md", "sub/[draft] a.md", "sub/private/b.md"}


@pytest.mark.parametrize("pattern", ["*a", "?", "*a*\n", "[a]", "**/a/", "*b?c[d]*\n"])
@pytest.mark.unmeasured
def test_an_ignore_file_of_wildcards_is_applied_in_part_and_costs_little(
    tmp_path: Path, pattern: str
) -> None:
    make(tmp_path, ["first.md", "x.md", *(f"{i:03}{'x' * 240}.md" for i in range(50))])
    line = pattern * (MAX_IGNORE_FILE_BYTES // len(pattern))
    (tmp_path / ".gitignore").write_text("first.md\n" + line)
    before = time.process_time()
    items = list(scan(tmp_path, Rules(tmp_path, "**/*.md")))
    assert time.process_time() - before < 5.0
    assert "first.md" not in {item.path for item in items}
    (problem,) = [item for item in items if isinstance(item, ScanSkip)]
    assert problem.path == ".gitignore"
    assert "were applied" in problem.detail


def test_the_ignore_files_on_the_way_down_share_what_wildcards_may_take(tmp_path: Path) -> None:
    half = "*.never\n" * (MAX_WILD_PATTERNS // 2 // len("*.never"))
    make(tmp_path, ["a/1.md", "a/b/2.md", "a/b/c/3.md", "d/4.md"])
    for folder in ("a", "a/b", "d"):
        (tmp_path / folder / ".gitignore").write_text(half)
    (tmp_path / "a/b/c/.qmdignore").write_text("*3*\n" + half)
    items = list(scan(tmp_path, Rules(tmp_path, "**/*.md")))
    assert [item.path for item in items if isinstance(item, ScannedFile)] == [
        "a/1.md",
        "a/b/2.md",
        "d/4.md",
    ]
    assert [item.path for item in items if isinstance(item, ScanSkip)] == ["a/b/c/.qmdignore"]


def test_an_ignore_file_above_the_root_that_is_applied_in_part_is_told(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("a.md\n" + "*.never\n" * MAX_WILD_PATTERNS)
    make(tmp_path / "root", ["a.md", "b.md"])
    items = list(scan(tmp_path / "root", Rules(tmp_path / "root", "**/*.md")))
    assert [item.path for item in items] == ["../.gitignore", "b.md"]
