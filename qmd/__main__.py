"""
The command ``qmd``, and ``python -m qmd``.

Loading the command line is most of what a short command does, and Ctrl-C ends that as quietly
as the rest; so nothing is imported before somebody heeds it.
"""

import os


def run() -> None:
    """Run the command line, and leave with its exit code."""
    try:
        from qmd.cli import main

        main.run()
    except KeyboardInterrupt:
        os._exit(130)


if __name__ == "__main__":
    run()
