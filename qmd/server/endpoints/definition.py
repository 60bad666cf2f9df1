"""Defines what a REST endpoint is: its method, path, arguments, handler and reply."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from qmd.errors import QmdError
from qmd.kb import KnowledgeBase
from qmd.tools.arguments import Arguments
from qmd.tools.schemas import ReplyModel

if TYPE_CHECKING:
    from qmd.agent.chat import Chats

Method = Literal["GET", "POST", "PUT", "DELETE"]
Lane = Literal["read", "bulk", "write", "embed", "chat", "health"]
"""
The queue in which a call waits. Reads and turns of conversations run side by side, writes and
embeddings one by one.
"""


class NoArguments(Arguments):
    pass


Answer = object
"""A value for `to_wire`: a dataclass, or a mapping in its wire form."""


class RestError(Exception):
    """An error of HTTP, with a status that no `QmdError` has."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True, slots=True)
class Call:
    """
    One request, with its checked arguments and the parameters in its path.

    ``session``: what it writes belongs to this session. ``chats``: the conversations of the server.
    """

    kb: KnowledgeBase
    arguments: Any
    path: Mapping[str, str]
    session: str
    chats: Chats


@dataclass(frozen=True, slots=True)
class RestEndpoint:
    """
    One operation.

    Attributes:
        path: The path in OpenAPI's form; a parameter with the name ``path`` may hold slashes.
        reply_model: The model of the answer.
        run: Returns the answer, or is a generator that returns it at the end. At each yield,
            waiting requests of its lane run first.
        raises: The errors of the engine that it can give, besides those of all endpoints.
    """

    method: Method
    path: str
    name: str
    group: str
    summary: str
    description: str
    reply_model: type[ReplyModel]
    run: Callable[[Call], Answer | Generator[None, None, Answer]]
    body: type[Arguments] | None = None
    query: type[Arguments] = NoArguments
    raises: tuple[type[QmdError], ...] = ()
    lane: Lane = "read"
    examples: tuple[Mapping[str, Any], ...] = ()

    @property
    def writes(self) -> bool:
        return self.lane == "write"
