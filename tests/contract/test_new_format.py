"""A format of files that a stranger adds to a copy of qmd, as in CONTRIBUTING.md."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.changed_copy import ChangedCopy
from support.cli import Scratch
from support.http_server import WITHOUT_MODEL

#: What runs is a copy, which no fork has.
pytestmark = [pytest.mark.unmeasured, pytest.mark.cold]

#: File → what is added to it: the row and the parser.
ADDED = {
    "qmd/parse/formats.py": """

OUTLINE = FileFormat("Outline", (".outline",), parser="qmd.parse.outline:convert", has_links=True)
FORMATS = (*FORMATS, OUTLINE)
""",
    "qmd/parse/outline.py": r"""
import re

from qmd.parse.converted import Converted
from qmd.parse.decode import decode


def convert(path, data):
    decoded = decode(data)
    text = re.sub(r"\[\[file:([^]]+)\]\]", r"[\1](\1)", decoded.text)
    text = re.sub(r"(?m)^\*+(?= )", lambda stars: "#" * len(stars[0]), text)
    title = re.search(r"(?m)^# (.+)", text)
    return Converted(text, title=title and title[1], encoding=decoded.encoding)
""",
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChangedCopy]:
    """A copy with the format, and a folder of notes."""
    scratch = Scratch(tmp_path_factory.mktemp("outline"), WITHOUT_MODEL)
    scratch.write("notes/b.md", "# B\n")
    scratch.write("notes/plan.outline", "* Plan\n\nA zebra, see [[file:b.md]].\n")
    with ChangedCopy(tmp_path_factory.mktemp("code"), scratch, ADDED) as copy:
        copy.ok("collection", "add", "notes", "--mask", "**/*.{md,outline}")
        yield copy


def test_searches_show_the_converted_text(copy: ChangedCopy) -> None:
    [hit] = copy.json("search", "zebra")
    assert (hit["file"], hit["title"]) == ("notes/plan.outline", "Plan")
    assert "[b.md](b.md)" in copy.ok("get", "notes/plan.outline")


def test_a_docid_is_that_of_the_converted_text(copy: ChangedCopy) -> None:
    [hit] = copy.json("search", "zebra")
    for command in (("rm", "notes/plan.outline"), ("mv", "notes/plan.outline", "other")):
        would_be = copy.json(*command, "--if-docid", hit["docid"], "--preview")
        assert would_be["docid"] == hit["docid"]


@pytest.mark.parametrize("note", ["notes/b.md", "notes/plan.outline"])
def test_a_move_lists_the_links_that_it_cannot_rewrite(copy: ChangedCopy, note: str) -> None:
    [left] = copy.json("mv", note, "notes/folder/c", "--preview")["unchanged"]
    assert (left["line"], left["link"]) == (3, "[b.md](b.md)")
    assert left["reason"] == "links in files of this format are not rewritten"


def test_what_is_only_read_is_not_edited(copy: ChangedCopy) -> None:
    before = (copy.scratch.root / "notes/plan.outline").read_bytes()
    done = copy.run("note", "edit", "notes/plan.outline", "append", "--text", "x")
    assert done.code == 1
    assert "notes/plan.outline is only read here: its format is Outline." in done.err
    assert (copy.scratch.root / "notes/plan.outline").read_bytes() == before
