"""
Run ``git pull`` for collections, as a fetch and a fast-forward that start no other program.

Over the network anybody who may use the server can ask for it, and a folder of notes may come
from a stranger; so hooks and other programs are off, `git_trust` looks at the configuration that
the folder brings, git asks no question, and time and output are bounded. Programs that the user's
own configuration names (``~/.gitconfig``: a credential helper, ssh, git-lfs) do run.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from qmd.engine_text import with_cause
from qmd.errors import InputError
from qmd.ingest.git_trust import OVERRIDES, Repository, trusted_repository, work_tree_of
from qmd.system import cancellation
from qmd.values import Collection

TIMEOUT_S = 120
"""For a fetch and its fast-forward together."""

_END_S = 5  # for git to remove its lock files, once it is asked to end
_LOOK_S = 0.5  # whether anybody still waits
_MOST_BYTES = 64 * 1024  # of what git says; the rest is read and dropped
#: What of ``GIT_*`` is kept: how the user reaches servers, and where the user's settings are.
_KEPT = re.compile(
    r"GIT_(SSH|SSH_COMMAND|SSH_VARIANT|SSL_\w+|PROXY_SSL_\w+|HTTP_PROXY_AUTHMETHOD|EXEC_PATH"
    r"|CONFIG_GLOBAL|CONFIG_SYSTEM|CONFIG_NOSYSTEM)"
)
_REFERENCE = re.compile(r"refs/[^\s:^~?*\[\\]+")  # and no refspec, which would write another one
_PASSWORD = re.compile(r"(?<=//)[^/@\s]*@")


def pull(collections: Sequence[Collection]) -> list[str]:
    """Bring each collection inside a git work tree up to date; what went wrong, in sentences."""
    environ = _environment()
    git = shutil.which("git", path=environ["PATH"])
    problems = []
    for collection in collections:
        cancellation.check()
        work_tree = work_tree_of(Path(os.path.realpath(collection.path)))
        if work_tree is None:
            continue
        if git is None:
            return ["git is not installed; nothing was pulled."]
        try:
            _pull(trusted_repository(work_tree, git, environ), git, environ)
        except InputError as error:
            problems.append(with_cause(collection.name, error.with_hint))
    return problems


def _pull(repository: Repository, git: str, environ: dict[str, str]) -> None:
    """Raises InputError: It was not pulled."""
    run = _Git(git, repository.work_tree, environ)
    # git itself looks at who owns the repository, and must find the one that was looked at.
    seen = run("rev-parse", "--absolute-git-dir")
    if Path(seen).resolve() != repository.git_dir:
        raise InputError(f"not pulled: git finds its repository in {seen}.")
    branch = run("symbolic-ref", "--short", "HEAD")
    remote = repository.value(f"branch.{branch}.remote")
    merge = repository.value(f"branch.{branch}.merge")
    if remote is None or merge is None:
        raise InputError(f"not pulled: the branch {branch} has no upstream.")
    if (
        remote.startswith("-")
        or not repository.values(f"remote.{remote}.url")
        or not _REFERENCE.fullmatch(merge)
    ):
        raise InputError(f"not pulled: the upstream of the branch {branch} is no remote branch.")
    run("fetch", "--quiet", "--no-recurse-submodules", "--no-auto-maintenance", "--", remote, merge,
        what="git fetch")  # fmt: skip
    with cancellation.uninterrupted():  # half a fast-forward would look like changes of the user's
        run("merge", "--quiet", "--ff-only", "--no-stat", "FETCH_HEAD", what="git merge")


def _environment() -> dict[str, str]:
    """That of git: without what steers it from outside, and with nobody to answer questions."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or _KEPT.fullmatch(name)
    }
    environ.pop("SSH_ASKPASS", None)
    # git works inside the collection, where "." must name no program.
    paths = environ.get("PATH", os.defpath).split(os.pathsep)
    environ["PATH"] = os.pathsep.join(path for path in paths if Path(path).is_absolute())
    return environ | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "GCM_INTERACTIVE": "never",
        "SSH_ASKPASS_REQUIRE": "never",
    }


class _Git:
    """Runs git in one work tree; all runs together within a time."""

    def __init__(self, git: str, work_tree: Path, environ: dict[str, str]) -> None:
        overrides = [f"{key}={value}" for key, value in OVERRIDES.items()]
        options = [part for override in overrides for part in ("-c", override)]
        self._command = [git, "--no-pager", "-C", str(work_tree), *options]
        self._environ = environ
        self._end = monotonic() + TIMEOUT_S

    def __call__(self, *arguments: str, what: str = "git") -> str:
        """
        What git says, its errors too.

        Raises:
            InputError: It failed, or the time is up.
        """
        child = subprocess.Popen(
            [*self._command, *arguments],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # no terminal to ask at, and one group with its children
        )
        output = bytearray()
        reader = threading.Thread(target=_read, args=(child, output), daemon=True)
        reader.start()
        try:
            code = self._wait(child)
        except BaseException as error:
            _stop(child)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise InputError(f"{what} took longer than {TIMEOUT_S} s and was stopped.") from None
        # What git leaves behind, such as a shared ssh connection, may keep its output open.
        reader.join(_END_S)
        text = _PASSWORD.sub("", os.fsdecode(bytes(output)).strip())
        if code:
            lines = text.splitlines()
            raise InputError(f"{what} failed: {lines[-1] if lines else f'exit code {code}'}")
        return text

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        """The exit code; raises TimeoutExpired, and RequestEndedError if nobody waits any more."""
        while True:
            cancellation.check()
            rest_s = self._end - monotonic()
            try:
                return child.wait(min(max(rest_s, 0.0), _LOOK_S))
            except subprocess.TimeoutExpired:
                if rest_s <= _LOOK_S:
                    raise


def _read(child: subprocess.Popen[bytes], output: bytearray) -> None:
    assert child.stdout is not None
    with child.stdout as pipe:
        while data := os.read(pipe.fileno(), 65536):
            output += data
            del output[:-_MOST_BYTES]


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End git and all that it started: politely first, so that it removes its lock files."""
    if sys.platform == "win32":
        child.kill()
    else:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(_END_S)
    child.wait()
