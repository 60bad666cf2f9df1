"""
A literal is found where it stands, and nowhere else.

The oracle is a scan of title and text, both brought to NFKC, without letter case, and with
every run of blanks as one. Every hit must hold the literal (no false hit at all). Every text
that holds it must be a hit, if the literal neither begins nor ends inside a word of letters
or digits: the index knows whole words (in Chinese, Japanese and Korean every character).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qmd.parse.document import parse_document
from qmd.parse.segment import cjk_runs, is_cjk
from tests.support.corpus import Corpus

FRAGMENTS = [
    *"数据库的使用，。：；“”（）《》、！？・ー々〇龘𠀀",
    *" \n\t -_./#+@:*?()[]{}^$|&%~=<>!,;'`\\…—",
    *"aBcXyZ019éßñΩжİ",
    *"ａＢ１＋＃，．（ﬁ①ｶﾞ",
    *"あいアイ한국어ก็🙂🤔👍🏽₿\u200b\u00a0\u3000",
    "C++",
    "C#",
    "c#main",
    "F#",
    "i++",
    "std::vector",
    "foo_bar",
    "fooBar",
    "HTTPServer",
    "1.2.3",
    "v2.0-rc1",
    "me@example.org",
    "src/main.py",
    "--force",
    "running",
    "runs",
    "Straße",
    "STRASSE",
    "数据库",
    "使用Docker",
    "the ",
    " of ",
    "AND",
    "NOT",
    "NEAR(",
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)
CORPORA = st.lists(TEXTS, min_size=1, max_size=4)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("exactness"))
    yield made
    made.kb.close()


def fold(text: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text).casefold())


def in_word(character: str) -> bool:
    letter = character.isalnum() or unicodedata.category(character)[0] in "LNM"
    return letter and not is_cjk(character)


def stands_alone(text: str, literal: str) -> bool:
    """Whether the literal stands in the text without cutting a word at either end."""
    place = text.find(literal)
    while place >= 0:
        end = place + len(literal)
        cut = in_word(literal[0]) and place > 0 and in_word(text[place - 1])
        cut = cut or (in_word(literal[-1]) and end < len(text) and in_word(text[end]))
        if not cut:
            return True
        place = text.find(literal, place + 1)
    return False


def pages(texts: list[str]) -> dict[str, str]:
    """Path → what the oracle reads, for documents made of these texts."""
    found = {}
    for number, text in enumerate(texts):
        path = f"p{number}.md"
        found[path] = fold(parse_document(path, text.encode()).title + "\n" + text)
    return found


def fill(corpus: Corpus, texts: list[str]) -> dict[str, str]:
    corpus.fill({f"p{number}.md": text for number, text in enumerate(texts)})
    return pages(texts)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts=CORPORA, data=st.data())
def test_a_quoted_literal_is_found_where_it_stands_and_nowhere_else(
    corpus: Corpus, texts: list[str], data: st.DataObject
) -> None:
    texts = [f"# T\n\n{text}" for text in texts]
    page = fill(corpus, texts)
    source = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, len(source) - 1))
    literal = source[start : start + data.draw(st.integers(1, 30))]
    wanted = fold(literal).strip()
    if '"' in literal or not wanted:
        return
    hits = corpus.exact(f'"{literal}"')
    assert hits <= {path for path, text in page.items() if wanted in text}
    assert hits >= {path for path, text in page.items() if stands_alone(text, wanted)}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts=CORPORA, data=st.data())
def test_a_bare_chinese_word_is_found_exactly_where_grep_finds_it(
    corpus: Corpus, texts: list[str], data: st.DataObject
) -> None:
    texts = [f"# T\n\n数据{text}" for text in texts]
    page = fill(corpus, texts)
    runs = [match[0] for text in page.values() for match in cjk_runs(text)]
    run = data.draw(st.sampled_from(sorted(set(runs))))
    start = data.draw(st.integers(0, len(run) - 1))
    word = run[start : start + data.draw(st.integers(1, 4))]
    assert corpus.exact(word) == {path for path, text in page.items() if word in text}
