"""Runs ``qmd search``, ``qmd vsearch`` and ``qmd query``, and prints their hits."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from qmd import cli, libraries, search, system, values
from qmd.cli.formats import Places, places
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, waiting
from qmd.values.text import counted

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase
    from qmd.operations import Operation
    from qmd.values import Freshness, SearchReply

    #: A reply, the whole text of each hit if asked for, what the index lacks, and is made,
    #: if that matters to the reply, and where documents lie.
    Answered = tuple[SearchReply, list[str] | None, Freshness | None, Places]

#: The tokens of what a format prints around the hits, such as a header.
_FRAME_TOKENS = 15


def answer(
    operation: Operation,
    arguments: Mapping[str, Any],
    *,
    output: str,
    mode: str,
    full: bool,
    line_numbers: bool,
    full_path: bool,
) -> None:
    """
    Search, and print the hits.

    Args:
        output: The format.
        mode: Who answers, as the option of this name says.
        full: Print the whole text of each hit.
    """
    arguments = dict(arguments)
    max_tokens = arguments.pop("max_tokens", None)
    if full and max_tokens is not None:
        raise libraries.click.UsageError(
            "--full and --max-tokens exclude each other; "
            "read single documents with 'qmd get --max-tokens'."
        )
    # Each format takes another number of tokens, so the budget is applied here.
    if mode == "server":
        answered = _from_server(operation, arguments, full=full, full_path=full_path)
    else:
        answered = _here(operation, arguments, mode, full=full, full_path=full_path)
    reply, bodies, fresh, where = answered
    if max_tokens is not None:
        size = partial(cli.render_hits.printed_tokens, output=output, where=where)
        reply = search.budget.fit_hits(reply, max_tokens, size, frame_tokens=_FRAME_TOKENS)
    if reply.degraded:
        note(f"qmd: {reply.degraded}", style="warning")
    elif operation.name != "search" and reply.needs_embedding:
        without = counted(reply.needs_embedding, "document")
        remedy = "made in the background (qmd status)" if fresh and fresh.embedding else "qmd embed"
        note(f"qmd: {without} without vectors yet: {remedy}")
    print_reply(
        reply,
        output,
        where=where,
        bodies=bodies,
        line_numbers=line_numbers,
        is_indexing=fresh is not None and fresh.indexing,
    )


def print_reply(
    reply: SearchReply,
    output: str,
    *,
    where: Places,
    bodies: Sequence[str] | None = None,
    line_numbers: bool = False,
    is_indexing: bool = False,
) -> None:
    """
    Print the hits of a reply as `render_hits` does, and on stderr what else it says of them.

    Args:
        is_indexing: Files are being indexed just now; that matters if nothing was found.
    """
    if is_indexing and not reply.hits:
        note("qmd: Files are being indexed just now: documents may be missing (qmd status).")
    if reply.notice and output not in cli.render_hits.HAS_NOTICE:
        note(f"qmd: {reply.notice}", style="warning")
    cli.render_hits.render_hits(
        reply, output, bodies=bodies, line_numbers=line_numbers, where=where
    )
    if reply.left_out:
        note(f"{counted(reply.left_out, 'more hit')} left out: raise --max-tokens.")
    elif not reply.hits and output == "cli":
        sys.stdout.flush()
        sys.stderr.write(f'No results found for "{one_line(reply.query)}"\n')


def _here(
    operation: Operation, arguments: Mapping[str, Any], mode: str, *, full: bool, full_path: bool
) -> Answered:
    """
    Search in this process.

    With the mode "auto" a running server may embed the query, because loading the model takes
    longer than the rest of a search.
    """
    by_words = operation.name == "search"
    caches_answers = session().remembers() and not by_words
    with session().open(write=caches_answers, ask_server=mode == "auto") as kb:
        with nullcontext() if by_words else _told_to_wait(mode):
            reply = operation.run(kb, **operation.gathered(arguments))
        bodies = [kb.get(hit.file).text for hit in reply.hits] if full else None
        where = places(kb.collections, full_path=full_path)
        return reply, bodies, _freshness(kb, reply, by_words=by_words), where


def _told_to_wait(mode: str) -> AbstractContextManager[None]:
    """Say on a terminal that the model is loaded, which takes a second or more."""
    if mode == "auto" and system.running.find(session().settings.db):
        return nullcontext()
    return waiting("Loading the model for meaning; 'qmd up' would keep it in memory …")


def _from_server(
    operation: Operation, arguments: Mapping[str, Any], *, full: bool, full_path: bool
) -> Answered:
    remote = cli.remote.Remote(session().settings.db)
    sent = remote.answer(operation, arguments)
    reply = values.wire.from_wire(values.SearchReply, sent, query=arguments["query"])
    bodies = [remote.text(hit.file) for hit in reply.hits] if full else None
    with session().open() as kb:
        where = places(kb.collections, full_path=full_path)
        fresh = _freshness(kb, reply, by_words=operation.name == "search")
        return reply, bodies, fresh, where


def _freshness(kb: KnowledgeBase, reply: SearchReply, *, by_words: bool) -> Freshness | None:
    """How far the index is, if documents may be missing for it; most replies need not know."""
    lacks_vectors = reply.needs_embedding > 0 and not by_words
    return kb.freshness() if lacks_vectors or not reply.hits else None
