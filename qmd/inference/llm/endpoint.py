"""
Asks an OpenAI-compatible server of models over HTTP, with the key, and puts errors in words.

`ModelEndpoint.ask` is for searching and embedding: it sends JSON and reads JSON, once, all of it
within a time. `LlmClient` uses `ModelEndpoint.open` for conversations, which are read as they
come and tried again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from qmd.errors import TransientInferenceError
from qmd.inference.llm import trouble
from qmd.inference.llm.settings import LlmSettings
from qmd.system import http_client, proxy
from qmd.system.http_client import HttpReply, TimeLimit

#: Longest reply that is read: expansions and scores take kilobytes.
MAX_BYTES = 1 << 20

_MAX_ERROR_BYTES = 64 << 10  # of which a line is shown
_SHOWN_BYTES = 2000


class ModelEndpoint:
    """One server; the model of the settings plays no part."""

    def __init__(self, settings: LlmSettings) -> None:
        self.settings = settings

    @property
    def name(self) -> str:
        """Host and port, for messages."""
        return urlsplit(self.settings.url).netloc

    def ask(
        self, path: str, body: object, *, timeout_s: float, max_bytes: int = MAX_BYTES
    ) -> ModelReply:
        """
        POST a JSON body to ``path`` below the server's address and read the reply.

        Args:
            timeout_s: For all of it.
            max_bytes: A longer reply is refused.

        Raises:
            TransientInferenceError: The server cannot be reached, or has not answered in time.
            InferenceError: The reply is too long, or cannot be unpacked.
        """
        try:
            with self._request(path, body, TimeLimit(timeout_s, timeout_s)) as reply:
                data = reply.read(max_bytes) if reply.status == 200 else error_bytes(reply)
        except http_client.TimeLimitError:
            raise TransientInferenceError(
                f"{self.name} has not answered within {timeout_s:.1f} s."
            ) from None
        except (http_client.HttpError, proxy.ProxyError) as error:
            raise trouble.http_error(self.settings, error, timeout_s) from None
        return ModelReply(self.settings, reply.status, reply.headers, data)

    @contextmanager
    def open(
        self, path: str, body: object, *, wait_s: float, total_s: float | None
    ) -> Iterator[HttpReply]:
        """
        POST a JSON body and give a good reply (2xx), to be read as it comes.

        Args:
            wait_s: The longest wait for the next piece that counts (`HttpReply.progress`).
            total_s: For all of it; None for no limit.

        Raises:
            TransientInferenceError: No connection, no progress in time, the connection broke
                off while the reply was read, or the server's error may pass.
            InferenceError: The server refuses.
        """
        try:
            with self._request(path, body, TimeLimit(wait_s, total_s)) as reply:
                if not 200 <= reply.status < 300:
                    raise trouble.status_error(
                        self.settings,
                        reply.status,
                        error_body(error_bytes(reply)),
                        reply.headers,
                        offered_tools=isinstance(body, Mapping) and "tools" in body,
                    )
                yield reply
        except (http_client.HttpError, proxy.ProxyError) as error:
            raise trouble.http_error(self.settings, error, wait_s) from None

    @contextmanager
    def _request(self, path: str, body: object, limit: TimeLimit) -> Iterator[HttpReply]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.settings.key is not None:
            headers["Authorization"] = f"Bearer {self.settings.key}"
        with http_client.request(
            self.settings.url + path,
            limit=limit,
            body=http_client.json_body(body),
            headers=headers,
            use_proxy=not self.settings.is_loopback,
        ) as reply:
            yield reply


class ModelReply:
    """What a server answered, good or bad."""

    def __init__(
        self, settings: LlmSettings, status: int, headers: Mapping[str, str], data: bytes
    ) -> None:
        self._settings = settings
        self._headers = headers
        self._data = data
        self.status = status

    @property
    def is_absent(self) -> bool:
        """Whether the server does not offer that path."""
        return self.status in {404, 405, 501}

    @property
    def error_message(self) -> str:
        """One line of what the server says about an error."""
        return trouble.server_words(error_body(self._data), self._settings.key)

    def json(self) -> Any:
        """
        Raises:
            InferenceError: The status is not 200, or the reply is no JSON.
        """
        if self.status != 200:
            body = error_body(self._data)
            raise trouble.status_error(self._settings, self.status, body, self._headers)
        return parsed_json(self._settings, self._data)


def parsed_json(settings: LlmSettings, data: bytes) -> Any:
    """A JSON body. Raises InferenceError, with the beginning of what came instead."""
    try:
        # Half a character in a piece of an answer is no reason to lose the rest.
        return json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        text = data[:_SHOWN_BYTES].decode("utf-8", "replace")
        raise trouble.not_an_answer(settings, "no JSON", text) from None


def error_bytes(reply: HttpReply) -> bytes:
    """The beginning of an error's body; a broken server may send one without an end."""
    return reply.beginning(_MAX_ERROR_BYTES)


def error_body(data: bytes) -> object:
    """The body of an error: JSON if it is that, else the beginning of its text."""
    with suppress(ValueError, RecursionError):
        return json.loads(data)
    return data[:_SHOWN_BYTES].decode("utf-8", "replace")
