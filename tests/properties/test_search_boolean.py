"""
Words, phrases, OR, negation, beginnings, fields and tags find what a plain scan finds.

A query is drawn as a tree and written down, in one of the ways people write it. The model
evaluates the tree on the texts themselves and knows neither the parser nor the index. The
words are made up: stemming leaves them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qmd.values import Filters
from tests.support.corpus import Corpus

LATIN = ["kavo", "kavolin", "kavu", "zilmu", "zilt", "brok", "brokan", "not", "near", "xx7"]
CHINESE = ["数据库", "数据", "备份", "库存", "迁移数据"]
SIGNED = ["v1.2", "foo_bar", "a@kavo.org", "c++", "--zilt", "std::brok"]
WORDS = LATIN + CHINESE + SIGNED
TAGS = ["red", "blue", "red/dark", "甲"]


@dataclass(frozen=True)
class Page:
    title: str
    body: str
    path: str
    tags: tuple[str, ...]

    @property
    def source(self) -> str:
        head = f"---\ntags: [{', '.join(self.tags)}]\n---\n" if self.tags else ""
        return f"{head}# {self.title}\n\n{self.body}\n"


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
pages = st.builds(
    Page,
    st.lists(st.sampled_from(LATIN), min_size=1, max_size=2).map(" ".join),
    texts,
    st.sampled_from(["kavo", "zilmu", "other", "brok"]),
    st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple),
)

Holds = Callable[[Page], bool]
Written = tuple[str, Holds]


def stands_in(literal: str, text: str) -> bool:
    """Whether a literal stands in a text without cutting a word of letters or digits."""
    start = text.find(literal)
    while start >= 0:
        end = start + len(literal)
        before, behind = text[start - 1 : start], text[end : end + 1]
        cut = before.isascii() and before.isalnum() and literal[0].isascii()
        cut = cut and literal[0].isalnum()
        cut = cut or (behind.isascii() and behind.isalnum() and literal[-1].isalnum())
        if not cut:
            return True
        start = text.find(literal, start + 1)
    return False


def anywhere(page: Page) -> str:
    """A literal's blank is any run of blanks or line ends, so one may begin in the heading."""
    return f"{page.title} {page.body}"


def word(text: str) -> Written:
    def holds(page: Page) -> bool:
        if text in LATIN:  # words, unlike literals, are looked for in tags and path, too
            return stands_in(text, f"{anywhere(page)} {page.path} {' '.join(page.tags)}")
        return stands_in(text, anywhere(page))

    return text, holds


def phrase(text: str, marks: str) -> Written:
    return f"{marks[0]}{text}{marks[1]}", lambda page: stands_in(text, anywhere(page))


def beginning(text: str, star: str) -> Written:
    def holds(page: Page) -> bool:
        if text in CHINESE:
            return text in anywhere(page)
        rest = f" {anywhere(page)} {page.path}".replace("\n", " ")
        return any(f"{sign}{text}" in rest for sign in " .@:_-")

    return text + star, holds


def in_title(text: str, colon: str) -> Written:
    return f"title{colon}{text}", lambda page: stands_in(text, page.title)


def in_path(text: str) -> Written:
    return f"path:{text}", lambda page: page.path == text


def tagged(page: Page, tag: str) -> bool:
    return any(each == tag or each.startswith(tag + "/") for each in page.tags)


terms: st.SearchStrategy[Written] = st.one_of(
    st.sampled_from([each for each in WORDS if each != "--zilt"]).map(word),
    st.builds(
        phrase,
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
        st.sampled_from(['""', "“”", "＂＂", "「」"]),
    ),
    st.builds(
        beginning, st.sampled_from(["kav", "zil", "brok", "数据", "xx"]), st.sampled_from("*＊")
    ),
    st.builds(in_title, st.sampled_from(LATIN), st.sampled_from(":：")),
    st.sampled_from(["kavo", "zilmu", "brok"]).map(in_path),
)


@st.composite
def queries(draw: st.DrawFn) -> Written:
    """
    All of some groups, each one of its terms; none of others; tags; in any order. Exclusions
    and tags may stand alone.
    """
    parts: list[Written] = []
    excluded = draw(st.lists(terms, max_size=2))
    least = 0 if excluded else 1
    for group in draw(
        st.lists(st.lists(terms, min_size=1, max_size=3), min_size=least, max_size=3)
    ):
        holds = [each for _, each in group]
        parts.append(
            (" OR ".join(text for text, _ in group), lambda page, h=holds: any(x(page) for x in h))
        )
    for text, holds_it in excluded:
        minus = draw(st.sampled_from("-－"))
        parts.append((minus + text, lambda page, h=holds_it: not h(page)))
    for tags in draw(st.lists(st.lists(st.sampled_from(TAGS), min_size=1, max_size=2), max_size=1)):
        written = " OR ".join(f"tag:{tag}" for tag in tags)
        parts.append((written, lambda page, t=tags: any(tagged(page, each) for each in t)))
    if draw(st.booleans()):
        tag = draw(st.sampled_from(TAGS))
        parts.append((f"-tag:{tag}", lambda page, t=tag: not tagged(page, t)))
    chosen = draw(st.permutations(parts))
    blank = draw(st.sampled_from([" ", "  ", "\n", "\u3000", " AND "]))
    return blank.join(text for text, _ in chosen), lambda page: all(h(page) for _, h in chosen)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("boolean"))
    yield made
    made.kb.close()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(found=st.lists(pages, min_size=1, max_size=6), query=queries(), limit=st.integers(1, 7))
def test_exact_hits_are_those_of_a_plain_scan(
    corpus: Corpus, found: list[Page], query: Written, limit: int
) -> None:
    text, holds = query
    by_path = {f"{page.path}/{number:02}.md": page for number, page in enumerate(found)}
    corpus.fill({path: page.source for path, page in by_path.items()})
    wanted = {path for path, page in by_path.items() if holds(page)}
    assert corpus.exact(text) == wanted, text
    # Filters act before the limit: however few are asked for, none is lost to another folder.
    for folder in ("kavo", "other"):
        reply = corpus.kb.search(text, limit=limit, filters=Filters(path=folder))
        exact = [hit.path for hit in reply.hits if hit.match == "exact"]
        inside = {path for path in wanted if path.startswith(f"{folder}/")}
        assert set(exact) <= inside
        assert len(exact) == min(limit, len(inside))
        assert all(hit.path.startswith(f"{folder}/") for hit in reply.hits)
    assert corpus.kb.search(text, limit=limit) == corpus.kb.search(text, limit=limit)
