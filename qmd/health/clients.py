"""Are the AI clients of this user set up for qmd, and would they find it?"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from qmd.values import Check

#: Where clients keep their MCP servers, below the home directory. A client may have several.
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
    """A finding for each client that names qmd, or one that says that none does."""
    silent = True
    for client, places in CONFIGURATIONS.items():
        for place in places:
            file = home / place
            if not file.is_file():
                continue
            try:
                servers = _servers(file)
            except (OSError, ValueError, RecursionError) as error:
                silent = False
                yield Check(
                    f"client {client}",
                    "warning",
                    f"{file} cannot be read as JSON: {error}",
                    "Mend the file; the client ignores it until then.",
                )
                continue
            for server in servers:
                silent = False
                yield _judge(client, file, server, database)
    if silent:
        yield Check("clients", "ok", "No AI client is set up for qmd; docs/mcp.md says how")


def _servers(file: Path) -> list[Mapping[str, Any]]:
    """The entries that start qmd. Raises OSError, ValueError, RecursionError (nested too deep)."""
    if file.stat().st_size > MAX_BYTES:
        raise ValueError("it is too large")
    entries: list[Mapping[str, Any]] = []
    pending: list[object] = [json.loads(file.read_text(encoding="utf-8"))]
    while pending:  # Claude Code has entries for each project below the top
        value = pending.pop()
        if not isinstance(value, dict):
            continue
        for key, below in value.items():
            if key == "mcpServers" and isinstance(below, dict):
                entries += [
                    entry
                    for name, entry in below.items()
                    if isinstance(entry, dict) and _is_ours(name, entry)
                ]
            else:
                pending.append(below)
    return entries


def _is_ours(name: str, entry: Mapping[str, Any]) -> bool:
    words = [entry.get("command"), *(entry.get("args") or ())]
    return name == "qmd" or any(
        isinstance(word, str) and Path(word).stem == "qmd" for word in words
    )


def _judge(client: str, file: Path, server: Mapping[str, Any], database: Path) -> Check:
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
    """The database that an entry names, by option or by environment."""
    words = [word for word in server.get("args") or () if isinstance(word, str)]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--db" and following:
            return Path(following).expanduser().absolute()
        if word.startswith("--db="):
            return Path(word.removeprefix("--db=")).expanduser().absolute()
    environment = server.get("env")
    named = environment.get("QMD_DB") if isinstance(environment, dict) else None
    return Path(named).expanduser().absolute() if isinstance(named, str) and named else None


def _program() -> str:
    """The full path of the qmd that runs here."""
    beside = Path(sys.executable).parent / "qmd"
    return str(beside) if beside.exists() else shutil.which("qmd") or "/full/path/to/qmd"
