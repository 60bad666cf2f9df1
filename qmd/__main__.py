"""
The command ``qmd``, and ``python -m qmd``.

Loading the command line is most of what a short command does, and Ctrl-C ends that as quietly
as the rest; so nothing is imported before somebody heeds it.
"""

import gc
import os

# Loading makes some 60,000 objects that all stay: looking for garbage among them again and again
# takes 7 % of the time of a search. `serve` sets the usual threshold again.
LOADING_THRESHOLD = 100_000


def run() -> None:
    """Run the command line, and leave with its exit code."""
    gc.set_threshold(LOADING_THRESHOLD)
    try:
        from qmd.cli import plain

        plain.run()
    except KeyboardInterrupt:
        os._exit(130)


if __name__ == "__main__":
    run()
