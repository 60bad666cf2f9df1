"""
What ``qmd index`` and its like do and print, for command lines that are read with click or without.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from qmd.cli import render_reports
from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, progress_bar, write
from qmd.errors import InferenceError, QmdError
from qmd.values.text import counted

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase
    from qmd.values import IndexReport, OcrReport, Status


def index_everything(
    collections: Sequence[str], *, verify: bool, embed: bool | None, ocr: bool | None
) -> None:
    """
    The command ``qmd index``.

    Raises:
        QmdError: Some collections could not be scanned; the others are indexed by now.
    """
    with session().open(write=True) as kb:
        report = index_and_report(kb, collections, verify=verify)
        embed_and_report(kb, collections, embed=embed)
        ocr_and_report(kb, collections, ocr=ocr, embed=embed)
    fail_if_incomplete(report)


def index_and_report(
    kb: KnowledgeBase, collections: Sequence[str], *, verify: bool = False
) -> IndexReport:
    session().interrupted = "What was indexed stays: run 'qmd index' to go on."
    with progress_bar() as progress:
        report = kb.index(collections, verify=verify, progress=progress)
    render_reports.render_index_report(report)
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
        _make_what_orders(kb, status, collections)
        return
    if embed is None and not kb.can_embed():
        # A model is fetched only with the user's consent, which is to run 'qmd embed'.
        if pending:
            note(
                f"Everything is searchable by words. For search by meaning run 'qmd embed' "
                f"({counted(pending, 'document')}): it fetches a model first."
            )
        return
    if status.chunks_outdated:
        write(f"{render_reports.earlier_titles(status)}.\n")
    if pending:
        what = _what_waits(status, collections)
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


def _what_waits(status: Status, collections: Sequence[str]) -> str:
    """Of what vectors are made, and how long it takes where that is long."""
    # How many documents of some collections wait is not counted.
    if collections and {each.name for each in status.collections} - set(collections):
        return ", ".join(map(one_line, collections))
    documents = counted(status.needs_embedding, "document")
    time = render_reports.time_of_vectors(status)
    return f"{documents}{time}. Ctrl-C loses nothing: 'qmd embed' goes on" if time else documents


def ocr_and_report(
    kb: KnowledgeBase, collections: Sequence[str], *, ocr: bool | None, embed: bool | None
) -> None:
    """
    Read the text in pictures after an index run, and make the vectors of what was read.

    If they cannot be read, that is an error only if ``ocr`` is True.
    """
    if ocr is False or not kb.count_unread_pictures():
        return  # `status` reads much more, and imports what few runs need
    status = kb.status()
    if ocr is None and status.ocr_problem:
        return  # 'qmd status' says so: who has thousands of photos may not want their text
    left = render_reports.duration(status.ocr_left_s)
    write(f"Reading the text of {counted(status.pictures_waiting, 'page')} and photos, {left}.\n")
    sys.stdout.flush()
    if run_ocr(kb, collections, force=False).read:
        embed_and_report(kb, collections, embed=embed)


def run_ocr(kb: KnowledgeBase, collections: Sequence[str], *, force: bool) -> OcrReport:
    session().interrupted = "What was read stays: run 'qmd ocr' to go on."
    with progress_bar() as progress:
        report = kb.ocr(collections, force=force, progress=progress)
    render_reports.render_ocr_report(report)
    return report


def _make_what_orders(kb: KnowledgeBase, status: Status, collections: Sequence[str]) -> None:
    """
    Make token states and vectors of English that an earlier version has not made.

    Search works without, so no failure counts.
    """
    states = status.token_states
    missing = 0 if states is None else status.chunks_embedded - states
    if not (missing or status.english_waiting) or not kb.can_embed():
        return
    if missing:
        what = f"the token states of {counted(missing, 'chunk')}"
    else:
        what = f"vectors of English, with {counted(status.english_waiting, 'chunk')} to look at"
    write(f"Making {what}, for a better order of hits.\n")
    sys.stdout.flush()
    with suppress(InferenceError):
        run_embed(kb, collections, force=False)


def run_embed(kb: KnowledgeBase, collections: Sequence[str], *, force: bool) -> None:
    session().interrupted = "The vectors made so far stay: run 'qmd embed' to go on."
    with progress_bar() as progress:
        report = kb.embed(collections, force=force, progress=progress)
    render_reports.render_embed_report(report)


def fail_if_incomplete(report: IndexReport) -> None:
    """Raise QmdError if some collections could not be scanned; the others are indexed by now."""
    if report.errors:
        raise QmdError(
            "\n".join(report.errors),
            hint="What was indexed of it before is kept. 'qmd status' shows the collections.",
        )
