"""``python -m qmd``."""

from qmd.cli.main import run

run()
