"""The command line: each command parses its arguments, calls the knowledge base and prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.cli import ask_view as ask_view
    from qmd.cli import bars as bars
    from qmd.cli import chat_talk as chat_talk
    from qmd.cli import commands as commands
    from qmd.cli import daemon as daemon
    from qmd.cli import listings as listings
    from qmd.cli import main as main
    from qmd.cli import operations as operations
    from qmd.cli import remote as remote
    from qmd.cli import render_hits as render_hits
    from qmd.cli import render_reports as render_reports
    from qmd.cli import runs as runs
    from qmd.cli import search as search
    from qmd.cli import shell_completion as shell_completion

__getattr__ = lazy.load(__name__)
