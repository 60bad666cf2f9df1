"""What holds for every text and every byte string."""

from __future__ import annotations

import json
import math
import re
import string
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qmd.errors import DecodeError
from qmd.parse.chunk import MAXIMUM
from qmd.parse.decode import decode
from qmd.parse.document import parse_document
from qmd.parse.frontmatter import split
from qmd.parse.lines import byte_line_starts, line_starts, split_lines
from qmd.values import ParsedDocument

# Lines that mean something in Markdown, thrown together.
PIECES = st.sampled_from(
    [
        "# Heading", "## 二级标题 ##", "Setext", "===", "---", "+++", "```", "~~~ py", "    code",
        "\tcode", "- item", "  - [ ] task", "1. one", "> quote", "> ```", "| a | b |", "|---|---|",
        "<!--", "-->", "<pre>", "</pre>", "<div>",
        "title: x", "tags: [a, b]", "a: *b", "...",
        "[a](b.md \"t\")", "[[Note#H|x]]", "![[pic.png]]", "[r]: target", "[r]", "`code", "``",
        "#tag #标签/子", "中文句子。另一句！", "word " * 30, "中文没有句号" * 60, "e\u0301" * 40,
        "👩\u200d💻",
        "\u2028", "\x0b", "\x85", "\u3000\u3000", "\ufeff", "[" * 20, "*" * 20, "\\", "]( <",
        "&amp;",
        "x" * 2500, "。" * 700,
    ]
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\n\n", "\r\n", "\r", "", " "])
MARKDOWN = st.lists(st.tuples(PIECES, ENDS), max_size=40).map(
    lambda parts: "".join(piece + end for piece, end in parts)
)
TEXTS = st.one_of(
    MARKDOWN,
    st.text(
        alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300
    ),
)


def parse(text: str) -> ParsedDocument:
    return parse_document("note.md", text.encode())


@settings(deadline=None)
@given(st.binary(max_size=300))
@example(b"\xff\xfe\x00")
@example(b"\x81")
@example(b"+/v8-")
def test_every_byte_string_is_text_or_a_decode_error(data: bytes) -> None:
    try:
        decoded = decode(data)
    except DecodeError as error:
        assert error.hint
        return
    assert "\0" not in decoded.text
    decoded.text.encode()
    parse_document("note.md", data)


@settings(deadline=None)
@given(TEXTS)
def test_utf8_decodes_to_itself(text: str) -> None:
    if text.startswith(("\ufeff", "%PDF-")) or "\x1b$" in text:
        return
    assert decode(text.encode()).text == text


@settings(deadline=None)
@given(TEXTS)
def test_chunks_slice_back_in_order_and_hold_every_line_with_text(text: str) -> None:
    document = parse(text)
    text = document.text
    data = text.encode()
    starts = line_starts(text)
    at = document.body_start
    for seq, chunk in enumerate(document.chunks):
        assert chunk.seq == seq
        assert at <= chunk.start_char < chunk.end_char
        assert not text[at : chunk.start_char].strip()
        piece = text[chunk.start_char : chunk.end_char]
        assert piece.strip()
        assert data[chunk.start_byte : chunk.end_byte].decode() == piece
        assert starts[chunk.start_line - 1] <= chunk.start_char
        assert chunk.start_line < chunk.end_line <= len(starts) + 1
        line_end = starts[chunk.end_line - 1] if chunk.end_line <= len(starts) else len(text)
        assert starts[chunk.end_line - 2] < chunk.end_char <= line_end
        assert 3 * len(piece.encode()) - len(piece) <= MAXIMUM
        at = chunk.end_char
    assert not text[at:].strip()


@settings(deadline=None)
@given(TEXTS)
def test_headings_and_links_name_their_lines(text: str) -> None:
    document = parse(text)
    lines = split_lines(document.text)
    starts = line_starts(document.text)
    for heading in document.headings:
        assert starts[heading.line - 1] == heading.start_char >= document.body_start
        line = lines[heading.line - 1]
        assert line.lstrip(" ").startswith("#") or set(line) <= set("=- \t") or heading.level <= 2
    assert [heading.line for heading in document.headings] == sorted(
        {heading.line for heading in document.headings}
    )
    for link in document.links:
        opener = "[[" if link.kind in ("wikilink", "embed") else "["
        assert opener in lines[link.line - 1]
        assert "#" not in link.target or ":" in link.target or "//" in link.target


@settings(deadline=None)
@given(TEXTS)
def test_lines_join_back_to_the_text(text: str) -> None:
    lines, starts = split_lines(text), line_starts(text)
    assert len(lines) == len(starts) == len(byte_line_starts(text))
    for line, start in zip(lines, starts, strict=True):
        assert text.startswith(line, start)
        assert "\n" not in line
        assert "\r" not in line
    assert [len(text[:start].encode()) for start in starts] == byte_line_starts(text)


WORDS = st.text(
    alphabet=string.ascii_letters
    + string.digits
    + "_-./:'\"#@%&*!?[]{}, 中文，。\u00e9~=<>|^`$+;()\\",
    max_size=12,
)
VALUES = st.one_of(
    WORDS,
    WORDS.map(lambda word: f'"{word}"'),
    WORDS.map(lambda word: f"'{word}'"),
    st.lists(WORDS, max_size=3).map(lambda words: f"[{', '.join(words)}]"),
    st.lists(WORDS, min_size=1, max_size=3).map(
        lambda words: "".join(f"\n  - {word}" for word in words)
    ),
    st.integers(0, 10**9).map(str),
    st.dates().map(str),
    st.sampled_from(
        [
            "yes",
            "No",
            "null",
            "~",
            "1.2.3",
            "0x1f",
            "1e3",
            "12/17/2019",
            "1:30",
            "https://a.b/c?d=e",
            "01",
            "0",
        ]
    ),
)
PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # they differ on "key: !"


class Loader(PARSER):  # type: ignore[misc,valid-type]
    """
    YAML as PyYAML reads it, but keys stay as they are written, and numbers are those of JSON.

    (With a sign and points at either end, too: ``+1``, ``.5``, ``1.``.)
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own name and type
        sign: [kind for kind in kinds if not kind[0].endswith((":int", ":float"))]
        for sign, kinds in PARSER.yaml_implicit_resolvers.items()
    }

    def construct_number(self, node: yaml.ScalarNode) -> float | str:
        number = float(node.value) if set(node.value) & set(".eE") else int(node.value)
        return number if math.isfinite(number) else node.value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep=deep)  # type: ignore[no-any-return]


Loader.add_implicit_resolver(
    "!number",
    re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z"),
    list("-+.0123456789"),
)
Loader.add_constructor("!number", Loader.construct_number)
#: (Titles, tags and aliases are names, whose values stay as written.)
KEYS = st.sampled_from(
    ["author", "topics", "date", "ms.date", "online version", "y", "On", "a-b", "x_1"]
)


@settings(deadline=None)
@given(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4, unique_by=lambda pair: pair[0]))
def test_frontmatter_has_the_values_that_yaml_gives(pairs: list[tuple[str, str]]) -> None:
    source = "".join(f"{key}: {value}\n" for key, value in pairs)
    front = split(f"---\n{source}---\n")
    try:
        expected = yaml.load(source, Loader=Loader)
    except (yaml.YAMLError, ValueError):
        return
    if not isinstance(expected, dict) or "\n---" in source:
        return

    def as_json(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): as_json(item) for key, item in value.items()}
        if isinstance(value, list):
            return [as_json(item) for item in value]
        return value.isoformat() if hasattr(value, "isoformat") else value

    assert front.properties == as_json(expected)
    json.dumps(front.properties, allow_nan=False)


@settings(deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,?\n 1.~<\t中", max_size=60))
def test_any_frontmatter_gives_json_and_keeps_the_note(source: str) -> None:
    text = f"---\n{source}\n---\nbody\n"
    front = split(text)
    json.dumps(front.properties, allow_nan=False)
    assert front.body_start <= len(text) - len("body\n") or front.body_start == 0


HOSTILE = [
    "[", "*", "`", "#", "|", "<", "> ", "](", "](a(", "](a \"", "[[a", "[a](", "# [a](b ",
    "# _a *b",
    "- ", "1. ", "a\n---\n", "\n", "<!--", "<a b=", "\\", "&amp;", "[a]: b\n", "  - a\n", "~", "\r",
    "e\u0301", "。", "- `\n", "|-", "a|b\n|-|-\n", "$",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.unmeasured
def test_a_hundred_thousand_repetitions_are_no_problem(unit: str) -> None:
    # Quadratic behaviour would take minutes here and hit the run's time limit.
    text = unit * (100_000 // len(unit))
    document = parse(text)
    assert document.text == text
    assert sum(chunk.end_char - chunk.start_char for chunk in document.chunks) <= len(text)
