"""``qmd index``, ``qmd update`` and ``qmd embed`` bring the database in line with the disk."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from qmd.cli import complete
from qmd.cli.command import command
from qmd.cli.progress import progress_bar
from qmd.cli.render_reports import (
    count,
    earlier_titles,
    render_embed_report,
    render_index_report,
)
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, write
from qmd.errors import InferenceError, QmdError

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase
    from qmd.values import IndexReport, Status

_collections = click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME",
    help="Only this collection.",
    shell_complete=complete.collections,
)
_embed = click.option(
    "--embed/--no-embed",
    "embed",
    default=None,
    help="Make vectors afterwards.  [default: where a model can run]",
)
_NO_FOLDER = "'qmd up FOLDER' makes a folder searchable; '-c NAME' chooses a collection."


@command(
    "index",
    examples=("qmd index", "qmd index -c notes --verify", "qmd index --no-embed"),
    extra_argument=_NO_FOLDER,
)
@_collections
@click.option("--verify", is_flag=True, help="Read files that look unchanged, too.")
@_embed
def index(collections: tuple[str, ...], verify: bool, embed: bool | None) -> None:
    """
    Bring the index in line with the disk, and make missing vectors.

    Only changed files are read. Everything is searchable by words before the vectors are
    made; an interruption loses nothing, the next run goes on.
    """
    with session().open(write=True) as kb:
        report = index_and_report(kb, collections, verify=verify)
        embed_and_report(kb, collections, embed=embed)
    fail_if_incomplete(report)


@command("update", examples=("qmd update --pull",), extra_argument=_NO_FOLDER)
@click.option(
    "--pull", is_flag=True, help="'git pull' first, where a collection is a git work tree."
)
@_embed
def update(pull: bool, embed: bool | None) -> None:
    """
    Pull the collections that are git work trees, then index all.

    A pull is a fetch and a fast-forward. It runs no hook, and no program that a collection's
    own git configuration names: a collection with such a key is not pulled, and the message
    names the key. Programs that your own ~/.gitconfig names (ssh, credential helpers,
    git-lfs) do run.
    """
    session().interrupted = "What was indexed stays: run 'qmd index' to go on."

    with session().open(write=True) as kb:
        with progress_bar() as progress:
            report = kb.update(pull=pull, progress=progress)
        render_index_report(report, verb="Updated")
        embed_and_report(kb, (), embed=embed)
    fail_if_incomplete(report)


@command("embed", examples=("qmd embed", "qmd embed -c notes --force"), extra_argument=_NO_FOLDER)
@click.option("-f", "--force", is_flag=True, help="Make all vectors again.")
@_collections
def embed(force: bool, collections: tuple[str, ...]) -> None:
    """
    Make the missing vectors, for 'vsearch' and 'query'.

    It can be interrupted at any time: the next run goes on.
    """
    with session().open(write=True) as kb:
        run_embed(kb, collections, force=force)


def index_and_report(
    kb: KnowledgeBase, collections: Sequence[str], *, verify: bool = False
) -> IndexReport:

    session().interrupted = "What was indexed stays: run 'qmd index' to go on."
    with progress_bar() as progress:
        report = kb.index(collections, verify=verify, progress=progress)
    render_index_report(report)
    return report


def embed_and_report(kb: KnowledgeBase, collections: Sequence[str], *, embed: bool | None) -> None:
    """
    Make the missing vectors after an index run.

    If no model can run, that is an error only if ``embed`` is True.
    """
    if embed is False:
        return

    status = kb.status()
    pending = status.needs_embedding
    if not pending and not status.chunks_outdated:
        _make_token_states(kb, status, collections)
        return
    if embed is None and not kb.can_embed():
        # A model is fetched only with the user's consent, which is to run 'qmd embed'.
        if pending:
            note(
                f"Everything is searchable by words. For search by meaning run 'qmd embed' "
                f"({count(pending, 'document')}): it fetches a model first."
            )
        return
    # How many documents of some collections wait is not counted.
    is_part = collections and {each.name for each in status.collections} - set(collections)
    what = ", ".join(map(one_line, collections)) if is_part else count(pending, "document")
    if status.chunks_outdated:
        write(f"{earlier_titles(status)}.\n")
    if pending:
        write(f"Everything is searchable by words; making vectors of {what}.\n")
    sys.stdout.flush()
    try:
        run_embed(kb, collections, force=False)
    except InferenceError as error:
        if embed:
            raise
        note(f"No vectors: {error}", style="warning")
        if error.hint:
            note(f"hint: {error.hint}")


def _make_token_states(kb: KnowledgeBase, status: Status, collections: Sequence[str]) -> None:
    """For vectors that an earlier version has made; search works without, so no failure counts."""
    states = status.token_states
    missing = 0 if states is None else status.chunks_embedded - states
    if not missing or not kb.can_embed():
        return
    write(f"Making the token states of {count(missing, 'chunk')}, for a better order of hits.\n")
    sys.stdout.flush()
    with suppress(InferenceError):
        run_embed(kb, collections, force=False)


def run_embed(kb: KnowledgeBase, collections: Sequence[str], *, force: bool) -> None:

    session().interrupted = "The vectors made so far stay: run 'qmd embed' to go on."
    with progress_bar() as progress:
        report = kb.embed(collections, force=force, progress=progress)
    render_embed_report(report)


def fail_if_incomplete(report: IndexReport) -> None:
    """Raise QmdError if some collections could not be scanned; the others are indexed by now."""
    if report.errors:
        raise QmdError(
            "\n".join(report.errors),
            hint="What was indexed of it before is kept. 'qmd status' shows the collections.",
        )
