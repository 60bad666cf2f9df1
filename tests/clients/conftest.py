"""A real server with a few notes, and what it lists, for the clients of other packages."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import Tool

QMD = str(Path(os.environ.get("QMD_COMMAND", "qmd")).absolute())

#: Note → text. Each text holds a word that its name and title lack.
NOTES = {
    "boats.md": "# Boats\n\nThe ketch has two masts, and sails well in autumn.\n",
    "trees.md": "# Trees\n\nThe larch drops its needles in autumn.\n",
}

ResultT = TypeVar("ResultT")


class Server:
    """The command of a server, and calls of it through the SDK."""

    def __init__(self, database: Path, *options: str) -> None:
        self.parameters = StdioServerParameters(
            command=QMD, args=["--db", str(database), "mcp", "--no-watch", *options]
        )

    def run(self, use: Callable[[ClientSession], Awaitable[ResultT]]) -> ResultT:
        """What ``use`` returns of a session with a new process of the server."""

        async def main() -> ResultT:
            async with (
                stdio_client(self.parameters) as (read, write),
                ClientSession(read, write) as session,
            ):
                await session.initialize()
                return await use(session)

        return asyncio.run(main())

    def tools(self) -> list[Tool]:
        async def listed(session: ClientSession) -> list[Tool]:
            return (await session.list_tools()).tools

        return self.run(listed)


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("clients")
    notes = directory / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / name).write_text(text, encoding="utf-8")
    path = directory / "index.sqlite"
    command = [QMD, "--db", str(path), "collection", "add", str(notes)]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture(scope="session")
def server(database: Path) -> Server:
    """A server with the tools that it offers without any option."""
    return Server(database)


@pytest.fixture(scope="session", params=["all", "default"])
def tools(request: pytest.FixtureRequest, database: Path) -> list[Tool]:
    """All tools of all toolsets; or those of `server`, which are listed briefly."""
    options = ["--toolset", "all"] if request.param == "all" else []
    return Server(database, *options).tools()
