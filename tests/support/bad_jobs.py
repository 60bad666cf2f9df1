"""What a parser must never do, as jobs of a worker process."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from qmd.ingest.parse_file import parse_plain

MB = 1_000_000


def parse(job: Any) -> Any:
    """The parser of files, but for those whose name begins with a deed: ``spin.md``."""
    path = job[1]
    name = path.rpartition("/")[2].partition(".")[0].replace("-", " ")
    if name in _DEEDS:
        _DEEDS[name]()
    return parse_plain(job)


def do(job: Any) -> Any:
    """``job``: the name of a deed, or a list of it and its argument."""
    name, *arguments = [job] if isinstance(job, str) else job
    return _DEEDS[name](*arguments)


def _echo(value: Any) -> Any:
    return value


def _spin() -> None:
    """Holds the interpreter's lock for years, in C. (A regular expression would take memory.)"""
    sum(range(10**18))


def _eat() -> int:
    hoard = []
    while True:
        hoard.append(bytearray(10 * MB))


def _take(size: int) -> int:
    return len(bytearray(size))


def _recurse(depth: int = 0) -> int:
    return _recurse(depth + 1) + 1


def _segfault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _abort() -> None:
    os.abort()


def _assert() -> None:
    os.write(2, b"glyph.c:7: draw: Assertion `width > 0' failed.\n")
    os.abort()


def _leave() -> None:
    os._exit(3)


def _raise(message: str) -> None:
    raise ValueError(message)


def _interrupt() -> None:
    raise KeyboardInterrupt


def _block() -> None:
    """Reads what nobody will ever write."""
    reading, _writing = os.pipe()
    os.read(reading, 1)


def _read(path: str) -> tuple[int, str]:
    return os.getpid(), Path(path).read_text()


def _print() -> str:
    print("to stdout")
    os.write(1, b"straight to the descriptor\n")
    os.write(2, b"to stderr\n")
    return sys.stdin.read()


def _die_once(marker: str) -> str:
    """Killed from outside the first time, as when memory runs out."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "done"
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


def _unfit() -> object:
    return object()


def _facts() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "directory": str(Path.cwd()),
        "session": os.getsid(0),
        "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "modules": sorted(sys.modules),
        "path": [*sys.path],
        "interrupt": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
    }


def _sleep() -> None:
    time.sleep(3600)


_DEEDS = {
    "echo": _echo,
    "spin": _spin,
    "eat": _eat,
    "take": _take,
    "recurse": _recurse,
    "segfault": _segfault,
    "abort": _abort,
    "assert": _assert,
    "leave": _leave,
    "raise": _raise,
    "interrupt": _interrupt,
    "block": _block,
    "read": _read,
    "print": _print,
    "die once": _die_once,
    "unfit": _unfit,
    "facts": _facts,
    "sleep": _sleep,
}
