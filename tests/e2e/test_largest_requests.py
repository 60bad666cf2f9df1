"""Every endpoint and tool with the largest input it takes, over 2,000 documents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.http_server import MCP_ACCEPT, WAIT_S, Answer, Serving, qmd_server

from qmd import KnowledgeBase
from qmd.operations.bounds import MAX_PATH
from qmd.search.lookup.documents import MAX_NAMES
from qmd.values.search import MAX_QUERY, MAX_TAGS

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts CPU in /proc"),
    pytest.mark.unmeasured,
]

DOCUMENTS = 2000
MAX_CPU_S = 6.0
"""Of one request, on a slow machine; what this is about took 30 seconds to many minutes."""

WORDS = [f"{first}{middle}{last}" for first in "bdgklm" for middle in "aeiou" for last in "nrst"]
MANY_WORDS = " ".join(f"{a}{b}" for a in WORDS for b in WORDS)
VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    directory = tmp_path_factory.mktemp("largest")
    notes = directory / "notes"
    for number in range(DOCUMENTS):
        path = notes / f"folder{number % 40}" / f"note-{number}-{WORDS[number % len(WORDS)]}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = " ".join(WORDS[(number + step * 7) % len(WORDS)] for step in range(60))
        path.write_text(f"# Note {number}\n\n{text}\n\n数据库备份计划 foo_bar -> v1.2\n", "utf-8")
    database = directory / "db.sqlite"
    with KnowledgeBase.open(database, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
    options = ("--no-watch", "--vault", str(notes), "--posts-dir", str(directory / "notes"))
    with qmd_server(database, *options) as server:
        yield server


def cpu_s(serving: Serving) -> float:
    """Seconds of CPU that the server has taken so far."""
    stat = Path(f"/proc/{serving.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def tool(serving: Serving, name: str, arguments: dict[str, Any]) -> Answer:
    params = {"name": name, "arguments": arguments, "_meta": META}
    return serving.ask(
        "POST",
        "/mcp",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        accept=MCP_ACCEPT,
        mcp_protocol_version=VERSION,
        mcp_method="tools/call",
        mcp_name=name,
    )


QUERIES = {
    "one word": "a" * MAX_QUERY,
    "words": MANY_WORDS[:MAX_QUERY],
    "Chinese": ("数据库备份计划" * MAX_QUERY)[:MAX_QUERY],
    "all Chinese": "".join(chr(0x4E00 + n % 20_000) for n in range(MAX_QUERY)),
    "OR": " OR ".join(MANY_WORDS.split())[:MAX_QUERY],
    "excluded": " ".join(f"-{word}" for word in MANY_WORDS.split())[:MAX_QUERY],
    "excluded literals": " ".join(f"-{word}_x" for word in MANY_WORDS.split())[:MAX_QUERY],
    "phrase": f'"{MANY_WORDS[: MAX_QUERY - 2]}"',
    "beginnings": " ".join(chr(97 + n % 26) + "*" for n in range(MAX_QUERY // 3)),
    "signs": "-> " * (MAX_QUERY // 3),
    "literals": " ".join(f"{word}_{word}" for word in MANY_WORDS.split())[:MAX_QUERY],
    "tags": " ".join(f"tag:t{n} OR tag:u{n}" for n in range(9000))[:MAX_QUERY],
    "excluded tags": " ".join(f"-tag:t{n}" for n in range(9000))[:MAX_QUERY],
    "quotes": '"' * MAX_QUERY,
    "marks": "\u0301" * MAX_QUERY,
    "folded": "ﷺ" * (MAX_QUERY // 18),
    "lines": "\n".join(f"lex: {word}" for word in MANY_WORDS.split())[:MAX_QUERY],
}
PATHS = {
    "one name": "a" * MAX_PATH,
    "names": ("a/" * MAX_PATH)[:MAX_PATH],
    "from the root": "/" + ("a/" * MAX_PATH)[: MAX_PATH - 1],
    "percent": "qmd://" + "%2F" * ((MAX_PATH - 6) // 3),
    "lines": (":1" * MAX_PATH)[:MAX_PATH],
    "dots": ("./" * MAX_PATH)[:MAX_PATH],
}
PATTERNS = {
    "unknown names": ",".join(f"folder1/note-{n}-nil.md" for n in range(MAX_NAMES)),
    "all": "**",
    "stars": "*a" * 2000,
    "deep": "**/a/" * 4 + "*",
    "braces": "{" + ",".join(f"*{n}*x" for n in range(500)) + "}",
    "brackets": "[" * 200_000,
    "questions": "?" * 4000,
}
REST: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"query {name}": ("/query", {"query": text}) for name, text in QUERIES.items()},
    **{
        f"1,000 hits for {name}": ("/search", {"query": text, "limit": 1000, "explain": True})
        for name, text in QUERIES.items()
    },
    **{f"get {name}": ("/get", {"file": text}) for name, text in PATHS.items()},
    **{f"multi_get {name}": ("/multi_get", {"pattern": text}) for name, text in PATTERNS.items()},
    "filters": (
        "/search",
        {"query": "note", "tags": [f"t{n}" for n in range(MAX_TAGS)], "path": PATHS["names"]},
    ),
    "context": ("/contexts/add", {"path": PATHS["from the root"], "text": "x"}),
}
TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"search_posts {n}": ("search_posts", {"query": text}) for n, text in QUERIES.items()},
    **{f"read_note {name}": ("read_note", {"path": text}) for name, text in PATHS.items()},
    **{f"list_folder {name}": ("list_folder", {"path": text}) for name, text in PATHS.items()},
    **{f"read_post {name}": ("read_post", {"path": text}) for name, text in PATHS.items()},
    **{f"list_posts {name}": ("list_posts", {"author": text}) for name, text in PATHS.items()},
    "title of a post": ("read_post", {"author": "folder1", "title": "a" * MAX_PATH}),
}


#: The texts that `/query` and `search_posts` get every day: `/search` gets all, by the same parser.
DAILY = ("Chinese", "lines")


def names(requests: dict[str, Any]) -> list[Any]:
    """What is asked every day, and what only every night."""
    nightly = {
        f"{begin} {text}"
        for begin in ("query", "search_posts")
        for text in QUERIES
        if text not in DAILY
    }
    return [
        pytest.param(name, marks=pytest.mark.nightly) if name in nightly else name
        for name in requests
    ]


@pytest.mark.parametrize("name", names(REST))
def test_the_largest_request_takes_little(serving: Serving, name: str) -> None:
    path, body = REST[name]
    before = cpu_s(serving)
    answer = serving.ask("POST", path, body)
    assert answer.status in (200, 400, 404), answer.body[:500]
    assert cpu_s(serving) - before < MAX_CPU_S


@pytest.mark.parametrize("name", names(TOOLS))
def test_the_largest_call_takes_little(serving: Serving, name: str) -> None:
    called, arguments = TOOLS[name]
    before = cpu_s(serving)
    answer = tool(serving, called, arguments)
    assert answer.status == 200, answer.body[:500]
    assert b'"result"' in answer.body
    assert cpu_s(serving) - before < MAX_CPU_S


def test_eight_of_the_largest_at_once_leave_the_others_their_answers(serving: Serving) -> None:
    hostile = [
        {"pattern": ",".join(f"x/n{number}.md" for number in range(20_000))},
        {"pattern": PATTERNS["unknown names"]},
        {"pattern": PATTERNS["braces"]},
        {"pattern": PATTERNS["all"], "max_bytes": 10**9},
    ]
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(serving.ask, "POST", "/multi_get", body) for body in hostile * 2]
        assert serving.ask("GET", "/status").status == 200
        assert serving.ask("POST", "/search", {"query": "note"}).status == 200
        statuses = {each.result(WAIT_S).status for each in answers}
    assert statuses <= {200, 400, 404}
