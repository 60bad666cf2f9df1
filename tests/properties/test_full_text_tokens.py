"""PostgreSQL stores the tokens that FTS5 makes of a text, though FTS5 sees each word only once."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from qmd.store.sqlite.fts5 import tokens, tokens_of

full_text = pytest.importorskip("qmd.store.postgres.full_text")
#: All planes of Unicode that have characters, without the private ones, whose tokens are they.
CHARACTERS = [
    chr(code)
    for planes in (range(0xD800), range(0xE000, 0x33000), range(0xE0000, 0xE1000))
    for code in planes
]
WORDS = st.sampled_from(
    [
        "Running",
        "naïve",
        "e\u0301",
        "\u0301x",
        "数据",
        "据",
        "C＋＋",
        "foo_bar",
        "null",
        "x\0y",
        "２０",
    ]
)


@given(st.lists(st.text() | WORDS | st.sampled_from([" ", "-", "\u3000"])).map("".join))
@example("\u0301")
@example("数" * 401 + "a" * 401)
def test_tokens_are_those_of_fts5(text: str) -> None:
    for _ in range(2):  # the second time, all words are known
        [[stored]] = full_text.stored_tokens([[text]])
        assert stored == [full_text.stored_token(token) for token in tokens(text)]


def test_words_that_are_not_asked_for_are_their_own_tokens() -> None:
    own = [each for each in CHARACTERS if full_text.OWN_TOKEN.fullmatch(each)]
    assert len(own) > 38_000
    assert tokens(" ".join(own)) == tuple(own)
    assert tokens("".join(own[:400])) == ("".join(own[:400]),)


def test_every_token_ends_where_words_are_split() -> None:
    ends = [each for each in CHARACTERS if not full_text.WORDS.fullmatch(each)]
    assert set(map(chr, range(128))) - set(ends) == {c for c in map(chr, range(128)) if c.isalnum()}
    assert set(tokens_of(f"a{each}b" for each in ends)) == {"a b"}


def test_tokens_need_no_escape() -> None:
    [every] = tokens_of([" ".join(CHARACTERS)])
    used = set(every) - {" "}
    assert {each for each in used if each.isascii()} == set("abcdefghijklmnopqrstuvwxyz0123456789")
    assert not any(each.isspace() for each in used)
