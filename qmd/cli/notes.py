"""``qmd note``, ``summary`` and ``posts`` read and write as the MCP tools do, with their texts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmd import files
from qmd.cli import complete
from qmd.cli.command import Group, command, json_option, setting_option
from qmd.cli.session import session
from qmd.cli.terminal import harmless, note, one_line, write, write_json, write_text
from qmd.errors import DatabaseBusyError, NoteExistsError, QmdError, ReadOnlyError, SummaryError
from qmd.files.posts import require_archive
from qmd.operations import notes as notes_texts
from qmd.operations import summary as summary_texts
from qmd.operations.definition import Replied
from qmd.operations.posts import PostAnswer, error_in_words
from qmd.operations.texts import MCP
from qmd.system.user_dirs import is_missing
from qmd.values.wire import to_wire
from qmd.values.writing import Language, SummaryMode

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase
    from qmd.operations import Operation


# --- the text to write ---------------------------------------------------------------

F = TypeVar("F", bound=Callable[..., Any])


def _content_options(function: F) -> F:
    """Add the parameters ``source`` and ``content``, which `_given_content` takes."""
    function = click.option("--content", metavar="TEXT", help="The text; '-' reads it from stdin.")(
        function
    )
    return click.argument("source", metavar="[-]", required=False)(function)


def _given_content(source: str | None, content: str | None) -> str | bytes:
    """
    The text of ``--content``, or the bytes of stdin.

    Bytes of ``--content`` that are not valid in the shell's encoding are lone surrogates.

    Raises:
        UsageError: The user gave no text, or both kinds.
    """
    if source not in (None, "-"):
        raise click.UsageError(f"Unexpected argument: {source}. The text goes to --content.")
    if content is not None and content != "-":
        if source is not None:
            raise click.UsageError("Give the text by --content or on stdin, not both.")
        return content
    if source is None and content is None and sys.stdin.isatty():
        raise click.UsageError("Give the text by --content TEXT, or '-' to read it from stdin.")
    return sys.stdin.buffer.read()


# --- notes ---------------------------------------------------------------------------


@click.group(
    "note",
    cls=Group,
    operations="note",
    examples=(
        "qmd note list",
        "qmd note read notes/2025/plan",
        "echo '- call the bank' | qmd note create notes/todo --append -",
    ),
)
@setting_option("vault")
def note_() -> None:
    """
    Read, write and list notes, as the tools of AI clients do.

    A PATH begins with a collection, as in the output of a search; with --vault it begins in
    that directory. If it does not end in .md, that is added.
    """


def read(operation: Operation, arguments: Mapping[str, Any], *, as_json: bool) -> None:
    with _opened_for_notes() as kb:
        result = operation.run(kb, **arguments)
    if result.path != result.requested:
        note(f"{result.requested}: {result.path} is the one note that is meant.")
    if as_json:
        write_json(notes_texts.NoteResult(success=True, data=result.text, path=result.path))
    elif sys.stdout.isatty():
        write(harmless(result.text))
    else:
        _write_exactly(result.text)


@note_.subcommand(
    "create",
    examples=(
        "qmd note create notes/ideas/boat --content '# A boat'",
        "pandoc -t gfm report.docx | qmd note create notes/report -",
        "date | qmd note create notes/log --append -",
        "qmd note create notes/report --overwrite - < report.md",
    ),
)
@click.argument("path", shell_complete=complete.documents)
@click.option("--append", is_flag=True, help="Put the text behind what is there.")
@click.option("--overwrite", is_flag=True, help="Replace what is there.")
@_content_options
@setting_option("vault")
@json_option
def create(
    path: str,
    source: str | None,
    append: bool,
    overwrite: bool,
    content: str | None,
    as_json: bool,
) -> None:
    """
    Write a new note.

    '-' takes its text from stdin, every byte as it is. Missing folders are created. An existing
    note is left alone, unless --append adds the text to its end or --overwrite replaces it;
    'qmd undo' takes either back. Where a note ends with a line end, it still does after
    --append --content. Searches find the new text at once.
    """
    if append and overwrite:
        raise click.UsageError("--append and --overwrite exclude each other.")
    data = _text(source, content)
    with _opened_for_notes(to_write=True) as kb:
        try:
            created = kb.notes.create(
                path,
                data,
                mode="append" if append else "overwrite" if overwrite else "new",
                keep_last_line_end=True,
            )
        except NoteExistsError as error:
            error.hint = "--overwrite replaces it, and --append adds the text to its end."
            raise
    message = notes_texts.written(created)
    if created.problem is not None:
        note(f"Not searchable: {created.problem}", style="warning")
    if as_json:
        write_json(notes_texts.NoteResult(success=True, data=message, path=created.path))
    else:
        write(f"{one_line(message)}\n")


def list_(operation: Operation, arguments: Mapping[str, Any], *, as_json: bool) -> None:
    with _opened_for_notes() as kb:
        listing = operation.run(kb, **arguments)
    text = notes_texts.listing(listing)
    if as_json:
        kinds = {True: "folder", False: "file"}
        entries = [
            {"name": entry.name, "type": kinds[entry.is_folder]} for entry in listing.entries
        ]
        result = notes_texts.NoteResult(success=True, data=text, path=listing.path)
        write_json({**to_wire(result), "entries": entries})
    else:
        lines = (one_line(line) for line in text.split("\n"))
        write("".join(f"{line}\n" for line in lines))


@contextmanager
def _opened_for_notes(*, to_write: bool = False) -> Iterator[Any]:
    """Open what has the notes; a vault that is a directory can be read without a database."""
    command_session = session()
    vault = command_session.settings.vault
    if vault is not None and not to_write and is_missing(command_session.settings.db):
        yield SimpleNamespace(
            notes=files.notes.Notes(lambda: files.vault.Vault.of_directory(vault))
        )
        return
    with command_session.open(write=to_write, create=to_write and vault is not None) as kb:
        yield kb


def _text(source: str | None, content: str | None) -> str | bytes:
    data = _given_content(source, content)
    if isinstance(data, str):
        try:
            data.encode()
        except UnicodeEncodeError:  # the shell passed bytes of some other encoding
            return os.fsencode(data)
    elif not data and source is None and content is None:
        # A script's stdin is often empty by accident, which must not empty a note.
        raise click.UsageError("There is no text on stdin. For an empty note give --content ''.")
    return data


def _write_exactly(text: str) -> None:
    """Write text in UTF-8, and keep its line ends on every platform."""
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        write(text)
    else:
        sys.stdout.flush()
        buffer.write(text.encode())


# --- summaries -----------------------------------------------------------------------


@command(
    "summary",
    examples=(
        "qmd summary ~/notes/week.md --content 'Shipped the parser.'",
        "pbpaste | qmd summary ~/notes/meeting.md -",
        "qmd summary plan.md --overwrite - < draft.md",
    ),
)
@click.argument("file", shell_complete=complete.files)
@click.option("--overwrite", is_flag=True, help="Replace what the file holds.")
@_content_options
@setting_option("write_roots")
@json_option
def summary(
    file: str, source: str | None, overwrite: bool, content: str | None, as_json: bool
) -> None:
    """
    Append a text to a Markdown file.

    FILE is a path on the disk; where it begins with no folder here, it may be collection/path. An
    appended text gets a heading with the time, in Chinese if the note or the locale is. Missing
    folders are created; 'qmd undo' brings back what --overwrite replaces. Searches find the text
    at once.
    """
    text = _text_of_summary(source, content)
    mode: SummaryMode = "overwrite" if overwrite else "append"
    language: Language = "zh" if _is_locale_chinese() else "en"
    try:
        # First, or wrong arguments would leave an empty database.
        files.notes.checked_arguments(text, file, mode)
        with session().open(create=True) as kb:
            file = _on_disk(kb, file)
            try:
                written = kb.summary.update(text, file, mode, language=language)
            except QmdError as error:
                raise summary_texts.in_words(error, file, kb.policy, language) from error
    except SummaryError as error:
        if as_json:
            write_json(summary_texts.failure(error))
        raise
    if as_json:
        write_json(summary_texts.success(written, language))
        return
    write(one_line(summary_texts.message(written, language)) + "\n")
    if written.problem is not None:
        note(f"Not searchable: {written.problem}", style="warning")


def _on_disk(kb: KnowledgeBase, file: str) -> str:
    """The path of a file that is named as lists name it; any other name as it is."""
    collection, _, rest = file.removeprefix("qmd://").partition("/")
    roots = {each.name: each.path for each in kb.collections()}
    if not rest or collection not in roots or os.path.lexists(collection):
        return file
    return str(Path(roots[collection], rest))


def _is_locale_chinese() -> bool:
    names = (os.environ.get(each) for each in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return next(filter(None, names), "").lower().startswith("zh")


def _text_of_summary(source: str | None, content: str | None) -> str:
    data = _given_content(source, content)
    if isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SummaryError(f"Invalid content: not UTF-8 at byte {error.start + 1}") from error


@click.group(
    "posts",
    cls=Group,
    operations="posts",
    examples=(
        "qmd posts authors --posts-dir ~/afdian",
        "qmd posts search 数据库 --author q9adg",
        "QMD_POSTS_DIR=~/afdian qmd posts list q9adg",
    ),
)
@setting_option("posts_dir")
def posts() -> None:
    """
    List, read and search an archive of posts: AUTHOR/ALBUM/POST.md.

    The archive becomes a collection, if it is not part of one. Its posts are found at once,
    also those that have changed since the last 'qmd index'.
    """


def run_posts(operation: Operation, arguments: Mapping[str, Any], *, as_json: bool) -> None:
    with _archive() as kb:
        value = operation.run(kb, **arguments)
    assert operation.tool is not None and operation.tool.reply is not None
    text, *problems = operation.tool.reply(Replied(value, arguments), MCP).blocks
    if isinstance(value, PostAnswer) and value.matching and not value.post:
        value = {"matches": to_wire(value.matching.posts)}
    elif isinstance(value, PostAnswer):
        value = value.post
    if as_json:
        write_json(value)
    else:
        write_text(text.text if text.text.endswith("\n") else text.text + "\n")
    for problem in problems:
        note(problem.text, style="warning")


@contextmanager
def _archive() -> Iterator[KnowledgeBase]:
    """
    Open the archive of posts, and make it a collection if the database can be written.

    Raises:
        QmdError: Any error of the block too; the message is that of the MCP tools.
    """
    try:
        # First, or an empty database is left behind.
        require_archive(session().settings.posts_dir)
        with _opened_for_posts() as kb:
            try:
                added = kb.posts.adopt()
            except (ReadOnlyError, DatabaseBusyError):
                added = None
            yield kb
    except QmdError as error:
        raise error_in_words(error) from error.__cause__
    if added is not None:  # printed last, so that an error has stderr for itself
        note(
            f"Added collection '{added.name}': {added.path}. "
            f"For 'qmd search' run: qmd index -c {added.name}"
        )


def _opened_for_posts() -> KnowledgeBase:
    """Open the knowledge base for writing, or for reading if the database cannot be written."""
    try:
        return session().open(create=True)
    except ReadOnlyError:
        return session().open()
