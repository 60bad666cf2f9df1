"""``qmd collection`` manages the indexed directories."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qmd.cli import commands, complete
from qmd.cli.command import Command, Group, command, json_option
from qmd.cli.indexing import index_and_report
from qmd.cli.render_reports import count, minute, render_collections
from qmd.cli.session import session
from qmd.cli.terminal import confirmed, hanging, note, one_line, write, write_json
from qmd.errors import InputError
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.values import Collection


@click.group(
    "collection",
    cls=Group,
    # tobi/qmd has these names, so its users' habits and scripts carry over.
    aliases={"rm": "remove", "mv": "rename", "info": "show"},
    instead=commands.COLLECTION_COMMANDS,
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
    default="**/*.md",
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


@command("list", examples=("qmd collection list", "qmd collection list --json"))
@json_option
def list_(as_json: bool) -> None:
    """List the collections, the last changed first."""

    with session().open() as kb:
        collections = kb.collections()
    if as_json:
        write_json(collections)
    else:
        render_collections(collections)
        if not collections:
            note("No collections yet: qmd up FOLDER")


@command("show", examples=("qmd collection show notes",))
@click.argument("name", shell_complete=complete.collections)
@json_option
def show(name: str, as_json: bool) -> None:
    """Show one collection: its directory, rules, contexts and counts."""

    with session().open() as kb:
        details = kb.collection(name)
        contexts = [context for context in kb.contexts() if context.collection == name]
    if as_json:
        write_json({**to_wire(details), "contexts": to_wire(contexts)})
        return
    rows = [
        ("Name", details.name),
        ("Path", details.path),
        ("Mask", details.pattern),
        *(("Ignore", pattern) for pattern in details.ignore),
        *(() if details.included else (("Searched", "only if named: -c " + details.name),)),
        ("Documents", f"{details.documents:,}"),
        ("Changed", minute(details.last_updated)),
        ("Indexed", minute(details.last_indexed)),
        *(("Context", f"{context.path}: {context.text}") for context in contexts),
    ]
    for label, value in rows:
        write(f"{label:<11}{hanging(one_line(value), 11)}\n")


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


@command("rename", examples=("qmd collection rename notes work",))
@click.argument("old", shell_complete=complete.collections)
@click.argument("new")
def rename(old: str, new: str) -> None:
    """Rename a collection, without indexing it again."""
    with session().open(write=True) as kb:
        renamed = kb.rename_collection(old, new)
    write(f"Renamed '{one_line(old)}' to '{one_line(renamed.name)}'\n")


@command("exclude", examples=("qmd collection exclude archive",))
@click.argument("name", shell_complete=complete.collections)
def exclude(name: str) -> None:
    """Search a collection only when -c or --path names it."""
    with session().open(write=True) as kb:
        excluded = kb.include_collection(name, included=False)
    shown = one_line(excluded.name)
    write(f"Searches leave '{shown}' out, unless they name it: -c {shown}\n")


@command("include", examples=("qmd collection include archive",))
@click.argument("name", shell_complete=complete.collections)
def include(name: str) -> None:
    """Search a collection again when no collection is named."""
    with session().open(write=True) as kb:
        included = kb.include_collection(name, included=True)
    write(f"Searches look in '{one_line(included.name)}' again.\n")


_COMMANDS: tuple[Command, ...] = (add, list_, show, set_, remove, rename, exclude, include)
for _command in _COMMANDS:
    collection.add_command(_command)
