"""``qmd index``, ``update``, ``embed`` and ``watch`` bring the database in line with the disk."""

from __future__ import annotations

import json
import queue
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

import click

from qmd.cli import complete
from qmd.cli.command import command
from qmd.cli.progress import progress_bar
from qmd.cli.render_reports import (
    count,
    duration,
    earlier_titles,
    render_embed_report,
    render_index_report,
    render_ocr_report,
)
from qmd.cli.session import session
from qmd.cli.terminal import escape_json, note, one_line, paint, use_color, write
from qmd.errors import InferenceError, QmdError

if TYPE_CHECKING:
    from qmd.ingest.events import Event
    from qmd.kb import KnowledgeBase
    from qmd.values import IndexReport, OcrReport, Status

_collections = click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME",
    help="Only this collection.",
    shell_complete=complete.collections,
)
_embed = click.option(
    "--embed/--no-embed",
    "embed",
    default=None,
    help="Make vectors afterwards.  [default: where a model can run]",
)
_ocr = click.option(
    "--ocr/--no-ocr",
    "ocr",
    default=None,
    help="Read the text in pictures afterwards.  [default: where OCR is installed]",
)
_NO_FOLDER = "'qmd up FOLDER' makes a folder searchable; '-c NAME' chooses a collection."


@command(
    "index",
    examples=("qmd index", "qmd index -c notes --verify", "qmd index --no-embed"),
    extra_argument=_NO_FOLDER,
)
@_collections
@click.option("--verify", is_flag=True, help="Read files that look unchanged, too.")
@_embed
@_ocr
def index(collections: tuple[str, ...], verify: bool, embed: bool | None, ocr: bool | None) -> None:
    """
    Bring the index in line with the disk, and make missing vectors.

    Only changed files are read. Everything is searchable by words before the vectors are
    made; an interruption loses nothing, the next run goes on.
    """
    with session().open(write=True) as kb:
        report = index_and_report(kb, collections, verify=verify)
        embed_and_report(kb, collections, embed=embed)
        ocr_and_report(kb, collections, ocr=ocr, embed=embed)
    fail_if_incomplete(report)


@command("update", examples=("qmd update --pull",), extra_argument=_NO_FOLDER)
@click.option(
    "--pull", is_flag=True, help="'git pull' first, where a collection is a git work tree."
)
@_embed
@_ocr
def update(pull: bool, embed: bool | None, ocr: bool | None) -> None:
    """
    Pull the collections that are git work trees, then index all.

    A pull is a fetch and a fast-forward. It runs no hook, and no program that a collection's
    own git configuration names: a collection with such a key is not pulled, and the message
    names the key. Programs that your own ~/.gitconfig names (ssh, credential helpers,
    git-lfs) do run.
    """
    session().interrupted = "What was indexed stays: run 'qmd index' to go on."

    with session().open(write=True) as kb:
        with progress_bar() as progress:
            report = kb.update(pull=pull, progress=progress)
        render_index_report(report, verb="Updated")
        embed_and_report(kb, (), embed=embed)
        ocr_and_report(kb, (), ocr=ocr, embed=embed)
    fail_if_incomplete(report)


@command("embed", examples=("qmd embed", "qmd embed -c notes --force"), extra_argument=_NO_FOLDER)
@click.option("-f", "--force", is_flag=True, help="Make all vectors again.")
@_collections
def embed(force: bool, collections: tuple[str, ...]) -> None:
    """
    Make the missing vectors, for 'vsearch' and 'query'.

    It can be interrupted at any time: the next run goes on.
    """
    with session().open(write=True) as kb:
        run_embed(kb, collections, force=force)


@command("ocr", examples=("qmd ocr", "qmd ocr -c scans --force"), extra_argument=_NO_FOLDER)
@click.option("-f", "--force", is_flag=True, help="Read all pictures again.")
@_collections
def ocr(force: bool, collections: tuple[str, ...]) -> None:
    """
    Read the text in scans and photos.

    These are pages of PDFs without a text layer, and JPEG and PNG files. The text becomes part
    of their documents; the files stay as they are. A page takes some seconds. It can be
    interrupted at any time: the next run goes on.
    """
    with session().open(write=True) as kb:
        run_ocr(kb, collections, force=force)


def index_and_report(
    kb: KnowledgeBase, collections: Sequence[str], *, verify: bool = False
) -> IndexReport:

    session().interrupted = "What was indexed stays: run 'qmd index' to go on."
    with progress_bar() as progress:
        report = kb.index(collections, verify=verify, progress=progress)
    render_index_report(report)
    return report


def embed_and_report(kb: KnowledgeBase, collections: Sequence[str], *, embed: bool | None) -> None:
    """
    Make the missing vectors after an index run.

    If no model can run, that is an error only if ``embed`` is True.
    """
    if embed is False:
        return

    status = kb.status()
    pending = status.needs_embedding
    if not pending and not status.chunks_outdated:
        _make_token_states(kb, status, collections)
        return
    if embed is None and not kb.can_embed():
        # A model is fetched only with the user's consent, which is to run 'qmd embed'.
        if pending:
            note(
                f"Everything is searchable by words. For search by meaning run 'qmd embed' "
                f"({count(pending, 'document')}): it fetches a model first."
            )
        return
    # How many documents of some collections wait is not counted.
    is_part = collections and {each.name for each in status.collections} - set(collections)
    what = ", ".join(map(one_line, collections)) if is_part else count(pending, "document")
    if status.chunks_outdated:
        write(f"{earlier_titles(status)}.\n")
    if pending:
        write(f"Everything is searchable by words; making vectors of {what}.\n")
    sys.stdout.flush()
    try:
        run_embed(kb, collections, force=False)
    except InferenceError as error:
        if embed:
            raise
        note(f"No vectors: {error}", style="warning")
        if error.hint:
            note(f"hint: {error.hint}")


def ocr_and_report(
    kb: KnowledgeBase, collections: Sequence[str], *, ocr: bool | None, embed: bool | None
) -> None:
    """
    Read the text in pictures after an index run, and make the vectors of what was read.

    If they cannot be read, that is an error only if ``ocr`` is True.
    """
    if ocr is False or not kb.count_unread_pictures():
        return  # `status` reads much more, and imports what few runs need
    status = kb.status()
    if ocr is None and status.ocr_problem:
        return  # 'qmd status' says so: who has thousands of photos may not want their text
    left = duration(status.ocr_left_s)
    write(f"Reading the text of {count(status.pictures_waiting, 'page')} and photos, {left}.\n")
    sys.stdout.flush()
    if run_ocr(kb, collections, force=False).read:
        embed_and_report(kb, collections, embed=embed)


def run_ocr(kb: KnowledgeBase, collections: Sequence[str], *, force: bool) -> OcrReport:
    session().interrupted = "What was read stays: run 'qmd ocr' to go on."
    with progress_bar() as progress:
        report = kb.ocr(collections, force=force, progress=progress)
    render_ocr_report(report)
    return report


def _make_token_states(kb: KnowledgeBase, status: Status, collections: Sequence[str]) -> None:
    """For vectors that an earlier version has made; search works without, so no failure counts."""
    states = status.token_states
    missing = 0 if states is None else status.chunks_embedded - states
    if not missing or not kb.can_embed():
        return
    write(f"Making the token states of {count(missing, 'chunk')}, for a better order of hits.\n")
    sys.stdout.flush()
    with suppress(InferenceError):
        run_embed(kb, collections, force=False)


def run_embed(kb: KnowledgeBase, collections: Sequence[str], *, force: bool) -> None:

    session().interrupted = "The vectors made so far stay: run 'qmd embed' to go on."
    with progress_bar() as progress:
        report = kb.embed(collections, force=force, progress=progress)
    render_embed_report(report)


def fail_if_incomplete(report: IndexReport) -> None:
    """Raise QmdError if some collections could not be scanned; the others are indexed by now."""
    if report.errors:
        raise QmdError(
            "\n".join(report.errors),
            hint="What was indexed of it before is kept. 'qmd status' shows the collections.",
        )


_MARKS = {"added": "+", "updated": "~", "moved": ">", "removed": "-"}
_STYLES = {"added": "ok", "updated": "file", "moved": "file", "removed": "warning"}


@command("watch", examples=("qmd watch", "qmd watch --json", "qmd watch --polling"))
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
@click.option("--polling", is_flag=True, help="Look for changes; do not rely on file events.")
@click.option("--no-embed", is_flag=True, help="Make no vectors.")
def watch(as_json: bool, polling: bool, no_embed: bool) -> None:
    """
    Keep the index in line with the disk until stopped.

    Prints a line for each document that is added (+), changed (~), moved (>) or removed (-).
    New text gets vectors in the background, if a model is on this machine. A running 'qmd
    server' does the same; of several processes one works, and another takes over when it ends.
    """
    session().interrupted = "Run 'qmd watch' to go on; what changes meanwhile is found then."
    signal.signal(signal.SIGTERM, _leave)
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    with session().open(write=True) as kb:
        kb.events.subscribe(events.put)
        kb.keep(embed=not no_embed, polling=polling)
        printer = _JsonEvents() if as_json else _TextEvents(kb)
        while True:
            try:
                # On Windows Ctrl-C cannot interrupt a wait without a timeout.
                event = events.get(timeout=1.0)
            except queue.Empty:
                printer.pause()
                continue
            printer.print_event(event)
            sys.stdout.flush()


def _leave(signal_number: int, frame: FrameType | None) -> None:
    raise click.exceptions.Exit(0)


class _JsonEvents:
    """Prints each event as a line of JSON."""

    def print_event(self, event: Event) -> None:
        write(escape_json(json.dumps(event.as_dict(), ensure_ascii=False)) + "\n")

    def pause(self) -> None:
        """Print nothing; `_TextEvents` prints a remark."""


class _TextEvents:
    """Prints events as text: changed documents to stdout, the rest to stderr."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._in_step = False  # the first scan of the disk is done
        self._waits = False  # another process keeps the index, and the user knows

    def print_event(self, event: Event) -> None:
        if event.kind in _MARKS:
            mark = paint(_MARKS[event.kind], _STYLES[event.kind], use_color(sys.stdout))
            old_file = f"{event.collection}/{event.previous} -> " if event.previous else ""
            write(f"{mark} {one_line(old_file + (event.file or ''))}\n")
        elif event.kind == "problem" and event.message:
            note(event.message, style="warning")
        elif event.kind == "synced" and not self._in_step:
            self._in_step = True
            report = self._kb.status()
            note(
                f"In step with the disk: {count(report.total_documents, 'document')} in"
                f" {count(len(report.collections), 'collection')}. Ctrl-C ends."
            )
            if not report.collections:
                note("There is no collection yet: qmd collection add FOLDER")

    def pause(self) -> None:
        fresh = self._kb.freshness()
        if not fresh.leader and fresh.watch != "off" and not self._waits:
            self._waits = True
            note("Another process keeps this index; waiting to take over.")
        elif fresh.leader:
            self._waits = False
