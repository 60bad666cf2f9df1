"""``qmd links``: the links in a note, and the commands that look at links."""

from __future__ import annotations

import click

from qmd.cli.command import Group


@click.group(
    "links",
    cls=Group,
    default="of",
    operations="links",
    examples=("qmd links notes/MOC.md", "qmd links backlinks MOC", "qmd links broken -c notes"),
)
def links() -> None:
    """
    List the links in a note, and where each leads.

    Embeds and web addresses are links, too. FILE is a name as 'qmd get' takes it. The commands
    list the links that lead to a note, notes without such links, and links that lead nowhere; a
    note that is named like one of them is 'qmd links of NAME'.
    """
