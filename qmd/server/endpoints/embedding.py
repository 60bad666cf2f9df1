"""The embedding model of the server, for programs that want vectors."""

from __future__ import annotations

from pydantic import BaseModel

from qmd import cancellation
from qmd.errors import InputError, ModelMissingError
from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, Endpoint, RestError

_EMBED_AT_ONCE = 16  # texts; between two lots a call that was ended stops


def _embed(call: Call) -> BaseModel:
    arguments: models.EmbedArguments = call.arguments
    given = arguments.texts
    if not given:
        raise InputError("Empty texts list")
    if len(given) > models.MAX_TEXTS:
        raise RestError(413, f"Too many texts ({len(given)} > {models.MAX_TEXTS})")
    vectors: list[list[float]] = []
    for start in range(0, len(given), _EMBED_AT_ONCE):
        cancellation.check()
        lot = given[start : start + _EMBED_AT_ONCE]
        try:
            vectors += call.kb.embed_texts(lot, kind=arguments.kind).tolist()
        except ModelMissingError as error:
            raise RestError(503, "Model not loaded") from error
    spec = call.kb.embedding_model()
    return models.EmbedReply(embeddings=vectors, model=spec.name, fingerprint=spec.fingerprint)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
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
