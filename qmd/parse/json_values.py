"""Turn values of YAML and TOML into values that JSON can hold."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from typing import Any


def json_safe(value: object, written: str) -> Any:
    """
    The scalar as JSON and SQLite can hold it: dates as ISO strings, and ``written``, the text
    of the source, for what is infinite, too large or of another type.
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
