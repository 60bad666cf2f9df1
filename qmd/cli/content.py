"""Reads the text that a command writes, from an option or from stdin."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def content_options(function: F) -> F:
    """Add the parameters ``source`` and ``content``, which `given_content` takes."""
    function = click.option("--content", metavar="TEXT", help="The text; '-' reads it from stdin.")(
        function
    )
    return click.argument("source", metavar="[-]", required=False)(function)


def given_content(source: str | None, content: str | None) -> str | bytes:
    """
    The text of ``--content``, or the bytes of stdin.

    Bytes of ``--content`` that are not valid in the shell's encoding are lone surrogates.

    Raises:
        UsageError: The user gave no text, or both kinds.
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
