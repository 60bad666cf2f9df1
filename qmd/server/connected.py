"""Ends the work for a request whose client has closed the connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")


async def while_connected(request: Request, work: Callable[[], Awaitable[T]]) -> T:
    """
    Run ``work`` and return its result. It is cancelled if the client closes the connection.

    Raises:
        ClientDisconnect: The client has closed the connection.
    """
    results: list[T] = []
    problems: list[Exception] = []

    async def run() -> None:
        try:
            results.append(await work())
        except Exception as error:  # noqa: BLE001 - raised below, as a group would wrap it
            problems.append(error)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        while (await request.receive())["type"] != "http.disconnect":
            pass
        tasks.cancel_scope.cancel()
    if problems:
        raise problems[0]
    if not results:
        raise ClientDisconnect
    return results[0]
