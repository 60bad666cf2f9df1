"""``qmd properties`` lists the properties of documents, and the values of one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import click

from qmd.cli.command import command, json_option
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, paint, use_color, write, write_json


@command(
    "properties",
    examples=("qmd properties", "qmd properties status", "qmd properties --json"),
)
@click.argument("key", default="")
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="At most N lines.")
@json_option
def properties(key: str, limit: int | None, as_json: bool) -> None:
    """
    List the properties of documents; with KEY, its values.

    Each line begins with the number of documents. Properties are the values of frontmatter and of
    inline fields (key:: value). A search takes conditions on them, such as status:draft.
    """
    rows: list[tuple[int, str, str]]
    with session().open() as kb:
        if key:
            values = kb.property_values(key, limit=limit)
            rows = [(each.documents, each.value or "(none)", each.kind) for each in values]
        else:
            summaries = kb.properties()[:limit]
            rows = [(each.documents, each.key, _counts(each.kinds)) for each in summaries]
    if as_json:
        write_json(values if key else summaries)
    elif not rows:
        note("No document has properties.")
    else:
        _write(rows)


def _counts(kinds: Mapping[str, int]) -> str:
    """``number``, or ``12 number, 3 text`` if the values are of several kinds."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())


def _write(rows: Sequence[tuple[int, str, str]]) -> None:
    color = use_color(sys.stdout)
    width = max(len(f"{documents:,}") for documents, _, _ in rows)
    for documents, name, kinds in rows:
        count = paint(f"{documents:>{width},}", "dim", color)
        write(f"{count}  {paint(one_line(name), 'file', color)}  {paint(kinds, 'dim', color)}\n")
