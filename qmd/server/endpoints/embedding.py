"""The endpoint that embeds texts with the server's model, for programs that need vectors."""

from __future__ import annotations

import base64
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from qmd.errors import InputError, ModelMissingError
from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, RestEndpoint, RestError

if TYPE_CHECKING:
    from qmd.inference.protocols import TokenStates

MAX_CHARACTERS = 32_000
"""The most characters of one text: some 8,000 tokens, 3 s of a core with the default model."""

MAX_ALL_CHARACTERS = 1_000_000
"""The most characters of all texts of a request, which take a minute or two."""

_TEXTS_AT_ONCE, _CHARACTERS_AT_ONCE = 16, 16_000


def _embed(call: Call) -> Generator[None, None, models.EmbedReply]:
    """Embed the texts in batches. Yield between batches, so that other requests can run."""
    arguments: models.EmbedArguments = call.arguments
    texts = arguments.texts
    _check(texts)
    vectors: list[list[float]] = []
    tokens: list[models.EmbeddedTokens] = []
    for batch in _batches(texts):
        if vectors:
            yield
        try:
            if arguments.tokens:
                embedded, states = call.kb.embed_texts_with_tokens(batch, kind=arguments.kind)
                tokens += map(_packed, states)
            else:
                embedded = call.kb.embed_texts(batch, kind=arguments.kind)
            vectors += embedded.tolist()
        except ModelMissingError as error:
            raise RestError(503, "Model not loaded") from error
    spec = call.kb.embedding_model()
    return models.EmbedReply(
        embeddings=tuple(map(tuple, vectors)),
        model=spec.name,
        fingerprint=spec.fingerprint,
        tokens=tuple(tokens),
    )


def _packed(states: TokenStates) -> models.EmbeddedTokens:
    packed = base64.b64encode(states.states.astype("<f2").tobytes())
    return models.EmbeddedTokens(tuple(states.ids.tolist()), packed.decode())


def _check(texts: Sequence[str]) -> None:
    """
    Check the number and the lengths of the texts.

    Raises:
        InputError: There is no text.
        RestError: There are too many texts, or they are too long (413).
    """
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


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) >= _TEXTS_AT_ONCE or size + len(text) > _CHARACTERS_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    yield batch


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
