"""What a service is, and what installing or removing it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

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


PAUSE_S = 0.5
"""Seconds before a step is tried again."""

RESTART_S = 5
"""Seconds between a failure and the next start."""


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


class Manager(Protocol):
    """A program of the system that runs services of one user."""

    name: str

    def file(self, service_name: str) -> Path:
        """The file that defines a service."""
        ...

    def content(self, service: Service) -> bytes:
        """What stands in the file. Raises InputError if it cannot express the service."""
        ...

    def install_steps(self, service_name: str) -> tuple[Step, ...]:
        """Start a service whose file is written, now and at each login."""
        ...

    def uninstall_steps(self, service_name: str) -> tuple[Step, ...]:
        """Stop a service for good; its file is deleted afterwards."""
        ...

    def steps_after_uninstall(self, service_name: str) -> tuple[Step, ...]:
        """What is run when the file is deleted."""
        ...

    def state_command(self, service_name: str) -> Command:
        """Exits with 0 if the service runs."""
        ...

    def remark(self) -> str | None:
        """What the user may want to know after the installation."""
        ...
