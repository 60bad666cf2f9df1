"""
Shows a client with a scope its part of the store: the rows that exist to it, and what it may do.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import NoneType
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar, cast

from qmd.errors import ScopeError

if TYPE_CHECKING:
    from qmd.store.reader import Reader, Writer
    from qmd.store.sql.conversations import ConversationsWriter
    from qmd.store.store import Store
    from qmd.values.access import AccessScope
    from qmd.values.chats import ChatInfo


# --- which rows belong to a scope -------------------------------------------------------
# One table says it for both engines. Whoever adds a table to the database says here which rows of
# it belong to a collection: a table that is not named has no rows for a client with a scope.


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


T = TypeVar("T")


# --- what a scope may do ----------------------------------------------------------------

#: What a client may ask the whole store; all else that is not spelled below is refused.
_OPEN = frozenset(
    {
        *("location", "timeout_s", "read_only", "engine", "damage_hint", "replica_state"),
        *("process_name", "has_process", "require_writable", "require_current", "is_superseded"),
    }
)


def scoped_store(
    store: object,
    scope: AccessScope,
    reading: Callable[[AccessScope], AbstractContextManager[Reader]],
) -> Store:
    """``reading``: Opens a reader of the engine to which only the rows of a scope exist."""
    return cast("Store", ScopedStore(cast("Store", store), scope, reading))


class ScopedStore:
    """`qmd.store.store.Store.scoped`. Thread-safe."""

    def __init__(
        self,
        store: Store,
        scope: AccessScope,
        reading: Callable[[AccessScope], AbstractContextManager[Reader]],
    ) -> None:
        self._store = store
        self._scope = scope
        self._reading = reading

    def __getattr__(self, name: str) -> object:
        if name not in _OPEN:
            raise ScopeError
        return getattr(self._store, name)

    def reading(self) -> AbstractContextManager[Reader]:
        return self._reading(self._scope)

    def read(self, function: Callable[[Reader], T]) -> T:
        with self.reading() as reader:
            return function(reader)

    def write(self, function: Callable[[Writer], T]) -> T:
        return self._store.write(
            lambda writer: function(cast("Writer", _ScopedWriter(writer, self._scope)))
        )

    def write_soon(
        self, function: Callable[[Writer], object], written: Callable[[], object]
    ) -> None:
        """Drop the write, as the method may: it would be for all clients."""

    def abandon(self) -> bool:
        return False  # only the whole store is

    def close(self) -> None:
        """Do nothing: the whole store is closed by whoever opened it."""


class _ScopedWriter:
    """A transaction in which a client may change its conversations, and nothing else."""

    def __init__(self, writer: Writer, scope: AccessScope) -> None:
        self._writer = writer
        self._scope = scope

    @property
    def conversations(self) -> _OwnConversations:
        return _OwnConversations(self._writer.conversations, self._scope.owner)

    def __getattr__(self, name: str) -> NoReturn:
        raise ScopeError


#: A method with one conversation → the type of what it returns for one that does not exist.
_OF_ONE: dict[str, Callable[[], object]] = {
    **{"get": NoneType, "turns": list, "bytes": int, "delete": bool},
    **dict.fromkeys(("rename", "set_mode", "set_summary", "put", "set_status"), NoneType),
}


class _OwnConversations:
    """`ConversationsWriter` for the conversations of one owner; those of others do not exist."""

    def __init__(self, conversations: ConversationsWriter, owner: str) -> None:
        self._all = conversations
        self._owner = owner

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name not in _OF_ONE:
            raise ScopeError

        def of_one(chat_id: str, *arguments: object) -> object:
            if not self._is_own(chat_id):
                return _OF_ONE[name]()
            return getattr(self._all, name)(chat_id, *arguments)

        return of_one

    def count(self) -> int:
        return self._all.count_of(self._owner)

    def running(self) -> list[tuple[str, int, str]]:
        return [turn for turn in self._all.running() if self._is_own(turn[0])]

    def add(self, chat: ChatInfo) -> None:
        self._all.add(chat, self._owner)

    def _is_own(self, chat_id: str) -> bool:
        return self._all.owner(chat_id) == self._owner
