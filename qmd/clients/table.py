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

    def file(self, home: Path) -> Path:
        """The configuration file of the user with this home directory."""
        if self.place.startswith("~/"):
            return home / self.place[2:]
        return config_home(home) / self.place

    def is_installed(self, home: Path) -> bool:
        """Whether the file, its directory or the program is there."""
        file = self.file(home)
        own_directory = file.parent not in (home, config_home(home))
        has_directory = own_directory and file.parent.is_dir()
        return has_directory or file.is_file() or bool(self.program and shutil.which(self.program))

    def program_entry(self, command: str, args: list[str]) -> Entry:
        """An entry that has the client start a program."""
        return {**self.fields, "command": command, "args": args}

    def address_entry(self, url: str, token: str | None) -> Entry:
        """An entry for a server that runs; raises ValueError if the client takes none."""
        if not self.url_key:
            raise ValueError(f"{self.name} takes no addresses in its configuration file")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        named = {"http_headers" if self.format == "toml" else "headers": headers} if headers else {}
        return {**self.url_fields, self.url_key: url, **named}


CLIENTS = (
    Client("claude-desktop", "Claude Desktop", "Claude/claude_desktop_config.json", "mcpServers",
           url_key=""),
    Client("claude-code", "Claude Code", "~/.claude.json", "mcpServers", program="claude",
           fields={"type": "stdio"}, url_fields={"type": "http"}),
    Client("cursor", "Cursor", "~/.cursor/mcp.json", "mcpServers", program="cursor"),
    Client("vscode", "VS Code", "Code/User/mcp.json", "servers", "jsonc", "code",
           fields={"type": "stdio"}, url_fields={"type": "http"}),
    Client("windsurf", "Windsurf", "~/.codeium/windsurf/mcp_config.json", "mcpServers",
           program="windsurf", url_key="serverUrl"),
    Client("zed", "Zed", "Zed/settings.json" if sys.platform == "win32" else
           "~/.config/zed/settings.json", "context_servers", "jsonc", "zed"),
    Client("codex", "Codex", "~/.codex/config.toml", "mcp_servers", "toml", "codex"),
    Client("gemini", "Gemini CLI", "~/.gemini/settings.json", "mcpServers", "jsonc", "gemini",
           url_key="httpUrl"),
)  # fmt: skip

BY_HAND = {"cherry-studio": "Cherry Studio"}
"""Clients whose configuration is no file: the entry is imported in the program."""


def config_home(home: Path) -> Path:
    """Where programs with a window keep their configuration on this system."""
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    if sys.platform == "win32":
        return home / "AppData" / "Roaming"
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    is_own = home == Path.home() and Path(configured).is_absolute()
    return Path(configured) if is_own else home / ".config"
