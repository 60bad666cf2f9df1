"""
Reads YAML into JSON-safe values, from PyYAML's event stream: without recursion, and without
copying what an alias stands for.

PyYAML takes 12 ms to import, so this module is loaded when a text begins with frontmatter.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml
from yaml import YAMLError
from yaml.constructor import SafeConstructor
from yaml.events import ScalarEvent
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

from qmd.parse.frontmatter import NAMES, json_safe

__all__ = ["YAMLError", "YamlReader", "YamlRefused", "is_text_for_all"]

MAX_SIZE = 512 * 1024  # characters and nodes of the values, aliases counted each time
MAX_DEPTH = 50
TOO_DEEP = f"it is nested more than {MAX_DEPTH} levels deep"
#: Characters of a number; a longer one is text. (Python refuses to read integers of 5,000 digits,
#: and the result would be too large anyway.)
MAX_NUMBER = 200

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")


#: What the core schema of YAML 1.2 reads as a number, and words that YAML 1.1 takes for booleans
#: (PyYAML reads these as text).
_OF_OTHERS = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z|0o[0-7]+\Z|[yYnN]\Z"
)


def is_text_for_all(plain: str) -> bool:
    """Whether YAML 1.1 and 1.2 both read a text without quotes as it stands, or as a date."""
    kinds = Resolver.yaml_implicit_resolvers.get(plain[:1], ())
    tag = next((tag for tag, pattern in kinds if pattern.match(plain)), None)
    if tag is None:
        return _OF_OTHERS.match(plain) is None
    try:  # a day that is none, as 2026-13-45, makes PyYAML refuse all of the text
        return tag.endswith(":timestamp") and bool(
            SafeConstructor().construct_yaml_timestamp(ScalarNode(tag, plain))
        )
    except (ValueError, OverflowError):
        return False


class _NumbersOfJson(Resolver):
    """
    YAML 1.1 as PyYAML resolves it, but with decimal numbers alone, as in JSON and YAML 1.2.

    In YAML 1.1, "9:30" is 570 (in base 60), "010" is 8, and the postcode "02134" is 1116.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own name and type
        sign: [(tag, pattern) for tag, pattern in kinds if not tag.endswith((":int", ":float"))]
        for sign, kinds in Resolver.yaml_implicit_resolvers.items()
    }


_NumbersOfJson.add_implicit_resolver("tag:yaml.org,2002:int", _INTEGER, list("-+0123456789"))
_NumbersOfJson.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))

#: A parser in C, where PyYAML has one.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: A list or mapping whose end has not come: the container, the key that waits for its value (or
#: nothing), its anchor, and the size read before it.
_OpenCollection = tuple[Any, list[Any], "str | None", int]


class YamlRefused(Exception):
    """The values are too many, too deep or endless; the message says which."""


class YamlReader:
    """Builds plain values from YAML events, with an explicit stack and a budget."""

    def __init__(self) -> None:
        self.constructor = SafeConstructor()
        self.size = 0
        self.warnings: list[str] = []
        self.anchors: dict[str, tuple[Any, int]] = {}  # the value and its size
        self.stack: list[_OpenCollection] = []

    def read(self, source: str) -> tuple[Any, list[str]]:
        """
        The first document's value.

        Raises:
            YAMLError: The source is not valid.
            YamlRefused: It is hostile.
        """
        try:
            return self.read_events(source), self.warnings
        except yaml.MarkedYAMLError as error:
            # Newer versions of libyaml have a limit of their own, and call it a syntax error.
            if "nesting depth" in (error.problem or ""):
                raise YamlRefused(TOO_DEEP) from None
            raise

    def read_events(self, source: str) -> Any:
        result: Any = None
        documents = 0
        for event in iter(_Parser(source).get_event, None):
            if isinstance(event, ScalarEvent):
                value = self.read_scalar(event)
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                self.open_collection(event)
                continue
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                value = self.close_collection()
            elif isinstance(event, yaml.AliasEvent):
                value = self.read_alias(event.anchor)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    break
                continue
            else:
                continue
            if self.stack:
                self.put(self.stack[-1], value)
            else:
                result = value
        return result

    def read_scalar(self, event: Any) -> Any:
        size = 1 + len(event.value)
        self.spend(size)
        # A key is what is written: "yes:", "on:" and "007:" name properties.
        value = event.value if event.value and self.awaits_key() else self.scalar(event)
        if value is not None and self.is_name():
            value = event.value
        if event.anchor:
            self.anchors[event.anchor] = (value, size)
        return value

    def open_collection(self, event: Any) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise YamlRefused(TOO_DEEP)
        before = self.size
        self.spend(1)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        self.stack.append(({} if is_mapping else [], [], event.anchor, before))

    def close_collection(self) -> Any:
        value, _, anchor, before = self.stack.pop()
        if isinstance(value, dict):
            value = _merged(value)
        if anchor:
            self.anchors[anchor] = (value, self.size - before)
        return value

    def read_alias(self, anchor: str | None) -> Any:
        if anchor is None or anchor not in self.anchors:
            raise YamlRefused(f"the alias *{anchor} stands for nothing, or for itself")
        value, size = self.anchors[anchor]
        self.spend(size)
        return value

    def spend(self, size: int) -> None:
        """Count characters and nodes. Raises YamlRefused."""
        self.size += size
        if self.size > MAX_SIZE:
            raise YamlRefused("its aliases stand for more than 512 KiB")

    def awaits_key(self) -> bool:
        """Whether what comes next is a key of the open mapping."""
        if not self.stack:
            return False
        container, pending, _, _ = self.stack[-1]
        return isinstance(container, dict) and not pending

    def is_name(self) -> bool:
        """Whether what comes next is the value of a property that is a name, or an item of it."""
        if not 1 <= len(self.stack) <= 2:
            return False
        is_value = len(self.stack) == 1 or isinstance(self.stack[-1][0], list)
        pending = self.stack[0][1]
        return is_value and bool(pending) and pending[0] in NAMES

    def put(self, frame: _OpenCollection, value: Any) -> None:
        """Add a value to an open list, or a key or the value of the last key to a mapping."""
        container, pending, _, _ = frame
        if isinstance(container, list):
            container.append(value)
        elif not pending:
            pending.append(_key(value))
        else:
            key = pending.pop()
            if key in container:
                self.warnings.append(
                    f"The frontmatter has the key {key[:60]!r} twice; the last one counts."
                )
            container[key] = value

    def scalar(self, event: Any) -> Any:
        """A scalar as null, bool, number or string; dates as ISO strings."""
        text: str = event.value
        tag = event.tag
        if tag is None or tag == "!":
            if not event.implicit[0]:  # it is quoted
                return text
            kinds = _NumbersOfJson.yaml_implicit_resolvers.get(text[:1])
            if kinds is None:  # as of most words
                return text
            tag = next((tag for tag, pattern in kinds if pattern.match(text)), None)
            if tag is None:
                return text
        node = ScalarNode(tag, text)
        kind = tag.rpartition(":")[2]
        try:
            if kind == "null":
                return None
            if kind == "bool":
                return self.constructor.construct_yaml_bool(node)
            if kind in ("int", "float"):
                return _number(text, kind)
            if kind == "timestamp":
                return json_safe(self.constructor.construct_yaml_timestamp(node), text)
        except (ValueError, KeyError, IndexError, OverflowError, AttributeError):
            # "2025-13-45" looks like a date and is none: it stays what was written.
            return text
        return text


def _number(text: str, kind: str) -> int | float | str:
    """A number; what a tag calls one that is none (``!!int 0x1F``) stays text."""
    pattern = _INTEGER if kind == "int" else _FLOAT
    if len(text) > MAX_NUMBER or pattern.match(text) is None:
        return text
    number: int | float | str = json_safe(int(text) if kind == "int" else float(text), text)
    return number


def _merged(mapping: dict[str, Any]) -> dict[str, Any]:
    """The mapping with the keys of those below ``<<`` that it does not have itself."""
    if "<<" not in mapping:
        return mapping
    merge = mapping["<<"]
    sources = merge if isinstance(merge, list) else [merge]
    if not all(isinstance(source, dict) for source in sources):
        return mapping
    result: dict[str, Any] = {}
    for source in reversed(sources):
        result.update(source)
    result.update((key, value) for key, value in mapping.items() if key != "<<")
    return result


def _key(value: Any) -> str:
    """A key as JSON has it: a string."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)[:1000]
    return str(value)
