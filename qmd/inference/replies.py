"""
Makes numbers and expansions of what models answer, in whatever form and time that comes.

Expanders and rerankers share it. Prompts ask a language model for lines or for a list; it answers
with prose around them, code fences, JSON of some other design, thoughts, repetitions, or nothing.
The parts that can be used are used.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from qmd.errors import InferenceError, TransientInferenceError
from qmd.inference.protocols import Expansion, ExpansionKind

#: Only so much of a reply is read.
MAX_CHARS = 32_768
#: Characters of an expansion, by kind.
MAX_EXPANSION_CHARS = {"lex": 300, "vec": 500, "hyde": 1500}

_KINDS: dict[str, ExpansionKind] = {
    **dict.fromkeys(("lex", "lexical", "keyword", "keywords"), "lex"),
    **dict.fromkeys(("vec", "vector", "semantic", "question"), "vec"),
    **dict.fromkeys(("hyde", "passage", "answer", "document"), "hyde"),
}
# What stands in front of a line in a list, and the line itself. (Two patterns, because one that
# has both would try every way to share a run of blanks between them.)
_BULLETS = re.compile(r"[\s>*•·–-]*")
_LINE = re.compile(
    r"(?:\d{1,2}[.)、])?[\s*`\"'\[(]*(lex|vec|hyde)\b[\s*`\"'\])]*[:：](.*)$", re.IGNORECASE
)
_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def chat_text(reply: Any) -> str:
    """
    The text of a chat completion, without the model's thoughts.

    Raises:
        InferenceError: It is no chat completion, or an empty one.
    """
    try:
        content = reply["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        raise InferenceError("The reply is no chat completion.") from None
    if isinstance(content, list):  # some servers send it in parts
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    text = _THOUGHTS.sub("", content[:MAX_CHARS]).strip() if isinstance(content, str) else ""
    if not text:
        raise InferenceError("The model has written nothing.")
    return text


def expansions(text: str, query: str, limit: int) -> list[Expansion]:
    """
    At most ``limit`` expansions, none equal to the query or to another.

    Raises:
        InferenceError: There is none.
    """
    usable: list[Expansion] = []
    seen = {_key(query)}
    for kind, raw in _typed(text[:MAX_CHARS]):
        words = _clean(raw)[: MAX_EXPANSION_CHARS[kind]].strip()
        if not any(c.isalnum() for c in words) or _key(words) in seen:
            continue
        seen.add(_key(words))
        usable.append(Expansion(kind, words))
        if len(usable) == limit:
            break
    if not usable:
        raise InferenceError("The model has written no other way to ask.")
    return usable


def _typed(text: str) -> Iterator[tuple[ExpansionKind, str]]:
    """Kind and text of each expansion: of JSON if there is any, else of lines ``kind: text``."""
    with suppress(RecursionError):
        from_json = list(_typed_json(_json_in(text)))
        if from_json:
            yield from from_json
            return
    for line in text.splitlines():
        yield from _typed_json(line)


def _typed_json(
    value: Any, kind: ExpansionKind | None = None
) -> Iterator[tuple[ExpansionKind, str]]:
    """
    Objects that name their kind, or have kinds for keys, however they are nested; and texts
    ``kind: text``, also in a list.
    """
    if isinstance(value, str):
        bullets = _BULLETS.match(value)
        match = _LINE.match(value[:4096], bullets.end() if bullets else 0)
        if match:
            yield _KINDS[match[1].lower()], match[2]
        elif kind is not None:
            yield kind, value
    elif isinstance(value, list):
        for each in value:
            yield from _typed_json(each, kind)
    elif isinstance(value, dict):
        named = value.get("type", value.get("kind"))
        named_kind = _KINDS.get(named.strip().lower()) if isinstance(named, str) else None
        if named_kind is not None:
            texts = [value.get(key) for key in ("text", "query", "content", "value")]
            yield from ((named_kind, text) for text in texts if isinstance(text, str))
            return
        for key, each in value.items():
            yield from _typed_json(each, _KINDS.get(key.strip().lower(), kind))


def scores(text: str, count: int) -> list[float]:
    """
    ``count`` numbers 0 to 10 as 0..1, from a list, an object or lines ``[3] 7``.

    Raises:
        InferenceError: There are more or fewer, or one is no such number.
    """
    text = text[:MAX_CHARS]
    marks = _listed(_json_in(text), count)
    if len(marks) != count:
        marks = _numbered_lines(text, count) or marks
    if len(marks) != count:
        raise InferenceError(f"{len(marks)} scores came for {count} passages.")
    return [_tenths(mark) for mark in marks]


def _listed(value: Any, count: int) -> Sequence[Any]:
    """The scores in a JSON value: a list, a list below a key, or a score for each position."""
    if isinstance(value, dict):
        by_label = {key.strip("[]# "): each for key, each in value.items()}
        labels = [str(position) for position in range(1, count + 1)]
        if all(label in by_label for label in labels):
            return [by_label[label] for label in labels]
        value = next((each for each in value.values() if isinstance(each, list)), None)
    if not isinstance(value, list):
        return ()
    return [
        each.get("score", each.get("relevance")) if isinstance(each, dict) else each
        for each in value
    ]


def _numbered_lines(text: str, count: int) -> list[str]:
    """The scores in lines ``[3] 7``, by position; of two lines for a position the first."""
    lines: dict[int, str] = {}
    for line in text.splitlines():
        numbers = _NUMBER.findall(line[:200])
        if len(numbers) == 2 and numbers[0].isdigit() and 1 <= int(numbers[0]) <= count:
            lines.setdefault(int(numbers[0]), numbers[1])
    return [lines[position] for position in sorted(lines)]


def _tenths(value: Any) -> float:
    """A mark 0..10 as 0..1. Raises InferenceError."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 10:
        raise InferenceError("A score is no number from 0 to 10.")
    return float(value) / 10


def reranked(reply: Any, count: int) -> list[float]:
    """
    The scores of a ``/rerank`` reply, in the order of the passages and in the range of the server.

    Jina and Cohere give ``results`` of ``index`` and ``relevance_score``, text-embeddings-
    inference a list with ``score``. Some servers give logits.

    Raises:
        InferenceError: Not one number for each passage.
    """
    rows = reply
    if isinstance(reply, dict):
        rows = reply.get("results", reply.get("data"))
    by_index: dict[int, float] = {}
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            continue
        index, score = row.get("index"), row.get("relevance_score", row.get("score"))
        if isinstance(score, bool) or not isinstance(score, int | float):
            continue
        # No finite float is as large as 1e308, and some whole numbers in JSON are.
        if type(index) is int and 0 <= index < count and abs(score) < 1e308:
            by_index[index] = float(score)
    if len(by_index) != count:
        raise InferenceError(f"{len(by_index)} scores came for {count} passages.")
    return [by_index[index] for index in range(count)]


def sigmoid(logit: float) -> float:
    """A logit as a score, 0..1."""
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


def _json_in(text: str) -> Any:
    """The first JSON list or object in a text that is not empty, None if there is none."""
    decoder = json.JSONDecoder()
    for tried, match in enumerate(re.finditer(r"[\[{]", text)):
        if tried == 8:  # each try may read to the end
            return None
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if value:
            return value
    return None


def _clean(text: str) -> str:
    """One line without control characters and the quotes around it."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line.strip("*`\"'“”「」[], ")


def _key(text: str) -> str:
    """Equal for texts that differ in case and blanks alone."""
    return " ".join(text.casefold().split())


# --- scores within the time -------------------------------------------------------------

#: No call begins that would end too late if each passage took this many times the longest so far.
_RESERVE = 1.25
#: A call that ends this many seconds before the time is up, or later, has used it up.
_TOLERANCE_S = 0.01

#: Scores a batch of passages within a number of seconds: a score for each, in their order.
Score = Callable[[Sequence[str], float], Sequence[float]]


def score_in_time(
    name: str,
    score: Score,
    passages: Sequence[str],
    timeout_s: float,
    *,
    first: int,
    most: int,
    clock: Callable[[], float] = monotonic,
) -> list[float | None]:
    """
    Score passages from the first to the last, until the time is up.

    The first call tells how long a passage takes. Each later one has as many passages as should
    take half of the time that is left, so that little is lost if they take longer.

    Args:
        name: The model, for messages.
        score: Raises TransientInferenceError if its seconds are over.
        passages: The most important first.
        first: How many passages the first call has.
        most: The most passages of one call.

    Returns:
        A score for each passage in their order; None for those that were not reached.

    Raises:
        TransientInferenceError: The time was up before any passage had a score.
        InferenceError: ``score`` failed for another reason than time.
    """
    end = clock() + timeout_s
    scores: list[float] = []
    longest_s = 0.0  # per passage
    while len(scores) < len(passages):
        began = clock()
        left_s = end - began
        if left_s <= _RESERVE * longest_s:
            break
        count = min(most, int(left_s / 2 / longest_s)) if longest_s else first
        batch = passages[len(scores) : len(scores) + max(1, count)]
        try:
            scores += score(batch, left_s)
        except TransientInferenceError:
            if not scores or clock() < end - _TOLERANCE_S:
                raise
            break
        longest_s = max(longest_s, (clock() - began) / len(batch))
    if passages and not scores:
        raise TransientInferenceError(
            f"{name} has scored none of {len(passages)} passages within {timeout_s:.1f} s.",
            hint="Use a smaller model, or a larger model_budget (QMD_MODEL_BUDGET).",
        )
    return [*scores, *[None] * (len(passages) - len(scores))]


def cut(text: str, tokens: int) -> str:
    """The beginning of a text; four letters count as a token, and so does a Chinese character."""
    if len(text) <= tokens:
        return text
    used = 0.0
    for place, character in enumerate(text):
        used += 1.0 if character >= "\u2e80" else 0.25
        if used > tokens:
            return text[:place]
    return text
