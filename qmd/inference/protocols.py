"""Defines the interfaces of models that search and ingest use: embedder, expander and reranker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, cast

from qmd import libraries
from qmd.values import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


ExpansionKind = Literal["lex", "vec", "hyde"]
#: What a text is to an embedder: one that is stored, or a question.
Role = Literal["passage", "query"]


class Embedder(Protocol):
    """
    Turns texts into vectors of unit norm. Thread-safe. The first text loads the weights.

    Every string is accepted. NUL and lone surrogates are replaced, and a blank text has a vector
    too. A text longer than ``spec.max_tokens`` is split, and the vectors of its parts are averaged,
    weighted by their length. A text has the same vector whatever texts are embedded with it.

    An embedder may also say more of itself: ``gives_token_states`` (see `token_embedder`),
    ``is_loaded`` (`is_in_memory`), ``asks_server`` (`asks_server`) and ``english``
    (`english_embedder`). One that does not counts as one where they are False or None.
    """

    @property
    def spec(self) -> ModelSpec:
        """The model and its properties; loads no weights."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """
        The vectors of texts that are stored.

        Returns:
            float32[len(texts), dimension], unit norm.

        Raises:
            InferenceError: The model cannot be loaded, or failed.
        """
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """
        The vector of a question.

        Returns:
            float32[dimension], unit norm.

        Raises:
            InferenceError: The model cannot be loaded, or failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class TokenStates:
    """
    The token states of a text: one mean state for each distinct token of it.

    A state is what the last layer of the model says of a token in its context. The states are
    rounded to float16, so that they are the same whether they were kept, sent or just made. Special
    tokens and those of the prefix are left out. A model without a state per token has none: t is 0.

    Attributes:
        ids: int32[t], ascending: the numbers of the tokens in the model's vocabulary.
        states: float32[t, dimension]: of each token the mean state over its occurrences.
        english: float32[n], unit norm: the vector of an English question by the model of English
            that stands beside this one; None for other texts, and without such a model.
    """

    ids: NDArray[np.int32]
    states: NDArray[np.float32]
    english: NDArray[np.float32] | None = None


def no_states(dimension: int) -> TokenStates:
    """The token states of a text without tokens."""
    return TokenStates(
        libraries.np.empty(0, libraries.np.int32),
        libraries.np.empty((0, dimension), libraries.np.float32),
    )


class TokenEmbedder(Embedder, Protocol):
    """An `Embedder` that also gives the token states of a text; one run of the model gives both."""

    @property
    def gives_token_states(self) -> bool:
        """Whether the model has a state for each token; the first call may load the weights."""
        ...

    def embed_passages_with_tokens(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], tuple[TokenStates, ...]]:
        """
        The vectors of texts that are stored, equal to those of `embed_passages`, and their states.

        Raises:
            InferenceError: The model cannot be loaded, or failed.
        """
        ...

    def embed_query_with_tokens(self, text: str) -> tuple[NDArray[np.float32], TokenStates]:
        """
        The vector of a question, equal to that of `embed_query`, and its token states.

        Raises:
            InferenceError: The model cannot be loaded, or failed.
        """
        ...


class EmbeddedTexts(NamedTuple):
    """
    What an embedder says of texts.

    Attributes:
        vectors: float32[texts, dimension], unit norm.
        states: The token states of each text; empty if nobody has asked for them.
    """

    vectors: NDArray[np.float32]
    states: tuple[TokenStates, ...] = ()


class TextEmbedder(ABC):
    """A `TokenEmbedder` of this program: one method embeds, all others follow from it."""

    @property
    @abstractmethod
    def spec(self) -> ModelSpec: ...

    @abstractmethod
    def embed(
        self, texts: Sequence[str], role: Role, *, with_tokens: bool = False
    ) -> EmbeddedTexts:
        """
        The vectors of texts, and with ``with_tokens`` their token states.

        Raises:
            InferenceError: The model cannot be loaded, or failed.
        """

    @property
    def gives_token_states(self) -> bool:
        return False

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.embed(texts, "passage").vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.embed([text], "query").vectors[0]
        return vector

    def embed_passages_with_tokens(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], tuple[TokenStates, ...]]:
        return self.embed(texts, "passage", with_tokens=True)

    def embed_query_with_tokens(self, text: str) -> tuple[NDArray[np.float32], TokenStates]:
        vectors, states = self.embed([text], "query", with_tokens=True)
        return vectors[0], states[0]


class EmbedderWrapper(TextEmbedder):
    """Another embedder, but for what a subclass does otherwise."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

    @property
    def spec(self) -> ModelSpec:
        return self._inner.spec

    @property
    def is_loaded(self) -> bool:
        return is_in_memory(self._inner)

    @property
    def asks_server(self) -> bool:
        return asks_server(self._inner)

    @property
    def gives_token_states(self) -> bool:
        return token_embedder(self._inner) is not None

    @property
    def english(self) -> Embedder | None:
        return english_embedder(self._inner)

    def embed(
        self, texts: Sequence[str], role: Role, *, with_tokens: bool = False
    ) -> EmbeddedTexts:
        return embed(self._inner, texts, role, with_tokens=with_tokens)


def embed(
    embedder: Embedder, texts: Sequence[str], role: Role, *, with_tokens: bool = False
) -> EmbeddedTexts:
    """
    What any embedder says of texts, also one that a user of the library has written.

    Without token states of its own, an embedder has none of any text.

    Raises:
        InferenceError: The model cannot be loaded, or failed.
    """
    tokens = token_embedder(embedder) if with_tokens else None
    if isinstance(embedder, TextEmbedder):
        embedded = embedder.embed(texts, role, with_tokens=tokens is not None)
    elif role == "passage":
        embedded = (
            EmbeddedTexts(embedder.embed_passages(texts))
            if tokens is None
            else EmbeddedTexts(*tokens.embed_passages_with_tokens(texts))
        )
    else:
        states: list[TokenStates] = []
        rows: Any = []
        for text in texts:
            if tokens is None:
                rows.append(embedder.embed_query(text))
            else:
                row, state = tokens.embed_query_with_tokens(text)
                rows.append(row)
                states.append(state)
        embedded = EmbeddedTexts(rows, tuple(states))
    if with_tokens and tokens is None:
        none = tuple(no_states(embedder.spec.dimension) for _text in texts)
        return EmbeddedTexts(embedded.vectors, none)
    return embedded


def token_embedder(embedder: Embedder) -> TokenEmbedder | None:
    """The same embedder if it gives token states, else None; the first call may load weights."""
    if not getattr(embedder, "gives_token_states", False):
        return None
    return cast("TokenEmbedder", embedder)


def english_embedder(embedder: Embedder) -> Embedder | None:
    """The model of English beside an embedder (``english``); None if there is none."""
    return cast("Embedder | None", getattr(embedder, "english", None))


def is_in_memory(embedder: Embedder) -> bool:
    """Whether the weights are in the memory of this process (``is_loaded``)."""
    return bool(getattr(embedder, "is_loaded", False))


def asks_server(embedder: Embedder) -> bool:
    """Whether a model server embeds (``asks_server``): each request to it has a cost."""
    return bool(getattr(embedder, "asks_server", False))


@dataclass(frozen=True, slots=True)
class Expansion:
    """
    Another wording of a question.

    Attributes:
        kind: "lex": words for full text. "vec": a sentence for the vectors. "hyde": an answer that
            the model has invented, for the vectors.
    """

    kind: ExpansionKind
    text: str


class Expander(Protocol):
    """Writes other wordings of a question."""

    def expand(self, query: str, *, limit: int, timeout_s: float) -> Sequence[Expansion]:
        """
        Other wordings of a query.

        Args:
            query: The query in plain words, with the intent on a line before it if there is one.
            limit: Return at most this many.
            timeout_s: Seconds after which the model is given up.

        Returns:
            The expansions, best first; may be empty.

        Raises:
            InferenceError: The model failed or took too long.
        """
        ...


class Reranker(Protocol):
    """
    Scores passages by how well they answer a question.

    A reranker that reads weights may have a method ``prepare`` (see `prepare`).
    """

    @property
    def name(self) -> str:
        """The name of the model; its scores are cached by it."""
        ...

    def rerank(
        self, query: str, passages: Sequence[str], *, timeout_s: float
    ) -> Sequence[float | None]:
        """
        Score how well each passage answers the query, the first passages first.

        Args:
            query: The query in plain words, with the intent on a line before it if there is one.
            passages: Title and text of a document's best part; the most important first.
            timeout_s: Seconds after which the model is given up. A reranker that returns before
                then keeps the scores that it has by then.

        Returns:
            A score for each passage, 0..1, in the order of the passages; None for a passage that
            was not reached in time.

        Raises:
            InferenceError: The model failed, or scored no passage in time.
        """
        ...


def prepare(reranker: Reranker) -> None:
    """Let a reranker begin to read its weights, if it has any; does not wait for them."""
    begin: Callable[[], None] | None = getattr(reranker, "prepare", None)
    if begin is not None:
        begin()
