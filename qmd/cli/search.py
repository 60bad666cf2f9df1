"""``qmd search``, ``qmd vsearch`` and ``qmd query`` search, with one common set of options."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from qmd import cli
from qmd import search as steps
from qmd.cli.command import command
from qmd.cli.places import Places, places
from qmd.cli.search_options import USUAL, View, search_options
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, waiting
from qmd.system import running

if TYPE_CHECKING:
    from qmd.values import Collection, SearchCommand, SearchReply, SearchRequest

    #: A reply, the whole text of each hit if asked for, how files are named, and whether a process
    #: is making the missing vectors.
    _Answered = tuple[SearchReply, list[str] | None, Places, bool]

#: The tokens of what a format prints around the hits, such as a header.
_FRAME_TOKENS = 15


@command(
    "search",
    pages=True,
    usual=USUAL,
    examples=(
        'qmd search "connection pool" -n 5',
        "qmd search 数据库 -c notes --after 2025-01-01",
        "qmd search 'title:plan -draft \"road map\"' --json",
    ),
)
@search_options("search")
def search(request: SearchRequest, view: View) -> None:
    """
    Search by words (BM25), Chinese included.

    All words must occur; fewer hits than the limit are filled up with looser matches, marked
    as such. "a phrase", -word, word*, OR, title:, description:, path: and tag: are understood;
    any other character is text to be found.
    """
    _answer("search", request, view)


@command(
    "vsearch",
    pages=True,
    usual=USUAL,
    examples=('qmd vsearch "how to recover from a failed deploy"', "qmd vsearch 如何备份 -n 3"),
)
@search_options("vsearch")
def vsearch(request: SearchRequest, view: View) -> None:
    """
    Search by meaning (vectors); needs 'qmd embed' once.

    The query and the notes need not share a word, nor a language.
    """
    _answer("vsearch", request, view)


@command(
    "query",
    pages=True,
    usual=USUAL,
    examples=(
        'qmd query "why did we choose SQLite?"',
        "qmd query 为什么选择它 --explain",
        "qmd query $'lex: wal checkpoint\\nvec: how are readers kept from blocking'",
    ),
)
@search_options("query")
def query(request: SearchRequest, view: View) -> None:
    """
    Search by words and by meaning: the best answer.

    Both decide the order, and so does a reranker that you name. Without vectors it answers
    from words alone and says so. Lines 'lex: …', 'vec: …', 'hyde: …' and 'intent: …' address
    the retrievers one by one.
    """
    _answer("query", request, view)


def _answer(command: SearchCommand, request: SearchRequest, view: View) -> None:
    answer = _answer_from_server if view.mode == "server" else _answer_here
    # Each format takes another number of tokens, so the budget is applied here.
    reply, bodies, where, is_embedding = answer(command, replace(request, max_tokens=None), view)
    if request.max_tokens is not None:
        size = partial(cli.render_hits.printed_tokens, output=view.output, where=where)
        reply = steps.budget.fit_hits(reply, request.max_tokens, size, frame_tokens=_FRAME_TOKENS)
    if reply.degraded:
        note(f"qmd: {reply.degraded}", style="warning")
    elif command != "search" and reply.needs_embedding:
        waiting = (
            f"{cli.render_reports.count(reply.needs_embedding, 'document')} without vectors yet"
        )
        remedy = "made in the background (qmd status)" if is_embedding else "qmd embed"
        note(f"qmd: {waiting}: {remedy}")
    if reply.notice and view.output not in cli.render_hits.HAS_NOTICE:
        note(f"qmd: {reply.notice}", style="warning")
    cli.render_hits.render_hits(
        reply, view.output, bodies=bodies, line_numbers=view.line_numbers, where=where
    )
    if reply.left_out:
        note(
            f"{cli.render_reports.count(reply.left_out, 'more hit')} left out: raise --max-tokens."
        )
    elif not reply.hits and view.output == "cli":
        sys.stdout.flush()
        sys.stderr.write(f'No results found for "{one_line(request.query)}"\n')


def _answer_here(command: SearchCommand, request: SearchRequest, view: View) -> _Answered:
    """
    Search in this process.

    With the mode "auto" a running server may embed the query, because loading the model takes
    longer than the rest of a search.
    """
    caches_answers = session().remembers() and command != "search"
    with session().open(write=caches_answers, ask_server=view.mode == "auto") as kb:
        with _told_to_wait(command, view):
            reply = kb.answer(command, request)
        bodies = [kb.get(hit.file).text for hit in reply.hits] if view.full else None
        waits = command != "search" and reply.needs_embedding > 0
        is_embedding = waits and kb.freshness().embedding
        return reply, bodies, places(kb.collections, full_path=view.full_path), is_embedding


def _told_to_wait(command: SearchCommand, view: View) -> AbstractContextManager[None]:
    """Say on a terminal that the model is loaded, which takes a second or more."""
    if command == "search" or (view.mode == "auto" and running.find(session().settings.db)):
        return nullcontext()
    return waiting("Loading the model for meaning; 'qmd up' would keep it in memory …")


def _answer_from_server(command: SearchCommand, request: SearchRequest, view: View) -> _Answered:
    remote = cli.remote.Remote(session().settings.db)
    reply = remote.search(command, request)
    bodies = [remote.text(hit.file) for hit in reply.hits] if view.full else None
    with session().open() as kb:
        waits = command != "search" and reply.needs_embedding > 0
        is_embedding = waits and kb.freshness().embedding
    return reply, bodies, places(_collections, full_path=view.full_path), is_embedding


def _collections() -> list[Collection]:
    with session().open() as kb:
        return kb.collections()
