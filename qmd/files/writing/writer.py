"""
The writer that all tools use to change files.

It writes only where the policy allows it, replaces a file whole or not at all, keeps the old
content, records which tool changed what, and updates the index afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import QmdError
from qmd.files.writing.change_writer import ChangeWriter, Draft, Written
from qmd.files.writing.policy import ResolvedPath, WritePolicy
from qmd.system import cancellation
from qmd.system.session import current_session
from qmd.values.proposed import Confirm

if TYPE_CHECKING:
    from qmd.store import Store

_log = logging.getLogger(__name__)


class FileWriter:
    """
    Changes files. Each file is changed atomically, and in one directory changes run one after the
    other, also those of other processes. After an `OSError` the file is unchanged.

    What happens inside one `change` is undone together. `rewrite` and `draft` are a change of their
    own; their arguments and errors are those of the methods of `ChangeWriter`.
    """

    def __init__(
        self,
        store: Store,
        policy: WritePolicy,
        indexed: Callable[[Sequence[Path]], None],
        *,
        confirm: Confirm | None = None,
        actor: str = "",
    ) -> None:
        """
        Args:
            store: Records what is written, so that it can be undone.
            indexed: Called with the files that were changed; updates the index.
            confirm: Called before each write, append, move and deletion; None if no confirmation is
                needed. The caller of `draft` asks for confirmation itself, since only it knows the
                content.
            actor: The name of the token with which the client writes, for the audit log.
        """
        self.store = store
        self.policy = policy
        self._indexed = indexed
        self.confirm = confirm
        self._actor = actor

    @contextmanager
    def change(self, *, tool: str, session: str | None = None) -> Iterator[ChangeWriter]:
        """
        Change several files in the block as one change.

        The index has the new contents when the block has ended; if not, `ChangeWriter.problem` says
        why. If the block fails, what it has written until then stays, is recorded and can be
        undone.

        Args:
            tool: The name of the tool that writes, for the history.
            session: The session that the tool was called in; None for the current one.
        """
        change = ChangeWriter(
            self.store,
            self.policy,
            tool=tool,
            session=current_session() if session is None else session,
            confirm=self.confirm,
            actor=self._actor,
        )
        try:
            yield change
        finally:
            if change.changed:
                change.problem = self.index(change.changed)

    def resolve(self, path: str | Path | ResolvedPath) -> ResolvedPath:
        """As `ChangeWriter.resolve`."""
        if not isinstance(path, ResolvedPath):
            return self.policy.resolve(path)
        self.policy.permitted(path.target)
        return path

    def rewrite(
        self,
        path: str | Path | ResolvedPath,
        content: Callable[[bytes | None], bytes],
        *,
        tool: str,
    ) -> Written:
        """`ChangeWriter.rewrite` as a change of its own."""
        with self.change(tool=tool) as change:
            written = change.rewrite(path, content)
        return replace(written, problem=change.problem)

    @contextmanager
    def draft(self, path: str | Path | ResolvedPath, *, tool: str) -> Iterator[Draft]:
        """Prepare a new version of an existing file, for programs that write files themselves."""
        with self.change(tool=tool) as change, change.draft(path) as draft:
            yield draft
        if draft.written is not None:
            draft.written = replace(draft.written, problem=change.problem)

    def index(self, paths: Sequence[Path]) -> str | None:
        """
        Update the index after writes; returns a sentence that says why it failed.

        `change` does so at its end.

        No error is raised, because the files were written: a client would write them again.
        """
        try:
            with cancellation.uninterrupted():
                self._indexed(paths)
        except QmdError as error:
            names = ", ".join(map(str, paths[:3]))
            _log.warning("written, but not indexed: %s: %s", names, error)
            return error.with_hint
        return None
