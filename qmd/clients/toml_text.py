"""Changes one table of a TOML text, such as ``[mcp_servers.qmd]``, and leaves the rest as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from qmd.clients.jsonc import value_at
from qmd.system.settings_file import toml_values

_HEADER = re.compile(r"(?m)^[ \t]*\[")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BOM = "\ufeff"


def with_member(text: str, path: Sequence[str], value: Mapping[str, object]) -> str:
    """
    The text with a table of these values, in the place of an earlier one or at the end.

    Raises:
        ValueError: The text is no TOML, or the table stands in it in another way.
    """
    expected = toml_values(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    table = _table(path, value, newline)
    if value_at(expected, path) is None:
        gap = newline if text.endswith("\n") else newline * 2
        if not text.strip(_BOM + " \t\r\n"):
            gap = ""
        changed = text + gap + table
    else:
        start, end = _place(text, path)
        changed = text[:start] + table + text[end:]
    *outer, last = path
    at = expected
    for key in outer:
        at = at.setdefault(key, {})
    at[last] = dict(value)
    return _checked(changed, expected)


def without_member(text: str, path: Sequence[str]) -> str:
    """The text without the table; the same text if there is none. Raises ValueError."""
    expected = toml_values(text)
    if value_at(expected, path) is None:
        return text
    start, end = _place(text, path)
    *outer, last = path
    del value_at(expected, outer)[last]
    kept, rest = text[:start], text[end:]
    if not rest:  # the blank line before the last table was made with it
        kept = re.sub(r"(\r?\n)\r?\n$", r"\1", kept)
    elif not kept or re.search(r"\n\r?\n$", kept):  # one blank line between two tables
        rest = re.sub(r"^(?:[ \t]*\r?\n)+", "", rest)
    return _checked(kept + rest, expected)


def _place(text: str, path: Sequence[str]) -> tuple[int, int]:
    """
    Where the table with its own tables begins and ends.

    Comments and blank lines before the next table are not part of it.
    """
    name = r"[ \t]*\.[ \t]*".join(rf"(?:{re.escape(key)}|\"{re.escape(key)}\")" for key in path)
    headers = re.compile(rf"[ \t]*\[[ \t]*{name}[ \t]*(?:\.[^\]]*)?\]")
    starts = [match.start() for match in _HEADER.finditer(text)]
    of_table = [index for index, start in enumerate(starts) if headers.match(text, start)]
    if not of_table or of_table != list(range(of_table[0], of_table[-1] + 1)):
        raise ValueError(f"{'.'.join(path)} is written in a way that is not changed here")
    following = starts[of_table[-1] + 1 :]
    if not following:
        return starts[of_table[0]], len(text)
    end = following[0]
    for line in reversed(text[starts[of_table[-1]] : end].splitlines(keepends=True)):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        end -= len(line)
    return starts[of_table[0]], end


def _table(path: Sequence[str], value: Mapping[str, object], newline: str) -> str:
    keys = (key if _BARE_KEY.fullmatch(key) else _written(key) for key in path)
    lines = [f"[{'.'.join(keys)}]"]
    lines += [f"{key} = {_written(each)}" for key, each in value.items()]
    return newline.join([*lines, ""])


def _written(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(key)} = {_written(each)}" for key, each in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    # A basic string of TOML is written as one of JSON, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _checked(text: str, expected: Mapping[str, Any]) -> str:
    _drop_empty(expected)
    values = toml_values(text)
    _drop_empty(values)
    if values != expected:
        raise ValueError("its layout is one that is not changed here")
    return text


def _drop_empty(values: Any) -> None:
    """Remove tables without values, which a text may or may not name."""
    for key in [key for key, value in values.items() if isinstance(value, dict)]:
        _drop_empty(values[key])
        if not values[key]:
            del values[key]
