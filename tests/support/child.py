"""Python in a process of its own: to be killed, to hold locks, to have no permissions."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.warm import Process, warm

REPOSITORY = Path(__file__).parents[2]
WAIT_S = 60

Child: TypeAlias = "subprocess.Popen[str] | Process"


def start(code: str, *args: object) -> Child:
    """Run ``code`` (``sys.argv[1:]`` are the arguments) with pipes for stdin and stdout."""
    return warm.popen(
        [sys.executable, "-c", code, *map(str, args)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process: Child) -> str:
    """What the process printed; it must have ended well."""
    out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, out
    return out.strip()


def run(code: str, *args: object) -> str:
    return finish(start(code, *args))


#: What root has beyond other users, also in programs that it starts.
_GIVE_UP = """
import ctypes as _c
for _n in range(64):
    _c.CDLL(None).prctl(24, _n, 0, 0, 0)  # PR_CAPBSET_DROP
assert _c.CDLL(None).capset((_c.c_uint32 * 2)(0x20080522, 0), (_c.c_uint32 * 6)()) == 0
"""


def start_unprivileged(code: str, *args: object) -> Child:
    """As `start`, bound by permissions even if the tests run as root."""
    if not hasattr(os, "geteuid"):
        pytest.skip("no POSIX permissions here")
    if os.geteuid() != 0:
        return start(code, *args)
    if sys.platform != "linux":
        pytest.skip("root, and no capabilities that it could give up")
    return start(_GIVE_UP + code, *args)


def unprivileged(code: str, *args: object) -> str:
    """As `run`, bound by permissions even if the tests run as root."""
    return finish(start_unprivileged(code, *args))


OTHER_USER = 65534
"""A user id that is not ours when the tests run as root."""

_DROP = """
import encodings.idna, http.client, json, os, socket, sys
os.setgroups([])
os.setgid({uid})
os.setuid({uid})
"""


def start_as_user(uid: int, code: str, *args: object) -> Child:
    """As `start`, by another user; ``http.client``, ``json``, ``os``, ``socket`` are imported."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("NOT TESTED: only root can become a second user; run the tests as root")
    # Python starts as root, for the other user may not be let in to where it is installed.
    return start(_DROP.format(uid=uid) + code, *args)


def as_user(uid: int, code: str, *args: object) -> str:
    """What a process of another user prints."""
    return finish(start_as_user(uid, code, *args))


class Stranger:
    """
    A process that runs now and is none of our children, so that nobody tells us of its end.

    Raises ProcessLookupError: There is no such process (any more). Not for Windows.
    """

    def __init__(self, number: int) -> None:
        if hasattr(os, "pidfd_open"):
            self._descriptor = os.pidfd_open(number)
        else:  # macOS and BSD
            self._queue = select.kqueue()
            end = select.kevent(
                number, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT
            )
            self._queue.control([end], 0)

    def wait(self) -> None:
        """Until it has ended. May be called once."""
        if hasattr(os, "pidfd_open"):
            ended = select.select([self._descriptor], [], [], WAIT_S)[0]
            os.close(self._descriptor)
        else:
            ended = self._queue.control([], 1, WAIT_S)
            self._queue.close()
        assert ended, "the process goes on for ever"
