"""A document's title, and that one bad part does not spoil the rest."""

from __future__ import annotations

import json

import pytest

from qmd.errors import DecodeError
from qmd.parse import PARSER_VERSION
from qmd.parse.document import parse_document


@pytest.mark.parametrize(
    ("path", "text", "title", "source"),
    [
        ("a/b.md", "---\ntitle: Given\n---\n# Heading", "Given", "frontmatter"),
        ("a/b.md", "---\ntitle: 2024\n---\n# Heading", "2024", "frontmatter"),
        ("a/b.md", "---\ntitle: ' '\n---\n# Heading", "Heading", "heading"),
        ("a/b.md", "---\ntitle: [a]\n---\n# Heading", "Heading", "heading"),
        ("a/b.md", "---\ntitle: true\n---\ntext", "true", "frontmatter"),
        ("a/b.md", '+++\ntitle = "Given"\n+++\n', "Given", "frontmatter"),
        ("a/b.md", "标题\n====\n\n# Later", "标题", "heading"),
        ("a/b.md", "## Shiny new things\n\ntext\n\n# The *real* one", "The real one", "heading"),
        ("a/b.md", "intro\n\n### Third level", "b", "filename"),
        ("a/b.md", "Second level\n---\n", "b", "filename"),
        ("a/b.md", "#\n# \n## Second", "b", "filename"),
        ("a/b.md", "#\n# \n# Real", "Real", "heading"),
        ("a/b.md", "> # Quoted\n\n- # Item\n", "b", "filename"),
        ("a/b.md", '---\ntitle: "{{title}}"\n---\n# {{date}} {{time}}\n', "b", "filename"),
        ("a/b.md", "# <% tp.file.title %>\n\n# Real", "Real", "heading"),
        ("a/b.md", "# The {{date}} placeholder\n", "The {{date}} placeholder", "heading"),
        ("a/b.md", "```\n# code\n```\n", "b", "filename"),
        ("a/v1.2 notes.md", "", "v1.2 notes", "filename"),
        ("笔记/计划.md", "text", "计划", "filename"),
        ("甲/motions/2024-03-07_12_00_00_标题.md", "## 标题\n", "标题", "filename"),
        ("a/2024-03-07_12_00_00_What___now.md", "", "What___now", "filename"),
        ("a/2024-03-07_12_00_00_.md", "", "2024-03-07_12_00_00_", "filename"),
        ("a/2024-03-07_12_00_0x_b.md", "", "2024-03-07_12_00_0x_b", "filename"),
        ("a/2024-03-07_Meeting.md", "", "2024-03-07_Meeting", "filename"),
        ("README", "text", "README", "filename"),
        (".hidden", "text", ".hidden", "filename"),
    ],
)
def test_the_title_is_the_frontmatters_or_a_headings_or_the_files(
    path: str, text: str, title: str, source: str
) -> None:
    document = parse_document(path, text.encode())
    assert (document.title, document.title_source) == (title, source)


@pytest.mark.parametrize(
    ("frontmatter", "description"),
    [
        ("description: How  ferries cross", "How ferries cross"),
        ("description: |\n  two\n  lines\n", "two lines"),
        ("summary: 渡轮怎么走", "渡轮怎么走"),
        ("abstract: A\nexcerpt: E", "A"),
        ("desc: D\nexcerpt: E", "E"),
        ("desc: D", "D"),
        ("description: ' '\nsummary: S", "S"),
        ("description: [a, b]\nsummary: S", "S"),
        ("description: 7", ""),
        ("description: " + "long " * 1000, ("long " * 800).rstrip()),
        ("title: T", ""),
    ],
)
def test_the_description_is_the_first_text_of_its_names(frontmatter: str, description: str) -> None:
    text = f"---\n{frontmatter}\n---\nbody\n"
    assert parse_document("n.md", text.encode()).description == description


def test_everything_of_a_note_at_once() -> None:
    text = (
        "---\ntitle: 计划\ntags: [work]\naliases: [Plan]\ndate: 2025-03-01\n---\n"
        "# 计划\n\nSee [[Other]] #idea\n"
    )
    document = parse_document("x.md", text.encode())
    assert document.text == text
    assert document.encoding == "utf-8"
    assert text[document.body_start :].startswith("# 计划")
    assert document.tags == ("work", "idea")
    assert document.aliases == ("Plan",)
    assert document.description == ""
    assert document.date == "2025-03-01"
    assert [link.target for link in document.links] == ["Other"]
    assert [(heading.text, heading.line) for heading in document.headings] == [("计划", 7)]
    assert [(chunk.start_line, chunk.end_line) for chunk in document.chunks] == [(7, 10)]
    assert document.warnings == ()
    json.dumps(document.properties)
    assert PARSER_VERSION >= 1


def test_bad_frontmatter_bad_bytes_and_a_bad_date_are_warnings_only() -> None:
    data = "---\na: b: c\ndate: soon\n---\n# Title 标题标题\n".encode() + b"\xff\n"
    document = parse_document("x.md", data)
    assert document.title == "Title 标题标题"
    assert len(document.warnings) == 3
    assert len(document.chunks) == 1


def test_a_binary_file_is_a_decode_error() -> None:
    with pytest.raises(DecodeError):
        parse_document("x.md", b"\x89PNG\r\n\x1a\n\0\0")
