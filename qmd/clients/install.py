"""The AI clients that qmd can be added to, and the change of their configuration files."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from qmd.clients import texts
from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.system.settings_file import read_settings, toml_values

#: A larger configuration file is not changed.
MAX_BYTES = 16 << 20

_BACKUP = ".before-qmd"
_TOKEN = re.compile(r"(Bearer )[^\s\"']+")
_CONTEXT = 3  # lines of a diff around a change
_HUNK = re.compile(r"@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


class SettingsChange(NamedTuple):
    """
    A change of a file, not made yet.

    ``before`` is None if there is no file, ``after`` if it is to go.
    """

    file: Path
    before: bytes | None
    after: bytes | None

    @property
    def backup(self) -> Path:
        """Where the file is kept as it was before qmd was added."""
        return self.file.with_name(self.file.name + _BACKUP)

    def diff(self) -> list[str]:
        """The lines of a unified diff, without tokens; none if nothing changes."""
        texts = [(data or b"").decode("utf-8", "replace") for data in (self.before, self.after)]
        before, after = (text.splitlines() for text in texts)
        names = (str(self.file) if self.before is not None else "(no file)", str(self.file))
        # difflib is quadratic in lines that repeat. Where the files are equal it need not look.
        start = max(0, _equal(before, after) - _CONTEXT)
        end = _equal(before[start:][::-1], after[start:][::-1])
        end = max(0, end - _CONTEXT)
        old, new = before[start : len(before) - end], after[start : len(after) - end]
        lines = _at_line(start, difflib.unified_diff(old, new, *names, lineterm=""))
        return [_TOKEN.sub(r"\1***", line) for line in lines]


def entry(client: Client, home: Path, name: str) -> object:
    """
    The entry of this name in the client's file; None if there is none.

    Raises:
        InputError: The file cannot be read.
    """
    file = client.file(home)
    return _entry(client, file, _read(file) or b"", name)


def settings(client: Client, home: Path) -> object:
    """
    What the client's file says, as JSON values; None if there is no file or nothing in it.

    Raises:
        InputError: The file cannot be read.
    """
    file = client.file(home)
    return _decoded(client, file, _read(file) or b"", as_client=True)


def plan(client: Client, home: Path, name: str, values: Entry) -> SettingsChange:
    """
    The change that adds an entry, or replaces the one of this name.

    What a person added to that entry, such as a time limit, stays.

    Raises:
        InputError: The file cannot be read or changed.
    """
    file = client.file(home)
    read = _read(file)
    before = read or b""
    with suppress(InputError):  # of a file that cannot be read, the change says so
        present = _entry(client, file, before, name)
        if isinstance(present, dict):
            values = _with_added(values, present)
    changed = _with_entry(client, file, before, name, values)
    return SettingsChange(file, read, changed)


def _with_added(values: Entry, present: Entry) -> Entry:
    """An entry with the keys and the variables of an earlier one that qmd does not write."""
    added = {key: value for key, value in present.items() if key not in _KEYS}
    variables, earlier = values.get("env", {}), present.get("env", {})
    if "command" in values and isinstance(variables, dict) and isinstance(earlier, dict):
        kept = {key: value for key, value in earlier.items() if not str(key).startswith("QMD_")}
        if kept:
            values = {**values, "env": {**kept, **variables}}
    return {**values, **added}


def plan_undo(client: Client, home: Path, name: str) -> SettingsChange:
    """
    The change that takes the entry of this name out of the file.

    If nothing else has changed since the entry came, the file gets its earlier bytes, or goes if
    there was none.

    Raises:
        InputError: There is no such entry, or the file cannot be read or changed.
    """
    file = client.file(home)
    current = _read(file)
    values = None if current is None else _entry(client, file, current, name)
    if current is None or values is None:
        raise InputError(f"{client.name} has no entry {name!r} in {file}.")
    backup = SettingsChange(file, None, None).backup
    # The entry is what is taken out; the backup only says which bytes were there before.
    with suppress(InputError):
        earlier = _read(backup) if backup.is_file() else None
        if isinstance(values, dict):
            with_entry = _with_entry(client, file, earlier or b"", name, values)
            if with_entry == current:
                return SettingsChange(file, current, earlier)
    return SettingsChange(file, current, _without_entry(client, file, current, name))


def hook_command(client: Client) -> str:
    """What a hook of a client has qmd do; so its command ends."""
    return f"import {client.id} -"


def plan_hook(client: Client, home: Path, command: str | None) -> SettingsChange:
    """
    The change that has a client run a command at the end of each session, in place of an
    earlier one of qmd; other programs that it runs then stay.

    Args:
        client: One of `HOOKS`.
        command: None to take it out. If nothing else has changed since it came, the file gets its
            earlier bytes.

    Raises:
        InputError: The file cannot be read or changed, or there is nothing to take out.
    """
    event = END_OF_SESSION
    file = client.file(home)
    before = _read(file)
    values = _entry(client, file, before or b"", event)
    groups = [] if values is None else values
    if not isinstance(groups, list):
        raise InputError(f"{file} has no list at hooks.{event}.", hint="Mend the file.")
    others = [each for each in groups if not _is_of_qmd(client, each)]
    if command is not None:
        seconds = HOOK_SECONDS[client.id]
        hook = {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}
        after = _with_entry(client, file, before or b"", event, [*others, hook])
        return SettingsChange(file, before, after)
    if before is None or len(others) == len(groups):
        raise InputError(f"{client.name} has no hook of qmd in {file}.")
    backup = SettingsChange(file, None, None).backup
    with suppress(InputError):
        earlier = _read(backup) if backup.is_file() else None
        if _with_entry(client, file, earlier or b"", event, groups) == before:
            return SettingsChange(file, before, earlier)
    if others:
        return SettingsChange(file, before, _with_entry(client, file, before, event, others))
    return SettingsChange(file, before, _without_entry(client, file, before, event))


def _is_of_qmd(client: Client, group: object) -> bool:
    """Whether it runs qmd at the end of a session."""
    hooks = group.get("hooks") if isinstance(group, dict) else None
    commands = [each.get("command") for each in hooks or () if isinstance(each, dict)]
    return any(isinstance(each, str) and each.endswith(hook_command(client)) for each in commands)


def make(change: SettingsChange) -> None:
    """
    Make a change: the whole file at once, with its mode; the earlier one is kept beside it.

    Raises:
        InputError: The file has changed since the plan, or cannot be written.
    """
    if change.before == change.after:
        return
    target = change.file.resolve()
    if _read(change.file) != change.before:
        raise InputError(f"{change.file} has changed meanwhile.", hint="Try again.")
    if change.before is not None and not target.stat().st_mode & 0o222:
        raise InputError(
            f"{target} is read-only.",
            hint="Allow writing, or add the entry by hand: --print shows it.",
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if change.after is None:
            target.unlink()
            return
        if change.before is not None and not change.backup.exists():
            _write(change.backup, change.before, like=target)
        _write(target, change.after, like=target)
    except OSError as error:
        raise InputError(f"{change.file} cannot be written: {error.strerror}") from error


def forget_backup(change: SettingsChange) -> None:
    """Remove the earlier file, after an undo."""
    with suppress(FileNotFoundError):
        change.backup.unlink()


def _write(file: Path, data: bytes, *, like: Path) -> None:
    mode = stat.S_IMODE(like.stat().st_mode) if like.exists() else 0o600
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _read(file: Path) -> bytes | None:
    return read_settings(file, MAX_BYTES)


def _entry(client: Client, file: Path, data: bytes, name: str) -> object:
    return texts.value_at(_decoded(client, file, data), (client.key, name))


def _decoded(client: Client, file: Path, data: bytes, *, as_client: bool = False) -> object:
    """``as_client``: refuse comments where the client does."""
    if not data.strip(b"\xef\xbb\xbf \t\r\n"):
        return None
    try:
        text = data.decode()
        if client.format == "toml":
            return toml_values(text)
        values = texts.decoded(text)
        if client.format == "json" and as_client:
            _refuse_comments(text)
    except ValueError as error:
        message = engine_text("{file} cannot be read: {error}", file=file, error=error)
        raise InputError(message, hint="Mend the file.") from error
    return values


def _refuse_comments(text: str) -> None:
    """Raise ValueError for JSON with comments or commas at the end of a list."""
    try:
        json.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise ValueError(
            f"plain JSON has no comments, and no comma after the last value: {error}"
        ) from error


def _with_entry(
    client: Client, file: Path, data: bytes, name: str, values: Entry | list[object]
) -> bytes:
    def change(text: str) -> str:
        if client.format == "toml":
            assert isinstance(values, dict), "only files in JSON have lists of hooks"
            return texts.with_table(text, (client.key, name), values)
        text = text if text.strip() else "{}\n"
        changed = texts.with_member(text, (client.key, name), values)
        if client.format == "json":
            _refuse_comments(text)
        return changed

    return _changed(file, data, change)


def _without_entry(client: Client, file: Path, data: bytes, name: str) -> bytes:
    without = texts.without_table if client.format == "toml" else texts.without_member
    return _changed(file, data, lambda text: without(text, (client.key, name)))


def _changed(file: Path, data: bytes, change: Callable[[str], str]) -> bytes:
    try:
        return change(data.decode()).encode()
    except ValueError as error:
        raise InputError(
            f"{file} cannot be changed: {error}",
            hint="Mend the file, or add the entry by hand: --print shows it.",
        ) from error


def _equal(first: Sequence[str], second: Sequence[str]) -> int:
    """How many lines at the beginning are equal."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(first), len(second)))


def _at_line(start: int, diff: Iterable[str]) -> list[str]:
    """The lines of a diff of texts that begin after the first ``start`` lines."""

    def moved(match: re.Match[str]) -> str:
        return f"@@ -{int(match[1]) + start}{match[2]} +{int(match[3]) + start}{match[4]} @@"

    return [_HUNK.sub(moved, line) if line.startswith("@@ ") else line for line in diff]


#: An entry of a configuration file, as JSON values.
Entry = dict[str, object]
#: The keys of an entry that qmd writes, of any client.
_KEYS = frozenset(
    ("command", "args", "env", "type", "url", "serverUrl", "httpUrl", "headers", "http_headers")
)


class Client(NamedTuple):
    """
    One client.

    Attributes:
        id: The name on the command line.
        place: The file below the user's configuration directory (see `config_home`), or, if it
            begins with ``~/``, below the home directory.
        key: The key of the object that holds the servers.
        format: ``jsonc`` is JSON in which the client takes comments and commas at the end.
        program: The client's program, which on PATH tells that the client is installed.
        url_key: The key of an address in an entry; "" if the client takes no address there.
        fields: What an entry that starts a program has besides ``command`` and ``args``.
        url_fields: What an entry with an address has besides it and ``headers``.
        variable: The environment variable that names another directory for ``moved``.
        moved: The directory, ``~`` or below it, that ``variable`` replaces.
        store_package: The name of its package in the Microsoft Store; Windows keeps the files of
            such a program apart.
    """

    id: str
    name: str
    place: str
    key: str
    format: Literal["json", "jsonc", "toml"] = "json"
    program: str = ""
    url_key: str = "url"
    fields: Mapping[str, object] = {}
    url_fields: Mapping[str, object] = {}
    variable: str = ""
    moved: str = ""
    store_package: str = ""

    def file(self, home: Path) -> Path:
        """The configuration file of the user with this home directory."""
        directory = _directory_in(self.variable, home)
        if directory is not None:
            return directory / self.place.removeprefix(f"{self.moved}/")
        if self.place.startswith("~/"):
            return home / self.place[2:]
        if self.store_package and sys.platform == "win32":
            packages = home / "AppData" / "Local" / "Packages"
            file = packages / self.store_package / "LocalCache" / "Roaming" / self.place
            if file.parent.is_dir():
                return file
        return config_home(home) / self.place

    def is_installed(self, home: Path) -> bool:
        """Whether the file, its directory or the program is there."""
        file = self.file(home)
        own_directory = file.parent not in (home, config_home(home))
        has_directory = own_directory and file.parent.is_dir()
        return has_directory or file.is_file() or bool(self.program and shutil.which(self.program))

    def program_entry(
        self, command: str, args: list[str], env: Mapping[str, str] | None = None
    ) -> Entry:
        """An entry that has the client start a program, with these variables besides its own."""
        variables = {"env": dict(env)} if env else {}
        return {**self.fields, "command": command, "args": args, **variables}

    def address_entry(self, url: str, token: str | None) -> Entry:
        """An entry for a server that runs; raises ValueError if the client takes none."""
        if not self.url_key:
            raise ValueError(f"{self.name} takes no addresses in its configuration file")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        named = {"http_headers" if self.format == "toml" else "headers": headers} if headers else {}
        return {**self.url_fields, self.url_key: url, **named}


CLIENTS = (
    Client("claude-desktop", "Claude Desktop", "Claude/claude_desktop_config.json", "mcpServers",
           url_key="", store_package="Claude_pzs8sxrjxfjjc"),
    Client("claude-code", "Claude Code", "~/.claude.json", "mcpServers", program="claude",
           fields={"type": "stdio"}, url_fields={"type": "http"},
           variable="CLAUDE_CONFIG_DIR", moved="~"),
    Client("cursor", "Cursor", "~/.cursor/mcp.json", "mcpServers", program="cursor"),
    Client("vscode", "VS Code", "Code/User/mcp.json", "servers", "jsonc", "code",
           fields={"type": "stdio"}, url_fields={"type": "http"}),
    Client("windsurf", "Windsurf", "~/.codeium/windsurf/mcp_config.json", "mcpServers",
           program="windsurf", url_key="serverUrl"),
    Client("zed", "Zed", {"win32": "Zed/settings.json", "darwin": "~/.config/zed/settings.json"}
           .get(sys.platform, "zed/settings.json"), "context_servers", "jsonc", "zed"),
    Client("codex", "Codex", "~/.codex/config.toml", "mcp_servers", "toml", "codex",
           variable="CODEX_HOME", moved="~/.codex"),
    Client("gemini", "Gemini CLI", "~/.gemini/settings.json", "mcpServers", "jsonc", "gemini",
           url_key="httpUrl", variable="GEMINI_CLI_HOME", moved="~"),
)  # fmt: skip

#: The clients that run a program at the end of a session, with the files that say which.
HOOKS = (
    Client("claude-code", "Claude Code", "~/.claude/settings.json", "hooks",
           variable="CLAUDE_CONFIG_DIR", moved="~/.claude"),
    Client("codex", "Codex", "~/.codex/hooks.json", "hooks",
           variable="CODEX_HOME", moved="~/.codex"),
)  # fmt: skip

#: What such a program may take; Codex warns of more.
HOOK_SECONDS = {"claude-code": 60, "codex": 3}

#: The key of the list of programs in it.
END_OF_SESSION = "SessionEnd"

#: Clients whose configuration is no file: the entry is imported in the program.
BY_HAND = (
    Client("cherry-studio", "Cherry Studio", "", "mcpServers",
           url_fields={"type": "streamableHttp"}),
)  # fmt: skip


def config_home(home: Path) -> Path:
    """Where programs with a window keep their configuration on this system."""
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    if sys.platform == "win32":
        return _directory_in("APPDATA", home) or home / "AppData" / "Roaming"
    return _directory_in("XDG_CONFIG_HOME", home) or home / ".config"


def _directory_in(variable: str, home: Path) -> Path | None:
    """The directory that a variable names; None if it names none, or is of another user."""
    configured = os.environ.get(variable, "") if variable and home == Path.home() else ""
    return Path(configured) if Path(configured).is_absolute() else None
