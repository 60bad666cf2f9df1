"""The endpoints that add collections and contexts by paths of the server's disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from qmd import errors
from qmd.operations.collections import NAME
from qmd.operations.definition import operation
from qmd.operations.indexing import count
from qmd.server.endpoints.definition import Call, context_path, permitted_directory
from qmd.server.endpoints.definition import add_collection as add_permitted
from qmd.values import Collection
from qmd.values.facts import Describe, Inline, InSchema, OmitDefault

FAMILY = {"toolset": None, "command": None, "lane": "write"}


@dataclass(frozen=True, slots=True)
class CollectionAdded:
    status: Literal["added"]
    collection: Annotated[Collection, Inline("name", "path", "documents")]
    content: str
    errors: Annotated[tuple[str, ...], OmitDefault(), Describe("What could not be indexed")] = ()
    notice: Annotated[
        str | None, OmitDefault(), Describe("Which other collections share files")
    ] = None


@operation(
    group="collections",
    route="POST /collections/add",
    errors=(errors.OutsideRootsError, errors.ConflictError),
    bodies=({"name": "my-docs", "path": "/home/me/docs", "glob_pattern": "**/*.md"},),
)
def add_collection(
    call: Call,
    name: Annotated[str, Describe("The name of the collection; no / \\ , # ? * [ ] { }"), NAME],
    path: Annotated[str, Describe("A directory on the server's disk, below a write root")],
    glob_pattern: Annotated[
        str, Describe("Which files are documents; several globs by comma or braces")
    ] = "**/*.md",
) -> CollectionAdded:
    """
    Add a collection and index it.

    The directory must lie below a write root of the server.
    """
    kb = call.kb
    directory = permitted_directory(kb, path)
    notice = kb.overlap_notice(directory)
    added = add_permitted(kb, directory, name=name, mask=glob_pattern)
    report = kb.index([added.name])
    indexed = kb.collection(added.name)
    content = f"Added collection '{indexed.name}' with {count(indexed.documents, 'document')}"
    return CollectionAdded("added", indexed, content, report.errors, notice)


@dataclass(frozen=True, slots=True)
class ContextAdded:
    status: Literal["added"]
    path: str
    content: str


@operation(
    group="contexts",
    route="POST /contexts/add",
    bodies=({"path": "/home/me/docs", "text": "Project documentation"},),
)
def add_context(
    call: Call,
    path: Annotated[
        str,
        Describe("A directory or file of a collection, qmd://collection/prefix, or / for all"),
    ],
    text: Annotated[
        str, Describe("What lies below the path, in a sentence"), InSchema(pattern=r"\S")
    ],
) -> ContextAdded:
    """
    Describe what lies below a path.

    Replaces the earlier text of the path; hits below the path show the new text.
    """
    try:
        added = call.kb.add_context(context_path(path, call.kb.collections()), text)
    except errors.NotFoundError as error:
        raise errors.InputError(str(error), hint=error.hint) from error
    return ContextAdded("added", added.path, f"Added context for {added.path}")


@dataclass(frozen=True, slots=True)
class ContextRemoved:
    status: Literal["removed"]
    path: str


@operation(group="contexts", route="DELETE /contexts/{path}", errors=(errors.ContextNotFoundError,))
def remove_context(call: Call, path: str) -> ContextRemoved:
    """
    Remove a context.

    The path as /contexts lists it, or as qmd://collection/prefix, percent-encoded:
    /contexts/%2Fhome%2Fme%2Fdocs.
    """
    # The first slash is lost if a client joins "/contexts" and "/path/to/docs".
    spellings = [path] if path.startswith("/") else [path, f"/{path}"]
    for spelling in spellings if path else ():
        try:
            removed = call.kb.remove_context(context_path(spelling, call.kb.collections()))
        except (errors.NotFoundError, errors.InputError):
            continue
        return ContextRemoved("removed", removed.path)
    raise errors.ContextNotFoundError(
        f"There is no context for {path}", hint="GET /contexts lists the paths that have one."
    )
