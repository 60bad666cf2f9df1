"""Texts of documents to put in front of a prompt: by name, by glob, or by a query."""

from __future__ import annotations

from dataclasses import dataclass

from qmd.errors import DocumentNotFoundError, NoMatchError
from qmd.kb import KnowledgeBase
from qmd.operations import texts
from qmd.values.reading import DocumentSlice, SkippedDocument
from qmd.values.text import counted, one_line

#: How many of the best hits are put in front.
HITS = 5
#: The most tokens of each of them, estimated; of a longer document the lines around the hit.
HIT_TOKENS = 2000
#: A larger document is left out of those that a glob names.
_MAX_BYTES = 100_000
#: The lines of a long document in front of the one that matches best.
_LINES_BEFORE = 5


@dataclass(frozen=True, slots=True)
class Fragment:
    """
    The text of a document, or a part of it, below a line that names it.

    ``file`` is empty for a sentence about those that follow.
    """

    file: str
    text: str


def fragments(kb: KnowledgeBase, argument: str) -> list[Fragment]:
    """
    The documents that an argument names; otherwise the best hits for it as a query.

    Of the hits those are left out that are less than half as relevant as the best one. If even that
    one hardly answers, the first fragment says so.

    Args:
        argument: A name as `KnowledgeBase.get` takes it, a glob, or what to search for.

    Raises:
        AmbiguousNameError, SectionNotFoundError: As `KnowledgeBase.get`.
        DocumentNotFoundError: It can only be a name, and there is no such document.
        NoMatchError: No document has to do with it.
    """
    if "*" in argument:
        return _several(kb, argument)
    try:
        return [_fragment(kb.get(argument))]
    except DocumentNotFoundError:
        if argument.startswith("#") or argument.endswith(".md"):
            raise
    reply = kb.query(argument, limit=HITS)
    if not reply.hits:
        raise NoMatchError(f"No note has to do with {argument!r}. Try other words, or name a note.")
    least = reply.hits[0].relevance / 2
    best = [_around(kb, hit.file, hit.line) for hit in reply.hits if hit.relevance >= least]
    return [Fragment("", f"[{reply.notice}]\n"), *best] if reply.notice else best


def _several(kb: KnowledgeBase, pattern: str) -> list[Fragment]:
    reply = kb.multi_get(pattern, max_bytes=_MAX_BYTES)
    read = [_fragment(item) for item in reply.items if not isinstance(item, SkippedDocument)]
    missing = len(reply.items) - len(read) + reply.more
    if missing:
        text = f"[{counted(missing, 'more document')} left out: name fewer, or one by one]\n"
        read.append(Fragment(pattern, text))
    return read


def _around(kb: KnowledgeBase, file: str, line: int) -> Fragment:
    """A document, or if it is long the lines from shortly before this one on."""
    whole = kb.get(file, max_tokens=HIT_TOKENS)
    if whole.left_out is None or line <= _LINES_BEFORE + 1:
        return _fragment(whole)
    return _fragment(kb.get(file, from_line=line - _LINES_BEFORE, max_tokens=HIT_TOKENS))


def _fragment(part: DocumentSlice) -> Fragment:
    file = part.document.file
    first = f":{part.from_line}" if part.from_line > 1 else ""
    lines = [f"[{one_line(file)}{first}]", part.text.rstrip("\n")]
    if part.left_out is not None:
        lines.append(f"[{texts.lines_left_out(part.left_out, file, raise_what=None)}]")
    return Fragment(file, "\n".join(lines) + "\n")
