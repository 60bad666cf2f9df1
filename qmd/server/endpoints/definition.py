"""What an endpoint is: method, path, what it takes, what it does, what it answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from qmd.kb import KnowledgeBase
from qmd.server import rest_models as models
from qmd.tools.arguments import Arguments
from qmd.tools.schemas import ReplyModel, reply_model

Method = Literal["GET", "POST", "PUT", "DELETE"]
Lane = Literal["read", "bulk", "write", "embed", "health"]
"""Which queue a call waits in: reads run side by side, writes and embeddings one by one."""


Answer = object
"""What `to_wire` takes: a dataclass, or a mapping that is as it is to be sent."""


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
class RestEndpoint:
    """
    One operation.

    ``run`` returns the answer, or is a generator that returns it in the end: where it yields, it
    gives up its turn, and other requests of its lane come first.

    ``reply`` describes the answer: its dataclass, or a model that `reply_model` made where the
    answer has fields beside those of a value. ``path`` is as OpenAPI writes it; a parameter named
    ``path`` may hold slashes. ``errors`` are the statuses beside those that all of its kind have.
    """

    method: Method
    path: str
    name: str
    group: str
    summary: str
    description: str
    reply: type
    run: Callable[[Call], Answer | Generator[None, None, Answer]]
    body: type[Arguments] | None = None
    query: type[Arguments] = models.NoArguments
    errors: tuple[int, ...] = ()
    lane: Lane = "read"
    examples: tuple[Mapping[str, Any], ...] = ()

    @property
    def reply_model(self) -> type[ReplyModel]:
        return self.reply if issubclass(self.reply, ReplyModel) else reply_model(self.reply)

    @property
    def writes(self) -> bool:
        return self.lane == "write"
