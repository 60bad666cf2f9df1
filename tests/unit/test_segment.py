"""The segmented form of texts, and the FTS5 phrases of literals."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.parse.segment import (
    MOST_REPLACED,
    Derivation,
    camel_parts,
    clean,
    derivation,
    fold,
    has_token,
    normalize,
    pairs_of,
    phrase_tokens,
    segment,
)
from qmd.store.full_text import Phrase
from qmd.store.sqlite.fts5 import render, tokens


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("数据库", "数据 据库 库"),
        ("库", "库"),
        ("使用Docker部署", "使用 用 docker 部署 署"),
        ("数据，库", "数据 据 , 库"),
        ("plain words", "plain words"),
        ("C++ and C#", "C Cplusplus and C Csharp"),
        ("foo# bar", "foo# bar"),
        ("ＡＢＣ１", "ABC1"),
        ("データ", "デー ータ タ"),
        ("한국어", "한국 국어 어"),
        ("hello🙂world", "hello world"),
        ("straße", "strasse"),
        ("Donau\xaddampf\xadschiff", "Donaudampfschiff"),
        ("super\u200bcali\u2060fragi \ufeffx", "supercalifragi x"),
        ("数\u200b据\xad库", "数据 据库 库"),
        ("สวัสดี\u200bครับ", "สวัสดี\u200bครับ"),
        ("", ""),
    ],
)
def test_a_text_is_stored_as_pairs_of_characters_and_words(text: str, stored: str) -> None:
    assert segment(text).split() == stored.split()


@pytest.mark.parametrize(
    ("literal", "expression"),
    [
        ("数据库", '"数据 据库"'),
        ("库", '"库" *'),
        ("使用Docker", '"使用 用 docker"'),
        ("Docker使", '"docker 使" *'),
        ("库，", '"库 ,"'),
        ("foo_bar", '"foo_bar"'),
        ('say "hi"', '"say ""hi"""'),
        ("->", None),
        ("，。", None),
        ("🙂", None),
        ("", None),
        ("a\0b", '"a b"'),
        ("\ud800", None),
    ],
)
def test_a_literal_is_a_phrase_of_what_the_index_holds(
    literal: str, expression: str | None
) -> None:
    tokens = phrase_tokens(literal)
    found = tokens and render(Phrase(*tokens))
    assert (found and found.replace('"', ' " ').split()) == (
        expression and expression.replace('"', ' " ').split()
    )


LETTERS = st.characters(exclude_categories=["Cs"]) | st.sampled_from(
    "aC+#éßſæØς½ﬁ™…‑Ａ＋＃①🙂ЁЀ\u0301\u0653اか\u3099\xad\u200bก"
)


@settings(deadline=None, max_examples=300)
@given(st.text(LETTERS))
def test_full_text_holds_the_tokens_that_literals_ask_for(text: str) -> None:
    text = clean(text) + " x"
    literal = phrase_tokens(text)
    assert literal is not None
    assert tokens(segment(text)) == tokens(literal[0])


@pytest.mark.parametrize(
    "text", ["Ünïcode – “naïve” café… №?", "Ёлка", "Việt Nam", "→ ☑ ∑", "Σίσυφος"]
)
def test_what_sqlite_reads_by_itself_is_not_stored_once_more(text: str) -> None:
    plain = text.replace("№", "")
    assert segment(plain) == plain


@settings(deadline=None)
@given(st.lists(st.sampled_from(["C++", "C#", "foo#", "ABC++ ", " ", "\n", "é", "½", "🙂"])))
def test_replacements_make_the_segmented_form_or_there_are_none(parts: list[str]) -> None:
    text = "".join(parts)
    derived = derivation([text], [segment(text)])
    if derived is not None:
        replaced = derived.replacements
        for word, form in zip(replaced[::2], replaced[1::2], strict=True):
            text = text.replace(word, form)
        assert (text, derived.has_pairs) == (segment("".join(parts)), False)


def test_a_few_words_are_replaced_before_pairs_are_made() -> None:
    def derived(text: str) -> Derivation | None:
        return derivation([text], [segment(text)])

    assert derived("A C++ text") == (["C++", "C Cplusplus "], False)
    assert derived("库") == ([], True)
    assert derived("soft\xadhyphen 数\u200b据") == (["\xad", "", "\u200b", ""], True)
    assert derived("C++ 库，ｶﾞ") == (["C++", "C Cplusplus ", "ｶﾞ", "ガ"], True)
    assert derived(" ".join(f"x{number}++" for number in range(MOST_REPLACED + 1))) is None


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_fast_normal_form_is_nfkc(text: str) -> None:
    text = re.sub("[\xad\u200b\u2060\ufeff]", "", text)
    assert normalize(text) == unicodedata.normalize("NFKC", text)


@settings(deadline=None)
@given(
    st.text(
        st.sampled_from("，：；！？（）．～％＆＃＂／＠｜\u3000\xa0…‑\u0338\u0301\u3099aéかﬁ한①=<")
    )
)
def test_the_fast_normal_form_is_nfkc_beside_combining_marks(text: str) -> None:
    assert normalize(text) == unicodedata.normalize("NFKC", text)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_folding_is_stable(text: str) -> None:
    assert fold(text.upper()) == fold(fold(text.upper()))


@given(st.text(st.characters()))
def test_cleaned_text_can_be_stored(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned) == len(text)
    assert "\0" not in cleaned
    cleaned.encode()


@pytest.mark.parametrize("text", ["a", "1", "数", "é", "\ue000", "½", "Ⅻ"])
def test_letters_numbers_and_private_characters_are_tokens(text: str) -> None:
    assert has_token(text)


@pytest.mark.parametrize("text", ["", " ", "-", "_", "🙂", "，", "\u0301", "→", "\u200b"])
def test_signs_are_no_tokens(text: str) -> None:
    assert not has_token(text)


def test_pairs_come_in_order_and_once() -> None:
    assert pairs_of("天天天气") == ["天天", "天气"]


def test_camel_case_words_give_their_parts() -> None:
    text = "myHTTPServer and getUserName2 but not Docker or NASA"
    assert camel_parts(text) == ["my", "HTTP", "Server", "get", "User", "Name", "2"]


def test_quoting_leaves_no_syntax() -> None:
    assert render(Phrase('a"b')) == '"a""b"'


def test_what_sqlite_cannot_store_is_a_blank() -> None:
    assert clean("a\0b\ud800c\udfff😀\ue000") == "a b c 😀\ue000"
