"""Whatever the bytes are, a converter gives a document with places, or says why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from support.archives import OFFICE, archive, epub, office, relations

from qmd.errors import IngestError
from qmd.parse.convert import (
    asciidoc,
    delimited,
    html,
    mail,
    notebook,
    opendocument,
    org,
    restructured,
    rich_text,
    subtitles,
    word,
)
from qmd.parse.convert import (
    epub as epub_files,
)
from qmd.parse.convert import office as sheets
from qmd.parse.convert import office as slides
from qmd.parse.converted import Converted
from qmd.parse.document import parse_literal

#: What means something in one of the formats.
SIGNS = st.sampled_from(
    [
        *("<main>", "</main>", "<nav>", "<div hidden>", "</div>", "<header>", "<title>", "<body>"),
        *("<p>", "</p>", "<table>", "<tr>", "<td>", "<pre>", "<code>", "<a href='x'>", "</a>"),
        "<li>",
        *("<ul>", "</ul>", "<h1>", "<dl>", "<dt>", "<dd>", "<blockquote>", "</", "<!--"),
        "&lt;", "&#0;",
        *("<math>", "<br>", "<sup>2", "<img alt='[' src=y>", "<base href='//[x'>", "&#xD800;"),
        *("* ", "** ", "#+begin_src\n", "#+end_src\n", ":END:\n", ":PROPERTIES:\n"),
        "[[x][y]]", "|---+",
        *("====\n", "----\n", "....\n", "|===\n", "|a |b\n", "= ", ":a: b\n", "::", ".. "),
        ".. code::\n",
        *("  ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", "a", "中", " ", "`", "``", "```"),
        "~~~", "\\",
        *(",", ";", '"', "1", "-", "+", "#tag", "[[x]]", "k:: v", "> ", ">>> ", "- ", "1. "),
        "+\n",
        *("00:00:01,000 --> 00:00:02,000\n", "WEBVTT\n", "From a\n", "Subject: x\n"),
        "\n\nFrom b\nA: c\n",
        *("Content-Type: text/html\n\n", "=?utf-8?q?=C3?=", "Date: 1\n", "{\\an8}", "<v A>"),
        "--- \n",
        *("Content-Type: multipart/mixed; boundary=b\n\n--b\n", "--b--\n", "\ud800", "\x0b"),
        "\u2028",
    ]
)  # fmt: skip
TEXTS = st.lists(SIGNS, max_size=40).map("".join)
BYTES = st.one_of(
    TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=200),
    TEXTS.map(lambda text: text.encode("utf-16", "surrogatepass")),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["cells", "source", "outputs", "text", "data", "text/plain", "metadata"])
        | st.sampled_from(["cell_type", "worksheets", "input", "level", "language_info", "name"]),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip
#: Parts of an office file in which XML of any kind may stand.
TAGS = st.sampled_from(
    [
        *("<w:p>", "</w:p>", "<w:t>a [b](c)", "</w:t>", "<w:tbl>", "</w:tbl>", "<w:tr>", "<w:tc>"),
        *("<w:txbxContent>", "<w:hyperlink r:id='x'>", '<w:numPr><w:ilvl w:val="²"/>', "<w:sdt>"),
        *(
            "<p:sp>",
            "<a:p>",
            "<a:t>x",
            "</a:t>",
            "</a:p>",
            "</p:sp>",
            "<a:tbl>",
            "<a:tr>",
            "<a:tc>",
        ),
        *('<row r="9999999999">', "</row>", '<c r="ZZZ1" t="s">', '<c t="d" s="-1">', "</c>"),
        *(
            "<v>1e999</v>",
            "<v>-5</v>",
            "<v>x</v>",
            "<text:p>",
            "</text:p>",
            "<text:h>",
            "</text:h>",
        ),
        *("<table:table>", "<table:table-row>", "<table:table-cell>", "<text:list>", "<text:note>"),
    ]
)
RECOVERING = etree.XMLParser(recover=True)
NAMESPACES = f'{OFFICE} xmlns:text="t" xmlns:table="tb"'


def well_formed(tags: list[str]) -> str:
    """What a tolerant parser makes of these tags, without the root."""
    root = etree.fromstring(f"<x {NAMESPACES}>{''.join(tags)}", RECOVERING)
    return "".join(etree.tostring(each, encoding="unicode") for each in root)


FORMATS: dict[str, tuple[Callable[[str, bytes], Converted], str]] = {
    "html": (html.convert, "a.html"),
    "mhtml": (html.convert, "a.mhtml"),
    "csv": (delimited.convert, "a.csv"),
    "notebook": (notebook.convert, "a.ipynb"),
    "subtitles": (subtitles.convert, "a.srt"),
    "epub": (epub_files.convert, "a.epub"),
    "message": (mail.convert, "a.eml"),
    "mailbox": (mail.convert, "a.mbox"),
    "org": (org.convert, "a.org"),
    "restructured": (restructured.convert, "a.rst"),
    "asciidoc": (asciidoc.convert, "a.adoc"),
    "word": (word.convert, "a.docx"),
    "slides": (slides.convert_slides, "a.pptx"),
    "sheets": (sheets.convert_sheets, "a.xlsx"),
    "opendocument": (opendocument.convert, "a.odt"),
    "rtf": (rich_text.convert, "a.rtf"),
}


def check(name: str, data: bytes) -> None:
    convert, path = FORMATS[name]
    try:
        converted = convert(path, data)
    except IngestError as error:
        assert str(error)
        assert error.hint
        return
    text = converted.markdown
    text.replace("\0", "").encode()
    assert "\0" not in text
    assert not text or text.endswith("\n")
    assert all(warning.endswith(".") for warning in converted.warnings)
    starts = [anchor.start_char for anchor in converted.anchors]
    assert all(0 <= start < len(text) for start in starts)
    assert all(before < after for before, after in pairwise(starts))
    assert all(start == 0 or text[start - 1] == "\n" for start in starts)
    document = parse_literal(path, converted, has_links=True)
    assert {link.kind for link in document.links} <= {"link", "image"}
    json.dumps(converted.properties)


@pytest.mark.parametrize("name", FORMATS)
@given(data=BYTES)
def test_any_bytes(name: str, data: bytes) -> None:
    check(name, data)


@given(notebook_json=JSON)
def test_any_notebook(notebook_json: Any) -> None:
    check("notebook", json.dumps(notebook_json).encode("utf-8", "surrogatepass"))


@given(body=TEXTS, title=TEXTS, at=st.integers(0, 3000), damage=st.binary(max_size=30))
def test_any_book(body: str, title: str, at: int, damage: bytes) -> None:
    parts = epub({"a.xhtml": body, "b.xhtml": f"<p>{title}</p>"}, toc={"a.xhtml": title})
    data = archive({name: str(part).encode("utf-8", "replace") for name, part in parts.items()})
    check("epub", data)
    check("epub", data[:at] + damage + data[at + len(damage) :])


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "multipart/mixed", "message/rfc822"])
@given(body=TEXTS)
def test_any_message(kind: str, body: str) -> None:
    source = f"Subject: x\nContent-Type: {kind}; boundary=b; charset=utf-8\n\n{body}"
    check("message", source.encode("utf-8", "surrogatepass"))


#: A space behind a word ends it.
RICH = st.sampled_from(
    (
        "{ { } } text \\par_ \\pard \\intbl_ \\cell_ \\row_ \\* \\fonttbl \\f1_ \\fcharset134_"
        " \\ansicpg \\'d6 \\' \\u-9 \\uc \\bin9_ \\stylesheet \\s1_ heading_1; \\outlinelevel9_"
        " \\info \\title_ \\creatim \\yr2024 \\mo5 \\dy-3 \\footnote_ \\listtext_ \\v_ \\v0_ "
        "\\pict_ #_ \\~ \\u0_ \\uc-1_ \\cpg65001_ \\upr \\ud_ \\ \0"
    )
    .replace("_", "\x1f")
    .split(" ")
).map(lambda word: word.replace("\x1f", " "))


@given(words=st.lists(RICH, max_size=40))
def test_any_rich_text(words: list[str]) -> None:
    check("rtf", ("{\\rtf1" + "".join(words)).encode())


@given(tags=st.lists(TAGS, max_size=25))
def test_any_office_file(tags: list[str]) -> None:
    inside = well_formed(tags)
    root = f"<x {NAMESPACES}>{{}}</x>"
    link = {"x": ("slide", "part.xml"), "y": ("worksheet", "part.xml")}
    parts = {
        "part.xml": root.format(inside),
        "_rels/main.xml.rels": relations(link),
        "_rels/part.xml.rels": relations(link),
    }
    document = root.format(f"<w:body>{inside}</w:body>")
    check("word", office("main.xml", {"main.xml": document, **parts}))
    listed = '<sldIdLst><sldId r:id="x"/></sldIdLst><sheets><sheet name="S" r:id="y"/></sheets>'
    for name in ("slides", "sheets"):
        check(name, office("main.xml", {"main.xml": root.format(listed), **parts}))
    for kind in ("text", "spreadsheet", "presentation"):
        content = root.format(f"<body><{kind}>{inside}</{kind}></body>")
        check("opendocument", archive({"content.xml": content}))
