"""The query language: what a string means."""

from __future__ import annotations

import pytest

from qmd.search.query import LEAD, MAX_TERMS, Term, loose_parts, parse_string, script_of


def groups(query: str) -> list[list[str]]:
    return [[term.text for term in group] for group in parse_string(query).groups]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("red boat", [["red"], ["boat"]]),
        ('"red boat" sea', [["red boat"], ["sea"]]),
        ("red OR blue boat", [["red", "blue"], ["boat"]]),
        ("a OR b OR c", [["a", "b", "c"]]),
        ('"red boat" OR ship', [["red boat", "ship"]]),
        ("red AND boat", [["red"], ["boat"]]),
        ("red or boat", [["red"], ["or"], ["boat"]]),
        ("red OR OR boat", [["red", "boat"]]),
        ("red red OR boat", [["red"], ["red", "boat"]]),
        ("red sea OR red", [["red"], ["sea", "red"]]),
        ("red OR sea red", [["red", "sea"], ["red"]]),
        ("red OR red", [["red"]]),
        ("red OR -sea boat", [["red"], ["boat"]]),
        ("title:red OR boat", [["red", "boat"]]),
        ("red red", [["red"]]),
        ("what's new?", [["what's"], ["new"]]),
        ("foo_bar v1.2.3", [["foo_bar"], ["v1.2.3"]]),
        ("me@example.org, src/main.py", [["me@example.org"], ["src/main.py"]]),
        ("C++ C# (F#)", [["C++"], ["C#"], ["F#"]]),
        ("std::vector<int>", [["std::vector<int"]]),
        ("使用，数据库。", [["使用"], ["数据库"]]),
        ("ＡＢＣ", [["ABC"]]),
        ("", []),
        (" \n\t", []),
    ],
)
def test_words_are_all_wanted_or_joins_phrases_stay_whole(
    query: str, expected: list[list[str]]
) -> None:
    assert groups(query) == expected


@pytest.mark.parametrize("query", ["OR", "AND", "OR boat", "boat OR", "AND boat", "boat AND"])
def test_a_lonely_operator_is_a_word(query: str) -> None:
    assert groups(query) == [[word] for word in query.split()]


def test_a_minus_excludes_a_word_or_a_phrase() -> None:
    parsed = parse_string('boat -sail -"red sea" -数据')
    assert [term.text for term in parsed.terms] == ["boat"]
    assert [(term.text, term.quoted) for term in parsed.excluded] == [
        ("sail", False),
        ("red sea", True),
        ("数据", False),
    ]
    assert parsed.text == "boat"


@pytest.mark.parametrize("query", ["-boat", '-"red boat"', "-boat -sail", "-title:boat", "－船"])
def test_a_query_of_nothing_but_exclusions_only_narrows(query: str) -> None:
    parsed = parse_string(query)
    assert parsed.only_narrows
    assert parsed.terms == ()
    assert parsed.text == ""
    assert parsed.excluded == parse_string(f"some {query}").excluded != ()


@pytest.mark.parametrize("query", ["", "boat", "boat -sail", "tag:a boat", "->", '-""', "--force"])
def test_a_query_that_looks_for_something_or_nothing_does_not_only_narrow(query: str) -> None:
    assert not parse_string(query).only_narrows


@pytest.mark.parametrize("query", ["boat --force", "boat - sail", "boat ->", "boat -"])
def test_other_minus_signs_are_text(query: str) -> None:
    assert parse_string(query).excluded == ()


def test_fields_name_where_to_look() -> None:
    parsed = parse_string('title:plan path:notes/2025 title:"red boat" -title:draft')
    assert parsed.terms == (
        Term("plan", field="title"),
        Term("notes/2025", field="path"),
        Term("red boat", quoted=True, field="title"),
    )
    assert parsed.excluded == (Term("draft", field="title"),)
    parsed = parse_string('description:"road map" -description：草稿')
    assert parsed.terms == (Term("road map", quoted=True, field="description"),)
    assert parsed.excluded == (Term("草稿", field="description"),)


def test_tags_are_a_filter_with_or_without_the_sign() -> None:
    parsed = parse_string('tag:work tag:#项目/甲 tag:"two words" boat')
    assert parsed.tags == ("work", "项目/甲", "two words")
    assert [term.text for term in parsed.terms] == ["boat"]


def test_tags_are_alternatives_to_each_other_and_never_to_words() -> None:
    parsed = parse_string("tag:a OR tag:b OR tag:c tag:d OR boat OR tag:e")
    assert parsed.either == (("a", "b", "c"),)
    assert parsed.tags == ("d", "e")
    assert groups("tag:a OR tag:b OR tag:c tag:d OR boat OR tag:e") == [["boat"]]


def test_a_minus_leaves_out_a_tag() -> None:
    parsed = parse_string('boat -tag:draft -tag:"two words" -tag:#甲')
    assert parsed.none_of == ("draft", "two words", "甲")
    assert parsed.excluded == ()
    assert (parse_string("-tag:draft").none_of, parse_string("-tag:draft").groups) == (
        ("draft",),
        (),
    )


@pytest.mark.parametrize("query", ["tag:", "-tag:", "-tag：", "-tag:#", 'tag:""'])
def test_a_tag_without_a_name_is_text(query: str) -> None:
    parsed = parse_string(query)
    assert not parsed.narrowed
    assert not parsed.excluded
    assert [term.text for term in parsed.terms] == ["tag"]


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("“red boat” 备份", '"red boat" 备份'),
        ("boat -“red sea”", 'boat -"red sea"'),
        ("「数据库 备份」", '"数据库 备份"'),
        ("＂red boat＂", '"red boat"'),
        ("„red boat“", '"red boat"'),
        ("标题 －草稿", "标题 -草稿"),
        ("title：计划 －tag：草稿", "title:计划 -tag:草稿"),
        ("title：“年度 计划”", 'title:"年度 计划"'),
        ("数据＊", "数据*"),
        ("red\u3000boat", "red boat"),
    ],
)
def test_the_signs_of_other_keyboards_mean_the_same(typed: str, plain: str) -> None:
    one, two = parse_string(typed), parse_string(plain)
    assert (one.groups, one.excluded, one.tags, one.none_of) == (
        two.groups,
        two.excluded,
        two.tags,
        two.none_of,
    )


@pytest.mark.parametrize("query", ["说“数据库”很慢", "“boat", "boat”", "「库", "a“b”c", "“a”b”"])
def test_quotation_marks_inside_a_text_are_no_phrase(query: str) -> None:
    assert not any(term.quoted for term in parse_string(query).terms)


@pytest.mark.parametrize(
    "query", ["url:x", "note: x", "http://a.b/c", "title:", "12:30", "-description:"]
)
def test_other_colons_are_text(query: str) -> None:
    parsed = parse_string(query)
    assert parsed.tags == ()
    assert all(term.field is None for term in parsed.terms)
    assert parsed.terms


def test_a_star_behind_a_word_asks_for_its_beginning() -> None:
    assert parse_string("wor* other").terms == (Term("wor", prefix=True), Term("other"))


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ('"boat', [Term("boat")]),
        ('boat"', [Term("boat")]),
        ('5" disk', [Term("5"), Term("disk")]),
        ('"a" b"', [Term("a", quoted=True), Term("b")]),
        ('""', []),
    ],
)
def test_an_unclosed_quote_makes_no_phrase(query: str, terms: list[Term]) -> None:
    assert list(parse_string(query).terms) == terms


@pytest.mark.parametrize("query", ["->", "=>", "，", "** ::", "🙂", '"'])
def test_signs_alone_are_looked_for_as_typed(query: str) -> None:
    assert [term.text for term in parse_string(query).terms] == query.split()
    assert all(term.quoted for term in parse_string(query).terms)


@pytest.mark.parametrize(
    ("text", "lead"),
    [
        ("x" * LEAD, "x" * LEAD),
        ("word " * 100, "word " * 12 + "word"),
        ("a." * 100, "a." * (LEAD // 2)),
        ("库" * 1000, "库" * LEAD),
        ("x" * 1000, "x" * 1000),
        ("库" + "x" * 1000, "库"),
        ("word " + "x" * 1000, "word "),
    ],
)
def test_a_long_literal_is_looked_for_by_its_beginning_which_cuts_no_word(
    text: str, lead: str
) -> None:
    assert Term(text).lead == lead
    assert Term(text, quoted=True).lead == lead
    assert Term(text).literal == (len(text) > LEAD)


def test_signs_beside_words_are_left_out() -> None:
    assert groups("boat -> sea") == [["boat"], ["sea"]]


def test_a_pasted_text_has_so_many_terms_and_keeps_its_words_for_the_vectors() -> None:
    words = [f"word{number}" for number in range(500)]
    parsed = parse_string(" ".join(words))
    assert len(parsed.terms) == MAX_TERMS
    assert parsed.text.split() == words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("数据库迁移", ["数据", "据库", "库迁", "迁移"]),
        ("使用Docker部署", ["使用", "Docker", "部署"]),
        ("库", ["库"]),
        ("foo_bar-baz", ["foo", "bar", "baz"]),
        ("我a", ["a"]),
    ],
)
def test_loose_matching_takes_words_and_pairs(text: str, expected: list[str]) -> None:
    assert loose_parts(Term(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "数据库",
        "库",
        "数据库的备份 Kubernetes",
        "Kubernetes 部署",
        "데이터베이스 백업",
        "東京の天気",
    ],
)
def test_a_text_mostly_of_pairs_is_written_in_characters(text: str) -> None:
    assert script_of(text) == "characters"


@pytest.mark.parametrize(
    "text",
    ["", "?!", "red boat", "резервная копия", "how to translate 数据库", "Kubernetes v1.2 部署"],
)
def test_any_other_text_is_written_in_an_alphabet(text: str) -> None:
    assert script_of(text) == "alphabet"


@pytest.mark.parametrize(
    "query", ["red  boat", "a\u3000b\x85c\u2028d\x1ce", "红色的船 v1.2 — foo_bar", "\x00red\xa0"]
)
def test_a_query_of_words_alone_is_read_as_one_with_other_things(query: str) -> None:
    *words, phrase = groups(f"{query} 「sea」")
    assert (groups(query), phrase) == (words, ["sea"])
