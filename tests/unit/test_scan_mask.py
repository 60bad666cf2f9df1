"""Masks: which names are documents, and which masks are refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from qmd.errors import InputError
from qmd.ingest.patterns import compile_mask


def matches(mask: str, path: str) -> bool:
    return compile_mask(mask)(path, path.rpartition("/")[2])


@pytest.mark.parametrize(
    ("mask", "yes", "no"),
    [
        ("**/*.md", ["a.md", "x/a.md", "x/y/B.MD", "中文/笔记.md"], ["a.mdx", "a.markdown", "md"]),
        ("*.md", ["a.md"], ["x/a.md"]),
        ("**", ["a", "x/y.bin"], []),
        ("**/*", ["a", "x/y.bin"], []),
        ("notes/**/*.md", ["notes/a.md", "notes/x/a.md", "Notes/a.md"], ["a.md", "x/notes/a.md"]),
        ("**/*.{md,jpg,heic}", ["a.md", "x/b.JPG", "c.heic"], ["a.png", "a.{md,jpg,heic}"]),
        ("**/*.md,**/*.txt", ["a.md", "x/b.txt"], ["c.rst"]),
        ("**/*.md , docs/*.{txt,rst}", ["a.md", "docs/b.rst"], ["b.rst", "docs/x/b.rst"]),
        ("./**/*.md", ["a.md", "x/a.md"], ["a.txt"]),
        ("**/*.excalidraw.md", ["x/a.excalidraw.md"], ["a.md"]),
        ("{a,b}/**/*.md", ["a/x.md", "b/y/x.md"], ["c/x.md"]),
        ("{notes/{a,b},docs}/*.md", ["notes/a/x.md", "docs/x.md"], ["notes/x.md"]),
        ("README", ["README", "readme"], ["x/README"]),
        ("**/[ab]?.md", ["x/a1.md"], ["c1.md", "a.md"]),
        ("\\!x.md", ["!x.md"], ["x.md"]),
        ("a\\,b.md", ["a,b.md"], ["a.md", "b.md"]),
        ("**/*.markdown,**/.x/*", ["a.markdown"], ["a.md"]),
    ],
)
def test_a_mask_matches_whole_paths_in_any_letter_case(
    mask: str, yes: list[str], no: list[str]
) -> None:
    assert [path for path in yes if not matches(mask, path)] == []
    assert [path for path in no if matches(mask, path)] == []


@pytest.mark.parametrize("suffixes", ["md", "MD", "md,txt"])
def test_the_fast_path_for_suffixes_agrees_with_the_glob_it_stands_for(suffixes: str) -> None:
    fast = f"**/*.{{{suffixes}}}" if "," in suffixes else f"**/*.{suffixes}"
    slow = f"{{{fast},never-{{1,2}}}}"  # the same set, in a form that takes the general way
    for path in ["a.md", "x/B.Md", "a.mdx", "md", "x.md/y", "n\nl.md", "a.txt", "x/.md", "文.MD"]:
        assert matches(fast, path) == matches(slow, path), path


@pytest.mark.parametrize(
    "mask",
    ["", "  ", ",", "/etc/**", "~/x.md", "C:\\notes\\*.md", "../*.md", "a/../../b.md",
     "{a,..}/*.md", "**/*.{md,txt", "**/*.md}", "!**/*.md", "notes/",
     "**/*.md,/x", "{1..100000}.md", "a\0b", "**/a/" * 5 + "*.md"],
)  # fmt: skip
def test_a_mask_that_makes_no_sense_is_refused_with_a_hint(mask: str) -> None:
    with pytest.raises(InputError) as caught:
        compile_mask(mask)
    assert caught.value.hint


def test_the_default_mask_imports_no_glob_library() -> None:
    code = (
        "import sys; from qmd.ingest.patterns import compile_mask; compile_mask('**/*.{md,jpg}');"
        "assert not {'wcmatch', 'bracex', 'pathspec'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_bracket_within_a_set_is_no_reason_to_warn() -> None:
    """Warnings are errors here: wcmatch leaves "[[c]" of this set, since b-a is no range."""
    matches = compile_mask("[b-a[c]")
    assert matches("c", "c")
    assert not matches("a", "a")
