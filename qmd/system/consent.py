"""
Who is asked before the work of this thread writes files.

A server writes for its clients without asking, but a conversation in which a language model calls
the tools asks a person first. So the one who is asked belongs to the work, not to the server: a
face sets it around the run, as it sets the session (`qmd.system.session`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.values.proposed import Confirm

_current: ContextVar[Confirm | None] = ContextVar("qmd_confirm", default=None)


def current_confirm() -> Confirm | None:
    """Who is asked before each write of this thread's work; None for the knowledge base's rule."""
    return _current.get()


@contextmanager
def confirming(confirm: Confirm) -> Iterator[None]:
    """Ask ``confirm`` before each write of the block, with the limits of an agent's writes."""
    token = _current.set(confirm)
    try:
        yield
    finally:
        _current.reset(token)
