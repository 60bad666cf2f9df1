"""``qmd server`` and ``qmd mcp`` serve the knowledge base to other programs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import qmd.server
from qmd import cli
from qmd.cli import complete
from qmd.cli.command import Decorator, Group, refuse_unless_server, setting_option, together
from qmd.cli.commands import below
from qmd.cli.session import Session, session
from qmd.system.log_file import log_file
from qmd.system.session import SERVES_ONLY
from qmd.system.user_dirs import is_missing

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase
    from qmd.server.process import ServerOptions, Transport

PORT = 18765

#: The options that the help of a server shows first.
USUAL = (
    *("--transport", "--host", "--port", "--token", "--daemon", "--read-only", "--toolset"),
    *("--vault", "--write-root", "--no-watch"),
)

#: The keys of `qmd.tools.toolsets.TOOLSETS`; importing that module for a help text would take
#: too long. A test compares the two.
TOOLSETS = (
    *("qmd", "graph", "edit", "capture", "memory", "posts"),
    *("summary", "notes", "images", "chatgpt"),
)
ALL = "all"


def _token(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return value if value is not None else os.environ.get("QMD_TOKEN")


def _toolsets(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (value or "").split(",") if name.strip())
    for name in names:
        if name not in (*TOOLSETS, ALL):
            choices = ", ".join((*TOOLSETS, ALL))
            raise click.BadParameter(f"{name!r} is none of: {choices}.", ctx, param)
    if value is not None and not names:
        raise click.BadParameter(f"name one or more of: {', '.join(TOOLSETS)}.", ctx, param)
    return names


#: The options of the HTTP address and of access to it.
address_options = together(
    click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST",
                 help="Listen on this address; one that others can reach needs a token."),
    click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True,
                 metavar="N", help="Listen on this port; 0 takes a free one."),
    click.option("--token", callback=_token, metavar="TOKEN",
                 help="Require 'Authorization: Bearer TOKEN'; 'auto' creates a token, which "
                 "qmd's own commands find.  [env: QMD_TOKEN]"),
    click.option("--oauth-issuer", metavar="URL",
                 help="Also take tokens (JWT) that this OAuth 2.1 server issues."),
    click.option("--oauth-resource", metavar="URL",
                 help="The URL of /mcp that clients use, for which such tokens are issued; "
                 "default: that of this server."),
    click.option("--allow-host", "allowed_hosts", multiple=True, metavar="NAME",
                 help="Accept this host name too, e.g. that of a proxy; repeat for several."),
    setting_option("allow_origins"),
    setting_option("allow_other_users"),
)  # fmt: skip


#: The options of what the server does and logs.
conduct_options = together(
    click.option("--read-only", is_flag=True, help="Refuse everything that writes."),
    setting_option("db_read"),
    setting_option("push_folder"),
    click.option("--no-watch", is_flag=True, help="Do not keep the index up to date."),
    click.option("--log-format", type=click.Choice(["text", "json"]), default="text",
                 show_default=True, help="How to write to stderr what happens."),
    click.option("--access-log", is_flag=True, help="Log each request, without its query."),
)  # fmt: skip


#: The options that select the MCP tools and their directories.
tool_options = together(
    click.option("--toolset", "toolsets", callback=_toolsets, metavar="NAME[,NAME]...",
                 help="Offer these tools: " + ", ".join((*TOOLSETS, ALL)) + ".",
                 shell_complete=complete.listed((*TOOLSETS, ALL))),
    setting_option("write_roots"),
    setting_option("posts_dir"),
    setting_option("vault"),
)  # fmt: skip


#: The options of the MCP tools, and of how they are described and answer.
mcp_options = together(
    tool_options,
    click.option(
        "--lang", "language", type=click.Choice(["en", "zh"]),
        help="Describe the MCP tools in this language; else each as its specification does.",
    ),
    click.option(
        "--plain-text", is_flag=True,
        help="Answer over MCP in one text, for clients that refuse embedded resources.",
    ),
)  # fmt: skip


def server_options(transport: str) -> Decorator:
    """The options of ``qmd server``; ``transport`` is the default transport."""
    return together(
        click.option(
            "--transport", type=click.Choice(["both", "mcp", "http"]), default=transport,
            show_default=True, help="MCP over stdin and stdout, REST and MCP over HTTP, or both.",
        ),
        # tobi/qmd has this name for --transport http.
        click.option("--http", "only_http", is_flag=True, hidden=True),
        click.option(
            "--daemon", is_flag=True,
            help="Serve over HTTP in the background; 'qmd server stop' ends it.",
        ),
        mcp_options,
        address_options,
        conduct_options,
    )  # fmt: skip


@click.group(
    "server",
    cls=Group,
    **below("server"),
    invoke_without_command=True,
    usual=USUAL,
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
    transports the server ends when its stdin ends; if stdin is a terminal or /dev/null, only
    HTTP is served. After SIGTERM or Ctrl-C the requests in progress are answered first.
    """
    _serve_unless_subcommand(ctx, options)


@click.group(
    "token",
    cls=Group,
    operations="server token",
    sections=lambda: {"Commands": ("create", "list", "revoke")},
    examples=(
        "qmd server token create anna --read work,docs --write inbox --expires 90d",
        "qmd server token list",
        "qmd server token revoke anna",
    ),
)
def token() -> None:
    """Let clients of a server use some collections only."""


@click.group(
    "mcp",
    cls=Group,
    lazy={"install": "qmd.cli.clients:install_", "stop": "qmd.cli.daemon:stop"},
    invoke_without_command=True,
    usual=USUAL,
    examples=(
        'claude mcp add -s user qmd -- qmd mcp  # or "command": "qmd", "args": ["mcp"]',
        "qmd mcp --http --daemon                # one server for all clients",
    ),
)
@server_options("mcp")
@click.pass_context
def mcp(ctx: click.Context, /, **options: Any) -> None:
    """Serve MCP over stdin and stdout, to a client that starts it."""
    _serve_unless_subcommand(ctx, options)


def _serve_unless_subcommand(ctx: click.Context, options: dict[str, Any]) -> None:
    if ctx.invoked_subcommand is None:
        ctx.ensure_object(Session).command = ctx.command_path
        ctx.exit(_serve(ctx, options))
    for param in ctx.command.params:
        if ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE:
            name = ctx.invoked_subcommand
            raise click.UsageError(f"Write {param.opts[-1]} after '{name}', if it has it.", ctx)


def _serve(ctx: click.Context, options: dict[str, Any]) -> int:
    if options.pop("daemon"):
        refuse_unless_server(ctx)
        cli.daemon.start_in_background(ctx)
        return 0

    command_session = session()
    command_session.interrupted = "The server has stopped."
    chosen = chosen_options(**options)
    return qmd.server.process.serve(
        lambda: _open(command_session, read_only=chosen.read_only), chosen
    )


def _open(command_session: Session, *, read_only: bool) -> KnowledgeBase:
    if read_only and is_missing(command_session.settings.db):
        # An empty database is enough: notes and posts are read from the disk. An error would
        # not be seen, because the MCP client that starts this process may hide stderr.
        command_session.open(create=True).close()
    return command_session.open(
        create=not read_only, ask_server=True, read_only_files=read_only, use_replica=True
    )


def chosen_options(
    *,
    transport: Transport = "http",
    only_http: bool = False,
    toolsets: tuple[str, ...],
    no_watch: bool = False,
    **others: Any,
) -> ServerOptions:
    """What a server is to do, by the options of a command: `ServerOptions` has the ``others``."""
    settings = session().settings
    # By default the posts are in "data"; a folder with that name may hold anything, so it must
    # not become part of all searches.
    posts_dir_is_set = settings.sources["posts_dir"] != "default"
    return qmd.server.process.ServerOptions(
        **others,
        transport="http" if only_http else transport,
        toolsets=toolsets,
        adopt_posts="posts" in toolsets or (posts_dir_is_set and (not toolsets or ALL in toolsets)),
        watch=not no_watch,
        database=settings.db,
        allowed_origins=settings.allow_origins,
        allow_other_users=settings.allow_other_users,
        editor=settings.editor,
        command=session().command,
        log_file=None if SERVES_ONLY in os.environ else log_file(),
    )
