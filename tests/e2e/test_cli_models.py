"""``qmd models``: the command, the keeper that follows it, and what doctor and status say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import Scratch
from support.live import Told, until
from support.model_server import ModelServer, fails, says, sends
from support.tiny_onnx import write_cross_encoder, write_embedder

from qmd import KnowledgeBase
from qmd.errors import InputError, ModelMissingError
from qmd.settings import BackendSettings, Settings


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    made = Scratch(tmp_path, {"QMD_MODEL_BUDGET": "60"})  # also to read weights into memory
    made.write("notes/boat.md", "# Boat\n\na red boat lies in the harbour\n")
    made.write("notes/town.md", "# Town\n\na house stands in the town\n")
    write_embedder(tmp_path / "one", 8)
    write_embedder(tmp_path / "two", 16, seed="two")
    write_cross_encoder(tmp_path / "judge", {"boat": 2.0})
    return made


@pytest.fixture
def embedded(scratch: Scratch) -> Scratch:
    """With vectors of the folder ``one``."""
    scratch.ok("collection", "add", "notes")
    scratch.with_env(QMD_MODEL="./one").ok("embed")
    return scratch


def rows(scratch: Scratch, *options: str) -> dict[str, dict[str, Any]]:
    found = scratch.ok("models", "list", "--json", *options).json()
    return {row["name"]: row for row in found}


def test_the_list_needs_no_database(scratch: Scratch) -> None:
    found = rows(scratch)
    assert not scratch.database.exists()
    default = found["multilingual-e5-small-int8"]
    assert (default["kind"], default["dimension"], default["source"]) == ("embedding", 384,
                                                                          "embedded")  # fmt: skip
    chinese = found["BAAI/bge-small-zh-v1.5"]
    assert (chinese["dimension"], chinese["languages"]) == (512, "Chinese")
    assert (chinese["ready"], chinese["state"], chinese["source"]) == (False, None, "hub")
    assert found["BAAI/bge-reranker-v2-m3"]["kind"] == "reranker"
    assert not any("clip" in name.lower() for name in found)
    assert set(default) == {
        *("name", "kind", "dimension", "source", "size_bytes", "languages", "license"),
        *("ready", "state"),
    }


def test_the_list_marks_the_model_in_use(embedded: Scratch) -> None:
    one, two = (str(embedded.root / name) for name in ("one", "two"))
    found = rows(embedded, "--ready")
    assert next(iter(found.values()))["name"] == one
    assert (found[one]["state"], found[one]["source"], found[one]["dimension"]) == (
        "active",
        "folder",
        8,
    )
    embedded.ok("models", "use", "./two")
    found = rows(embedded)
    assert (found[one]["state"], found[two]["state"]) == ("active", "coming")
    text = embedded.ok("models", "list").out
    assert f"\n* {one}" in text
    assert f"\n> {two}" in text


def test_use_lets_the_old_vectors_answer_until_embed(embedded: Scratch) -> None:
    one, two = (str(embedded.root / name) for name in ("one", "two"))
    told = embedded.ok("models", "use", "./two/").out
    assert f"{two} (16 dimensions)" in told
    assert "qmd embed" in told
    assert f"those of {one} answer" in told
    assert "two is to follow, with 0 so far" in embedded.ok("status").out
    assert embedded.ok("status", "--json").json()["next_model"] == two
    before = embedded.ok("vsearch", "red boat", "--min-score", "0", "--json").json()
    assert before[0]["file"] == "notes/boat.md"
    # Another process with a setting of its own follows the database.
    stranger = embedded.with_env(QMD_MODEL="./one")
    assert "Embedded 2 chunks" in stranger.ok("embed").out
    assert embedded.ok("status", "--json").json()["model"] == two
    assert len(embedded.ok("vsearch", "red boat", "--min-score", "0", "--json").json()) == 2
    assert "every document has its vectors" in embedded.ok("models", "use", "./two").out


def test_use_back_before_the_end_stays_with_the_old(embedded: Scratch) -> None:
    embedded.ok("models", "use", "./two")
    result = embedded.with_env(QMD_MODEL="./two").ok("models", "use", "./one", "--json")
    assert result.json() == {
        "model": str(embedded.root / "one"),
        "dimension": 8,
        "before": str(embedded.root / "one"),
        "waiting": 0,
        "in_background": False,
    }
    assert "QMD_MODEL names ./two: what was chosen for the database counts." in result.err
    assert embedded.ok("status", "--json").json()["next_model"] is None


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("./none", "model_missing", "There is no folder"),
        ("BAAI/bge-small-zh-v1.5", "model_missing", "is not on this machine"),
        ("bge-small-zh", "model_missing", "There is no embedding model named"),
        ("BAAI/bge-reranker-base", "invalid_input", "reranks, it makes no vectors"),
        ("openai:m", "inference_failed", "Cannot reach"),
    ],
)
def test_use_of_what_cannot_be_had_changes_nothing(
    embedded: Scratch, name: str, code: str, told: str
) -> None:
    away = embedded.with_env(QMD_EMBED_URL="http://127.0.0.1:9/v1")
    result = away.call("models", "use", name, "--json")
    assert (result.code, result.error()["code"]) == (1, code)
    assert told in result.error()["message"]
    assert result.error()["hint"]
    assert embedded.ok("status", "--json").json()["next_model"] is None


def test_pull_of_what_is_here_says_so(scratch: Scratch) -> None:
    out = scratch.ok("models", "pull", "./one").out
    assert out == (
        f"{scratch.root / 'one'} is on this machine.\n"
        f"To use it: qmd models use {scratch.root / 'one'}\n"
    )
    refused = scratch.call("models", "pull", "openai:m")
    assert (refused.code, "there is nothing to fetch" in refused.err) == (1, True)
    unknown = scratch.call("models", "pull", "no-such-model")
    assert (unknown.code, "There is no embedding model" in unknown.err) == (1, True)


def test_doctor_tells_which_model_counts(embedded: Scratch) -> None:
    def checks(**env: str) -> dict[str, tuple[str, str]]:
        found = embedded.with_env(**env).call("doctor", "--json").json()
        return {each["name"]: (each["status"], each["message"]) for each in found}

    assert checks()["vectors"] == ("ok", "Every document has its vectors")
    assert checks(QMD_MODEL="./two")["vectors"][0] == "warning"
    embedded.ok("models", "use", "./two")
    assert "chunks are missing" in checks()["vectors"][1]
    assert "counts" in checks(QMD_MODEL="./one")["model setting"][1]
    judged = checks(QMD_RERANKER="./judge")["reranker"]
    assert (judged[0], "./judge answers in" in judged[1]) == ("ok", True)
    assert "no folder" in checks(QMD_RERANKER="./none")["reranker"][1]
    with ModelServer(says("lex: copy files")) as server:
        good = checks(QMD_EXPANDER="llm", QMD_LLM_URL=server.url)["expander"]
    assert (good[0], "llm answers in" in good[1]) == ("ok", True)
    with ModelServer(fails(401)) as server:
        bad = checks(QMD_EXPANDER="llm", QMD_LLM_URL=server.url)["expander"]
    assert (bad[0], "401" in bad[1]) == ("warning", True)


def test_the_settings_reach_the_query(embedded: Scratch) -> None:
    judged = embedded.with_env(QMD_RERANKER="./judge").run(
        "query", "boat town", "--json", "--explain"
    )
    marks = {hit["file"]: hit["explain"]["rerank"] for hit in judged.json()}
    assert marks["notes/boat.md"] > 0.9
    assert judged.err == ""
    with ModelServer(says("lex: house harbour")) as server:
        asking = embedded.with_env(QMD_EXPANDER="llm:m", QMD_LLM_URL=server.url)
        first = asking.run("query", "red boat", "--json", "--explain")
        again = asking.run("query", "red boat", "--json", "--explain")
        none = asking.run("query", "red house", "--no-expand", "--json")
    assert "house harbour" in first.out
    assert again.out == first.out
    assert (none.code, len(server.requests)) == (0, 1)


# --- in the background ---------------------------------------------------------------


@pytest.fixture
def kept(embedded: Scratch) -> Iterator[tuple[KnowledgeBase, Told]]:
    """The database of `embedded` under a keeper, synced."""
    with KnowledgeBase.open(embedded.database) as kb:
        told = Told(kb)
        kb.keep()
        told.wait_for(lambda: told.of("synced"))
        yield kb, told


def test_a_keeper_makes_the_vectors_and_answers_meanwhile(
    kept: tuple[KnowledgeBase, Told], embedded: Scratch
) -> None:
    kb, _ = kept
    two = str(embedded.root / "two")
    change = kb.models.use(two)
    assert (change.model, change.dimension, change.waiting, change.kept) == (two, 16, 2, True)
    answers: list[int] = []

    def asked() -> bool:
        answers.append(len(kb.vsearch("red boat", min_score=0).hits))
        return kb.status().model == two

    until(asked)
    assert set(answers) == {2}
    assert kb.status().next_model is None
    assert kb.query("red boat").degraded is None
    assert kb.embedding_model().dimension == 16


def test_a_keeper_follows_another_process(
    kept: tuple[KnowledgeBase, Told], embedded: Scratch
) -> None:
    kb, _ = kept
    two = str(embedded.root / "two")
    assert "in the background" in embedded.run("models", "use", two).out
    kb.keep().embed_soon()  # it looks by itself every five seconds
    until(lambda: kb.status().model == two)
    assert len(kb.vsearch("red boat", min_score=0).hits) == 2


def test_a_server_that_fails_half_way_leaves_the_old_vectors_to_answer(embedded: Scratch) -> None:
    found = {"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]}
    with ModelServer(sends(json.dumps(found).encode()), fails(401, "key expired")) as server:
        backends = BackendSettings(embed_url=server.url)
        with KnowledgeBase.open(embedded.database, Settings(backends=backends)) as kb:
            change = kb.models.use("openai:m")
            assert (change.dimension, change.waiting, change.kept) == (3, 2, False)
            kb.keep()
            until(lambda: any("key expired" in each for each in kb.freshness().notices))
            assert kb.status().next_model == "openai:m"
            assert len(kb.vsearch("red boat", min_score=0).hits) == 2


def test_what_cannot_be_used_is_refused(kept: tuple[KnowledgeBase, Told]) -> None:
    kb, _ = kept
    with pytest.raises(ModelMissingError):
        kb.models.use("./none")
    with pytest.raises(InputError):
        kb.models.use("BAAI/bge-reranker-base")
    assert kb.status().next_model is None
