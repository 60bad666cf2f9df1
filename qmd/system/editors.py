"""
Editors: the link that opens a file at a line in each, and the command that does.

The setting ``editor`` names one of `EDITORS`, a program with its arguments, or a template with
``{path}``, ``{line}`` and ``{column}``: of a link if it has ``://``, else of a command. Paths are
percent-encoded in links; in commands each is one argument, and no shell reads it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import NamedTuple
from urllib.parse import quote

from qmd.errors import ConfigError
from qmd.values.reports import Check


class Editor(NamedTuple):
    """
    How an editor opens a file.

    Attributes:
        link: The template of a link; empty if the editor has none.
        arguments: The templates of the arguments after the name of the program.
        program: The program; empty for the editor's name.
    """

    link: str = ""
    arguments: tuple[str, ...] = ("{path}",)
    program: str = ""


_PLUS_LINE = Editor(arguments=("+{line}", "{path}"))
_COLONS = Editor(arguments=("{path}:{line}:{column}",))


def _like_vscode(scheme: str, program: str) -> Editor:
    link = f"{scheme}://file{{path}}:{{line}}:{{column}}"
    return Editor(link, ("--goto", "{path}:{line}:{column}"), program)


EDITORS: Mapping[str, Editor] = {
    "vscode": _like_vscode("vscode", "code"),
    "vscode-insiders": _like_vscode("vscode-insiders", "code-insiders"),
    "vscodium": _like_vscode("vscodium", "codium"),
    "cursor": _like_vscode("cursor", "cursor"),
    "windsurf": _like_vscode("windsurf", "windsurf"),
    "zed": Editor("zed://file{path}:{line}:{column}", ("{path}:{line}:{column}",)),
    "obsidian": Editor("obsidian://open?path={path}", ()),
    "subl": _COLONS,
    "hx": _COLONS,
    "helix": _COLONS,
    **dict.fromkeys(("vi", "vim", "nvim", "nano", "micro", "kak"), _PLUS_LINE),
    **dict.fromkeys(("emacs", "emacsclient"), _PLUS_LINE),
}
#: The programs of editors that have another name than their setting.
_BY_PROGRAM = {editor.program: editor for editor in EDITORS.values() if editor.program}


def editor_link(editor: str | None, path: Path, line: int) -> str:
    """The link that opens a file at a line; one to the file itself if the editor has none."""
    return program_link(editor, path, line) or path.as_uri()


def program_link(editor: str | None, path: Path, line: int) -> str | None:
    """The link that opens a file at a line in the editor; None if the editor has none."""
    template = editor or ""
    if not _is_link(template):
        program = PurePath(template).name.removesuffix(".exe")
        named = EDITORS.get(template) or _BY_PROGRAM.get(program)
        template = named.link if named else ""
    if not template:
        return None
    # Windows: file:///C:/…, so a drive gets a slash in front.
    name = path.as_posix()
    safe = "" if "?" in template.partition("{path}")[0] else "/:"
    name = name if name.startswith("/") or not safe else f"/{name}"
    return _filled(template, quote(os.fsencode(name), safe=safe), line)


def editor_command(editor: str, path: Path, line: int) -> list[str]:
    """
    The command that opens a file at a line, program first.

    Raises:
        ConfigError: The text is no command.
    """
    link = editor if _is_link(editor) else ""
    if editor in EDITORS and not EDITORS[editor].arguments:
        link = EDITORS[editor].link
    if link:
        return [_opener(), editor_link(editor, path, line)]
    if editor in EDITORS:
        words, arguments = [EDITORS[editor].program or editor], EDITORS[editor].arguments
    else:
        words = _words(editor)
        arguments = _arguments(words)
    return [*words[:1], *(_filled(word, str(path), line) for word in (*words[1:], *arguments))]


def check_editor(editor: str | None) -> Check:
    """The finding of `qmd doctor`: whether the program that `qmd edit` starts exists."""
    if not editor:
        return Check.ok("editor", "Not set; 'qmd edit' needs one, such as vscode or vim")
    try:
        program = editor_command(editor, Path("note.md"), 1)[0]
    except ConfigError as error:
        return Check.warning("editor", str(error), error.hint)
    if shutil.which(program) is None:
        return Check.warning(
            "editor",
            f"The editor {editor!r} cannot be started: there is no program {program!r}.",
            f"Install {program!r}, or name another editor: the setting editor, or QMD_EDITOR.",
        )
    return Check.ok("editor", f"'qmd edit' starts {program}")


def _arguments(words: list[str]) -> tuple[str, ...]:
    """What follows the words of a command: nothing if they name the path themselves."""
    if any("{path}" in word for word in words):
        return ()
    name = PurePath(words[0]).name.removesuffix(".exe")
    return (EDITORS.get(name) or _BY_PROGRAM.get(name) or Editor()).arguments


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command, posix=os.name != "nt")
    except ValueError as error:
        raise ConfigError(f"The editor {command!r} is no command: {error}.") from error
    if not words:
        raise ConfigError("The editor is blank.", hint="Name one, such as vscode or vim.")
    return words


def _is_link(template: str) -> bool:
    return "://" in template and "{path}" in template


def _filled(template: str, path: str, line: int) -> str:
    # The path comes last, because it may have braces of its own.
    filled = template.replace("{line}", str(line)).replace("{column}", "1")
    return filled.replace("{path}", path)


def _opener() -> str:
    """The program that opens links with the program that is registered for them."""
    if sys.platform == "darwin":
        return "open"
    return "explorer" if sys.platform == "win32" else "xdg-open"
