"""What a service is, and what installing or removing it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

Command = tuple[str, ...]

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

    def install_commands(self, service_name: str) -> tuple[Command, ...]:
        """Start a service whose file is written, now and at each login."""
        ...

    def uninstall_commands(self, service_name: str) -> tuple[Command, ...]:
        """Stop a service for good; its file is deleted afterwards."""
        ...

    def after_uninstall(self, service_name: str) -> tuple[Command, ...]:
        """What is run when the file is deleted."""
        ...

    def state_command(self, service_name: str) -> Command:
        """Exits with 0 if the service runs."""
        ...

    def remark(self) -> str | None:
        """What the user may want to know after the installation."""
        ...
