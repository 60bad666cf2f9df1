"""
Knows the placeholders of templates: ``{{date}}``, ``<% tp.file.title %>``.

A vault has a folder of templates, whose properties hold placeholders where a note has values. That
is normal, so it causes no warning.
"""

from __future__ import annotations

import json
import re

_PLACEHOLDER = r"\{\{[^{}]*\}\}|<%(?:[^%]|%(?!>))*%>"
_ONLY = re.compile(rf"(?:(?:{_PLACEHOLDER})[\s_-]*)+")
_ANY = re.compile(r"\{\{[^{}\r\n]*\}\}|<%")
# A value that begins with a placeholder: "{{" would open mappings, and "%" is refused by YAML.
_BARE_VALUE = re.compile(
    r"^([ \t]*(?:-[ \t]+)?(?:[\w .-]{1,100}:[ \t]+)?)((?:\{\{|<%)[^\r\n]*)$", re.MULTILINE
)


def is_placeholder(text: str) -> bool:
    """Whether a text consists of placeholders."""
    return _ONLY.fullmatch(text) is not None


def has_placeholder(text: str) -> bool:
    """Whether a placeholder stands anywhere in a text, or begins there."""
    return _ANY.search(text) is not None


def quoted(source: str) -> str:
    """YAML in which the values that begin with a placeholder stand in quotes."""
    return _BARE_VALUE.sub(
        lambda match: match[1] + json.dumps(match[2].strip(), ensure_ascii=False), source
    )
