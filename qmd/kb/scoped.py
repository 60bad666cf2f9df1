"""
`ScopedKnowledgeBase`: a knowledge base as a client with a scope sees it.

It reads through `Store.scoped`, to which nothing outside the client's collections exists, and
writes files below the collections that the client may write. What else a `KnowledgeBase` can do is
for the administrator: each public method that is not marked as `open_to_scopes` raises ScopeError.
So a new method is refused until somebody has looked at what it shows.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from qmd import ingest
from qmd.errors import ScopeError
from qmd.files import writing
from qmd.kb import KnowledgeBase
from qmd.kb.parts import OPEN_TO_SCOPES, OpenParts
from qmd.records import replace

if TYPE_CHECKING:
    from qmd.files.photos.exiftool import ExifTool
    from qmd.files.writing.policy import WritePolicy
    from qmd.files.writing.writer import FileWriter
    from qmd.ingest.events import EventBus
    from qmd.store import Store
    from qmd.values import Freshness
    from qmd.values.access import AccessScope
    from qmd.values.location import DatabaseLocation
    from qmd.values.transfer import Push, PushedFiles, PushReport


class ScopedKnowledgeBase(KnowledgeBase):
    """
    A part of an open knowledge base. It lives as long as the whole one.

    Attributes:
        scope: What its client may use.
    """

    def __init__(self, whole: KnowledgeBase, scope: AccessScope) -> None:
        self.scope = scope
        self._whole = whole
        self._scoped: tuple[OpenParts, OpenParts] | None = None
        whole_settings = whole._settings
        settings = replace(
            whole_settings,
            vault=None,
            write_roots=(),
            ask_server=False,
            save_to=_inside(scope.write, whole_settings.save_to),
            inbox=_inside(scope.write, whole_settings.inbox),
            inbox_template=_inside(scope.read, whole_settings.inbox_template),
            allow_private_addresses=False,  # those of the server's network are not the client's
        )
        super().__init__(whole._store.scoped(scope), settings)

    def _open_parts(self, store: Store) -> OpenParts:
        opened = self._whole._current()
        return OpenParts(store, opened.embedders, opened.backends)

    def _current(self) -> OpenParts:
        """The parts for the file that the whole knowledge base has open now."""
        whole = self._whole._current()
        scoped = self._scoped
        if scoped is None or scoped[0] is not whole:
            parts = OpenParts(whole.store.scoped(self.scope), whole.embedders, whole.backends)
            scoped = self._scoped = (whole, parts)
        return scoped[1]

    def close(self) -> None:
        """Let go of the vectors in memory; the whole knowledge base stays open."""
        scoped, self._scoped = self._scoped, None
        if scoped is not None and scoped[1].vectors is not None:
            scoped[1].vectors.close()

    def _codes_file(self, location: DatabaseLocation) -> None:
        """None: a part of the vectors must not be taken for all of them."""

    @property
    def events(self) -> EventBus:
        """The events of the collections in the scope."""
        return ingest.events.ScopedEvents(self._whole.events, self.scope.read)

    def freshness(self, *, embeddings_pending: int | None = None) -> Freshness:
        """How far the index is behind the disk, without what only other collections tell."""
        whole = self._whole.freshness(embeddings_pending=0)
        with self._store.reading() as reader:
            if embeddings_pending is None:
                embeddings_pending = reader.upkeep.count_contents_waiting()
            last_sync = reader.collections.last_indexed_at()
        return replace(
            whole,
            last_sync=last_sync,
            files_pending=0,
            embeddings_pending=embeddings_pending,
            indexing=False,
            notices=(),
            keeper=None,
            keeper_heard_of=None,
        )

    def has_posts(self) -> bool:
        """False: the archive of posts is no collection."""
        return False

    def pushed_files(self, name: str, *, after: str = "") -> PushedFiles:
        """As `KnowledgeBase.pushed_files`, for what the client may write."""
        self._require_pushable(name)
        return self._whole.pushed_files(name, after=after)

    def push(self, name: str, push: Push) -> PushReport:
        """As `KnowledgeBase.push`, for what the client may write; its token names the owner."""
        self._require_pushable(name)
        owned = replace(push, owner=self.scope.name)
        return self._whole._push(name, owned, actor=self.scope.name)

    def _require_pushable(self, name: str) -> None:
        """Raises ScopeError, which names what the client may push: --name may be forgotten."""
        if name in self.scope.write:
            return
        not_pushed = {each.name for each in self.collections() if not each.owner}
        pushable = sorted(self.scope.write - not_pushed)
        instead = f"It may push {', '.join(pushable)}: add --name NAME. " if pushable else ""
        raise ScopeError(
            f"This token may not push '{name}'.",
            hint=f"{instead}The administrator of the server makes another:"
            f" qmd server token create NAME --push '{name}'",
        )

    def _exiftool(self) -> ExifTool:
        return self._whole._exiftool()

    def _update(self, store: Store, files: set[str]) -> None:
        self._whole._update(self._whole._store, files)

    def _policy_of_roots(self, store: Store) -> WritePolicy:
        if self._settings.read_only_files:
            return writing.policy.WritePolicy.read_only()
        # Pushed folders have an owner: no tool writes into them.
        writable = [
            each.path
            for each in self.collections()
            if each.name in self.scope.write and not each.owner
        ]
        others = [
            (each.path, each.name if each.name in self.scope.read else "")
            for each in self._whole.collections()
            if each.name not in self.scope.write
        ]
        return writing.policy.WritePolicy.scoped(
            writable, closed=others, agent=self.confirms_writes
        )

    def _writer(self, store: Store) -> FileWriter:
        whole = self._whole._store

        def index(files: Sequence[Path]) -> None:
            ingest.index.index_files(whole, files, self._whole.collections(), self._whole.events)

        return writing.writer.FileWriter(
            store,
            self._policy(store),
            index,
            confirm=self._confirm,
            actor=self.scope.name,
            whole_store=whole,
        )


def _inside(collections: frozenset[str], path: str | None) -> str | None:
    """A ``collection/path`` of the settings, if the client has the collection; else the usual."""
    return path if path is not None and path.partition("/")[0] in collections else None


def _refusing(name: str) -> property:
    def refuse(self: ScopedKnowledgeBase) -> NoReturn:
        raise ScopeError

    return property(refuse, doc=f"For the administrator: `KnowledgeBase.{name}`.")


def _close_the_rest() -> None:
    for name in dir(KnowledgeBase):
        if not (name.startswith("_") or name in vars(ScopedKnowledgeBase) or _is_open(name)):
            setattr(ScopedKnowledgeBase, name, _refusing(name))


def _is_open(name: str) -> bool:
    member = inspect.getattr_static(KnowledgeBase, name)
    return inspect.unwrap(getattr(member, "fget", member)) in OPEN_TO_SCOPES


_close_the_rest()


def require_writing_token(kb: KnowledgeBase) -> None:
    """Raises OutsideRootsError: the client has a token that only reads."""
    if isinstance(kb, ScopedKnowledgeBase) and not kb.scope.write:
        writing.policy.WritePolicy.scoped((), closed=(), agent=False).require_writable()
