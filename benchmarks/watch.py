"""
How long after a file is saved a search finds it, and what background embedding costs searches.

    python benchmarks/watch.py [--files 2000] [--saves 100] [--work DIR]

Saved → found: a file below a kept collection gets a new word, then the search is asked again
and again until it finds that. Beside it, by turns, the floor: the pause in which a burst is
gathered (100 ms) and a bare watchdog observer's own event for the same kind of save.

Searches: the same queries while nothing else runs, and while the keeper embeds all documents.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from pathlib import Path

from measure import Row, percentile, report
from tree import make_tree
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from qmd import KnowledgeBase
from qmd.ingest.keep.watch import QUIET_S

#: Between two searches: people and agents do not ask without a break.
PAUSE_S = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--saves", type=int, default=100)
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    parser.add_argument("--work", type=Path, help="keep the tree here")
    parser.add_argument("--no-embed", action="store_true", help="only saved → found")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        benchmark(arguments, arguments.work or Path(scratch), Path(scratch))


def benchmark(arguments: argparse.Namespace, work: Path, scratch: Path) -> None:
    root = (work / f"watch-{arguments.language}-{arguments.files}").resolve()
    root.parent.mkdir(parents=True, exist_ok=True)
    make_tree(root, arguments.files, arguments.language)
    rows: list[Row] = []
    with KnowledgeBase.open(scratch / "kb.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        titles = [document.title for document in kb.documents()]
        queries = random.Random(1).choices(titles, k=400)
        keep(kb, embed=False)
        quiet = []
        for query in queries:
            quiet.append(timed(kb, query))
            time.sleep(PAUSE_S)
        found, floor = saves(kb, root, scratch / "bare", arguments.saves)
    count = f"{arguments.saves} saves, {arguments.files:,} files"
    for percent in (50, 95):
        rows.append(
            Row(
                f"saved → found, p{percent}",
                percentile(found, percent) * 1000,
                percentile(floor, percent) * 1000,
                "ms",
                "the pause and a bare watchdog event",
                count=count,
            )
        )
    raw: dict[str, object] = {"found_s": found, "floor_s": floor, "quiet_s": quiet}
    notes = [f"target: p95 ≤ 1 s; found after {percentile(found, 95):.3f} s"]
    if not arguments.no_embed:
        with KnowledgeBase.open(scratch / "kb.sqlite") as kb:
            keep(kb, embed=True)
            busy, done = while_embedding(kb, queries)
        raw["busy_s"] = busy
        for percent in (50, 95):
            rows.append(
                Row(
                    f"search while embedding, p{percent}",
                    percentile(busy, percent) * 1000,
                    percentile(quiet, percent) * 1000,
                    "ms",
                    "the same searches, nothing embedded",
                    count=f"{len(busy):,} searches, {done:,} chunks",
                )
            )
    report("watch", rows, raw, notes)


def keep(kb: KnowledgeBase, *, embed: bool) -> None:
    """Returns when the keeper has found the disk as the index has it."""
    synced = threading.Event()
    end = kb.events.subscribe(lambda event: synced.set() if event.kind == "synced" else None)
    kb.keep(embed=embed)
    synced.wait()
    end()


def timed(kb: KnowledgeBase, query: str) -> float:
    start = time.perf_counter()
    kb.search(query)
    return time.perf_counter() - start


def saves(kb: KnowledgeBase, root: Path, bare: Path, count: int) -> tuple[list[float], list[float]]:
    """Seconds until found, and the floor of each, by turns."""
    files = random.Random(2).choices(sorted(root.rglob("*.md")), k=count)
    bare.mkdir()
    seen = threading.Event()

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            if event.event_type == "closed":
                seen.set()

    observer = Observer()
    observer.schedule(Handler(), str(bare), recursive=True)
    observer.start()
    found, floor = [], []
    for number, path in enumerate(files):
        text = path.read_text(encoding="utf-8")
        word = f"zq{number}x{time.time_ns()}"
        start = time.perf_counter()
        path.write_text(f"{text}\n{word}\n", encoding="utf-8")
        while not kb.search(word).hits:
            time.sleep(0.002)
        found.append(time.perf_counter() - start)
        path.write_text(text, encoding="utf-8")
        while kb.search(word).hits:
            time.sleep(0.002)
        seen.clear()
        start = time.perf_counter()
        (bare / "x.md").write_text(text, encoding="utf-8")
        seen.wait()
        floor.append(time.perf_counter() - start + QUIET_S)
    observer.stop()
    observer.join()
    return found, floor


def while_embedding(kb: KnowledgeBase, queries: list[str]) -> tuple[list[float], int]:
    """Searches, with pauses, until every chunk has its vector; how many chunks that were."""
    begun, ended, most = threading.Event(), threading.Event(), [0]

    def heed(event: object) -> None:
        done, total = getattr(event, "done", None), getattr(event, "total", None)
        if getattr(event, "kind", "") == "embedding" and done is not None:
            most[0] = max(most[0], done)
            if done:
                begun.set()
            if done == total:
                ended.set()

    kb.events.subscribe(heed)
    begun.wait()
    times: list[float] = []
    while not ended.is_set():
        times.append(timed(kb, queries[len(times) % len(queries)]))
        ended.wait(PAUSE_S)
    return times, most[0]


if __name__ == "__main__":
    main()
