"""Names of documents, as people write them, and what is read of them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import AmbiguousNameError, DocumentNotFoundError, InputError, NoMatchError
from qmd.search.lookup import documents as lookup
from qmd.search.lookup.resolve import is_glob
from qmd.search.lookup.similar import SimilarNames
from qmd.values import DocumentSlice, SkippedDocument
from tests.support.corpus import Corpus

FILES = {
    "2025/plan.md": "# Plan\n\nthree\nfour\nfive\n",
    "2024/plan.md": "# Old plan\n",
    "2025/ meeting.md": "# Meeting\n",
    "2025/回顾.md": "# 回顾\n",
    "a_b.md": "# Underscore\n",
    "axb.md": "# No underscore\n",
    "100%.md": "# Percent\n",
    "a%20b.md": "# Literal percent\n",
    "x.md": "# X\n\nthree\nfour\n",
    "x.md:100": "# A real file of that name\n",
    "abc123": "# Six digits\n",
    "one,two.md": "# Comma\n",
    "braces{1}.md": "# Braces\n",
    "crlf.md": "# C\r\n\r\nthree\r\nfour\r\n",
    "short.md": "one\ntwo",
    "big.md": "# Big\n" + "x" * 20_000 + "\n",
    "same1.md": "# Same\n",
    "same2.md": "# Same\n",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("lookup"))
    made.add_collection("other")
    made.fill({**FILES, "other::2025/plan.md": "# Other plan\n", "other::only.md": "# Only\n"})
    yield made
    made.kb.close()


@pytest.fixture
def kb(corpus: Corpus) -> KnowledgeBase:
    return corpus.kb


def docid(text: str) -> str:
    return "#" + hashlib.sha256(text.encode()).hexdigest()[:6]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("notes/2025/plan.md", "notes/2025/plan.md"),
        ("qmd://notes/2025/plan.md", "notes/2025/plan.md"),
        ("qmd://notes%2F2025%2F%20meeting.md", "notes/2025/ meeting.md"),
        ("qmd://notes/2025/%E5%9B%9E%E9%A1%BE.md", "notes/2025/回顾.md"),
        ("qmd://notes/2025/回顾.md", "notes/2025/回顾.md"),
        ("qmd://notes/100%25.md", "notes/100%.md"),
        ("qmd://notes/100%.md", "notes/100%.md"),
        ("qmd://notes/a%2520b.md", "notes/a%20b.md"),
        ("notes/a%20b.md", "notes/a%20b.md"),
        ("only.md", "other/only.md"),
        ("2024/plan.md", "notes/2024/plan.md"),
        ("./2024/plan.md", "notes/2024/plan.md"),
        ("回顾.md", "notes/2025/回顾.md"),
        ("a_b.md", "notes/a_b.md"),
        ("100%.md", "notes/100%.md"),
        ("x.md:100", "notes/x.md:100"),
        ("notes/x.md:100", "notes/x.md:100"),
        ("abc123", "notes/abc123"),
        ("one,two.md", "notes/one,two.md"),
        (docid(FILES["2024/plan.md"]), "notes/2024/plan.md"),
        (docid(FILES["2024/plan.md"]).upper(), "notes/2024/plan.md"),
        (docid(FILES["2024/plan.md"])[1:], "notes/2024/plan.md"),
        (docid(FILES["same1.md"]), "notes/same1.md"),
        ("  notes/x.md\n", "notes/x.md"),
    ],
)
def test_every_accepted_form_names_its_document(kb: KnowledgeBase, name: str, file: str) -> None:
    assert kb.get(name).document.file == file


def test_a_path_on_the_disk_names_its_document(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = corpus.directory
    assert corpus.kb.get(f"{root}/notes/2025/plan.md").document.file == "notes/2025/plan.md"
    assert corpus.kb.get(f"{root}/notes/x/../2025/plan.md").document.file == "notes/2025/plan.md"
    monkeypatch.setenv("HOME", str(root))
    assert corpus.kb.get("~/notes/x.md").document.file == "notes/x.md"
    assert corpus.kb.get("~/notes/x.md:3").text == "three\nfour"


@pytest.mark.parametrize(
    "name",
    [
        "a?b.md",
        "%.md",
        "_",
        "%",
        "an.md",
        "lan.md",
        "",
        "/",
        "qmd://",
        "qmd://notes",
        "notes",
        "notes/",
        "#",
        "#zzzzzz",
        "#abc",
        "../plan.md",
        "/etc/passwd",
        "~nobody-of-that-name/x.md",
        "x.md:0x10",
        "a\0b",
        "\ud800",
        "x" * 100_000,
    ],
)
def test_what_names_no_document_is_not_found(kb: KnowledgeBase, name: str) -> None:
    with pytest.raises(DocumentNotFoundError):
        kb.get(name)


def test_a_suffix_of_several_documents_is_ambiguous_and_lists_them(kb: KnowledgeBase) -> None:
    with pytest.raises(AmbiguousNameError) as caught:
        kb.get("plan.md")
    assert caught.value.candidates == (
        "notes/2024/plan.md",
        "notes/2025/plan.md",
        "other/2025/plan.md",
    )


# --- lines ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "from_line", "max_lines", "text", "start", "more"),
    [
        ("notes/2025/plan.md", None, None, FILES["2025/plan.md"], 1, 0),
        ("notes/2025/plan.md", 3, None, "three\nfour\nfive", 3, 0),
        ("notes/2025/plan.md", 3, 2, "three\nfour", 3, 1),
        ("notes/2025/plan.md", None, 5, FILES["2025/plan.md"], 1, 0),
        ("notes/2025/plan.md", None, 4, "# Plan\n\nthree\nfour", 1, 1),
        ("notes/2025/plan.md", 0, 1, "# Plan", 1, 4),
        ("notes/2025/plan.md", -7, 1, "# Plan", 1, 4),
        ("notes/2025/plan.md", 6, None, "", 6, 0),
        ("notes/2025/plan.md", 999, 3, "", 999, 0),
        ("notes/2025/plan.md:3", None, None, "three\nfour\nfive", 3, 0),
        ("notes/2025/plan.md:3", 1, None, "three\nfour\nfive", 3, 0),
        ("notes/2025/plan.md:3:2", None, None, "three\nfour", 3, 1),
        ("notes/2025/plan.md:3:2", None, 1, "three", 3, 2),
        ("notes/2025/plan.md:999999999999", None, None, "", 999999999999, 0),
        (docid(FILES["2025/plan.md"]) + ":4", None, None, "four\nfive", 4, 0),
        ("qmd://notes/2025/plan.md:5", None, None, "five", 5, 0),
        ("x.md:100:1", None, None, "# A real file of that name\n", 1, 0),
        ("crlf.md", None, None, FILES["crlf.md"], 1, 0),
        ("crlf.md", 3, 1, "three", 3, 1),
        ("short.md", None, None, "one\ntwo", 1, 0),
        ("short.md", 2, 1, "two", 2, 0),
    ],
)
def test_lines_are_counted_from_1_and_what_is_cut_off_is_told(
    kb: KnowledgeBase,
    name: str,
    from_line: int | None,
    max_lines: int | None,
    text: str,
    start: int,
    more: int,
) -> None:
    found = kb.get(name, from_line=from_line, max_lines=max_lines)
    assert (found.text, found.from_line, found.more_lines) == (text, start, more)


@pytest.mark.parametrize("lines", [0, -1])
def test_fewer_than_one_line_is_an_error(kb: KnowledgeBase, lines: int) -> None:
    with pytest.raises(InputError):
        kb.get("x.md", max_lines=lines)
    with pytest.raises(InputError):
        kb.multi_get("x.md", max_lines=lines)


# --- suggestions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("notes/2024/plam.md", "notes/2024/plan.md"),
        ("crfl.md", "notes/crlf.md"),
        ("回顧.md", "notes/2025/回顾.md"),
        ("crfl.md:20", "notes/crlf.md"),
    ],
)
def test_a_near_miss_gets_suggestions_nearest_first(
    kb: KnowledgeBase, name: str, first: str
) -> None:
    with pytest.raises(DocumentNotFoundError) as caught:
        kb.get(name)
    assert caught.value.suggestions[0] == first
    assert len(caught.value.suggestions) <= 3
    assert all(kb.get(file).document.file == file for file in caught.value.suggestions)


@pytest.mark.parametrize(
    "name", ["zzzzqqqqwwww", "", "完全不同的名字很长", "/no/such/thing/at/all"]
)
def test_nonsense_gets_no_suggestion(kb: KnowledgeBase, name: str) -> None:
    with pytest.raises(DocumentNotFoundError) as caught:
        kb.get(name)
    assert caught.value.suggestions == ()


# --- docids --------------------------------------------------------------------------


def colliding() -> tuple[str, str]:
    """Two texts whose hashes share their first six digits and no more than needed."""
    seen: dict[str, str] = {}
    for number in count():
        text = f"# Page {number}\n"
        digits = hashlib.sha256(text.encode()).hexdigest()[:6]
        if digits in seen:
            return seen[digits], text
        seen[digits] = text
    raise AssertionError


def test_contents_that_share_six_digits_show_more_and_six_are_ambiguous(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    one, two = colliding()
    corpus.fill({"one.md": one, "two.md": two, "copy of one.md": one, "three.md": "# Three\n"})
    kb = corpus.kb
    ids = {document.path: document.docid for document in kb.documents()}
    assert ids["one.md"] == ids["copy of one.md"] != ids["two.md"]
    assert len(ids["one.md"]) > 7 and len(ids["two.md"]) > 7
    assert len(ids["three.md"]) == 7
    assert kb.get(ids["two.md"]).text == two
    assert kb.get(ids["one.md"]).document.path == "copy of one.md"
    shared = docid(one)
    assert shared == docid(two)
    for name in (shared, shared[1:]):
        with pytest.raises(AmbiguousNameError) as caught:
            kb.get(name)
        assert {candidate.partition(" ")[0] for candidate in caught.value.candidates} == {
            ids["one.md"],
            ids["two.md"],
        }
    (hit,) = kb.search('"' + two.strip("# \n") + '"').hits
    assert hit.docid == ids["two.md"]
    reply = kb.multi_get(f"three.md,{shared}")
    assert len(reply.items) == 1
    assert "Ambiguous" in reply.errors[0]
    corpus.kb.close()


# --- several documents ---------------------------------------------------------------


def listed(kb: KnowledgeBase, pattern: str) -> list[str]:
    return [item.document.file for item in kb.multi_get(pattern, max_bytes=10**6).items]


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("notes/2025/*.md", ["notes/2025/ meeting.md", "notes/2025/plan.md", "notes/2025/回顾.md"]),
        ("notes/2024/*", ["notes/2024/plan.md"]),
        ("**/plan.md", ["notes/2024/plan.md", "notes/2025/plan.md", "other/2025/plan.md"]),
        ("qmd://notes/2024/*", ["notes/2024/plan.md"]),
        ("202[45]/plan.md", ["notes/2024/plan.md", "notes/2025/plan.md", "other/2025/plan.md"]),
        ("a?b.md", ["notes/a_b.md", "notes/axb.md"]),
        ("{crlf,short}.md", ["notes/crlf.md", "notes/short.md"]),
        ("{2024,2025}/pl*.md", ["notes/2024/plan.md", "notes/2025/plan.md", "other/2025/plan.md"]),
        ("one,t*.md", ["notes/one,two.md"]),
        ("one,two.md", ["notes/one,two.md"]),
        ("braces{1}.md", ["notes/braces{1}.md"]),
        ("crlf.md,short.md", ["notes/crlf.md", "notes/short.md"]),
        ("short.md, crlf.md ,", ["notes/short.md", "notes/crlf.md"]),
        ("crlf.md,crlf.md", ["notes/crlf.md"]),
        ("crlf.md", ["notes/crlf.md"]),
        ("2024/*.md, short.md", ["notes/2024/plan.md", "notes/short.md"]),
        ("short.md,{crlf,x}.md", ["notes/crlf.md", "notes/short.md", "notes/x.md"]),
        ("nothing*.md,crlf.md", ["notes/crlf.md"]),
        (docid("# Only\n") + ",x.md", ["other/only.md", "notes/x.md"]),
    ],
)
def test_a_glob_or_a_list_names_several_documents(
    kb: KnowledgeBase, pattern: str, files: list[str]
) -> None:
    assert sorted(listed(kb, pattern)) == sorted(files)
    if "*" not in pattern and "{" not in pattern:
        assert listed(kb, pattern) == files


def test_what_is_missing_in_a_list_is_told_with_suggestions_and_the_rest_is_given(
    kb: KnowledgeBase,
) -> None:
    reply = kb.multi_get("crfl.md,short.md,zzzzqqqqwwww")
    assert reply.errors == (
        "File not found: crfl.md (did you mean: notes/crlf.md?)",
        "File not found: zzzzqqqqwwww",
    )
    assert [item.document.path for item in reply.items] == ["short.md"]


def test_patterns_of_a_list_without_a_document_are_told_and_are_few(kb: KnowledgeBase) -> None:
    reply = kb.multi_get("none*.md,short.md")
    assert reply.errors == ("No files matched pattern: none*.md",)
    with pytest.raises(InputError, match=f"more than {lookup.MAX_GLOBS} patterns"):
        kb.multi_get(",".join(f"{number}*.md" for number in range(lookup.MAX_GLOBS + 1)))


def test_a_list_of_too_many_names_is_refused_and_says_how_many_it_may_have(
    kb: KnowledgeBase,
) -> None:
    most = lookup.MAX_NAMES
    with pytest.raises(InputError, match=f"{most + 1:,} names, and may have {most:,} at most"):
        kb.multi_get(",".join(f"{number}.md" for number in range(most + 1)))
    plan = "notes/2025/plan.md"
    reply = kb.multi_get(",".join([*(f"nowhere/{n}.md" for n in range(most - 1)), plan]))
    assert [item.document.file for item in reply.items] == [plan]
    assert len(reply.errors) == most - 1


def test_the_names_of_all_documents_are_read_once_for_a_whole_list(kb: KnowledgeBase) -> None:
    statements: list[str] = []
    with kb._store.reading() as reader:
        reader.connection.set_trace_callback(statements.append)
        names = ",".join(f"notes/2025/pla{chr(0x4E00 + n)}.md" for n in range(lookup.MAX_NAMES))
        reply = lookup.multi_get(reader, names, max_lines=None, max_bytes=1)
        reader.connection.set_trace_callback(None)
    titles = [each for each in statements if "c.name || '/' || d.path" in each]
    paths = [each for each in statements if each == "SELECT name, id FROM collections"]
    assert len(titles) == len(paths) == 1
    suggested = [error for error in reply.errors if "did you mean" in error]
    assert len(suggested) == lookup.MAX_SUGGESTED
    assert suggested == list(reply.errors[: lookup.MAX_SUGGESTED])


def test_among_very_many_documents_similar_names_are_found_without_keeping_all_names(
    kb: KnowledgeBase,
) -> None:
    with kb._store.reading() as reader:
        many = SimilarNames(reader, many=0)
        for typed, file in {
            "crfl.md": "notes/crlf.md",
            "undrescore": "notes/a_b.md",  # its title
            "other/2025/plam.md": "other/2025/plan.md",
            "2024/plam": "notes/2024/plan.md",
            "shor": "notes/short.md",
        }.items():
            assert many.like(typed)[0] == SimilarNames(reader).like(typed)[0] == file
        assert many.like("zzzzqqqqwwww") == []


@pytest.mark.parametrize(
    "beginning",
    ["", "n", "notes", "notes/", "notes/2025/", "2025/", "2025/ m", "other/o", "o", "2025/回", "%"],
)
def test_places_are_those_that_begin_so(kb: KnowledgeBase, beginning: str) -> None:
    with kb._store.reading() as reader:
        places = list(reader.documents.places(beginning))
        assert places == [
            (number, collection, path)
            for number, collection, path in reader.documents.places()
            if f"{collection}/{path}".startswith(beginning) or path.startswith(beginning)
        ]
        infos = reader.documents.below(None)
        assert [(each.id, each.collection, each.path) for each in infos] == list(
            reader.documents.places()
        )


@pytest.mark.parametrize("sign", ["[", "{", "[]", "{}", "]", "[\n", "a[b", "{[", "[{"])
def test_looking_for_a_glob_takes_time_that_grows_with_the_pattern(
    kb: KnowledgeBase, sign: str
) -> None:
    def seconds(size: int) -> float:
        began = time.process_time()
        is_glob(sign * (size // len(sign)))
        return time.process_time() - began

    assert seconds(4_000_000) < 1  # one sign after the other takes hours


@pytest.mark.parametrize("pattern", ["**/a/" * 5 + "b", "**/" * 1000, "*" * 4000])
def test_more_stars_than_any_path_needs_are_refused(kb: KnowledgeBase, pattern: str) -> None:
    with pytest.raises(InputError, match=r"more than 4 times \*\*"):
        kb.multi_get(pattern)


@pytest.mark.parametrize("pattern", ["nothing/*.md", "zzzzqqqqwwww", "", ",", " ", "[", "{a,b}"])
def test_a_pattern_without_any_match_is_an_error_of_that_text(
    kb: KnowledgeBase, pattern: str
) -> None:
    with pytest.raises(NoMatchError) as caught:
        kb.multi_get(pattern)
    assert str(caught.value) == f"No files matched pattern: {pattern.strip()}"


@pytest.mark.parametrize("pattern", ["{a,b}" * 30, "*" * 5000, "[" * 3000 + "*"])
def test_a_hostile_pattern_ends_with_an_error_of_ours(kb: KnowledgeBase, pattern: str) -> None:
    with pytest.raises((InputError, NoMatchError)):
        kb.multi_get(pattern)


def test_documents_over_the_size_limit_are_named_and_not_read(kb: KnowledgeBase) -> None:
    (item,) = kb.multi_get("big.md").items
    assert isinstance(item, SkippedDocument)
    (item,) = kb.multi_get("big.md", max_bytes=len(FILES["big.md"])).items
    assert isinstance(item, DocumentSlice)


def test_lines_hold_for_each_document_of_several(kb: KnowledgeBase) -> None:
    items = kb.multi_get("crlf.md,x.md:3,short.md", max_lines=2).items
    assert [(item.text, item.more_lines) for item in items if isinstance(item, DocumentSlice)] == [
        ("# C\n", 2),
        ("three\nfour", 0),
        ("one\ntwo", 0),
    ]


@pytest.mark.parametrize(
    "pattern", ["a*", "*", "?", "a?b", "[ab]", "x[a]", "{a,b}", "[x}]", "{]a}"]
)
def test_a_pattern_with_stars_or_something_in_brackets_is_a_glob(pattern: str) -> None:
    assert is_glob(pattern)


@pytest.mark.parametrize("name", ["", "a.md", "[]", "{}", "]a[b", "}{", "[a}", "{a]", "a[b", "x]"])
def test_a_name_with_other_brackets_is_no_glob(name: str) -> None:
    assert not is_glob(name)
