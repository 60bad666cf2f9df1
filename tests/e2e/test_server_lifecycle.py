"""One process, many servers: nothing is left open; and who subscribed hears of changes."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from support.http_server import MCP_ACCEPT, WAIT_S, initialize, request
from support.live_app import LiveApp
from support.vault import make_index, make_vault

from qmd import KnowledgeBase


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.nightly
@pytest.mark.unmeasured
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts in /proc")
def test_fifty_servers_leave_no_descriptor_and_no_thread(tmp_path: Path) -> None:
    database = make_index(tmp_path)

    def serve_once() -> None:
        with KnowledgeBase.open(database) as kb, LiveApp(kb) as app:
            assert request(app.url, "GET", "/health").status == 200
            accept = {"accept": MCP_ACCEPT}
            assert request(app.url, "POST", "/mcp", initialize(), accept).status == 200
            assert request(app.url, "POST", "/search", {"query": "boat"}).status == 200

    serve_once()  # what is made once and kept
    gc.collect()
    before = descriptors(), set(threading.enumerate())
    for _ in range(49):
        serve_once()
    gc.collect()
    left = [each for each in threading.enumerate() if each not in before[1]]
    for each in left:  # a worker of an event loop that has ended is told so, and ends
        each.join(WAIT_S)
    assert not any(each.is_alive() for each in left)
    assert descriptors() <= before[0]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[tuple[Path, LiveApp]]:
    """A vault that is watched, and its server."""
    notes = make_vault(tmp_path)
    with KnowledgeBase.open(tmp_path / "x.sqlite", create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        synced = threading.Event()
        kb.events.subscribe(lambda event: synced.set() if event.kind == "synced" else None)
        kb.keep(embed=False)
        assert synced.wait(WAIT_S)
        with LiveApp(kb) as app:
            yield notes, app


URIS = ["qmd://notes/2025/plan.md", "qmd://notes%2F2025%2Fplan.md", "qmd://plan.md"]


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("uri", URIS)
def test_a_session_hears_of_the_document_it_subscribed_to(
    kept: tuple[Path, LiveApp], uri: str
) -> None:
    notes, app = kept

    async def run() -> str:
        heard = anyio.Event()
        told: list[str] = []

        async def on_message(message: Any) -> None:
            if getattr(message, "method", "") == "notifications/resources/updated":
                told.append(message.params.uri)
                heard.set()

        with anyio.fail_after(WAIT_S):
            async with Client(
                f"{app.url}/mcp", mode="legacy", message_handler=on_message
            ) as client:
                await client.subscribe_resource("qmd://notes/100%25.md")
                await client.unsubscribe_resource("qmd://notes/100%25.md")
                await client.subscribe_resource(uri)
                (notes / "100%.md").write_text("# Percent\n\nChanged.\n", encoding="utf-8")
                number = 0
                while not heard.is_set():  # the channel may open after the first change
                    number += 1
                    (notes / "2025/plan.md").write_text(f"# Plan\n\n{number}\n", encoding="utf-8")
                    with anyio.move_on_after(2):
                        await heard.wait()
        assert set(told) == {uri}
        return told[0]

    assert anyio.run(run) == uri


@pytest.mark.parametrize("uri", URIS)
def test_an_open_listen_request_hears_of_its_documents(
    kept: tuple[Path, LiveApp], uri: str
) -> None:
    notes, app = kept

    async def run() -> str:
        with anyio.fail_after(WAIT_S):
            async with (
                Client(f"{app.url}/mcp", mode="2026-07-28") as client,
                client.listen(resource_subscriptions=[uri]) as events,
            ):
                (notes / "100%.md").write_text("# Percent\n\nChanged.\n", encoding="utf-8")
                (notes / "2025/plan.md").rename(notes / "2025/renamed.md")
                async for event in events:
                    return str(event.uri)  # type: ignore[union-attr]
        raise AssertionError("the stream ended without an event")

    assert anyio.run(run) == uri
