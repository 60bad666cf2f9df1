"""What is indexed, and indexing it: ``qmd collection``, ``index``, ``embed`` and their like."""

from __future__ import annotations

import json
import queue
import shlex
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from qmd import cli
from qmd.cli import complete, runs
from qmd.cli.command import Group, command, mask_option
from qmd.cli.render_reports import render_index_report
from qmd.cli.session import session
from qmd.cli.terminal import confirmed, escape_json, note, one_line, paint, progress_bar, write
from qmd.errors import InputError
from qmd.values.text import counted

if TYPE_CHECKING:
    from qmd.ingest.events import Event
    from qmd.kb import KnowledgeBase
    from qmd.values import Collection


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
    runs.index_everything(collections, verify=verify, embed=embed, ocr=ocr)


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
        runs.embed_and_report(kb, (), embed=embed)
        runs.ocr_and_report(kb, (), ocr=ocr, embed=embed)
    runs.fail_if_incomplete(report)


@command("embed", examples=("qmd embed", "qmd embed -c notes --force"), extra_argument=_NO_FOLDER)
@click.option("-f", "--force", is_flag=True, help="Make all vectors again.")
@_collections
def embed(force: bool, collections: tuple[str, ...]) -> None:
    """
    Make the missing vectors, for 'vsearch' and 'query'.

    It can be interrupted at any time: the next run goes on.
    """
    with session().open(write=True) as kb:
        runs.run_embed(kb, collections, force=force)


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
        runs.run_ocr(kb, collections, force=force)


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
            mark = paint(_MARKS[event.kind], _STYLES[event.kind])
            old_file = f"{event.collection}/{event.previous} -> " if event.previous else ""
            write(f"{mark} {one_line(old_file + (event.file or ''))}\n")
        elif event.kind == "problem" and event.message:
            note(event.message, style="warning")
        elif event.kind == "synced" and not self._in_step:
            self._in_step = True
            report = self._kb.status()
            note(
                f"In step with the disk: {counted(report.total_documents, 'document')} in"
                f" {counted(len(report.collections), 'collection')}. Ctrl-C ends."
            )
            if not report.collections:
                note("There is no collection yet: qmd collection add FOLDER")

    def pause(self) -> None:
        fresh = self._kb.freshness()
        if not fresh.leader and (fresh.watch != "off" or fresh.notices) and not self._waits:
            self._waits = True
            note("Another process keeps this index; waiting to take over.")
            for notice in fresh.notices:
                note(notice, style="warning")
        elif fresh.leader:
            self._waits = False


_COMMANDS = ("add", "list", "show", "set", "remove", "rename", "exclude", "include")


@click.group(
    "collection",
    cls=Group,
    operations="collection",
    sections=lambda: {"Commands": _COMMANDS},
    # tobi/qmd has these names, so its users' habits and scripts carry over.
    aliases={"rm": "remove", "mv": "rename", "info": "show"},
    instead=lambda: cli.commands.INSTEAD_IN_COLLECTION,
    examples=("qmd collection add ~/notes --name notes", "qmd collection list"),
)
def collection() -> None:
    """Add, list, show, change, remove, rename or leave out directories."""


@collection.subcommand(
    "add",
    examples=(
        "qmd collection add ~/notes",
        "qmd collection add . --name docs --mask '**/*.{md,mdx}' --ignore 'drafts/**'",
    ),
)
@click.argument("path", default=".", metavar="[PATH]", shell_complete=complete.folders)
@click.option("--name", help="The name of the collection.  [default: the directory's]")
@mask_option("Which files are documents")
@click.option("--ignore", multiple=True, metavar="GLOB", help="Leave these out; repeatable.")
@click.option("--no-index", is_flag=True, help="Only register it; 'qmd index' fills it.")
def add(path: str, name: str | None, mask: str, ignore: tuple[str, ...], no_index: bool) -> None:
    """
    Add a directory as a collection and index it.

    Without PATH it is the directory that you are in.
    """
    refuse_missing(path)
    with session().open(create=True) as kb:
        overlap = kb.overlap_notice(path)
        added = kb.add_collection(path, name=name, mask=mask, ignore=ignore)
        if overlap:
            note(overlap)
        write(f"Added collection '{one_line(added.name)}': {one_line(added.path)}\n")
        if no_index:
            write(f"Fill it with: qmd index -c {one_line(added.name)}\n")
        else:
            runs.index_and_report(kb, (added.name,))


def refuse_missing(path: str) -> None:
    """
    Raise InputError if ``path`` is no directory.

    Commands call this before they create a database.
    """
    directory = Path(path).expanduser()
    if not directory.is_dir():
        problem = "Not a directory" if directory.exists() else "No such directory"
        raise InputError(f"{problem}: {path}", hint="Give the folder that holds the notes.")


@collection.subcommand(
    "set",
    examples=(
        "qmd collection set notes --mask '**/*.{md,jpg,png}'",
        "qmd collection set notes --ignore 'drafts/**' --ignore '*.tmp.md'",
    ),
)
@click.argument("name", shell_complete=complete.collections)
@click.option("--mask", metavar="GLOB", help="Which files are documents from now on.")
@click.option(
    "--ignore", multiple=True, metavar="GLOB", help="Leave these out, and no others; repeatable."
)
@click.option("--no-ignore", is_flag=True, help="Leave nothing out by such patterns.")
@click.option("--no-index", is_flag=True, help="Only change it; 'qmd index' applies the change.")
def set_(
    name: str, mask: str | None, ignore: tuple[str, ...], no_ignore: bool, no_index: bool
) -> None:
    """
    Change which files of a collection are documents, and index it.

    'qmd undo' does not take this back: 'qmd collection show NAME' prints the mask and the patterns
    to return to.
    """
    if mask is None and not ignore and not no_ignore:
        raise click.UsageError("Nothing to change: give --mask, --ignore or --no-ignore.")
    if ignore and no_ignore:
        raise click.UsageError("--ignore and --no-ignore exclude each other.")
    with session().open(write=True) as kb:
        changed = kb.change_collection(
            name, mask=mask, ignore=ignore if ignore or no_ignore else None
        )
        left_out = f", without {', '.join(changed.ignore)}" if changed.ignore else ""
        write(f"Collection '{one_line(name)}': {one_line(changed.pattern + left_out)}\n")
        if no_index:
            write(f"Apply it with: qmd index -c {one_line(name)}\n")
        else:
            runs.index_and_report(kb, (changed.name,))


@collection.subcommand("remove", examples=("qmd collection remove notes",), destroys=True)
@click.argument("name", shell_complete=complete.collections)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """
    Remove a collection from the index; its files stay as they are.

    'qmd undo' brings it back with its contexts; so does adding its folder again.
    """
    with session().open(write=True) as kb:
        details = kb.collection(name)
        contexts = sum(context.collection == details.name for context in kb.contexts())
        content = f"{counted(details.documents, 'document')} and {counted(contexts, 'context')}"
        question = f"Remove '{one_line(details.name)}' with {content} from the index?"
        if not yes and sys.stdin.isatty() and not confirmed(question, default=False):
            write("Nothing was removed.\n")
            return
        removed = kb.remove_collection(name)
    write(
        f"Removed collection '{one_line(removed.name)}' with {content}; its files stay.\n"
        f"Undo: qmd undo\nLater: {one_line(_adding(removed))}\n"
    )


def _adding(collection: Collection) -> str:
    """The command that adds a collection as it was."""
    words = ["qmd", "collection", "add", collection.path, "--name", collection.name]
    words += ["--mask", collection.pattern]
    for pattern in collection.ignore:
        words += ["--ignore", pattern]
    return shlex.join(words)


@click.group(
    "context",
    cls=Group,
    operations="context",
    sections=lambda: {"Commands": ("add", "list", "rm")},
    aliases={"remove": "rm"},
    examples=('qmd context add ~/notes/work "notes of the platform team"', "qmd context list"),
)
def context() -> None:
    """Say what lies below a path; searches show it with each hit."""


@context.subcommand(
    "add",
    examples=(
        'qmd context add ~/notes/work "notes of the platform team"',
        'qmd context add qmd://notes/2025 "this year"',
        'qmd context add / "everything I wrote"',
    ),
)
@click.argument(
    "words", nargs=-1, required=True, metavar="[PATH] TEXT", shell_complete=complete.documents
)
def add_context(words: tuple[str, ...]) -> None:
    """
    Describe everything below PATH.

    PATH is a directory (default: this one), qmd://collection/prefix, or / for all.
    """
    if len(words) > 2:
        raise click.UsageError("Give a path and one text; put quotes around the text.")
    path, text = words if len(words) == 2 else (".", words[0])
    with session().open(write=True) as kb:
        added = kb.add_context(path, text)
    write(f"Added context for {one_line(added.path)}\n")
