"""CSV, notebooks and subtitles as Markdown, with the places that hits name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from qmd.errors import DamagedFileError, DecodeError
from qmd.parse.chunk import MAXIMUM
from qmd.parse.convert import delimited, notebook, subtitles
from qmd.parse.convert.blocks import column_name
from qmd.parse.document import parse_literal


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("a,b\n1,2\n", "| a | b |\n|---|---|\n| 1 | 2 |\n"),
        ("名称;数\n面;3,5\n盐;0,1\n", "| 名称 | 数 |\n|---|---|\n| 面 | 3,5 |\n| 盐 | 0,1 |\n"),
        ('a\tb\n"x\ny|z"\t#2\n', "| a | b |\n|---|---|\n| x y\\|z | #2 |\n"),
        ("1,2\n3,4\n", "| A | B |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n"),
        (
            "\na,b\n\nc\nd,e,f\n",
            "| a | b |\n|---|---|\n| c |  |\n\n| a | b |  |\n|---|---|---|\n| d | e | f |\n",
        ),
        ("a,b\n", "| a | b |\n|---|---|\n"),
        ("", ""),
        ("\r\n\r\n", ""),
    ],
)  # fmt: skip
def test_tables(data: str, text: str) -> None:
    assert delimited.convert("a.csv", data.encode()).markdown == text


def test_each_chunk_of_a_long_table_has_the_head() -> None:
    rows = [f"person {number},{number * 7},city number {number}" for number in range(2, 800)]
    table = delimited.convert("a.csv", "\n".join(["name,age,city", *rows]).encode())
    document = parse_literal("a.csv", table, has_links=False)
    assert len(document.chunks) > 20
    for chunk in document.chunks:
        text = document.text[chunk.start_char : chunk.end_char]
        assert text.startswith("| name | age | city |\n|---|---|---|\n| person ")
        assert 2 * len(text) < MAXIMUM
    lines = [int(anchor.label) for anchor in table.anchors]
    assert lines[0] == 1
    for anchor, line in zip(table.anchors[1:], lines[1:], strict=True):
        assert table.markdown[anchor.start_char :].split("\n")[2].startswith(f"| person {line} ")


def test_a_wide_table_names_the_column_of_each_value() -> None:
    head = [f"a rather long name of column {number}" for number in range(40)]
    data = ",".join(head) + "\n" + ",".join(["x", "", *"y" * 38]) + "\n"
    text = delimited.convert("a.csv", data.encode()).markdown
    assert text.startswith(
        "- a rather long name of column 0: x; a rather long name of column 2: y;"
    )
    text = delimited.convert("a.csv", b"name " * 1000 + b"\nx" * 1000).markdown
    assert len(text) < 50_000


def test_a_quotation_mark_that_nothing_closes_costs_one_line() -> None:
    data = 'a,b\n"open,1\nx,2\n' + "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy,3\n" * 30_000
    table = delimited.convert("a.csv", data.encode())
    assert '| "open | 1 |\n| x | 2 |' in table.markdown
    assert table.markdown.count("| yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy | 3 |") == 30_000


def test_columns_are_named_as_in_spreadsheets() -> None:
    assert [column_name(number) for number in (0, 25, 26, 51, 52, 701, 702)] == [
        *("A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"),
    ]


def cell(kind: str, source: Any, **fields: Any) -> dict[str, Any]:
    return {"cell_type": kind, "source": source, **fields}


def test_a_notebook_is_its_text_code_and_output() -> None:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]},
        {"output_type": "execute_result", "data": {"text/plain": "3", "image/png": "AAAA"}},
        {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["\x1b[0m"]},
        {"output_type": "stream", "text": "\x1b[31mred\x1b[0m" + "x" * 5000},
    ]
    cells = [
        cell("markdown", ["# Bread\n", "See [b](b.md) ![p](attachment:p.png)\n", "```\nopen"]),
        cell("code", "knead(1)  # tag", outputs=outputs),
        cell("raw", "<b>raw</b>"),
        cell("code", ""),
        cell("markdown", "end"),
    ]
    data = {"cells": cells, "metadata": {"language_info": {"name": "julia"}}, "nbformat": 4}
    converted = notebook.convert("a.ipynb", json.dumps(data).encode())
    assert converted.markdown == (
        "# Bread\nSee [b](b.md) p\n```\nopen\n```\n\n"
        "```julia\nknead(1)  # tag\n```\n\n```\na\nb\n```\n\n```\n3\n```\n\n"
        "```\nKeyError: 'x'\n```\n\n"
        f"```\nred{'x' * 3997}\n…\n```\n\n"
        "```\n<b>raw</b>\n```\n\nend\n"
    )
    assert [(anchor.kind, anchor.label) for anchor in converted.anchors] == [
        *(("cell", "1"), ("cell", "2"), ("cell", "3"), ("cell", "5")),
    ]
    for anchor, text in zip(
        converted.anchors, ("# Bread", "```julia", "```\n<b>", "end"), strict=True
    ):
        assert converted.markdown[anchor.start_char :].startswith(text)


def test_notebooks_of_version_3() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Old"},
        {"cell_type": "code", "input": "x", "language": "r", "outputs": [{"text": "y"}]},
    ]
    data = {"worksheets": [{"cells": cells}], "nbformat": 3}
    text = notebook.convert("a.ipynb", json.dumps(data).encode()).markdown
    assert text == "## Old\n\n```r\nx\n```\n\n```\ny\n```\n"


@pytest.mark.parametrize("data", [b"{", b"[]", b"[" * 100_000, b"1", b"text"])
def test_what_is_no_notebook(data: bytes) -> None:
    with pytest.raises(DamagedFileError, match="no notebook"):
        notebook.convert("a.ipynb", data)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"cells": [1, null, {"source": 5}], "metadata": 3, "worksheets": {}}']
)
def test_notebooks_without_cells(data: bytes) -> None:
    assert notebook.convert("a.ipynb", data).markdown == ""


SRT = """1
00:00:01,000 --> 00:00:03,500
<i>Hello</i> there,
how are you?

2
00:00:04,000 --> 00:00:06,000
{\\an8}- Fine.
- And [[you]]?

3
01:02:03,000 --> 01:02:05,000
数据库的

4
01:02:05,100 --> 01:02:06,000
备份

"""


def test_subtitles_are_paragraphs_with_times() -> None:
    said = subtitles.convert("a.srt", SRT.replace("\n", "\r\n").encode())
    assert said.markdown == ("Hello there, how are you?\n- Fine.\n- And [[you]]? 数据库的备份\n")
    long = SRT.replace("how are you?", "how are you? " + "I have so much to say. " * 30)
    said = subtitles.convert("a.srt", long.encode())
    assert [(anchor.kind, anchor.label) for anchor in said.anchors] == [
        ("time", "0:00:01"),
        ("time", "0:00:04"),
    ]
    assert said.markdown[said.anchors[1].start_char :].startswith("- Fine.")


def test_only_lines_of_chinese_are_joined_without_a_space() -> None:
    time = "1\n00:00:01,000 --> 00:00:02,000\n"
    for lines, text in (("数据\n库", "数据库\n"), ("그걸\n어떻게", "그걸 어떻게\n")):
        assert subtitles.convert("a.srt", (time + lines).encode()).markdown == text


def test_moving_captions_are_told_once() -> None:
    vtt = """WEBVTT
Kind: captions

NOTE a remark

00:01.000 --> 00:02.000 align:start position:0%
<v Ann>first <00:01.500><c>line</c>

00:02.000 --> 00:03.000
Ann: first line
second &amp; line

00:03.000 --> 00:04.000
second &amp; line
third line
"""
    said = subtitles.convert("a.vtt", vtt.encode())
    assert said.markdown == "Ann: first line second & line third line\n"


def test_what_are_no_subtitles() -> None:
    with pytest.raises(DamagedFileError, match="no subtitles"):
        subtitles.convert("a.srt", b"just text")
    with pytest.raises(DecodeError):
        subtitles.convert("a.srt", b"\0\1")
    assert subtitles.convert("a.srt", b"").markdown == ""
    assert subtitles.convert("a.vtt", b"WEBVTT\n").markdown == ""
