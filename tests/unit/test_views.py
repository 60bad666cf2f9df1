"""Views: tables of notes by their properties, in the three forms that describe them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from support.cli import Scratch

from qmd import KnowledgeBase
from qmd.errors import InputError, NotFoundError
from qmd.render import Options, render_note
from qmd.search.views.expressions import parse
from qmd.server.page.links import PageLinks
from tests.support.postgres import PostgresServer

TODAY = date.today()
NOTES = {
    "books/Dune.md": "---\ntags: [book/fiction]\nrating: 5\nauthor: '[[Frank Herbert]]'\n"
    "topics: ['[[Sand|sand]]', '[[Spice]]']\nread: 2026-03-01\n---\n# Dune\n\n[[Sand]]\n",
    "books/Emma.md": "---\ntags: [book]\nrating: 4\nauthor: Jane Austen\nread: 2025-12-31\n---\n",
    "books/Draft.md": "---\ntags: [book, draft]\nstatus: to | do\n---\n",
    "people/Frank Herbert.md": "---\nborn: 1920-10-08\n---\n[[Dune]] and [[Sand]] write\n",
    "Sand.md": f"Nothing.\n\ndue:: {TODAY - timedelta(days=3)}\n",
    "days/2026-11-20.md": "---\nmood: good\n---\n",
    "own.md": "# Mine\n\n```qmd\nname: Good ones\nfrom: books\nwhere: rating >= 4\n"
    "columns: title, rating, author as By\nsort: -rating\n```\n\n"
    "~~~dataview\nLIST FROM [[Sand]]\n~~~\n\n```python\n```qmd\n```\n",
    "base.md": '```base\nfilters:\n  and:\n    - file.hasTag("book")\n    - not:\n'
    '        - file.hasTag("draft")\nformulas:\n  Twice: rating * 2\nproperties:\n'
    "  formula.Twice:\n    displayName: Double\nviews:\n  - type: table\n    name: All\n"
    "    order: [file.name, formula.Twice]\n    sort:\n      - property: read\n"
    "        direction: DESC\n  - type: table\n    name: Not mine\n"
    "    filters: list(author).contains(this)\n```\n",
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def kb(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("views")
    for name, text in NOTES.items():
        path = folder / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    location: object = folder / "index.sqlite"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        location = server.migrated()
    with KnowledgeBase.open(location, create=True) as kb:  # type: ignore[arg-type]
        kb.add_collection(folder / "notes", name="notes")
        kb.index()
        yield kb


def cells(kb: KnowledgeBase, text: str) -> list[list[str]]:
    (view,) = kb.views(text=text).views
    assert not view.problem
    return [list(row.cells) for row in view.rows]


def first_cells(kb: KnowledgeBase, text: str) -> list[str]:
    return [row[0].rpartition("|")[2].rstrip("]") for row in cells(kb, text)]


def test_a_query_of_dataview_is_a_table(kb: KnowledgeBase) -> None:
    (view,) = kb.views(
        text='TABLE rating AS "Stars", author, read\nFROM #book AND -#draft\n// only read\n'
        "WHERE rating\nSORT rating DESC\nLIMIT 5"
    ).views
    assert view.columns == ("File", "Stars", "author", "read")
    assert [row.cells for row in view.rows] == [
        ("[[books/Dune|Dune]]", "5", "[[Frank Herbert]]", "2026-03-01"),
        ("[[books/Emma|Emma]]", "4", "Jane Austen", "2025-12-31"),
    ]
    assert view.markdown.splitlines() == [
        "| File | Stars | author | read |",
        "| --- | --- | --- | --- |",
        "| [[books/Dune\\|Dune]] | 5 | [[Frank Herbert]] | 2026-03-01 |",
        "| [[books/Emma\\|Emma]] | 4 | Jane Austen | 2025-12-31 |",
    ]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('"books"', ["Draft", "Dune", "Emma"]),
        ('"books/Dune"', ["Dune"]),
        ('"people" OR #book/fiction', ["Dune", "Frank Herbert"]),
        ('"books" AND !#draft', ["Dune", "Emma"]),
        ("[[Sand]]", ["Dune", "Frank Herbert"]),
        ('[[Sand]] AND "books"', ["Dune"]),
    ],
)
def test_a_source_is_a_folder_a_tag_or_a_link(
    kb: KnowledgeBase, source: str, names: list[str]
) -> None:
    assert first_cells(kb, f"LIST FROM {source}") == names


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("rating > 4", ["Dune"]),
        ('rating = 4 or file.name == "Dune"', ["Dune", "Emma"]),
        ("read >= date(2026-01-01)", ["Dune"]),
        ('read < date("2026-01-01")', ["Emma"]),
        ("due < date(today) and date(today) - due < dur(1 week)", ["Sand"]),
        ("due < today() - '2d'", ["Sand"]),
        ("contains(author, [[Frank Herbert]])", ["Dune"]),
        ("topics.contains(link('Spice'))", ["Dune"]),
        ("contains(topics, [[Nothing]])", []),
        ('author.lower().startsWith("jane")', ["Emma"]),
        ('contains(file.tags, "draft")', ["Draft"]),
        ('!author.isEmpty() && !file.inFolder("people")', ["Dune", "Emma"]),
        ("mood", ["2026-11-20"]),
        ("file.day = date(2026-11-20)", ["2026-11-20"]),
        ("born.year = 1920", ["Frank Herbert"]),
        ("length(topics) = 2", ["Dune"]),
        ("(rating + 1) * 2 = 12", ["Dune"]),
        ("rating / 0", []),
        ('if(rating > 4, "yes", "") = "yes"', ["Dune"]),
        ("file.hasLink('Dune')", ["Frank Herbert"]),
        ('status = "to | do"', ["Draft"]),
        ('file.folder = "days"', ["2026-11-20"]),
    ],
)
def test_conditions(kb: KnowledgeBase, condition: str, names: list[str]) -> None:
    assert first_cells(kb, f"LIST WHERE {condition} SORT file.name") == names


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("read - date(2026-02-27)", "2 days"),
        ("read + dur(1 day)", "2026-03-02"),
        ('dateformat(read, "dd.MM.yyyy")', "01.03.2026"),
        ('read.format("D MMM YYYY")', "1 Mar 2026"),
        ("join(topics, ' / ')", "[[Sand|sand]] / [[Spice]]"),
        ("topics[1]", "[[Spice]]"),
        ("default(nothing, 'none')", "none"),
        ("round(rating / 3, 2)", "1.67"),
        ("'a' + rating", "a5"),
        ("choice(rating, rating, 0) + 0.5", "5.5"),
        ("[1, 2] + 3", "1, 2, 3"),
        ("nothing.more.of(it)", ""),
        ("file.links", "[[Frank Herbert]], [[Sand]], [[Spice]], [[Sand]]"),
        ("length(file.outlinks)", "4"),
    ],
)
def test_columns_are_computed(kb: KnowledgeBase, expression: str, text: str) -> None:
    query = f"TABLE WITHOUT ID {expression} WHERE file.name = 'Dune'"
    if ".of(" in expression:
        (view,) = kb.views(text=query).views
        assert "no function of" in view.problem
    else:
        assert cells(kb, query) == [[text]]


def test_a_note_has_views_of_qmd_and_of_dataview(kb: KnowledgeBase) -> None:
    own, linking = kb.views("own").views
    assert (own.name, own.line, own.columns) == ("Good ones", 3, ("title", "rating", "By"))
    assert [row.cells for row in own.rows] == [
        ("[[books/Dune|Dune]]", "5", "[[Frank Herbert]]"),
        ("[[books/Emma|Emma]]", "4", "Jane Austen"),
    ]
    assert [row.file for row in linking.rows] == [
        "notes/books/Dune.md",
        "notes/people/Frank Herbert.md",
    ]


def test_a_base_has_several_views(kb: KnowledgeBase) -> None:
    every, mine = kb.views("base").views
    assert (every.name, every.columns) == ("All", ("file.name", "Double"))
    assert [row.cells for row in every.rows] == [
        ("[[books/Dune|Dune]]", "10"),
        ("[[books/Emma|Emma]]", "8"),
    ]
    assert (mine.name, mine.total) == ("Not mine", 0)


@pytest.mark.parametrize(
    ("sort", "names"),
    [("rating", ["Emma", "Dune", "Draft"]), ("-rating", ["Dune", "Emma", "Draft"])],
)
def test_without_the_value_it_comes_last(kb: KnowledgeBase, sort: str, names: list[str]) -> None:
    (view,) = kb.views(text=f"tags: book\nsort: {sort}").views
    assert [Path(row.file).stem for row in view.rows] == names


def test_a_view_has_words_groups_and_a_limit(kb: KnowledgeBase) -> None:
    assert first_cells(kb, "query: write\ncolumns: file.name") == ["Frank Herbert"]
    (view,) = kb.views(text="tags: book\ngroup: default(rating, 'none')\nsort: file.name").views
    assert [(row.group, row.file) for row in view.rows] == [
        ("none", "notes/books/Draft.md"),
        ("5", "notes/books/Dune.md"),
        ("4", "notes/books/Emma.md"),
    ]
    assert view.markdown.startswith(
        "**none**\n\n| File |\n| --- |\n| [[books/Draft\\|Draft]] |\n\n**5**"
    )
    (view,) = kb.views(text="TABLE rows.file.name FROM #book GROUP BY rating", limit=2).views
    assert ([row.group for row in view.rows], view.total) == (["4", "5"], 3)
    assert view.markdown.endswith("… 1 more\n")


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("qmd\ngroup: status\nsort: k", ["b", "b", "a", "–", "–"]),
        ("qmd\ngroup: status\nsort: -status", ["b", "b", "a", "–", "–"]),
        ("qmd\ngroup: status", ["a", "b", "b", "–", "–"]),
        ("base\nviews:\n  - groupBy: status\n    sort: [{property: k}]", ["a", "b", "b", "–", "–"]),
        (
            "base\nviews:\n  - groupBy: {property: status, direction: DESC}\n"
            "    sort: [{property: k}]",
            ["b", "b", "a", "–", "–"],
        ),
        ("dataview\nTABLE k GROUP BY status SORT k", ["b", "b", "a", "–", "–"]),
    ],
)
def test_the_group_without_a_value_is_the_last(
    tmp_path: Path, text: str, groups: list[str]
) -> None:
    statuses = ("status: b", "", "status: a", "status: []", "status: b")
    for k, status in enumerate(statuses):
        (tmp_path / f"{k}.md").write_text(f"---\nk: {k}\n{status}\n---\n# {k}\n")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(tmp_path, name="n")
        (tmp_path / "view.md").write_text(f"---\nk: 9\nstatus: c\n---\n```{text}\n```\n")
        kb.index()
        (view,) = kb.views("view").views
        rows = [row for row in view.rows if row.file != "n/view.md"]
        assert [row.group for row in rows] == groups
        assert [row.file for row in rows][-2:] == ["n/1.md", "n/3.md"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("TASK FROM #x", "TABLE and LIST"),
        ("TABLE FLATTEN topics", "FLATTEN"),
        ("TABLE rating WHERE", "ends too early"),
        ("TABLE rating WHERE rating > {", "cannot be read"),
        ("TABLE file.inlinks", "does not know file.inlinks"),
        ("TABLE eval('1')", "no function eval"),
        ("where: [", "no valid YAML"),
        ("colour: red", "no key 'colour'"),
        ("- a", "written in YAML"),
        ("limit: 0", "above 0"),
        ("where: " + "(" * 300, "at most 200 signs"),
        ("where: " + "1+" * 300 + "1", "at most 200 signs"),
        ("columns: " + "a," * 50, "at most 30 columns"),
        ("x" * 60_000, "at most 50,000 characters"),
    ],
)
def test_what_cannot_be_shown_is_told(kb: KnowledgeBase, text: str, problem: str) -> None:
    (view,) = kb.views(text=text).views
    assert problem in view.problem and not view.rows
    assert view.markdown.startswith("> [!warning] ")


def test_a_command_whose_view_cannot_be_shown_fails(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    note = scratch.write("notes/a.md", "```qmd\nlimit: 1\n```\n\n```dataview\nTASK\n```\n")
    scratch.ok("collection", "add", str(note.parent))
    scratch.ok("index", "--no-embed")
    shown = scratch.ok("view", "a").out
    assert "[[a" in shown and "TABLE and LIST" in shown
    assert scratch.call("view", "TASK").code == 1


def test_a_note_without_views_is_an_error(kb: KnowledgeBase) -> None:
    with pytest.raises(NotFoundError, match="has no view"):
        kb.views("Sand")
    with pytest.raises(InputError, match="Name a note"):
        kb.views()
    with pytest.raises(InputError, match="Name a note"):
        kb.views("own", text="LIST")


def test_a_file_of_a_base_is_read(kb: KnowledgeBase) -> None:
    path = Path(kb.collections()[0].path, "Books.base")
    path.write_text("views:\n  - order: [rating]\n    filters: rating > 4\n", encoding="utf-8")
    kb.index()
    (view,) = kb.views("notes/Books.base").views
    assert [row.cells for row in view.rows] == [("5",)]
    html = render_note("![[Books.base]]", PageLinks(kb, "notes/own.md")).html
    assert "<td>5</td>" in html


def test_a_text_of_digits_is_a_number_where_the_parser_says_so(tmp_path: Path) -> None:
    for name, value in (("text", "02134"), ("quoted", "'2134'"), ("number", 2134), ("word", "x")):
        (tmp_path / f"{name}.md").write_text(f"---\nzip: {value}\n---\n{name}\n")
    numbers = ["number", "quoted"]
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(tmp_path, name="n")
        kb.index()
        for condition, names in (
            ("zip > 2000", numbers),
            ("zip <= 2134", numbers),
            ("zip = 2134", numbers),
            ('zip = "02134"', ["text"]),
            ("zip", ["number", "quoted", "text", "word"]),
        ):
            assert first_cells(kb, f"LIST WHERE {condition} SORT file.name") == names
        for condition, names in (
            ("zip:2134", numbers),
            ("zip:>2000", numbers),
            ("zip:02134", ["text"]),
        ):
            hits = kb.search(condition).hits
            assert sorted(Path(hit.file).stem for hit in hits) == names
        (kinds,) = (each.kinds for each in kb.properties() if each.key == "zip")
        assert kinds == {"number": 2, "text": 2}


def test_the_page_shows_the_tables_of_a_note(kb: KnowledgeBase) -> None:
    links = PageLinks(kb, "notes/own.md")
    html = render_note(NOTES["own.md"], links, Options(may_tick=True)).html
    assert '<div data-line="3">' in html and "<th>rating</th>" in html
    assert '<a class="to-note" href="/note/notes/books/Dune.md"' in html
    assert "where: rating" not in html and 'title="python"' in html  # it has another in it
    code = "```dataview\nTASK\n```\n\n```qmd\ncolumns: <b>\n```\n"
    html = render_note(code, links).html
    assert html.count("callout-warning") == 2 and "<b>" not in html
    many = render_note("```qmd\nfrom: books\n```\n" * 12, links).html
    assert many.count("<table>") == 10


def test_code_of_a_page_or_a_mail_is_no_view(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        '<p>x</p><pre><code class="language-qmd">from: notes\nwhere: true</code></pre>'
    )
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(tmp_path, name="notes", mask="**/*.html")
        kb.index()
        assert "```qmd" in kb.get("page").text
        with pytest.raises(NotFoundError):
            kb.views("page")
        for file in ("notes/page.html", "notes/mail.eml"):
            assert PageLinks(kb, file).view("qmd", "where: true") is None


def test_the_work_of_a_view_is_bounded(kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmd.search.views.computing.MAX_STEPS", 100)
    (view,) = kb.views(text="LIST WHERE " + " + ".join("1" * 60)).views
    assert "takes too long" in view.problem


def test_formulas_do_not_nest_without_end(kb: KnowledgeBase) -> None:
    names = [f"f{number}" for number in range(90)]
    formulas = "".join(
        f"  {name}: formula.{after}{'+1' * 60}\n"
        for name, after in zip(names, [*names[1:], "f0"], strict=True)
    )
    text = f"formulas:\n{formulas}views:\n  - order: [formula.f0]\n"
    (view,) = kb.view_of_block("notes/own.md", "base", text, limit=3)
    assert view.problem == "This view nests too deep."
    text = "formulas:\n  a: formula.b + 1\n  b: formula.a + 1\nviews:\n  - order: [formula.a]\n"
    (view,) = kb.view_of_block("notes/own.md", "base", text, limit=1)
    assert view.rows[0].cells == ("",)


def test_signs_bind_as_usual() -> None:
    assert parse("a or b and not c = 1 + 2 * -3") == parse(
        "(a) || ((b) && (!((c) == (1 + (2 * (-3))))))".replace("==", "=")
    )
