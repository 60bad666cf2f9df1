"""``qmd index``, ``update``, ``embed`` and ``watch`` bring the database in line with the disk."""

from __future__ import annotations

import json
import queue
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

import click

from qmd.cli import complete
from qmd.cli.command import command
from qmd.cli.progress import progress_bar
from qmd.cli.render_reports import count, render_index_report
from qmd.cli.runs import (
    embed_and_report,
    fail_if_incomplete,
    index_everything,
    ocr_and_report,
    run_embed,
    run_ocr,
)
from qmd.cli.session import session
from qmd.cli.terminal import escape_json, note, one_line, paint, use_color, write

if TYPE_CHECKING:
    from qmd.ingest.events import Event
    from qmd.kb import KnowledgeBase

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
    index_everything(collections, verify=verify, embed=embed, ocr=ocr)


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
