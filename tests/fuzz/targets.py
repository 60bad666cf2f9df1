"""
What is fuzzed: for each target valid inputs, and a function that is to accept any bytes.

It returns, or raises nothing but `QmdError`; a server answers with a status below 500. Anything
else is a defect, and so is more CPU than `MOST_CPU_S` for one input.
"""

from __future__ import annotations

import http.client
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from qmd import KnowledgeBase, Settings
from qmd.errors import QmdError
from qmd.ingest.patterns import IgnoreFile, compile_mask, parse_ignore_lines
from qmd.parse.decode import decode
from qmd.parse.formats import CANVAS
from qmd.parse.photo.metadata import parse_photo
from qmd.parse.photo.source import PhotoSource
from qmd.search import query
from qmd.server import stdio
from qmd.values.properties import parse_filter
from tests.support import photos
from tests.support.embedder import HashEmbedder
from tests.support.live_app import LiveApp
from tests.support.vault import make_vault
from tests.unit import test_linear_time as parsers

MOST_CPU_S = 5.0

NOTE = """---
title: A note
tags: [work, "a b", 中文]
aliases: [other]
date: 2026-03-01
nested: {a: [1, 2, {b: c}], d: &x yes, e: *x}
text: |
  some lines
---
# Heading {#id}

See [[Other note|shown]], ![[image.png]], [a](b.md "title"), <http://x.y>, `code` and #tag/sub.

> - [ ] a task ^block
> 1. **bold** _it_ ~~no~~ $x$ [^1]

| a | b |
|---|---|
| 1 | 2 |

~~~python
print("x")
~~~
<!-- a comment --> <div>html</div>

[ref]: <path with blanks> 'title'
[^1]: 数据库备份方案。每天备份！
"""
TOML = "+++\ntitle = 'a'\ntags = ['x']\ndate = 2026-01-01\n[a.b]\nc = [1, {d = 2}]\n+++\nbody\n"
QUERY = 'title:plan -draft "road map" OR 备份 back* tag:work/a path:2026 C++ “引号” /etc/hosts'
FIELDS = """title:: A page
tags:: a, [[b]]
# Heading
- [ ] a task [due:: 2026-01-01] (key:: [[Note#Heading|shown]]) ^block
  %% a comment
  status:: hidden %%
> [!note]- callout
> rating:: 4.5
"""
CANVAS_JSON = json.dumps(
    {
        "nodes": [
            {"id": "g", "type": "group", "label": "G", "x": -9, "y": -9, "width": 99, "height": 99},
            {"id": "t", "type": "text", "text": "# Card", "x": 0, "y": 0, "width": 9, "height": 9},
            {"id": "f", "type": "file", "file": "a/b.md", "subpath": "#H", "x": 0, "y": 1e3},
            {"id": "l", "type": "link", "url": "https://example.com", "x": 5},
        ],
        "edges": [{"id": "e", "fromNode": "t", "toNode": "f", "label": "leads to"}],
    }
)
ANSWER = 'I look.\n\n```json:tool\n{"tool": "read_note", "params": {"path": "a.md"}}\n```\ndone'
IGNORE = "# comment\n*.log\n/build/\n!keep.md\n**/tmp/**\n[a-z]?*.md\nfoo\\ bar\n中文/*\n"


class Target(NamedTuple):
    """``run`` takes any bytes; ``seeds`` are some that it is made for."""

    seeds: tuple[bytes, ...]
    run: Callable[[bytes], object]


def _allowing_errors(function: Callable[[bytes], object]) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        try:
            function(data)
        except QmdError as error:
            assert str(error)

    return run


def _text(function: Callable[[str], object]) -> Callable[[bytes], object]:
    return _allowing_errors(lambda data: function(data.decode("utf-8", "replace")))


def _ignore(text: str) -> None:
    file = IgnoreFile(parse_ignore_lines(text, ".gitignore", ".gitignore"))
    for path in ("a/b/c.md", "build", "中文/文.md", text[:100]):
        file.match(path, path.rpartition("/")[2], False)


def _filter(text: str) -> None:
    """A query may have any condition; a filter is refused unless it is one."""
    parse_filter(text)
    assert query.parse_string(f"word {text}") is not None


def _mask(text: str) -> None:
    compile_mask(text)("a/b/c.md", "c.md")


def _line(data: bytes) -> None:
    try:
        stdio.encode(stdio.decode(data))
    except stdio.RefusedLineError as error:
        stdio.encode(error.answer)


def _encodings(text: str) -> tuple[bytes, ...]:
    names = ("utf-8", "utf-8-sig", "utf-16", "gb18030", "big5hkscs", "cp932", "euc_kr", "latin-1")
    return tuple(text.encode(name, "replace") for name in names)


def parser_targets(directory: Path) -> dict[str, Target]:
    """Those that need no server; photos are made below ``directory``."""
    notes = _encodings(NOTE)
    found = {
        "decode": Target(notes, _allowing_errors(decode)),
        "note": Target((*notes, TOML.encode()), _allowing_errors(parsers.index)),
        "frontmatter": Target(
            (NOTE.split("---")[1].encode(), TOML.encode()),
            _text(lambda text: parsers.frontmatter(text, "…")),
        ),
        "links and sections": Target(
            (NOTE.encode(), FIELDS.encode(), b"# a\n## [[b#c|d]] ^e\n![](f%20g.md)"),
            _text(parsers.linked_parts),
        ),
        "edits": Target((NOTE.encode(), FIELDS.encode()), _text(parsers.edits)),
        "properties in the text": Target((FIELDS.encode(),), _allowing_errors(parsers.index)),
        "canvas": Target(
            (CANVAS_JSON.encode(),), _allowing_errors(lambda data: parsers.index(data, CANVAS))
        ),
        "property condition": Target(
            (b"rating:>4", b'-author:"Li Lei"', b"due:2026-01..<2026-12-01", b"a.b:>=-1.5e3"),
            _text(_filter),
        ),
        "gitignore": Target((IGNORE.encode(),), _text(_ignore)),
        "mask": Target((b"**/*.{md,jpg}", b"a/[!b]?/*.md"), _text(_mask)),
        "query": Target(
            (QUERY.encode(), b"lex: a b\nvec: how\nhyde: so\nintent: x"),
            _text(lambda text: (query.parse_string(text), parsers.query(text[:2000]))),
        ),
        "tool blocks": Target((ANSWER.encode(),), _text(parsers.tool_blocks)),
        "model replies": Target(
            (b'{"choices": [{"message": {"content": "lex: a\\nvec: b"}}]}', b"[0.5, 0.1]\n"),
            _text(parsers.reply),
        ),
        "JSON-RPC line": Target(
            tuple(json.dumps(message).encode() for message in _messages()), _line
        ),
    }
    for suffix in photos.SUFFIXES:
        path = photos.make(directory / f"seed.{suffix}")
        found[f"photo {suffix}"] = Target((path.read_bytes(),), _photo(path.name))
    return found


def _photo(name: str) -> Callable[[bytes], object]:
    return _allowing_errors(
        lambda data: parse_photo(name, PhotoSource(io.BytesIO(data), len(data)))
    )


# --- a server --------------------------------------------------------------------------


def _messages() -> list[dict[str, Any]]:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search", {"query": QUERY, "limit": 5, "tags": ["a"]}),
        ("get", {"file": "notes/index.md", "fromLine": 1}),
        ("multi_get", {"pattern": "notes/**/*.md, a.md"}),
        ("status", {}),
        ("read_note", {"path": "notes/index.md"}),
    ]
    tools = [("tools/call", {"name": name, "arguments": given}) for name, given in calls]
    others: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {}),
        ("resources/read", {"uri": "qmd://notes/index.md"}),
        ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                        "clientInfo": {"name": "fuzz", "version": "1"}}),
    ]  # fmt: skip
    return [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate([*tools, *others], 1)
    ]


_BODIES: dict[str, dict[str, Any]] = {
    "/search": {"query": QUERY, "limit": 3, "tags": ["a"], "min_score": 0.1},
    "/vsearch": {"query": "boat", "collection": "notes"},
    "/query": {"query": "lex: boat\nvec: sea", "explain": True, "after": "2025"},
    "/multi_get": {"pattern": "notes/*.md, #abcdef", "max_bytes": 100},
    "/get": {"file": "notes/index.md:3", "max_lines": 2},
}


@contextmanager
def server_targets(directory: Path) -> Iterator[dict[str, Target]]:
    """REST and MCP over HTTP, asked over a socket; nothing can be written."""
    notes = make_vault(directory)
    with KnowledgeBase.open(
        directory / "index.sqlite", Settings(embedder=HashEmbedder()), create=True
    ) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        kb.embed()
        with LiveApp(kb, read_only=True) as app:
            yield {
                f"REST {path}": Target((json.dumps(body).encode(),), _poster(app.url, path))
                for path, body in _BODIES.items()
            } | {
                "MCP over HTTP": Target(
                    tuple(json.dumps(message).encode() for message in _messages()),
                    _poster(app.url, "/mcp"),
                )
            }


def _poster(url: str, path: str) -> Callable[[bytes], object]:
    address = urlsplit(url)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }

    def run(data: bytes) -> None:
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        try:
            connection.request("POST", path, data, headers)
            reply = connection.getresponse()
            reply.read()
            assert reply.status < 500, f"{path}: {reply.status}"
        finally:
            connection.close()

    return run
