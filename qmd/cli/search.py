"""``qmd search``, ``qmd vsearch`` and ``qmd query``: one set of options, three retrievers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmd.cli.command import command
from qmd.cli.formats import format_options
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase
    from qmd.values import Filters, SearchReply

F = TypeVar("F", bound=Callable[..., Any])

MAX_LIMIT = 1000
#: How many of the best are reranked, unless somebody says otherwise.
CANDIDATES = 30


def _limit(ctx: click.Context, param: click.Parameter, value: int) -> int:
    if not 1 <= value <= MAX_LIMIT:
        raise click.BadParameter(
            f"the limit is 1 to {MAX_LIMIT:,}, not {value:,}; --all has none.", ctx, param
        )
    return value


def _share(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if not 0 <= value <= 1:  # false for NaN as well
        raise click.BadParameter(f"a score lies between 0 and 1, not {value}.", ctx, param)
    return value


def _date(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from qmd.errors import InputError
    from qmd.search.query.dates import iso_date

    try:
        return iso_date(value)
    except InputError as error:
        raise click.BadParameter(f"{error}. {error.hint}", ctx, param) from error


def search_options(*, min_score: float, hybrid: bool, meaning: bool = True) -> Callable[[F], F]:
    """The options of a search command, in the order of its help."""
    options = [
        click.argument("query", nargs=-1, required=True),
        click.option("-n", "--limit", type=int, default=10, show_default=True, callback=_limit,
                     metavar="N", help="At most N hits."),
        click.option("--all", "everything", is_flag=True, help="All hits, without a limit."),
        click.option("--min-score", type=float, default=min_score, show_default=True,
                     callback=_share, metavar="S", help="Only hits that score S or more."),
        click.option("--min-relevance", type=float, default=0.0, show_default=True,
                     callback=_share, metavar="S",
                     help="Only hits whose estimated chance to answer is S or more."),
        click.option("-c", "--collection", "collections", multiple=True, metavar="NAME",
                     help="Only this collection; repeat for several."),
        click.option("--path", metavar="PREFIX", help="Only below this path."),
        click.option("--tag", "tags", multiple=True, metavar="T",
                     help="Only with this tag; repeat to ask for all of them."),
        click.option("--after", metavar="DATE", callback=_date,
                     help="Only of this date or later: the note's own, else the file's (ISO)."),
        click.option("--before", metavar="DATE", callback=_date, help="Only before this date."),
        click.option("--full", is_flag=True, help="The whole text of each hit."),
        click.option("--line-numbers", is_flag=True, help="Number the lines of --full."),
        click.option("--explain", is_flag=True, help="Show what each score is made of."),
        click.option("--no-rerank", is_flag=True, hidden=not hybrid,
                     help="Leave the fused order as it is."),
        click.option("--no-expand", is_flag=True, hidden=not meaning,
                     help="Search for the query alone, without variants of it."),
        click.option("-C", "--candidates", "--candidate-limit", "candidates",
                     type=click.IntRange(1), default=CANDIDATES, hidden=not hybrid,
                     show_default=True, metavar="N", help="How many of the best are reranked."),
        click.option("--intent", metavar="TEXT", hidden=not meaning,
                     help="What the question is about, to tell meanings apart."),
        click.option("--mode", type=click.Choice(["auto", "server", "local"]), default="auto",
                     help="Who answers: a running server, this process, or this process with a "
                          "vector from the server, if one runs."),
        format_options,
    ]  # fmt: skip

    def wrap(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return wrap


@command(
    "search",
    examples=(
        'qmd search "connection pool" -n 5',
        "qmd search 数据库 -c notes --after 2025-01-01",
        "qmd search 'title:plan -draft \"road map\"' --json",
    ),
)
@search_options(min_score=0.0, hybrid=False, meaning=False)
def search(**options: Any) -> None:
    """
    Search by words (BM25), Chinese included.

    All words must occur; fewer hits than the limit are filled up with looser matches, marked
    as such. "a phrase", -word, word*, OR, title:, path: and tag: are understood; any other
    character is text to be found.
    """
    _run(options, lambda kb, text, arguments: kb.search(text, **arguments), pending=False)


@command(
    "vsearch",
    examples=('qmd vsearch "how to recover from a failed deploy"', "qmd vsearch 如何备份 -n 3"),
)
@search_options(min_score=0.3, hybrid=False)
def vsearch(**options: Any) -> None:
    """
    Search by meaning (vectors); needs 'qmd embed' once.

    The query and the notes need not share a word, nor a language.
    """

    def ask(kb: KnowledgeBase, text: str, arguments: dict[str, Any]) -> SearchReply:
        return kb.vsearch(
            text, expand=not options["no_expand"], intent=options["intent"], **arguments
        )

    _run(options, ask)


@command(
    "query",
    examples=(
        'qmd query "why did we choose SQLite?"',
        "qmd query 为什么选择它 --explain",
        "qmd query $'lex: wal checkpoint\\nvec: how are readers kept from blocking'",
    ),
)
@search_options(min_score=0.0, hybrid=True)
def query(**options: Any) -> None:
    """
    Search by words and by meaning: the best answer.

    Both rankings are fused and the best are reranked. Without vectors it answers from words
    alone and says so. Lines 'lex: …', 'vec: …', 'hyde: …' and 'intent: …' address the
    retrievers one by one.
    """

    def ask(kb: KnowledgeBase, text: str, arguments: dict[str, Any]) -> SearchReply:
        return kb.query(
            text,
            rerank=not options["no_rerank"],
            expand=not options["no_expand"],
            candidates=options["candidates"],
            intent=options["intent"],
            **arguments,
        )

    _run(options, ask)


def _run(
    options: dict[str, Any],
    ask: Callable[[KnowledgeBase, str, dict[str, Any]], SearchReply],
    *,
    pending: bool = True,
) -> None:
    """``pending``: say how many documents the vectors do not know yet."""
    from qmd.cli.render_hits import render_hits

    text = " ".join(options["query"])
    reply, bodies = (
        _from_server(text, options) if options["mode"] == "server" else _here(ask, text, options)
    )
    if reply.degraded:
        note(f"qmd: {reply.degraded}", style="warning")
    elif pending and reply.needs_embedding:
        from qmd.cli.render_reports import count

        waiting = f"{count(reply.needs_embedding, 'document')} without vectors yet"
        note(f"qmd: {waiting}; 'qmd embed' makes them, or 'qmd up' while it runs.")
    render_hits(reply, options["output"], bodies=bodies, line_numbers=options["line_numbers"])
    if not reply.hits and options["output"] == "cli":
        sys.stdout.flush()
        sys.stderr.write(f'No results found for "{one_line(text)}"\n')


def _here(
    ask: Callable[[KnowledgeBase, str, dict[str, Any]], SearchReply],
    text: str,
    options: dict[str, Any],
) -> tuple[SearchReply, list[str] | None]:
    """
    This process searches. It may ask a running server for the query's vector, since loading
    the model takes longer than all the rest.
    """
    asking = session().remembers() and click.get_current_context().info_name != "search"
    with session().open(write=asking, ask_server=options["mode"] == "auto") as kb:
        reply = ask(
            kb,
            text,
            {
                "limit": None if options["everything"] else options["limit"],
                "min_score": options["min_score"],
                "min_relevance": options["min_relevance"],
                "filters": _filters(options),
                "explain": options["explain"],
            },
        )
        bodies = [kb.get(hit.file).text for hit in reply.hits] if options["full"] else None
    return reply, bodies


def _from_server(text: str, options: dict[str, Any]) -> tuple[SearchReply, list[str] | None]:
    from qmd.cli.remote import Remote

    remote = Remote(session().settings.db)
    command = click.get_current_context().info_name or "search"
    reply = remote.search(command, text, options)
    bodies = [remote.text(hit.file) for hit in reply.hits] if options["full"] else None
    return reply, bodies


def _filters(options: dict[str, Any]) -> Filters:
    from qmd.values import Filters

    return Filters(
        collections=options["collections"],
        path=options["path"],
        tags=options["tags"],
        after=options["after"],
        before=options["before"],
    )
