"""What is captured over MCP, REST and the page's forms, and what a token may do there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import pytest
from support.rest import rest_client
from support.web_site import Reply, Site, page

from qmd import KnowledgeBase, Settings
from qmd.errors import NotFoundError, WebPageError
from qmd.kb.scoped import ScopedKnowledgeBase
from qmd.operations.texts import MCP
from qmd.tools.toolsets import tools_of
from qmd.values.access import AccessScope


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    settings = Settings(allow_private_addresses=True)
    with KnowledgeBase.open(tmp_path / "index.sqlite", settings, create=True) as opened:
        for name in ("closed", "open"):
            (tmp_path / name).mkdir()
            opened.add_collection(tmp_path / name)
        yield opened


@pytest.fixture
def site() -> Iterator[Site]:
    with Site({"/a": page("A page", "<p>Text.</p>")}) as opened:
        yield opened


def test_the_tools_say_what_they_kept(kb: KnowledgeBase, site: Site) -> None:
    tools = {tool.name: tool for tool in tools_of("capture", alone=True)}
    assert tools.keys() == {"capture", "save_page"}
    kept = tools["capture"].call(kb, {"text": "A thought"}, MCP)
    assert kept.blocks[0].text.startswith("Added to closed/Inbox.md:1 (change ")
    assert kept.structured["file"] == "closed/Inbox.md"
    saved = tools["save_page"].call(kb, {"url": f"{site.url}/a", "folder": "open"}, MCP)
    assert saved.blocks[0].text.startswith("Saved open/A page.md (change ")
    assert saved.structured["status"] == "saved"


def test_rest_takes_a_thought_and_a_page(kb: KnowledgeBase, site: Site) -> None:
    with rest_client(kb) as rest:
        kept = rest.post("/capture", json={"text": "A thought", "at": "2026-11-25T10:00"})
        assert kept.status_code == 200 and kept.json()["file"] == "closed/Inbox.md"
        saved = rest.post("/save_page", json={"url": f"{site.url}/a"})
        assert saved.json()["address"] == f"{site.url}/a"
        gone = rest.post("/save_page", json={"url": f"{site.url}/gone"})
        assert (gone.status_code, gone.headers["Qmd-Error"]) == (409, "web_page")


def scope(read: str, write: str = "") -> AccessScope:
    """For a token that opens these collections."""
    return AccessScope("t", "anna", frozenset(read.split()), frozenset(write.split()))


def test_a_token_captures_in_its_collections_alone(kb: KnowledgeBase, site: Site) -> None:
    scoped = ScopedKnowledgeBase(kb, scope("open", "open"))
    assert scoped.capture("A thought").file == "open/Inbox.md"
    with pytest.raises(NotFoundError):
        scoped.save_page(f"{site.url}/a", folder="closed/x")
    with pytest.raises(WebPageError, match="not public"):  # whatever the server's setting says
        scoped.save_page(f"{site.url}/a")
    with pytest.raises(NotFoundError):
        ScopedKnowledgeBase(kb, scope("open")).capture("A thought")


def test_a_setting_with_another_collection_is_not_the_clients(tmp_path: Path) -> None:
    settings = Settings(inbox="closed/{{title}}", inbox_template="closed/Template")
    with KnowledgeBase.open(tmp_path / "index.sqlite", settings, create=True) as kb:
        for name in ("closed", "open"):
            (tmp_path / name).mkdir()
            kb.add_collection(tmp_path / name)
        assert ScopedKnowledgeBase(kb, scope("open", "open")).capture("x").file == "open/Inbox.md"


def test_other_writes_do_not_wait_for_a_page(kb: KnowledgeBase) -> None:
    """A site that never answers holds nobody up but who asked for it."""
    asked, leave = Event(), Event()

    def silent(handler: BaseHTTPRequestHandler) -> None:
        asked.set()
        leave.wait(60)

    with (
        Site({"/slow": Reply(silent)}) as site,
        rest_client(kb) as rest,
        ThreadPoolExecutor(1) as pool,
    ):
        slow = pool.submit(rest.post, "/save_page", json={"url": f"{site.url}/slow"})
        assert asked.wait(60)
        assert rest.post("/capture", json={"text": "Meanwhile"}).status_code == 200
        leave.set()
        assert slow.result().status_code == 409
