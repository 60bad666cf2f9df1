"""The parts of a search by words: weights of words, the second ranking, literals, stems."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from pathlib import Path

import pytest

from qmd.search import words as weights
from qmd.search.query import parse_string
from qmd.search.words import STOP_WORDS, holds, pattern, phrase, raw_text, stem, weigh_words
from qmd.store.full_text import BM25_K1
from tests.support.corpus import Corpus

# --- weights of words ----------------------------------------------------------------

#: 20 documents: two hold "rare", three "common", five "usual", all "the".
TWENTY = {
    f"{number:02}.md": " ".join(
        ["the filler"]
        + ["rare"] * (number < 2)
        + ["common"] * (number < 3)
        + ["usual"] * (number < 5)
    )
    for number in range(20)
}


@pytest.fixture(scope="module")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    corpus = Corpus(tmp_path_factory.mktemp("twenty"))
    corpus.fill(TWENTY)
    yield corpus
    corpus.kb.close()


def counts(corpus: Corpus, query: str) -> dict[str, int]:
    """Each word that counts → how many documents hold it, as far as they are counted."""
    with corpus.store.reading() as reader:
        words = weigh_words(reader, parse_string(query))
    assert words.document_count == 20
    for word in words.weights.values():
        assert word.idf == pytest.approx(weights.idf(word.documents, 20))
    return {text: word.documents for text, word in words.weights.items()}


@pytest.mark.parametrize(
    ("query", "title", "expected"),
    [
        ("filler", "Fillers, and how to FILLER", 1),
        ("filler", "Fulfilling", 0),
        ("数据迁移", "数据库的迁移", 2 / 3),  # 数据 and 迁移, but not 据迁
        ('"rare common"', "The Rare Common Things", 1),
        ('"rare common" "usual"', "The Rare Common Things", 1 / 2),
        ("title:rare path:common", "A rare thing", 1 / 2),
        ("", "A rare thing", 0),
    ],
)
def test_a_title_covers_the_words_that_it_holds(
    twenty: Corpus, query: str, title: str, expected: float
) -> None:
    with twenty.store.reading() as reader:
        words = weigh_words(reader, parse_string(query))
    assert words.title_coverage(title) == pytest.approx(expected)


def test_a_rare_word_in_a_title_covers_more(twenty: Corpus) -> None:
    with twenty.store.reading() as reader:
        words = weigh_words(reader, parse_string("rare usual"))
    rare, usual = words.title_coverage("A rare day"), words.title_coverage("The usual day")
    assert rare > usual > 0
    assert rare + usual == pytest.approx(1)


def test_a_large_index_leaves_out_words_that_a_tenth_of_its_documents_hold(
    twenty: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "LARGE", 19)
    assert counts(twenty, "rare common usual") == {"rare": 2}
    # What no document holds counts, but does not stand for the words that are held.
    assert counts(twenty, "rare usual absent") == {"rare": 2, "absent": 0}
    assert counts(twenty, "usual absent") == {"usual": 3, "absent": 0}
    # Common words alone remain; none is counted further than it must be to be common.
    assert counts(twenty, "the common usual") == {"common": 3, "usual": 3}
    assert counts(twenty, "the") == {"the": 3}


def test_a_smaller_index_keeps_and_counts_all_words(
    twenty: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "LARGE", 20)
    assert counts(twenty, "the rare common usual absent") == {
        "rare": 2, "common": 3, "usual": 5, "absent": 0
    }  # fmt: skip
    assert counts(twenty, "the filler rare") == {"filler": 20, "rare": 2}
    assert counts(twenty, "the") == {"the": 20}
    assert counts(twenty, "would") == {}


# --- the second ranking --------------------------------------------------------------


def test_the_first_hundred_are_ranked_again_and_the_rest_stays_behind_them(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    # Every second document says "boat" as often as its number, and every third has a "sail".
    corpus.fill(
        {
            f"{number:03}.md": "boat " * (number if number % 2 else 0) + "sail " * (number % 3 == 0)
            for number in range(104)
        }
    )
    with corpus.store.reading() as reader:
        ids = sorted(document_id for document_id, *_ in reader.documents.identities())
        words = {
            "absent": weights.Word(0, weights.idf(0, 104)),
            "->": weights.Word(9, 1.0),  # has no phrase
            "boat": weights.Word(52, weights.idf(52, 104)),
            "sail": weights.Word(35, weights.idf(35, 104)),
        }
        first = [(document_id, 5.0) for document_id in reversed(ids[4:])]
        rest = [(ids[3], 99.0), (ids[2], 0.0), (ids[1], -1.0), (ids[0], 99.0)]
        ranked = weights.rank_again(
            reader, first + rest, weights.QueryWords(parse_string(""), words, 104), "relaxed"
        )
        frequencies = {
            word: reader.full_text.frequencies(match, ids[4:], words[word].documents, 104)
            for word in ("boat", "sail")
            if (match := phrase(word))
        }
    corpus.kb.close()
    parts: dict[int, dict[str, float]] = {document_id: {} for document_id in ids[4:]}
    for word, by_document in frequencies.items():
        assert by_document
        for document_id, frequency in by_document.items():
            # The formula of BM25, with occurrences per usual length of a document.
            occurrences = frequency * BM25_K1
            parts[document_id][word] = (
                words[word].idf * (weights.K1 + 1) * occurrences / (occurrences + weights.K1)
            )
    pool, behind = ranked[:100], ranked[100:]
    assert {scored.document_id for scored in pool} == set(ids[4:])
    for scored in pool:
        assert dict(scored.words) == pytest.approx(parts[scored.document_id])
        assert scored.bm25 == pytest.approx(sum(parts[scored.document_id].values()))
    assert pool == sorted(pool, key=lambda scored: (-scored.bm25, scored.document_id))
    # A third of the hundred holds none of the words.
    assert pool[-1].bm25 == 0.0
    assert [scored.words for scored in pool[-33:]] == [{}] * 33
    assert [(scored.document_id, scored.bm25) for scored in behind] == [
        *((ids[3], 0.0), (ids[2], 0.0)),
        *((ids[1], -1.0), (ids[0], -1.0)),
    ]
    assert not any(scored.words for scored in behind)


def test_to_rank_nothing_again_gives_nothing(twenty: Corpus) -> None:
    with twenty.store.reading() as reader:
        words = weights.QueryWords(parse_string("rare"), {"rare": weights.Word(2, 1.0)}, 20)
        assert weights.rank_again(reader, [], words, "exact") == []
        assert weights.idf(30, 20) == pytest.approx(log(1 + 0.5 / 30.5))


# --- literals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "literal", "is_held"),
    [
        ("boat", "boat", True),
        ("a boat", "boat", True),
        ("(boat", "boat", True),
        ("中boat", "boat", True),
        ("🙂boat", "boat", True),
        ("❶boat", "boat", True),
        ("aboat", "boat", False),
        ("1boat", "boat", False),
        ("éboat", "boat", False),
        ("aBoat", "boat", True),
        ("1Boat", "boat", True),
        ("aboat Boat", "boat", True),
        ("xHTTPServer", "http", True),
        ("xHTTPServer", "server", True),
        ("xHTTPServer", "ttp", False),
        ("xHTTPServer", "tpserver", False),
        ("xHTTPServer", "pserver", False),
        ("HTTPSERVER", "server", False),
        ("planB", "b", True),
        ("PLANB", "b", False),
        ("PLAN-B", "b", True),
        ("aÉtat", "état", True),
        # A character that folds to two keeps the positions of both forms together.
        ("ßaBoat", "boat", True),
        ("ßaboat", "boat", False),
        ("ßßABOAT", "boat", False),
        # Signs and Chinese match anywhere.
        ("a++", "++", True),
        ("数据库", "据库", True),
    ],
)
def test_a_literal_matches_where_a_word_or_a_part_of_a_name_begins(
    text: str, literal: str, is_held: bool
) -> None:
    assert holds(raw_text(text), pattern(literal)) is is_held


# --- stems ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "stems"),
    [
        ("relate related relating", "relat"),
        ("relation relations", "rel"),
        ("connect connects connected connecting connections", "connect connection"),
        ("copy copies copied", "cop"),
        ("map maps", "map"),
        ("running runnings", "runn"),
        ("markedly marked marks", "mark"),
        ("boxes boxed boxing", "box"),
        ("quick quickly", "quick"),
        ("Notes NOTE ｎｏｔｅ", "not"),
        ("day days", "day"),
    ],
)
def test_forms_of_a_word_share_a_rough_stem(words: str, stems: str) -> None:
    assert {stem(word) for word in words.split()} == set(stems.split())


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # An ending is cut off if three letters remain; else the next shorter one is tried.
        ("citations", "cit"),
        ("nations", "nation"),
        ("nation", "nation"),
        ("things", "thing"),
        ("seeing", "see"),
        ("being", "being"),
        ("flies", "fli"),
        ("tried", "tri"),
        ("badly", "bad"),
        ("only", "onl"),
        ("seed", "seed"),
        ("need", "need"),
        ("moved", "mov"),
        ("uses", "use"),
        ("this", "thi"),
        ("bus", "bus"),
        ("use", "use"),
        ("any", "any"),
        ("same", "sam"),
        ("bed", "bed"),
        ("cafés", "cafés"),
        ("数据库", "数据库"),
        ("STRASSE", "strass"),
        ("", ""),
    ],
)
def test_a_stem_keeps_three_letters(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_stop_words_are_lower_case_words() -> None:
    assert all(word.isascii() and word.isalpha() and word.islower() for word in STOP_WORDS)


def test_a_sign_behind_a_backslash_is_found_as_it_is_shown(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    corpus.fill(
        {
            "escaped.md": "A snake\\_case name, \\<none>, and \\*\\*\\* alone.\n",
            "plain.md": "A snake case name, none.\n",
        }
    )
    found = {
        query: [hit.file.rpartition("/")[2] for hit in corpus.kb.search(query).hits]
        for query in ('"snake_case"', '"<none>"', r'"\<none>"', '"***"', "name -snake_case")
    }
    corpus.kb.close()
    plain = found.pop("name -snake_case")
    assert set(map(tuple, found.values())) == {("escaped.md",)}
    assert plain == ["plain.md"]
