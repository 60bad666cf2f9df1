"""
The descriptions of tools in the language that a server was asked for.

Each tool is described in the language of its specification. What it says in the other language
stands in ``wordings/LANGUAGE.toml``, by toolset and tool: ``does`` describes the tool, the other
keys its arguments; a dot leads to a field of an argument. A toolset's table ``arguments`` describes
what several of its tools have. An operation of `qmd.operations` has both languages itself.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from qmd.tools.definition import Tool

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Language = Literal["en", "zh"]


def worded(toolset: str, tool: Tool[Any], language: Language | None) -> Tool[Any]:
    """The tool with its descriptions in a language; None for that of its specification."""
    tables = _texts(language).get(toolset) if language else None
    if language == "zh" and tool.chinese:
        texts = dict(tool.chinese)
    elif tables is None or tool.chinese:  # its specification is in this language
        return tool
    else:
        listed = tool.input_schema()["properties"]
        common = {
            name: text for name, text in tables.get("arguments", {}).items() if name in listed
        }
        texts = {**common, **tables[tool.name]}
    return replace(tool, description=texts.pop("does"), argument_texts=texts)


@cache
def _texts(language: Language) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    source = files("qmd.tools").joinpath("wordings").joinpath(f"{language}.toml")
    return tomllib.loads(source.read_text(encoding="utf-8"))
