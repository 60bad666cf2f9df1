"""``qmd summary`` appends a text to a Markdown file, as the MCP tool update_summary does."""

from __future__ import annotations

import click

from qmd.cli import complete
from qmd.cli.command import command, json_option
from qmd.cli.content import content_options, given_content
from qmd.cli.session import session
from qmd.cli.setting_options import setting_option
from qmd.cli.terminal import note, one_line, write, write_json
from qmd.errors import QmdError, SummaryError


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

    FILE is a path on the disk. An appended text gets a heading with the time. Missing folders
    are created; 'qmd restore' brings back what --overwrite replaces. Searches find the text at
    once.
    """
    from qmd.files.summary import SummaryMode, checked
    from qmd.tools import summary_texts

    text = _text(source, content)
    mode: SummaryMode = "overwrite" if overwrite else "append"
    try:
        checked(text, file, mode)  # first, or wrong arguments would leave an empty database
        with session().open(create=True) as kb:
            try:
                written = kb.summary.update(text, file, mode)
            except QmdError as error:
                raise summary_texts.in_words(error, file, kb.policy) from error
    except SummaryError as error:
        if as_json:
            write_json(summary_texts.failure(error))
        raise
    if as_json:
        write_json(summary_texts.success(written))
        return
    write(one_line(summary_texts.message(written)) + "\n")
    if written.problem is not None:
        note(f"Not searchable yet: {written.problem}", style="warning")


def _text(source: str | None, content: str | None) -> str:
    data = given_content(source, content)
    if isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SummaryError(f"Invalid content: not UTF-8 at byte {error.start + 1}") from error
