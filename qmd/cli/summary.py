"""``qmd summary`` appends a text to a Markdown file, in the language of the shell and the note."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qmd.cli import complete
from qmd.cli.command import command, json_option
from qmd.cli.notes import content_options, given_content
from qmd.cli.session import session
from qmd.cli.setting_options import setting_option
from qmd.cli.terminal import note, one_line, write, write_json
from qmd.errors import QmdError, SummaryError
from qmd.files.summary import Language, SummaryMode, checked
from qmd.operations import summary as summary_texts

if TYPE_CHECKING:
    from qmd import KnowledgeBase


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
@content_options
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
    text = _text(source, content)
    mode: SummaryMode = "overwrite" if overwrite else "append"
    language: Language = "zh" if _is_locale_chinese() else "en"
    try:
        checked(text, file, mode)  # first, or wrong arguments would leave an empty database
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
        note(f"Not searchable yet: {written.problem}", style="warning")


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


def _text(source: str | None, content: str | None) -> str:
    data = given_content(source, content)
    if isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SummaryError(f"Invalid content: not UTF-8 at byte {error.start + 1}") from error
