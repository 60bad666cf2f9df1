"""``qmd outline`` lists the headings of a document."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from qmd.cli.command import command, json_option
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, paint, use_color, write, write_json

if TYPE_CHECKING:
    from qmd.values.outline import DocumentOutline


@command(
    "outline",
    examples=("qmd outline plan", "qmd outline 'plan#Next steps'", "qmd outline MOC --json"),
)
@click.argument("file", metavar="FILE[#HEADING]")
@json_option
def outline(file: str, as_json: bool) -> None:
    """
    List the headings and named blocks of a document, with lines.

    FILE is a name as 'qmd get' takes it; with #HEADING, those of that section.
    """
    with session().open() as kb:
        outlined = kb.outline(file)
    if as_json:
        write_json(outlined)
    else:
        _write(outlined)


def _write(outlined: DocumentOutline) -> None:
    color = use_color(sys.stdout)
    rows = [
        (heading.line, f"{'  ' * (heading.level - 1)}{one_line(heading.text)}")
        for heading in outlined.headings
    ]
    rows += [(block.line, paint(f"^{block.block}", "dim", color)) for block in outlined.blocks]
    for line, text in sorted(rows, key=lambda row: row[0]):
        write(f"{paint(f'{line:>5}', 'line', color)}  {text}\n")
    rest = outlined.total - len(outlined.headings)
    if rest:
        note(f"… {rest:,} more headings: name a section, as in FILE#Heading")
    elif not rows:
        note(f"{outlined.document.file} has no headings.")
