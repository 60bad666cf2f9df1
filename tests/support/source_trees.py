"""The code of the package as trees, for the tests that read it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


@functools.cache
def source_trees() -> Mapping[str, ast.Module]:
    """``qmd/NAME.py`` → its tree. It takes a second, which no other test should wait for."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "qmd").rglob("*.py"))
    }
