"""What an endpoint is: method, path, what it takes, what it does, what it answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from qmd.kb import KnowledgeBase
from qmd.server import rest_models as models
from qmd.tools.arguments import Arguments

Method = Literal["GET", "POST", "PUT", "DELETE"]
Lane = Literal["read", "bulk", "write", "embed", "health"]
"""Which queue a call waits in: reads run side by side, writes and embeddings one by one."""


class RestError(Exception):
    """What only HTTP knows: an error with a status that no error of the engine has."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True, slots=True)
class Call:
    """One request, checked."""

    kb: KnowledgeBase
    arguments: Any
    path: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    One operation.

    ``run`` answers, or is a generator that answers in the end: where it yields, it gives up its
    turn, and other requests of its lane come first.

    ``path`` as OpenAPI writes it; a parameter named ``path`` may hold slashes. ``errors``
    are the statuses it has beside those that all of its kind have.
    """

    method: Method
    path: str
    name: str
    group: str
    summary: str
    description: str
    reply: type[BaseModel]
    run: Callable[[Call], BaseModel | Generator[None, None, BaseModel]]
    body: type[Arguments] | None = None
    query: type[Arguments] = models.NoArguments
    errors: tuple[int, ...] = ()
    lane: Lane = "read"
    examples: tuple[Mapping[str, Any], ...] = ()

    @property
    def writes(self) -> bool:
        return self.lane == "write"
