"""
Fuzz every parser and the server's bodies by hand.

    python -m tests.fuzz [--minutes 10] [--seed 1] [TARGET …]

Valid inputs are changed by chance (`mutation.py`). An input that raises anything but a `QmdError`,
gets a status of 500 or more, or takes too much CPU is printed; exit code 1. The same seed gives the
same inputs. `python -m tests.fuzz.growth` looks for inputs whose time grows too fast.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.fuzz.mutation import mutated
from tests.fuzz.targets import MOST_CPU_S, Target, parser_targets, server_targets


def problem(target: Target, data: bytes) -> str | None:
    """What is wrong with how the target takes these bytes."""
    start = time.process_time()
    try:
        target.run(data)
    except Exception:  # noqa: BLE001 - whatever it is, it is what we look for
        return traceback.format_exc(limit=-3)
    spent = time.process_time() - start
    return f"{spent:.1f} s of CPU" if spent > MOST_CPU_S else None


def fuzz(targets: dict[str, Target], minutes: float, seed: int) -> int:
    """How many inputs were wrongly taken."""
    chance = random.Random(seed)
    tried = dict.fromkeys(targets, 0)
    wrong = 0
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        name = chance.choice(list(targets))
        data = mutated(chance, targets[name].seeds)
        tried[name] += 1
        text = problem(targets[name], data)
        if text is not None:
            wrong += 1
            print(f"{name}: {data[:2000]!r} ({len(data)} bytes)\n{text}", flush=True)
    print(", ".join(f"{name}: {count:,}" for name, count in tried.items()))
    print(f"{sum(tried.values()):,} inputs, {wrong} wrongly taken")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        server_targets(Path(directory, "server")) as asked,
    ):
        every = parser_targets(Path(directory)) | asked
        unknown = set(given.targets) - set(every)
        if unknown:
            parser.error(f"no such target: {', '.join(unknown)} (targets: {', '.join(every)})")
        chosen = {name: every[name] for name in given.targets or every}
        sys.exit(1 if fuzz(chosen, given.minutes, given.seed) else 0)


if __name__ == "__main__":
    main()
