"""``qmd open`` shows the page of the running server in the browser."""

from __future__ import annotations

import sys

import click

from qmd.cli.command import command, json_option
from qmd.cli.session import session
from qmd.cli.terminal import note, write, write_json
from qmd.errors import NotFoundError, QmdError

_TIMEOUT_S = 10.0


@command("open", examples=("qmd open", "qmd open --print"))
@click.option("--print", "--no-browser", "print_only", is_flag=True,
              help="Only print the link, as without a terminal.")  # fmt: skip
@json_option
def open_(print_only: bool, as_json: bool) -> None:
    """
    Show the page of the running server in the browser.

    If the server requires a token, the link lets the browser in: it works once, within a
    minute, for programs of the user who started the server. This command starts no server.
    """
    address, path = _link()
    if as_json:
        write_json({"url": address, "link": address + path, "works_once": path != "/"})
        return
    if not print_only and sys.stdout.isatty():
        import webbrowser

        if webbrowser.open(address + path):
            write(f"Opened {address}/ in the browser.\n")
            return
        note("There is no browser to start; open this link in one:")
    write(f"{address}{path}\n")
    if path != "/":
        note("The link works once, within a minute.")


def _link() -> tuple[str, str]:
    """
    The server's address, and the path that lets a browser in.

    Raises:
        NotFoundError: No server runs for the database.
        QmdError: The server makes no link.
    """
    from qmd.system import running

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
        status, reply = running.call(server, "/open", {}, timeout_s=_TIMEOUT_S)
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
