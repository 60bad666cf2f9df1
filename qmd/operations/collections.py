"""Collections: the indexed directories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from qmd.errors import CollectionNotFoundError, ConflictError
from qmd.operations.definition import KnowledgeBase, Replied, operation
from qmd.values import Collection, Context
from qmd.values.facts import Describe, Inline, InSchema, Shell
from qmd.values.text import one_line

FAMILY = {"toolset": None}

# For the description only: `KnowledgeBase` checks names, and its messages say more than a pattern.
_NOT_IN_NAMES = r"/\\,#?*\[\]{}\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
NAME = InSchema(
    maxLength=100,
    pattern=rf"^(?!\.\.?$)[^\s~\-{_NOT_IN_NAMES}]([^{_NOT_IN_NAMES}]*[^\s{_NOT_IN_NAMES}])?$",
)
_Name = Annotated[str, Shell(completes="collections")]


@dataclass(frozen=True, slots=True)
class ListedCollection:
    collection: Annotated[Collection, Inline("name", "path", "pattern", "documents", "owner")]


@dataclass(frozen=True, slots=True)
class CollectionList:
    collections: tuple[ListedCollection, ...]
    content: str


def _collection_list(replied: Replied) -> CollectionList:
    listed = replied.value
    lines = [f"Collections: {len(listed)}"]
    lines += [f"- {each.name} ({each.documents} docs)" for each in listed]
    return CollectionList(tuple(map(ListedCollection, listed)), "\n".join(lines))


@operation(
    sends=_collection_list,
    view="render_collections",
    command="collection list",
    examples=("qmd collection list", "qmd collection list --json"),
)
def collections(kb: KnowledgeBase) -> list[Collection]:
    """List the collections, the last changed first."""
    return kb.collections()


@dataclass(frozen=True, slots=True)
class CollectionWithContexts:
    collection: Annotated[Collection, Inline()]
    contexts: tuple[Context, ...]


@dataclass(frozen=True, slots=True)
class CollectionDetails:
    collection: Annotated[
        Collection, Inline("name", "path", "pattern", "documents", "last_indexed", "owner")
    ]


def _collection_details(replied: Replied) -> CollectionDetails:
    return CollectionDetails(replied.value.collection)


@operation(
    route="GET /collections/{name}",
    sends=_collection_details,
    view="render_collection",
    command="collection show",
    examples=("qmd collection show notes",),
    errors=(CollectionNotFoundError,),
)
def collection(kb: KnowledgeBase, name: _Name) -> CollectionWithContexts:
    """Show one collection: its directory, rules and counts."""
    contexts = (each for each in kb.contexts() if each.collection == name)
    return CollectionWithContexts(kb.collection(name), tuple(contexts))


@dataclass(frozen=True, slots=True)
class CollectionRemoved:
    status: Literal["removed"]
    name: str
    content: str


def _collection_removed(replied: Replied) -> CollectionRemoved:
    name = replied.value.name
    return CollectionRemoved("removed", name, f"Removed collection '{name}'")


@operation(
    route="DELETE /collections/{name}",
    sends=_collection_removed,
    command=None,  # it asks first: `qmd.cli.indexing`
    errors=(CollectionNotFoundError,),
    lane="write",
)
def remove_collection(kb: KnowledgeBase, name: str) -> Collection:
    """
    Remove a collection.

    Its documents leave the index; the files on the disk stay.
    """
    return kb.remove_collection(name)


@dataclass(frozen=True, slots=True)
class CollectionRenamed:
    status: Literal["renamed"]
    old_name: str
    new_name: str
    content: str


def _renamed(replied: Replied) -> str:
    return f"Renamed '{one_line(replied.arguments['name'])}' to '{one_line(replied.value.name)}'"


def _collection_renamed(replied: Replied) -> CollectionRenamed:
    return CollectionRenamed(
        status="renamed",
        old_name=replied.arguments["name"],
        new_name=replied.value.name,
        content=_renamed(replied),
    )


@operation(
    route="PUT /collections/{name}",
    sends=_collection_renamed,
    text=_renamed,
    command="collection rename",
    examples=("qmd collection rename notes work",),
    bodies=({"new_name": "my-docs-v2"},),
    errors=(CollectionNotFoundError, ConflictError),
    lane="write",
)
def rename_collection(
    kb: KnowledgeBase,
    name: Annotated[str, Shell("OLD", completes="collections")],
    new_name: Annotated[str, Describe("The new name"), NAME, Shell("NEW")],
) -> Collection:
    """
    Rename a collection, without indexing it again.

    Its documents and contexts stay.
    """
    return kb.rename_collection(name, new_name)


def _excluded(replied: Replied) -> str:
    name = one_line(replied.value.name)
    return f"Searches leave '{name}' out, unless they name it: -c {name}"


@operation(
    in_shell_alone=True,
    text=_excluded,
    command="collection exclude",
    examples=("qmd collection exclude archive",),
    errors=(CollectionNotFoundError,),
    lane="write",
)
def exclude(kb: KnowledgeBase, name: _Name) -> Collection:
    """Search a collection only when -c or --path names it."""
    return kb.include_collection(name, included=False)


@operation(
    in_shell_alone=True,
    text=lambda replied: f"Searches look in '{one_line(replied.value.name)}' again.",
    command="collection include",
    examples=("qmd collection include archive",),
    errors=(CollectionNotFoundError,),
    lane="write",
)
def include(kb: KnowledgeBase, name: _Name) -> Collection:
    """Search a collection again when no collection is named."""
    return kb.include_collection(name, included=True)
