"""
Writes the manual page, qmd.1, which wheels install.

Run ``python docs/generate_man.py`` after changing a command; a test fails when it is stale.
"""

from __future__ import annotations

from pathlib import Path

from qmd.cli.main import cli
from qmd.cli.man import man_page

PAGE = Path(__file__).with_name("qmd.1")

if __name__ == "__main__":
    PAGE.write_text(man_page(cli), encoding="utf-8")
