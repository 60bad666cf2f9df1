"""What full text finds, and what it calls exact."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd.errors import CollectionNotFoundError, InputError
from qmd.search import judge
from qmd.search.query import loose_parts, split_terms
from qmd.values import Filters
from tests.support.corpus import Corpus

FILES = {
    "boat.md": "# Red boat\n\nThe red boat sails to the islands.\n",
    "sea.md": "# Sea\n\nA boat in a red sea, running before the wind.\n",
    "land.md": "# Land\n\nNo ship here. The city has red houses.\n",
    "deps.md": "# Notes\n\nUse foo_bar 1.2.3 by a@b.org in src/main.py with std::vector.\n",
    "decoy.md": "# Notes\n\nUse foo bar 1 2 3 by a at b org, src or main, py, std vector.\n",
    "cpp.md": "# Languages\n\nC++ templates are compiled.\n",
    "csharp.md": "# Languages\n\nC# generics are not.\n",
    "c.md": "# Languages\n\nPlain C has neither.\n",
    "数据库/backup.md": "# 备份\n\n每天晚上备份一次，保留七天。\n",
    "guide.md": "# 指南\n\n数据库的迁移方法：先停止服务，再复制文件。\n",
    "spaces.md": "# Break\n\nA phrase that goes\nover   two lines.\n",
    "wide.md": "# Wide\n\n版本：ＡＢＣ（第一版）\n",
    "fields.md": "---\ntags: [Work/Plan, 旅行]\n---\n# Unusual heading\n\nplain body\n",
    "described.md": "+++\nsummary = 'Ferries, big and\u3000small. 渡轮怎么走'\n+++\nferry\n",
    "arrows.md": "# Arrows\n\na -> b, c => d\n",
    "inside.md": "# Inside\n\nEt al. tutorials; hyphen-minus, n m, xHTTPServer, ❶Click, Straße.\n",
    "universe.md": "# Stars\n\nThe university looks at the universe, flying.\n",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("lexical"))
    made.fill(FILES)
    yield made
    made.kb.close()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("red boat", {"boat.md", "sea.md"}),
        ('"red boat"', {"boat.md"}),
        ("red -boat", {"land.md"}),
        ('red -"red boat"', {"sea.md", "land.md"}),
        ("boat OR ship", {"boat.md", "sea.md", "land.md"}),
        ('"red boat" OR ship', {"boat.md", "land.md"}),
        ('ship OR "->"', {"land.md", "arrows.md"}),
        ("houses OR foo_bar", {"land.md", "deps.md"}),
        ("runs", {"sea.md"}),
        ('"run"', {"sea.md"}),
        ('red -"runs"', {"boat.md", "land.md", "sea.md"}),
        ("isl*", {"boat.md"}),
        ("universi*", {"universe.md"}),
        ("univers*", {"universe.md"}),
        ("flyi*", {"universe.md"}),
        ("runni*", {"sea.md"}),
        ("runs*", set()),
        ("als*", set()),
        ("tutori*", {"inside.md"}),
        ("hyphen -als*", {"inside.md"}),
        ("n-m", set()),
        ("hyphen-m*", {"inside.md"}),
        ('"server,"', {"inside.md"}),
        ('"httpserver"', set()),
        ("serv*", {"inside.md"}),
        ('"click, strasse"', {"inside.md"}),
        ("compile* OR flying*", {"cpp.md", "universe.md"}),
        ("red -islan*", {"sea.md", "land.md"}),
        ("title:languag*", {"cpp.md", "csharp.md", "c.md"}),
        ("数据*", {"guide.md"}),
        ("foo_b*", {"deps.md"}),
        ("foo_bar", {"deps.md"}),
        ("1.2.3", {"deps.md"}),
        ("a@b.org", {"deps.md"}),
        ("src/main.py", {"deps.md"}),
        ("std::vector", {"deps.md"}),
        ("C++", {"cpp.md"}),
        ("c#", {"csharp.md"}),
        ('"C++ templates"', {"cpp.md"}),
        ("->", {"arrows.md"}),
        ("=> ->", {"arrows.md"}),
        ('arrows -"->"', set()),
        ("：", {"guide.md", "wide.md", "deps.md", "fields.md"}),
        ("数据库", {"guide.md"}),
        ("据", {"guide.md"}),
        ("-数据 备份", {"数据库/backup.md"}),
        ("plain -heading", {"c.md"}),
        ("plain -neither:", {"fields.md"}),
        ("plain -title", {"c.md", "fields.md"}),
        ("abc", {"wide.md"}),
        ("ABC(第一版)", {"wide.md"}),
        ('"goes over two"', {"spaces.md"}),
        ("title:boat", {"boat.md"}),
        ('title:"red boat"', {"boat.md"}),
        ("description:ferries", {"described.md"}),
        ("description:ferr*", {"described.md"}),
        ('description:"big and small"', {"described.md"}),
        ('description:"ferry"', set()),
        ("description:渡轮怎么走", {"described.md"}),
        ("description:轮", {"described.md"}),
        ("description:boat", set()),
        ("ferry -description:small", set()),
        ("path:数据库", {"数据库/backup.md"}),
        ("path:数据库/backup", {"数据库/backup.md"}),
        ("tag:work", {"fields.md"}),
        ("tag:work/plan plain", {"fields.md"}),
        ("tag:#旅行", {"fields.md"}),
        ("tag:wor", set()),
        ("tag:work boat", set()),
        ("tag:work -plain", set()),
        ("tag:work -boat", {"fields.md"}),
        ("-> -boat", {"arrows.md"}),
        ("-> -arrows", set()),
        ("", set()),
        ("   ", set()),
        ("-boat title:boat", set()),
    ],
)
def test_the_query_language_finds_exactly(corpus: Corpus, query: str, expected: set[str]) -> None:
    assert corpus.exact(query) == expected


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("how do I move the boat to the islands?", "boat.md"),
        ("数据库应该怎么迁移？", "guide.md"),
        ("备份要保留几天", "数据库/backup.md"),
        ("which languages have generics", "csharp.md"),
    ],
)
def test_a_question_finds_its_page_by_loose_matching(
    corpus: Corpus, query: str, first: str
) -> None:
    hits = corpus.kb.search(query).hits
    assert hits[0].path == first
    assert hits[0].match == "relaxed"


def test_exact_hits_come_first_and_relaxed_ones_fill_up_to_the_limit(corpus: Corpus) -> None:
    hits = corpus.kb.search("red boat islands", limit=3, explain=True).hits
    assert [hit.match for hit in hits] == ["exact", "relaxed", "relaxed"]
    blends = [(hit.explain or {})["blend"] for hit in hits]
    assert blends[0] >= 0.5 > blends[1] >= blends[2]
    assert [hit.match for hit in corpus.kb.search("red boat islands", limit=1).hits] == ["exact"]


@pytest.mark.parametrize("query", ['"boat red islands"', '"数据迁移"', '"foo_bar 9"', '"<->"'])
def test_a_quoted_literal_is_never_relaxed(corpus: Corpus, query: str) -> None:
    assert corpus.found(query) == []


def test_a_quoted_literal_stays_required_where_the_rest_is_relaxed(corpus: Corpus) -> None:
    assert corpus.found('"red boat" houses wind generics') == ["boat.md"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("C++", ["cpp.md"]),
        ("n++", []),
        ("c++ OR f#", ["cpp.md"]),
        ("what is the C# of it", ["csharp.md"]),
        ("what is the n++ of it", []),
    ],
)
def test_a_literal_is_not_relaxed_to_its_only_letter(
    corpus: Corpus, query: str, found: list[str]
) -> None:
    assert corpus.found(query) == found


def test_a_literal_beside_other_words_is_relaxed(corpus: Corpus) -> None:
    assert corpus.found("generics n++ elsewhere")[0] == "csharp.md"


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    """Notes of languages, among more and rarer notes of the letters in their names."""
    made = Corpus(tmp_path_factory.mktemp("languages"))
    made.fill(
        {
            "oven.md": "# Oven\n\nC is Celsius: bake fast at 230 °C. Is Vitamin C, C, C lost?\n",
            "templates.md": "# Templates\n\nC++ templates are compiled.\n",
            "speed.md": "# Speed\n\nC++ runs without a garbage collector.\n",
            "marks.md": "# Grade F\n\nGrade F, F and F is the worst.\n",
            "functions.md": "# Functions\n\nF# has functions.\n",
            "scale.md": "# Net weight\n\nThe net weight is net of the box.\n",
            "runtime.md": "# Runtime\n\nA programme for .NET of any version.\n",
            "变量.md": "# 变量\n\n什么是变量？什么是值？\n",
        }
    )
    yield made
    made.kb.close()


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("what's C++", {"templates.md", "speed.md"}),
        ("what is C++", {"templates.md", "speed.md"}),
        ("C＋＋", {"templates.md", "speed.md"}),
        ("C++/F#", {"templates.md", "speed.md", "functions.md"}),
        ("tell me about C++", {"templates.md", "speed.md"}),
        ("what's F#", {"functions.md"}),
        (".NET", {"runtime.md"}),
        ("what is .NET", {"runtime.md"}),
        ("(.net)", {"runtime.md"}),
        (".NET/F#", {"runtime.md", "functions.md"}),
        ("what is .F", set()),
        ("什么是C++", {"templates.md", "speed.md"}),
        ("F#怎么样", {"functions.md"}),
    ],
)
def test_a_text_with_the_letters_of_a_name_does_not_hold_it(
    languages: Corpus, query: str, files: set[str]
) -> None:
    assert set(languages.found(query)) == files


@pytest.mark.parametrize("query", ["is C++ fast", "什么变量是C++", "C++ 是变量"])
def test_texts_with_a_name_come_before_those_with_the_other_words(
    languages: Corpus, query: str
) -> None:
    first, second, *others = languages.found(query)
    assert {first, second} == {"templates.md", "speed.md"}
    assert others


@pytest.mark.parametrize("query", ["什么是.NET", "什么是.net吗", ".NET是什么", "学.NET"])
def test_a_name_directly_beside_chinese_is_the_name(languages: Corpus, query: str) -> None:
    files = languages.found(query)
    assert files[0] == "runtime.md"
    assert "scale.md" not in files


@pytest.mark.parametrize("query", ["C++/C#", "C#和C++"])
def test_a_text_with_both_names_comes_before_one_with_one_often(tmp_path: Path, query: str) -> None:
    made = Corpus(tmp_path)
    both = "Of many other things that programs are made of. " * 40 + "C++ and C#."
    others = {f"{number}.md": "# Note\n\nOf other things.\n" for number in range(20)}
    made.fill({"one.md": "# C++\n\n" + "C++, " * 9, "both.md": both, **others})
    hits = made.kb.search(query).hits
    made.kb.close()
    assert [hit.path for hit in hits] == ["both.md", "one.md"]
    assert hits[0].relevance > hits[1].relevance


def test_the_ending_of_a_file_with_a_chinese_name_is_no_name() -> None:
    (term,) = split_terms("周报.md", None)
    assert loose_parts(term) == ["周报", "md"]


@pytest.mark.parametrize(
    "query", ["what is C++", "what is .NET", "什么是C++", "C++是什么", "什麼是.NET", "F# 怎么样"]
)
def test_a_text_with_the_name_seems_to_answer_what_it_is(languages: Corpus, query: str) -> None:
    assert languages.kb.search(query).notice is None


@pytest.mark.parametrize(
    ("query", "file", "held"),
    [
        ("C++ Celsius", "oven.md", "Celsius"),
        (".NET box", "scale.md", "box"),
        ("F# worst", "marks.md", "worst"),
    ],
)
def test_the_letters_alone_add_nothing_for_the_name(
    languages: Corpus, query: str, file: str, held: str
) -> None:
    hits = {hit.path: hit for hit in languages.kb.search(query, explain=True).hits}
    assert hits[file].explain is not None
    assert [each["word"] for each in hits[file].explain["words"]] == [held]


def test_a_letter_still_finds_the_names_with_it(languages: Corpus) -> None:
    assert set(languages.found("C")) == {"oven.md", "templates.md", "speed.md"}
    assert set(languages.found("net")) == {"scale.md", "runtime.md"}


def test_a_negation_holds_for_relaxed_hits_too(corpus: Corpus) -> None:
    assert "boat.md" not in corpus.found("red boat houses wind -islands")


def test_a_field_is_never_relaxed_away(corpus: Corpus) -> None:
    assert corpus.found("title:sea houses islands") == ["sea.md"]


def test_a_folder_named_after_a_chinese_word_makes_its_files_no_exact_hits(corpus: Corpus) -> None:
    assert "数据库/backup.md" not in corpus.exact("数据库")


def test_the_only_hit_of_a_small_collection_has_a_score(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    corpus.fill({"one.md": "# One\n\nonly page\n"})
    (hit,) = corpus.kb.search("only page").hits
    assert hit.score == hit.relevance > 0.5
    corpus.kb.close()


def test_a_title_counts_more_than_the_body(corpus: Corpus) -> None:
    assert corpus.found("boat")[0] == "boat.md"


NAMED = {
    "work/Tidal ferries.md": "# Plan\n\nfirst second third\n",
    "aliased.md": "---\naliases: [Harbour pilots, 引水员]\n---\n# Plan\n\nfirst second third\n",
    "work/数据库备份.md": "# Plan\n\nfirst second third\n",
    "snake_case.md": "# Plan\n\nfirst second third\n",
    "body.md": "# Other\n\ntidal ferries, harbour pilots, 数据库备份, 引水员, snake_case\n",
    "🙂.md": "# Smile\n",
}


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("named"))
    made.fill(NAMED)
    yield made
    made.kb.close()


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("tidal ferries", "work/Tidal ferries.md"),
        ('"tidal ferries"', "work/Tidal ferries.md"),
        ("harbour pilots", "aliased.md"),
        ('"harbour pilots"', "aliased.md"),
        ("引水员", "aliased.md"),
        ("数据库备份", "work/数据库备份.md"),
        ('"数据库备份"', "work/数据库备份.md"),
        ("snake_case", "snake_case.md"),
    ],
)
def test_file_name_and_aliases_are_searched_as_titles(named: Corpus, query: str, best: str) -> None:
    assert named.found(query) == [best, "body.md"]
    assert named.exact(f"title:{query}") == {best}


def test_a_file_name_of_signs_is_searched(named: Corpus) -> None:
    assert named.found("🙂") == ["🙂.md"]


def test_no_word_counts_twice_because_the_file_name_repeats_the_title(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    others = {f"{number}.md": "# Other\n\nwords\n" for number in range(9)}
    corpus.fill({"Red boat.md": "# The red boat\n\nsea\n", **others})
    titles = corpus.store.write(
        lambda writer: writer.connection.execute(
            "SELECT title FROM z_documents_fts_text"
        ).fetchall()
    )
    assert ("The red boat",) in titles
    assert ("Other\n1",) in titles
    corpus.kb.close()


def test_a_description_counts_more_than_other_frontmatter(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    corpus.fill(
        {
            "a.md": "---\nsubtitle: about tidal ferries\n---\n# Plan\n\none two three\n",
            "b.md": "---\ndescription: about tidal ferries\n---\n# Plan\n\none two three\n",
            "c.md": "# Other\n\nfour five six\n",
        }
    )
    # Exact, relaxed, and by FTS5's own bm25.
    for query in ("tidal ferries", "tidal ferries elsewhere", '"tidal ferries"'):
        assert corpus.found(query) == ["b.md", "a.md"]
    corpus.kb.close()


# --- filters -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    """Two collections; the wanted document always ranks far below sixty others."""
    made = Corpus(tmp_path_factory.mktemp("library"))
    made.add_collection("other")
    files = {f"noise/{n}.md": "# needle\n\nneedle needle needle\n" for n in range(60)}
    body = "filler words " * 50 + "needle\n"
    files["api/2025/page.md"] = f"---\ntags: [Work/Plan]\ndate: 2025-03-01\n---\n{body}"
    files["apiary/page.md"] = f"---\ntags: [workshop]\ndate: 2024-12-31\n---\n{body}"
    files["other::api/2025/page.md"] = f"---\ntags: [play]\ndate: 2025-03-02\n---\n{body}"
    made.fill(files)
    made.kb.embed()
    yield made
    made.kb.close()


NOTES, APIARY, OTHER = "notes/api/2025/page.md", "notes/apiary/page.md", "other/api/2025/page.md"
CASES = [
    (Filters(collections=("other",)), {OTHER}),
    (Filters(collections=("other", "notes"), path="api"), {NOTES, OTHER}),
    (Filters(path="api"), {NOTES, OTHER}),
    (Filters(path="api/"), {NOTES, OTHER}),
    (Filters(path="/api/2025"), {NOTES, OTHER}),
    (Filters(path="notes/api"), {NOTES}),
    (Filters(path="qmd://notes/api"), {NOTES}),
    (Filters(path="notes/api/2025/page.md"), {NOTES}),
    (Filters(path="ap"), set()),
    (Filters(path="a%"), set()),
    (Filters(tags=("work",)), {NOTES}),
    (Filters(tags=("#WORK/plan",)), {NOTES}),
    (Filters(tags=("work", "play")), set()),
    (Filters(after="2025-03-01", before="2025-03-02"), {NOTES}),
    (Filters(after="2025-03-02", before="2026-01-01"), {OTHER}),
    (Filters(before="2025-03-01"), {APIARY} | {f"notes/noise/{n}.md" for n in range(60)}),
    (Filters(collections=("notes",), path="api", tags=("play",)), set()),
    (Filters(path="\ud800", tags=("\0", "\udfff")), set()),
]


@pytest.mark.parametrize(("filters", "expected"), CASES)
def test_filters_act_before_the_limit(
    library: Corpus, filters: Filters, expected: set[str]
) -> None:
    limit = max(1, min(len(expected), 3))
    for reply in (
        library.kb.search("needle", limit=limit, filters=filters),
        library.kb.vsearch("needle", limit=limit, filters=filters, min_score=0.0),
        library.kb.query("needle", limit=limit, filters=filters),
    ):
        files = {hit.file for hit in reply.hits}
        assert files <= expected
        assert len(files) == min(limit, len(expected))


def test_a_tag_in_the_query_and_a_filter_both_count(library: Corpus) -> None:
    reply = library.kb.search("needle tag:work", filters=Filters(collections=("other",)))
    assert reply.hits == ()


def test_an_unknown_collection_is_an_error_that_suggests_one(library: Corpus) -> None:
    for command in (library.kb.search, library.kb.vsearch, library.kb.query):
        with pytest.raises(CollectionNotFoundError) as caught:
            command("needle", filters=Filters(collections=("othr",)))
        assert caught.value.suggestions == ("other",)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_limit_outside_1_to_1000_is_an_error(library: Corpus, limit: int) -> None:
    with pytest.raises(InputError, match="between 1 and 1000"):
        library.kb.search("needle", limit=limit)


@pytest.mark.parametrize("query", ['"the"', "the red boat", "THE", "body:the"])
def test_words_in_quotes_capitals_or_a_field_say_something(corpus: Corpus, query: str) -> None:
    reply = corpus.kb.search(query)
    assert max(hit.relevance for hit in reply.hits) > judge.BY_CHANCE


def test_a_note_that_is_called_by_such_a_word_answers(tmp_path: Path) -> None:
    made = Corpus(tmp_path)
    made.fill({"About.md": "# About\n\nabout qmd\n", "x.md": "# X\n\nabout to leave\n"})
    hits = made.kb.search("about").hits
    made.kb.close()
    assert [hit.path for hit in hits] == ["About.md", "x.md"]
    assert hits[0].relevance >= judge.NAMED > judge.BY_CHANCE >= hits[1].relevance
