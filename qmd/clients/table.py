"""The AI clients that qmd can be added to: where their configuration is, and how entries look."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

Entry = dict[str, object]
"""An entry of a configuration file, as JSON values."""


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

HOOKS = (
    Client("claude-code", "Claude Code", "~/.claude/settings.json", "hooks",
           variable="CLAUDE_CONFIG_DIR", moved="~/.claude"),
    Client("codex", "Codex", "~/.codex/hooks.json", "hooks",
           variable="CODEX_HOME", moved="~/.codex"),
)  # fmt: skip
"""The clients that run a program at the end of a session, with the files that say which."""

HOOK_SECONDS = {"claude-code": 60, "codex": 3}
"""What such a program may take; Codex warns of more."""

END_OF_SESSION = "SessionEnd"
"""The key of the list of programs in it."""

BY_HAND = (
    Client("cherry-studio", "Cherry Studio", "", "mcpServers",
           url_fields={"type": "streamableHttp"}),
)  # fmt: skip
"""Clients whose configuration is no file: the entry is imported in the program."""


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
