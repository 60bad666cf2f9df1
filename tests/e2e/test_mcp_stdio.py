"""``qmd mcp`` as clients start it: a process, two pipes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from support.http_server import WITHOUT_MODEL
from support.live import put
from support.mcp_client import WAIT_S, Mode, RawClient, qmd_mcp, with_client
from support.vault import FILES, make_index

from qmd import KnowledgeBase, __version__
from tests.support.warm import warm

#: Other tests take the same branches.
pytestmark = pytest.mark.unmeasured


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_index(tmp_path_factory.mktemp("stdio"))


INITIALIZE = (
    b'{"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": {"capabilities": {}, '
    b'"protocolVersion": "2025-06-18", "clientInfo": {"name": "test", "version": "1"}}}\n'
    b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
)

Start = Callable[..., RawClient]


@pytest.fixture
def start(database: Path, tmp_path: Path) -> Iterator[Start]:
    started: list[RawClient] = []

    def begin(command: list[str] | None = None) -> RawClient:
        client = RawClient(command or qmd_mcp(database), tmp_path / f"stderr-{len(started)}")
        started.append(client)
        return client

    yield begin
    for client in started:
        client.__exit__(None, None, None)


@pytest.fixture(scope="module")
def client(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    """One process for the tests that leave it as they found it."""
    stderr = tmp_path_factory.mktemp("shared") / "stderr"
    with RawClient(qmd_mcp(database), stderr) as shared:
        shared.handshake("2025-06-18")
        yield shared


def envelope(version: str = "2026-07-28") -> dict[str, Any]:
    prefix = "io.modelcontextprotocol/"
    return {
        f"{prefix}protocolVersion": version,
        f"{prefix}clientInfo": {"name": "test", "version": "1"},
        f"{prefix}clientCapabilities": {},
    }


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-11-25"])
def test_the_handshake_eras_are_served(start: Start, version: str) -> None:
    client = start()
    result = client.handshake(version)
    assert result["protocolVersion"] == version
    assert result["serverInfo"] == {"name": "qmd", "version": __version__}
    assert result["capabilities"]["tools"] == {"listChanged": True}
    assert "notes" in result["instructions"]
    assert client.tool("search", query="islands")["content"][0]["text"].startswith("Found 1 result")


def test_the_stateless_era_is_served_without_a_handshake(start: Start) -> None:
    client = start()
    discovered = client.call("server/discover", {"_meta": envelope()})["result"]
    assert discovered["supportedVersions"] == ["2026-07-28"]
    called = {"name": "get", "arguments": {"file": "plan.md"}, "_meta": envelope()}
    result = client.call("tools/call", called)["result"]
    assert result["resultType"] == "complete"
    assert result["content"][0]["resource"]["name"] == "notes/2025/plan.md"


@pytest.mark.parametrize(
    "mode",
    ["auto", *(pytest.param(era, marks=pytest.mark.nightly) for era in ("legacy", "2026-07-28"))],
)
def test_the_sdks_client_works_over_a_process(database: Path, mode: Mode) -> None:
    async def use(client: Client) -> str:
        await client.list_tools()
        result = await client.call_tool("search", {"query": "数据库"})
        assert result.structured_content is not None
        return str(result.structured_content["results"][0]["file"])

    command, *args = qmd_mcp(database)
    server = StdioServerParameters(command=command, args=args, env=WITHOUT_MODEL)
    assert with_client(server, use, mode=mode) == "notes/2025/回顾.md"


def test_documents_carry_name_and_title_on_the_wire(client: RawClient) -> None:
    got = client.tool("get", file="notes/100%.md")
    heading = f"<!-- File: notes/100%.md, docid {got['structuredContent']['docid']} -->\n\n"
    expected = {
        "uri": "qmd://notes/100%25.md",
        "name": "notes/100%.md",
        "title": "Percent",
        "mimeType": "text/markdown",
        "text": heading + FILES["100%.md"],
        "_meta": {"name": "notes/100%.md", "title": "Percent"},
    }
    assert got["content"] == [{"type": "resource", "resource": expected}]
    many = client.tool("multi_get", pattern="100%.md")
    assert many["content"] == got["content"]
    read = client.call("resources/read", {"uri": "qmd://notes/100%25.md"})["result"]
    assert read["contents"] == [{**expected, "text": "1: # Percent\n2: \n3: All of it.\n"}]


def test_an_unreadable_line_is_answered_and_the_next_one_served(client: RawClient) -> None:
    client.send_line(b'{"jsonrpc": "2.0", "id": 5, "method"')
    answer = client.receive()
    assert answer is not None
    assert answer["id"] is None
    assert answer["error"]["code"] == -32700
    assert client.call("ping")["result"] == {}


def test_errors_have_the_protocols_codes(client: RawClient) -> None:
    assert client.call("nonsense/method")["error"]["code"] == -32601
    unknown = client.call("tools/call", {"name": "nonsense", "arguments": {}})
    assert unknown["error"]["code"] == -32602
    listed = client.call("tools/call", {"name": "get", "arguments": []})
    assert listed["error"]["code"] == -32602
    refused = client.tool("get", file="plan.md", from_lines=3)
    assert refused["isError"] is True
    assert "unknown argument" in refused["content"][0]["text"]


def test_many_requests_at_once_are_all_answered(client: RawClient) -> None:
    calls = [
        {"name": "search", "arguments": {"query": "islands", "limit": n + 1}} for n in range(100)
    ]
    ids = {client.request("tools/call", each) for each in calls}
    answers = [client.receive() for _ in calls]
    assert {answer["id"] for answer in answers if answer is not None} == ids
    assert all(answer is not None and "result" in answer for answer in answers)


def test_a_huge_line_is_served(client: RawClient) -> None:
    result = client.tool("get", file="x" * 1_000_000)
    assert result["isError"] is True
    assert "file may have 16,384 characters at most" in result["content"][0]["text"]


def most_memory_kb(process: subprocess.Popen[bytes]) -> int:
    """The most memory that a process had until it ended, by what Linux tells while it runs."""
    # (`os.wait4` counts the memory of the process that started it, too.)
    most = 0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        most = max([most, *map(int, re.findall(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE))])
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    return most


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells of the memory")
@pytest.mark.nightly
def test_replies_that_nobody_reads_do_not_fill_the_memory(tmp_path: Path) -> None:
    put(tmp_path / "notes/large.md", "# Large\n\n" + "A line of filler.\n" * 120_000)
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "notes", name="notes")
        kb.index()
    asked = b'{"jsonrpc": "2.0", "id": %d, "method": "resources/read", "params": {"uri": "%s"}}\n'
    with (tmp_path / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            qmd_mcp(tmp_path / "index.sqlite"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, **WITHOUT_MODEL},
        )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(INITIALIZE)
        for number in range(500):  # 1 GB
            process.stdin.write(asked % (number, b"qmd://notes/large.md"))
        process.stdin.close()
        # It ends although 500 answers are wanted and nobody reads the first.
        most_kb = most_memory_kb(process)
    assert process.returncode == 0
    assert 10_000 < most_kb < 300_000


def assert_silent(client: RawClient) -> None:
    """Besides that it has no model, which it tells if it lives long enough to look for one."""
    [name] = WITHOUT_MODEL.values()
    assert [line for line in client.stderr.splitlines() if name not in line] == []


def test_the_end_of_input_ends_it_after_the_last_answer(start: Start) -> None:
    client = start()
    client.handshake()
    assert client.tool("get", file="nowhere.md")["isError"] is True
    ids = {
        client.request("tools/call", {"name": "search", "arguments": {"query": "sail"}})
        for _ in range(5)
    }
    client.end_input()
    assert {message["id"] for message in client.receive_all() if "result" in message} == ids
    assert client.process.wait(WAIT_S) == 0
    assert_silent(client)


def test_input_that_ends_at_once_is_no_error(start: Start) -> None:
    client = start()
    client.end_input()
    assert client.receive_all() == []
    assert client.process.wait(WAIT_S) == 0
    assert_silent(client)


@pytest.mark.skipif(sys.platform != "linux", reason="threads are found in /proc")
def test_a_signal_ends_it_also_when_another_thread_gets_it(start: Start) -> None:
    client = start()
    client.handshake()
    assert client.call("ping")["result"] == {}
    number = client.process.pid
    threads = [int(each.name) for each in Path(f"/proc/{number}/task").iterdir()]
    tgkill = 234 if platform.machine() == "x86_64" else 131
    syscall = ctypes.CDLL(None).syscall
    others = (each for each in threads if each != number)  # one of them may just have ended
    assert any(syscall(tgkill, number, each, int(signal.SIGTERM)) == 0 for each in others)
    assert client.process.wait(WAIT_S) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize(
    ("signal_number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_a_signal_ends_it_while_the_client_is_silent(
    start: Start, signal_number: signal.Signals, code: int
) -> None:
    client = start()
    client.handshake()
    assert client.call("ping")["result"] == {}
    assert client.stop(signal_number) == code
    assert client.receive() is None
    assert "Traceback" not in client.stderr


STUCK = """
import sys, threading
sys.path.insert(0, sys.argv[2])
from support.embedder import HashEmbedder
from qmd import KnowledgeBase, Settings
from qmd.server.process import ServerOptions, serve

class StuckModel(HashEmbedder):
    def embed_query(self, text):
        threading.Event().wait()

def open_kb():
    kb = KnowledgeBase.open(sys.argv[1], Settings(embedder=StuckModel()))
    kb.embed()
    return kb

sys.exit(serve(open_kb, ServerOptions(transport="mcp")))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_a_signal_ends_it_while_a_call_is_stuck(start: Start, tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    client = start([sys.executable, "-c", STUCK, str(make_index(tmp_path)), str(tests)])
    client.handshake()
    stuck = client.request("tools/call", {"name": "vsearch", "arguments": {"query": "islands"}})
    assert client.call("ping")["result"] == {}
    assert client.stop(signal.SIGTERM) == 0
    answer = client.receive()
    assert answer is not None
    assert (answer["id"], answer["error"]["message"]) == (stuck, "Connection closed")
    assert client.receive() is None


def test_a_client_that_is_gone_ends_it_even_if_the_input_stays_open(
    database: Path, tmp_path: Path
) -> None:
    read_fd, write_fd = os.pipe()
    with (tmp_path / "stderr").open("wb") as stderr:
        process = warm.popen(
            qmd_mcp(database), stdin=subprocess.PIPE, stdout=write_fd, stderr=stderr
        )
    os.close(write_fd)
    os.close(read_fd)  # nobody will ever read an answer
    assert process.stdin is not None
    process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    process.stdin.flush()
    assert process.wait(WAIT_S) == 0
    process.stdin.close()
    assert (tmp_path / "stderr").read_bytes() == b""


NOISY = """
import os, sys
from qmd import KnowledgeBase
from qmd.server.process import ServerOptions, serve

def open_kb():
    print("a stray print")
    os.write(1, b"a C library's message\\n")
    os.system("echo a child process")
    return KnowledgeBase.open(sys.argv[1])

sys.exit(serve(open_kb, ServerOptions(transport="mcp")))
"""


def test_nothing_but_json_rpc_reaches_stdout(start: Start, database: Path) -> None:
    client = start([sys.executable, "-c", NOISY, str(database)])
    client.handshake()
    client.end_input()
    assert client.receive_all() == []
    for stray in ("a stray print", "a C library's message", "a child process"):
        assert stray in client.stderr


def test_a_client_hears_of_the_document_it_subscribed_to(start: Start, tmp_path: Path) -> None:
    client = start(qmd_mcp(make_index(tmp_path)))
    client.handshake()
    uri = "qmd://notes/2025/plan.md"
    assert client.call("resources/subscribe", {"uri": uri})["result"] == {}
    put(tmp_path / "notes/2025/plan.md", "# Plan\n\nStay at home.\n")
    told = client.receive()
    assert told is not None
    assert (told["method"], told["params"]) == ("notifications/resources/updated", {"uri": uri})
    assert client.tool("search", query="home")["structuredContent"]["results"][0]["file"]
    refused = client.call("resources/subscribe", {"uri": "file:///etc/passwd"})
    assert refused["error"]["code"] == -32002


def test_a_client_hears_that_the_tools_have_changed(start: Start, tmp_path: Path) -> None:
    archive = tmp_path / "notes/archive"
    client = start([*qmd_mcp(make_index(tmp_path)), "--posts-dir", str(archive)])
    assert client.handshake()["capabilities"]["tools"] == {"listChanged": True}

    def tools() -> set[str]:
        return {tool["name"] for tool in client.call("tools/list")["result"]["tools"]}

    before = tools()
    put(archive / "author/motions/2024-03-07_Title.md", "A post.\n")
    assert client.receive() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert tools() - before == {"list_authors", "list_posts", "read_post", "search_posts"}


def test_since_2026_only_clients_that_asked_hear_of_the_tools(start: Start, tmp_path: Path) -> None:
    archive = tmp_path / "notes/archive"
    client = start([*qmd_mcp(make_index(tmp_path)), "--posts-dir", str(archive)])

    def tools() -> set[str]:  # `call` fails if anything but the answer arrives
        result = client.call("tools/list", {"_meta": envelope()})["result"]
        return {tool["name"] for tool in result["tools"]}

    assert "read_post" not in tools()
    put(archive / "author/motions/2024-03-07_Title.md", "Larches.\n")
    arguments = {"name": "search", "arguments": {"query": "larches"}, "_meta": envelope()}
    while not client.call("tools/call", arguments)["result"]["structuredContent"]["results"]:
        pass  # until the change is indexed; a change of the tools is noticed with it
    for _ in range(20):
        assert "read_post" in tools()


def test_plain_text_is_one_text(start: Start, database: Path) -> None:
    client = start([*qmd_mcp(database), "--plain-text"])
    client.handshake()
    reply = client.tool("multi_get", pattern="notes/2025/plan.md, notes/100%.md")
    (block,) = reply["content"]
    assert block["type"] == "text"
    plan, percent = (document["docid"] for document in reply["structuredContent"]["documents"])
    assert block["text"].startswith(f"<!-- File: notes/2025/plan.md, docid {plan} -->\n")
    heading = f"\n\n<!-- File: notes/100%.md, docid {percent} -->\n\n"
    assert f"{heading}# Percent\n" in block["text"]


def test_a_missing_database_is_created(start: Start, tmp_path: Path) -> None:
    fresh = tmp_path / "deep" / "new.sqlite"
    client = start(qmd_mcp(fresh))
    client.handshake()
    assert client.tool("search", query="x")["structuredContent"]["results"] == []
    assert "qmd collection add" in client.tool("status")["content"][1]["text"]
    assert fresh.exists()


def test_a_file_that_is_no_database_is_an_error_on_stderr(start: Start, tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("This is no database. " * 100, encoding="utf-8")
    client = start(qmd_mcp(tmp_path / "text.sqlite"))
    assert client.receive_all() == []
    assert client.process.wait(WAIT_S) == 1
    assert "qmd: error:" in client.stderr
