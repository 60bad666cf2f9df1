"""The toolset ``graph``: links, check_links, tags, properties, recent, similar, outline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import Field

from qmd.kb import KnowledgeBase
from qmd.tools.arguments import Arguments, Count, OptionalText
from qmd.tools.budget import ListTokens
from qmd.tools.definition import Reply, TextBlock, Tool
from qmd.tools.outline import OUTLINE
from qmd.tools.texts import Dialect
from qmd.values.graph import MAX_LISTED, BrokenLink, NoteLink
from qmd.values.list_budget import ListBudget
from qmd.values.printable import one_line
from qmd.values.search import shown_relevance
from qmd.values.wire import to_wire

_FILE: Any = Field(description="A name as get takes it: path, note name, #docid")

# For the description only: `KnowledgeBase` takes more spellings, and its messages say more.
_SINCE: Any = {
    "pattern": r"^(|[0-9]{1,6}(m|h|d|w|mo|y)|today|yesterday"
    r"|20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8]))$"
}


class FileArguments(Arguments):
    file: str = _FILE
    limit: Count = Field(50, le=MAX_LISTED, description="Most items")
    max_tokens: ListTokens = None


class CollectionArguments(Arguments):
    collection: OptionalText = Field(None, description="Only this collection")
    limit: Count = Field(50, le=MAX_LISTED, description="Most items")
    max_tokens: ListTokens = None


class TagsArguments(CollectionArguments):
    prefix: OptionalText = Field(None, description="Only this tag and those below it: `work/`")


class PropertyListArguments(Arguments):
    key: OptionalText = Field(None, description="List the values of this property instead")
    limit: Count = Field(50, le=MAX_LISTED, description="Most items")
    max_tokens: ListTokens = None


class RecentArguments(CollectionArguments):
    since: OptionalText = Field(
        None, description="`7d`, `12h`, `yesterday` or a date", json_schema_extra=_SINCE
    )


class SimilarArguments(CollectionArguments):
    file: str = _FILE
    limit: Count = Field(10, le=MAX_LISTED, description="Most items")


def links(kb: KnowledgeBase, arguments: FileArguments, dialect: Dialect) -> Reply:
    budget = ListBudget(arguments.max_tokens)
    outgoing = kb.links(arguments.file, limit=arguments.limit)
    incoming = kb.backlinks(outgoing.file, limit=arguments.limit)
    outgoing = budget.fit(outgoing, "links", share=0.5)
    incoming = budget.fit(incoming, "links")
    texts = [
        _listing(
            f"Links in {outgoing.file}",
            outgoing.total,
            [_outgoing(link) for link in outgoing.links],
        ),
        _listing(
            f"Links to {outgoing.file}",
            incoming.total,
            [f"{link.file}:{link.line}: {link.text}" for link in incoming.links],
        ),
    ]
    structured = {
        "links": to_wire(outgoing, dialect.field),
        "backlinks": to_wire(incoming, dialect.field),
    }
    return Reply(tuple(map(TextBlock, texts)), structured)


def check_links(kb: KnowledgeBase, arguments: CollectionArguments, dialect: Dialect) -> Reply:
    budget = ListBudget(arguments.max_tokens)
    broken = kb.broken_links(collection=arguments.collection, limit=arguments.limit)
    orphans = kb.orphans(collection=arguments.collection, limit=arguments.limit)
    broken = budget.fit(broken, "links", share=0.5)
    orphans = budget.fit(orphans, "documents")
    texts = [
        _listing("Links that lead nowhere", broken.total, map(_broken, broken.links)),
        _listing(
            "Documents to which no other links",
            orphans.total,
            [f"{orphan.document.file} - {orphan.document.title}" for orphan in orphans.documents],
        ),
    ]
    structured = {
        "broken": to_wire(broken, dialect.field),
        "orphans": to_wire(orphans, dialect.field),
    }
    return Reply(tuple(map(TextBlock, texts)), structured)


def tags(kb: KnowledgeBase, arguments: TagsArguments, dialect: Dialect) -> Reply:
    tree = kb.tags(arguments.prefix or "", collection=arguments.collection, limit=arguments.limit)
    tree = ListBudget(arguments.max_tokens).fit(tree, "tags")
    lines = [f"{'  ' * tag.depth}#{tag.tag} {tag.total}" for tag in tree.tags]
    text = _listing("Tags, with their documents", tree.total, lines)
    if tree.nearest:
        nearest = one_line(", ".join(tree.nearest))
        text = f"No tag {arguments.prefix}. Did you mean: {nearest}"
    return _reply(text, tree, dialect)


def properties(kb: KnowledgeBase, arguments: PropertyListArguments, dialect: Dialect) -> Reply:
    budget = ListBudget(arguments.max_tokens)
    if arguments.key is None:
        keys = kb.properties()
        listed = budget.take(keys[: arguments.limit])
        lines = [f"{each.key} {each.documents} ({', '.join(each.kinds)})" for each in listed]
        text = _listing("Properties, with their documents", len(keys), lines)
        return Reply(
            (TextBlock(text),), {"keys": to_wire(listed, dialect.field), "total": len(keys)}
        )
    values = kb.property_values(arguments.key)
    shown = budget.take(values[: arguments.limit])
    lines = [f"{each.value or '(empty)'} {each.documents}" for each in shown]
    text = _listing(f"Values of {arguments.key}, with their documents", len(values), lines)
    return Reply(
        (TextBlock(text),), {"values": to_wire(shown, dialect.field), "total": len(values)}
    )


def recent(kb: KnowledgeBase, arguments: RecentArguments, dialect: Dialect) -> Reply:
    changes = kb.recent(
        since=arguments.since, collection=arguments.collection, limit=arguments.limit
    )
    changes = ListBudget(arguments.max_tokens).fit(changes, "changes")
    lines = [
        f"{change.modified[:16]}Z {change.by} {change.file} - {change.title}"
        for change in changes.changes
    ]
    return _reply(_listing("Changed last", changes.total, lines), changes, dialect)


def similar(kb: KnowledgeBase, arguments: SimilarArguments, dialect: Dialect) -> Reply:
    listed = kb.similar(arguments.file, collection=arguments.collection, limit=arguments.limit)
    listed = ListBudget(arguments.max_tokens).fit(listed, "documents")
    lines = [
        f"{shown_relevance(each.similarity)} {each.file}:{each.line} - {each.title}"
        f"{'' if each.linked else ' (not linked)'}"
        for each in listed.documents
    ]
    total = len(lines) + listed.left_out
    return _reply(_listing(f"Similar to {listed.file}", total, lines), listed, dialect)


def _reply(text: str, value: Any, dialect: Dialect) -> Reply:
    return Reply((TextBlock(text),), to_wire(value, dialect.field))


def _listing(title: str, total: int, items: Iterable[str]) -> str:
    """A title with the number of all items, and the listed ones below it, each on one line."""
    lines: Sequence[str] = list(map(one_line, items))
    rest = total - len(lines)
    more = [f"… {rest:,} more: raise limit or maxTokens"] if rest > 0 else []
    return "\n".join([f"{one_line(title)}: {total:,}", *lines, *more])


def _outgoing(link: NoteLink) -> str:
    if link.state == "web":
        return f"{link.line}: {link.target}"
    missing = " (no such section)" if link.state == "section missing" else ""
    return f"{link.line}: {link.target} → {link.file or 'nothing'}{missing}"


def _broken(link: BrokenLink) -> str:
    nearest = ""
    if link.nearest is not None:
        words = "no such section in" if link.missing == "section" else "did you mean"
        nearest = f" ({words} {link.nearest})"
    return f"{link.file}:{link.line}: {link.target}{nearest}"


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="links",
        title="Links of a note",
        description="Where the links of one note lead, and which lines of other notes link to it.",
        arguments=FileArguments,
        run=links,
    ),
    Tool(
        name="check_links",
        title="Check links",
        description="Links that lead nowhere, with the nearest existing name, and documents to"
        " which no other document links.",
        arguments=CollectionArguments,
        run=check_links,
        bulky=True,
    ),
    Tool(
        name="tags",
        title="Tags",
        description="The tags as a tree, each with the number of documents that have it or a tag"
        " below it.",
        arguments=TagsArguments,
        run=tags,
    ),
    Tool(
        name="properties",
        title="Properties",
        description="The properties of all notes (frontmatter and inline fields), or the values of"
        " one, with counts. Searches take them as key:value.",
        arguments=PropertyListArguments,
        run=properties,
    ),
    Tool(
        name="recent",
        title="Recent changes",
        description='What changed last, and who wrote it: a tool, or "disk" for other programs.',
        arguments=RecentArguments,
        run=recent,
    ),
    Tool(
        name="similar",
        title="Similar documents",
        description="The documents most similar to one, and whether they are linked with it."
        " Needs embeddings.",
        arguments=SimilarArguments,
        run=similar,
    ),
    OUTLINE,
)
