"""The scan agrees with git about ignore files, and `explain` agrees with the scan."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.ingest.rules import Rules
from qmd.ingest.scan import ScannedFile, ScanSkip, scan
from qmd.ingest.why import judge_path

NAMES = ["a", "b", "ab", "foo", "a.md", "b.MD", "c.txt", "[a].md", "a b.md", ".h", ".x.md",
         "node_modules", "__pycache__", "build", "中.md", "back\\.md"]  # fmt: skip
ATOMS = ["a", "b", "*", "?", "foo", ".md", "[ab]", "[!a]", "[a-c]", "[[:alpha:]]", "\\*", "\\a",
         " ", "\\ ", "-", "[]a]", "[a", "!", "#", "[b-a]", "\\\\", "[/a]"]  # fmt: skip

names = st.sampled_from(NAMES)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
# "foo**/" is left out: git takes the literal beginning off first and then reads "**/" as if
# it began the pattern, which no one can want.
components = st.one_of(
    st.just("**"),
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=3)
    .map("".join)
    .filter(lambda text: "**" not in text),
    names,
)
patterns = st.builds(
    lambda negation, start, parts, end: negation + start + "/".join(parts) + end,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(components, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", " "]),
)
ignore_texts = st.lists(patterns, min_size=1, max_size=4).map("\n".join)


@contextmanager
def tree(files: list[str], ignores: dict[tuple[str, str], str]) -> Iterator[Path]:
    """A folder with these files; where a name is taken as a file or folder, the first stays."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        root.mkdir()
        for file in files:
            path = root / file
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                continue
        for (folder, kind), text in ignores.items():
            if (root / folder).is_dir():
                (root / folder / kind).write_text(text, encoding="utf-8")
        yield root


folders = st.one_of(st.just(""), names, paths)


@settings(deadline=None)
@given(
    files=st.lists(paths, max_size=12),
    ignores=st.dictionaries(
        st.tuples(folders, st.sampled_from([".gitignore", ".qmdignore"])), ignore_texts, max_size=4
    ),
    options=st.lists(st.sampled_from(["a", "b/", "/foo", "*.txt", "!a.md", "[ab]*"]), max_size=2),
    mask=st.sampled_from(["**/*.md", "**", "*.md", "**/*.{md,txt}", "{a,foo}/**/*.md", "a*/**"]),
    links=st.lists(st.tuples(paths, paths), max_size=3),
)
def test_explain_gives_for_every_path_the_reason_the_scan_counted_or_reported(
    files: list[str],
    ignores: dict[tuple[str, str], str],
    options: list[str],
    mask: str,
    links: list[tuple[str, str]],
) -> None:
    with tree(files, ignores) as root:
        for link, target in links:
            if (root / link).parent.is_dir() and not os.path.lexists(root / link):
                (root / link).symlink_to(root / target)
        rules = Rules(root, mask, options)
        walk = scan(root, rules)
        items = list(walk)
        on_disk = [
            str((Path(top) / name).relative_to(root))
            for top, folders, files in os.walk(root)
            for name in folders + files
        ]
        verdicts = {path: judge_path(rules, path) for path in on_disk}
        included = {
            path for path, verdict in verdicts.items() if verdict.detail["rule"] == "included"
        }
        skips = {item.path: item.reason for item in items if isinstance(item, ScanSkip)}
        deciding = {
            path: verdict.detail["rule"]
            for path, verdict in verdicts.items()
            if verdict.path == path and not verdict.indexed
        }
        assert included == {item.path for item in items if isinstance(item, ScannedFile)}
        assert {path: deciding.pop(path) for path in skips} == skips
        assert Counter(deciding.values()) == walk.excluded
        for verdict in verdicts.values():
            if not verdict.indexed and verdict.path in verdicts:
                assert verdict.detail["rule"] == verdicts[verdict.path].detail["rule"]


@settings(deadline=None)
@given(
    files=st.lists(paths.filter(str.isascii), min_size=1, max_size=12),
    ignores=st.dictionaries(st.tuples(folders, st.just(".gitignore")), ignore_texts, min_size=1,
                            max_size=3),
)  # fmt: skip
def test_the_scan_finds_what_git_would_add(
    files: list[str], ignores: dict[tuple[str, str], str]
) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    with tree(files, ignores) as root:
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        # An empty folder named .git will not do; this is what `git init` needs at least.
        for name in ("objects", "refs"):
            (root / ".git" / name).mkdir(parents=True)
        (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
        listed = subprocess.run(
            ["git", "ls-files", "-o", "-z", "--exclude-standard"],
            cwd=root, env=environment, capture_output=True, check=True,
        ).stdout  # fmt: skip
        skipped = {"node_modules", "__pycache__"}
        by_git = {
            path
            for path in map(os.fsdecode, listed.split(b"\0"))
            if path
            and not any(part[0] == "." for part in path.split("/"))
            and not skipped & set(path.split("/")[:-1])
        }
        found = {f.path for f in scan(root, Rules(root, "**")) if isinstance(f, ScannedFile)}
        assert found == by_git


@settings(deadline=None, max_examples=50)
@given(files=st.lists(paths, max_size=15), ignores=st.dictionaries(
    st.tuples(folders, st.just(".gitignore")), ignore_texts, max_size=2))  # fmt: skip
def test_files_come_sorted_and_a_second_scan_finds_the_same(
    files: list[str], ignores: dict[tuple[str, str], str]
) -> None:
    with tree(files, ignores) as root:
        walk = scan(root, Rules(root, "**/*.md"))
        first = list(walk)
        counts = dict(walk.excluded)
        found = [item.path for item in first if isinstance(item, ScannedFile)]
        assert found == sorted(found)
        assert list(walk) == first
        assert walk.excluded == counts
