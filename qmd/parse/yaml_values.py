"""YAML → JSON-safe values, from PyYAML's event stream: no recursion, no expansion of aliases."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml.constructor import SafeConstructor

MAX_SIZE = 512 * 1024  # characters and nodes of the values, aliases counted each time
MAX_DEPTH = 50
#: Characters of a whole number; a longer one is text. ("1:59:59…", in base 60, takes PyYAML
#: quadratic time, and the result would be too large anyway.)
MAX_INTEGER = 200


class YamlRefused(Exception):
    """The values are too many, too deep or endless; the message says which."""


class YamlReader:
    """Builds plain values from YAML events, with an explicit stack and a budget."""

    def __init__(self) -> None:
        from yaml.constructor import SafeConstructor
        from yaml.resolver import Resolver

        self.constructor: SafeConstructor = SafeConstructor()
        self.resolver = Resolver()
        self.size = 0
        self.warnings: list[str] = []
        self.anchors: dict[str, tuple[Any, int]] = {}

    def read(self, source: str) -> tuple[Any, list[str]]:
        """
        The first document's value.

        Raises:
            yaml.YAMLError: The source is not valid.
            YamlRefused: It is hostile.
        """
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        # One frame per open collection: the values, the pending key, the anchor, the size before.
        stack: list[tuple[Any, list[Any], str | None, int]] = []
        result: Any = None
        documents = 0
        for event in yaml.parse(source, Loader=loader):
            before = self.size
            if isinstance(event, yaml.ScalarEvent):
                self.spend(1 + len(event.value))
                value = self.scalar(event)
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                if len(stack) >= MAX_DEPTH:
                    raise YamlRefused(f"it is nested more than {MAX_DEPTH} levels deep")
                self.spend(1)
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                stack.append(({} if is_mapping else [], [], event.anchor, before))
                continue
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                value, _, anchor, before = stack.pop()
                if isinstance(value, dict):
                    value = _merged(value)
                if anchor:
                    self.anchors[anchor] = (value, self.size - before)
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in self.anchors:
                    raise YamlRefused(
                        f"the alias *{event.anchor} stands for nothing, or for itself"
                    )
                value, size = self.anchors[event.anchor]
                self.spend(size)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    break
                continue
            else:
                continue
            if isinstance(event, yaml.ScalarEvent) and event.anchor:
                self.anchors[event.anchor] = (value, self.size - before)
            if stack:
                self.put(stack[-1], value)
            else:
                result = value
        return result, self.warnings

    def spend(self, size: int) -> None:
        self.size += size
        if self.size > MAX_SIZE:
            raise YamlRefused("its aliases stand for more than 512 KiB")

    def put(self, frame: tuple[Any, list[Any], str | None, int], value: Any) -> None:
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
        from yaml.nodes import ScalarNode

        text: str = event.value
        tag = event.tag
        if tag is None or tag == "!":
            if not any(event.implicit):
                return text
            tag = self.resolver.resolve(ScalarNode, text, event.implicit)  # type: ignore[no-untyped-call]
        node = ScalarNode(tag, text)
        kind = tag.rpartition(":")[2]
        try:
            if kind == "null":
                return None
            if kind == "bool":
                return self.constructor.construct_yaml_bool(node)
            if kind == "int":
                if len(text) > MAX_INTEGER:
                    return text
                return json_safe(self.constructor.construct_yaml_int(node), text)
            if kind == "float":
                return json_safe(self.constructor.construct_yaml_float(node), text)
            if kind == "timestamp":
                return json_safe(self.constructor.construct_yaml_timestamp(node), text)
        except (ValueError, KeyError, IndexError, OverflowError, AttributeError):
            # "2025-13-45" looks like a date and is none: it stays what was written.
            return text
        return text


def _merged(mapping: dict[str, Any]) -> dict[str, Any]:
    """YAML's ``<<``: keys of another mapping that are not given here."""
    if "<<" not in mapping:
        return mapping
    given = mapping["<<"]
    sources = given if isinstance(given, list) else [given]
    if not all(isinstance(source, dict) for source in sources):
        return mapping
    result: dict[str, Any] = {}
    for source in reversed(sources):
        result.update(source)
    result.update((key, value) for key, value in mapping.items() if key != "<<")
    return result


def _key(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        import json

        return json.dumps(value, ensure_ascii=False)[:1000]
    return str(value)


def json_safe(value: object, written: str) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else written
    if isinstance(value, float):
        return value if math.isfinite(value) else written
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return written
