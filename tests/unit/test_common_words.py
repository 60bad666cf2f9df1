"""Searches by the table of common words find what full text finds, whatever has changed since."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd import KnowledgeBase
from qmd.ingest.parse_file import new_document
from qmd.parse.document import parse_document
from qmd.search.present import TOO_MANY
from qmd.search.words import phrase
from qmd.store.full_text import CONTENT_FIELDS, Expression, Phrase, all_of, any_of, but_not
from qmd.store.reader import Reader, Writer
from qmd.store.sqlite import full_text
from qmd.store.sqlite.common_word_build import WordLimits
from qmd.store.sqlite.common_word_scores import CommonWordScores
from qmd.store.sqlite.fts5 import CommonWords
from qmd.store.sqlite.full_text import SqliteFullText
from qmd.store.sqlite.store import SqliteStore
from qmd.values import FileState, Filters, NewDocument

WORDS = [
    "running",
    "house",
    "数据",
    "数据库",
    "表示",
    "Docker",
    "naïve",
    "rare",
    "x-ray",
    "库",
    "数",
]
LIMITS = WordLimits(documents=10, held=12)


def document(number: int, seed: int = 0) -> NewDocument:
    chance = random.Random(f"{number}-{seed}")
    # Words at the front of the list are in nearly every document, those at its end in few.
    words = [word for place, word in enumerate(WORDS) if chance.random() < 0.9 / (1 + place / 3)]
    words = [word for word in words for _ in range(chance.randint(1, 4))]
    tag = "#odd" if number % 2 else "#even"
    text = (
        f"# {' '.join(words[:2])}\n\n{' and '.join(words)} {tag} {'filler ' * chance.randint(0, 9)}"
    )
    data = text.encode()
    path = f"数据/{number}.md" if number % 7 == 0 else f"{number}.md"
    state = FileState(len(data), 1_700_000_000_000_000_000 + seed, 1, 1)
    return new_document(path, parse_document(path, data), hashlib.sha256(data).hexdigest(), state)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    """120 documents, of which some were changed, added and removed after the build."""
    path = tmp_path_factory.mktemp("words") / "index.sqlite"
    store = SqliteStore(path, create=True)
    store.write(lambda writer: fill(writer, range(100)))
    assert store.gather_common_words(limits=LIMITS) == 0
    store.write(lambda writer: fill(writer, range(90, 120), seed=1))
    store.write(remove_four)
    yield store
    store.close()


def fill(writer: Writer, numbers: range, seed: int = 0) -> None:
    if not writer.collections.all():
        writer.collections.add(name="notes", path="/notes", pattern="**/*.md", ignore=[])
    notes = writer.collections.by_name("notes").id
    for number in numbers:
        writer.files.put(notes, document(number, seed))


def remove_four(writer: Writer) -> None:
    notes = writer.collections.by_name("notes").id
    stored = writer.files.in_collection(notes)
    writer.files.delete(notes, [(path, stored[path]) for path in ("5.md", "6.md", "8.md", "9.md")])


def stored_ids(reader: Reader) -> list[int]:
    return sorted(number for number, *_ in reader.documents.identities())


def leaf(word: str) -> Phrase:
    match = phrase(word)
    assert match is not None
    return match


#: Chinese words are looked for outside paths.
OUTSIDE = [leaf(word)._replace(fields=CONTENT_FIELDS) for word in ("数据", "数", "running")]
#: Beginnings of one word, of several, of none, and a whole word; Chinese ones also outside paths.
BEGINNINGS = [
    Phrase(text, prefix=True) for text in ("r", "ru", "hou", "house", "xyz", "数", "数据", "d")
]
BEGINNINGS += [each._replace(fields=CONTENT_FIELDS) for each in BEGINNINGS[-3:]]
leaves = st.sampled_from([*map(leaf, WORDS), *OUTSIDE, *BEGINNINGS])
expressions = st.recursive(
    leaves,
    lambda parts: st.one_of(
        st.lists(parts, min_size=2, max_size=4).map(lambda each: all_of(*each)),
        st.lists(parts, min_size=2, max_size=4).map(lambda each: any_of(*each)),
    ),
    max_leaves=5,
)
excluding = st.tuples(expressions, leaves).map(lambda pair: but_not(*pair))


def in_both_ways(reader: Reader) -> tuple[SqliteFullText, SqliteFullText]:
    return SqliteFullText(reader.sql, many=0), SqliteFullText(reader.sql)


@given(
    match=st.one_of(expressions, excluding),
    filters=st.sampled_from([Filters(), Filters(tags=("odd",)), Filters(collections=("notes",))]),
    limit=st.sampled_from([1, 3, 10, None]),
)
def test_hits_and_scores_are_those_of_full_text(
    store: SqliteStore, match: Expression, filters: Filters, limit: int | None
) -> None:
    with store.reading() as reader:
        ours, plain = in_both_ways(reader)
        selection = reader.select(filters)
        found, expected = (each.search(match, selection, limit) for each in (ours, plain))
    assert [score for _, score in found] == pytest.approx([score for _, score in expected])
    # Ranks can differ only between documents of equal score.
    assert ranks(found) == ranks(expected)


def ranks(rows: list[tuple[int, float]]) -> list[tuple[float, int]]:
    """Without the last score, of which a limit may have cut some documents."""
    rounded = [(round(score, 9), document_id) for document_id, score in rows]
    last = min((score for score, _ in rounded), default=0.0)
    return sorted(row for row in rounded if row[0] > last)


@given(match=st.sampled_from([*map(leaf, WORDS), *BEGINNINGS]))
def test_frequencies_are_those_of_full_text(store: SqliteStore, match: Phrase) -> None:
    with store.reading() as reader:
        common = CommonWords(reader.sql)
        _, plain = in_both_ways(reader)
        if not common.documents(match):
            return
        ids, total = stored_ids(reader), plain.document_count()
        expected = plain.frequencies(match, ids, plain.count(match, total), total)
        changed = [each for each in ids if each in common.changed_ids()]
        of_changed = {each: expected[each] for each in changed if each in expected}
        assert CommonWordScores(common).frequencies(match, ids, of_changed) == pytest.approx(
            expected
        )


def test_common_words_and_characters_are_in_the_table(store: SqliteStore) -> None:
    with store.reading() as reader:
        common = CommonWords(reader.sql)
        held = {word for word in WORDS if common.documents(leaf(word))}
        assert {"running", "数据", "数"} <= held
        assert not held & {"数据库", "x-ray"}, "phrases have several tokens"
        assert [bool(common.documents(each)) for each in BEGINNINGS[:5]] == [True] * 4 + [False]
        assert common.documents(BEGINNINGS[0]) > common.documents(BEGINNINGS[1])
        assert [bool(common.documents(each)) for each in OUTSIDE] == [True, True, False]
        assert common.documents(OUTSIDE[0]) < common.documents(leaf("数据"))
        (changed,) = reader.connection.execute(
            "SELECT count(*) FROM z_changed_documents"
        ).fetchone()
        assert changed == 30 + 4


def test_few_documents_need_no_table(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "index.sqlite", create=True)
    store.write(lambda writer: fill(writer, range(9)))
    assert store.gather_common_words(limits=LIMITS) == 0
    with store.reading() as reader:
        assert CommonWords(reader.sql).build_id is None
        for table in ("z_common_word_builds", "z_changed_documents"):
            assert reader.connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    store.close()


def test_an_interrupted_build_goes_on_and_a_finished_one_replaces_the_earlier(
    tmp_path: Path,
) -> None:
    path = tmp_path / "index.sqlite"
    store = SqliteStore(path, create=True)
    store.write(lambda writer: fill(writer, range(60)))
    assert store.gather_common_words(0.0, limits=LIMITS) > 0  # it has listed the words
    store.close()
    store = SqliteStore(path)
    with store.reading() as reader:
        assert CommonWords(reader.sql).build_id is None
    assert store.gather_common_words(limits=LIMITS) == 0
    with store.reading() as reader:
        first = CommonWords(reader.sql)
        assert first.build_id == 1 and first.documents(leaf("running"))
    assert store.gather_common_words(limits=LIMITS) == 0, "nothing has changed"
    # An unfinished build is finished, whatever has changed.
    store.write(
        lambda writer: writer.connection.execute("INSERT INTO z_common_word_builds DEFAULT VALUES")
    )
    store.write(lambda writer: fill(writer, range(60, 80)))
    assert store.gather_common_words(limits=LIMITS) == 0
    with store.reading() as reader:
        second = CommonWords(reader.sql)
        assert second.build_id == 2
        assert len(second.changed_ids()) == 20, "changed while it was built"
        builds = reader.connection.execute(
            "SELECT DISTINCT build_id FROM z_common_words"
        ).fetchall()
        assert builds == [(2,)]
    store.close()


def test_a_search_that_takes_too_long_returns_its_best_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(12):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\nhouse number {number}\n")
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        whole = kb.search("house", limit=20)
        assert len(whole.hits) == 12 and whole.degraded is None
        monkeypatch.setattr(full_text, "MANY_SCORED", 5)
        assert [hit.file for hit in kb.search("house", limit=20).hits] == [
            hit.file for hit in whole.hits
        ], "there was enough time"
        monkeypatch.setattr(full_text, "DEADLINE_S", -1.0)
        monkeypatch.setattr(full_text, "SCORED_AT_ONCE", 4)
        cut = kb.search("house", limit=20)
        assert len(cut.hits) == 4
        assert cut.degraded == TOO_MANY
        assert kb.search("12 OR number", limit=20).degraded == TOO_MANY


def test_a_word_with_more_occurrences_than_are_read_at_once_is_read_in_parts(
    tmp_path: Path,
) -> None:
    """The parts end in the middle of documents, of fields and of beginnings with several words."""
    store = SqliteStore(tmp_path / "index.sqlite", create=True)
    store.write(lambda writer: fill(writer, range(60)))
    assert store.gather_common_words(limits=LIMITS._replace(at_once=7)) == 0
    in_parts = table(store)
    store.write(start_anew)
    other = SqliteStore(store.path)
    assert other.gather_common_words(limits=LIMITS) == 0
    assert any(documents > 7 for _, documents, *_ in in_parts)
    assert table(other) == in_parts
    store.close()
    other.close()


def table(store: SqliteStore) -> list[tuple[str, int, bytes, bytes]]:
    with store.reading() as reader:
        return list(
            reader.connection.execute(
                "SELECT token, documents, distances, frequencies FROM z_common_words ORDER BY token"
            )
        )


def start_anew(writer: Writer) -> None:
    writer.connection.execute("DELETE FROM z_common_words")
    writer.connection.execute("DELETE FROM z_common_word_builds")
