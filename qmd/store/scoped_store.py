"""A store as a client with a scope sees it, whatever its engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

from qmd.errors import ScopeError

if TYPE_CHECKING:
    from qmd.store.reader import Reader, Writer
    from qmd.store.sql.conversations import ChatSummary, ConversationsWriter, StoredTurn
    from qmd.store.sql.models import StoredModel
    from qmd.store.store import ReplicaState, Store
    from qmd.values.access import AccessScope
    from qmd.values.chats import ChatInfo, ChatMode, TurnStatus
    from qmd.values.location import DatabaseLocation

T = TypeVar("T")


class ScopedStore:
    """`qmd.store.store.Store.scoped`. Thread-safe."""

    def __init__(
        self,
        store: Store,
        scope: AccessScope,
        reading: Callable[[AccessScope], AbstractContextManager[Reader]],
    ) -> None:
        """``reading``: Opens a reader of the engine to which only the rows of a scope exist."""
        self._store = store
        self._scope = scope
        self._reading = reading
        self.location: DatabaseLocation = store.location
        self.timeout_s = store.timeout_s
        self.read_only = store.read_only

    def reading(self) -> AbstractContextManager[Reader]:
        return self._reading(self._scope)

    def write(self, function: Callable[[Writer], T]) -> T:
        return self._store.write(lambda writer: function(self._restricted(writer)))

    def write_soon(
        self, function: Callable[[Writer], object], written: Callable[[], object]
    ) -> None:
        """Drop the write, as the method may: it would be for all clients."""

    def _restricted(self, writer: Writer) -> Writer:
        return cast("Writer", _ScopedWriter(writer, self._scope))

    def scoped(self, scope: AccessScope) -> Store:
        raise ScopeError

    def merge_full_text(self) -> None:
        raise ScopeError

    def gather_common_words(self, most_s: float | None = None) -> int:
        raise ScopeError

    def index_vectors(self) -> None:
        raise ScopeError

    def compact(self) -> None:
        raise ScopeError

    def engine(self) -> str:
        return self._store.engine()

    @property
    def damage_hint(self) -> str:
        return self._store.damage_hint

    def shared_lock(self, purpose: str) -> NoReturn:
        raise ScopeError

    def is_locked(self, purpose: str) -> NoReturn:
        raise ScopeError

    def replica_state(self) -> ReplicaState | None:
        return self._store.replica_state()

    def change_feed(self) -> NoReturn:
        raise ScopeError

    def process_name(self) -> str:
        return self._store.process_name()

    def has_process(self, name: str) -> bool:
        return self._store.has_process(name)

    def embedding_claims(self, model: StoredModel) -> NoReturn:
        raise ScopeError

    def require_writable(self) -> None:
        self._store.require_writable()

    def require_current(self) -> None:
        self._store.require_current()

    @property
    def is_superseded(self) -> bool:
        return self._store.is_superseded

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


class _OwnConversations:
    """`ConversationsWriter` for the conversations of one owner; those of others do not exist."""

    def __init__(self, conversations: ConversationsWriter, owner: str) -> None:
        self._all = conversations
        self._owner = owner

    def get(self, chat_id: str) -> ChatInfo | None:
        return self._all.get(chat_id) if self._is_own(chat_id) else None

    def count(self) -> int:
        return self._all.count_of(self._owner)

    def turns(self, chat_id: str) -> list[StoredTurn]:
        return self._all.turns(chat_id) if self._is_own(chat_id) else []

    def running(self) -> list[tuple[str, int, str]]:
        return [turn for turn in self._all.running() if self._is_own(turn[0])]

    def bytes(self, chat_id: str) -> int:
        return self._all.bytes(chat_id) if self._is_own(chat_id) else 0

    def add(self, chat: ChatInfo) -> None:
        self._all.add(chat, self._owner)

    def rename(self, chat_id: str, name: str) -> None:
        if self._is_own(chat_id):
            self._all.rename(chat_id, name)

    def set_mode(self, chat_id: str, mode: ChatMode) -> None:
        if self._is_own(chat_id):
            self._all.set_mode(chat_id, mode)

    def set_summary(self, chat_id: str, summary: ChatSummary) -> None:
        if self._is_own(chat_id):
            self._all.set_summary(chat_id, summary)

    def put(self, chat_id: str, turn: StoredTurn) -> None:
        if self._is_own(chat_id):
            self._all.put(chat_id, turn)

    def set_status(self, chat_id: str, number: int, status: TurnStatus) -> None:
        if self._is_own(chat_id):
            self._all.set_status(chat_id, number, status)

    def delete(self, chat_id: str) -> bool:
        return self._is_own(chat_id) and self._all.delete(chat_id)

    def _is_own(self, chat_id: str) -> bool:
        return self._all.owner(chat_id) == self._owner

    def __getattr__(self, name: str) -> NoReturn:
        raise ScopeError
