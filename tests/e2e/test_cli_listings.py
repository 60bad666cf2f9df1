"""The listings of links, tags and documents: their budget, full paths and links that open files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_cli_terminal import on_terminal
from tests.support.cli import Scratch, filled

posix = pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
NOTES = {
    "notes/hub.md": "# Hub\n\n"
    + "".join(f"[[note {number}]] and [[gone {number}]]\n" for number in range(60)),
    **{
        f"notes/note {number}.md": f"---\nkey{number}: a\n---\n# Note\n\n[[hub]] #tag{number}\n"
        for number in range(60)
    },
    "notes/long.md": "# Long\n\n" + "".join(f"## Part {number}\n\nx\n" for number in range(90)),
}
#: The listings, and where their JSON has the items.
LISTINGS = (
    ("links hub", "links"),
    ("backlinks hub", "links"),
    ("orphans", "documents"),
    ("broken", "links"),
    ("tags", "tags"),
    ("recent -n 100", "changes"),
    ("outline long", "headings"),
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return filled(tmp_path_factory.mktemp("listings"), NOTES).with_env(TERM="xterm")


def printed(scratch: Scratch, command: str, *options: str) -> Any:
    return json.loads(scratch.ok(*command.split(), "--json", *options).out)


@pytest.mark.parametrize(("command", "field"), [row for row in LISTINGS if row[0] != "orphans"])
def test_a_listing_has_room_for_its_first_items(scratch: Scratch, command: str, field: str) -> None:
    whole = printed(scratch, command)
    fitted = printed(scratch, command, "--max-tokens", "400")
    assert 0 < len(fitted[field]) < len(whole[field])
    assert fitted[field] == whole[field][: len(fitted[field])]
    assert fitted["total"] == whole["total"]
    text = scratch.ok(*command.split(), "--max-tokens", "400")
    assert len(text.out.splitlines()) == len(fitted[field])
    assert "--max-tokens" in text.err


@pytest.mark.parametrize(
    "command",
    ["links hub", "links backlinks hub", "links broken", "tags", "recent", "ls", "properties"],
)
def test_a_listing_has_a_limit_and_shows_all_when_asked(scratch: Scratch, command: str) -> None:
    few = scratch.ok(*command.split(), "-n", "3")
    every = scratch.ok(*command.split(), "--all")
    assert len(few.out.splitlines()) == 3
    assert len(every.out.splitlines()) > 50
    assert every.err == ""
    assert few.err.endswith(": --all shows them\n")


def test_all_is_more_than_a_limit_may_be(tmp_path: Path) -> None:
    broken = "\n".join(f"[[gone {number}]]" for number in range(1100))
    scratch = filled(tmp_path, {"notes/many.md": broken, "notes/other.md": "# Other\n"})
    assert len(printed(scratch, "links broken", "--all")["links"]) == 1100
    assert scratch.call("links", "broken", "-n", "1001").code == 2


def test_ls_takes_the_filters_of_the_searches(scratch: Scratch) -> None:
    assert [each["file"] for each in printed(scratch, "ls", "--tag", "tag7")] == ["notes/note 7.md"]
    first = [each["file"] for each in printed(scratch, "ls", "-c", "notes", "-n", "2")]
    assert first == ["notes/hub.md", "notes/long.md"]
    assert scratch.call("ls", "-c", "nots").err.startswith("qmd: error: Collection not found")


def test_an_option_behind_two_minuses_is_a_word_and_that_is_said(scratch: Scratch) -> None:
    told = "qmd: -n stands behind -- and is searched for: put it before --.\n"
    assert scratch.call("search", "--", "-gone", "-n", "2").err.startswith(told)
    assert "stands behind" not in scratch.call("search", "-n", "2", "--", "-gone").err


@pytest.mark.parametrize("key", [(), ("key1",)])
def test_properties_have_a_budget(scratch: Scratch, key: tuple[str, ...]) -> None:
    whole = printed(scratch, "properties", *key)
    fitted = printed(scratch, "properties", *key, "--max-tokens", "300")
    assert fitted == whole[: len(fitted)]
    assert (len(fitted) < len(whole)) == (not key)


@pytest.mark.parametrize(("command", "field"), [row for row in LISTINGS if row[0] != "tags"])
def test_full_paths_name_the_files_on_the_disk(scratch: Scratch, command: str, field: str) -> None:
    listed = printed(scratch, command, "--full-path")
    files = [item["file"] for item in [listed, *listed[field]] if "file" in item]
    assert files
    assert all(Path(file).is_file() for file in files)


@posix
@pytest.mark.parametrize(
    ("command", "link"),
    [
        ("links hub", "hub.md:3:1"),
        ("links hub", "note%200.md:1:1"),
        ("backlinks hub", "note%200.md:6:1"),
        ("orphans", "long.md:1:1"),
        ("broken", "hub.md:3:1"),
        ("recent -n 100", "hub.md:1:1"),
        ("outline long", "long.md:3:1"),
    ],
)
def test_names_on_a_terminal_open_the_file(scratch: Scratch, command: str, link: str) -> None:
    _, shown = on_terminal(scratch.with_env(QMD_EDITOR="vscode"), *command.split())
    assert f"\x1b]8;;vscode://file{scratch.root}/notes/{link}\x1b\\" in shown
