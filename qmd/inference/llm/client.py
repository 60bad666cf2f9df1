"""
The one client to OpenAI-compatible servers.

The package `openai` does the transport and is imported at the first request. Trying again is
done here, where the waiting can be shown, bounded and tested; so is reading, because what a
broken or hostile server sends must never be more than an error.
"""

from __future__ import annotations

import json
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from qmd.errors import ConfigError, ModelMissingError, TransientInferenceError
from qmd.inference.llm import trouble
from qmd.inference.llm.answer import Answer, Assembly, Delta, Event, Message, Retry
from qmd.inference.llm.bad_status import BadStatusError, only_good
from qmd.inference.llm.settings import LlmSettings

if TYPE_CHECKING:
    import httpx2
    import openai

ResultT = TypeVar("ResultT")

RETRIES = 3
"""How often a request is sent again; the pauses below then take seven seconds at most."""

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""A server that wants to be left alone for longer is not asked again."""

_CONNECT_S = 10.0
_MAX_BYTES = 64 << 20  # of a plain reply: a thousand vectors of 3,072 numbers
_MAX_LINE_BYTES = 16 << 20  # of a stream

#: The headers that are sent, besides the key.
_HEADERS = {
    *("host", "user-agent", "accept", "accept-encoding", "connection"),
    *("content-type", "content-length", "transfer-encoding"),
}
#: Servers that answer nobody without a key, and the variable for it.
_NEEDS_KEY = {
    "api.deepseek.com": ("DeepSeek", "DEEPSEEK_API_KEY or QMD_LLM_API_KEY"),
    "api.openai.com": ("OpenAI", "QMD_LLM_API_KEY"),
}


class LlmClient:
    """
    Asks one server. Thread-safe; opens a connection when it is first asked.

    What is worth another try (429, 5xx, time-outs, a lost connection) is tried again with
    growing pauses; a server's Retry-After is kept to.

    Args:
        retries: How often at most.
        wait: Called with the seconds to pause.
        clock: Monotonic seconds.
        jitter: A number from 0 to 1 that spreads the pauses of several clients.
    """

    def __init__(
        self,
        settings: LlmSettings,
        *,
        retries: int = RETRIES,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.settings = settings
        self._retries = retries
        self._wait = wait
        self._clock = clock
        self._jitter = jitter
        self._lock = threading.Lock()
        self._client: openai.OpenAI | None = None

    def chat(
        self,
        messages: Sequence[Message],
        *,
        listen: Callable[[Event], None] | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        budget_s: float | None = None,
    ) -> Answer:
        """
        The model's next turn.

        Args:
            listen: Hears the text as it comes, and of each new try; without it the answer is
                fetched in one piece.
            max_tokens: The longest answer; None for the server's own limit.
            budget_s: For everything together, pauses included.

        Raises:
            ModelMissingError: The package `openai` is not installed.
            ConfigError: The server wants a key, and there is none.
            TransientInferenceError: No answer, after all tries.
            InferenceError: The server refuses, or does not speak this language.
        """
        body: dict[str, Any] = {
            "model": self.settings.model,
            "messages": [
                {"role": each.role, "content": _sendable(each.content)} for each in messages
            ],
            "stream": listen is not None,
        }
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        if temperature is not None:
            body["temperature"] = temperature

        return self._trying(lambda end: self._answer(body, listen, end), listen, budget_s)

    def post(self, path: str, body: Mapping[str, Any], *, budget_s: float | None = None) -> Any:
        """
        The JSON that the server answers at ``path`` (such as ``/embeddings``), below its address.

        Raises:
            As `chat`.
        """
        return self._trying(lambda end: self._read_json(path, body, end), None, budget_s)

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def __enter__(self) -> LlmClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- trying again ------------------------------------------------------------------

    def _trying(
        self,
        ask: Callable[[float | None], ResultT],
        listen: Callable[[Event], None] | None,
        budget_s: float | None,
    ) -> ResultT:
        end = None if budget_s is None else self._clock() + budget_s
        attempt = 1
        while True:
            try:
                return ask(end)
            except TransientInferenceError as error:
                pause = self._pause(error, attempt)
                if pause is None or (end is not None and self._clock() + pause >= end):
                    raise
                failed = str(error)
            if listen is not None:
                listen(Retry(failed, pause, attempt))
            self._wait(pause)
            attempt += 1

    def _pause(self, error: TransientInferenceError, attempt: int) -> float | None:
        """Seconds until the next try; None if there is to be none."""
        if attempt > self._retries:
            return None
        asked = error.retry_after_s or 0.0
        if asked > LONGEST_PAUSE_S:
            return None
        grown: float = FIRST_PAUSE_S * 2 ** (attempt - 1) * (1 + self._jitter()) / 2
        return min(max(asked, grown), LONGEST_PAUSE_S)

    # -- asking once -------------------------------------------------------------------

    def _answer(
        self, body: Mapping[str, Any], listen: Callable[[Event], None] | None, end: float | None
    ) -> Answer:
        """One try; whether a server streams or not is not always what it was asked for."""
        found = Assembly(self.settings.key)

        def show(text: str) -> None:
            if text and listen is not None:
                listen(Delta(text))

        done = False
        with self._reply("/chat/completions", body, end) as reply:
            if "event-stream" not in reply.content_type:
                show(self._add_whole(found, _parsed(self.settings, reply, _MAX_BYTES)))
                done = True
            else:
                for chunk in self._events(reply):
                    choice = _first_choice(chunk)
                    if choice is not None:
                        before = found.size
                        text = found.add(choice, "delta")
                        if found.size > before:  # empty pieces may come for ever
                            reply.goes_on()
                        show(text)
                    done = done or chunk is None or found.finish_reason is not None
                    if chunk is None:
                        break
        if not done:
            raise trouble.broke_off(self.settings)
        show(found.end())
        return found.answer()

    def _events(self, reply: _Reply) -> Iterator[Mapping[str, Any] | None]:
        """The data of server-sent events; None for the one that says it is over."""
        for line in _lines(self.settings, reply):
            if not line.startswith(b"data:"):
                continue  # a comment, which keeps the connection alive, or an event's name
            data = line[len(b"data:") :].strip()
            if data == b"[DONE]":
                yield None
                return
            if data:
                chunk = _json(self.settings, data)
                if chunk.get("error"):
                    said = trouble.server_words(chunk, self.settings.key)
                    raise TransientInferenceError(
                        f"{self.settings.url} gave up in the middle of the answer: {said}",
                        hint="Try again.",
                    )
                yield chunk

    def _read_json(self, path: str, body: Mapping[str, Any], end: float | None) -> Any:
        with self._reply(path, body, end) as reply:
            return _parsed(self.settings, reply, _MAX_BYTES)

    def _add_whole(self, found: Assembly, reply: Mapping[str, Any]) -> str:
        choice = _first_choice(reply)
        if choice is None:
            if reply.get("error"):
                raise TransientInferenceError(
                    f"{self.settings.url} answered with an error: "
                    + trouble.server_words(reply, self.settings.key),
                    hint="Try again.",
                )
            raise TransientInferenceError(
                f"{self.settings.url} answered without an answer (no choices).", hint="Try again."
            )
        return found.add(choice, "message")

    def _reply(self, path: str, body: Mapping[str, Any], end: float | None) -> _Reply:
        timeout_s = self.settings.timeout_s
        if end is not None:
            timeout_s = min(timeout_s, end - self._clock())
            if timeout_s <= 0:
                raise trouble.timed_out(self.settings, self.settings.timeout_s)
        return _Reply(self._connection(), self.settings, path, body, timeout_s, end, self._clock)

    def _connection(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                self._client = _connect(self.settings)
            return self._client


def _connect(settings: LlmSettings) -> openai.OpenAI:
    try:
        import httpx2
        import openai
    except ImportError as error:
        raise ModelMissingError(
            f"Asking a language model needs the package 'openai' ({error.name} is missing).",
            hint="pip install 'qmd-python[llm]'",
        ) from None
    if settings.key is None and settings.host in _NEEDS_KEY:
        name, variables = _NEEDS_KEY[settings.host]
        raise ConfigError(
            f"{name} ({settings.url}) wants a key, and there is none.",
            hint=f"Set {variables}, name a file of mode 600 that holds it by QMD_LLM_KEY_FILE, "
            "or ask a model of your own: --llm-url http://localhost:11434/v1 --llm-model NAME",
        )
    try:
        httpx2.URL(settings.url)
    except httpx2.InvalidURL as error:
        raise ConfigError(
            f"Cannot ask {settings.url}: {error}", hint="Check the address (--llm-url)."
        ) from None
    try:
        return openai.OpenAI(
            base_url=settings.url,
            api_key=settings.key or "none",  # without one it takes OPENAI_API_KEY
            max_retries=0,
            http_client=openai.DefaultHttpxClient(
                # It would turn the question into a GET, and carry it to another server.
                follow_redirects=False,
                event_hooks={"request": [_only_ours(settings)], "response": [only_good]},
                **_nearby(settings),
            ),
        )
    except ImportError:  # of what speaks SOCKS
        raise trouble.socks_proxy(settings.url) from None
    except (httpx2.InvalidURL, ValueError):
        raise trouble.unusable_proxy(settings.url) from None


def _nearby(settings: LlmSettings) -> dict[str, Any]:
    """A server of this machine is asked without a proxy; without TLS, at once."""
    options: dict[str, Any] = {}
    if settings.is_loopback:
        options["trust_env"] = False
        if settings.url.startswith("http:"):
            # Reading all certificates takes 0.05 to 0.2 s; this context trusts nobody.
            options["verify"] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return options


def _only_ours(settings: LlmSettings) -> Callable[[httpx2.Request], None]:
    """
    Leaves the headers of a request that this server needs, and the key if it has one.

    The package makes others of the environment, for OpenAI and not for this server:
    ``OPENAI_CUSTOM_HEADERS``, which may hold a key, the organization, what machine this is.
    """

    def clean(request: httpx2.Request) -> None:
        for name in list(request.headers):
            if name.lower() not in _HEADERS:
                del request.headers[name]
        if settings.key is not None:
            request.headers["Authorization"] = f"Bearer {settings.key}"

    return clean


class _Reply:
    """One reply that is being read: ``with`` sends the question and closes the connection."""

    def __init__(
        self,
        client: openai.OpenAI,
        settings: LlmSettings,
        path: str,
        body: Mapping[str, Any],
        timeout_s: float,
        end: float | None,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._settings = settings
        self._path = path
        self._body = body
        self._timeout_s = timeout_s
        self._end = end
        self._clock = clock
        self._last = clock()
        self.content_type = ""

    def __enter__(self) -> _Reply:
        import httpx2
        import openai

        timeout = httpx2.Timeout(self._timeout_s, connect=min(_CONNECT_S, self._timeout_s))
        try:
            self._response = self._client.post(
                self._path,
                cast_to=object,
                body=dict(self._body),
                options={"timeout": timeout},
                stream=True,  # we read the body ourselves, whatever it is
                stream_cls=openai.Stream[object],
            ).response
        except (openai.APITimeoutError, httpx2.TimeoutException):
            raise trouble.timed_out(self._settings, self._timeout_s) from None
        except (openai.APIConnectionError, httpx2.RequestError) as error:
            reason = str(error.__cause__ or error)
            raise trouble.unreachable(self._settings, reason) from None
        except BadStatusError as error:
            raise trouble.status_error(
                self._settings, error.status, error.body, error.headers
            ) from None
        self.content_type = self._response.headers.get("content-type", "").lower()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._response.close()

    def goes_on(self) -> None:
        """A piece of the answer came: the wait for the next one begins."""
        self._last = self._clock()

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes; only `goes_on` says that more than noise came."""
        import httpx2

        try:
            for piece in self._response.iter_bytes():
                yield piece
                now = self._clock()
                late = self._end is not None and now >= self._end
                if late or now - self._last >= self._timeout_s:
                    raise trouble.timed_out(self._settings, self._timeout_s)
        except httpx2.TimeoutException:
            raise trouble.timed_out(self._settings, self._timeout_s) from None
        except httpx2.TransportError:
            raise trouble.broke_off(self._settings) from None
        except httpx2.RequestError as error:  # for one, a body that is not the gzip it says
            raise trouble.not_an_answer(self._settings, str(error), "") from None


def _lines(settings: LlmSettings, reply: _Reply) -> Iterator[bytes]:
    """Lines as they come; however they are cut into pieces, each byte is looked at once."""
    begun: list[bytes] = []
    size = 0
    for piece in reply.pieces():
        *whole, rest = piece.replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield b"".join([*begun, line])
            begun.clear()
            size = 0
        begun.append(rest)
        size += len(rest)
        if size > _MAX_LINE_BYTES:
            raise trouble.not_an_answer(settings, "a line without end", "")
    yield b"".join(begun)


def _parsed(settings: LlmSettings, reply: _Reply, most: int) -> Mapping[str, Any]:
    body = bytearray()
    for piece in reply.pieces():
        body += piece
        if not piece.isspace():  # with blank lines some servers keep a connection alive
            reply.goes_on()
        if len(body) > most:
            raise trouble.not_an_answer(settings, f"more than {most >> 20} MB", "")
    return _json(settings, bytes(body))


def _json(settings: LlmSettings, data: bytes) -> Mapping[str, Any]:
    try:
        # Half a character in a piece of an answer is no reason to lose the rest.
        found = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        text = data[:2000].decode("utf-8", "replace")
        raise trouble.not_an_answer(settings, "no JSON", text) from None
    if not isinstance(found, Mapping):
        raise trouble.not_an_answer(settings, "no JSON object", "")
    return found


def _first_choice(reply: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    choices = reply.get("choices") if reply is not None else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else None


def _sendable(text: str) -> str:
    """Half a surrogate pair cannot be sent."""
    return text.encode("utf-8", "replace").decode()
