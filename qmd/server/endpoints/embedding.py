"""The embedding model of the server, for programs that want vectors."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from qmd.errors import InputError, ModelMissingError
from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, RestEndpoint, RestError

MAX_CHARACTERS = 32_000
"""Of one text: some 8,000 tokens, which take the default model 3 seconds of a core."""

MAX_ALL_CHARACTERS = 1_000_000
"""Of all texts of a request: a minute or two."""

_TEXTS_AT_ONCE, _CHARACTERS_AT_ONCE = 16, 16_000


def _embed(call: Call) -> Generator[None, None, models.EmbedReply]:
    """Yields after each lot, so that a request with many texts lets others in between."""
    arguments: models.EmbedArguments = call.arguments
    texts = arguments.texts
    _check(texts)
    vectors: list[list[float]] = []
    for lot in _lots(texts):
        if vectors:
            yield
        try:
            vectors += call.kb.embed_texts(lot, kind=arguments.kind).tolist()
        except ModelMissingError as error:
            raise RestError(503, "Model not loaded") from error
    spec = call.kb.embedding_model()
    return models.EmbedReply(
        embeddings=tuple(map(tuple, vectors)), model=spec.name, fingerprint=spec.fingerprint
    )


def _check(texts: Sequence[str]) -> None:
    """Raises InputError, RestError."""
    if not texts:
        raise InputError("Empty texts list")
    if len(texts) > models.MAX_TEXTS:
        raise RestError(413, f"Too many texts ({len(texts)} > {models.MAX_TEXTS})")
    for number, text in enumerate(texts, 1):
        if len(text) > MAX_CHARACTERS:
            raise RestError(
                413,
                f"Text {number} has {len(text):,} characters, more than {MAX_CHARACTERS:,}. "
                "Split it into parts and embed each.",
            )
    total = sum(map(len, texts))
    if total > MAX_ALL_CHARACTERS:
        raise RestError(
            413,
            f"The texts have {total:,} characters in all, more than {MAX_ALL_CHARACTERS:,}. "
            "Send them in several requests.",
        )


def _lots(texts: Sequence[str]) -> Iterator[list[str]]:
    lot: list[str] = []
    size = 0
    for text in texts:
        if lot and (len(lot) >= _TEXTS_AT_ONCE or size + len(text) > _CHARACTERS_AT_ONCE):
            yield lot
            lot, size = [], 0
        lot.append(text)
        size += len(text)
    yield lot


ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
        method="POST",
        path="/embed",
        name="embed",
        group="models",
        summary="Texts to vectors",
        description="The vectors of the server's embedding model; nothing is stored.",
        body=models.EmbedArguments,
        reply=models.EmbedReply,
        run=_embed,
        lane="embed",
        examples=({"texts": ["First text", "Second text"]},),
    ),
)
