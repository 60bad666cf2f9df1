"""
Search by hand for texts whose parsing takes more than linear time.

    python -m tests.fuzz.growth [--minutes 10] [--seed 1] [PARSER …]

Each parser of `tests/unit/test_linear_time.py` gets random pairs and triples of units, in random
shapes, one part perhaps repeated more than another. What grows too fast is printed with the
numbers; put it into `tests/unit/test_small_bombs.py` and mend the cause.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

from tests.support import growth
from tests.unit.test_linear_time import MANY_CALLS, PARSERS


def parts(chance: random.Random) -> tuple[str, Callable[[int], str]]:
    """A text of one to three runs, each of a unit of up to three pieces, and how to write it."""
    runs = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        unit = "".join(chance.choices(growth.UNITS, k=chance.choice((1, 2, 2, 3))))
        runs.append((chance.choice(growth.SHAPES), unit, chance.choice(("", "\n", "\n\n", " "))))
    share = len(runs)

    def make(size: int) -> str:
        return "".join(shape(unit, size // share) + end for shape, unit, end in runs)

    return " + ".join(f"{shape.__name__}({unit!r}) {end!r}" for shape, unit, end in runs), make


def search(names: list[str], minutes: float, seed: int) -> None:
    chance = random.Random(seed)
    end = time.monotonic() + 60 * minutes
    tried = 0
    while time.monotonic() < end:
        name = chance.choice(names)
        parser, size, _ = PARSERS[name]
        written, make = parts(chance)
        most = 0.1 if name in MANY_CALLS else 0.01
        problem = growth.problem(parser, make, 2 * size, most_per_kb=most)
        tried += 1
        if problem is not None:
            print(f"{name}: {written}: {problem}", flush=True)
    print(f"{tried:,} texts tried")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parsers", nargs="*", metavar="PARSER", help=", ".join(PARSERS))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    search(given.parsers or list(PARSERS), given.minutes, given.seed)


if __name__ == "__main__":
    main()
