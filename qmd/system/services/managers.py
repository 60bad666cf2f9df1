"""Installs and removes services with the manager of this system."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from qmd.errors import QmdError
from qmd.system.services.definition import PAUSE_S, Command, Manager, Service, Step
from qmd.system.services.launchd import Launchd
from qmd.system.services.systemd import Systemd
from qmd.system.services.windows import TaskScheduler

MANAGERS: dict[str, Callable[[], Manager]] = {
    "systemd": Systemd,
    "launchd": Launchd,
    "windows": TaskScheduler,
}

_COMMAND_S = 60.0


def manager_of_system() -> str:
    """The name of the manager that this system has, or most likely has."""
    return {"darwin": "launchd", "win32": "windows"}.get(sys.platform, "systemd")


def install(manager: Manager, service: Service) -> None:
    """
    Write the service's file and start the service; an earlier one of the name is replaced.

    Raises:
        QmdError: A command failed; the file is as it was before.
        InputError: The manager cannot express the service.
        OSError: The file cannot be written.
    """
    file, content = manager.file(service.name), manager.content(service)
    before = file.read_bytes() if file.exists() else None
    service.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(file, content)
    try:
        _run(manager.install_steps(service.name))
    except QmdError:
        if before is None:
            with suppress(QmdError):
                _run(manager.uninstall_steps(service.name))
            file.unlink()
        else:
            _write(file, before)
        raise


def uninstall(manager: Manager, service_name: str) -> None:
    """
    Stop a service and delete its file.

    Raises:
        QmdError: A command failed; the file stays.
    """
    _run(manager.uninstall_steps(service_name))
    manager.file(service_name).unlink(missing_ok=True)
    _run(manager.steps_after_uninstall(service_name))


def is_active(manager: Manager, service_name: str) -> bool:
    """Whether the manager runs the service."""
    try:
        return _started(manager.state_command(service_name)).returncode == 0
    except QmdError:
        return False


def _write(file: Path, content: bytes) -> None:
    """Write a file that only the user may read, at once: its environment may hold a token."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _run(steps: Iterable[Step]) -> None:
    """Run the steps in order. Raises QmdError."""
    for step in steps:
        done = _started(step.command)
        for _ in range(step.tries - 1):
            if done.returncode == 0:
                break
            time.sleep(PAUSE_S)
            done = _started(step.command)
        if done.returncode != 0 and not step.may_fail:
            lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            reason = lines[-1] if lines else f"exit code {done.returncode}"
            raise QmdError(
                f"{' '.join(step.command)} failed: {reason}",
                hint="Containers and some remote sessions have no manager of services. "
                "'qmd server service install --dry-run' shows the file and the commands.",
            )


def _started(command: Command) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which(command[0])
    if program is None:
        raise QmdError(
            f"There is no {command[0]} here, which runs services.",
            hint="Start 'qmd server --transport http' by what your system has instead.",
        )
    try:
        return subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise QmdError(
            f"{' '.join(command)} took longer than {_COMMAND_S:g} s.", hint="Try again."
        ) from None
