"""
Which rows of each table belong to a scope: one table for both engines.

Whoever adds a table says here which rows of it belong to a collection: a table that is not named
has no rows for a client with a scope.
"""

from __future__ import annotations

from typing import NamedTuple


class ScopeWords(NamedTuple):
    """
    How an engine says what a scope is.

    Attributes:
        main: The schema of the tables themselves.
        is_open: The condition that a row of ``collections``, given by its name, is in the scope.
        of_collection: The condition that the column ``collection_id`` of a row names such a one.
        of_document: The condition that a column names a document of such a collection.
        owner: The owner of the client's conversations.
    """

    main: str
    is_open: str
    of_collection: str
    of_document: str
    owner: str


def visible_rows(words: ScopeWords) -> dict[str, str]:
    """Table → the condition on its row ``t`` that makes it visible."""
    main, every = words.main, "true"
    of_collection = words.of_collection.format("t")
    of_document = words.of_document.format("t.document_id")
    return {
        "collections": words.is_open.format("t"),
        "contexts": f"(t.collection_id IS NULL OR {of_collection})",
        "documents": of_collection,
        "attachments": of_collection,
        "skipped_files": of_collection,
        "z_vectors": of_collection,
        "aliases": of_document,
        "anchors": of_document,
        "chunks": of_document,
        "links": of_document,
        "z_names": of_document,
        "properties": of_document,
        "tags": of_document,
        "z_pictures": of_document,
        "z_picture_texts": (
            f"EXISTS (SELECT 1 FROM {main}.z_pictures p WHERE p.source = t.source"
            f" AND p.page = t.page AND {words.of_document.format('p.document_id')})"
        ),
        "tasks": of_document,
        "observations": of_document,
        "z_searchable": of_document,
        "z_document_tokens": of_document,
        "z_postings": of_document,
        "revisions": _revision("t", words),
        # A change of several files is visible if all of them are, for it is undone as a whole.
        "changes": (
            f"(EXISTS (SELECT 1 FROM {main}.revisions r WHERE r.change_id = t.id)"
            f" AND NOT EXISTS (SELECT 1 FROM {main}.revisions r WHERE r.change_id = t.id"
            f" AND NOT {_revision('r', words)}))"
        ),
        "chats": f"t.owner = {words.owner}",
        "chat_turns": (
            f"EXISTS (SELECT 1 FROM {main}.chats c WHERE c.id = t.chat_id"
            f" AND c.owner = {words.owner})"
        ),
        # They are reached by the chunks, which are restricted, and hold no text.
        "z_embeddings": every,
        "z_token_states": every,
        # What the program knows of itself and of its models.
        "z_meta": every,
        "z_models": every,
        "z_token_projections": every,
    }


def _revision(row: str, words: ScopeWords) -> str:
    """The condition that the places of a revision's file, before and after it, are visible."""
    moved_from = _below_a_collection(f"{row}.moved_from", words)
    return (
        f"({_below_a_collection(f'{row}.path', words)}"
        f" AND ({row}.moved_from IS NULL OR {moved_from}))"
    )


def _below_a_collection(column: str, words: ScopeWords) -> str:
    """
    The condition that the innermost collection around an absolute path is one of the scope.

    So a collection that lies inside the folder of another stays closed with it.
    """
    return (
        f"coalesce((SELECT {words.is_open.format('c')} FROM {words.main}.collections c"
        f" WHERE {column} > c.path || '/' AND {column} < c.path || '0'"
        " ORDER BY length(c.path) DESC, 1 DESC LIMIT 1), false)"
    )
