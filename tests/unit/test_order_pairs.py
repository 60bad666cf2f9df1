"""Which questions the bench of the order makes of a folder of pages."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from order_pairs import Pair, pairs

BACKUP = """---
title: Backup
description: "Learn more about: how to keep copies of a server on another machine"
aliases: [copies, /old/path]
---
# Backup

To start it whenever the machine has been idle for an hour, see [Schedules](schedule.md).

- [Schedules](schedule.md)

## How do I restore a single file?

## What is next
"""


def test_links_and_the_pages_own_names_give_pairs(tmp_path: Path) -> None:
    (tmp_path / "backup.md").write_text(BACKUP, encoding="utf-8")
    (tmp_path / "schedule.md").write_text("# Schedules\n", encoding="utf-8")
    assert list(pairs(tmp_path)) == [
        Pair(
            "link",
            "To start it whenever the machine has been idle for an hour, see",
            "schedule.md",
            "backup.md",
        ),
        Pair("anchor", "Schedules", "schedule.md", "backup.md"),
        Pair(
            "description",
            "how to keep copies of a server on another machine",
            "backup.md",
            "backup.md",
        ),
        Pair("heading", "How do I restore a single file?", "backup.md", "backup.md"),
        Pair("alias", "copies", "backup.md", "backup.md"),
    ]
