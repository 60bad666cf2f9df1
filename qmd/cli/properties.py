"""``qmd properties`` lists the properties of documents, and the values of one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import click

from qmd.cli import complete
from qmd.cli.command import command
from qmd.cli.listings import ListingOptions, limit_options, listing_options
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, paint, use_color, write
from qmd.errors import NotFoundError


@command(
    "properties",
    pages=True,
    examples=("qmd properties", "qmd properties status", "qmd properties --json"),
)
@click.argument("key", default="", shell_complete=complete.property_keys)
@limit_options(None)
@listing_options(has_files=False)
def properties(key: str, limit: int | None, options: ListingOptions) -> None:
    """
    List the properties of documents; with KEY, its values.

    Each line begins with the number of documents. Properties are the values of frontmatter and of
    inline fields (key:: value). A search takes conditions on them, such as status:draft.
    """
    rows: list[tuple[int, str, str]]
    with session().open() as kb:
        view = options.view(kb)
        if key:
            try:
                all_values = kb.property_values(key)
            except NotFoundError as error:
                hint = f"{error.hint or ''} The properties of one note: qmd get NOTE".strip()
                raise NotFoundError(str(error), hint=hint) from error
            total = len(all_values)
            values = view.take(all_values[:limit])
            rows = [(each.documents, each.value or "(none)", each.kind) for each in values]
        else:
            all_keys = kb.properties()
            total = len(all_keys)
            keys = view.take(all_keys[:limit])
            rows = [(each.documents, each.key, _counts(each.kinds)) for each in keys]
    if options.as_json:
        view.write_json(values if key else keys)
    elif not rows:
        note("No document has properties.")
    else:
        _write(rows)
    view.note_rest(len(rows), total, "value" if key else "key")


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
