"""
How long a question takes, warm: `search`, `vsearch` and `query` in one process.

    python benchmarks/query.py DATABASE FIXTURE [--limit 10]

The questions of a fixture of `qmd bench`, each once after ten to warm up; milliseconds on the
clock and of CPU.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from measure import percentile

WARM = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("database", type=Path)
    parser.add_argument("fixture", type=Path)
    parser.add_argument("--limit", type=int, default=10)
    arguments = parser.parse_args()
    from qmd import KnowledgeBase

    entries = json.loads(arguments.fixture.read_text(encoding="utf-8"))["queries"]
    questions = [entry["query"] for entry in entries]
    with KnowledgeBase.open(arguments.database) as kb:
        status = kb.status()
        print(f"{status.total_documents:,} documents, {status.chunks_embedded:,} vectors,"
              f" {len(questions)} questions")  # fmt: skip
        print("| | p50 ms | p95 ms | CPU p50 ms | CPU p95 ms |\n|---|---:|---:|---:|---:|")
        for name in ("search", "vsearch", "query"):
            ask = getattr(kb, name)
            for question in questions[:WARM]:
                ask(question, limit=arguments.limit)
            clock, cpu = [], []
            for question in questions:
                began, spent = time.perf_counter(), time.process_time()
                ask(question, limit=arguments.limit)
                clock.append((time.perf_counter() - began) * 1000)
                cpu.append((time.process_time() - spent) * 1000)
            figures = [percentile(times, share) for times in (clock, cpu) for share in (50, 95)]
            print(f"| {name} | {' | '.join(f'{figure:.0f}' for figure in figures)} |")


if __name__ == "__main__":
    main()
