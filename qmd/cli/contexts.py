"""``qmd context`` manages descriptions of paths, which searches show with each hit below them."""

from __future__ import annotations

import click

from qmd.cli import complete
from qmd.cli.command import Group, command, json_option
from qmd.cli.render_reports import render_contexts
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, write, write_json


@click.group(
    "context",
    cls=Group,
    aliases={"remove": "rm"},
    examples=('qmd context add ~/notes/work "notes of the platform team"', "qmd context list"),
)
def context() -> None:
    """Say what lies below a path; searches show it with each hit."""


@command(
    "add",
    examples=(
        'qmd context add ~/notes/work "notes of the platform team"',
        'qmd context add qmd://notes/2025 "this year"',
        'qmd context add / "everything I wrote"',
    ),
)
@click.argument(
    "words", nargs=-1, required=True, metavar="[PATH] TEXT", shell_complete=complete.documents
)
def add(words: tuple[str, ...]) -> None:
    """
    Describe everything below PATH.

    PATH is a directory (default: this one), qmd://collection/prefix, or / for all.
    """
    if len(words) > 2:
        raise click.UsageError("Give a path and one text; put quotes around the text.")
    path, text = words if len(words) == 2 else (".", words[0])
    with session().open(write=True) as kb:
        added = kb.add_context(path, text)
    write(f"Added context for {one_line(added.path)}\n")


@command("list", examples=("qmd context list", "qmd context list --json"))
@json_option
def list_(as_json: bool) -> None:
    """List the contexts."""

    with session().open() as kb:
        contexts = kb.contexts()
    if as_json:
        write_json(contexts)
    else:
        render_contexts(contexts)
        if not contexts:
            note("No contexts yet: qmd context add PATH TEXT")


@command(
    "rm", examples=("qmd context rm ~/notes/work", "qmd context rm qmd://notes/2025"), destroys=True
)
@click.argument("path", shell_complete=complete.documents)
def rm(path: str) -> None:
    """Remove a context, named as it was added or as it is listed."""
    with session().open(write=True) as kb:
        removed = kb.remove_context(path)
    write(f"Removed context for {one_line(removed.path)}\n")


context.add_command(add)
context.add_command(list_)
context.add_command(rm)
