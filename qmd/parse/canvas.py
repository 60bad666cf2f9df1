"""
Turns a canvas of Obsidian (``*.canvas``, JSON Canvas 1.0) into a document of its cards' text.

The cards of a group follow the group's label as a heading; the others come first. Cards are in
reading order: from top to bottom, then from left to right. A card that shows a file is an embed of
that file, so canvases count as linking notes.

Source: https://jsoncanvas.org/spec/1.0/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from qmd.parse.converted import Converted
from qmd.parse.decode import Decoded, decode, json_object
from qmd.parse.markdown import closed
from qmd.values.text import file_stem, replace_halves

#: A canvas of more cards, edges or groups is read in part. Cards are compared with all groups.
MAX_CARDS = 20_000
MAX_GROUPS = 200

_UNLINKABLE = re.compile(r"[\[\]|#^\r\n]")
_SHORT = 60  # characters of a card's text that name it beside an edge


class Box(NamedTuple):
    """A rectangle; ``y`` grows downwards, as in the file."""

    x: float
    y: float
    width: float
    height: float

    def contains(self, other: Box) -> bool:
        """Whether the middle of another rectangle lies in this one."""
        x, y = other.x + other.width / 2, other.y + other.height / 2
        return self.x <= x <= self.x + self.width and self.y <= y <= self.y + self.height

    @property
    def area(self) -> float:
        return self.width * self.height


@dataclass(frozen=True, slots=True)
class Card:
    """A card or a group, with its text as Markdown: for a group, its label."""

    id: str
    box: Box
    text: str
    name: str
    is_group: bool


def convert(path: str, data: bytes) -> Converted:
    """
    Read one canvas. Its name is its title.

    Raises:
        DecodeError: The bytes are no text.
        DamagedFileError: They are no canvas.
    """
    decoded = decode(data)
    text, warnings = canvas_text(decoded)
    return Converted(text, warnings=(*decoded.warnings, *warnings), encoding=decoded.encoding)


def canvas_text(decoded: Decoded) -> tuple[str, tuple[str, ...]]:
    """
    The text of a canvas as Markdown, and warnings.

    Raises:
        DamagedFileError: It is no canvas.
    """
    canvas = json_object(
        decoded.text,
        damaged="The file is no canvas: its JSON cannot be read ({error}).",
        other="The file is no canvas: its JSON holds no cards.",
        hint="Open it in Obsidian and save it again.",
    )
    warnings: list[str] = []
    nodes = _mappings(canvas.get("nodes"), MAX_CARDS, "cards", warnings)
    edges = _mappings(canvas.get("edges"), MAX_CARDS, "edges", warnings)
    cards = [_card(node) for node in nodes]
    groups = sorted((each for each in cards if each.is_group), key=_reading_order)
    if len(groups) > MAX_GROUPS:
        warnings.append(f"The canvas has {len(groups):,} groups; only {MAX_GROUPS} count.")
        del groups[MAX_GROUPS:]
    inside = _by_group(sorted(cards, key=_reading_order), groups)
    parts = [card.text for card in inside.get(None, ())]
    parts.append(_labelled_edges(edges, cards))
    for group, depth in _outline_of_groups(groups):
        parts.append(f"{'#' * min(6, depth + 2)} {group.text}" if group.text else "")
        parts += [card.text for card in inside.get(id(group), ())]
    text = "\n\n".join(part for part in parts if part)
    # Rules around the first card are no frontmatter.
    lead = "\n" if text.startswith(("---", "+++")) else ""
    return f"{lead}{text}\n" if text else "", tuple(warnings)


def _mappings(value: object, most: int, name: str, warnings: list[str]) -> list[dict[str, Any]]:
    every = [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    if len(every) > most:
        warnings.append(f"The canvas has {len(every):,} {name}; only {most:,} were read.")
    return every[:most]


def _card(node: Mapping[str, Any]) -> Card:
    kind = node.get("type")
    if kind == "text":
        text = closed(_text(node.get("text")).strip("\r\n"))
        name = next((line.strip("#-*> \t") for line in text.split("\n") if line.strip()), "")
    elif kind == "file":
        path = _line(node.get("file"))
        text, name = _embed(path, _line(node.get("subpath"))), file_stem(path)
    elif kind == "link":
        name = _line(node.get("url"))
        text = f"[{name}](<{name}>)" if name and not re.search(r"[\[\]<>]", name) else name
    else:
        text = name = _line(node.get("label"))
    box = Box(*(_number(node.get(key)) for key in ("x", "y", "width", "height")))
    return Card(_line(node.get("id")), box, text, name[:_SHORT], is_group=kind == "group")


def _text(value: object) -> str:
    if not isinstance(value, str):
        return ""
    return replace_halves(value).replace("\0", "\ufffd")


def _line(value: object) -> str:
    return " ".join(_text(value).split())


def _number(value: object) -> float:
    """A coordinate; 0 for what is none. (JSON of Python has NaN, and whole numbers of any size.)"""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e12:
        return 0.0
    return float(value)


def _embed(path: str, subpath: str) -> str:
    if not path:
        return ""
    if _UNLINKABLE.search(path):
        # In a Markdown link, "#" begins a heading.
        target = path.replace("%", "%25").replace("#", "%23")
        return f"![{file_stem(path).translate({91: None, 93: None})}](<{target}>)"
    return f"![[{path}{subpath}]]" if subpath.startswith("#") else f"![[{path}]]"


def _reading_order(card: Card) -> tuple[float, float]:
    return card.box.y, card.box.x


def _by_group(cards: Iterable[Card], groups: Sequence[Card]) -> dict[int | None, list[Card]]:
    """The cards in the smallest group around each, by the group's `id`; None for the others."""
    smallest_first = sorted(groups, key=lambda group: group.box.area)
    inside: dict[int | None, list[Card]] = {}
    for card in cards:
        if not card.is_group and card.text:
            group = next((each for each in smallest_first if each.box.contains(card.box)), None)
            inside.setdefault(None if group is None else id(group), []).append(card)
    return inside


def _outline_of_groups(groups: Sequence[Card]) -> list[tuple[Card, int]]:
    """The groups, each after the one around it, and how many groups are around it."""
    smallest_first = sorted(groups, key=lambda group: group.box.area)
    positions = {id(group): position for position, group in enumerate(smallest_first)}
    below: dict[int | None, list[Card]] = {}
    for group in groups:
        position = positions[id(group)]
        around = (each for each in smallest_first[position + 1 :] if each.box.contains(group.box))
        parent = next(around, None)
        below.setdefault(None if parent is None else id(parent), []).append(group)
    result: list[tuple[Card, int]] = []
    stack = [(group, 0) for group in reversed(below.get(None, []))]
    while stack:
        group, depth = stack.pop()
        result.append((group, depth))
        stack += [(each, depth + 1) for each in reversed(below.get(id(group), []))]
    return result


def _labelled_edges(edges: Iterable[Mapping[str, Any]], cards: Iterable[Card]) -> str:
    """A list of the edges that have a label: "- One card → another: label"."""
    names = {card.id: card.name for card in cards}
    lines = []
    for edge in edges:
        label = _line(edge.get("label"))
        if label:
            ends = (names.get(_line(edge.get(key)), "") for key in ("fromNode", "toNode"))
            lines.append(f"- {' → '.join(end or '…' for end in ends)}: {label}")
    return "\n".join(lines)
