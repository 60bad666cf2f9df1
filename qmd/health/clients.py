"""Checks whether the AI clients of this user can start qmd with this database."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from qmd.values import Check

#: The files that list the MCP servers of each client, relative to the home directory.
CONFIGURATIONS = {
    "Claude Desktop": (
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        "AppData/Roaming/Claude/claude_desktop_config.json",
    ),
    "Claude Code": (".claude.json",),
    "Cursor": (".cursor/mcp.json",),
}
MAX_BYTES = 64 << 20


def examine(database: Path, home: Path) -> Iterator[Check]:
    """One check for each entry that starts qmd and each unreadable file; else a single check."""
    is_any_reported = False
    for client, relative_paths in CONFIGURATIONS.items():
        for relative_path in relative_paths:
            file = home / relative_path
            if not file.is_file():
                continue
            try:
                servers = _servers(file)
            except (OSError, ValueError, RecursionError) as error:
                is_any_reported = True
                yield Check(
                    f"client {client}",
                    "warning",
                    f"{file} cannot be read as JSON: {error}",
                    "Mend the file; the client ignores it until then.",
                )
                continue
            for server in servers:
                is_any_reported = True
                yield _check_entry(client, file, server, database)
    if not is_any_reported:
        yield Check("clients", "ok", "No AI client is set up for qmd; docs/mcp.md says how")


def _servers(file: Path) -> list[Mapping[str, Any]]:
    """The entries that start qmd. Raises OSError, ValueError, RecursionError (nested too deep)."""
    if file.stat().st_size > MAX_BYTES:
        raise ValueError("it is too large")
    entries: list[Mapping[str, Any]] = []
    pending: list[object] = [json.loads(file.read_text(encoding="utf-8"))]
    while pending:  # Claude Code nests the entries of each project deeper
        value = pending.pop()
        if not isinstance(value, dict):
            continue
        for key, child in value.items():
            if key == "mcpServers" and isinstance(child, dict):
                entries += [
                    entry
                    for name, entry in child.items()
                    if isinstance(entry, dict) and _starts_qmd(name, entry)
                ]
            else:
                pending.append(child)
    return entries


def _starts_qmd(name: str, entry: Mapping[str, Any]) -> bool:
    words = [entry.get("command"), *(entry.get("args") or ())]
    return name == "qmd" or any(
        isinstance(word, str) and Path(word).stem == "qmd" for word in words
    )


def _check_entry(client: str, file: Path, server: Mapping[str, Any], database: Path) -> Check:
    """Check that the program of an entry exists, and that it opens ``database``."""
    name = f"client {client}"
    command = server.get("command")
    if not isinstance(command, str):
        return Check(name, "ok", f"{file} reaches qmd at {server.get('url', 'an address')}")
    if shutil.which(command) is None:
        return Check(
            name,
            "error",
            f"{file} starts {command}, which is not there.",
            f'Name the program by its full path: "command": "{_program()}"',
        )
    other = _database_of(server)
    if other is not None and other != database:
        return Check(
            name,
            "warning",
            f"{file} uses another database: {other}",
            f"If it is to use this one: --db {database}",
        )
    if not Path(command).is_absolute():
        return Check(
            name,
            "warning",
            f"{file} starts {command} without its path; a client may not search where you do.",
            f'Name the program by its full path: "command": "{_program()}"',
        )
    return Check(name, "ok", f"{file} starts {command}")


def _database_of(server: Mapping[str, Any]) -> Path | None:
    """The database that an entry names with ``--db`` or ``QMD_DB``; None if it names none."""
    words = [word for word in server.get("args") or () if isinstance(word, str)]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--db" and following:
            return Path(following).expanduser().absolute()
        if word.startswith("--db="):
            return Path(word.removeprefix("--db=")).expanduser().absolute()
    environment = server.get("env")
    path = environment.get("QMD_DB") if isinstance(environment, dict) else None
    return Path(path).expanduser().absolute() if isinstance(path, str) and path else None


def _program() -> str:
    """The full path of the qmd program of this installation."""
    program = Path(sys.executable).parent / "qmd"
    return str(program) if program.exists() else shutil.which("qmd") or "/full/path/to/qmd"
