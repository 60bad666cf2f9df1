"""The command line: each command parses its arguments, calls the knowledge base and prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.cli import (
        ask_view,
        ask_writes,
        bars,
        chat_talk,
        daemon,
        habits,
        listings,
        operations,
        posts,
        read,
        remote,
        render_hits,
        render_reports,
        search,
        setting_options,
        shell_completion,
    )

__all__ = [
    "ask_view",
    "ask_writes",
    "bars",
    "chat_talk",
    "daemon",
    "habits",
    "listings",
    "operations",
    "posts",
    "read",
    "remote",
    "render_hits",
    "render_reports",
    "search",
    "setting_options",
    "shell_completion",
]

__getattr__ = lazy.load(__name__, modules=__all__)
