"""Index several collections, or some files in each collection that contains them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.engine_text import with_cause
from qmd.errors import InputError, NotFoundError
from qmd.ingest.collection_indexer import CollectionIndexer, CollectionReport
from qmd.parse.converted import group_warnings
from qmd.values import Collection, IndexReport, Progress, ProgressCallback

if TYPE_CHECKING:
    from qmd.ingest.events import EventBus
    from qmd.store import Store

_ATTEMPTS = 3
#: Seconds of work on common words between two ticks of progress.
TURN_S = 0.5


def index_collections(
    store: Store,
    collections: Sequence[Collection],
    *,
    verify: bool = False,
    problems: Sequence[str] = (),
    progress: ProgressCallback | None = None,
    events: EventBus | None = None,
) -> IndexReport:
    """Update each collection from its directory; a failure does not stop the others."""
    reports: list[CollectionReport] = []
    excluded: Counter[str] = Counter()
    warnings: list[str] = []
    errors = list(problems)
    for collection in collections:
        try:
            report = CollectionIndexer(
                store,
                collection,
                verify=verify,
                progress=progress,
                changed=events.publisher(collection.name) if events else None,
            ).run()
        except (NotFoundError, InputError) as error:
            errors.append(with_cause(collection.name, error.with_hint))
            continue
        reports.append(report)
        excluded.update(report.excluded)
        warnings += group_warnings(report.warnings)
    _gather_common_words(store, progress)
    warnings += _problems(reports)
    with store.reading() as reader:
        names = {collection.name for collection in collections}
        all_collections = reader.collections.all()
        total = sum(
            collection.documents for collection in all_collections if collection.name in names
        )
    return IndexReport(
        collections=len(collections),
        added=sum(report.added for report in reports),
        updated=sum(report.updated for report in reports),
        moved=sum(report.moved for report in reports),
        removed=sum(report.removed for report in reports),
        unchanged=sum(report.unchanged for report in reports),
        total_documents=total,
        skipped=tuple(skip for report in reports for skip in report.skipped),
        excluded=dict(excluded),
        warnings=tuple(warnings),
        errors=tuple(errors),
    )


def _problems(reports: Sequence[CollectionReport]) -> list[str]:
    """What the workers that parsed files say, each sentence once."""
    return list(dict.fromkeys(report.problem for report in reports if report.problem))


def _gather_common_words(store: Store, progress: ProgressCallback | None) -> None:
    """Make searches for very common words fast again, if there are many documents."""
    done = 0
    while left := store.gather_common_words(TURN_S):
        done += 1
        if progress is not None:
            progress(Progress("words", done, None, f"{left:,} words left"))


def index_files(
    store: Store,
    files: Sequence[Path],
    collections: Sequence[Collection],
    events: EventBus | None = None,
) -> None:
    """
    Update some files in each collection that contains them. A file may have been deleted.

    Args:
        files: Absolute paths, without links. A file that was moved is given by both paths.

    Raises:
        NotFoundError, InputError: A collection's directory cannot be read.
        StoreError: The change was not stored.
    """
    for collection in collections:
        root = Path(os.path.realpath(collection.path))
        paths = [
            file.relative_to(root).as_posix()
            for file in dict.fromkeys(files)
            if file.is_relative_to(root)
        ]
        for _ in range(_ATTEMPTS if paths else 0):
            report = CollectionIndexer(
                store,
                collection,
                changed=events.publisher(collection.name) if events else None,
            ).run_paths(paths)
            # Another process may replace a file at the moment at which it is opened.
            if not any(skip.reason == "unreadable" for skip in report.skipped):
                break
