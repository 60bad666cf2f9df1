"""Reviewed files that pin what others rely on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parents[1] / "contract" / "golden"


def assert_golden(name: str, value: Any) -> None:
    """
    Compare a JSON value with ``tests/contract/golden/NAME``.

    After a change that is meant, run ``tests/update`` and review the diff.
    """
    path = DIRECTORY / name
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
