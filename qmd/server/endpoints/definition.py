"""Defines a REST endpoint: its method, path, arguments, handler and reply."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from starlette.convertors import PathConvertor, register_url_convertor

from qmd.engine_text import engine_text
from qmd.errors import InputError, NotFoundError
from qmd.kb import KnowledgeBase
from qmd.operations import Operation, operations_of, texts
from qmd.operations.definition import Replied
from qmd.operations.replies import Reply, TextBlock
from qmd.tools.arguments import Arguments
from qmd.tools.schemas import ReplyModel, reply_model
from qmd.tools.toolsets import arguments_of, called, reply_to
from qmd.values import Collection, encode_uri

if TYPE_CHECKING:
    from qmd.agent.chat import Chats


class NoArguments(Arguments):
    pass


#: A value for `to_wire`: a dataclass, or a mapping in its wire form.
Answer = object


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


@dataclass(frozen=True)
class RestEndpoint:
    """
    The endpoint of an operation, whose route, errors and lane are its own.

    Its models are made when they are first needed: a server gets requests for few of its endpoints,
    and the models of all take 4 MB.

    Attributes:
        of_server: The operation takes the `Call`.
    """

    operation: Operation
    of_server: bool = False

    @property
    def name(self) -> str:
        """Its method and path, as messages name it."""
        return f"{self.operation.method} {self.operation.path}"

    @property
    def group(self) -> str:
        """What it stands with in the description."""
        return self.operation.group or self.operation.family

    @property
    def body(self) -> type[Arguments] | None:
        """The arguments in the body; None if it takes none."""
        return self._arguments if self.operation.method in ("POST", "PUT") else None

    @property
    def query(self) -> type[Arguments]:
        """The arguments in the address."""
        return self._arguments if self.body is None else NoArguments

    @cached_property
    def _arguments(self) -> type[Arguments]:
        arguments = arguments_of(self.operation, without=tuple(self.operation.in_path))
        return arguments if arguments.model_fields else NoArguments

    @cached_property
    def reply_model(self) -> type[ReplyModel]:
        """The model of the answer; a reply that is no list has its text as ``content``."""
        operation = self.operation
        if operation.sends is not None:
            return reply_model(get_type_hints(operation.sends)["return"])
        if operation.tool is not None and operation.tool.structured is not None:
            return reply_model(operation.tool.structured, content=str, **operation.tool.more())
        if operation.text is None:
            return reply_model(operation.reply)
        return reply_model(operation.reply, content=str)

    def run(self, call: Call) -> Answer | Generator[None, None, Answer]:
        """
        The answer, or a generator that returns it at the end.

        At each yield, waiting requests of its lane run first.
        """
        operation = self.operation
        if (operation.text or operation.tool) and operation.sends is None:
            return in_order(
                self.reply_model, reply_to(operation, call.kb, call.arguments, texts.REST)
            )
        sent, budget = called(operation, call.arguments)
        sent |= {name: call.path[name] for name in operation.in_path}
        value: Any = operation.call(call if self.of_server else call.kb, sent, budget)
        return cast("Answer", operation.sends(Replied(value, sent)) if operation.sends else value)


# --- how operations become endpoints ----------------------------------------------------


def in_order(model: type[ReplyModel], reply: Reply) -> dict[str, Any]:
    """A tool's structured content and, as ``content``, its text, in the order of the model."""
    assert reply.structured is not None
    parts = {**reply.structured, "content": first_text(reply)}
    return {name: parts[name] for name in model.model_fields if name in parts}


def first_text(reply: Reply) -> str:
    """The first text of a reply, which the specification prescribes; REST has fields for others."""
    block = reply.blocks[0]
    assert isinstance(block, TextBlock)
    return block.text


def endpoints_of(family: str) -> tuple[RestEndpoint, ...]:
    """The endpoints of the operations of a family."""
    return tuple(RestEndpoint(each) for each in operations_of(family) if not each.in_shell_alone)


def endpoints_in(module: ModuleType) -> tuple[RestEndpoint, ...]:
    """Those of the operations that only a server has: they take the `Call`."""
    members = vars(module).values()
    operations = (each for each in members if isinstance(each, Operation))
    return tuple(RestEndpoint(each, of_server=True) for each in operations)


# --- paths that a client sends ----------------------------------------------------------
# Those on the disk must be absolute, because a client does not know the server's working directory.


def require_absolute(path: str) -> None:
    """
    Check that a path is absolute; a path that begins with ``~`` counts as absolute.

    Raises:
        InputError: The path is blank or relative.
    """
    if not is_absolute(path):
        raise InputError(
            f"The path must be an absolute path, got {path!r}.",
            hint="Give the directory as the server's machine knows it, such as /home/me/notes.",
        )


def is_absolute(path: str) -> bool:
    return path.startswith("~") or Path(path).is_absolute()


def context_path(path: str, collections: Iterable[Collection]) -> str:
    """
    The path of a context in the form that `KnowledgeBase.add_context` takes.

    Raises:
        InputError: The path is neither absolute nor in a collection.
    """
    if path.startswith("qmd://") or is_absolute(path):
        return path
    file = path.strip("/")  # collection/prefix
    if any(collection.name == file.partition("/")[0] for collection in collections):
        return encode_uri(file)
    raise InputError(
        f"The path must be an absolute path or begin with a collection, got {path!r}.",
        hint="Give an absolute path, qmd://COLLECTION/PREFIX, or / for all documents.",
    )


def permitted_directory(kb: KnowledgeBase, path: str) -> Path:
    """
    The directory that a client names, with all links followed.

    Raises:
        InputError: The path is relative.
        OutsideRootsError: The policy does not open it: it lies below no write root, is the whole
            disk, hidden, or belongs to the system.
    """
    require_absolute(path)
    return kb.policy.new_collection(path)


def add_collection(
    kb: KnowledgeBase,
    directory: Path,
    *,
    name: str | None,
    mask: str,
    ignore: Sequence[str] = (),
) -> Collection:
    """
    Add a `permitted_directory` as a collection; `KnowledgeBase.index` fills it.

    Raises:
        InputError: There is no such directory, or the name or mask is not valid.
        ConflictError: A collection of that name exists.
    """
    try:
        added = kb.add_collection(directory, name=name, mask=mask, ignore=ignore)
    except NotFoundError as error:  # the directory is missing, not the resource of the URL
        raise InputError(error.message, hint=error.hint) from error
    if added.path != str(directory):  # a link replaced the directory after the check
        kb.remove_collection(added.name)
        raise InputError(
            engine_text("{directory} was replaced while it was added.", directory=directory),
            hint="Try again.",
        )
    return added


# --- in an address --------------------------------------------------------------------


class FilePath(PathConvertor):
    """
    The part of an address that is the path of a file, as routes name it: ``{file:file}``.

    It takes any text. Starlette's own ``path`` takes none with a line break, which names may have.
    """

    regex = "(?s:.*)"


FILE_PATH = "file"

register_url_convertor(FILE_PATH, FilePath())
