"""
How indexing, searches and upkeep grow from ten thousand to a million documents.

    python benchmarks/scale.py [--sizes 10000,100000] [--words 130] [--work DIR] [--questions 25]
        [--seed 1] [--exponent 1.1]

`scale_corpus.py` makes the documents, half of them English and half Chinese. Each gets three chunks
with synthetic vectors, straight into the store. Searches run in a process of their own, warm and
with an empty page cache, each beside the bare SQLite statement for the same words; other operations
beside a count of all rows. The last column says how the time grows: the exponent of the number of
documents, from the smallest to the largest size (1 is linear, 0 not at all).

A million documents take 20 GB in DIR and about an hour. `--part search` measures only searches, in
databases that are there already.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import measure
from measure import percentile
from scale_corpus import Corpus, make_files

DIMENSION, CHUNKS, BATCH = 384, 3, 4096
PARTS = ("index", "search", "upkeep")
Figures = dict[str, list[float]]
"""What → our figures and those of the reference: [ours, reference], or [ours] without one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--words", type=int, default=130, help="in a document, on average")
    parser.add_argument("--seed", type=int, default=1, help="of the documents")
    parser.add_argument("--exponent", type=float, default=1.1, help="of Zipf's law")
    parser.add_argument("--questions", type=int, default=25, help="of each kind")
    parser.add_argument("--work", type=Path, help="keeps documents and databases for next time")
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--probe", choices=("search", "upkeep"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    if arguments.probe:
        root = arguments.work / str(sizes[0])
        probe = {"search": probe_searches, "upkeep": probe_upkeep}[arguments.probe]
        print(json.dumps(probe(root, arguments)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        work = (arguments.work or Path(temporary)).resolve()
        figures = {size: measure_size(work, size, arguments) for size in sizes}
    report(figures)


def measure_size(work: Path, size: int, arguments: argparse.Namespace) -> Figures:
    parts = arguments.part or PARTS
    root = work / str(size)
    root.mkdir(parents=True, exist_ok=True)
    kept = root / "figures.json"  # of parts that were measured before
    figures: Figures = json.loads(kept.read_text()) if kept.exists() else {}

    def keep(others: Figures) -> None:
        figures.update(others)
        kept.write_text(json.dumps(figures, indent=1))

    if "index" in parts:
        keep(index(root, size, corpus_of(arguments)))
    with open_kb(root):  # brings the schema up to date
        pass
    for part in ("search", "upkeep"):
        if part in parts:
            command = [sys.executable, __file__, "--probe", part, "--work", work]
            command += ["--sizes", str(size), "--questions", str(arguments.questions)]
            command += ["--seed", str(arguments.seed)]
            keep(json.loads(measure.run(command).stdout))
            print(f"{size:,}: {part} done", flush=True)
    if "search" in parts:
        keep(processes(root / "index.sqlite", corpus_of(arguments), arguments.questions))
    return figures


# --- index ---------------------------------------------------------------------------------------


def corpus_of(arguments: argparse.Namespace) -> Corpus:
    return Corpus(arguments.words, arguments.seed, arguments.exponent)


def index(root: Path, size: int, corpus: Corpus) -> Figures:
    """Write the files, index them by `qmd index`, index again, and store vectors."""
    database, notes = root / "index.sqlite", root / "notes"
    # A process that is started has at least the peak memory of the one that starts it.
    with ProcessPoolExecutor(1) as apart:
        bytes_ = apart.submit(make_files, notes, size, corpus).result()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{database}{suffix}").unlink(missing_ok=True)
    measure.run(measure.qmd(database, "collection", "add", notes, "--name", "notes", "--no-index"))
    walk = timed(lambda: sum(len(files) for _, _, files in os.walk(notes)))
    first = measure.run(measure.qmd(database, "index", "--no-embed"))
    text_bytes = database.stat().st_size
    again = measure.run(measure.qmd(database, "index", "--no-embed"))
    print(f"{size:,}: indexed in {first.wall_s:.0f} s, again {again.wall_s:.1f} s", flush=True)
    vectors_s = timed(lambda: store_vectors(database)) / 1000
    return {
        "index, s": [first.wall_s, walk / 1000],
        "index, CPU s": [first.cpu_s, walk / 1000],
        "index, peak RSS, MB": [first.rss_mb],
        "index again, nothing changed, s": [again.wall_s, walk / 1000],
        "index again, peak RSS, MB": [again.rss_mb],
        "store vectors, s": [vectors_s],
        "database without vectors, MB": [text_bytes / 1e6, bytes_ / 1e6],
        "database, MB": [database.stat().st_size / 1e6, bytes_ / 1e6],
    }


def vectors_of(first: int, count: int) -> Any:
    """Unit vectors in a narrow cone, in clusters, fewer dimensions counting much than little."""
    import numpy as np

    shape = np.random.default_rng(0)
    cone = shape.standard_normal(DIMENSION, dtype=np.float32)
    spread = (1 + np.arange(DIMENSION, dtype=np.float32)) ** -0.4
    centres = shape.standard_normal((3000, DIMENSION), dtype=np.float32) * spread
    rng = np.random.default_rng(first + 1)
    vectors = rng.standard_normal((count, DIMENSION), dtype=np.float32) * spread
    vectors += centres[rng.integers(len(centres), size=count)]
    vectors += 2 * cone / np.linalg.norm(cone) * np.linalg.norm(spread)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def store_vectors(database: Path) -> None:
    """Give each document `CHUNKS` chunks, and each chunk a vector; and put some of them aside."""
    import numpy as np

    from qmd.store import open_store
    from qmd.store.sql.vectors import pack_vectors

    store = open_store(database, create=True)
    try:
        model = store.write(lambda writer: writer.models.begin(spec()))
        store.write(add_chunks)
        after, asked = 0, []
        while True:
            with store.reading() as reader:
                waiting = reader.connection.execute(  # type: ignore[attr-defined]
                    "SELECT id, hash FROM chunks WHERE id > ? ORDER BY id LIMIT ?", [after, BATCH]
                ).fetchall()
            if not waiting:
                break
            vectors = vectors_of(after, len(waiting))
            asked.append(vectors[:5])
            packed = dict(zip((each[1] for each in waiting), pack_vectors(vectors), strict=True))
            store.write(
                lambda writer, rows=waiting, by_hash=packed: writer.embeddings.put(  # type: ignore[misc]
                    model, rows, by_hash
                )
            )
            after = waiting[-1][0]
        np.save(database.with_name("asked.npy"), np.concatenate(asked))
    finally:
        store.close()


def add_chunks(writer: Any) -> None:
    """Short notes have one chunk; here each gets as many as longer ones have."""
    for seq in range(1, CHUNKS):
        writer.connection.execute(
            "INSERT INTO chunks (document_id, seq, start_char, end_char, start_byte, end_byte,"
            " start_line, end_line, heading_path, hash) SELECT document_id, ?, start_char,"
            " end_char, start_byte, end_byte, start_line, end_line, heading_path, randomblob(16)"
            " FROM chunks k WHERE seq = 0 AND NOT EXISTS"
            " (SELECT 1 FROM chunks o WHERE o.document_id = k.document_id AND o.seq = ?)",
            [seq, seq],
        )


def spec() -> Any:
    from qmd.values import ModelSpec

    return ModelSpec(name="synthetic", fingerprint="synthetic", dimension=DIMENSION, max_tokens=512)


class StoredEmbedder:
    """The vector of a question is near that of some chunk. Takes no time."""

    def __init__(self, asked: Any) -> None:
        self.spec, self._asked = spec(), asked

    def embed_query(self, text: str) -> Any:
        import numpy as np

        rng = np.random.default_rng(list(text.encode()))
        vector = self._asked[rng.integers(len(self._asked))]
        vector = vector + 0.015 * rng.standard_normal(DIMENSION, dtype=np.float32)
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def embed_passages(self, texts: Any) -> Any:
        import numpy as np

        return np.stack([self.embed_query(text) for text in texts])


def open_kb(root: Path) -> Any:
    import numpy as np

    from qmd import KnowledgeBase, Settings

    embedder = StoredEmbedder(np.load(root / "asked.npy"))
    settings = Settings(embedder=embedder)
    return KnowledgeBase.open(root / "index.sqlite", settings, create=True)


# --- searches ------------------------------------------------------------------------------------


def probe_searches(root: Path, arguments: argparse.Namespace) -> Figures:
    """Warm searches of this process, and its memory after them."""
    from qmd.search.meaning.retrieval import require_index
    from qmd.search.meaning.vector_cache import LEAST as VECTORS_IN_MEMORY
    from qmd.store.sqlite.library import connect
    from qmd.values import Filters

    questions = corpus_of(arguments).questions(arguments.questions)
    figures: Figures = {}
    all_ours: list[float] = []
    all_cpu: list[float] = []
    with open_kb(root) as kb:
        bare = connect(root / "index.sqlite", read_only=True)
        figures["open and search once, ms"] = [timed(lambda: kb.search("nothing"))]
        for kind, texts in questions.items():
            ours, theirs = [], []
            for text in texts:
                kb.search(text)  # reads its pages
                began = time.perf_counter()
                ours.append(cpu(lambda: kb.search(text)))  # noqa: B023
                all_ours.append((time.perf_counter() - began) * 1000)
                statement = bare_statement(text)
                theirs.append(cpu(lambda: bare.execute(*statement).fetchall()))  # noqa: B023
            all_cpu += ours
            for percent in (50, 95):
                figures[f"search, {kind}, p{percent}, CPU ms"] = [
                    percentile(ours, percent),
                    percentile(theirs, percent),
                ]
        for percent in (50, 95, 99):
            figures[f"search, all kinds, p{percent}, CPU ms"] = [percentile(all_cpu, percent)]
            figures[f"search, all kinds, p{percent}, ms on the clock"] = [
                percentile(all_ours, percent)
            ]
        figures["memory after searches, MB"] = [own_memory_mb()]
        asked = [text for kind in questions for text in questions[kind][:5]]
        figures["vsearch before vectors are in memory, ms"] = [timed(lambda: kb.vsearch(asked[0]))]
        start = time.perf_counter()
        with kb._store.reading() as reader:
            model = require_index(reader, None)
            cache, everything = kb._vector_cache(), reader.select(Filters())
            while cache.nearest(reader, model, model_query(kb, asked[0]), 1, everything) is None:
                time.sleep(0.1)
                if reader.vectors.count_chunks() < VECTORS_IN_MEMORY:
                    break
        figures["vectors in memory after, s"] = [time.perf_counter() - start]
        for name in ("vsearch", "query"):
            ask = getattr(kb, name)
            for text in asked:
                ask(text)
            clock_ms, cpu_ms = [], []
            for text in asked:
                start_s = time.process_time()
                clock_ms.append(timed(lambda: ask(text)))  # noqa: B023
                cpu_ms.append((time.process_time() - start_s) * 1000)
            for percent in (50, 95, 99):
                figures[f"{name}, p{percent}, CPU ms"] = [percentile(cpu_ms, percent)]
                figures[f"{name}, p{percent}, ms on the clock"] = [percentile(clock_ms, percent)]
        figures["memory after all, MB"] = [own_memory_mb()]
        figures["recall@10 of vsearch's chunks"] = [recall(kb, asked[:20])]
        bare.close()
    return figures


def model_query(kb: Any, text: str) -> Any:
    return kb._settings.embedder.embed_query(text)


def bare_statement(text: str) -> tuple[str, list[str]]:
    """The statement that a person would write for the words of a question, all of them or any."""
    from qmd.search.words import phrase
    from qmd.store.full_text import all_of, any_of
    from qmd.store.sqlite.fts5 import render

    words = [word for word in text.split() if not word.startswith(("-", "tag:"))]
    join = any_of if text.startswith(("how", "怎么")) else all_of
    match = join(*(part for word in words if (part := phrase(word.strip('"*'))) is not None))
    return (
        "SELECT rowid, bm25(z_documents_fts) FROM z_documents_fts WHERE z_documents_fts MATCH ?"
        " ORDER BY bm25(z_documents_fts) LIMIT 10",
        [render(match)],
    )


def recall(kb: Any, texts: list[str]) -> float:
    """The share of the ten chunks nearest by exact vectors that the search for chunks returns."""
    import numpy as np

    from qmd.search.meaning.retrieval import require_index
    from qmd.values import Filters

    with kb._store.reading() as reader:
        model = require_index(reader, None)
        queries = np.stack([kb._settings.embedder.embed_query(text) for text in texts])
        best = np.full((len(texts), 10), -1.0, np.float32)
        best_ids = np.zeros((len(texts), 10), np.int64)
        after = 0
        while rows := reader.connection.execute(
            "SELECT k.id, e.vector FROM chunks k JOIN z_embeddings e ON e.hash = k.hash"
            " WHERE k.id > ? ORDER BY k.id LIMIT 20000",
            [after],
        ).fetchall():
            after = rows[-1][0]
            values = np.frombuffer(b"".join(row[1] for row in rows), np.float16)
            cosines = queries @ values.reshape(len(rows), DIMENSION).astype(np.float32).T
            ids = np.broadcast_to(np.array([row[0] for row in rows]), cosines.shape)
            joined, joined_ids = np.hstack([best, cosines]), np.hstack([best_ids, ids])
            order = np.argsort(-joined, axis=1)[:, :10]
            best = np.take_along_axis(joined, order, 1)
            best_ids = np.take_along_axis(joined_ids, order, 1)
        hits = 0
        cache, everything = kb._vector_cache(), reader.select(Filters())
        for query, exact_ids in zip(queries, best_ids, strict=True):
            near = cache.nearest(reader, model, query, 100, everything)
            if near is None:
                near = reader.vectors.nearest(model, query, 100, everything)
            vectors = np.frombuffer(b"".join(row[2] for row in near), np.float16)
            cosines = vectors.reshape(len(near), DIMENSION).astype(np.float32) @ query
            ten = {near[place][0] for place in np.argsort(-cosines)[:10]}
            hits += len(ten & set(exact_ids.tolist()))
    return hits / best_ids.size


def processes(database: Path, corpus: Corpus, count: int) -> Figures:
    """Commands as processes, the page cache of the file warm and empty."""
    figures: Figures = {}
    words = [text for texts in corpus.questions(2).values() for text in texts][:count]
    bare = [measure.run([sys.executable, "-c", "pass"]).wall_s * 1000 for _ in range(5)]
    for name, is_cold in (("warm", False), ("page cache empty", True)):
        times = []
        for word in words:
            if is_cold:
                forget_pages(database)
            times.append(measure.run(measure.qmd(database, "search", word, "--json")).wall_s * 1000)
        for percent in (50, 95):
            figures[f"`qmd search`, {name}, p{percent}, ms"] = [
                percentile(times, percent),
                percentile(bare, 50),
            ]
    status = [measure.run(measure.qmd(database, "status")).wall_s * 1000 for _ in range(3)]
    figures["`qmd status`, ms"] = [min(status), percentile(bare, 50)]
    return figures


def forget_pages(database: Path) -> None:
    """Have the system drop the file from its page cache (Linux; nobody else may hold it)."""
    for suffix in ("", "-wal"):
        with suppress(OSError):
            descriptor = os.open(f"{database}{suffix}", os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


# --- upkeep --------------------------------------------------------------------------------------


def probe_upkeep(root: Path, arguments: argparse.Namespace) -> Figures:
    """Everything but searches that reads or keeps a whole database."""
    figures: Figures = {}
    start = time.perf_counter()
    with open_kb(root) as kb:
        kb.overview()
        figures["open, overview, ms"] = [(time.perf_counter() - start) * 1000]
        documents = kb.overview().documents
        name = Corpus().place(documents // 2)
        with kb._store.reading() as reader:
            count = "SELECT count(*) FROM links"
            floor = timed(lambda: reader.connection.execute(count).fetchone())
        questions: dict[str, Callable[[], object]] = {
            "status": kb.status,
            "overview": kb.overview,
            "get by path": lambda: kb.get(f"notes/{name}"),
            "get by name": lambda: kb.get(Path(name).name),
            "get, a wrong name": lambda: attempt(lambda: kb.get("note-00x0001")),
            "get, a wrong path": lambda: attempt(lambda: kb.get("notes/000/0000/note-1.md")),
            "multi-get, a glob": lambda: kb.multi_get(f"notes/{name[:9]}/*.md"),
            "documents, first page": lambda: kb.documents("notes", limit=100),
            "documents, page in the middle": lambda: kb.documents(
                "notes", limit=100, offset=documents // 2
            ),
            "documents by date": lambda: kb.documents("notes", sort="-date", limit=100),
            "documents by property": lambda: kb.documents("notes", properties=["rating:5"]),
            "paths from": lambda: kb.paths_from("notes/000/"),
            "links": lambda: kb.links(f"notes/{name}"),
            "backlinks": lambda: kb.backlinks(f"notes/{name}"),
            "tags": kb.tags,
            "recent": kb.recent,
            "orphans": kb.orphans,
            "broken links": kb.broken_links,
            "similar": lambda: kb.similar(f"notes/{name}"),
            "list a tag": lambda: kb.search("tag:idea"),
            "cleanup, dry run": lambda: kb.cleanup(dry_run=True),
        }
        for what, ask in questions.items():
            ask()
            figures[f"{what}, ms"] = [min(timed(ask) for _ in range(3)), floor]
            print(what, figures[f"{what}, ms"][0], file=sys.stderr, flush=True)
        figures["memory after upkeep, MB"] = [own_memory_mb()]
        figures |= live(kb, root / "notes")
        copy = root / "copy.sqlite"
        size = (root / "index.sqlite").stat().st_size
        figures["backup, s"] = [
            timed(lambda: kb.backup(copy, force=True)) / 1000,
            timed(lambda: copy_file(root / "index.sqlite", copy, size)) / 1000,
        ]
        copy.unlink()
    return figures


def live(kb: Any, notes: Path) -> Figures:
    """How long the keeper walks at first, and how long a saved file takes to be found."""
    synced = threading.Event()
    end = kb.events.subscribe(lambda event: synced.set() if event.kind == "synced" else None)
    start = time.perf_counter()
    kb.keep(embed=False)
    synced.wait()
    end()
    first = time.perf_counter() - start
    times = []
    files = [notes / Corpus().place(number) for number in random.Random(3).sample(range(5000), 10)]
    for number, path in enumerate(files):
        text = path.read_text(encoding="utf-8")
        word = f"zq{number}x{time.time_ns()}"
        began = time.perf_counter()
        path.write_text(f"{text}\n{word}\n", encoding="utf-8")
        while not kb.search(word).hits:
            time.sleep(0.005)
        times.append((time.perf_counter() - began) * 1000)
        path.write_text(text, encoding="utf-8")
        while kb.search(word).hits:
            time.sleep(0.005)
    return {
        "keeper's first walk, s": [first],
        "saved → found, p50, ms": [percentile(times, 50), 100.0],
        "saved → found, p95, ms": [percentile(times, 95), 100.0],
        "memory of the keeper, MB": [own_memory_mb()],
    }


def copy_file(source: Path, target: Path, size: int) -> None:
    with source.open("rb") as read, target.open("wb") as write:
        while data := read.read(1 << 20):
            write.write(data)
        os.fsync(write.fileno())


def attempt(ask: Callable[[], object]) -> None:
    from qmd.errors import QmdError

    with suppress(QmdError):
        ask()


def cpu(action: Callable[[], object]) -> float:
    """Milliseconds of CPU of this process: other programs on the machine count little."""
    start = time.process_time()
    action()
    return (time.process_time() - start) * 1000


def timed(action: Callable[[], object]) -> float:
    """Milliseconds on the clock."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def own_memory_mb() -> float:
    """What this process holds besides pages of files that the system may drop."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1000
    return float("nan")


# --- report --------------------------------------------------------------------------------------


def report(figures: dict[int, Figures]) -> None:
    """A table with a column for each size, and the raw figures in ``runs/``."""
    sizes = sorted(figures)
    print("\n| what |" + "".join(f" {size:,} | ratio |" for size in sizes) + " grows as n^ |")
    print("|---|" + "---:|" * (2 * len(sizes) + 1))
    for what in figures[sizes[-1]]:
        cells, ours = [], []
        for size in sizes:
            values = figures[size].get(what, [float("nan")])
            ours.append(values[0])
            ratio = f"{values[0] / values[1]:.2f}" if len(values) > 1 and values[1] else ""
            cells.append(f" {number(values[0])} | {ratio} |")
        growth = ""
        if len(sizes) > 1 and ours[0] > 0 and ours[-1] > 0:
            growth = f"{math.log(ours[-1] / ours[0]) / math.log(sizes[-1] / sizes[0]):.2f}"
        print(f"| {what} |" + "".join(cells) + f" {growth} |")
    measure.report("scale", [], {str(size): each for size, each in figures.items()})


def number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


if __name__ == "__main__":
    main()
