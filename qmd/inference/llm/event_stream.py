"""The chunks of a chat completion that a server streams as server-sent events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from qmd.engine_text import engine_text
from qmd.errors import TransientInferenceError
from qmd.inference.llm import trouble
from qmd.inference.llm.endpoint import parsed_json
from qmd.inference.llm.settings import LlmSettings

_MAX_LINE_BYTES = 16 << 20


def chunks(settings: LlmSettings, pieces: Iterable[bytes]) -> Iterator[Mapping[str, Any] | None]:
    """
    The data of each event; None for the one that ends the stream.

    Raises:
        TransientInferenceError: The server reports an error in the middle.
        InferenceError: An event holds no JSON object, or a line has no end.
    """
    for line in _lines(settings, pieces):
        if not line.startswith(b"data:"):
            continue  # a comment, which keeps the connection alive, or an event's name
        data = line[len(b"data:") :].strip()
        if data == b"[DONE]":
            yield None
            return
        if data:
            chunk = json_object(settings, data)
            if chunk.get("error"):
                message = trouble.server_words(chunk, settings.key)
                raise TransientInferenceError(
                    engine_text(
                        "{url} gave up in the middle of the answer: {message}",
                        url=settings.url,
                        message=message,
                    ),
                    hint="Try again.",
                    quoted=message,
                )
            yield chunk


def json_object(settings: LlmSettings, data: bytes) -> Mapping[str, Any]:
    """The JSON object in these bytes. Raises InferenceError."""
    value = parsed_json(settings, data)
    if not isinstance(value, Mapping):
        raise trouble.not_an_answer(settings, "no JSON object", "")
    return value


def _lines(settings: LlmSettings, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as they come; however they are cut into pieces, each byte is looked at once."""
    begun: list[bytes] = []
    size = 0
    for piece in pieces:
        *complete, rest = piece.replace(b"\r", b"\n").split(b"\n")
        for line in complete:
            yield b"".join([*begun, line])
            begun.clear()
            size = 0
        begun.append(rest)
        size += len(rest)
        if size > _MAX_LINE_BYTES:
            raise trouble.not_an_answer(settings, "a line without end", "")
    yield b"".join(begun)
