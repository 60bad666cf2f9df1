"""A small real vault, indexed: what the MCP tests read from."""

from __future__ import annotations

from pathlib import Path

from qmd import KnowledgeBase

FILES = {
    "2025/plan.md": "# Plan\n\nBuy a boat.\nSail to the islands.\nCome back.\n",
    "2025/ meeting.md": "# Meeting\n\nWe met about budgets.\n",
    "2025/回顾.md": "# 年度回顾\n\n这一年我们把数据库迁移到了新的服务器。\n",
    "External Podcast/2023 April - Interview.md": "# Interview\n\nA talk about sourdough.\n",
    "100%.md": "# Percent\n\nAll of it.\n",
    "a%20b.md": "# Literal\n\nThe percent sign is in the name.\n",
    "no newline.md": "# Short\n\nlast line",
    "windows.md": "# CRLF\r\n\r\nfirst\r\nsecond\r\n",
    "big.md": "# Big\n\n" + "A line of filler about elephants.\n" * 450,
    "x.md:3": "not a document: wrong suffix\n",
}


def make_vault(directory: Path) -> Path:
    """Write `FILES` below ``directory/notes``; returns that folder."""
    notes = directory / "notes"
    for name, text in FILES.items():
        path = notes / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return notes


def make_index(directory: Path) -> Path:
    """A vault and its database, with a context; returns the database."""
    notes = make_vault(directory)
    database = directory / "index.sqlite"
    with KnowledgeBase.open(database, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        kb.add_context("qmd://notes/2025", "the year 2025")
    return database
