"""
Asks an OpenAI-compatible server of models over HTTP, with the key, and puts errors in words.

`ModelEndpoint.ask` is for searching and embedding: it sends JSON and reads JSON, once, all of it
within a time. `LlmClient` uses `ModelEndpoint.open` for conversations, which are read as they
come and tried again. A message about an error says what to do next, and never holds the key.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from qmd import errors
from qmd.engine_text import engine_text
from qmd.inference.llm.answer import MASK
from qmd.inference.llm.settings import VARIABLE, LlmSettings
from qmd.system import http_client, installation
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
            raise errors.TransientInferenceError(
                f"{self.name} has not answered within {timeout_s:.1f} s."
            ) from None
        except (http_client.HttpError, http_client.ProxyError) as error:
            raise http_error(self.settings, error, timeout_s) from None
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
                    raise status_error(
                        self.settings,
                        reply.status,
                        error_body(error_bytes(reply)),
                        reply.headers,
                        offered_tools=isinstance(body, Mapping) and "tools" in body,
                    )
                yield reply
        except (http_client.HttpError, http_client.ProxyError) as error:
            raise http_error(self.settings, error, wait_s) from None

    @contextmanager
    def _request(self, path: str, body: object, limit: TimeLimit) -> Iterator[HttpReply]:
        self.settings.require_key()  # without one it would read the notes, and answer nothing
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
        return server_words(error_body(self._data), self._settings.key)

    def json(self) -> Any:
        """
        Raises:
            InferenceError: The status is not 200, or the reply is no JSON.
        """
        if self.status != 200:
            body = error_body(self._data)
            raise status_error(self._settings, self.status, body, self._headers)
        return parsed_json(self._settings, self._data)


def parsed_json(settings: LlmSettings, data: bytes) -> Any:
    """A JSON body. Raises InferenceError, with the beginning of what came instead."""
    try:
        # Half a character in a piece of an answer is no reason to lose the rest.
        return json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        text = data[:_SHOWN_BYTES].decode("utf-8", "replace")
        raise not_an_answer(settings, "no JSON", text) from None


def error_bytes(reply: HttpReply) -> bytes:
    """The beginning of an error's body; a broken server may send one without an end."""
    return reply.beginning(_MAX_ERROR_BYTES)


def error_body(data: bytes) -> object:
    """The body of an error: JSON if it is that, else the beginning of its text."""
    with suppress(ValueError, RecursionError):
        return json.loads(data)
    return data[:_SHOWN_BYTES].decode("utf-8", "replace")


#: Besides 5xx: statuses that may be others at the next try.
_TEMPORARY = {408, 409, 425, 429}
_SHOWN_CHARS = 300


#: With these servers refuse tools; llama.cpp does so with 500, OpenRouter with 404.
_REFUSES_TOOLS = {400, 404, 422, 500, 501}
_WORDS_ABOUT_TOOLS = re.compile(r"\btools?\b|function.?call", re.IGNORECASE)


def status_error(
    settings: LlmSettings,
    status: int,
    body: object,
    headers: Mapping[str, str],
    *,
    offered_tools: bool = False,
) -> errors.InferenceError:
    """
    The error for a reply with a bad HTTP status.

    Args:
        offered_tools: Whether the request had ``tools``.
    """
    message = server_words(body, settings.key)
    problem = engine_text(
        "{url} answered {status}{message}",
        url=settings.url,
        status=status,
        message=f": {message}" if message else ".",
    )
    if offered_tools and status in _REFUSES_TOOLS and _WORDS_ABOUT_TOOLS.search(str(body)):
        return errors.NativeCallsRefusedError(
            problem,
            hint=f"{settings.model} or its server takes no tools: use --tool-calls blocks, or auto"
            " (QMD_LLM_TOOL_CALLS, llm_tool_calls).",
            quoted=message,
        )
    if status in _TEMPORARY or (status >= 500 and status not in (501, 505)):
        if "insufficient_quota" in message or _code(body) == "insufficient_quota":
            hint = "Your account with this server is used up."
            return errors.InferenceError(problem, hint=hint, quoted=message)
        retry_after_s = _retry_after_s(headers)
        when = f"in {retry_after_s:.0f} s, as it asks" if retry_after_s else "in a while"
        return errors.TransientInferenceError(
            problem,
            hint=engine_text("The server is busy or in trouble: try again {moment}.", moment=when),
            quoted=message,
            retry_after_s=retry_after_s,
        )
    return errors.InferenceError(problem, hint=_hint(settings, status, headers), quoted=message)


def server_words(body: object, key: str | None) -> str:
    """The message in the body of an error: one short line, without the key."""
    text = ""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, Mapping) else inner
        text = message if isinstance(message, str) else ""
    elif isinstance(body, str):
        text = "an HTML page" if body.lstrip()[:1] == "<" else body
    return without_key(shortened(text), key) if key is None else shortened(without_key(text, key))


def without_key(text: str, key: str | None) -> str:
    """The text with stars in the place of the key."""
    return text.replace(key, MASK) if key else text


def shortened(text: str) -> str:
    """One line of printable characters, cut after `_SHOWN_CHARS`."""
    shown = (c if c.isprintable() else " " for c in text[: 4 * _SHOWN_CHARS])
    line = " ".join("".join(shown).split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"


def not_an_answer(settings: LlmSettings, what: str, text: str) -> errors.InferenceError:
    """The reply is not that of a model server; ``text`` is the beginning of it."""
    beginning = server_words(text, settings.key)
    return errors.InferenceError(
        engine_text(
            "{url} does not answer as a language model does: {what}{beginning}",
            url=settings.url,
            what=what,
            beginning=f" ({beginning})." if beginning else ".",
        ),
        hint="Check the address; for most servers it ends in /v1.",
        quoted=beginning,
    )


def http_error(
    settings: LlmSettings, error: http_client.HttpError | http_client.ProxyError, wait_s: float
) -> errors.QmdError:
    """
    An error of the HTTP client as one that says what to do.

    What it says of a proxy leaves out the address, for that may hold a password.
    """
    match error:
        case http_client.TimeLimitError():
            return timed_out(settings, wait_s)
        case http_client.BrokenOffError():
            return broke_off(settings)
        case http_client.UnreadableReplyError():
            return not_an_answer(settings, str(error), "")
        case http_client.SocksSupportError():
            return errors.ConfigError(
                f"Cannot ask {settings.url}: the proxy in the environment speaks SOCKS, which needs"
                " the package 'socksio'.",
                hint=f"{installation.current().install('socksio')}, or name a proxy that speaks"
                " HTTP in HTTPS_PROXY and unset ALL_PROXY.",
            )
        case http_client.ProxyError():
            return errors.ConfigError(
                f"Cannot ask {settings.url}: the address of the proxy in the environment is none.",
                hint="Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY. For example:"
                " http://proxy.example:3128",
            )
    where = "Is it running?" if settings.is_loopback else "Are you online?"
    return errors.TransientInferenceError(
        engine_text(
            "Cannot reach {url}: {reason}",
            url=settings.url,
            reason=server_words(str(error), settings.key) or "no connection",
        ),
        hint=engine_text(
            "{where} Check the address ({setting}), then try again.",
            where=where,
            setting=_setting(settings),
        ),
    )


def timed_out(settings: LlmSettings, timeout_s: float) -> errors.TransientInferenceError:
    return errors.TransientInferenceError(
        engine_text(
            "No answer from {url} within {seconds} s.", url=settings.url, seconds=f"{timeout_s:g}"
        ),
        hint="Try again; --timeout, QMD_LLM_TIMEOUT or llm_timeout gives it longer.",
    )


def _setting(settings: LlmSettings) -> str:
    """The variable for the address of this server; only 'qmd ask' has an option for it, too."""
    variable = settings.key_variable.removesuffix("_API_KEY") + "_URL"
    return f"{variable}, or --llm-url of 'qmd ask'" if variable == "QMD_LLM_URL" else variable


def broke_off(settings: LlmSettings) -> errors.TransientInferenceError:
    return errors.TransientInferenceError(
        engine_text(
            "The connection to {url} broke off in the middle of the answer.", url=settings.url
        ),
        hint="Try again.",
    )


def _hint(settings: LlmSettings, status: int, headers: Mapping[str, str]) -> str:
    if status in (401, 403):
        variable = settings.key_variable
        if settings.key is not None:
            return engine_text(
                "Is the key the right one for this server? See {variable}.", variable=variable
            )
        if variable != VARIABLE:
            return engine_text("It wants a key: set {variable}.", variable=variable)
        return engine_text(
            "It wants a key: set {variable}, or name a file by QMD_LLM_KEY_FILE. "
            "(DEEPSEEK_API_KEY is sent to https://api.deepseek.com alone.)",
            variable=variable,
        )
    if status == 402:
        return "Your account with this server is used up."
    if status in (404, 405):
        return engine_text(
            "Is the address right (for most servers it ends in /v1), and does the server "
            "have the model {model}?",
            model=settings.model,
        )
    if 300 <= status < 400:
        target = shortened(without_key(headers.get("location", ""), settings.key))
        moved = f"It has moved: use {target}" if target else ""
        return moved or f"Check the address ({_setting(settings)})."
    if status == 413:
        return "The conversation is too long for this server: ask for less at once."
    return engine_text(
        "Check the model's name ({model}); the conversation may be too long for it.",
        model=settings.model,
    )


def _code(body: object) -> object:
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        return inner.get("code") if isinstance(inner, Mapping) else None
    return None


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds, from a number or a date; None if the header has neither."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
