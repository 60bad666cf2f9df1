"""
Runs a server as a service of the system: a systemd user unit, a launch agent, a scheduled task.

A `Manager` turns a `Service` into a file and into the commands that install, remove and ask for it;
`install`, `uninstall` and `is_active` run these.
"""

from __future__ import annotations

import getpass
import os
import plistlib
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from qmd.errors import InputError, QmdError
from qmd.system.temporary import private_file
from qmd.system.user_dirs import user_dir

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """
    A command that installs or removes a service.

    Attributes:
        may_fail: Whether the next step follows even if this one fails.
        tries: How often it is tried, with a pause of `PAUSE_S`.
    """

    command: Command
    may_fail: bool = False
    tries: int = 1


#: Seconds before a step is tried again.
PAUSE_S = 0.5

#: Seconds between a failure and the next start.
RESTART_S = 5


@dataclass(frozen=True, slots=True)
class Service:
    """
    A server that the system starts when the user logs in, and again when it fails.

    Attributes:
        name: One word, by which the system knows it.
        description: For lists of services.
        command: The program by its full path, and its arguments.
        environment: The variables that the server needs; they may hold a token.
        folder: The working directory.
        log: The file for stderr, for managers that keep none themselves.
    """

    name: str
    description: str
    command: Command
    environment: Mapping[str, str] = field(repr=False)
    folder: Path
    log: Path


class Manager(ABC):
    """A program of the system that runs services of one user."""

    name: str

    @abstractmethod
    def file(self, service_name: str) -> Path:
        """The file that defines a service."""

    @abstractmethod
    def content(self, service: Service) -> bytes:
        """What stands in the file. Raises InputError if it cannot express the service."""

    @abstractmethod
    def install_steps(self, service_name: str) -> tuple[Step, ...]:
        """Start a service whose file is written, now and at each login."""

    @abstractmethod
    def uninstall_steps(self, service_name: str) -> tuple[Step, ...]:
        """Stop a service for good; its file is deleted afterwards."""

    def steps_after_uninstall(self) -> tuple[Step, ...]:
        """What is run when the file is deleted."""
        return ()

    @abstractmethod
    def state_command(self, service_name: str) -> Command:
        """Exits with 0 if the service runs."""

    def remark(self) -> str | None:
        """What the user may want to know after the installation."""
        return None


# --- systemd ----------------------------------------------------------------------------


#: Seconds until systemd kills a server that it has asked to stop; the server needs 13 at most.
STOP_S = 20


#: Has a file for each user whose services go on after the logout.
_LINGERING = Path("/var/lib/systemd/linger")


class Systemd(Manager):
    """
    systemd's manager of one user's services.

    https://www.freedesktop.org/software/systemd/man/
    """

    name = "systemd"

    def file(self, service_name: str) -> Path:
        base = os.environ.get("XDG_CONFIG_HOME", "")
        folder = Path(base) if Path(base).is_absolute() else Path.home() / ".config"
        return folder / "systemd/user" / f"{service_name}.service"

    def content(self, service: Service) -> bytes:
        environment = "".join(
            f"Environment={_unit_word(f'{name}={value}')}\n"
            for name, value in sorted(service.environment.items())
        )
        return (
            "# Written by 'qmd server service install'; 'qmd server service uninstall' removes"
            " it.\n"
            f"# The log: qmd server logs, or journalctl --user -u {service.name}\n"
            "[Unit]\n"
            f"Description={_unit_text(service.description)}\n"
            "StartLimitIntervalSec=300\n"
            "StartLimitBurst=10\n"
            "\n"
            "[Service]\n"
            "Type=exec\n"
            f"ExecStart={_unit_command(service.command)}\n"
            f"WorkingDirectory=-{_unit_text(str(service.folder))}\n"  # "-": it may be missing
            f"{environment}"
            "Restart=on-failure\n"
            f"RestartSec={RESTART_S}\n"
            # Wrong options and a wrong token do not mend themselves.
            "RestartPreventExitStatus=2\n"
            f"TimeoutStopSec={STOP_S}\n"
            "UMask=0077\n"
            "NoNewPrivileges=yes\n"
            "\n"
            "[Install]\n"
            "WantedBy=default.target\n"
        ).encode()

    def install_steps(self, service_name: str) -> tuple[Step, ...]:
        unit = f"{service_name}.service"
        return (
            Step(("systemctl", "--user", "daemon-reload")),
            Step(("systemctl", "--user", "enable", unit)),
            # It may run already, with the options of an earlier file.
            Step(("systemctl", "--user", "restart", unit)),
        )

    def uninstall_steps(self, service_name: str) -> tuple[Step, ...]:
        return (Step(("systemctl", "--user", "disable", "--now", f"{service_name}.service")),)

    def steps_after_uninstall(self) -> tuple[Step, ...]:
        return (Step(("systemctl", "--user", "daemon-reload")),)

    def state_command(self, service_name: str) -> Command:
        return ("systemctl", "--user", "is-active", "--quiet", f"{service_name}.service")

    def remark(self) -> str | None:
        with suppress(OSError, KeyError):  # KeyError: a user without a name
            if (_LINGERING / getpass.getuser()).exists():
                return None
        return "It stops when you log out, unless you run: loginctl enable-linger"


def _unit_command(command: Command) -> str:
    program, *arguments = command
    if any(character in program for character in "'\"\\"):  # systemd starts no such program itself
        program, arguments = "/usr/bin/env", [program, *arguments]
    # Variables are replaced in arguments, not in the name of the program; "$$" is a dollar sign.
    return " ".join(
        [_unit_word(program), *(_unit_word(word).replace("$", "$$") for word in arguments)]
    )


def _unit_word(text: str) -> str:
    """A word in systemd's quotes. Raises InputError for a line end, which no unit can hold."""
    return '"' + _unit_text(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unit_text(text: str) -> str:
    """A text without specifiers: ``%%`` is a percent sign."""
    if not text.isprintable():
        raise InputError(
            f"A systemd unit cannot hold control characters: {text!r}",
            hint="Rename the file or folder.",
        )
    return text.replace("%", "%%")


# --- launchd ----------------------------------------------------------------------------


class Launchd(Manager):
    """launchd of macOS, for the services of one user: launchd.plist(5), launchctl(1)."""

    name = "launchd"

    def file(self, service_name: str) -> Path:
        return Path.home() / "Library/LaunchAgents" / f"{_launchd_label(service_name)}.plist"

    def content(self, service: Service) -> bytes:
        agent: dict[str, Any] = {
            "Label": _launchd_label(service.name),
            "ProgramArguments": list(service.command),
            "WorkingDirectory": str(service.folder),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": RESTART_S,
            "ProcessType": "Background",
            "Umask": 0o077,
            "StandardErrorPath": str(service.log),
        }
        if service.environment:
            agent["EnvironmentVariables"] = dict(service.environment)
        return plistlib.dumps(agent, sort_keys=False)

    def install_steps(self, service_name: str) -> tuple[Step, ...]:
        return (
            Step(("launchctl", "bootout", _launchd_target(service_name)), may_fail=True),
            # It is refused until an earlier server has ended, which takes 13 seconds at most.
            Step(
                ("launchctl", "bootstrap", _launchd_domain(), str(self.file(service_name))),
                tries=30,
            ),
        )

    def uninstall_steps(self, service_name: str) -> tuple[Step, ...]:
        return (Step(("launchctl", "bootout", _launchd_target(service_name)), may_fail=True),)

    def state_command(self, service_name: str) -> Command:
        return ("launchctl", "print", _launchd_target(service_name))


def _launchd_label(service_name: str) -> str:
    return f"local.{service_name}"


def _launchd_domain() -> str:
    return f"gui/{os.getuid() if hasattr(os, 'getuid') else 0}"


def _launchd_target(service_name: str) -> str:
    return f"{_launchd_domain()}/{_launchd_label(service_name)}"


# --- Windows ----------------------------------------------------------------------------


_TASK_XML = """\
<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>{description}</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
      <UserId>{user}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>{user}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>99</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>{program}</Command>
      <Arguments>{arguments}</Arguments>
      <WorkingDirectory>{folder}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
"""


class TaskScheduler(Manager):
    """
    Scheduled tasks of Windows, which start at logon: schtasks, and the Task Scheduler's XML.

    https://learn.microsoft.com/windows/win32/taskschd/task-scheduler-schema
    """

    name = "windows"

    def file(self, service_name: str) -> Path:
        return user_dir("state") / f"{service_name}.task.xml"

    def content(self, service: Service) -> bytes:
        if service.environment:
            names = ", ".join(sorted(service.environment))
            raise InputError(
                f"A scheduled task has no environment, and these are set: {names}",
                hint="Put settings into config.toml (qmd config), and use --token auto.",
            )
        program, *arguments = service.command
        windowless = Path(program).with_name("pythonw.exe")
        if windowless.is_file():  # qmd.exe would show a console window
            program, arguments = str(windowless), ["-I", "-m", "qmd", *arguments]
        user = os.environ.get("USERNAME", "")
        domain = os.environ.get("USERDOMAIN", "")
        text = _TASK_XML.format(
            description=escape(service.description),
            user=escape(f"{domain}\\{user}" if domain else user),
            program=escape(program),
            arguments=escape(subprocess.list2cmdline(arguments)),
            folder=escape(str(service.folder)),
        )
        return text.replace("\n", "\r\n").encode("utf-16")

    def install_steps(self, service_name: str) -> tuple[Step, ...]:
        file = str(self.file(service_name))
        return (
            Step(("schtasks", "/End", "/TN", service_name), may_fail=True),
            Step(("schtasks", "/Create", "/TN", service_name, "/XML", file, "/F")),
            Step(("schtasks", "/Run", "/TN", service_name)),
        )

    def uninstall_steps(self, service_name: str) -> tuple[Step, ...]:
        return (
            Step(("schtasks", "/End", "/TN", service_name), may_fail=True),
            Step(("schtasks", "/Delete", "/TN", service_name, "/F")),
        )

    def state_command(self, service_name: str) -> Command:
        return ("schtasks", "/Query", "/TN", service_name)


# --- what runs them ---------------------------------------------------------------------


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
    _run(manager.steps_after_uninstall())


def is_active(manager: Manager, service_name: str) -> bool:
    """Whether the manager runs the service."""
    try:
        return _started(manager.state_command(service_name)).returncode == 0
    except QmdError:
        return False


def _write(file: Path, content: bytes) -> None:
    """Write a file that only the user may read: its environment may hold a token."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with private_file(file) as stream:
        stream.write(content)


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
