"""The text that a command writes: that of an option, or what comes on stdin."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def content_options(function: F) -> F:
    """``source`` and ``content``, for `given_content`."""
    function = click.option("--content", metavar="TEXT", help="The text; '-' reads it from stdin.")(
        function
    )
    return click.argument("source", metavar="[-]", required=False)(function)


def given_content(source: str | None, content: str | None) -> str | bytes:
    """
    The text of ``--content`` as the shell had it (lone surrogates stand for its other bytes), or
    stdin's bytes.

    Raises:
        UsageError: No text was given, or two.
    """
    if source not in (None, "-"):
        raise click.UsageError(f"Unexpected argument: {source}. The text goes to --content.")
    if content is not None and content != "-":
        if source is not None:
            raise click.UsageError("Give the text by --content or on stdin, not both.")
        return content
    if source is None and content is None and sys.stdin.isatty():
        raise click.UsageError("Give the text by --content TEXT, or '-' to read it from stdin.")
    return sys.stdin.buffer.read()
