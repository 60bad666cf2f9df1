"""A store as a client with a scope sees it, whatever its engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import NoneType
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

from qmd.errors import ScopeError

if TYPE_CHECKING:
    from qmd.store.reader import Reader, Writer
    from qmd.store.sql.conversations import ConversationsWriter
    from qmd.store.store import Store
    from qmd.values.access import AccessScope
    from qmd.values.chats import ChatInfo

T = TypeVar("T")


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
