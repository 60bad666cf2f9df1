"""While a process walks the folders before it keeps them, every face of every process says so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from support.cli import Scratch
from support.live import put, until
from support.mcp_client import RawClient, qmd_mcp
from support.site import Served, http_client, serve

from qmd import KnowledgeBase
from qmd.errors import VectorIndexMissingError
from qmd.ingest.events import Event
from qmd.ingest.keep.freshness import IndexLock, is_locked
from qmd.operations.replies import TextBlock
from qmd.operations.texts import MCP
from qmd.search.retrieve import VECTORS_COMING
from qmd.store.sql.shared import KEEPER
from qmd.tools.toolsets import select
from qmd.values import Freshness, Progress


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, {}) as server:
        put(server.folder / "plan.md", "# Plan\n\nBuy a boat.\n")
        yield server


def test_a_run_without_a_keeper_is_told_from_the_first_file_that_it_reads(served: Served) -> None:
    def look(tick: Progress) -> None:
        if tick.total and not tick.done and not seen:
            with KnowledgeBase.open(served.kb.path, read_only=True) as other:
                seen.append(other.freshness())
            with http_client(served.url) as client:
                answer = client.post("/search", json={"query": "boat"})
                seen_by_rest.append(answer.json()["freshness"]["indexing"])

    seen: list[Freshness] = []
    seen_by_rest: list[bool] = []
    served.kb.index(progress=look)
    [fresh] = seen
    assert (fresh.indexing, fresh.files_pending, fresh.watch) == (True, 1, "off")
    assert (fresh.embedding, seen_by_rest) == (False, [True])
    after = served.kb.freshness()
    assert (after.indexing, after.files_pending) == (False, 0)
    assert not is_locked(served.kb.path)


def test_a_run_that_finds_nothing_to_do_tells_nothing(served: Served) -> None:
    os.utime(served.folder / "plan.md", (1e9, 1e9))  # else the next run reads it again
    served.kb.index()
    with served.kb._store.reading() as reader:
        before = reader.meta.get(KEEPER)
    served.kb.index()
    with served.kb._store.reading() as reader:
        assert reader.meta.get(KEEPER) == before


def during_the_walk(served: Served, look: Callable[[], None]) -> None:
    """Call ``look`` when the first walk knows that it has a file to read."""
    ticks: list[Progress] = []

    def heed(tick: Progress) -> None:
        if tick.total and not tick.done and not ticks:
            ticks.append(tick)
            look()

    served.kb.index_before_keeping(progress=heed)
    assert ticks
    assert [hit.path for hit in served.kb.search("boat").hits] == ["plan.md"]


def test_rest_and_another_process_are_told(served: Served) -> None:
    def look() -> None:
        with http_client(served.url) as client:
            fresh = client.post("/search", json={"query": "boat"}).json()["freshness"]
            assert (fresh["indexing"], fresh["files_pending"]) == (True, 1)
            assert fresh["last_sync"] is None
        with KnowledgeBase.open(served.kb.path, read_only=True) as other:
            told = other.freshness()
            assert (told.indexing, told.files_pending, told.leader) == (True, 1, False)
            assert (told.last_sync, told.embedding) == (None, True)

    during_the_walk(served, look)
    after = served.kb.freshness()
    assert (after.indexing, after.files_pending) == (False, 0)
    assert after.last_sync is not None


def test_between_the_walk_and_the_keeper_nobody_is_told_what_to_do(
    served: Served, tmp_path: Path
) -> None:
    def others() -> tuple[bool, str, bool]:
        with KnowledgeBase.open(served.kb.path, read_only=True) as other:
            fresh = other.freshness()
        return fresh.indexing, fresh.watch, fresh.embedding

    served.kb.index_before_keeping()
    assert others() == (False, "native", True)
    own = served.kb.freshness()
    assert (own.leader, own.watch, own.embedding) == (True, "native", True)
    with RawClient(qmd_mcp(served.kb.path), tmp_path / "stderr") as client:
        client.handshake()
        texts = [each["text"] for each in client.tool("status")["content"]]
        assert "vectors are being made in the background" in texts[-1]
    served.kb.index_before_keeping()
    assert is_locked(served.kb.path)
    keeper = served.kb.keep()
    assert others()[1:] == ("native", True)  # its own first walk may run just now
    until(lambda: keeper.is_leader)
    served.kb.close()
    assert not is_locked(served.kb.path)


def test_without_a_keeper_the_lock_is_released_at_the_end(served: Served) -> None:
    served.kb.index_before_keeping()
    assert is_locked(served.kb.path)
    served.kb.close()
    assert not is_locked(served.kb.path)


def test_a_walk_that_fails_keeps_nothing(served: Served) -> None:
    def fail(tick: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        served.kb.index_before_keeping(progress=fail)
    assert not is_locked(served.kb.path)
    assert served.kb.freshness().watch == "off"


def test_the_page_does_not_say_that_there_is_nothing(served: Served) -> None:
    def text(client: httpx.Client, address: str) -> str:
        answer = client.get(address)
        assert answer.status_code == 200
        return answer.text

    def look() -> None:
        with http_client(served.url, headers={"accept-language": "en"}) as client:
            start = text(client, "/")
            assert "The notes are being indexed." in start
            assert "<strong>There are no notes yet" not in start
            assert "1 changed file is not indexed yet" in text(client, "/part/hits?q=boat")
            state = text(client, "/part/overview/live")
            assert "No program keeps" not in state and "Nothing runs" not in state
            assert '<progress max="1" value="0" aria-labelledby="job-indexing">' in state
            assert '<progress max="1" value="0"' in text(client, "/part/live")

    during_the_walk(served, look)
    with http_client(served.url) as client:
        assert "live-indexing" not in text(client, "/part/live")


def test_the_command_line_and_mcp_tell_that_documents_may_be_missing(
    served: Served, tmp_path: Path
) -> None:
    scratch = Scratch(tmp_path)
    database = str(served.kb.path)

    def look() -> None:
        assert "under way now, 1 file left" in scratch.ok("--db", database, "status").out
        searched = scratch.call("--db", database, "search", "boat")
        assert "Files are being indexed just now" in searched.err
        for options in ((), ("--json",)):  # a process of its own reads the plain form otherwise
            plain = scratch.run("--db", database, "search", "boat", *options)
            assert "Files are being indexed just now" in plain.err
        with RawClient(qmd_mcp(served.kb.path), tmp_path / "stderr") as client:
            client.handshake()
            for name, arguments in (("status", {}), ("search", {"query": "boat"})):
                texts = [each["text"] for each in client.tool(name, **arguments)["content"]]
                assert "Files are being indexed: 1 file left." in texts[-1]

    during_the_walk(served, look)


def test_while_another_process_keeps_the_index_it_alone_tells(served: Served) -> None:
    events: list[Event] = []
    served.kb.events.subscribe(events.append)
    lock = IndexLock(served.kb.path)
    assert lock.take()
    served.kb.index_before_keeping()
    lock.release()
    assert [event.kind for event in events] == ["added"]
    assert not served.kb.freshness().indexing


def test_nobody_is_told_to_make_the_vectors_that_are_being_made(served: Served) -> None:
    def look() -> None:
        with http_client(served.url, headers={"accept-language": "en"}) as client:
            reply = client.post("/query", json={"query": "boat"}).json()
            assert reply["degraded"] == f"Answered from full text alone: {VECTORS_COMING}"
            assert VECTORS_COMING in client.get("/part/hits?q=boat").text
            refused = client.post("/vsearch", json={"query": "boat"})
            assert refused.status_code == 503
            assert "Run 'qmd embed' first" in refused.json()["detail"]  # prescribed
        (vsearch,) = (tool for tool in select(["qmd"]).tools if tool.name == "vsearch")
        reply = vsearch.call(served.kb, {"query": "boat"}, MCP)
        assert reply.blocks == (TextBlock(VECTORS_COMING),)
        with pytest.raises(VectorIndexMissingError) as caught:
            served.kb.vsearch("boat")
        assert (str(caught.value), caught.value.hint) == ("Vector index not found.", VECTORS_COMING)

    during_the_walk(served, look)


def test_nobody_is_told_to_make_the_vectors_for_similar_documents_that_are_being_made(
    served: Served,
) -> None:
    def look() -> None:
        with http_client(served.url) as client:
            refused = client.get("/similar", params={"file": "plan"})
        assert refused.status_code == 409
        assert refused.json()["detail"] == (
            f"{served.folder.name}/plan.md has no vectors yet.\n\n{VECTORS_COMING}"
        )

    served.kb.index()
    put(served.folder / "other.md", "# Other\n\nSell a car.\n")
    during_the_walk(served, look)


def test_nobody_is_told_to_make_vectors_of_nothing(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    (tmp_path / "empty").mkdir()

    def hint_of_vsearch(kb: KnowledgeBase) -> str | None:
        with pytest.raises(VectorIndexMissingError) as caught:
            kb.vsearch("boat")
        return caught.value.hint

    def look(reason: str) -> None:
        """What is told when the keeper has walked: until then there may be documents to come."""
        with KnowledgeBase.open(scratch.database) as kb:
            until(lambda: kb.query("boat").degraded == f"Answered from full text alone: {reason}")
            until(lambda: hint_of_vsearch(kb) == reason)

    with KnowledgeBase.open(scratch.database, create=True) as kb:
        kb.keep()
        look("There are no collections yet: 'qmd up FOLDER' makes a folder searchable.")
        kb.add_collection(tmp_path / "empty")
        kb.index()
        look(
            "There are no documents yet: 'qmd status' shows the collections,"
            " and what they leave out."
        )
