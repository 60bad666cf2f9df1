"""
Makes the description of the REST API (OpenAPI 3.1) from the models of its requests and replies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic.alias_generators import to_camel
from pydantic.json_schema import models_json_schema

from qmd import __version__
from qmd.errors import ChatNotFoundError, QmdError
from qmd.operations.error_meanings import MEANINGS
from qmd.server.endpoints import endpoints
from qmd.server.endpoints.definition import RestEndpoint
from qmd.server.failures import CODE_HEADER
from qmd.system.plugins import turned_on
from qmd.tools.arguments import Arguments, input_schema, program_schema
from qmd.tools.schemas import reply_model, rewritten, without_titles
from qmd.values.facts import Describe


@dataclass(frozen=True, slots=True)
class Error:
    """Every error has this shape."""

    detail: Annotated[str, Describe("What is wrong, and what to do next")]
    status_code: Annotated[int, Describe("The HTTP status again")]


_REFERENCE = "#/components/schemas/{model}"
_TEXT = {"type": "string"}

_MEANINGS = {
    400: "The request is wrong; `detail` says what is expected.",
    401: "The server wants its token: `Authorization: Bearer TOKEN`.",
    403: "Not from this Host, Origin or user, or not on this server; `detail` names the option.",
    404: "What was named does not exist.",
    408: "The body did not arrive in time.",
    409: "Not as things are now: a name is taken, a file has changed, vectors are missing, or a"
    " page of the web cannot be fetched.",
    413: "The body is too large, or holds too much.",
    415: "The body is not `application/json`.",
    500: "Something unforeseen; the server's log tells more.",
    503: "Not now: busy, too slow, or a model or the vectors are missing.",
    507: "The disk is full.",
}

_EXAMPLE_ERRORS: Mapping[tuple[str, int], str] = {
    ("vsearch", 503): "Vector index not found. Run 'qmd embed' first to create embeddings.",
    ("get", 404): (
        "Document not found: unknown.md\n\n"
        "Did you mean one of these?\n  - known/similar.md\n  - another/path.md"
    ),
    ("embed", 400): "Empty texts list",
    ("embed", 413): "Too many texts (1001 > 1000)",
    ("embed", 503): "Model not loaded",
}


def document_json() -> bytes:
    """The body of the response to /openapi.json."""
    return _document_json(turned_on())


@cache
def _document_json(plugins: tuple[str, ...]) -> bytes:
    """``plugins``: those that are turned on now, which may have endpoints."""
    return json.dumps(document(), ensure_ascii=False, indent=2).encode()


def document() -> dict[str, Any]:
    """The OpenAPI document as JSON values."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints():
        methods = paths.setdefault(endpoint.operation.path, {})
        methods[endpoint.operation.method.lower()] = _operation(endpoint)
    paths |= _plain_paths(paths["/chat"]["post"])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "qmd",
            "version": __version__,
            "description": (
                "Search and read the documents of a knowledge base. "
                'Every error is `{"detail": …, "status_code": …}`, also for unknown routes. '
                f"The header `{CODE_HEADER}` has its code, if the engine names one."
            ),
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in _tags(paths)],
        "paths": paths,
        "components": {
            "schemas": dict(sorted({**_requests(), **_replies()}.items())),
            "responses": {f"Error{status}": _described(status) for status in _MEANINGS},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "qmd_session_18765",
                    "description": (
                        "What a browser gets from the link of `qmd open`; the name has the "
                        "server's port. For pages of this server alone, by their Origin."
                    ),
                },
            },
        },
        "security": [{}, {"token": []}, {"session": []}],
    }


def _tags(paths: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The groups of the operations, in their order."""
    operations = [operation for methods in paths.values() for operation in methods.values()]
    return list(dict.fromkeys(tag for operation in operations for tag in operation["tags"]))


def _operation(endpoint: RestEndpoint) -> dict[str, Any]:
    summary, *more = endpoint.operation.paragraphs
    operation: dict[str, Any] = {
        "operationId": endpoint.operation.name,
        "tags": [endpoint.group],
        "summary": summary.rstrip("."),
        "description": _in_snake_case(more[0] if more else ""),
    }
    parameters = [*_path_parameters(endpoint), *_query_parameters(endpoint)]
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        content: dict[str, Any] = {"schema": {"$ref": _reference(_request_name(endpoint.body))}}
        if endpoint.operation.bodies:
            content["examples"] = {
                f"example{number}": {"value": value}
                for number, value in enumerate(endpoint.operation.bodies, 1)
            }
        operation["requestBody"] = {
            "required": "required" in input_schema(endpoint.body, camel_case=False),
            "content": {"application/json": content},
        }
    operation["responses"] = {
        "200": {
            "description": "Done.",
            "content": {
                "application/json": {"schema": {"$ref": _reference(endpoint.reply_model.__name__)}}
            },
        },
        **{
            str(status): _error(endpoint.operation.name, status, endpoint.operation.errors)
            for status in statuses(endpoint)
        },
    }
    if endpoint.operation.lane == "health":
        operation["security"] = [{}]
        operation["responses"]["503"] = {
            "description": "The index cannot be read.",
            "content": operation["responses"]["200"]["content"],
        }
    return operation


def statuses(endpoint: RestEndpoint) -> list[int]:
    """Every status but 200 that an operation may answer with."""
    if endpoint.operation.lane == "health":
        return [403, 413, 500, 503]
    errors = {400, 401, 403, 500, 503, *(each.http_status for each in endpoint.operation.errors)}
    if endpoint.body is not None:
        errors |= {408, 413, 415}
    if endpoint.operation.writes:
        errors.add(507)
    return sorted(errors)


def _error(name: str, status: int, raises: tuple[type[QmdError], ...] = ()) -> dict[str, Any]:
    """The response for a status, and which errors of the engine lead to it."""
    detail = _EXAMPLE_ERRORS.get((name, status))
    errors = [each for each in raises if each.http_status == status]
    if detail is None and not errors:
        return {"$ref": f"#/components/responses/Error{status}"}
    return _described(status, detail and {"detail": detail, "status_code": status}, errors)


def _described(
    status: int, example: object = None, errors: Sequence[type[QmdError]] = ()
) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": {"$ref": _reference(Error.__name__)}}
    if example is not None:
        content["example"] = example
    lines = [f"- `{each.code}`: {' '.join(MEANINGS[each])}" for each in errors]
    return {
        "description": "\n".join([_MEANINGS[status], *(["", *lines] if lines else ())]),
        "headers": {
            CODE_HEADER: {
                "description": "The code of the error, of those that the engine names.",
                "schema": {"type": "string", "examples": [each.code for each in errors]}
                if errors
                else {"type": "string"},
            }
        },
        "content": {"application/json": content},
    }


def _path_parameters(endpoint: RestEndpoint) -> list[dict[str, Any]]:
    return [_path_parameter(name) for name in re.findall(r"\{(\w+)\}", endpoint.operation.path)]


def _path_parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(endpoint: RestEndpoint) -> list[dict[str, Any]]:
    schema = program_schema(endpoint.query, in_body=False)
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": member.pop("description", ""),
            "schema": member,
        }
        for name, member in schema["properties"].items()
    ]


# --- routes that are not in endpoints() --------------------------------------------------


def _plain(
    name: str,
    summary: str,
    description: str,
    media_type: str = "text/event-stream",
    schema: object = _TEXT,
    **more: object,
) -> dict[str, Any]:
    """``more``: further members, or others in the place of those of every such route."""
    return {
        "operationId": name,
        "tags": ["server"],
        "summary": summary,
        "description": description,
        "responses": {
            "200": {"description": "Done.", "content": {media_type: {"schema": schema}}},
            **{str(status): _error(name, status) for status in (401, 403, 500, 503)},
        },
        **more,
    }


_CHAT_EVENTS = (
    "Server-sent events with a JSON object as data, from the beginning of the turn: started, "
    "asking, text, discard, tool_started, tool_finished, bad_block, question, answered, answer, "
    "error and, at the end, ended. docs/agent.md describes each."
)


def _plain_paths(chat: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The paths that are no endpoints; ``chat`` is the operation that asks the agent."""
    chat_events = _plain(
        "chat_events", "What happens in a turn", _CHAT_EVENTS, parameters=[_path_parameter("chat")]
    )
    chat_events["tags"] = ["chat"]
    not_found = _error("chat_events", 404, (ChatNotFoundError,))
    responses = {**chat_events["responses"], "404": not_found}
    chat_events["responses"] = dict(sorted(responses.items()))
    metrics = "Prometheus's text format 0.0.4: requests, tools, the index, the process."
    return {
        "/events": {"get": _plain("events", "A stream of changes", _EVENTS)},
        "/chat/stream": {"post": _chat_stream(chat)},
        "/chats/{chat}/events": {"get": chat_events},
        "/openapi.json": {
            "get": _plain("description", "This description", "OpenAPI 3.1.", "application/json", {})
        },
        "/metrics": {"get": _plain("metrics", "Figures for Prometheus", metrics, "text/plain")},
        "/open": {"post": _new_link(), "get": _link()},
        "/": {"get": _plain("home", "A page for people", "What runs here.", "text/html")},
    }


_EVENTS = (
    "Server-sent events, each named after its kind: added, updated, moved, removed (of a "
    "document), indexing, embedding (progress), synced, problem. The data is a JSON object. "
    "`missed` means that the client read too slowly and should request everything again. "
    "The stream ends only when one side disconnects."
)


def _chat_stream(chat: Mapping[str, Any]) -> dict[str, Any]:
    stream = {"text/event-stream": {"schema": _TEXT}}
    return {
        **chat,
        "operationId": "chat_stream",
        "summary": "Ask the agent, and see what happens",
        "description": f"{_CHAT_EVENTS} The turn goes on if the client leaves.",
        "responses": {**chat["responses"], "200": {"description": "Begun.", "content": stream}},
    }


def _new_link() -> dict[str, Any]:
    return _plain(
        "new_link",
        "A link for a browser",
        "What `qmd open` asks for: the path and query that let a browser in where a token is "
        "needed. It works once, within a minute. Without a token it is the page itself.",
        "application/json",
        {"type": "object", "properties": {"path": _TEXT}, "required": ["path"]},
    )


def _link() -> dict[str, Any]:
    operation = _plain(
        "open",
        "Let a browser in",
        "The link that `POST /open` made. It leads to the page, or to its view `next`, and sets "
        "the cookie of a session, which lasts until the server ends or nothing was asked for "
        "twelve hours.",
        parameters=[
            {"name": name, "in": "query", "required": False, "schema": _TEXT}
            for name in ("code", "next")
        ],
        security=[{}],
    )
    responses = operation["responses"]
    del responses["200"], responses["401"]
    responses["303"] = {"description": "To the page, with the cookie."}
    return operation


# --- schemas -------------------------------------------------------------------------


def _reference(name: str) -> str:
    return _REFERENCE.format(model=name)


def _request_name(model: type[Arguments]) -> str:
    return model.__name__.replace("Arguments", "Request")


def _requests() -> dict[str, Any]:
    bodies = {endpoint.body for endpoint in endpoints() if endpoint.body is not None}
    return {_request_name(body): _request(body) for body in bodies}


def _request(body: type[Arguments]) -> dict[str, Any]:
    schema = program_schema(body)
    for member in schema["properties"].values():
        if "description" in member:
            member["description"] = _in_snake_case(member["description"])
    return schema


def _replies() -> dict[str, Any]:
    models = {endpoint.reply_model for endpoint in endpoints()} | {reply_model(Error)}
    _, schema = models_json_schema(
        [(model, "serialization") for model in sorted(models, key=lambda model: model.__name__)],
        ref_template=_REFERENCE,
    )
    definitions: dict[str, Any] = schema["$defs"]
    return {
        name: rewritten(definition, without_titles, inline=False)
        for name, definition in definitions.items()
    }


def _in_snake_case(text: str) -> str:
    """Put the names of arguments in a description into snake case."""
    for camel, snake in _spellings().items():
        text = re.sub(rf"\b{camel}\b", snake, text)
    return text


@cache
def _spellings() -> dict[str, str]:
    names = {
        name
        for endpoint in endpoints()
        if endpoint.body is not None
        for name in endpoint.body.model_fields
    }
    return {to_camel(name): name for name in names if to_camel(name) != name}
