"""Turns errors into responses of one shape: ``{"detail": …, "status_code": …}``."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from qmd.errors import QmdError, VectorIndexMissingError
from qmd.server.endpoints.definition import RestError
from qmd.tools import texts

_log = logging.getLogger(__name__)

_TELLABLE = frozenset({503, 507})
"""The statuses from 500 on whose text is sent to the client; the text of others is only logged."""

INTERNAL = texts.INTERNAL

Handler = Callable[[Request, Exception], Awaitable[Response]]


def exception_handlers() -> dict[int | type[Exception], Handler]:
    """The application's handlers of HTTP errors, of qmd's errors and of unexpected ones."""
    return {
        HTTPException: _http_error,
        QmdError: _qmd_error,
        RestError: _qmd_error,
        Exception: _unexpected,
    }


def error_response(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    value = {"detail": detail, "status_code": status}
    try:
        body = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # the client sent half of a surrogate pair
        body = json.dumps(value).encode()
    return Response(body, status, media_type="application/json", headers=headers)


def response_to(error: QmdError | RestError) -> Response:
    if isinstance(error, RestError):
        return error_response(error.status, str(error))
    status = error.http_status
    if status >= 500 and status not in _TELLABLE:
        _log.error("a request failed", exc_info=error)
        return error_response(status, INTERNAL)
    if isinstance(error, VectorIndexMissingError):
        return error_response(status, str(error))
    return error_response(status, texts.error_text(error))


def response_to_unexpected(error: Exception) -> Response:
    _log.error("a request failed", exc_info=error)
    return error_response(500, INTERNAL)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail
    if error.status_code == 404:
        detail = f"Not found: {request.url.path}. /openapi.json lists the endpoints."
    elif error.status_code == 405:
        detail = f"Method not allowed: {request.method} {request.url.path}"
    return error_response(error.status_code, detail, error.headers)


async def _qmd_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, (QmdError, RestError))
    return response_to(error)


async def _unexpected(request: Request, error: Exception) -> Response:
    return response_to_unexpected(error)
