"""Turns values of YAML and TOML into values that JSON can hold."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from typing import Any


def json_safe(value: object, written: str) -> Any:
    """
    Convert a scalar to a value that JSON and SQLite can hold.

    A date becomes an ISO string. A number that is infinite or too large, and a value of
    another type, become ``written``, the text of the scalar in the source.
    """
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else written
    if isinstance(value, float):
        return value if math.isfinite(value) else written
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return written
