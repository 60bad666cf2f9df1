"""The endpoint that embeds texts with the server's model, for programs that need vectors."""

from __future__ import annotations

import base64
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from qmd.errors import InputError, ModelMissingError
from qmd.operations.definition import operation
from qmd.server.endpoints.definition import Call, RestError
from qmd.values.facts import Describe, InSchema, OmitDefault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.inference.protocols import TokenStates

#: The most texts of one request.
MAX_TEXTS = 1000

#: The most characters of one text: some 8,000 tokens, 3 s of a core with the default model.
MAX_CHARACTERS = 32_000

#: The most characters of all texts of a request, which take a minute or two.
MAX_ALL_CHARACTERS = 1_000_000

_TEXTS_AT_ONCE, _CHARACTERS_AT_ONCE = 16, 16_000


@dataclass(frozen=True, slots=True)
class EmbeddedTokens:
    """The token states of a text."""

    ids: Annotated[
        tuple[int, ...],
        Describe("The distinct tokens of the text, by their numbers"),
    ]
    states: Annotated[str, Describe("The mean state of each token: float16, little-endian, base64")]
    english: Annotated[
        str, OmitDefault(), Describe("The vector of an English question by the model of English")
    ] = ""


@dataclass(frozen=True, slots=True)
class EmbedReply:
    embeddings: Annotated[
        tuple[tuple[float, ...], ...], Describe("A unit vector for each text, in order")
    ]
    model: Annotated[str, Describe("The embedding model's name")]
    fingerprint: Annotated[str, Describe("Vectors of different fingerprints do not mix")]
    tokens: Annotated[
        tuple[EmbeddedTokens, ...],
        OmitDefault(),
        Describe("Token states of each text, if asked for and if the model gives them"),
    ] = ()


@operation(
    toolset=None,
    command=None,
    group="models",
    never_cut=True,
    lane="embed",
    bodies=({"texts": ["First text", "Second text"]},),
)
def embed(
    call: Call,
    texts: Annotated[
        tuple[str, ...],
        Describe(f"1 to {MAX_TEXTS} texts"),
        InSchema(minItems=1),  # too many are a 413, not a 400
    ],
    kind: Annotated[
        Literal["query", "passage"],
        Describe("Some models embed questions and passages differently"),
    ] = "passage",
    tokens: Annotated[bool, Describe("Send the states of the tokens, too")] = False,
) -> Generator[None, None, EmbedReply]:
    """
    Texts to vectors.

    The vectors of the server's embedding model; nothing is stored.
    """
    _check(texts)
    vectors: list[list[float]] = []
    answers: list[EmbeddedTokens] = []
    for batch in _batches(texts):
        if vectors:
            yield  # other requests can run
        try:
            if tokens:
                embedded, states = call.kb.embed_texts_with_tokens(batch, kind=kind)
                answers += map(packed, states)
            else:
                embedded = call.kb.embed_texts(batch, kind=kind)
            vectors += embedded.tolist()
        except ModelMissingError as error:
            raise RestError(503, "Model not loaded") from error
    spec = call.kb.embedding_model()
    return EmbedReply(tuple(map(tuple, vectors)), spec.name, spec.fingerprint, tuple(answers))


def packed(states: TokenStates) -> EmbeddedTokens:
    """The token states of a text, as the reply has them."""
    english = "" if states.english is None else _base64(states.english)
    return EmbeddedTokens(tuple(states.ids.tolist()), _base64(states.states), english)


def _base64(numbers: NDArray[np.float32]) -> str:
    return base64.b64encode(numbers.astype("<f2").tobytes()).decode()


def _check(texts: Sequence[str]) -> None:
    """
    Check the number and the lengths of the texts.

    Raises:
        InputError: There is no text.
        RestError: There are too many texts, or they are too long (413).
    """
    if not texts:
        raise InputError("Empty texts list")
    if len(texts) > MAX_TEXTS:
        raise RestError(413, f"Too many texts ({len(texts)} > {MAX_TEXTS})")
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
