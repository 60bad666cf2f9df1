"""Reads the counts that `qmd status` shows from a database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Literal

from qmd.ingest import ocr
from qmd.ingest.embedding import count_lacking_english, left_s, should_have_states
from qmd.ingest.keep.watch import REMOTE, file_system
from qmd.ingest.scan import is_readable
from qmd.parse.formats import kind_of
from qmd.records import replace
from qmd.values import Collection, Filters, Status
from qmd.values.reports import Overview

if TYPE_CHECKING:
    from qmd.models.choice import EmbedderChoice
    from qmd.store import Reader
    from qmd.store.sql.models import StoredModel
    from qmd.values.location import DatabaseLocation
    from qmd.values.pictures import Recogniser


FolderState = Literal["sound", "missing", "unreadable", "silent"]


def read(
    reader: Reader,
    location: DatabaseLocation,
    choice: EmbedderChoice,
    chosen_ocr: Recogniser | str,
) -> Status:
    """The status of the database at ``location``; ``chosen_ocr``: as of the settings."""
    counts = reader.upkeep.counts()
    model = reader.models.active()
    coming = reader.models.coming()
    missing = counts.chunks if coming is None else reader.embeddings.count_waiting(coming)
    collections = _collections(reader)
    pictures = reader.pictures.counts()
    problem = ocr.problem(ocr.recogniser_of(chosen_ocr)) if pictures.waiting else None
    english, english_waiting = _english(reader, choice, model)
    return Status(
        database=str(location),
        database_bytes=reader.upkeep.size_bytes(),
        total_documents=_count_documents(reader, counts.documents),
        needs_embedding=counts.needs_embedding,
        chunks=counts.chunks,
        chunks_embedded=counts.chunks_embedded,
        chunks_outdated=counts.chunks_outdated,
        has_vector_index=counts.chunks_embedded > 0,
        model=model.name if model else None,
        collections=tuple(collections),
        skipped=tuple(reader.files.all_skips()),
        excluded=reader.collections.excluded_counts(),
        excluded_kinds=_kinds(reader, collections),
        next_model=coming.name if coming else None,
        next_embedded=counts.chunks - missing,
        embedding_left_s=left_s(
            reader,
            missing if coming else counts.chunks - counts.chunks_embedded + counts.chunks_outdated,
        ),
        pictures=pictures.total,
        pictures_waiting=pictures.waiting,
        pictures_failed=pictures.failed,
        ocr_left_s=ocr.left_s(reader, pictures.waiting),
        ocr_problem=problem.with_hint if problem else None,
        token_states=reader.tokens.count() if model and should_have_states(reader, model) else None,
        english_model=english,
        english_waiting=english_waiting,
        last_indexed=max(
            (collection.last_indexed for collection in collections if collection.last_indexed),
            default=None,
        ),
    )


def _english(
    reader: Reader, choice: EmbedderChoice, model: StoredModel | None
) -> tuple[str | None, int]:
    """`Status.english_model` and `Status.english_waiting` beside the model of the vectors."""
    name = choice.english_name(model) if model else None
    return name, count_lacking_english(reader, model) if model and name else 0


def _collections(reader: Reader) -> list[Collection]:
    """All, with whether their folders can be read; one of another machine is not asked."""
    return [
        replace(
            each,
            missing=file_system(Path(each.path)) not in REMOTE
            and _look(Path(each.path)) != "sound",
        )
        for each in reader.collections.all()
    ]


def folder_state(
    folder: Path, patience_s: float = 3.0, look: Callable[[Path], FolderState] | None = None
) -> FolderState:
    """What is wrong with the folder of a collection, if its disk says so in time."""
    answers: SimpleQueue[FolderState] = SimpleQueue()
    work = look or _look
    Thread(target=lambda: answers.put(work(folder)), name="qmd-folder", daemon=True).start()
    try:
        return answers.get(timeout=patience_s)
    except Empty:
        return "silent"


def _look(folder: Path) -> FolderState:
    if not folder.is_dir():
        return "missing"
    return "sound" if is_readable(str(folder)) else "unreadable"


def _count_documents(reader: Reader, of_all_collections: int) -> int:
    """The documents as searches and ``qmd ls`` show them: a file of two collections once."""
    each_file_once = reader.select(Filters())
    if each_file_once.is_all:  # no folder lies in another
        return of_all_collections
    return reader.documents.count_below(None, selection=each_file_once)


def _kinds(reader: Reader, collections: Sequence[Collection]) -> dict[str, int]:
    """As `Status.excluded_kinds`; files that were skipped are listed by their names."""
    skipped = {(skip.collection, skip.path) for skip in reader.files.all_skips()}
    kinds = Counter(
        kind_of(path)
        for collection in collections
        for path in reader.links.attachments(collection.name)
        if (collection.name, path) not in skipped
    )
    return dict(kinds.most_common())


def read_overview(reader: Reader, location: DatabaseLocation, choice: EmbedderChoice) -> Overview:
    """The figures of the database at ``location`` that an index answers."""
    model = reader.models.active()
    english, english_waiting = _english(reader, choice, model)
    coming = reader.models.coming()
    collections = tuple(_collections(reader))
    chunks = reader.upkeep.count_chunks()
    missing = chunks if coming is None else reader.embeddings.count_waiting(coming)
    pictures = reader.pictures.counts()
    return Overview(
        database=str(location),
        database_bytes=reader.upkeep.size_bytes(),
        documents=_count_documents(reader, sum(collection.documents for collection in collections)),
        chunks=chunks,
        chunks_waiting=reader.upkeep.count_chunks_waiting(),
        model=model.name if model else None,
        next_model=coming.name if coming else None,
        next_embedded=chunks - missing,
        collections=collections,
        skips=tuple(reader.files.skip_counts()),
        pictures=pictures.total,
        pictures_waiting=pictures.waiting,
        excluded=reader.collections.excluded_counts(),
        english_model=english,
        english_waiting=english_waiting,
    )
