"""Misspelt words, and filters that leave nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.search.spelling import LONGEST_QUERY
from qmd.values import Filters, SearchRequest
from qmd.values.search import SHOWING
from tests.support.corpus import Corpus

FILES = {
    "trips/vacation.md": "# At the sea\n\nA vacation of two weeks.\n",
    "invoices.md": "---\ntags: [work/money]\nstatus: draft\nrating: 3\n---\n"
    "# Roof\n\nThe invoice, and two more invoices.\n",
    "bread.md": "# Baking\n\nSourdough bread takes a day. Strasse.\n",
    "备份.md": "# 手册\n\n数据库备份方案。\n",
    "other.md": "# Tents\n\nA tent, and bread.\n",
    "kitchen.md": "# Kitchen\n\nA refrigerator. Receipts, receipts, receipts.\n",
    "drawer.md": "# Drawer\n\nThe receipt lies at the back of it; retain it.\n",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("spelling"))
    made.fill(FILES)
    made.kb.embed()
    yield made
    made.kb.close()


@pytest.mark.parametrize(
    ("typed", "meant", "path"),
    [
        ("vacaton", "vacation", "trips/vacation.md"),
        ("Vaccation", "vacation", "trips/vacation.md"),
        ("nivoice", "invoice", "invoices.md"),
        ("invocies", "invoices", "invoices.md"),
        ("refrigeratr", "refrigerator", "kitchen.md"),  # whose stem has another stem
        ("recipt", "receipt", "kitchen.md"),  # the document that holds it best has "receipts"
        ("invoce tag:work", "invoice tag:work", "invoices.md"),
        ("数据裤", "数据库", "备份.md"),
    ],
)
def test_hits_of_the_word_that_was_meant(corpus: Corpus, typed: str, meant: str, path: str) -> None:
    for reply in (corpus.kb.search(typed), corpus.kb.query(typed)):
        assert reply.suggestion == meant
        assert reply.query == typed
    reply = corpus.kb.search(typed)
    assert reply.hits[0].path == path
    if not typed.startswith("数据"):  # a pair of it is held, which is a hit of its own
        assert str(reply.notice).startswith(f"{SHOWING} {meant}")


def test_what_is_found_stays_and_the_suggestion_is_told(corpus: Corpus) -> None:
    reply = corpus.kb.search("sourdogh bread")
    assert {hit.path for hit in reply.hits} == {"other.md", "bread.md"}
    assert reply.suggestion == "sourdough bread"
    assert str(reply.notice).startswith("Did you mean: sourdough bread")


@pytest.mark.parametrize(
    "typed",
    ['"vacaton"', "bread", "-vacaton bread", "xyzzyq", "vac", "backup", "return", "invitee bread"],
)
def test_nothing_is_suggested_for(corpus: Corpus, typed: str) -> None:
    assert corpus.kb.search(typed).suggestion is None


def test_only_words_that_the_filters_let_through_are_suggested(corpus: Corpus) -> None:
    inside = corpus.kb.search("vacaton", filters=Filters(path="trips"))
    assert inside.suggestion == "vacation"
    outside = corpus.kb.search("vacaton", filters=Filters(tags=("work",)))
    assert (outside.suggestion, outside.hits) == (None, ())


def test_a_search_may_be_for_what_was_typed(corpus: Corpus) -> None:
    reply = corpus.kb.run_search("search", SearchRequest("vacaton", spelling=False))
    assert (reply.hits, reply.suggestion, reply.notice) == ((), None, None)


@pytest.mark.parametrize(
    ("filters", "notice"),
    [
        (Filters(tags=("wrok",)), "No document has the tag 'wrok'. Did you mean: work"),
        (
            Filters(path="notes/trip"),
            "No document lies below 'notes/trip'. Did you mean: notes/trips, notes",
        ),
        (Filters(path="trip"), "No document lies below 'trip'. Did you mean: trips"),
        (Filters(tags=("work",)), "There are hits, but none with tag:work."),
        (Filters(after="2999-01-01"), "There are hits, but none with after:2999-01-01."),
        (
            Filters(path="trips", before="2999-01-01"),
            "There are hits, but none with path:trips.",
        ),
        (
            Filters(path="trips", tags=("work",)),
            "There are hits, but none with path:trips, tag:work.",
        ),
        (
            Filters(properties=("status:drft",)),
            "No document has the value 'drft' of 'status'. Did you mean: draft",
        ),
    ],
)
def test_the_filter_that_leaves_nothing_is_named(
    corpus: Corpus, filters: Filters, notice: str
) -> None:
    reply = corpus.kb.search("tent", filters=filters)
    assert (reply.hits, reply.notice) == ((), notice)


def test_a_filter_of_the_query_is_named_too(corpus: Corpus) -> None:
    assert "the tag 'wrok'" in str(corpus.kb.search("tag:wrok").notice)
    assert "'status'. Did you mean: draft" in str(corpus.kb.search("tent status:drft").notice)
    assert "such a value of 'rating'" in str(corpus.kb.search("tent rating:>4").notice)
    assert "below 'trups'. Did you mean: trips" in str(corpus.kb.search("tent path:trups").notice)
    assert corpus.kb.search("xyzzyq").notice is None


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='vacton 数据库"-:*#()', max_size=LONGEST_QUERY // 10))
def test_any_query_has_a_reply(corpus: Corpus, query: str) -> None:
    reply = corpus.kb.search(query)
    if reply.suggestion is not None:
        assert corpus.kb.search(reply.suggestion, spelling=False).hits
