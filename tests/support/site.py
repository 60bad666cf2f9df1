"""A folder of notes, its knowledge base, and the whole HTTP face on a real socket."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from support.embedder import HashEmbedder
from support.live_app import WAIT_S, LiveApp

from qmd import KnowledgeBase, Settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: To read those of the system takes a client longer than ten requests, and it would need none.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
NOTES = {
    "plan.md": "---\ntags: [work]\nstatus: draft\n---\n# Plan\n\nBuy a boat, see [[Harbour]].\n",
    "Harbour.md": "# Harbour\n\nThe boat lies in the harbour.\n\n- [ ] paint the boat\n",
    "2025/回顾.md": "# 年度回顾\n\n这一年我们把数据库迁移到了新的服务器。\n",
}


@dataclass
class Served:
    """A server, and what it serves; ``folder`` is the collection ``notes``."""

    url: str
    kb: KnowledgeBase
    folder: Path
    app: LiveApp


@contextmanager
def serve(
    directory: Path,
    notes: Mapping[str, str | bytes] = NOTES,
    *,
    embed: bool = True,
    token: str | None = None,
    mask: str = "**/*.{md,jpg,jpeg,png,heic,canvas,pdf}",
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> Iterator[Served]:
    """Serve a new folder; ``settings`` go to `Settings`, ``options`` to `build_app`."""
    folder = directory / "notes"
    folder.mkdir()
    for name, text in notes.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    chosen = Settings(
        **{"embedder": HashEmbedder(), "write_roots": [directory], **(settings or {})}
    )
    with KnowledgeBase.open(directory / "index.sqlite", chosen, create=True) as kb:
        kb.add_collection(folder, name="notes", mask=mask)
        kb.index()
        if embed:
            kb.embed()
        with LiveApp(kb, token=token, **options) as app:
            yield Served(app.url, kb, folder, app)


def http_client(url: str, **options: Any) -> httpx.Client:
    """A client of a server in this process; its own five seconds can pass on a busy machine."""
    return httpx.Client(base_url=url, timeout=WAIT_S, verify=NO_CERTIFICATES, **options)


def press(page: Page, key: str) -> None:
    """Press a key in a view that may just have come: its keys are those of a script."""
    page.wait_for_load_state()
    page.keyboard.press(key)
