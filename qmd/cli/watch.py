"""``qmd watch`` keeps the index up to date until it is stopped, and prints the changes."""

from __future__ import annotations

import json
import queue
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

import click

from qmd.cli.command import command
from qmd.cli.render_reports import count
from qmd.cli.session import session
from qmd.cli.terminal import escape_json, note, one_line, paint, use_color, write

if TYPE_CHECKING:
    from qmd.ingest.events import Event
    from qmd.kb import KnowledgeBase

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
