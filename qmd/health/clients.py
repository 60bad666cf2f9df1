"""Checks whether the AI clients of this user reach a qmd that answers, with this database."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from qmd.clients import install
from qmd.clients.install import CLIENTS
from qmd.engine_text import engine_text
from qmd.errors import InputError, QmdError
from qmd.system import handshake, installation
from qmd.system.handshake import HandshakeError
from qmd.system.session import SERVES_ONLY
from qmd.system.user_dirs import named_database
from qmd.values import Check
from qmd.values.location import DatabaseLocation, as_location
from qmd.values.text import one_line

#: The most different entries of a file that are tried; each may take `handshake.TIMEOUT_S`.
MAX_TRIED = 10

_PYTHON = re.compile(r"pythonw?[0-9.]*|py")
_FLAGS_OF_PYTHON = frozenset({"-I", "-E", "-s", "-P", "-u"})
_SUFFIXES_OF_PROGRAMS = frozenset({"", ".exe", ".cmd"})
# What an entry may set for the program that is tried. Other variables, such as PATH, PYTHONPATH,
# HOME and LD_PRELOAD, may replace the program, have it run something else first, or lead it to
# other settings, and so to another database.
_SAFE_VARIABLE = re.compile(r"QMD_\w+|LC_\w+|LANG|TZ|NO_COLOR", re.ASCII)


def examine(database: DatabaseLocation, home: Path, version: str) -> Iterator[Check]:
    """
    One check for each entry that starts qmd and each unreadable file; else a single check.

    Args:
        version: That of this qmd.
    """
    is_any_reported = False
    for client in CLIENTS:
        name, file = f"client {client.name}", client.file(home)
        try:
            servers = _servers(install.settings(client, home), client.key)
        except InputError as error:
            is_any_reported = True
            yield Check.warning(
                name, error.message, "Mend the file; the client ignores it until then."
            )
            continue
        for server in servers[:MAX_TRIED]:
            is_any_reported = True
            yield _Entry(name, file, server).finding(database, version)
        if left := servers[MAX_TRIED:]:
            message = "{file}: {count} more were not tried."
            yield Check.warning(name, message, file=file, count=f"{len(left):,}")
    if not is_any_reported:
        yield Check.ok("clients", "No AI client is set up for qmd: qmd setup")


def _servers(settings: object, servers_key: str) -> list[Mapping[str, Any]]:
    """The entries that start qmd, of all objects with this key."""
    entries: list[Mapping[str, Any]] = []
    pending = [settings]
    while pending:  # Claude Code nests the entries of each project deeper
        value = pending.pop()
        if not isinstance(value, dict):
            continue
        for key, child in value.items():
            if key == servers_key and isinstance(child, dict):
                entries += [
                    entry
                    for name, entry in child.items()
                    if isinstance(entry, dict) and _is_qmd(name, entry)
                ]
            else:
                pending.append(child)
    return list({json.dumps(each, sort_keys=True, default=str): each for each in entries}.values())


def _is_qmd(name: str, entry: Mapping[str, Any]) -> bool:
    """Whether an entry is meant for qmd: by its name, or by its program."""
    return name == "qmd" or _is_program(entry.get("command"), _words(entry))


def _is_program(command: object, words: Sequence[str]) -> bool:
    """
    Whether a command starts qmd itself.

    What only has "qmd" among its arguments may do anything with it, such as remove it; and what
    fetches qmd first, as uvx and npx do, would use the network.
    """
    if not isinstance(command, str):
        return False
    file = PurePath(command.replace("\\", "/"))
    if file.stem.lower() == "qmd":
        return file.suffix.lower() in _SUFFIXES_OF_PROGRAMS
    return _PYTHON.fullmatch(file.stem.lower()) is not None and _module(words) == "qmd"


def _is_own(program: str, words: Sequence[str]) -> bool:
    """Whether a program is that of this installation, which `SERVES_ONLY` keeps from all else."""
    if _module(words) == "qmd":
        # Not the file: several environments may link to one interpreter.
        return Path(program).parent.resolve() == Path(sys.executable).parent.resolve()
    return Path(program).resolve() == Path(_program()).resolve()


def _module(words: Sequence[str]) -> str | None:
    """The module that Python is to run, if its arguments begin with that."""
    rest = list(itertools.dropwhile(_FLAGS_OF_PYTHON.__contains__, words))
    return rest[1] if rest[:1] == ["-m"] and len(rest) > 1 else None


def _is_plain_server(words: Sequence[str]) -> bool:
    """Whether arguments say ``mcp`` and nothing else but the database, in any version of qmd."""
    rest = [word for word in words if not word.startswith("--db=")]
    if "--db" in rest[:-1]:
        at = rest.index("--db")
        del rest[at : at + 2]
    return rest in ([], ["mcp"])


def _words(entry: Mapping[str, Any]) -> list[str]:
    """The arguments of an entry; none if they are no list of texts."""
    args = entry.get("args")
    return [word for word in args if isinstance(word, str)] if isinstance(args, list) else []


def _texts(values: object) -> dict[str, str]:
    """The values of an object that are texts."""
    pairs = values.items() if isinstance(values, dict) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}


#: What most findings advise.
_ADD_PROGRAM = '\'qmd mcp install\' writes an entry that works: "command": "{program}"'


class _Entry:
    """What a file says about one server: does it reach a qmd that answers?"""

    def __init__(self, name: str, file: Path, server: Mapping[str, Any]) -> None:
        self._name = name
        self._file = file
        self._server = server
        self._words = _words(server)
        self._variables = _texts(server.get("env"))

    def finding(self, database: DatabaseLocation, version: str) -> Check:
        """Whether the entry reaches a qmd that answers, and opens ``database``."""
        command, args = self._server.get("command"), self._server.get("args")
        # Clients have several names for an address.
        urls = _texts({key: self._server.get(key) for key in ("url", "serverUrl", "httpUrl")})
        if command is None and urls:
            return self._address(next(iter(urls.values())))
        if not isinstance(command, str) or not command:
            return self._error("{file} names no program for qmd.")
        if args not in (None, self._words):
            message = '{file}: "args" of qmd is no list of texts.'
            return self._error(message, 'For example: "args": ["mcp"]')
        # Not with the PATH of the entry: it chooses the program.
        program = shutil.which(command) or ""
        refusal = self._reason_not_to_start(command, program)
        if refusal is not None:
            return refusal
        try:
            other = self._database()
        except QmdError as error:
            return self._error("{file}: {error}", error.hint or _ADD_PROGRAM, error=error.message)
        if other is not None and other != database:
            return self._warning(
                "{file} uses another database: {other}",
                "If it is to use this one: --db {database}",
                other=one_line(str(other)),
                database=database,
            )
        return self._answer(command, program, version)

    def _answer(self, command: str, program: str, version: str) -> Check:
        """Start what the entry names, and see who answers."""
        shown, variables = one_line(command), self._variables
        safe = {name: text for name, text in variables.items() if _SAFE_VARIABLE.fullmatch(name)}
        try:
            info = handshake.over_stdio([program, *self._words], {**safe, SERVES_ONLY: "1"})
        except HandshakeError as error:
            return self._error(
                "{file} starts '{line}', which {error}",
                'An entry that works: "command": "{program}", "args": ["mcp"]',
                line=self._line(command),
                error=str(error),
            )
        if ([*info.name.split(), ""][0], info.version) != ("qmd", version):
            return self._warning(
                "{file} starts {other}, and this is qmd {version}; tobi/qmd has the same name.",
                other=f"{one_line(info.name)} {one_line(info.version)}",
                version=version,
            )
        if not Path(command).is_absolute():
            return self._warning(
                "{file} starts {command} without its path; a client may not search where you do.",
                command=shown,
            )
        left = sorted(variables.keys() - safe)
        answers = engine_text(
            "{file} starts {command}, which answers", file=self._file, command=shown
        )
        if left:
            answers = engine_text(
                "{answers} (tried without {names}, which it sets)",
                answers=answers,
                names=one_line(", ".join(left)),
            )
        return Check.ok(self._name, answers)

    def _line(self, command: str) -> str:
        return one_line(" ".join([command, *self._words]))

    def _reason_not_to_start(self, command: str, program: str) -> Check | None:
        """
        What is wrong with the command before it is started, or why it is not; None to start it.

        Args:
            program: The file that it runs; "" if there is none.
        """
        shown = one_line(command)
        if not program:
            return self._error("{file} starts {command}, which is not there.", command=shown)
        if not _is_program(command, self._words):
            return self._warning(
                "{file} starts {command} for qmd. It is another program, so it was not tried.",
                command=shown,
            )
        if not Path(program).is_absolute():
            return self._error(
                "{file} starts {command}, which depends on the folder that the client is in.",
                command=shown,
            )
        if not (_is_own(program, self._words) or _is_plain_server(self._words)):
            return self._warning(
                "{file} starts '{line}' of another installation. It may be no server, so it was"
                " not tried.",
                line=self._line(command),
            )
        return None

    def _address(self, url: str) -> Check:
        headers = _texts(self._server.get("headers") or self._server.get("http_headers"))
        try:
            info = handshake.over_http(url, headers)
        except HandshakeError as error:
            return self._error(
                "{file}: {url} {error}",
                "Start it with 'qmd up' or 'qmd server service install', or have the client"
                ' start qmd: "command": "{program}", "args": ["mcp"]',
                url=one_line(url),
                error=str(error),
            )
        who = f"{one_line(info.name)} {one_line(info.version)}"
        message = "{file} reaches {who} at {url}"
        return Check.ok(self._name, message, file=self._file, who=who, url=one_line(url))

    def _error(self, message: str, remedy: str = _ADD_PROGRAM, **fields: object) -> Check:
        return Check.error(self._name, message, remedy, **self._facts(), **fields)

    def _warning(self, message: str, remedy: str = _ADD_PROGRAM, **fields: object) -> Check:
        return Check.warning(self._name, message, remedy, **self._facts(), **fields)

    def _facts(self) -> dict[str, object]:
        """What any message or remedy may name."""
        return {"file": self._file, "program": _program()}

    def _database(self) -> DatabaseLocation | None:
        """
        The database that the entry names, by an option or a variable; None if it names none.

        Raises:
            QmdError: It names none that can be.
        """
        named: dict[str, str] = {}
        for word, following in zip(self._words, [*self._words[1:], ""], strict=False):
            option, has_value, value = word.partition("=")
            if option in ("--db", "--index") and (has_value or following):
                named[option] = value if has_value else following
        if "--index" in named and "--db" not in named:
            return named_database(named["--index"])
        text = named.get("--db") or self._variables.get("QMD_DB")
        if not text:
            return None
        location = as_location(text)
        return location.absolute() if isinstance(location, Path) else location


def _program() -> str:
    """The full path of the qmd program of this installation."""
    return installation.program()[0]
