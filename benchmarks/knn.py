"""
Nearest neighbours in the database beside numpy's exact scan, with the recall of ours.

    python benchmarks/knn.py [--sizes 10000,100000] [--queries 40] [--million]

Random unit vectors of 384 dimensions around cluster centres. Ours is the store's search as
`vsearch` does it in a process that has searched before: among many vectors codes in memory give
candidates, among few the int8 index, and the exact float16 vectors rank them.
numpy multiplies one float32 matrix that is already in memory and takes the best ten.
CPU time a query, taking turns. One thread on both sides: sqlite-vec has no more.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.store import open_store
from qmd.store.sql.vectors import pack_vectors

if TYPE_CHECKING:
    from measure import Row

DIMENSION = 384
K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--million", action="store_true")
    arguments = parser.parse_args()
    # Settings that make numpy's matrix library take a slower kernel are not for a benchmark,
    # and it reads them when it is loaded: so the work is done in a fresh process.
    handicaps = [name for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ]
    if handicaps or os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        environment = {k: v for k, v in os.environ.items() if k not in handicaps}
        environment["OPENBLAS_NUM_THREADS"] = "1"
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    sizes = [int(size) for size in arguments.sizes.split(",")]
    benchmark([*sizes, 1_000_000] if arguments.million else sizes, arguments.queries)


def kernel() -> str:
    """Which of its kernels numpy's matrix library runs."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "numpy's kernel unknown (pip install threadpoolctl tells)"
    import numpy as np

    found = [
        f"{i['internal_api']} {i['version']} {i.get('architecture')}" for i in threadpool_info()
    ]
    return f"numpy {np.__version__}, {', '.join(found)}, 1 thread"


def benchmark(sizes: list[int], queries: int) -> None:
    import measure

    rows, raw = searched(sizes, queries)
    measure.report("knn", rows, raw, [kernel()])


def searched(sizes: list[int], queries: int) -> tuple[list[Row], dict[str, object]]:
    """The rows of the report, and each query's CPU ms."""
    import numpy as np
    from measure import Row, percentile

    rows: list[Row] = []
    raw: dict[str, object] = {}
    for size in sizes:
        rng = np.random.default_rng(5)
        centres = rng.standard_normal((200, DIMENSION), dtype=np.float32)
        vectors = centres[rng.integers(200, size=size)]
        vectors += rng.standard_normal((size, DIMENSION), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        asked = vectors[rng.integers(size, size=queries)]
        asked = asked + 0.03 * rng.standard_normal(asked.shape, dtype=np.float32)
        asked /= np.linalg.norm(asked, axis=1, keepdims=True)
        with tempfile.TemporaryDirectory() as scratch:
            ours, theirs, recall = compare(Path(scratch, "k.sqlite"), vectors, asked)
        raw[f"{size}: qmd ms, numpy ms"] = [
            [round(a, 3), round(b, 3)] for a, b in zip(ours, theirs, strict=True)
        ]
        for percent in (50, 95):
            rows.append(
                Row(
                    f"KNN of {size:,} vectors, p{percent}",
                    percentile(ours, percent),
                    percentile(theirs, percent),
                    "ms",
                    "numpy exact",
                    1.5 if size == 100_000 else 1.0 if size == 1_000_000 else None,
                    f"recall@{K} {recall:.3f}, {queries} queries",
                )
            )
        print(f"{size:,} done", flush=True)
    return rows, raw


def compare(database: Path, vectors, asked) -> tuple[list[float], list[float], float]:  # type: ignore[no-untyped-def]
    """CPU ms of each query, ours and numpy's, and our recall."""
    import numpy as np

    from qmd.search.meaning.nearness import bare
    from qmd.search.meaning.retrieval import nearest_documents
    from qmd.search.meaning.vector_cache import VectorCache
    from qmd.values import Filters

    with closing(open_store(database, create=True)) as store:
        model = store.write(lambda connection: fill(connection, vectors))
        ours: list[float] = []
        theirs: list[float] = []
        found = 0
        with store.reading() as reader:
            reader.vectors.require_engine()
            everything = reader.select(Filters())
            cache = VectorCache(store.reading)
            start = time.process_time()
            for _ in range(2):  # codes are loaded by a thread, from the second search on
                cache.nearest(reader, model, asked[0], 1, everything)
            if cache.loader is not None:
                cache.loader.join()
            print(f"vectors read in {time.process_time() - start:.2f} s of CPU time", flush=True)
            for query in asked:
                for _ in range(2):  # the first time warms the pages and the processor's caches
                    start = time.process_time()
                    hits = nearest_documents(reader, bare(model, query), everything, K, cache)
                    spent = time.process_time() - start
                    start = time.process_time()
                    cosines = vectors @ query
                    best = np.argpartition(cosines, -K)[-K:]
                    best = best[np.argsort(-cosines[best])]
                    exact = time.process_time() - start
                ours.append(spent * 1000)
                theirs.append(exact * 1000)
                found += len({hit.chunk_id for hit in hits} & {int(row) + 1 for row in best})
    return ours, theirs, found / (K * len(asked))


def fill(writer, vectors):  # type: ignore[no-untyped-def]
    """A document and a chunk for each vector, with as little in them as the schema allows."""
    from qmd.values import ModelSpec

    model = writer.models.begin(ModelSpec("synthetic", "synthetic", DIMENSION, 512))
    writer.connection.execute(
        "INSERT INTO collections (id, name, path, created_at) VALUES (1, 't', '/t', '')"
    )
    batch = 5000
    for start in range(0, len(vectors), batch):
        packed = pack_vectors(vectors[start : start + batch])
        numbers = range(start + 1, start + 1 + len(packed))
        hashes = [number.to_bytes(16, "big") for number in numbers]
        writer.connection.executemany(
            "INSERT INTO documents (id, collection_id, path, name_key, title, hash, modified_at,"
            " bytes, mtime_ns, inode, device, encoding, parser_version, body_start, indexed_at,"
            " text) VALUES (?1, 1, ?1, ?1, ?1, ?1, '', 0, 0, 0, 0, 'utf-8', 0, 0, '', '')",
            [(number,) for number in numbers],
        )
        writer.connection.executemany(
            "INSERT INTO chunks (id, document_id, seq, start_char, end_char, start_byte, end_byte,"
            " start_line, end_line, heading_path, hash)"
            " VALUES (?1, ?1, 0, 0, 0, 0, 0, 1, 1, '', ?2)",
            list(zip(numbers, hashes, strict=True)),
        )
        writer.embeddings.put(
            model,
            list(zip(numbers, hashes, strict=True)),
            dict(zip(hashes, packed, strict=True)),
        )
    return model


if __name__ == "__main__":
    main()
