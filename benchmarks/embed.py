"""
Embedding rate of the default model beside bare onnxruntime on the same texts.

    python benchmarks/embed.py [--texts 60] [--rounds 5] [--threads N] [--cache-dir DIR]

"Bare" is the time in `InferenceSession.run` alone: the same ONNX file, the texts already
tokenized, the same number of threads, used in both ways onnxruntime offers (a text shared
among the threads; a text a thread). The rounds alternate, so that a busy machine slows all
alike; each rate is the best round. "With token states" also makes and encodes what late
interaction keeps of each text.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from qmd.inference import token_codes
from qmd.inference.embedded import build
from qmd.inference.fastembedder import available_cores
from qmd.inference.protocols import token_embedder
from qmd.inference.token_codes import shipped
from qmd.models.catalogue import DEFAULT_MODEL, open_embedder, spec_of

ENGLISH = (
    "the server index note meeting project database query result update restore backup search "
    "vector language model chapter garden recipe history letter because although several between "
    "during people water report method analysis energy system growth paper week"
)
CHINESE = list(
    "我们在会议上讨论了数据库的备份与恢复方案服务器崩溃以后应当检查日志学习方法笔记文章历史春天花园读书思考"
)


def sample_text(rng: random.Random, *, chinese: bool) -> str:
    """A text of about 200 to 400 tokens."""
    if chinese:
        sentences = ["".join(rng.choices(CHINESE, k=rng.randint(8, 24))) for _ in range(24)]
        return "。".join(sentences)[: rng.randint(260, 420)]
    words = ENGLISH.split()
    sentences = [" ".join(rng.choices(words, k=rng.randint(6, 18))) for _ in range(30)]
    return ". ".join(sentences)[: rng.randint(1200, 2000)]


def sample_texts(count: int, count_tokens: Callable[[str], int]) -> list[str]:
    """Half English, half Chinese, 200 to 400 tokens each."""
    rng = random.Random(7)
    texts: list[str] = []
    while len(texts) < count:
        text = sample_text(rng, chinese=len(texts) % 2 == 1)
        if 200 <= count_tokens(text) <= 400:
            texts.append(text)
    return texts


def bare_session(cache_dir: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    model = build.model_directory(cache_dir) / build.MODEL_FILE
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--cache-dir", type=Path, help="default: a new one, so the build is timed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        measure(arguments, arguments.cache_dir or Path(temporary))


def measure(arguments: argparse.Namespace, cache_dir: Path) -> None:
    threads = arguments.threads
    print(
        f"build          {timed(lambda: open_embedder(DEFAULT_MODEL, cache_dir=cache_dir)):6.2f} s"
    )
    embedder = open_embedder(DEFAULT_MODEL, cache_dir=cache_dir, threads=threads)
    print(f"load           {timed(lambda: embedder.embed_query('first')):6.2f} s")
    print(f"RSS after load {resident_mib():6.0f} MiB")
    variants = compare(cache_dir, arguments.texts, arguments.rounds, threads)
    print(f"\n{arguments.texts} texts of 200 to 400 tokens, {threads} threads:")
    for name, variant in variants.items():
        print(
            f"{name:36} {variant.texts_a_second:6.1f} texts/s, {variant.cpu_ms:5.1f} ms CPU a text;"
            f" qmd is {variants[QMD].texts_a_second / variant.texts_a_second:5.0%} of it"
        )
    queries = [
        timed(lambda number=n: embedder.embed_query(f"如何恢复备份 after crash {number}"))  # type: ignore[misc]
        for n in range(100)
    ]
    print(f"\nquery p50 {statistics.median(queries) * 1000:.1f} ms", end=", ")
    print(f"p95 {statistics.quantiles(queries, n=20)[-1] * 1000:.1f} ms")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak RSS {peak:.0f} MiB with the bare sessions and the build", file=sys.stdout)


QMD, BARE = "qmd", "bare, a text a thread"


class Variant(NamedTuple):
    texts_a_second: float
    cpu_ms: float


def compare(cache_dir: Path, count: int, rounds: int, threads: int) -> dict[str, Variant]:
    """The best of the rounds of each variant."""
    import numpy as np
    from tokenizers import Tokenizer

    embedder = open_embedder(DEFAULT_MODEL, cache_dir=cache_dir, threads=threads)
    tokenizer = Tokenizer.from_file(str(build.model_directory(cache_dir) / "tokenizer.json"))
    texts = sample_texts(count, lambda text: len(tokenizer.encode(text).ids))
    prefix = spec_of(DEFAULT_MODEL).passage_prefix
    encodings = [tokenizer.encode(prefix + text) for text in texts]
    inputs = [
        {"input_ids": np.array([e.ids]), "attention_mask": np.array([e.attention_mask])}
        for e in encodings
    ]
    shared, single = bare_session(cache_dir, threads), bare_session(cache_dir, 1)

    def run_single(feed: Any) -> None:
        single.run(None, feed)

    by_token, projection = token_embedder(embedder), shipped()
    assert by_token is not None

    def with_token_states() -> None:
        for states in by_token.embed_passages_with_tokens(texts)[1]:
            token_codes.encode(states, projection)

    with ThreadPoolExecutor(threads) as pool:
        actions: dict[str, Callable[[], object]] = {
            QMD: lambda: embedder.embed_passages(texts),
            "qmd, with token states": with_token_states,
            "bare, a text shared by the threads": lambda: [shared.run(None, i) for i in inputs],
            BARE: lambda: list(pool.map(run_single, inputs)),
        }
        seconds: dict[str, list[float]] = {name: [] for name in actions}
        cpu_seconds: dict[str, list[float]] = {name: [] for name in actions}
        for _ in range(rounds):
            for name, action in actions.items():
                began = time.process_time()
                seconds[name].append(timed(action))
                cpu_seconds[name].append(time.process_time() - began)
    return {
        name: Variant(count / min(seconds[name]), min(cpu_seconds[name]) / count * 1000)
        for name in actions
    }


if __name__ == "__main__":
    main()
