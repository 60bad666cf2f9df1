"""``qmd edit`` opens a document in an editor."""

from __future__ import annotations

import os
import subprocess

import click

from qmd.cli import complete
from qmd.cli.command import command
from qmd.cli.places import Places
from qmd.cli.session import session
from qmd.cli.setting_options import setting_option
from qmd.errors import ConfigError, NotFoundError, QmdError
from qmd.system.editors import EDITORS, editor_command

_HINT = (
    "Set QMD_EDITOR, or 'editor' in config.toml, to one of {names}, or to a command such as "
    "'kate --line {{line}} {{path}}'; or set EDITOR."
)


@command(
    "edit",
    examples=(
        "qmd edit plan.md:12",
        "qmd edit 'notes/plan.md#Next steps'",
        "qmd edit '#a1b2c3' --editor obsidian",
    ),
)
@click.argument("name", metavar="NAME[:LINE | #HEADING]", shell_complete=complete.documents)
@setting_option("editor")
def edit(name: str) -> None:
    """
    Open a document in your editor, at the line or heading.

    NAME is as for 'qmd get'. The editor is the setting, else $VISUAL, else $EDITOR.
    """
    editor = chosen_editor()
    if editor is None:
        raise ConfigError("No editor is set.", hint=_hint())
    with session().open() as kb:
        lines = kb.get(name)
        roots = {collection.name: collection.path for collection in kb.collections()}
    file = lines.document.file
    path = Places(roots).path(file)
    if path is None or not path.exists():
        raise NotFoundError(
            f"{file} is no longer on the disk.",
            hint="Run 'qmd index' to bring the index up to date.",
        )
    words = editor_command(editor, path, lines.from_line)
    try:
        code = subprocess.run(words, check=False).returncode
    except OSError as error:
        raise ConfigError(
            f"The editor {words[0]!r} cannot be started: {error.strerror}.", hint=_hint()
        ) from error
    if code:
        raise QmdError(f"The editor {words[0]!r} ended with the exit code {code}.")


def chosen_editor() -> str | None:
    """The setting, else $VISUAL, else $EDITOR; None if all are unset."""
    return session().settings.editor or os.environ.get("VISUAL") or os.environ.get("EDITOR") or None


def _hint() -> str:
    return _HINT.format(names=", ".join(EDITORS))
