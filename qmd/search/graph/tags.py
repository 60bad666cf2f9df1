"""The tree of tags, with the number of documents at each place of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from heapq import nlargest
from typing import TYPE_CHECKING

from qmd.system import cancellation
from qmd.values import Filters
from qmd.values.graph import TagCount, TagTree
from qmd.values.text import replace_halves

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.store.sql.filters import Selection

#: A longer tag, in characters, is no name that people chose, and is left out.
MAX_TAG = 1000
#: To suggest tags, so many characters of so many parts of so many tags are compared.
MAX_SOUGHT, MAX_PARTS, MAX_COMPARED = 100, 4, 20_000
#: At most this many spellings of one tag are counted, such as ``#Äpfel`` and ``#äpfel``.
MAX_SPELLINGS = 100


@dataclass(slots=True, eq=False)
class _Node:
    """
    A tag, or the part of tags before a slash.

    Attributes:
        tag: As it is spelled first.
        depth: How many parts stand before it.
        spellings: The tag as documents spell it; empty if only tags below it are used.
        documents: How many documents have exactly this tag.
        most: At most this many documents have the tag or one below it; exact for a leaf.
    """

    tag: str
    depth: int
    spellings: list[str] = field(default_factory=list)
    documents: int = 0
    most: int = 0
    children: dict[str, _Node] = field(default_factory=dict)


def tag_tree(
    reader: Reader, prefix: str = "", *, collection: str | None = None, limit: int
) -> TagTree:
    """
    The tags that most documents have, as a tree: each tag is followed by those below it.

    Args:
        prefix: Only this tag and those below it; ``#`` and a final slash do not matter.
        limit: Return at most this many; a tag never comes without the tags above it.

    Raises:
        CollectionNotFoundError.
    """
    selection = reader.select(Filters(collections=(collection,) if collection else ()))
    prefix = replace_halves(prefix).strip().lstrip("#").strip("/")
    root = _Node("", -1)
    for tag, count in reader.tags.counts(selection, prefix):
        cancellation.check()
        if len(tag) <= MAX_TAG:
            _insert(root, tag, count)
    top = root
    for _ in range(prefix.count("/")):  # down to the parent of the prefix
        top = next(iter(top.children.values()), top)
    nodes = list(_subtree(top))
    chosen = nlargest(limit, nodes, key=lambda node: (node.most, -node.depth))
    totals = {node: _total(reader, node, selection) for node in chosen}
    tags = tuple(
        TagCount(node.tag, node.documents, totals[node], node.depth - top.depth - 1)
        for node in _subtree(top, totals)
    )
    nearest = _nearest(reader, prefix, selection) if prefix and not tags else ()
    return TagTree(tags, len(nodes), nearest)


def _nearest(reader: Reader, prefix: str, selection: Selection) -> tuple[str, ...]:
    """The tags with a part that contains the prefix, or that is spelled like it; at most three."""
    sought = prefix[:MAX_SOUGHT].casefold()
    tags: dict[str, str] = {}
    containing: list[str] = []
    for tag, _ in reader.tags.counts(selection)[:MAX_COMPARED]:
        cancellation.check()
        if len(tag) > MAX_TAG:
            continue
        if sought in tag.casefold():
            containing.append(tag)
        tags.setdefault(tag[:MAX_SOUGHT].casefold(), tag)
        above = ""
        for name in tag.split("/", MAX_PARTS)[:MAX_PARTS]:
            above = f"{above}/{name}" if above else name
            tags.setdefault(name[:MAX_SOUGHT].casefold(), above)
    alike = [tags[name] for name in get_close_matches(sought, tags)]
    return tuple(dict.fromkeys([*sorted(containing, key=len)[:3], *alike]))[:3]


def _insert(root: _Node, tag: str, count: int) -> None:
    node = root
    for name in tag.split("/"):
        key = name.casefold()
        if key not in node.children:
            tag_below = f"{node.tag}/{name}" if node is not root else name
            node.children[key] = _Node(tag_below, node.depth + 1)
        node = node.children[key]
        node.most += count
    node.documents += count
    node.spellings.append(tag)


def _subtree(node: _Node, totals: dict[_Node, int] | None = None) -> Iterator[_Node]:
    """
    The nodes below a node, each before those below it. (Tags may be too deep for a recursion.)

    Args:
        totals: Only these nodes, those with the most documents first; None for all.
    """
    pending = [node]
    while pending:
        below = pending.pop()
        if below is not node:
            yield below
        children = list(below.children.values())
        if totals is not None:
            children = [child for child in children if child in totals]
            children.sort(key=lambda child: (-totals[child], child.tag.casefold()))
        pending += reversed(children)


def _total(reader: Reader, node: _Node, selection: Selection) -> int:
    """How many documents have the tag or one below it; each counts once."""
    cancellation.check()
    while not node.documents and len(node.children) == 1:
        (node,) = node.children.values()
    if not node.children:
        return node.documents
    return reader.tags.count_below(selection, _spellings(node))


def _spellings(node: _Node) -> list[str]:
    """
    How documents spell a tag in their tags, also in those below it.

    The store ignores the case of ASCII letters; of other letters it does not.
    """
    if (tag := node.tag).isascii():
        return [tag]
    spellings = {
        "/".join(each.split("/")[: node.depth + 1])
        for below in (node, *_subtree(node))
        for each in below.spellings
    }
    return sorted(spellings)[:MAX_SPELLINGS]
