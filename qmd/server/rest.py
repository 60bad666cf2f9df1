"""
Serves the REST API: a route for each path of `qmd.server.endpoints`, the description, and events.

Each request is checked (method, body, arguments) and waits for a worker thread; the response is
JSON. Requests that write run one after the other, and requests that read do not wait for them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, get_args

import anyio
from pydantic_core import to_json
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.agent.chat import AgentTurn, Chats
from qmd.agent.turn import TURN_S
from qmd.errors import InputError, QmdError, WritesForbiddenError
from qmd.kb import KnowledgeBase
from qmd.kb.scoped import require_writing_token
from qmd.operations.bounds import excesses
from qmd.operations.definition import Lane
from qmd.server import openapi, streams
from qmd.server.activity import Activity, caller_of_agent, session_of
from qmd.server.endpoints import ENDPOINTS, definition, endpoints
from qmd.server.endpoints.health import Health
from qmd.server.failures import Failure, failure_of
from qmd.server.workers import BULKY_AT_ONCE, CallQueue, TooBusyError, while_connected
from qmd.system.session import in_session, new_session
from qmd.tools.arguments import Arguments, input_schema, parse_arguments
from qmd.values.text import ESCAPED_HALF, replace_halves
from qmd.values.wire import to_wire

#: What POST /chat/stream takes, too. Streams are no endpoints: they have no single reply.
_CHAT = next(each for each in ENDPOINTS if each.name == "POST /chat")

__all__ = ["Limits", "rest_routes"]


@dataclass(frozen=True, slots=True)
class Limits:
    """
    The limits of requests: seconds, and the number that run at once.

    At most ``max_waiting`` requests wait in each queue; further ones are refused (503). A request
    that takes too long is ended, and so is one whose client has left.
    """

    read_s: float = 30.0
    write_s: float = 600.0
    web_s: float = 120.0
    embed_s: float = 300.0
    health_s: float = 5.0
    chat_s: float = TURN_S + 60.0
    readers: int = 8
    bulk_readers: int = BULKY_AT_ONCE
    fetchers: int = 2
    chat_waiters: int = 16
    max_waiting: int = 1000
    event_streams: int = 64
    heartbeat_s: float = 15.0

    def seconds(self, lane: Lane) -> float:
        """The most seconds that a request in a lane may take."""
        seconds: float = getattr(self, f"{'read' if lane == 'bulk' else lane}_s")
        return seconds


def rest_routes(
    kb: KnowledgeBase,
    *,
    read_only: bool = False,
    limits: Limits = Limits(),
    activity: Activity | None = None,
    chats: Chats | None = None,
) -> list[Route]:
    """
    The routes of the API. The application must have the `exception_handlers` of `qmd.server.app`,
    and redirect no slashes.

    Args:
        read_only: Refuse requests that change the index (403).
        activity: Remembers the calls, but for those of monitors; None for no one to read.
        chats: The conversations with the agent; None for new ones.
    """
    chats = chats or Chats(kb, may_write=not read_only)
    face = _Face(kb, read_only, limits, activity or Activity(), chats)
    return [
        Route(
            "/openapi.json",
            Page(("GET", "HEAD"), face.description),
            middleware=[Middleware(streams.Compressed)],
        ),
        Route("/events", Page(("GET", "HEAD"), face.events)),
        Route("/chat/stream", Page(("POST",), face.chat_stream)),
        Route("/chats/{chat}/events", Page(("GET", "HEAD"), face.chat_events)),
        *(
            Route(path.replace("{path}", f"{{path:{definition.FILE_PATH}}}"), _resource(face, path))
            for path in sorted({each.operation.path for each in endpoints()})  # "a" before "{"
        ),
    ]


class Page:
    """A route of some methods. It is a class, so that Starlette does not check the method."""

    def __init__(
        self, methods: tuple[str, ...], answer: Callable[[Request], Awaitable[Response]]
    ) -> None:
        self._methods = methods
        self._answer = answer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        if request.method == "OPTIONS":
            response = _options(self._methods)
        elif request.method not in self._methods:
            response = _not_allowed(request, self._methods)
        else:
            response = await _answered(self._answer(request))
        await response(scope, receive, send)


def _resource(face: _Face, path: str) -> Page:
    """The route of one path, which finds the endpoint for the method of a request."""
    by_method = {each.operation.method: each for each in endpoints() if each.operation.path == path}
    parameters: dict[str, str] = {}
    parent, _, last = path.rpartition("/")
    if last == "add":  # a collection may have the name "add", and its URL is this path
        for endpoint in endpoints():
            operation = endpoint.operation
            if operation.path.startswith(f"{parent}/{{"):
                by_method.setdefault(operation.method, endpoint)
                parameters = {operation.path.rpartition("/")[2].strip("{}"): last}

    def answer(request: Request) -> Awaitable[Response]:
        endpoint = by_method["GET" if request.method == "HEAD" else request.method]
        return face.answer(endpoint, request, request.path_params or parameters)

    methods = (
        name
        for method in by_method
        for name in ((method, "HEAD") if method == "GET" else (method,))
    )
    return Page(tuple(methods), answer)


def _options(methods: Sequence[str]) -> Response:
    return Response(status_code=204, headers={"allow": ", ".join([*methods, "OPTIONS"])})


def _not_allowed(request: Request, methods: Sequence[str]) -> Response:
    allowed = ", ".join([*methods, "OPTIONS"])
    detail = f"Method not allowed: {request.method} {request.url.path} (allowed: {allowed})"
    return Failure(405, detail, {"allow": allowed}).response()


async def _answered(answer: Awaitable[Response]) -> Response:
    try:
        return await answer
    except ClientDisconnect:
        return Response(status_code=400)  # the client has left and does not read it
    except Exception as error:  # noqa: BLE001 - logged and answered
        return failure_of(error).response()


class _Face:
    """Answers the requests of all routes, on the worker threads of one knowledge base."""

    def __init__(
        self,
        kb: KnowledgeBase,
        read_only: bool,
        limits: Limits,
        activity: Activity,
        chats: Chats,
    ) -> None:
        self._kb = kb
        self._activity = activity
        self._chats = chats
        self._read_only = read_only
        self._limits = limits
        self._session = new_session("rest")  # of the requests that name none
        widths: dict[Lane, int] = {
            "read": limits.readers,
            "bulk": limits.bulk_readers,
            "web": limits.fetchers,
            "chat": limits.chat_waiters,
        }
        self._lanes: dict[Lane, CallQueue] = {
            lane: CallQueue(widths.get(lane, 1), max_waiting=limits.max_waiting)
            for lane in get_args(Lane)
        }
        self._streams = 0

    async def answer(
        self, endpoint: definition.RestEndpoint, request: Request, parameters: Mapping[str, str]
    ) -> Response:
        session = session_of(request.headers, otherwise=self._session)
        if endpoint.operation.lane == "health":
            return await self._health(endpoint, parameters, session)
        client = caller_of_agent("rest", request.headers.get("user-agent", ""), session)
        with self._activity.recorded(client, endpoint.operation.name) as outcome:
            reply = await self._reply(endpoint, request, parameters, session)
            if outcome.kind is not None and isinstance(reply, Mapping):
                outcome.hits = len(reply.get("results", ()))
            return _json(reply)

    async def _reply(
        self,
        endpoint: definition.RestEndpoint,
        request: Request,
        parameters: Mapping[str, str],
        session: str,
    ) -> definition.Answer:
        if endpoint.operation.writes and self._read_only:
            require_writing_token(self._kb)
            raise WritesForbiddenError(
                "This server is read-only. "
                "Start it without --read-only to allow what changes the index."
            )
        too_long = excesses(parameters)
        if too_long:
            raise InputError(f"The address is too long: {too_long[0]}.")
        arguments: Arguments = _query(endpoint, request)
        if endpoint.body is not None:
            arguments = await self._body(endpoint, request)
        call = definition.Call(self._kb, arguments, parameters, session, self._chats)
        try:
            return await while_connected(request, lambda: self._in_turns(endpoint, call))
        except TimeoutError:
            seconds = self._limits.seconds(endpoint.operation.lane)
            raise definition.RestError(503, _too_long(endpoint, seconds)) from None

    async def _health(
        self, endpoint: definition.RestEndpoint, parameters: Mapping[str, str], session: str
    ) -> Response:
        arguments = definition.NoArguments()
        call = definition.Call(self._kb, arguments, parameters, session, self._chats)
        try:
            return _json(await self._in_turns(endpoint, call))
        except (QmdError, TimeoutError, TooBusyError):
            try:
                loaded = self._kb.model_loaded()
            except QmdError:  # the database, which holds the model's name, cannot be read
                loaded = False
            return _json(Health(status="unhealthy", model_loaded=loaded), 503)

    async def _in_turns(
        self, endpoint: definition.RestEndpoint, call: definition.Call
    ) -> definition.Answer:
        """
        Run an endpoint. If it is a generator, other calls may run between its steps.

        Raises:
            TooBusyError: Too many calls are waiting.
            TimeoutError: The endpoint took longer than its lane allows.
        """

        def step() -> definition.Answer | Generator[None, None, definition.Answer]:
            with in_session(call.session, face="rest"):
                if not isinstance(work, Generator):
                    return endpoint.run(call)
                try:
                    next(work)
                except StopIteration as end:
                    answer: definition.Answer = end.value
                    return answer
                return work

        work: definition.Answer | Generator[None, None, definition.Answer] | None = None
        workers = self._lanes[endpoint.operation.lane]
        seconds = self._limits.seconds(endpoint.operation.lane)
        with anyio.fail_after(seconds):
            while work is None or isinstance(work, Generator):
                work = await workers.run(step, timeout_s=seconds)
        return work

    async def _body(self, endpoint: definition.RestEndpoint, request: Request) -> Arguments:
        data = await request.body()  # `RequestGuard` has limited its size and time
        if data:
            kind = request.headers.get("content-type", "")
            if kind.partition(";")[0].strip().lower() != "application/json":
                sent = f"this one says {kind[:100]}" if kind else "it has no Content-Type"
                raise definition.RestError(415, f"The body must be application/json; {sent}.")
            if request.headers.get("content-encoding", "identity").lower() != "identity":
                raise definition.RestError(415, "The body must not be compressed.")
            value = _parsed(data, replace_surrogates=endpoint.group == "search")
        else:
            value = {}
        model = endpoint.body or definition.NoArguments
        return parse_arguments(endpoint.name, model, value, camel_case=False)

    # -- routes without an endpoint ----------------------------------------------------

    async def description(self, request: Request) -> Response:
        return Response(openapi.document_json(), media_type="application/json")

    async def events(self, request: Request) -> Response:
        if request.method == "HEAD":
            return Response(media_type=streams.MEDIA_TYPE)
        self._require_stream()
        return self._streamed(
            streams.index_stream(self._kb.events, heartbeat_s=self._limits.heartbeat_s)
        )

    async def chat_stream(self, request: Request) -> Response:
        """Begin a turn, and send its events. The turn goes on if the client leaves."""
        session = session_of(request.headers, otherwise=self._session)
        client = caller_of_agent("rest", request.headers.get("user-agent", ""), session)
        with self._activity.recorded(client, "chat_stream"):
            self._require_stream()
            arguments: Any = await self._body(_CHAT, request)

            def begin() -> AgentTurn:
                with in_session(session, face="rest"):
                    return self._chats.start(
                        arguments.question, arguments.chat, mode=arguments.mode
                    )

            turn = await self._lanes["read"].run(begin, timeout_s=self._limits.read_s)
        return self._streamed(streams.turn_stream(turn, heartbeat_s=self._limits.heartbeat_s))

    async def chat_events(self, request: Request) -> Response:
        """Send the events of a turn that runs, from the first one on."""
        if request.method == "HEAD":
            return Response(media_type=streams.MEDIA_TYPE)
        self._require_stream()
        turn: AgentTurn = self._chats.turn(request.path_params["chat"])
        return self._streamed(streams.turn_stream(turn, heartbeat_s=self._limits.heartbeat_s))

    def _require_stream(self) -> None:
        if self._streams >= self._limits.event_streams:
            raise definition.RestError(503, f"Too many event streams are open ({self._streams}).")

    def _streamed(self, events: AsyncGenerator[bytes, None]) -> Response:
        self._streams += 1

        def count_closed_stream() -> None:
            self._streams -= 1

        return streams.EventResponse(events, count_closed_stream)


# --- requests and responses ----------------------------------------------------------


def _query(endpoint: definition.RestEndpoint, request: Request) -> Arguments:
    """
    The arguments in the query of the URL.

    Raises:
        InputError: They are invalid, or one is given twice.
    """
    if endpoint.query is definition.NoArguments and not request.query_params:
        return definition.NoArguments()
    properties = input_schema(endpoint.query, camel_case=False)["properties"]
    values: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        kind = properties.get(name, {}).get("type")
        if kind == "array":
            values.setdefault(name, []).append(text)
            continue
        if name in values:
            raise InputError(f"The parameter {name} is given more than once.")
        is_integer = kind == "integer" and text.lstrip("-").isdecimal() and len(text) < 20
        if kind == "boolean" and text in ("true", "false"):
            values[name] = text == "true"
        else:
            values[name] = int(text) if is_integer else text
    return parse_arguments(endpoint.name, endpoint.query, values, camel_case=False)


def _parsed(data: bytes, *, replace_surrogates: bool) -> dict[str, Any]:
    """
    The JSON object in a body.

    Args:
        replace_surrogates: Replace half of a surrogate pair by U+FFFD, for queries; else refuse
            it, for texts that are stored.

    Raises:
        InputError: The body is not a JSON object.
    """
    try:
        value = json.loads(data.decode(), parse_constant=_refuse_constant, parse_int=_integer)
        if ESCAPED_HALF.search(data):
            text = json.dumps(value, ensure_ascii=False)
            if replace_surrogates:
                text = replace_halves(text)
            value = json.loads(text.encode())
    except RecursionError:
        raise InputError("The body is not usable JSON: nested too deeply") from None
    except UnicodeDecodeError:
        raise InputError("The body is not JSON: it is not UTF-8") from None
    except UnicodeEncodeError:
        raise InputError("The body holds half of a surrogate pair") from None
    except ValueError as error:
        raise InputError(f"The body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError('The body must be a JSON object, such as {"query": "boats"}')
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


#: Python converts no more of them by default, and its own error names a function of Python.
_MAX_DIGITS = 4300


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise InputError(
            f"The body is not usable JSON: an integer has more than {_MAX_DIGITS:,} digits"
        )
    return int(digits)


def _json(answer: definition.Answer, status: int = 200) -> Response:
    return Response(to_json(to_wire(answer)), status, media_type="application/json")


def _too_long(endpoint: definition.RestEndpoint, seconds: float) -> str:
    text = f"{endpoint.name} took longer than {seconds:g} s."
    if endpoint.operation.writes:
        return f"{text} It was stopped; what was finished stays. Ask again to go on."
    return f"{text} Try again, or ask for less."
