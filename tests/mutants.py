"""
Print a seeded sample of the mutants that `mutmut run` has made, for a run that takes minutes:

    mutmut run $(python -m tests.mutants qmd.search --share 0.05 --seed 1)

See tests/MUTATION.md.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

MUTANTS = Path(__file__).parents[1] / "mutants" / "qmd"


def sample(prefix: str, share: float, seed: int) -> list[str]:
    """This share of every module's mutants, but at least five of each module."""
    chosen = []
    for meta in sorted(MUTANTS.rglob("*.py.meta")):
        names = sorted(json.loads(meta.read_bytes())["exit_code_by_key"])
        names = [name for name in names if name.startswith(prefix)]
        count = min(len(names), max(5, round(len(names) * share)))
        chosen += random.Random(f"{seed} {meta.name}").sample(names, count)
    return chosen


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print a sample of the mutants.")
    parser.add_argument("prefix", help="the beginning of a module's name, such as qmd.parse")
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(*sample(arguments.prefix, arguments.share, arguments.seed), sep="\n")
