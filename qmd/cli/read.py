"""``qmd get``, ``qmd multi-get`` and ``qmd ls`` print documents and list them."""

from __future__ import annotations

import click

from qmd.cli.command import command, json_option
from qmd.cli.formats import format_options
from qmd.cli.render_documents import (
    render_document,
    render_documents,
    render_listing,
)
from qmd.cli.session import session
from qmd.cli.terminal import note, write_json
from qmd.errors import NoMatchError

_line_numbers = click.option(
    "--line-numbers/--no-line-numbers",
    default=True,
    help="Number the lines as an editor does.  [default: numbered]",
)


@command(
    "get",
    examples=(
        "qmd get notes/2025/plan.md",
        "qmd get plan.md:120:40            # 40 lines from line 120",
        "qmd get '#a1b2c3' --no-line-numbers > plan.md",
    ),
)
@click.argument("file", metavar="FILE[:LINE[:COUNT]]")
@click.option("--from", "from_line", type=int, metavar="L", help="Start at this line.")
@click.option("-l", "--lines", type=click.IntRange(1), metavar="N", help="At most N lines.")
@click.option("--full", is_flag=True, hidden=True, expose_value=False)  # it always is
@_line_numbers
@format_options
def get(
    file: str, from_line: int | None, lines: int | None, line_numbers: bool, output: str
) -> None:
    """
    Print a document as it is stored.

    FILE is what a search printed, qmd://…, a path on the disk, the end of a path if only one
    document's path ends that way, or a #docid. Numbered lines are for reading: with
    --no-line-numbers, and in --json, --csv and --xml, the text is exactly the document's.
    """

    with session().open() as kb:
        excerpt = kb.get(file, from_line=from_line, max_lines=lines)
    render_document(excerpt, output, line_numbers=line_numbers and output == "cli")
    if excerpt.more_lines and output == "cli":
        lines_left = (
            "1 more line" if excerpt.more_lines == 1 else f"{excerpt.more_lines:,} more lines"
        )
        note(f"… {lines_left}")


@command(
    "multi-get",
    examples=(
        "qmd multi-get 'notes/2025-*.md'",
        "qmd multi-get 'plan.md, notes/todo.md' -l 50",
        "qmd multi-get 'notes/**/*.md' --max-bytes 200000 --json",
    ),
)
@click.argument("patterns", nargs=-1, required=True, metavar="PATTERN...")
@click.option("-l", "--lines", type=click.IntRange(1), metavar="N", help="At most N lines of each.")
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=10240,
    show_default=True,
    metavar="N",
    help="Leave out larger documents, and say so.",
)
@_line_numbers
@format_options
def multi_get(
    patterns: tuple[str, ...], lines: int | None, max_bytes: int, line_numbers: bool, output: str
) -> None:
    """
    Print several documents, by glob or list of names.

    PATTERN is a glob, or names separated by commas. Several PATTERNs are a list of names, so
    a glob without quotes, which the shell expands, works too. Names that match nothing are
    listed on stderr, and the exit code is then 1.
    """

    with session().open() as kb:
        reply = kb.multi_get(",".join(patterns), max_lines=lines, max_bytes=max_bytes)
    render_documents(reply.items, output, line_numbers=line_numbers and output == "cli")
    if reply.errors:
        raise NoMatchError("\n".join(reply.errors))


@command("ls", examples=("qmd ls", "qmd ls notes/2025", "qmd ls notes --json"))
@click.argument("prefix", metavar="[COLLECTION[/PREFIX]]", default="")
@json_option
def ls(prefix: str, as_json: bool) -> None:
    """List documents: docid, size, time of change, file, title."""

    with session().open() as kb:
        documents = kb.documents(prefix)
    if as_json:
        write_json(documents)
    else:
        render_listing(documents)
