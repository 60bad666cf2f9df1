"""``qmd server`` and ``qmd mcp``: the knowledge base for other programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmd.cli.command import command
from qmd.cli.session import session

if TYPE_CHECKING:
    from qmd.server.process import ServerOptions

F = TypeVar("F", bound=Callable[..., Any])

PORT = 18765


def _token(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return value if value is not None else os.environ.get("QMD_TOKEN")


def address_options(function: F) -> F:
    """Where HTTP listens, and to whom."""
    options = [
        click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST",
                     help="Listen on this address; one that others can reach needs a token."),
        click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True,
                     metavar="N", help="Listen on this port; 0 takes a free one."),
        click.option("--token", callback=_token, metavar="TOKEN",
                     help="Ask for 'Authorization: Bearer TOKEN'.  [env: QMD_TOKEN]"),
        click.option("--allow-host", "allowed_hosts", multiple=True, metavar="NAME",
                     help="Answer to this name too, as behind a proxy; repeat for several."),
    ]  # fmt: skip
    return _with(options, function)


def conduct_options(function: F) -> F:
    """What the server does and says."""
    options = [
        click.option("--read-only", is_flag=True, help="Refuse everything that writes."),
        click.option("--no-watch", is_flag=True, help="Leave keeping the index to others."),
        click.option("--log-format", type=click.Choice(["text", "json"]), default="text",
                     show_default=True, help="How to write to stderr what happens."),
        click.option("--access-log", is_flag=True, help="Log each request, without its query."),
    ]  # fmt: skip
    return _with(options, function)


def _with(options: Sequence[Callable[[F], F]], function: F) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def server_options(transport: str) -> Callable[[F], F]:
    """The options of ``qmd server``, with the transport that is the default."""

    def wrap(function: F) -> F:
        function = click.option(
            "--toolset", type=click.Choice(["qmd"]), default="qmd", show_default=True,
            help="Which MCP tools to offer.",
        )(address_options(conduct_options(function)))  # fmt: skip
        return click.option(
            "--transport", type=click.Choice(["both", "mcp", "http"]), default=transport,
            show_default=True, help="MCP over stdin and stdout, REST and MCP over HTTP, or both.",
        )(function)  # fmt: skip

    return wrap


@command(
    "server",
    examples=(
        "qmd server --transport http",
        "qmd server --transport http --port 0 --log-format json",
        "QMD_TOKEN=… qmd server --transport http --host 0.0.0.0",
    ),
)
@server_options("both")
@click.pass_context
def server(ctx: click.Context, /, **options: Any) -> None:
    """
    Serve REST and MCP over HTTP, and MCP over stdin and stdout.

    REST and MCP (at /mcp) share one port, and listen to this machine alone. With both
    transports the server ends when its stdin does, unless that is a terminal or /dev/null,
    where HTTP alone is served. SIGTERM and Ctrl-C finish what is being answered.
    """
    ctx.exit(_serve(options))


@command(
    "mcp",
    examples=('claude mcp add qmd -- qmd mcp       # or "command": "qmd", "args": ["mcp"]',),
)
@server_options("mcp")
@click.pass_context
def mcp(ctx: click.Context, /, **options: Any) -> None:
    """Serve MCP over stdin and stdout, to a client that starts it."""
    ctx.exit(_serve(options))


def _serve(options: dict[str, Any]) -> int:
    from qmd.server.process import serve

    here = session()
    here.interrupted = "The server has stopped."
    chosen = chosen_options(options)
    return serve(lambda: here.open(create=not chosen.read_only, ask_server=True), chosen)


def chosen_options(options: dict[str, Any]) -> ServerOptions:
    from qmd.server.process import ServerOptions

    return ServerOptions(
        transport=options["transport"],
        database=session().settings.db,
        host=options["host"],
        port=options["port"],
        token=options["token"],
        allowed_hosts=options["allowed_hosts"],
        read_only=options["read_only"],
        watch=not options["no_watch"],
        log_format=options["log_format"],
        access_log=options["access_log"],
    )
