"""
No text stalls a parser: four times the text takes about four times the CPU.

Every parser of text that others may have written gets half of the units of `tests.support.growth`
(the slow ones an eighth), each in one shape; at night every unit in every shape.
`tests/fuzz/growth.py` tries many more, by hand.
"""

from __future__ import annotations

import functools
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from qmd.agent import parser as agent
from qmd.agent.citations import CitedLines, check_answer, marked_answer
from qmd.agent.executor import Reading
from qmd.errors import QmdError
from qmd.files.edits.diff import merge, short_diff
from qmd.files.edits.note_editor import edited
from qmd.files.edits.operations import replace_all
from qmd.files.posts import Literal
from qmd.inference import replies
from qmd.ingest.parse_file import new_document
from qmd.ingest.patterns import IgnoreFile, compile_mask, parse_ignore_lines
from qmd.parse.convert.in_note import inert_markdown
from qmd.parse.dates import find_date
from qmd.parse.decode import decode
from qmd.parse.document import parse
from qmd.parse.formats import CANVAS, FORMATS, MARKDOWN, RICH_TEXT, FileFormat
from qmd.parse.frontmatter import split
from qmd.parse.links import link_spans
from qmd.parse.notation import find_tags
from qmd.parse.photo.standards import decoded, read_xmp
from qmd.parse.sections import block, block_ids, heading_path, outline_of, section
from qmd.parse.segment import phrase_tokens
from qmd.render import NoLinks, render_note
from qmd.search import query as language
from qmd.search import question, words
from qmd.search.lookup.link_targets import LinkedFiles
from qmd.search.present import make_snippet, needles, splitter
from qmd.search.query import loose_parts
from qmd.server.page.history import diff_rows
from qmd.server.page.note_text import parts_of, shown_plain
from qmd.store.sql.links import NamedFile
from qmd.values import FileState
from qmd.values.properties import parse_filter, property_rows
from qmd.values.writing import NoteEdit
from tests.support import growth

pytestmark = pytest.mark.unmeasured

TEXT = "Some words 数据库 and a-b c++ “quoted” (a) [x] tag:b - OR * lines\n" * 50
RDF = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description '
STATE = FileState(0, 0, 0, 0)


def index(data: bytes, file_format: FileFormat = MARKDOWN) -> None:
    """All that is done with a file before it meets the database."""
    path = "a" + next(iter(file_format.suffixes), ".md")
    with_errors(lambda: new_document(path, parse(file_format, path, data), "0" * 64, STATE))


def with_errors(work: Callable[[], object]) -> None:
    try:
        work()
    except QmdError as error:
        assert str(error)


def file_of(file_format: FileFormat) -> Callable[[str], None]:
    return lambda text: index(text.encode(), file_format)


def rich_text(text: str) -> None:
    index(b"{\\rtf1 " + text.encode(), RICH_TEXT)


def latin_note(text: str) -> None:
    index(b"caf\xe9 menu " + text.encode("latin-1", "replace"))


def latin_end(text: str) -> None:
    with_errors(lambda: decode(text.encode("latin-1", "replace") + b"\ncaf\xe9"))


def damaged(text: str) -> None:
    with_errors(lambda: decode(b"\xff" + text.encode()))


def encoded(text: str, beginning: str, encoding: str) -> None:
    data = (beginning * 4).encode(encoding) + text.encode(encoding, "replace")
    with_errors(lambda: decode(data))


def frontmatter(text: str, around: str) -> None:
    fence = "+++" if " = " in around or around.startswith("[") else "---"
    front = split(f"{fence}\n{around.replace('…', text)}\n{fence}\nbody\n").properties
    find_date(front), find_tags("", (), front), property_rows(front)


def query(text: str) -> None:
    parsed = language.parse_string.__wrapped__(text)
    make_snippet(TEXT, 0, needles(parsed))
    splitter(text)(TEXT)
    question.parse_lines(text)
    language.parse_string.__wrapped__(text, language.possible_keys(text))
    with_errors(lambda: parse_filter(text)), with_errors(lambda: parse_filter(f"a:{text}"))
    property_rows({text: text})
    for term in parsed.terms:
        loose_parts(term), phrase_tokens(term.text), words.pattern(term.text)


def searched_text(text: str) -> None:
    folded = words.raw_text(text)
    for asked in ('"a a"', "aa b*", "中文 数据", "[[ -x", '"- -"'):
        wanted = needles(language.parse_string(asked))
        make_snippet(text, 0, wanted)
        make_snippet(text, 0, wanted, (len(text) // 2, len(text) // 2 + 9))
        make_snippet(text, len(text) // 2, {}, keys=("a", "b.c"))
        splitter(asked)(text)
        words.holds(folded, words.pattern(asked.strip('"')))


def posts_literal(text: str) -> None:
    for asked in ("aa", "a", "中", "ß", " ", "ss", text):
        literal = Literal(asked)
        literal.lines(text.encode()), literal.spans(text)


def tool_blocks(text: str) -> None:
    agent.parse(text)
    agent.parse("```json:tool\n" + text)
    agent.parse('```json:tool\n{"tool": "' + text + "\n```")


def reply(text: str) -> None:
    message = {"choices": [{"message": {"content": text}}]}
    for read in (
        lambda: replies.expansions(text, "query", 5),
        lambda: replies.scores(text, 3),
        lambda: replies.chat_text(message),
    ):
        with_errors(read)


def ignore_lines(text: str) -> None:
    file = IgnoreFile(parse_ignore_lines(text, ".gitignore", ".gitignore"))
    for path in ("a/b/c.md", "a" * 200, "x/" * 100 + "y.md", "中文/文.md"):
        file.match(path, path.rpartition("/")[2], False)


def ignored_path(text: str) -> None:
    patterns = "a*a*a*a*b\n**/a/**/b\n[a-z]*[0-9]*x\n*中*文*\n?*?*?*z\na/**/b/**/c/**/d\n"
    file = IgnoreFile(parse_ignore_lines(patterns, ".gitignore", ".gitignore"))
    file.match(text, text.rpartition("/")[2], False)


def link_paths(text: str) -> None:
    """As many files with one name as lines, and a link to that name beside each of them."""
    files = LinkedFiles()
    folders = [f"{line}/{number}" for number, line in enumerate(text.split("\n"))]
    files.add(NamedFile(f"{folder}/readme.md", None) for folder in folders)
    for folder in folders:
        for path in ("readme", "../readme", f"{folder[-20:]}/readme"):
            files.find(path, f"{folder}/index.md")
    files.find(text, "a/b.md")


def mask(text: str) -> None:
    def match() -> None:
        matches = compile_mask(text)
        for path in ("a/b/c.md", "a" * 200, "x/" * 100 + "y.md"):
            matches(path, path.rpartition("/")[2])

    with_errors(match)


def xmp(text: str) -> None:
    read_xmp(RDF + text.encode())
    read_xmp(RDF + b">" + text.encode())


def photo_text(text: str) -> None:
    decoded(b"\xe9 " + text.encode("latin-1", "replace"))


def linked_parts(text: str) -> None:
    link_spans(text), outline_of(text), block_ids(text)
    for name in (text[:50], "a", "x"):
        section(text, heading_path(name)), section(text, ["a", "a", name]), block(text, name)


def edits(text: str) -> None:
    for action, fields in (
        ("replace", {"old": text[:40], "text": "x"}),
        ("replace", {"old": text[-40:] + "x", "text": "x"}),
        ("replace_section", {"heading": "a", "text": text}),
        ("append", {"text": text}),
        ("prepend", {"text": text}),
        ("tick", {"old": text[:40]}),
        ("set_property", {"property": "a", "value": text}),
    ):
        edit = NoteEdit(action, **fields)  # type: ignore[arg-type]
        for note in (f"# a\n{text}", f"---\n{text}\n---\n", f"---\na: {text}\n---\n"):
            with_errors(functools.partial(edited, note, edit))
    short_diff(text, f"{text}x{text}")
    inert_markdown(text)
    merge(text, f"{text}x{text}", text.replace("a", "b"))
    replace_all(f"{text}\r\n{text}", text[::-1].replace("\r", "\n"))


def canvas(text: str) -> None:
    kinds = [{"type": kind, key: text} for kind, key in (("text", "text"), ("group", "label"))]
    small = [{"type": "text", "text": part, "x": n} for n, part in enumerate(text.split("\n"))]
    data = json.dumps({"nodes": [*kinds, *small], "edges": [{"label": text}]}).encode()
    index(data, CANVAS)


def rendered(text: str) -> None:
    """A note, and what takes rules of ours: formulas, its own HTML, comments, footnotes."""
    render_note(f"{text}\n\n```python\n{text[:500]}\n```\n\n$$ {text[:500]} $$", NoLinks())


def cited_answer(text: str) -> None:
    """An answer with citations whose documents say what the text says."""
    # Without the end, so that a claim of any length is compared word by word.
    source = CitedLines("a/b.md", "A", text[:-1][:4000], 9)
    reading = Reading({"a/b.md": [(1, 9)]})
    answer = f"{text} [a/b.md:1]。{text}[a/b.md:2-3; a/c.md:1]"
    checked = check_answer(answer, reading, lambda *place: source, lambda claim, lines: 0.5)
    marked_answer(answer, checked, strict=True)


def page_text(text: str) -> None:
    """What the page adds to a text that is shown, and the difference of two."""
    shown_plain(text, lines=(2, 9), number=1)
    parts_of(text * 200)
    diff_rows(text, f"{text}x{text}")
    diff_rows(text, text.replace("a", "b") + "\n")


def encoded_as(beginning: str, encoding: str) -> Any:
    return functools.partial(encoded, beginning=beginning, encoding=encoding)


def frontmatter_with(around: str) -> Any:
    return functools.partial(frontmatter, around=around)


Shape = Callable[[str, int], str]

ALL, PLAIN, FEW = growth.SHAPES, growth.PLAIN_SHAPES, (growth.line, growth.lines, growth.unfinished)
#: The parser, how many characters it is first given, and in which shapes.
PARSERS: dict[str, tuple[Callable[[str], None], int, Sequence[Shape]]] = {
    **{
        f"{file_format.name} file": (file_of(file_format), 2_000, ALL)
        for file_format in (MARKDOWN, *FORMATS)
        if not file_format.reads_parts
    },
    "RTF file that begins as one": (rich_text, 2_000, ALL),
    "Markdown file in Latin-1": (latin_note, 2_000, FEW),
    "decode Latin-1": (latin_end, 4_000, FEW),
    "decode damaged": (damaged, 4_000, FEW),
    **{
        f"decode {encoding}": (encoded_as(beginning, encoding), 4_000, FEW)
        for beginning, encoding in (
            ("中文文本测试。\n", "gb18030"),
            ("中文文本測試。\n", "big5"),
            ("日本語のテキスト。\n", "cp932"),
            ("日本語のテキスト。\n", "euc_jp"),
            ("日本語のテキスト。\n", "iso2022_jp"),
            ("한국어 텍스트\n", "euc_kr"),
            ("Кириллица\n", "cp1251"),
            ("text\n", "utf-16"),
        )
    },
    **{
        f"frontmatter {around}": (frontmatter_with(around), 4_000, FEW)
        for around in (
            *("…", "a: …", "a: x…: b: c", "a: [ … ]", "a: { …", 'a: "…"', "a: '…", "a: |\n  …"),
            *("# …\n[", "date: '…'", "tags: …", "tags: […]"),
            *("a = …", 'a = "…"', "a = [ …", "[…]", "… = 1"),
        )
    },
    "query": (query, 500, FEW),
    "searched text": (searched_text, 600, FEW),
    "posts literal": (posts_literal, 1_500, FEW),
    "tool blocks": (tool_blocks, 3_000, PLAIN),
    "reply": (reply, 3_000, PLAIN),
    "ignore lines": (ignore_lines, 1_000, FEW),
    "ignored path": (ignored_path, 1_000, PLAIN),
    "link paths": (link_paths, 1_000, (growth.line, growth.lines, growth.numbered)),
    "mask": (mask, 500, FEW),
    "linked parts": (linked_parts, 2_000, FEW),
    "edits": (edits, 1_000, FEW),
    "canvas cards": (canvas, 2_000, FEW),
    "rendered note": (rendered, 1_000, (growth.line, growth.lines)),
    "text of the page": (page_text, 1_000, FEW),
    "cited answer": (cited_answer, 1_000, FEW),
    "XMP": (xmp, 8_000, PLAIN),
    "photo text": (photo_text, 4_000, FEW),
}


#: These call many functions for each text, or one for each word of it.
MANY_CALLS = (
    "query",
    "searched text",
    "posts literal",
    "tool blocks",
    "linked parts",
    "edits",
    "rendered note",
    "cited answer",
    "text of the page",
)


def too_slow(name: str, texts: Iterable[tuple[Shape, str]]) -> dict[str, str]:
    """Each text, a unit in a shape, whose CPU time grows with more than its length: how."""
    parser, size, _ = PARSERS[name]
    most = 0.1 if name in MANY_CALLS else 0.02  # a busy machine takes twice as long
    most *= 2 if sys.version_info < (3, 11) else 1  # 3.10 takes up to half as long again
    slow = {}
    for shape, unit in texts:
        problem = growth.problem(parser, functools.partial(shape, unit), size, most_per_kb=most)
        if problem is not None:
            slow[f"{shape.__name__} of {unit!r}"] = problem
    return slow


#: With these a unit takes ten times as long as with the others, or longer.
SLOW = (
    *("code file", "AsciiDoc file", "reStructuredText file", "canvas cards", "linked parts"),
    *("edits", "query", "link paths", "rendered note", "text of the page", "cited answer"),
)


@pytest.mark.parametrize("name", PARSERS)
def test_four_times_the_text_takes_about_four_times_the_cpu(name: str) -> None:
    """Every other unit (of the slow ones, every eighth) in one of the shapes."""
    shapes = PARSERS[name][2]
    step = 8 if name in SLOW else 2
    units = growth.UNITS[list(PARSERS).index(name) % step :: step]
    assert not too_slow(name, zip(itertools.cycle(shapes), units, strict=False))


@pytest.mark.nightly
@pytest.mark.parametrize("name", PARSERS)
def test_it_does_so_with_each_unit_in_each_shape(name: str) -> None:
    assert not too_slow(name, itertools.product(PARSERS[name][2], growth.UNITS))


@pytest.mark.parametrize("text", ["[" * 4_000, "![" * 2_000, "[" * 3_900 + "]" * 100])
def test_a_row_of_brackets_takes_as_few_steps_as_other_signs(text: str) -> None:
    render_note(text, NoLinks())
    steps = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal steps
        steps += event == "call"

    sys.setprofile(count)
    try:
        render_note(text, NoLinks())
    finally:
        sys.setprofile(None)
    assert steps < 60 * len(text)


@pytest.mark.parametrize(
    "unit",
    [
        *(pytest.param(unit, marks=pytest.mark.nightly) for unit in ("$$ a\n", "^[a")),  # 1 to 3 s
        *("[^1]: ", "<div>", "<b id=1>", "<!--", "%%\n"),
    ],
)
def test_what_only_a_rendered_note_has_takes_linear_time(unit: str) -> None:
    for shape in (growth.line, growth.paragraphs):
        make = functools.partial(shape, unit)
        assert growth.problem(rendered, make, 6_000, most_per_kb=0.1) is None
