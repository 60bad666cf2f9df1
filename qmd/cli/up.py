"""``qmd up`` indexes folders, embeds them and serves them, in one command."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import qmd.server
from qmd.cli import complete, runs
from qmd.cli.command import command
from qmd.cli.indexing import refuse_missing
from qmd.cli.render_reports import left_out, render_index_report, render_status, time_of_vectors
from qmd.cli.serve import USUAL, address_options, chosen_options, mcp_options
from qmd.cli.session import session
from qmd.cli.terminal import hanging, note, one_line, progress_bar, waiting, write
from qmd.errors import QmdError
from qmd.system import running
from qmd.values import Progress
from qmd.values.text import counted

if TYPE_CHECKING:
    from qmd.ingest.events import Event
    from qmd.kb import KnowledgeBase
    from qmd.server.process import ServerOptions
    from qmd.values import ProgressCallback

_LOOK_S = 0.2  # seconds between two looks whether the server was stopped
#: A word of letters, or Chinese characters between other signs: a part of them may be no word.
_WORD = re.compile("(?<![\u3400-\u9fff])[\u3400-\u9fff]{2,12}(?![\u3400-\u9fff])|[^\\W\\d_]{4,}")
_READ = 100  # documents of each collection whose titles are looked at
_TRIED = 5  # words
_INTERRUPTED = 130  # the exit code of a server that Ctrl-C ended


@command(
    "up",
    usual=("--once", *USUAL),
    examples=("qmd up ~/notes", "qmd up ~/notes ~/work/docs", "qmd up --once ~/notes", "qmd up"),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete.folders)
@address_options
@mcp_options
@click.option("--once", is_flag=True, help="Index and embed, then leave: no server, no watching.")
def up(paths: tuple[str, ...], once: bool, **options: Any) -> None:
    """
    Make folders searchable, and keep their index up to date.

    Each PATH becomes a collection if it is not one yet, and is indexed and embedded. Until
    Ctrl-C, REST and MCP are served over HTTP, and the index follows the disk. You can search
    in another terminal at once; search by words is complete before the vectors are. Ctrl-C
    loses nothing: the next 'qmd up' continues.
    """
    for path in paths:
        refuse_missing(path)
    with session().open(create=bool(paths), write=True) as kb:
        names = [_collection_at(kb, path) for path in paths]
        server = None if once else running.answering(kb.location)
        if once or server:
            _bring_up_to_date(kb, names, once=once)
            if server:
                write(f"\nA server runs for this database already: {server.url}\n")
                _tell_unused(click.get_current_context())
            return
        click.get_current_context().exit(_serve(kb, names, chosen_options(**options)))


def _tell_unused(context: click.Context) -> None:
    """Name the options of a server that were typed, and are those of no server now."""
    typed = [
        parameter.opts[0]
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        and context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
    ]
    if typed:
        note(f"qmd: That server keeps its own options: {', '.join(typed)} changes nothing.")


def _bring_up_to_date(kb: KnowledgeBase, names: Sequence[str], *, once: bool) -> None:
    """Index and embed. Without ``once``, leave the embedding to a process that is at it already."""
    report = runs.index_and_report(kb, names)
    _print_example(kb, names)
    if once or not kb.freshness().embedding:
        runs.embed_and_report(kb, names, embed=None)
    if once:
        runs.ocr_and_report(kb, names, ocr=None, embed=None)
    write("\n")
    render_status(kb.status(), kb.freshness())
    runs.fail_if_incomplete(report)


def _serve(kb: KnowledgeBase, names: Sequence[str], options: ServerOptions) -> int:
    with waiting("Starting the server …"):  # half a second, or some on a busy machine
        serve = qmd.server.process.serve

    session().interrupted = "What was indexed stays: the next 'qmd up' goes on."

    def beside(kb: KnowledgeBase, url: str, stop: threading.Event) -> None:
        _follow(kb, names, url, stop)

    code = serve(lambda: kb, options, beside)
    if code == _INTERRUPTED:
        note("qmd: Stopped. Nothing is lost: the next 'qmd up' goes on.")
    else:
        note(
            "qmd: Ended from outside (SIGTERM), as by 'qmd server stop' or the system. Nothing is"
            " lost: the next 'qmd up' goes on.",
            style="warning",
        )
    return code


def _follow(kb: KnowledgeBase, names: Sequence[str], url: str, stop: threading.Event) -> None:
    """Index, print a report, and keep the index up to date while the server runs."""
    _print_now(hanging(f"Serving at {url} (MCP: {url}/mcp). Ctrl-C ends it.", 0) + "\n")
    try:
        with progress_bar() as draw:
            report = kb.index_before_keeping(names, progress=_until(stop, draw))
    except _StoppedError:
        return
    except QmdError as error:
        # The server goes on, because the keeper tries again.
        note(f"qmd: {error}", style="warning")
    else:
        render_index_report(report)
        for problem in report.errors:
            note(f"qmd: {problem}", style="warning")
        _print_example(kb, names)
    status = kb.status()
    if status.excluded_kinds:
        _print_now(f"Left out: {left_out(status, most=4)} (qmd status)\n")
    pending = status.needs_embedding
    if pending and kb.can_embed():
        what = f"{counted(pending, 'document')} in the background{time_of_vectors(status)}"
        text = f"Everything is searchable by words; making vectors of {what} (qmd status)."
        _print_now(hanging(text, 0) + "\n")
        _follow_embedding(kb, stop)
        return
    if pending:
        _print_now("Everything is searchable by words.\n")
        note(
            f"For search by meaning run 'qmd embed' ({counted(pending, 'document')}): "
            "it fetches a model first."
        )
    else:
        _print_now("Everything is searchable, by words and by meaning.\n")
    kb.keep()


class _StoppedError(Exception):
    """The server was stopped during the first index run; the next run continues it."""


def _until(stop: threading.Event, draw: ProgressCallback | None) -> ProgressCallback:
    """A progress callback that raises _StoppedError after ``stop``."""

    def draw_or_stop(tick: Progress) -> None:
        if stop.is_set():
            raise _StoppedError
        if draw is not None:
            draw(tick)

    return draw_or_stop


def _follow_embedding(kb: KnowledgeBase, stop: threading.Event) -> None:
    """Keep the index up to date, and draw the progress until all vectors are made."""
    is_done = threading.Event()
    with progress_bar() as draw:

        def tell(event: Event) -> None:
            if event.kind != "embedding" or event.done is None:
                return
            if draw is not None:
                draw(Progress("embed", event.done, event.total))
            if event.done == event.total:
                is_done.set()

        unsubscribe = kb.events.subscribe(tell)
        try:
            kb.keep()
            while not is_done.wait(_LOOK_S):
                if stop.is_set():
                    return
        finally:
            unsubscribe()
    _print_now("Everything is searchable by meaning, too.\n")


def _print_now(text: str) -> None:
    """Print to stdout and flush, because a program at the end of a pipe may wait for the text."""
    write(text)
    sys.stdout.flush()


def _collection_at(kb: KnowledgeBase, path: str) -> str:
    """The name of the directory's collection; adds the collection if there is none."""
    resolved = Path(path).expanduser().resolve()
    for collection in kb.collections():
        if Path(collection.path) == resolved:
            return collection.name
    overlap = kb.overlap_notice(path)
    added = kb.add_collection(path)
    if overlap:
        note(overlap)
    write(f"Added collection '{one_line(added.name)}': {one_line(added.path)}\n")
    return added.name


def _print_example(kb: KnowledgeBase, names: Sequence[str]) -> None:
    """Print a search command that has hits: for the longest word of a title, as it says most."""
    documents = [document for name in names or [""] for document in kb.documents(name, limit=_READ)]
    titles = (_WORD.findall(document.title) for document in documents)
    words = (max(title, key=len) for title in titles if title)
    word = next((word for word in islice(words, _TRIED) if kb.search(word, limit=1).hits), None)
    if word is not None:
        write(f"Search it now:  qmd search {word}\n")
    elif documents:
        write('Search it now:  qmd search "some words"\n')
    else:
        note("Nothing to search yet. 'qmd why FILE' names the rule that leaves a file out.")
