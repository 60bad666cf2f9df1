"""Turns errors of a model server into messages that say what to do; none holds the key."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from qmd.engine_text import engine_text
from qmd.errors import (
    ConfigError,
    InferenceError,
    NativeCallsRefusedError,
    QmdError,
    TransientInferenceError,
)
from qmd.inference.llm.answer import MASK
from qmd.inference.llm.settings import VARIABLE, LlmSettings
from qmd.system import http_client, installation, proxy

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
) -> InferenceError:
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
        return NativeCallsRefusedError(
            problem,
            hint=f"{settings.model} or its server takes no tools: use --tool-calls blocks, or auto"
            " (QMD_LLM_TOOL_CALLS, llm_tool_calls).",
            quoted=message,
        )
    if status in _TEMPORARY or (status >= 500 and status not in (501, 505)):
        if "insufficient_quota" in message or _code(body) == "insufficient_quota":
            hint = "Your account with this server is used up."
            return InferenceError(problem, hint=hint, quoted=message)
        retry_after_s = _retry_after_s(headers)
        when = f"in {retry_after_s:.0f} s, as it asks" if retry_after_s else "in a while"
        return TransientInferenceError(
            problem,
            hint=engine_text("The server is busy or in trouble: try again {moment}.", moment=when),
            quoted=message,
            retry_after_s=retry_after_s,
        )
    return InferenceError(problem, hint=_hint(settings, status, headers), quoted=message)


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


def not_an_answer(settings: LlmSettings, what: str, text: str) -> InferenceError:
    """The reply is not that of a model server; ``text`` is the beginning of it."""
    beginning = server_words(text, settings.key)
    return InferenceError(
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
    settings: LlmSettings, error: http_client.HttpError | proxy.ProxyError, wait_s: float
) -> QmdError:
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
        case proxy.SocksSupportError():
            return ConfigError(
                f"Cannot ask {settings.url}: the proxy in the environment speaks SOCKS, which needs"
                " the package 'socksio'.",
                hint=f"{installation.current().install('socksio')}, or name a proxy that speaks"
                " HTTP in HTTPS_PROXY and unset ALL_PROXY.",
            )
        case proxy.ProxyError():
            return ConfigError(
                f"Cannot ask {settings.url}: the address of the proxy in the environment is none.",
                hint="Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY. For example:"
                " http://proxy.example:3128",
            )
    where = "Is it running?" if settings.is_loopback else "Are you online?"
    return TransientInferenceError(
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


def timed_out(settings: LlmSettings, timeout_s: float) -> TransientInferenceError:
    return TransientInferenceError(
        engine_text(
            "No answer from {url} within {seconds} s.", url=settings.url, seconds=f"{timeout_s:g}"
        ),
        hint="Try again; --timeout, QMD_LLM_TIMEOUT or llm_timeout gives it longer.",
    )


def _setting(settings: LlmSettings) -> str:
    """The variable for the address of this server; only 'qmd ask' has an option for it, too."""
    variable = settings.key_variable.removesuffix("_API_KEY") + "_URL"
    return f"{variable}, or --llm-url of 'qmd ask'" if variable == "QMD_LLM_URL" else variable


def broke_off(settings: LlmSettings) -> TransientInferenceError:
    return TransientInferenceError(
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
