"""``qmd import`` takes over folders, contexts and notes from other programs."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click

import qmd
from qmd.cli import complete
from qmd.cli.command import Command, Group, json_option, mask_option, together
from qmd.cli.runs import index_and_report
from qmd.cli.session import session
from qmd.cli.terminal import hanging, one_line, progress_bar, write, write_json
from qmd.errors import InputError
from qmd.system.user_dirs import is_missing
from qmd.values.text import counted

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase
    from qmd.transfer.conversations import ConversationProgram
    from qmd.transfer.programs import Program
    from qmd.values.transfer import ConversationsReport, ImportReport, NotTaken, UnpackReport

_MAX_HOOK = 1 << 20  # bytes of what a hook gets


class _ImportGroup(Group):
    """Tells a person who gave a file at once what reads it."""

    def remedy(self, ctx: click.Context, name: str) -> str:
        if name.lower().endswith((".yml", ".yaml")):
            return f"For a file of tobi/qmd: qmd import tobi {name}"
        if name.lower().endswith(".zip") or Path(name).expanduser().exists():
            return (
                f"For an export of qmd: qmd import qmd {name}. For an archive of notes:"
                f" qmd import markdown-zip {name} FOLDER. For a folder of notes: qmd up {name}"
            )
        return super().remedy(ctx, name)


@click.group(
    "import",
    cls=_ImportGroup,
    examples=("qmd import tobi --dry-run", "qmd import obsidian"),
)
def import_() -> None:
    """Take over folders and contexts from other programs."""


#: The options that all imports of folders share.
folder_options = together(
    click.option("--dry-run", is_flag=True, help="Say what would be added, and add nothing."),
    click.option("--no-index", is_flag=True, help="Only register them; 'qmd index' fills them."),
    json_option,
)


@import_.subcommand(
    "tobi",
    examples=(
        "qmd import tobi --dry-run",
        "qmd import tobi",
        "qmd --index work import tobi    # from tobi's index of that name",
        "qmd import tobi ~/src/site/.qmd/index.yml",
    ),
)
@click.argument("source", required=False, metavar="[INDEX|FILE]", shell_complete=complete.files)
@folder_options
def tobi(source: str | None, **options: bool) -> None:
    """
    Take over the collections and contexts of tobi/qmd.

    It reads index.yml in ~/.config/qmd, or the file of the named INDEX, and changes nothing there.
    What qmd does not take, such as update commands and models, is listed. What is a collection or
    a context here already stays as it is, so the command may be repeated.
    """
    _import_from("tobi", source or session().index, **options)


@import_.subcommand(
    "basic-memory", examples=("qmd import basic-memory --dry-run", "qmd import basic-memory")
)
@click.argument("file", required=False, shell_complete=complete.files)
@folder_options
def basic_memory(file: str | None, **options: bool) -> None:
    """
    Make a collection of each project of basic-memory.

    It reads config.json in ~/.basic-memory, or FILE. Projects in the cloud are listed.
    """
    _import_from("basic-memory", file, **options)


@import_.subcommand("obsidian", examples=("qmd import obsidian --dry-run", "qmd import obsidian"))
@click.argument("file", required=False, shell_complete=complete.files)
@folder_options
def obsidian(file: str | None, **options: bool) -> None:
    """
    Make a collection of each vault that Obsidian has on this machine.

    It reads the obsidian.json of this machine, or FILE.
    """
    _import_from("obsidian", file, **options)


def _import_from(
    program: Program, file: str | None, *, dry_run: bool, no_index: bool, as_json: bool
) -> None:
    plan = qmd.KnowledgeBase.plan_import(program, file)
    with _opened(dry_run) as kb:
        report = kb.import_folders(plan, dry_run=dry_run)
        if as_json:
            write_json(report)
        else:
            _render(report)
        _index_new(kb, report, no_index=no_index, as_json=as_json)


def _index_new(kb: KnowledgeBase, report: ImportReport, *, no_index: bool, as_json: bool) -> None:
    """Index the new collections, and say what is left to do."""
    names = [each.name for each in report.collections if each.state == "new"]
    if not names or report.dry_run:
        return
    if not no_index:
        _index(kb, names, as_json=as_json)
    if not as_json:
        hint = "Fill them with: qmd index" if no_index else "For search by meaning run: qmd embed"
        write(f"{hint}\n")


def _index(kb: KnowledgeBase, names: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        kb.index(names)
    else:
        index_and_report(kb, names)


def _render_conversations(report: ConversationsReport) -> None:
    would = "Would write" if report.dry_run else "Wrote"
    write(
        f"{would} {counted(report.new, 'new note')} to {one_line(report.folder)}, {would.lower()}"
        f" {counted(report.updated, 'note')} anew; {report.unchanged:,} stay as they are\n"
    )
    if report.problem is not None:
        write(f"Not searchable yet: {one_line(report.problem)}\n")
    if report.change is not None:
        write(f"Undo: qmd undo {report.change}\n")


def _conversations(
    program: ConversationProgram, *examples: str
) -> Callable[[Callable[[], None]], Command]:
    """Declare the import of what a program keeps of conversations, with a function for its help."""

    def declare(described: Callable[[], None]) -> Command:
        @import_.subcommand(program, render=_render_conversations, examples=examples)
        @click.argument("file", shell_complete=complete.files)
        @click.option(
            "--into",
            "folder",
            metavar="FOLDER",
            shell_complete=complete.documents,
            help="collection/folder for new notes.  [default: conversations, in the first]",
        )
        @click.option("--dry-run", is_flag=True, help="Say what would be written; write nothing.")
        @wraps(described)
        def run(file: str, folder: str | None, dry_run: bool) -> ConversationsReport:
            if file == "-" and program in ("claude-code", "codex"):
                file = _transcript_of_hook(sys.stdin.buffer.read(_MAX_HOOK))
            with session().open(write=True) as kb, progress_bar() as progress:
                return kb.import_conversations(
                    program, file, folder=folder, dry_run=dry_run, progress=progress
                )

        return run

    return declare


@_conversations(
    "chatgpt",
    "qmd import chatgpt ~/Downloads/chatgpt-export.zip --dry-run",
    "qmd import chatgpt export.zip --into notes/chats",
)
def chatgpt() -> None:
    """
    Make a note of each conversation that ChatGPT has exported.

    FILE is the archive of 'Export data'. An export of later adds what is new and writes anew what
    went on; all else stays as it is. 'qmd undo' takes it back.
    """


@_conversations("claude", "qmd import claude ~/Downloads/data.zip --dry-run")
def claude() -> None:
    """
    Make a note of each conversation that Claude has exported.

    FILE is the archive of 'Export data'. An export of later adds what is new and writes anew what
    went on; all else stays as it is. 'qmd undo' takes it back.
    """


@_conversations(
    "claude-code",
    "qmd import claude-code ~/.claude/projects/-home-me-site/3f9a.jsonl",
    "qmd import claude-code -    # what a hook of Claude Code gets: docs/memory.md",
)
def claude_code() -> None:
    """
    Make a note of a session of Claude Code.

    FILE is its transcript; with - the JSON that a hook gets says where it is. The note has your
    questions with the last answer to each, the files that were changed, and what is still to do.
    Of a session that went on it is written anew.
    """


@_conversations(
    "codex",
    "qmd import codex ~/.codex/sessions/2026/11/25/rollout-019b.jsonl",
    "qmd import codex -    # what a hook of Codex gets: docs/memory.md",
)
def codex() -> None:
    """
    Make a note of a session of Codex.

    FILE is its rollout; with - the JSON that a hook gets says where it is. The note has your
    questions with the last answer to each, the files that were changed, and what is still to do.
    Of a session that went on it is written anew.
    """


@import_.subcommand(
    "qmd",
    examples=(
        "qmd import qmd ~/qmd-notes.zip --dry-run",
        "qmd import qmd ~/qmd-notes.zip --move /home/old/notes=~/notes",
    ),
)
@click.argument("export", metavar="FOLDER|FILE.zip", shell_complete=complete.files)
@click.option(
    "--move",
    "moves",
    multiple=True,
    metavar="OLD=NEW",
    help="The folder OLD of the other machine is NEW here; repeat for several.",
)
@click.option("--settings", is_flag=True, help="Write its config.toml, too, if there is none.")
@folder_options
def export_of_qmd(
    export: str,
    moves: tuple[str, ...],
    settings: bool,
    dry_run: bool,
    no_index: bool,
    as_json: bool,
) -> None:
    """
    Add what 'qmd db export' wrote on another machine.

    Collections, contexts and conversations are added to those that are here; a history only to a
    database without one. The folders of the collections must be on this machine: say with --move
    where. Read config.toml before --settings: settings name programs that qmd starts.
    """
    with _opened(dry_run) as kb:
        report = kb.import_export(export, moves=tuple(map(_move, moves)), dry_run=dry_run)
        written = settings and not dry_run and _write_settings(report.settings)
        if as_json:
            write_json(report)
        else:
            _render(report.folders)
            write(
                f"History: {counted(report.changes, 'change')},"
                f" {counted(report.revisions, 'revision')};"
                f" {counted(report.chats, 'conversation')}\n"
            )
            if report.settings is not None and not written:
                write("Settings: not taken. --settings writes config.toml where there is none.\n")
        _index_new(kb, report.folders, no_index=no_index, as_json=as_json)


@import_.subcommand(
    "markdown-zip",
    examples=(
        "qmd import markdown-zip ~/Downloads/Export.zip ~/notes/imported",
        "qmd import markdown-zip notes.zip ~/notes --encoding gbk --dry-run",
    ),
)
@click.argument("file", shell_complete=complete.files)
@click.argument("folder", shell_complete=complete.folders)
@click.option("--name", help="The name of the collection.  [default: the folder's]")
@mask_option("Which files are documents", "**/*.md")
@click.option("--encoding", help="Of file names that do not say theirs.  [default: detected]")
@folder_options
def markdown_zip(
    file: str,
    folder: str,
    name: str | None,
    mask: str,
    encoding: str | None,
    dry_run: bool,
    no_index: bool,
    as_json: bool,
) -> None:
    """
    Unpack a ZIP archive of notes, and make it a collection.

    Notion, Joplin, Bear and others export such archives. A file that is there already is never
    replaced, and nothing is written outside of FOLDER.
    """
    report = qmd.KnowledgeBase.unpack_notes(file, folder, encoding=encoding, dry_run=dry_run)
    if as_json:
        write_json(report)
    else:
        _render_unpacked(report)
    if dry_run:
        return
    with session().open(create=True) as kb:
        if report.files:
            kb.record_import(Path(file).absolute(), report.folder)
        parents = {Path(report.folder), *Path(report.folder).parents}
        around = [each.name for each in kb.collections() if Path(each.path) in parents]
        names = around or [kb.add_collection(report.folder, name=name, mask=mask).name]
        if not as_json:
            write(f"Collection: {one_line(names[0])}\n")
        if not no_index:
            _index(kb, names, as_json=as_json)


def _render_unpacked(report: UnpackReport) -> None:
    would = "Would write" if report.dry_run else "Wrote"
    write(
        f"{would} {counted(report.files, 'file')} ({report.bytes:,} bytes)"
        f" to {one_line(report.folder)}\n"
    )
    if report.present:
        write(f"  {counted(report.present, 'file')} with the same name were there\n")
    if report.encoding != "utf-8":
        write(f"  File names are in {report.encoding}; --encoding names another one\n")
    render_not_taken(report.not_taken)


def _transcript_of_hook(sent: bytes) -> str:
    """
    The file that the input of a hook names.

    Raises:
        InputError: It names none.
    """
    try:
        path = json.loads(sent)["transcript_path"]
    except (ValueError, KeyError, TypeError, RecursionError):
        path = None
    if not isinstance(path, str) or not path:
        raise InputError(
            "The input names no transcript.",
            hint="A hook of Claude Code or Codex sends transcript_path.",
        )
    return path


def _move(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise click.BadParameter(f"{text!r} is not OLD=NEW.", param_hint="--move")
    return old, str(Path(new).expanduser().absolute())


def _write_settings(text: str | None) -> bool:
    """Write config.toml if there is none; whether it was written."""
    file = session().settings.config_file
    if text is None or file.exists():
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return True


@contextmanager
def _opened(dry_run: bool) -> Iterator[KnowledgeBase]:
    """The database; where there is none, a new one, which a dry run throws away."""
    if dry_run and is_missing(session().settings.db):
        with (
            tempfile.TemporaryDirectory() as folder,
            qmd.KnowledgeBase.open(Path(folder) / "empty.sqlite", create=True) as empty,
        ):
            yield empty
    else:
        with session().open(create=not dry_run) as kb:
            yield kb


def _render(report: ImportReport) -> None:
    would = "Would take" if report.dry_run else "Took"
    new = [each for each in report.collections if each.state == "new"]
    write(
        f"{would} {counted(len(new), 'collection')} and {counted(report.contexts, 'context')}"
        f" from {one_line(report.source)}\n"
    )
    for each in report.collections:
        details = [each.pattern]
        if each.ignore:
            details.append("without " + ", ".join(each.ignore))
        if not each.included:
            details.append("searched only if named")
        if each.contexts:
            details.append(counted(each.contexts, "context"))
        if each.state == "present":
            details.append("a collection before")
        write(f"  {one_line(each.name)}  {one_line(each.path)}\n")
        write(f"    {hanging(one_line(' · '.join(details)), 4)}\n")
    render_not_taken(report.not_taken)


def render_not_taken(not_taken: tuple[NotTaken, ...]) -> None:
    if not_taken:
        write("Not taken:\n")
    for each in not_taken:
        write(f"  {one_line(each.subject)}\n    {hanging(one_line(each.reason), 4)}\n")
