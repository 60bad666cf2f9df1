"""Embedding models and cross-encoders in a folder of one's own: real ONNX, made here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpus import Corpus
from support.tiny_onnx import VOCABULARY, word_vector, write_cross_encoder, write_embedder

from qmd import KnowledgeBase
from qmd.errors import InferenceError, ModelMissingError, TransientInferenceError
from qmd.inference import onnx_folder
from qmd.inference.crossencoder import CrossEncoder, open_cross_encoder
from qmd.inference.families import FAMILIES, family
from qmd.inference.protocols import token_embedder
from qmd.models.catalogue import is_available, is_loaded, open_embedder, recorded_name, spec_of
from qmd.settings import BackendSettings, Settings

AMPLE_S = 60.0


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


def embed(folder: Path, text: str) -> Any:
    return open_embedder(str(folder), cache_dir=folder.parent / "cache").embed_passages([text])[0]


# --- embedding models ----------------------------------------------------------------


def test_the_mean_of_the_tokens_is_the_text(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "mine")
    spec = spec_of(str(folder))
    assert (spec.name, spec.dimension, spec.max_tokens) == (str(folder), 8, 512)
    assert (spec.query_prefix, spec.passage_prefix) == ("", "")
    words = [word_vector(word) for word in ("[CLS]", "red", "boat", "[SEP]")]
    assert np.allclose(embed(folder, "Red boat"), unit(np.mean(words, 0)), atol=1e-6)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"1_Pooling__config": {"pooling_mode_cls_token": True}}, "[CLS]"),
        ({"1_Pooling__config": {"pooling_mode": "lasttoken"}}, "[SEP]"),
        ({"1_Pooling__config": {"pooling_mode_lasttoken": True, "include_prompt": True}}, "[SEP]"),
        ({"qmd": {"pooling": "cls"}, "1_Pooling__config": {"pooling_mode": "mean"}}, "[CLS]"),
        (
            {
                "modules": [
                    {"path": "", "type": "sentence_transformers.models.Transformer"},
                    {"path": "other", "type": "sentence_transformers.models.Pooling"},
                ],
                "other__config": {"pooling_mode_cls_token": True},
            },
            "[CLS]",
        ),
        ({"config": {"_name_or_path": "BAAI/bge-small-en-v1.5"}}, "[CLS]"),
    ],
)
def test_how_tokens_become_a_vector_is_read_from_the_files(
    tmp_path: Path, files: dict[str, Any], expected: str
) -> None:
    folder = write_embedder(tmp_path / "mine", **files)
    assert np.allclose(embed(folder, "red boat"), unit(word_vector(expected)), atol=1e-6)


def test_a_model_with_a_state_for_each_token_gives_them(tmp_path: Path) -> None:
    folder = write_embedder(
        tmp_path / "mine", qmd={"passage_prefix": "passage: ", "query_prefix": "query: "}
    )
    embedder = token_embedder(open_embedder(str(folder), cache_dir=tmp_path / "cache"))
    assert embedder is not None
    _vectors, (states,) = embedder.embed_passages_with_tokens(["red boat red passage"])
    words = sorted(("red", "boat", "passage"), key=VOCABULARY.__getitem__)
    assert states.ids.tolist() == [VOCABULARY[word] for word in words]
    assert np.allclose(states.states, [word_vector(word) for word in words], atol=1e-3)


def test_a_model_that_gives_only_the_vector_has_no_token_states(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "mine", pooled="sentence_embedding", only_pooled=True)
    opened = open_embedder(str(folder), cache_dir=tmp_path / "cache")
    assert token_embedder(opened) is None
    vector, states = opened.embed_query_with_tokens("red boat")  # type: ignore[attr-defined]
    assert np.array_equal(vector, opened.embed_query("red boat"))
    assert len(states.ids) == 0


def test_the_largest_of_each_dimension_too(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "mine", qmd={"pooling": "max"})
    words = [word_vector(word) for word in ("[CLS]", "red", "[SEP]")]
    assert np.allclose(embed(folder, "red"), unit(np.max(words, 0)), atol=1e-6)


def test_a_vector_that_the_model_gives_itself_is_taken_by_its_name(tmp_path: Path) -> None:
    words = np.sum([word_vector(word) for word in ("[CLS]", "red", "[SEP]")], 0)
    pooled = write_embedder(tmp_path / "a", pooled="sentence_embedding", qmd={"pooling": "cls"})
    assert np.allclose(embed(pooled, "red"), unit(words), atol=1e-6)
    # BERT's pooler is for classification.
    other = write_embedder(tmp_path / "b", pooled="pooler_output", qmd={"pooling": "cls"})
    assert np.allclose(embed(other, "red"), unit(word_vector("[CLS]")), atol=1e-6)


def test_prefixes_come_from_the_folder_else_from_the_family(tmp_path: Path) -> None:
    plain = write_embedder(tmp_path / "multilingual-e5-base")
    assert spec_of(str(plain)).query_prefix == "query: "
    prompts = {"prompts": {"query": "which: ", "document": "title: "}}
    saved = write_embedder(tmp_path / "e5-mine", config_sentence_transformers=prompts)
    assert (spec_of(str(saved)).query_prefix, spec_of(str(saved)).passage_prefix) == (
        "which: ",
        "title: ",
    )
    told = write_embedder(
        tmp_path / "e5-told", config_sentence_transformers=prompts, qmd={"query_prefix": ""}
    )
    assert (spec_of(str(told)).query_prefix, spec_of(str(told)).passage_prefix) == ("", "title: ")
    embedder = open_embedder(str(saved), cache_dir=tmp_path / "cache")
    assert not np.allclose(embedder.embed_query("red"), embedder.embed_passages(["red"])[0])


def test_a_long_text_is_embedded_whole(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "mine", tokenizer_config={"model_max_length": 16})
    assert spec_of(str(folder)).max_tokens == 16
    start = embed(folder, "red " * 14)
    assert not np.allclose(embed(folder, "red " * 14 + "ocean " * 40), start, atol=1e-3)


@pytest.mark.parametrize(
    ("files", "tokens"),
    [
        ({"tokenizer_config": {"model_max_length": 10**30}}, 512),
        ({"config": {"max_position_embeddings": 32768}}, 2048),
        (
            {
                "sentence_bert_config": {"max_seq_length": 256},
                "tokenizer_config": {"model_max_length": 512},
            },
            256,
        ),
        ({"qmd": {"max_tokens": 64}, "sentence_bert_config": {"max_seq_length": 256}}, 64),
    ],
)
def test_how_much_fits_is_read_from_the_files(
    tmp_path: Path, files: dict[str, Any], tokens: int
) -> None:
    folder = write_embedder(tmp_path / "mine", **files)
    assert onnx_folder.read(str(folder)).described.max_tokens == tokens


def test_the_fingerprint_is_of_the_content_and_not_of_the_place(tmp_path: Path) -> None:
    def fingerprint(name: str, **options: Any) -> str:
        return spec_of(str(write_embedder(tmp_path / name, **options))).fingerprint

    first = fingerprint("one")
    assert fingerprint("two") == first
    others = {
        fingerprint("three", seed="other"),
        fingerprint("four", qmd={"pooling": "cls"}),
        fingerprint("five", qmd={"query_prefix": "which: "}),
    }
    assert len(others | {first}) == 4


@pytest.mark.parametrize("file", ["onnx/model.onnx", "onnx/model_int8.onnx", "strange.onnx"])
def test_the_model_is_found_where_exporters_put_it(tmp_path: Path, file: str) -> None:
    folder = write_embedder(tmp_path / "mine", file=file)
    assert embed(folder, "red").shape == (8,)


def test_of_several_the_folder_must_name_one(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "mine", file="a.onnx")
    write_embedder(folder, file="b.onnx", dimension=4)
    with pytest.raises(ModelMissingError, match=r"several models in .*: a.onnx, b.onnx"):
        spec_of(str(folder))
    write_embedder(folder, file="b.onnx", dimension=4, qmd={"file": "b.onnx"})
    assert spec_of(str(folder)).dimension == 4


def test_a_folder_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_embedder(tmp_path / "mine")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in (str(folder), "~/mine", "./mine", "./x/../mine/"):
        assert recorded_name(name) == str(folder)
        assert is_available(name, tmp_path / "cache")
    assert recorded_name("BAAI/bge-small-en-v1.5") == "BAAI/bge-small-en-v1.5"
    embedder = open_embedder("./mine", cache_dir=tmp_path / "cache")
    assert not is_loaded("./mine", tmp_path / "cache")
    embedder.embed_query("red")
    assert is_loaded(str(folder), tmp_path / "cache")


def _spoil(folder: Path, name: str, data: bytes) -> None:
    (folder / name).write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda f: (f / "model.onnx").unlink(), "no ONNX model"),
        (lambda f: (f / "tokenizer.json").unlink(), "no tokenizer.json"),
        (lambda f: _spoil(f, "qmd.json", b"{"), "Cannot read"),
        (lambda f: _spoil(f, "qmd.json", b"[]"), "holds no JSON dict"),
        (lambda f: _spoil(f, "qmd.json", b'{"pooling": "some"}'), "No such pooling"),
        (lambda f: _spoil(f, "qmd.json", b'{"file": "x.onnx"}'), "no x.onnx"),
        (lambda f: _spoil(f, "model.onnx", b"nonsense"), "Cannot load"),
        (lambda f: _spoil(f, "tokenizer.json", b"nonsense"), "Cannot load"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(tmp_path: Path, spoil: Any, told: str) -> None:
    folder = write_embedder(tmp_path / "mine")
    spoil(folder)
    with pytest.raises(InferenceError, match=told) as caught:
        embed(folder, "red")
    assert caught.value.hint


@pytest.mark.parametrize(
    "pooling",
    [
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        {"pooling_mode_weightedmean_tokens": True},
        {"pooling_mode": "weightedmean"},
    ],
)
def test_a_pooling_we_do_not_know_is_refused(tmp_path: Path, pooling: dict[str, Any]) -> None:
    folder = write_embedder(tmp_path / "mine", **{"1_Pooling__config": pooling})
    with pytest.raises(InferenceError, match="none that qmd knows"):
        spec_of(str(folder))


def test_a_layer_that_is_not_in_the_file_is_missed(tmp_path: Path) -> None:
    modules = [{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]
    folder = write_embedder(tmp_path / "mine", modules=modules)
    with pytest.raises(InferenceError, match="gives no vector"):
        embed(folder, "red")
    with_it = write_embedder(tmp_path / "whole", pooled="sentence_embedding", modules=modules)
    assert embed(with_it, "red").shape == (8,)


def test_an_input_we_cannot_make_is_named(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "mine", inputs=("input_ids", "past_key_values.0.key"))
    with pytest.raises(InferenceError, match=r"past_key_values\.0\.key"):
        embed(folder, "red")


def test_a_folder_that_is_not_there_is_a_missing_model(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match="There is no folder"):
        spec_of(str(tmp_path / "none"))
    assert not is_available(str(tmp_path / "none"), tmp_path)


# --- families ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "query", "passage"),
    [
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("e5-small-v2", "query: ", "passage: "),
        ("BAAI/bge-m3", "", ""),
        ("bge-m3:latest", "", ""),
        ("bge-large:335m", "Represent this sentence for searching relevant passages: ", ""),
        ("BAAI/bge-base-zh-v1.5", "为这个句子生成表示以用于检索相关文章：", ""),
        ("mxbai-embed-large", "Represent this sentence for searching relevant passages: ", ""),
        ("snowflake-arctic-embed:33m", "Represent this sentence for searching relevant passages: ",
         ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("Snowflake/snowflake-arctic-embed-m-v2.0", "query: ", ""),
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("thenlper/gte-base", "", ""),
        ("jinaai/jina-embeddings-v2-base-zh", "", ""),
        ("embeddinggemma:300m", "task: search result | query: ", "title: none | text: "),
        ("google/embeddinggemma-300m", "task: search result | query: ", "title: none | text: "),
        ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
        ("text-embedding-3-small", "", ""),
        ("never-heard-of", "", ""),
        ("some-e500-thing", "", ""),
    ],
)  # fmt: skip
def test_each_family_is_told_by_any_of_its_names(name: str, query: str, passage: str) -> None:
    known = family(name)
    assert (known.query_prefix, known.passage_prefix) == (query, passage)


def test_instructions_of_language_models_end_where_the_question_begins() -> None:
    for name in ("Qwen/Qwen3-Embedding-0.6B", "qwen3-embedding:4b", "e5-mistral-7b-instruct"):
        known = family(name)
        assert known.query_prefix.startswith("Instruct: Given a web search query")
        assert known.query_prefix.rstrip().endswith("Query:")
        assert (known.passage_prefix, known.pooling) == ("", "last")


def test_every_family_says_where_it_comes_from() -> None:
    assert all(each.source.startswith("https://") for each in FAMILIES)


# --- cross-encoders ------------------------------------------------------------------


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    return write_cross_encoder(tmp_path / "judge", {"good": 2.0, "bad": -2.0, "which": 1.0})


def test_a_folder_with_a_cross_encoder_gives_shares(judge: Path, tmp_path: Path) -> None:
    model = open_cross_encoder(str(judge), tmp_path)
    scores = model.rerank("which", ["a good boat", "a bad boat", "a boat", ""], timeout_s=AMPLE_S)
    logits = np.array([3.0, -1.0, 1.0, 1.0])
    assert np.allclose(scores, 1 / (1 + np.exp(-logits)), atol=1e-6)
    assert model.rerank("which", [], timeout_s=AMPLE_S) == []


def test_a_knowledge_base_reranks_with_it(judge: Path, tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    corpus.fill({"a.md": "# A\n\nred bad boat\n", "b.md": "# B\n\nred good boat, a red ship\n"})
    backends = BackendSettings(reranker=str(judge), budget_s=AMPLE_S)
    kb = KnowledgeBase(corpus.store, Settings(embedder=corpus.embedder, backends=backends))
    reply = kb.query("red boat", explain=True)
    assert reply.degraded == corpus.kb.query("red boat").degraded  # no vectors, but that is all
    marks = {hit.path: (hit.explain or {})["rerank"] for hit in reply.hits}
    assert marks["b.md"] > 0.8 > 0.2 > marks["a.md"]
    corpus.store.close()


def test_an_embedding_model_is_no_cross_encoder(tmp_path: Path) -> None:
    model = open_cross_encoder(str(write_embedder(tmp_path / "mine")), tmp_path)
    with pytest.raises(InferenceError, match="no score"):
        model.rerank("q", ["p"], timeout_s=AMPLE_S)


@pytest.mark.parametrize("worth", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused(tmp_path: Path, worth: float) -> None:
    folder = write_cross_encoder(tmp_path / "judge", {"good": worth})
    with pytest.raises(InferenceError, match="for a score"):
        open_cross_encoder(str(folder), tmp_path).rerank("q", ["good"], timeout_s=AMPLE_S)


def test_no_hub_is_asked_for_a_cross_encoder(tmp_path: Path) -> None:
    name = "BAAI/bge-reranker-base"
    with pytest.raises(ModelMissingError, match="not on this machine") as caught:
        open_cross_encoder(name, tmp_path)
    assert caught.value.hint == f"Run 'qmd models pull {name}'."
    with pytest.raises(ModelMissingError, match="There is no cross-encoder named 'no-such'"):
        open_cross_encoder("no-such", tmp_path)


class Stubborn:
    """A `PairModel` that answers when it may."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def logit(self, query: str, passage: str) -> float:
        assert self.go.wait(AMPLE_S)
        return 0.0


@pytest.fixture
def stubborn() -> Iterator[Stubborn]:
    model = Stubborn()
    yield model
    model.go.set()


def test_loading_takes_its_time_and_nobody_waits_for_it(stubborn: Stubborn) -> None:
    loads: list[int] = []

    def load() -> Stubborn:
        loads.append(1)
        assert stubborn.go.wait(AMPLE_S)
        return stubborn

    model = CrossEncoder("slow", load)
    for _ in range(2):
        with pytest.raises(TransientInferenceError, match="slow is still being loaded"):
            model.rerank("q", ["p"], timeout_s=0.01)
    stubborn.go.set()
    assert model.rerank("q", ["p"], timeout_s=AMPLE_S) == [0.5]
    assert loads == [1]


def test_a_model_that_cannot_be_loaded_says_why_and_is_tried_again() -> None:
    problems = [InferenceError("no memory"), ValueError("odd")]

    def load() -> Stubborn:
        if problems:
            raise problems.pop(0)
        model = Stubborn()
        model.go.set()
        return model

    model = CrossEncoder("fickle", load)
    with pytest.raises(InferenceError, match="no memory"):
        model.rerank("q", ["p"], timeout_s=AMPLE_S)
    with pytest.raises(InferenceError, match="Cannot load fickle: odd"):
        model.rerank("q", ["p"], timeout_s=AMPLE_S)
    assert model.rerank("q", ["p"], timeout_s=AMPLE_S) == [0.5]


def test_out_of_time_it_reads_none(stubborn: Stubborn) -> None:
    stubborn.go.set()
    model = CrossEncoder("slow", lambda: stubborn)
    model.rerank("q", ["p"], timeout_s=AMPLE_S)
    with pytest.raises(TransientInferenceError, match="slow has scored none of 3 passages"):
        model.rerank("q", ["a", "b", "c"], timeout_s=0.0)
