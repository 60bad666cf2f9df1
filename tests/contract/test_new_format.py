"""A format of files that a stranger adds to a copy of qmd, as in CONTRIBUTING.md."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.cli import Scratch

REPOSITORY = Path(__file__).parents[2]

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
#: ``python -m qmd`` would take the package of the current directory.
LAUNCH = "import sys; sys.path.insert(0, {!r}); from qmd.__main__ import run; run()"


class Copy:
    """A folder of notes with the format, and the command of the copy."""

    def __init__(self, scratch: Scratch, code: Path) -> None:
        self.scratch = scratch
        self._command = [sys.executable, "-c", LAUNCH.format(str(code))]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            cwd=self.scratch.root,
            env=self.scratch.environment,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    code = tmp_path_factory.mktemp("code")
    for name in ("qmd", "migrations"):
        shutil.copytree(REPOSITORY / name, code / name)  # with what is compiled
    for name, text in ADDED.items():
        with (code / name).open("a", encoding="utf-8") as file:
            file.write(text)
    copy = Copy(Scratch(tmp_path_factory.mktemp("outline")), code)
    copy.scratch.write("notes/b.md", "# B\n")
    copy.scratch.write("notes/plan.outline", "* Plan\n\nA zebra, see [[file:b.md]].\n")
    assert copy.run("collection", "add", "notes", "--mask", "**/*.{md,outline}").returncode == 0
    return copy


def test_searches_show_the_converted_text(copy: Copy) -> None:
    [hit] = copy.json("search", "zebra")
    assert (hit["file"], hit["title"]) == ("notes/plan.outline", "Plan")
    assert "[b.md](b.md)" in copy.run("get", "notes/plan.outline").stdout


def test_a_docid_is_that_of_the_converted_text(copy: Copy) -> None:
    [hit] = copy.json("search", "zebra")
    for command in (("rm", "notes/plan.outline"), ("mv", "notes/plan.outline", "other")):
        would_be = copy.json(*command, "--if-docid", hit["docid"], "--preview")
        assert would_be["docid"] == hit["docid"]


@pytest.mark.parametrize("note", ["notes/b.md", "notes/plan.outline"])
def test_a_move_lists_the_links_that_it_cannot_rewrite(copy: Copy, note: str) -> None:
    [left] = copy.json("mv", note, "notes/folder/c", "--preview")["unchanged"]
    assert (left["line"], left["link"]) == (3, "[b.md](b.md)")
    assert left["reason"] == "links in files of this format are not rewritten"


def test_what_is_only_read_is_not_edited(copy: Copy) -> None:
    before = (copy.scratch.root / "notes/plan.outline").read_bytes()
    done = copy.run("note", "edit", "notes/plan.outline", "append", "--text", "x")
    assert done.returncode == 1
    assert "notes/plan.outline is only read here: its format is Outline." in done.stderr
    assert (copy.scratch.root / "notes/plan.outline").read_bytes() == before
