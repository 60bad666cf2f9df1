"""Checks whether the AI clients of this user reach a qmd that answers, with this database."""

from __future__ import annotations

import functools
import itertools
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from qmd.clients import install
from qmd.clients.table import CLIENTS
from qmd.errors import InputError, QmdError
from qmd.system import handshake, installation
from qmd.system.handshake import HandshakeError
from qmd.system.session import SERVES_ONLY
from qmd.system.user_dirs import named_database
from qmd.values import Check
from qmd.values.location import as_location
from qmd.values.printable import one_line

if TYPE_CHECKING:
    from qmd.values.location import DatabaseLocation

MakeCheck = Callable[..., Check]

MAX_TRIED = 10
"""The most different entries of a file that are tried; each may take `handshake.TIMEOUT_S`."""

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
        try:
            servers = _servers(install.settings(client, home), client.key)
        except InputError as error:
            is_any_reported = True
            yield Check(
                f"client {client.name}",
                "warning",
                str(error),
                "Mend the file; the client ignores it until then.",
            )
            continue
        for server in servers[:MAX_TRIED]:
            is_any_reported = True
            yield _check_entry(client.name, client.file(home), server, database, version)
        if left := servers[MAX_TRIED:]:
            message = f"{client.file(home)}: {len(left):,} more were not tried."
            yield Check(f"client {client.name}", "warning", message)
    if not is_any_reported:
        yield Check("clients", "ok", "No AI client is set up for qmd: qmd setup")


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


def _check_entry(
    client: str, file: Path, server: Mapping[str, Any], database: DatabaseLocation, version: str
) -> Check:
    """Check that an entry reaches a qmd that answers, and that it opens ``database``."""
    check = functools.partial(Check, f"client {client}")
    command, args = server.get("command"), server.get("args")
    if command is None and _url(server) is not None:
        return _check_address(check, file, server)
    if not isinstance(command, str) or not command:
        return check("error", f"{file} names no program for qmd.", _add_program())
    if args not in (None, _words(server)):
        return check(
            "error", f'{file}: "args" of qmd is no list of texts.', 'For example: "args": ["mcp"]'
        )
    # Not with the PATH of the entry: it chooses the program.
    program = shutil.which(command) or ""
    refusal = _reason_not_to_start(check, file, command, program, _words(server))
    if refusal is not None:
        return refusal
    try:
        other = _database_of(server)
    except QmdError as error:
        return check("error", f"{file}: {one_line(str(error))}", error.hint or _add_program())
    if other is not None and other != database:
        return check(
            "warning",
            f"{file} uses another database: {one_line(str(other))}",
            f"If it is to use this one: --db {database}",
        )
    return _check_answer(check, file, server, command, program, version)


def _check_answer(
    check: MakeCheck,
    file: Path,
    server: Mapping[str, Any],
    command: str,
    program: str,
    version: str,
) -> Check:
    """Start what an entry names, and check who answers."""
    words, shown = _words(server), one_line(command)
    variables = _environment(server)
    environment = {name: text for name, text in variables.items() if _SAFE_VARIABLE.fullmatch(name)}
    try:
        info = handshake.over_stdio([program, *words], {**environment, SERVES_ONLY: "1"})
    except HandshakeError as error:
        return check(
            "error",
            f"{file} starts '{one_line(' '.join([command, *words]))}', which {error}",
            f'An entry that works: "command": "{_program()}", "args": ["mcp"]',
        )
    if ([*info.name.split(), ""][0], info.version) != ("qmd", version):
        return check(
            "warning",
            f"{file} starts {one_line(info.name)} {one_line(info.version)}, and this is qmd"
            f" {version}; tobi/qmd has the same name.",
            _add_program(),
        )
    if not Path(command).is_absolute():
        return check(
            "warning",
            f"{file} starts {shown} without its path; a client may not search where you do.",
            _add_program(),
        )
    left = sorted(variables.keys() - environment)
    without = f" (tried without {one_line(', '.join(left))}, which it sets)" if left else ""
    return check("ok", f"{file} starts {shown}, which answers{without}")


def _reason_not_to_start(
    check: MakeCheck, file: Path, command: str, program: str, words: Sequence[str]
) -> Check | None:
    """
    What is wrong with a command before it is started, or why it is not; None to start it.

    Args:
        program: The file that it runs; "" if there is none.
    """
    shown = one_line(command)
    if not program:
        return check("error", f"{file} starts {shown}, which is not there.", _add_program())
    if not _is_program(command, words):
        message = f"{file} starts {shown} for qmd. It is another program, so it was not tried."
        return check("warning", message, _add_program())
    if not Path(program).is_absolute():
        message = f"{file} starts {shown}, which depends on the folder that the client is in."
        return check("error", message, _add_program())
    if not (_is_own(program, words) or _is_plain_server(words)):
        message = (
            f"{file} starts '{one_line(' '.join([command, *words]))}' of another installation. It"
            " may be no server, so it was not tried."
        )
        return check("warning", message, _add_program())
    return None


def _check_address(check: MakeCheck, file: Path, server: Mapping[str, Any]) -> Check:
    url, headers = _url(server), server.get("headers") or server.get("http_headers")
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
            "Start it with 'qmd up' or 'qmd server service install', or have the client start qmd: "
            f'"command": "{_program()}", "args": ["mcp"]',
        )
    return check(
        "ok", f"{file} reaches {one_line(info.name)} {one_line(info.version)} at {one_line(url)}"
    )


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


def _database_of(server: Mapping[str, Any]) -> DatabaseLocation | None:
    """
    The database that an entry names, by an option or a variable; None if it names none.

    Raises:
        QmdError: It names none that can be.
    """
    words, environment = _words(server), _environment(server)
    named: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=False):
        option, has_value, value = word.partition("=")
        if option in ("--db", "--index") and (has_value or following):
            named[option] = value if has_value else following
    if not named and not environment.get("QMD_DB"):
        return None
    if "--index" in named and "--db" not in named:
        return named_database(named["--index"])
    location = as_location(named.get("--db") or environment["QMD_DB"])
    return location.absolute() if isinstance(location, Path) else location


def _program() -> str:
    """The full path of the qmd program of this installation."""
    return installation.program()[0]
