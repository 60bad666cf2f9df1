"""RTF as Markdown."""

from __future__ import annotations

import pytest

from qmd.errors import DamagedFileError
from qmd.parse.convert.rich_text import MAX_DEPTH, convert
from qmd.parse.converted import Converted


def converted(body: str, head: str = r"\ansi\ansicpg1252\deff0") -> Converted:
    return convert("a.rtf", rf"{{\rtf1{head} {body}}}".encode("latin-1"))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"one {\b two}\par three\par", "one two\n\nthree\n"),
        ("one\\\r\ntwo \\{\\}\r\n", "one\n\ntwo {}\n"),
        (
            r"caf\'e9, \u8364?5, \uc2\u20013\'d6\'d0x, \uc0\u-10179 \u-8704 y",
            "café, €5, 中x, 😀y\n",
        ),
        (r"\ldblquote q\rdblquote\emdash a\~b", "“q”—a\xa0b\n"),
        (r"{\*\generator X}{\header head}{\pict 00ff}{\bin3 \}}seen", None),
        (r"a{\v hidden}{\deleted gone}b", "ab\n"),
        (r"{\field{\*\fldinst HYPERLINK x}{\fldrslt here}}", "here\n"),
        (r"{\upr{ansi}{\*\ud{unicode}}}", "unicode\n"),
        (r"{\shp{\*\shpinst{\sp{\sn n}{\sv v}}{\shptxt box\par}}}", "box\n"),
        (r"text{\footnote a\par note}\par", "text\n\na note\n"),
        (r"{\listtext 1.\tab}one\par{\listtext 2.\tab}two\par", "1. one\n1. two\n"),
        (r"{\pntext\'b7\tab}one\par{\pntext\'b7\tab}two\par", "- one\n- two\n"),
        (
            r"\trowd\pard\intbl name\cell age\cell\row\pard\intbl Ada\cell 36\cell\row\pard end",
            "| name | age |\n|---|---|\n| Ada | 36 |\n\nend\n",
        ),
        (r"\pard\intbl framed\cell\row", "framed\n"),
        (r"# no heading\par #tag\par", "\\# no heading\n\n#tag\n"),
        ("", ""),
    ],
)
def test_text(body: str, text: str | None) -> None:
    assert converted(body).markdown == ("seen\n" if text is None else text)


def test_headings_are_those_of_styles_and_of_the_outline() -> None:
    body = (
        r"{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 Big;}{\s2 heading 2;}{\*\cs3 heading 3;}}"
        r"\pard\s1 One\par\pard text\par\pard\s2 Two\par\pard\outlinelevel2 Three\par"
    )
    text = converted(body)
    assert text.markdown == "# One\n\ntext\n\n## Two\n\n### Three\n"
    assert text.title == "One"


def test_what_is_known_of_the_document() -> None:
    body = r"{\info{\title A \'e9 title}{\author Ada}{\creatim\yr2024\mo5\dy3\hr1}{\company X}}text"
    text = converted(body)
    assert (text.title, text.date, text.properties) == (
        "A é title",
        "2024-05-03",
        {"author": "Ada"},
    )
    assert text.markdown == "text\n"
    assert converted(r"{\info{\creatim\yr2023\mo2\dy29}}text").date is None


def test_bytes_have_the_encoding_of_their_font() -> None:
    fonts = r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset134 SimSun;}{\f2\fcharset204 X;}}"
    body = rf"{fonts}\f1\'d6\'d0\'ce\'c4 \f2\'ef\f0\'e9"
    assert converted(body).markdown == "中文 пé\n"
    assert converted(r"\'d6\'d0", r"\ansi\ansicpg936").markdown == "中\n"
    assert converted(r"\'e9", r"\ansi\ansicpg99999").markdown == "é\n"


@pytest.mark.parametrize(
    "data", [b"", b"text", b"{\\html}", b"{\\rtf1" + b"{" * MAX_DEPTH], ids=range(4)
)
def test_what_is_no_rtf_is_told(data: bytes) -> None:
    with pytest.raises(DamagedFileError, match=r"no RTF document|groups inside each other"):
        convert("a.rtf", data)


def test_a_file_that_is_cut_off_keeps_its_text() -> None:
    assert convert("a.rtf", rb"{\rtf1 {\b one} two\u20013").markdown == "one two中\n"
    assert convert("a.rtf", rb"{\rtf1 one\cell two\cell\row {three").markdown.endswith("three\n")
