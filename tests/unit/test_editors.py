"""Editors: the command and the link for a file at a line; names of files stay what they are."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.errors import ConfigError
from qmd.system.editors import EDITORS, editor_command, editor_link

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths of POSIX")

PATH = Path("/home/li/my notes/计划 (1).md")
ENCODED = "/home/li/my%20notes/%E8%AE%A1%E5%88%92%20%281%29.md"
NAMES = st.binary(min_size=1).map(os.fsdecode).filter(lambda name: "\0" not in name)


@pytest.mark.parametrize(
    ("editor", "command"),
    [
        ("vim", ["vim", "+7", str(PATH)]),
        ("nvim", ["nvim", "+7", str(PATH)]),
        ("nano", ["nano", "+7", str(PATH)]),
        ("emacs", ["emacs", "+7", str(PATH)]),
        ("hx", ["hx", f"{PATH}:7:1"]),
        ("subl", ["subl", f"{PATH}:7:1"]),
        ("zed", ["zed", f"{PATH}:7:1"]),
        ("vscode", ["code", "--goto", f"{PATH}:7:1"]),
        ("code", ["code", "--goto", f"{PATH}:7:1"]),
        ("code --wait", ["code", "--wait", "--goto", f"{PATH}:7:1"]),
        ("cursor", ["cursor", "--goto", f"{PATH}:7:1"]),
        ("/usr/bin/vim -R", ["/usr/bin/vim", "-R", "+7", str(PATH)]),
        ("'/opt/my editor/vim'", ["/opt/my editor/vim", "+7", str(PATH)]),
        ("unknown -x", ["unknown", "-x", str(PATH)]),
        ("kate --line {line} {path}", ["kate", "--line", "7", str(PATH)]),
        ("ed --at={path}:{line}:{column}", ["ed", f"--at={PATH}:7:1"]),
    ],
)
def test_each_editor_is_started_in_its_own_way(editor: str, command: list[str]) -> None:
    assert editor_command(editor, PATH, 7) == command


@pytest.mark.parametrize("editor", ["obsidian", "my-app://show?file={path}&at={line}"])
def test_a_link_is_given_to_the_program_for_links(
    editor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for platform, opener in (("linux", "xdg-open"), ("darwin", "open")):
        monkeypatch.setattr(sys, "platform", platform)
        assert editor_command(editor, PATH, 7) == [opener, editor_link(editor, PATH, 7)]


@pytest.mark.parametrize(
    ("editor", "link"),
    [
        ("vscode", f"vscode://file{ENCODED}:7:1"),
        ("cursor", f"cursor://file{ENCODED}:7:1"),
        ("obsidian", f"obsidian://open?path={ENCODED.replace('/', '%2F')}"),
        ("app://{path}#{line}", f"app://{ENCODED}#7"),
        ("vim", PATH.as_uri()),
        ("unknown", PATH.as_uri()),
        (None, PATH.as_uri()),
    ],
)
def test_a_link_opens_the_file_in_the_editor(editor: str | None, link: str) -> None:
    assert editor_link(editor, PATH, 7) == link


@given(NAMES, st.sampled_from([*EDITORS, "kate {path}", "a b", None]))
def test_no_name_of_a_file_leaves_its_link_or_its_argument(name: str, editor: str | None) -> None:
    path = Path("/notes", name.replace("/", "_"))
    link = editor_link(editor, path, 3)
    assert link.isascii()
    assert link.isprintable()
    assert " " not in link
    assert os.fsencode(path) in unquote_to_bytes(link)
    if editor is not None and editor != "obsidian":
        command = editor_command(editor, path, 3)
        assert sum(str(path) in word for word in command) == 1
        assert shlex.split(shlex.join(command)) == command


@pytest.mark.parametrize("editor", ["'unclosed", "   "])
def test_what_is_no_command_is_refused(editor: str) -> None:
    with pytest.raises(ConfigError):
        editor_command(editor, PATH, 1)
