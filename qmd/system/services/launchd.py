"""Launch agents of macOS: launchd.plist(5), launchctl(1)."""

from __future__ import annotations

import os
import plistlib
from pathlib import Path
from typing import Any

from qmd.system.services.definition import RESTART_S, Command, Service, Step


class Launchd:
    """launchd, for the services of one user."""

    name = "launchd"

    def file(self, service_name: str) -> Path:
        return Path.home() / "Library/LaunchAgents" / f"{_label(service_name)}.plist"

    def content(self, service: Service) -> bytes:
        agent: dict[str, Any] = {
            "Label": _label(service.name),
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
            Step(("launchctl", "bootout", _target(service_name)), may_fail=True),
            # It is refused until an earlier server has ended, which takes 13 seconds at most.
            Step(("launchctl", "bootstrap", _domain(), str(self.file(service_name))), tries=30),
        )

    def uninstall_steps(self, service_name: str) -> tuple[Step, ...]:
        return (Step(("launchctl", "bootout", _target(service_name)), may_fail=True),)

    def steps_after_uninstall(self, service_name: str) -> tuple[Step, ...]:
        return ()

    def state_command(self, service_name: str) -> Command:
        return ("launchctl", "print", _target(service_name))

    def remark(self) -> str | None:
        return None


def _label(service_name: str) -> str:
    return f"local.{service_name}"


def _domain() -> str:
    return f"gui/{os.getuid() if hasattr(os, 'getuid') else 0}"


def _target(service_name: str) -> str:
    return f"{_domain()}/{_label(service_name)}"
