"""
What belongs to the work of this thread: the session, and who is asked before it writes files.

Each recorded change of a file names the session. A face sets it around a call: one session for each
MCP session, for the clients of REST that send the same header, and for each run of a command. Other
programs have one session per process.

A server writes for its clients without asking, but a conversation in which a language model calls
the tools asks a person first. So the one who is asked belongs to the work, too, not to the server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from qmd.system.cancellation import in_block

if TYPE_CHECKING:
    from qmd.values.proposed import Confirm

#: The variable that keeps the command line from all but serving: `doctor` starts programs with it.
SERVES_ONLY = "_QMD_SERVES_ONLY"

#: The most characters of a session's name; the rest of a longer one is dropped.
MAX_LENGTH = 100

_current: ContextVar[str | None] = ContextVar("qmd_session", default=None)
_current_face: ContextVar[str | None] = ContextVar("qmd_face", default=None)
_face_of_process = "process"
_of_process: list[str] = []


def new_session(face: str) -> str:
    """A new name: the face (``cli``, ``mcp``), and eight random hexadecimal digits."""
    return f"{face}-{os.urandom(4).hex()}"


def name_process(face: str) -> None:
    """Name the session of this process, before its first change, after a face."""
    global _face_of_process  # noqa: PLW0603
    _face_of_process = face


def current_session() -> str:
    """The session of this thread's work."""
    session = _current.get()
    if session is not None:
        return session
    if not _of_process:
        _of_process.append(new_session(_face_of_process))
    return _of_process[0]


def current_face() -> str:
    """The face through which this thread's work was asked for, such as ``cli`` or ``mcp``."""
    return _current_face.get() or _face_of_process


@contextmanager
def in_session(session: str, *, face: str | None = None) -> Iterator[None]:
    """Let all changes of the block belong to a session; ``face``: None for that of the process."""
    printable = "".join(each if each.isprintable() else "?" for each in session)
    name = printable.encode("utf-8", "replace").decode()[:MAX_LENGTH]
    with in_block(_current, name), in_block(_current_face, face):
        yield


_confirm: ContextVar[Confirm | None] = ContextVar("qmd_confirm", default=None)


def current_confirm() -> Confirm | None:
    """Who is asked before each write of this thread's work; None for the knowledge base's rule."""
    return _confirm.get()


def confirming(confirm: Confirm) -> AbstractContextManager[None]:
    """Ask ``confirm`` before each write of the block, with the limits of an agent's writes."""
    return in_block(_confirm, confirm)
