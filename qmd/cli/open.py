"""``qmd open`` shows the page in the browser, ``qmd edit`` a document in an editor."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import webbrowser
from urllib.parse import quote

import click

from qmd.cli import complete
from qmd.cli.command import command, json_option, setting_option
from qmd.cli.formats import Places
from qmd.cli.session import session
from qmd.cli.terminal import note, write, write_json
from qmd.errors import ConfigError, NotFoundError, QmdError, SectionNotFoundError
from qmd.parse.formats import PDF, format_of
from qmd.system import running
from qmd.system.editors import EDITORS, editor_command

_TIMEOUT_S = 10.0
_PAGE = re.compile(r"page=[0-9]{1,6}", re.IGNORECASE)


@command(
    "open",
    examples=(
        "qmd open",
        "qmd open 'report.pdf#page=12'",
        "qmd open plan.md:12",
        "qmd open --print",
    ),
)
@click.argument(
    "name", required=False, metavar="[NAME[:LINE | #PLACE]]", shell_complete=complete.documents
)
@click.option("--print", "--no-browser", "print_only", is_flag=True,
              help="Only print the link, as without a terminal.")  # fmt: skip
@json_option
def open_(name: str | None, print_only: bool, as_json: bool) -> None:
    """
    Show the page of the running server in the browser.

    With NAME, as for 'qmd get', it shows this document: at the line or heading, or at the page of
    a PDF.

    If the server requires a token, the link lets the browser in: it works once, within a
    minute, for programs of the user who started the server. This command starts no server.
    """
    view = "/" if name is None else _view_of(name)
    address, path = _link()
    works_once = path != "/"
    if not works_once:
        path = view
    elif view != "/":
        path += f"&next={quote(view, safe='')}"
    if as_json:
        write_json({"url": address, "link": address + path, "works_once": works_once})
        return
    if not print_only and sys.stdout.isatty():
        if webbrowser.open(address + path):
            write(f"Opened {address}{view} in the browser.\n")
            return
        note("There is no browser to start; open this link in one:")
    write(f"{address}{path}\n")
    if works_once:
        note("The link works once, within a minute.")


def _view_of(name: str) -> str:
    """The address of the page's view of a document, by a name with a line, heading or place."""
    place = name.partition("#")[2].strip()
    with session().open() as kb:
        try:
            lines = kb.get(name, max_lines=1)
        except SectionNotFoundError as error:
            if not _PAGE.fullmatch(place):
                raise
            lines = kb.get(error.file, max_lines=1)  # such a page may have no text
        file = lines.document.file
        fragments = {each.fragment.casefold() for each in kb.places(file)} if place else set()
    address = f"/note/{quote(file, safe='/', errors='surrogatepass')}"
    if place.casefold() in fragments or (_PAGE.fullmatch(place) and format_of(file) is PDF):
        return f"{address}?at={quote(place, safe='')}"
    return address if lines.from_line == 1 else f"{address}?line={lines.from_line}"


def _link() -> tuple[str, str]:
    """
    The server's address, and the path that lets a browser in.

    Raises:
        NotFoundError: No server runs for the database.
        QmdError: The server makes no link.
    """
    option = session().database_option
    hint = (
        f"Start one with 'qmd up{option}', or at each login with"
        f" 'qmd server service install{option}'."
    )
    database = session().settings.db
    server = running.find(database)
    if server is None:
        raise NotFoundError(f"No qmd server is running for {database}", hint=hint)
    try:
        status, reply, _ = running.call(server, "/open", {}, timeout_s=_TIMEOUT_S)
    except (OSError, ValueError) as error:
        raise NotFoundError(
            f"The qmd server at {server.url} does not answer.", hint=hint
        ) from error
    path = reply.get("path") if isinstance(reply, dict) else None
    if status != 200 or not isinstance(path, str) or not path.startswith("/"):
        raise QmdError(
            f"The qmd server at {server.url} makes no link (status {status}).",
            hint="Restart it, if it is of an older version.",
        )
    return server.url, path


_NO_EDITOR = (
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
        raise ConfigError("No editor is set.", hint=_editor_hint())
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
            f"The editor {words[0]!r} cannot be started: {error.strerror}.", hint=_editor_hint()
        ) from error
    if code:
        raise QmdError(f"The editor {words[0]!r} ended with the exit code {code}.")


def chosen_editor() -> str | None:
    """The setting, else $VISUAL, else $EDITOR; None if all are unset."""
    return session().settings.editor or os.environ.get("VISUAL") or os.environ.get("EDITOR") or None


def _editor_hint() -> str:
    return _NO_EDITOR.format(names=", ".join(EDITORS))
