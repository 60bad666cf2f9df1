"""``qmd import`` takes over folders, contexts and notes from other programs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmd.cli.command import Group, command, json_option
from qmd.cli.indexing import index_and_report
from qmd.cli.render_reports import count
from qmd.cli.session import session
from qmd.cli.terminal import one_line, write, write_json
from qmd.errors import DatabaseMissingError

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase
    from qmd.kb.transfer import Program
    from qmd.values.imports import ImportReport, NotTaken

F = TypeVar("F", bound=Callable[..., Any])


@click.group(
    "import",
    cls=Group,
    examples=("qmd import tobi --dry-run", "qmd import obsidian"),
)
def import_() -> None:
    """Take over folders and contexts from other programs."""


def folder_options(function: F) -> F:
    """Add the options that all programs with folders share."""
    for option in (
        json_option,
        click.option(
            "--no-index", is_flag=True, help="Only register them; 'qmd index' fills them."
        ),
        click.option("--dry-run", is_flag=True, help="Say what would be added, and add nothing."),
    ):
        function = option(function)
    return function


@command(
    "tobi",
    examples=(
        "qmd import tobi --dry-run",
        "qmd import tobi",
        "qmd --index work import tobi    # from tobi's index of that name",
        "qmd import tobi ~/src/site/.qmd/index.yml",
    ),
)
@click.argument("source", required=False, metavar="[INDEX|FILE]")
@folder_options
def tobi(source: str | None, dry_run: bool, no_index: bool, as_json: bool) -> None:
    """
    Take over the collections and contexts of tobi/qmd.

    It reads index.yml in ~/.config/qmd, or the file of the named INDEX, and changes nothing there.
    What qmd does not take, such as update commands and models, is listed. What is a collection or
    a context here already stays as it is, so the command may be repeated.
    """
    _take_over(
        "tobi", source or session().index, dry_run=dry_run, no_index=no_index, as_json=as_json
    )


@command("basic-memory", examples=("qmd import basic-memory --dry-run", "qmd import basic-memory"))
@click.argument("file", required=False)
@folder_options
def basic_memory(file: str | None, dry_run: bool, no_index: bool, as_json: bool) -> None:
    """
    Make a collection of each project of basic-memory.

    It reads config.json in ~/.basic-memory, or FILE. Projects in the cloud are listed.
    """
    _take_over("basic-memory", file, dry_run=dry_run, no_index=no_index, as_json=as_json)


@command("obsidian", examples=("qmd import obsidian --dry-run", "qmd import obsidian"))
@click.argument("file", required=False)
@folder_options
def obsidian(file: str | None, dry_run: bool, no_index: bool, as_json: bool) -> None:
    """
    Make a collection of each vault that Obsidian has on this machine.

    It reads the obsidian.json of this machine, or FILE.
    """
    _take_over("obsidian", file, dry_run=dry_run, no_index=no_index, as_json=as_json)


def _take_over(
    program: Program, file: str | None, *, dry_run: bool, no_index: bool, as_json: bool
) -> None:
    from qmd.kb import KnowledgeBase

    plan = KnowledgeBase.plan_import(program, file)
    with _opened(dry_run) as kb:
        report = kb.import_folders(plan, dry_run=dry_run)
        if as_json:
            write_json(report)
        else:
            _render(report)
        names = [each.name for each in report.collections if each.state == "new"]
        if not names or dry_run:
            return
        if no_index:
            if not as_json:
                write("Fill them with: qmd index\n")
        elif as_json:
            kb.index(names)
        else:
            index_and_report(kb, names)
            write("For search by meaning run: qmd embed\n")


@contextmanager
def _opened(dry_run: bool) -> Iterator[KnowledgeBase]:
    """The database; where there is none, a new one, which a dry run throws away."""
    if not dry_run:
        with session().open(create=True) as kb:
            yield kb
        return
    try:
        kb = session().open()
    except DatabaseMissingError:
        from qmd.kb import KnowledgeBase

        with (
            tempfile.TemporaryDirectory() as folder,
            KnowledgeBase.open(Path(folder) / "empty.sqlite", create=True) as empty,
        ):
            yield empty
        return
    with kb:
        yield kb


def _render(report: ImportReport) -> None:
    would = "Would take" if report.dry_run else "Took"
    new = [each for each in report.collections if each.state == "new"]
    write(
        f"{would} {count(len(new), 'collection')} and {count(report.contexts, 'context')}"
        f" from {one_line(report.source)}\n"
    )
    for each in report.collections:
        details = [each.pattern]
        if each.ignore:
            details.append("without " + ", ".join(each.ignore))
        if not each.included:
            details.append("searched only if named")
        if each.contexts:
            details.append(count(each.contexts, "context"))
        if each.state == "present":
            details.append("a collection before")
        write(f"  {one_line(each.name)}  {one_line(each.path)}\n")
        write(f"    {one_line(' · '.join(details))}\n")
    render_not_taken(report.not_taken)


def render_not_taken(not_taken: tuple[NotTaken, ...]) -> None:
    if not_taken:
        write("Not taken:\n")
    for each in not_taken:
        write(f"  {one_line(each.subject)}\n    {one_line(each.reason)}\n")


for _command in (tobi, basic_memory, obsidian):
    import_.add_command(_command)
