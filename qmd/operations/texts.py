"""
The texts of the toolset ``qmd``, verbatim from its specification.

Where MCP and REST word a text differently, `Dialect` holds the wording. Nothing else in this
module depends on the transport.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Literal

from qmd import search
from qmd.errors import DocumentNotFoundError, NoMatchError, QmdError, VectorIndexMissingError
from qmd.parse.lines import line_starts
from qmd.records import dataclass
from qmd.values import DocumentSlice, Hit, LeftOut, Status
from qmd.values.reports import Freshness
from qmd.values.search import shown_relevance
from qmd.values.text import MAX_TOTAL_BYTES, counted, harmless, one_line

HeadingPart = Literal["file", "context"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The wordings in which the transports differ."""

    truncated: str  # with {n}, the number of lines cut off
    get_tool: str  # how a notice names the tool that reads one document
    camel_case: bool  # the case of arguments and structured fields
    heads_with: frozenset[HeadingPart]  # what stands above a document's text
    max_bytes: int | None  # the most bytes of a reply of get as JSON; None for whole documents
    takes_all_texts: bool  # else the first one, and its structured fields say the rest

    def field(self, name: str) -> str:
        """The name of a structured field in this dialect, from its name in snake case."""
        if not self.camel_case:
            return name
        head, *rest = name.split("_")
        return head + "".join(word.title() for word in rest)


#: The most characters of the query that a reply with a budget repeats.
MAX_ECHO = 100

INTERNAL = (
    "Internal server error. The server's log says more; "
    "'qmd doctor' on its machine looks for the cause."
)

MCP = Dialect(
    truncated="\n\n[... truncated {n} more lines]",
    get_tool="qmd_get",
    camel_case=True,
    heads_with=frozenset({"file", "context"}),  # many clients drop the URI
    max_bytes=MAX_TOTAL_BYTES,
    takes_all_texts=True,
)
REST = Dialect(
    truncated="\n\n[...truncated {n} more lines]",
    get_tool="qmd get",
    camel_case=False,
    heads_with=frozenset(),
    max_bytes=None,
    takes_all_texts=False,
)


# --- search --------------------------------------------------------------------------


def search_summary(hits: Sequence[Hit], query: str) -> str:
    """``formatSearchSummary``: a header, a blank line, and one line for each hit."""
    if not hits:
        return f'No results found for "{query}"'
    plural = "" if len(hits) == 1 else "s"
    lines = [f'Found {len(hits)} result{plural} for "{query}":\n']
    lines += [
        one_line(f"{hit.docid} {shown_relevance(hit.relevance)} {hit.file_and_place} - {hit.title}")
        for hit in hits
    ]
    return "\n".join(lines)


def hits_text(hits: Sequence[Hit], notice: str | None) -> str:
    """
    The snippet of each hit below its place and relevance, for clients that read only text.

    ``notice``: the notice of the reply, which stands above the hits; None for none.
    """
    blocks = [
        f"{one_line(hit.file_and_place)}:{hit.line} (relevance {hit.relevance:.2f})\n{hit.snippet}"
        for hit in hits
    ]
    return "\n\n".join([notice, *blocks] if notice else blocks)


def shortened_query(query: str) -> str:
    """A query as a reply with a budget repeats it."""
    return query if len(query) <= MAX_ECHO else query[:MAX_ECHO] + "…"


def hits_left_out(count: int, dialect: Dialect) -> str:
    """What a reply says of the hits that its budget left out."""
    return (
        f"{counted(count, 'more hit')} left out: "
        f"raise {dialect.field('max_tokens')}, or narrow the search."
    )


# --- documents -----------------------------------------------------------------------


def line_numbers(text: str, first: int = 1, lines: int = 0) -> str:
    """
    Number each line as ``N: line``. Line ends stay; a final one adds no empty line.

    ``lines``: as of `line_starts`.
    """
    starts = line_starts(text, lines)
    parts = (text[start:end] for start, end in zip_longest(starts, starts[1:]))
    return "".join(f"{number}: {line}" for number, line in enumerate(parts, first))


def with_notice(text: str, more_lines: int, dialect: Dialect) -> str:
    """
    Add a notice of the lines that were cut off, if any.

    The notice begins with the line end that a cut text lacks.
    """
    return text + dialect.truncated.format(n=more_lines) if more_lines else text


def document_heading(document: DocumentSlice, dialect: Dialect) -> str:
    """
    What stands above a document's text: its file, the lines unless they are all, its docid (for an
    edit of this very text), and its context.
    """
    comments = []
    if "file" in dialect.heads_with:
        is_whole = document.from_line == 1 and not document.more_lines
        lines = "" if is_whole else f", {_lines(document.from_line, document.last_line)}"
        if not document.lines and not is_whole:
            lines = f", no line from {document.from_line}"
        info = document.document
        comments.append(f"File: {info.file}{lines}, docid {info.docid}")
    if "context" in dialect.heads_with and document.context is not None:
        comments.append(f"Context: {document.context}")
    shown = "".join(f"<!-- {one_line(comment)} -->\n" for comment in comments)
    return f"{shown}\n" if comments else ""


def skip_notice(file: str, size: int, dialect: Dialect) -> str:
    """The notice for a document that is too large; ``size`` in bytes."""
    kilobytes, file = math.floor(size / 1024 + 0.5), one_line(file)
    return (
        f"[SKIPPED: {file} - File too large ({kilobytes}KB). "
        f"Use '{dialect.get_tool}' with file=\"{file}\" to retrieve.]"
    )


def lines_left_out(
    left_out: LeftOut, file: str, *, raise_what: str | None, tool: str = "get"
) -> str:
    """
    What a budget left out of a document, and how to get it.

    ``raise_what``: the name of the budget, as the caller spells it; None if there is only the
    bound of all replies. ``tool``: what reads the rest.
    """
    first, last, file = left_out.first_line, left_out.last_line, one_line(file)
    if not left_out.is_begun:
        return f"{_lines(first, last)} left out: {tool} {file}:{first}"
    if raise_what is None:
        end = f"the end of line {first}, which no reply has room for,"
        rest = "" if first == last else f" and {_lines(first + 1, last)}"
        return f"{end}{rest} left out" + (f": {tool} {file}:{first + 1}" if rest else "")
    if first == last:
        return f"the end of line {first} left out: raise {raise_what}"
    rest = f"{_lines(first + 1, last)} left out: raise {raise_what}, or {tool} {file}:{first + 1}"
    return f"the end of line {first} and {rest}"


def same_name(lines: Sequence[int]) -> str:
    """Where other sections or blocks with the name of the shown one begin; at most ten lines."""
    shown = ", ".join(map(str, lines[:10]))
    more = f" and {len(lines) - 10:,} more" if len(lines) > 10 else ""
    return f"the same name stands also at {'line' if len(lines) == 1 else 'lines'} {shown}{more}"


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first}-{last}"


def documents_left_out(count: int, next_file: str) -> str:
    """What `multi_get` says of the documents that its reply has no room for."""
    return (
        f"[{counted(count, 'more document')} left out, the first is {one_line(next_file)}: "
        "narrow the pattern, or list the files to read next]"
    )


# --- status --------------------------------------------------------------------------


def status_text(status: Status) -> str:
    lines = [
        "QMD Index Status:",
        f"  Total documents: {status.total_documents}",
        f"  Needs embedding: {status.needs_embedding}",
        f"  Vector index: {'yes' if status.has_vector_index else 'no'}",
        f"  Collections: {len(status.collections)}",
    ]
    lines += [
        f"    - {one_line(collection.path)} ({collection.documents} docs)"
        for collection in status.collections
    ]
    return "\n".join(lines)


def status_replica(fresh: Freshness) -> str | None:
    """How far the replica that answers is behind; None without one."""
    if fresh.replica_lag_s is None:
        return None
    return f"Searches are answered by a replica, {fresh.replica_lag_s:g} s behind the database."


def status_advice(status: Status, fresh: Freshness) -> str | None:
    """What to do next, or what is being done, until the index answers all searches; else None."""
    if not status.collections:
        return (
            "There are no collections yet. "
            "Run 'qmd collection add DIR' to add and index a folder of Markdown files."
        )
    if fresh.indexing:
        return indexing_note(fresh)
    if not status.total_documents and fresh.watch != "off":
        return "The collections hold no documents; 'qmd why FILE' names what leaves a file out."
    if not status.total_documents:
        return "The collections hold no documents yet. Run 'qmd index' to fill them."
    if not status.has_vector_index or status.needs_embedding:
        if fresh.embedding:
            return (
                "search answers from all documents; vectors are being made in the background, "
                "until then vsearch and query do not see all of them by meaning."
            )
        return (
            "search answers from all documents; "
            "run 'qmd embed' so that vsearch and query see all of them by meaning too."
        )
    return None


def indexing_note(fresh: Freshness) -> str:
    """That files are being indexed, so that documents may be missing."""
    left = f": {counted(fresh.files_pending, 'file')} left" if fresh.files_pending else ""
    return f"Files are being indexed{left}. Searches answer from the documents that are in already."


def status_excluded(status: Status) -> str | None:
    """Which collections a search must name, as a model would not look there; None if none."""
    names = [each.name for each in status.collections if not each.included]
    if not names:
        return None
    return f"Searches look in these only if collection names them: {one_line(', '.join(names))}."


def status_missing(status: Status) -> str | None:
    """Which collections have no folder that can be read; None if none."""
    missing = [f"{each.name} ({each.path})" for each in status.collections if each.missing]
    if not missing:
        return None
    folders = one_line(", ".join(missing))
    return (
        f"These folders cannot be read; their documents are as they were last indexed: {folders}."
    )


# --- errors --------------------------------------------------------------------------


def errors_block(errors: Iterable[str]) -> str:
    return "Errors:\n" + "\n".join(map(one_line, errors))


def error_text(error: QmdError) -> str:
    """The message of an error, and its hint unless the message has it already."""
    if isinstance(error, NoMatchError):
        # The specification prescribes the whole text; its names are those that the caller sent.
        return harmless(str(error))
    message, hint = one_line(str(error)), one_line(error.hint or "")
    if isinstance(error, VectorIndexMissingError):
        if hint == search.retrieve.VECTORS_COMING:
            return hint  # nobody is to make them
        message = error.prescribed
    if isinstance(error, DocumentNotFoundError):
        if not error.suggestions:
            return message
        listed = "\n".join(f"  - {one_line(suggestion)}" for suggestion in error.suggestions)
        return f"{message}\n\nDid you mean one of these?\n{listed}"
    if hint in message:
        return message
    return f"{message}\n\n{hint}"
