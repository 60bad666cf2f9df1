"""
Where the default model's cosines lie, on topic and off: the figures of docs/models.md.

    python benchmarks/cosines.py DIRECTORY [--cache-dir DIR]

``DIRECTORY`` holds retrieval collections, one directory each: ``corpus.jsonl`` (_id, title,
text), ``queries.jsonl`` (_id, text) and ``qrels.tsv`` (query, document, grade). For each
collection: percentiles of the cosine of a question to its best relevant document, to the
best of the others, and to others at random, and the share that passes minScore 0.3.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from qmd.inference.protocols import Embedder
from qmd.models.catalogue import DEFAULT_MODEL, open_embedder

QUERIES, DOCUMENTS = 100, 300
MIN_SCORE = 0.3  # the default of `vsearch`
PERCENTILES = (5, 25, 50, 75, 95)


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def read_judgments(path: Path) -> dict[str, set[str]]:
    relevant: dict[str, set[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        query, document, grade = line.split("\t")[:3]
        if grade.strip().isdigit() and int(grade) > 0:
            relevant.setdefault(query, set()).add(document)
    return relevant


def measure(embedder: Embedder, directory: Path) -> None:
    rng = random.Random(1)
    relevant = read_judgments(directory / "qrels.tsv")
    corpus = {
        str(row["_id"]): f"{row.get('title') or ''}\n{row['text']}".strip()[:1500]
        for row in read_rows(directory / "corpus.jsonl")
    }
    queries = [row for row in read_rows(directory / "queries.jsonl") if str(row["_id"]) in relevant]
    queries = rng.sample(queries, min(QUERIES, len(queries)))
    wanted = {d for q in queries for d in sorted(relevant[str(q["_id"])])[:3] if d in corpus}
    others = [d for d in corpus if d not in wanted]
    kept = sorted(wanted) + rng.sample(others, min(len(others), max(0, DOCUMENTS - len(wanted))))
    documents = embedder.embed_passages([corpus[d] for d in kept])
    best_relevant, best_other, random_other = [], [], []
    for query in queries:
        cosines = documents @ embedder.embed_query(query["text"])
        hits = np.array([d in relevant[str(query["_id"])] for d in kept])
        if hits.any():
            best_relevant.append(cosines[hits].max())
            best_other.append(cosines[~hits].max())
            random_other.extend(rng.sample(list(cosines[~hits]), 20))
    spec = embedder.spec
    threshold = spec.cosine_low + MIN_SCORE * (spec.cosine_high - spec.cosine_low)
    for label, values in (
        ("best relevant", best_relevant),
        ("best of the others", best_other),
        ("others at random", random_other),
    ):
        figures = "  ".join(f"{value:.3f}" for value in np.percentile(values, PERCENTILES))
        passing = np.mean(np.array(values) >= threshold)
        print(f"{directory.name:12} {label:20} {figures}  {passing:4.0%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--cache-dir", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        cache_dir = arguments.cache_dir or Path(temporary)
        embedder = open_embedder(DEFAULT_MODEL, cache_dir=cache_dir)
        print(
            f"{'collection':12} {'percentile':20} "
            + "  ".join(f"p{p:<4}" for p in PERCENTILES)
            + "  pass"
        )
        for queries in sorted(arguments.directory.glob("*/queries.jsonl")):
            measure(embedder, queries.parent)


if __name__ == "__main__":
    main()
