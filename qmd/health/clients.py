"""Checks whether the AI clients of this user reach a qmd that answers, with this database."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from qmd.clients import install
from qmd.clients.table import CLIENTS
from qmd.errors import InputError
from qmd.system import handshake, installation
from qmd.system.handshake import HandshakeError
from qmd.values import Check
from qmd.values.printable import one_line

MakeCheck = Callable[..., Check]

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


def examine(database: Path, home: Path, version: str) -> Iterator[Check]:
    """
    One check for each entry that starts qmd and each unreadable file; else a single check.

    Args:
        version: That of this qmd.
    """
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
                yield _check_entry(client, file, server, database, version)
    for other in CLIENTS:
        if other.name in CONFIGURATIONS:
            continue  # read above, with the entries of projects
        try:
            values = install.entry(other, home, "qmd")
        except InputError as error:
            is_any_reported = True
            yield Check(f"client {other.name}", "warning", str(error), "Mend the file.")
            continue
        if isinstance(values, dict):
            is_any_reported = True
            yield _check_entry(other.name, other.file(home), values, database, version)
    if not is_any_reported:
        yield Check("clients", "ok", "No AI client is set up for qmd: qmd setup")


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
    words = [entry.get("command"), *_words(entry)]
    return name == "qmd" or any(
        isinstance(word, str) and Path(word).stem == "qmd" for word in words
    )


def _words(entry: Mapping[str, Any]) -> list[str]:
    """The arguments of an entry; none if they are no list of texts."""
    args = entry.get("args")
    return [word for word in args if isinstance(word, str)] if isinstance(args, list) else []


def _check_entry(
    client: str, file: Path, server: Mapping[str, Any], database: Path, version: str
) -> Check:
    """Check that an entry reaches a qmd that answers, and that it opens ``database``."""
    check = functools.partial(Check, f"client {client}")
    command, args = server.get("command"), server.get("args")
    if command is None and _url(server) is not None:
        return _check_address(check, file, server)
    if not isinstance(command, str) or not command:
        return check("error", f"{file} names no program for qmd.", _add_program())
    if args is not None and (not isinstance(args, list) or len(_words(server)) != len(args)):
        return check(
            "error", f'{file}: "args" of qmd is no list of texts.', 'For example: "args": ["mcp"]'
        )
    if shutil.which(command) is None:
        return check("error", f"{file} starts {command}, which is not there.", _add_program())
    other = _database_of(server)
    if other is not None and other != database:
        return check(
            "warning",
            f"{file} uses another database: {other}",
            f"If it is to use this one: --db {database}",
        )
    try:
        info = handshake.over_stdio([command, *_words(server)], _environment(server))
    except HandshakeError as error:
        shown = one_line(" ".join([command, *_words(server)]))
        return check(
            "error",
            f"{file} starts '{shown}', which {error}",
            f'An entry that works: "command": "{_program()}", "args": ["mcp"]',
        )
    if (info.name.split()[0] if info.name else "", info.version) != ("qmd", version):
        return check(
            "warning",
            f"{file} starts {one_line(info.name)} {one_line(info.version)}, and this is qmd"
            f" {version}; tobi/qmd has the same name.",
            _add_program(),
        )
    if not Path(command).is_absolute():
        return check(
            "warning",
            f"{file} starts {command} without its path; a client may not search where you do.",
            _add_program(),
        )
    return check("ok", f"{file} starts {command}, which answers")


def _check_address(check: MakeCheck, file: Path, server: Mapping[str, Any]) -> Check:
    url, headers = _url(server), server.get("headers")
    assert url is not None
    sent = {
        name: value
        for name, value in (headers.items() if isinstance(headers, dict) else ())
        if isinstance(value, str)
    }
    try:
        info = handshake.over_http(url, sent)
    except HandshakeError as error:
        return check(
            "error",
            f"{file}: {one_line(url)} {error}",
            "Start it with 'qmd up' or 'qmd service install', or have the client start qmd: "
            f'"command": "{_program()}", "args": ["mcp"]',
        )
    return check("ok", f"{file} reaches {one_line(info.name)} {one_line(info.version)} at {url}")


def _url(server: Mapping[str, Any]) -> str | None:
    """The address of an entry; clients have several names for it."""
    urls = (server.get(key) for key in ("url", "serverUrl", "httpUrl"))
    return next((url for url in urls if isinstance(url, str)), None)


def _environment(server: Mapping[str, Any]) -> dict[str, str]:
    env = server.get("env")
    return {
        name: value
        for name, value in (env.items() if isinstance(env, dict) else ())
        if isinstance(value, str)
    }


def _add_program() -> str:
    return f'\'qmd mcp install\' writes an entry that works: "command": "{_program()}"'


def _database_of(server: Mapping[str, Any]) -> Path | None:
    """The database that an entry names with ``--db`` or ``QMD_DB``; None if it names none."""
    words = _words(server)
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == "--db" and following:
            return Path(following).expanduser().absolute()
        if word.startswith("--db="):
            return Path(word.removeprefix("--db=")).expanduser().absolute()
    path = _environment(server).get("QMD_DB")
    return Path(path).expanduser().absolute() if path else None


def _program() -> str:
    """The full path of the qmd program of this installation."""
    return installation.program()[0]
