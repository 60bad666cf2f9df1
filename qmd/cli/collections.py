"""``qmd collection`` and ``qmd context``: what is indexed, and what is said of it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qmd import cli
from qmd.cli import complete
from qmd.cli.command import Group, command
from qmd.cli.render_reports import count
from qmd.cli.runs import index_and_report
from qmd.cli.session import session
from qmd.cli.terminal import confirmed, note, one_line, write
from qmd.errors import InputError
from qmd.values.names import DEFAULT_MASK

if TYPE_CHECKING:
    from qmd.values import Collection

_COMMANDS = ("add", "list", "show", "set", "remove", "rename", "exclude", "include")


@click.group(
    "collection",
    cls=Group,
    operations="collection",
    sections=lambda: {"Commands": _COMMANDS},
    # tobi/qmd has these names, so its users' habits and scripts carry over.
    aliases={"rm": "remove", "mv": "rename", "info": "show"},
    instead=lambda: cli.commands.INSTEAD_IN_COLLECTION,
    examples=("qmd collection add ~/notes --name notes", "qmd collection list"),
)
def collection() -> None:
    """Add, list, show, change, remove, rename or leave out directories."""


@command(
    "add",
    examples=(
        "qmd collection add ~/notes",
        "qmd collection add . --name docs --mask '**/*.{md,mdx}' --ignore 'drafts/**'",
    ),
)
@click.argument("path", default=".", metavar="[PATH]", shell_complete=complete.folders)
@click.option("--name", help="The name of the collection.  [default: the directory's]")
@click.option(
    "--mask",
    default=DEFAULT_MASK,
    show_default=True,
    metavar="GLOB",
    help="Which files are documents; several by comma or braces.",
)
@click.option("--ignore", multiple=True, metavar="GLOB", help="Leave these out; repeatable.")
@click.option("--no-index", is_flag=True, help="Only register it; 'qmd index' fills it.")
def add(path: str, name: str | None, mask: str, ignore: tuple[str, ...], no_index: bool) -> None:
    """
    Add a directory as a collection and index it.

    Without PATH it is the directory that you are in.
    """

    refuse_missing(path)
    with session().open(create=True) as kb:
        overlap = kb.overlap_notice(path)
        added = kb.add_collection(path, name=name, mask=mask, ignore=ignore)
        if overlap:
            note(overlap)
        write(f"Added collection '{one_line(added.name)}': {one_line(added.path)}\n")
        if no_index:
            write(f"Fill it with: qmd index -c {one_line(added.name)}\n")
        else:
            index_and_report(kb, (added.name,))


def refuse_missing(path: str) -> None:
    """
    Raise InputError if ``path`` is no directory.

    Commands call this before they create a database.
    """
    directory = Path(path).expanduser()
    if not directory.is_dir():
        problem = "Not a directory" if directory.exists() else "No such directory"
        raise InputError(f"{problem}: {path}", hint="Give the folder that holds the notes.")


@command(
    "set",
    examples=(
        "qmd collection set notes --mask '**/*.{md,jpg,png}'",
        "qmd collection set notes --ignore 'drafts/**' --ignore '*.tmp.md'",
    ),
)
@click.argument("name", shell_complete=complete.collections)
@click.option("--mask", metavar="GLOB", help="Which files are documents from now on.")
@click.option(
    "--ignore", multiple=True, metavar="GLOB", help="Leave these out, and no others; repeatable."
)
@click.option("--no-ignore", is_flag=True, help="Leave nothing out by such patterns.")
@click.option("--no-index", is_flag=True, help="Only change it; 'qmd index' applies the change.")
def set_(
    name: str, mask: str | None, ignore: tuple[str, ...], no_ignore: bool, no_index: bool
) -> None:
    """Change which files of a collection are documents, and index it."""
    if mask is None and not ignore and not no_ignore:
        raise click.UsageError("Nothing to change: give --mask, --ignore or --no-ignore.")
    if ignore and no_ignore:
        raise click.UsageError("--ignore and --no-ignore exclude each other.")
    with session().open(write=True) as kb:
        changed = kb.change_collection(
            name, mask=mask, ignore=ignore if ignore or no_ignore else None
        )
        left_out = f", without {', '.join(changed.ignore)}" if changed.ignore else ""
        write(f"Collection '{one_line(name)}': {one_line(changed.pattern + left_out)}\n")
        if no_index:
            write(f"Apply it with: qmd index -c {one_line(name)}\n")
        else:
            index_and_report(kb, (changed.name,))


@command("remove", examples=("qmd collection remove notes",), destroys=True)
@click.argument("name", shell_complete=complete.collections)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """
    Remove a collection from the index; its files stay as they are.

    'qmd undo' brings it back with its contexts; so does adding its folder again.
    """
    with session().open(write=True) as kb:
        details = kb.collection(name)
        contexts = sum(context.collection == details.name for context in kb.contexts())
        content = f"{count(details.documents, 'document')} and {count(contexts, 'context')}"
        question = f"Remove '{one_line(details.name)}' with {content} from the index?"
        if not yes and sys.stdin.isatty() and not confirmed(question, default=False):
            write("Nothing was removed.\n")
            return
        removed = kb.remove_collection(name)
    write(
        f"Removed collection '{one_line(removed.name)}' with {content}; its files stay.\n"
        f"Undo: qmd undo\nLater: {one_line(_adding(removed))}\n"
    )


def _adding(collection: Collection) -> str:
    """The command that adds a collection as it was."""
    words = ["qmd", "collection", "add", collection.path, "--name", collection.name]
    words += ["--mask", collection.pattern]
    for pattern in collection.ignore:
        words += ["--ignore", pattern]
    return shlex.join(words)


for _command in (add, set_, remove):
    collection.add_command(_command)


@click.group(
    "context",
    cls=Group,
    operations="context",
    sections=lambda: {"Commands": ("add", "list", "rm")},
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
def add_context(words: tuple[str, ...]) -> None:
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


context.add_command(add_context)
