"""``qmd mcp``: the knowledge base for an MCP client, over stdin and stdout."""

from __future__ import annotations

import click

from qmd.cli.command import command
from qmd.cli.session import session


@command(
    "mcp",
    examples=('claude mcp add qmd -- qmd mcp       # or "command": "qmd", "args": ["mcp"]',),
)
@click.pass_context
def mcp(ctx: click.Context) -> None:
    """Serve MCP over stdin and stdout, to a client that starts it."""
    from qmd.server.mcp import serve_stdio

    here = session()
    here.interrupted = "The server has stopped."
    ctx.exit(serve_stdio(lambda: here.open(create=True)))
