"""``qmd outline`` lists the headings of a document."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from qmd.cli import complete
from qmd.cli.command import command
from qmd.cli.listings import ListingOptions, ListingView, listing_options
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, paint, use_color, write

if TYPE_CHECKING:
    from qmd.values.outline import DocumentOutline


@command(
    "outline",
    pages=True,
    examples=("qmd outline plan", "qmd outline 'plan#Next steps'", "qmd outline MOC --json"),
)
@click.argument("file", metavar="FILE[#HEADING]", shell_complete=complete.documents)
@listing_options()
def outline(file: str, options: ListingOptions) -> None:
    """
    List the headings and named blocks of a document, with lines.

    FILE is a name as 'qmd get' takes it; with #HEADING, those of that section.
    """
    with session().open() as kb:
        view = options.view(kb)
        outlined = view.fit(kb.outline(file), "headings", "blocks")
    if options.as_json:
        view.write_json(outlined)
    else:
        _write(outlined, view)


def _write(outlined: DocumentOutline, view: ListingView) -> None:
    color = use_color(sys.stdout)
    rows = [
        (heading.line, f"{'  ' * (heading.level - 1)}{one_line(heading.text)}")
        for heading in outlined.headings
    ]
    rows += [(block.line, paint(f"^{block.block}", "dim", color)) for block in outlined.blocks]
    file = outlined.document.file
    for line, text in sorted(rows, key=lambda row: row[0]):
        place = view.where.link(paint(f"{line:>5}", "line", color), file, line)
        write(f"{place}  {text}\n")
    rest = outlined.rest("--max-tokens")
    if rest:
        note(rest)
    elif not rows:
        note(f"{file} has no headings.")
