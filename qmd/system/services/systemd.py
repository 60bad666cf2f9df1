"""Services of systemd's user manager: https://www.freedesktop.org/software/systemd/man/."""

from __future__ import annotations

import getpass
import os
from contextlib import suppress
from pathlib import Path

from qmd.errors import InputError
from qmd.system.services.definition import RESTART_S, Command, Service, Step

STOP_S = 20
"""Seconds until systemd kills a server that it has asked to stop; the server needs 13 at most."""


_LINGERING = Path("/var/lib/systemd/linger")
"""Has a file for each user whose services go on after the logout."""


class Systemd:
    """systemd's manager of one user's services."""

    name = "systemd"

    def file(self, service_name: str) -> Path:
        base = os.environ.get("XDG_CONFIG_HOME", "")
        folder = Path(base) if Path(base).is_absolute() else Path.home() / ".config"
        return folder / "systemd/user" / f"{service_name}.service"

    def content(self, service: Service) -> bytes:
        environment = "".join(
            f"Environment={_quoted(f'{name}={value}')}\n"
            for name, value in sorted(service.environment.items())
        )
        return (
            "# Written by 'qmd server service install'; 'qmd server service uninstall' removes"
            " it.\n"
            f"# The log: qmd server logs, or journalctl --user -u {service.name}\n"
            "[Unit]\n"
            f"Description={_literal(service.description)}\n"
            "StartLimitIntervalSec=300\n"
            "StartLimitBurst=10\n"
            "\n"
            "[Service]\n"
            "Type=exec\n"
            f"ExecStart={_command_line(service.command)}\n"
            f"WorkingDirectory=-{_literal(str(service.folder))}\n"  # "-": it may be missing
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

    def steps_after_uninstall(self, service_name: str) -> tuple[Step, ...]:
        return (Step(("systemctl", "--user", "daemon-reload")),)

    def state_command(self, service_name: str) -> Command:
        return ("systemctl", "--user", "is-active", "--quiet", f"{service_name}.service")

    def remark(self) -> str | None:
        with suppress(OSError, KeyError):  # KeyError: a user without a name
            if (_LINGERING / getpass.getuser()).exists():
                return None
        return "It stops when you log out, unless you run: loginctl enable-linger"


def _command_line(command: Command) -> str:
    program, *arguments = command
    if any(character in program for character in "'\"\\"):  # systemd starts no such program itself
        program, arguments = "/usr/bin/env", [program, *arguments]
    # Variables are replaced in arguments, not in the name of the program; "$$" is a dollar sign.
    return " ".join([_quoted(program), *(_quoted(word).replace("$", "$$") for word in arguments)])


def _quoted(text: str) -> str:
    """A word in systemd's quotes. Raises InputError for a line end, which no unit can hold."""
    return '"' + _literal(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _literal(text: str) -> str:
    """A text without specifiers: ``%%`` is a percent sign."""
    if not text.isprintable():
        raise InputError(
            f"A systemd unit cannot hold control characters: {text!r}",
            hint="Rename the file or folder.",
        )
    return text.replace("%", "%%")
