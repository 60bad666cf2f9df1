"""
Reads the pages that are pictures, one at a time in a worker process, and joins their text to their
documents.

What was read is kept by the bytes of the file and the page, so an interruption loses at most one
page. The document is parsed again when all of its pages are read, and of a long one now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from qmd import system
from qmd.engine_text import engine_text
from qmd.errors import OcrUnavailableError
from qmd.ingest.index import index_files
from qmd.ingest.read_picture import CHANGED, PROBLEM
from qmd.ingest.rules import MAX_BYTES
from qmd.parse.formats import MB, format_of, turned_on_plugins
from qmd.records import dataclass, field
from qmd.system import clock
from qmd.system.memory import available_bytes
from qmd.system.worker.jobs import Job, JobBudget, JobFailure
from qmd.system.worker.pool import WorkerPool
from qmd.values import OcrReport, Progress, ProgressCallback
from qmd.values.pictures import PictureJob, PictureText, Recogniser

if TYPE_CHECKING:
    from qmd.ingest.events import EventBus
    from qmd.store import Reader, Store, Writer

#: The key of `qmd.store.sql.shared` under which the seconds for one page are kept.
PACE = "ocr_seconds"
#: Seconds for one page on a laptop, until there is a measured pace.
TYPICAL_PACE_S = 10.0

#: A page of 2,400 pixels took 11 s and 1.4 GB, with 5,000 words ten times as long.
_BUDGET = JobBudget(cpu_s=300.0, memory_bytes=2_500 * MB)
#: With less free memory no page is read.
NEEDED_BYTES = 1_800 * MB
#: Seconds after which others may read a page whose process has not said what became of it.
_CLAIM_S = 900
#: Pages of one document after which it is parsed again, though others still wait.
_JOINED_PAGES = 20
#: After so many files in a row that are not there, the run ends: their disk is not.
_MOST_UNREADABLE = 20
#: Bytes of the largest photo that is decoded.
_MOST_BYTES = 200 * MB

#: The pool of this process. It starts no worker process before there is a page to read.
workers = WorkerPool("qmd.ingest.read_picture:read_picture")


RAPIDOCR = Recogniser("PP-OCRv6 small, 1", "qmd.inference.ocr:read", "rapidocr")


def recogniser_of(chosen: Recogniser | str) -> Recogniser | None:
    """What reads the text in pictures by a setting; None if nothing shall."""
    if isinstance(chosen, str):
        return None if chosen == "none" else RAPIDOCR
    return chosen


def is_installed(recogniser: Recogniser) -> bool:
    """Whether the package is there."""
    return find_spec(recogniser.package) is not None


def problem(recogniser: Recogniser | None) -> OcrUnavailableError | None:
    """Why no page can be read here; None if nothing is in the way."""
    if recogniser is None:
        return _not_wanted()
    if not is_installed(recogniser):
        return OcrUnavailableError(
            "The text in pictures is not read: the package for OCR is not installed.",
            hint=engine_text(
                "Install it, then run 'qmd ocr': {command}",
                command=system.installation.current().install(
                    f"{system.installation.DISTRIBUTION}[ocr]"
                ),
            ),
        )
    free = available_bytes()
    if free is not None and free < NEEDED_BYTES:
        return OcrUnavailableError(
            f"The text in pictures is not read: {free / 1e9:.1f} GB of memory are free, and OCR"
            f" needs {NEEDED_BYTES / 1e9:.1f} GB.",
            hint="Close other programs, then run 'qmd ocr'.",
        )
    return None


def _not_wanted() -> OcrUnavailableError:
    return OcrUnavailableError(
        "The text in pictures is not read: the setting 'ocr' is 'none'.",
        hint="Change it: 'qmd config' says where it is set.",
    )


def read_pictures(
    store: Store,
    recogniser: Recogniser | None,
    *,
    collection_ids: Sequence[int] = (),
    force: bool = False,
    progress: ProgressCallback | None = None,
    events: EventBus | None = None,
    check: Callable[[], None] = lambda: None,
) -> OcrReport:
    """
    Read the pictures that wait, those of the newest files first; other processes read others.

    Args:
        collection_ids: Only of these collections; empty for all.
        force: Read all, also those that were read or could not be.
        check: Called again and again while a page is read; an exception ends the run.

    Raises:
        OcrUnavailableError: The setting says so, a package is missing, or memory is short.
    """
    if recogniser is None:
        raise _not_wanted()
    run = _Run(store, recogniser, collection_ids, progress or (lambda tick: None), events, check)
    run.join_what_was_read()
    with store.reading() as reader:
        waiting = reader.pictures.count_waiting(recogniser.name, collection_ids)
    if waiting or force:
        trouble = problem(recogniser)
        if trouble is not None:
            raise trouble
    if force:
        store.write(lambda writer: writer.pictures.forget(collection_ids))
    run.read_all()
    with store.reading() as reader:
        remaining = reader.pictures.count_waiting(recogniser.name, collection_ids)
    return OcrReport(run.read, run.empty, run.failed, remaining)


def left_s(reader: Reader, pages: int) -> float:
    """The seconds that reading so many pages takes, at the pace of the latest if one was read."""
    return pages * float(reader.meta.get(PACE) or TYPICAL_PACE_S)


@dataclass()
class _Run:
    """
    One call of `read_pictures`.

    Attributes:
        read: Pages on which there was text.
        empty: Pages on which there was none.
        failed: Pages that cannot be read.
    """

    _store: Store
    _recogniser: Recogniser
    _collection_ids: Sequence[int]
    _progress: ProgressCallback
    _events: EventBus | None
    _check: Callable[[], None]
    read: int = 0
    empty: int = 0
    failed: int = 0
    _passed_over: set[int] = field(default_factory=set)
    _unreadable: int = 0  # in a row
    _pace_s: float | None = None
    _unjoined: dict[str, int] = field(default_factory=dict)  # documents → pages not in them yet

    def join_what_was_read(self) -> None:
        """Parse the documents again whose pages were read before the last run ended."""
        files = self._store.read(lambda reader: reader.pictures.to_join())
        for collection, path in files:
            self._check()
            self._join(collection, path)

    def read_all(self) -> None:
        done = 0
        while self._unreadable < _MOST_UNREADABLE and (job := self._claim()) is not None:
            self._read(job, done)
            done += 1
        if done:
            self._progress(Progress("ocr", done, done))

    def _tell(self, job: PictureJob, done: int) -> None:
        with self._store.reading() as reader:
            left = reader.pictures.count_waiting(self._recogniser.name, self._collection_ids)
        page = "" if format_of(job.path).reads_parts else f" p. {job.page}"
        self._progress(Progress("ocr", done, done + left, f"{job.collection}/{job.path}{page}"))

    def _claim(self) -> PictureJob | None:
        now = int(clock.now_ns() / 1e9)

        def claim(writer: Writer) -> PictureJob | None:
            return writer.pictures.claim(
                self._recogniser.name,
                now=now,
                until=now + _CLAIM_S,
                collection_ids=self._collection_ids,
                but_not=self._passed_over,
            )

        return self._store.write(claim)

    def _read(self, job: PictureJob, done: int) -> None:
        """Read one page, store what came of it, and join it to its documents."""
        began_s = perf_counter()
        try:
            self._tell(job, done)
            outcome, text = self._result(job)
        except BaseException:
            self._store.write(lambda writer: writer.pictures.release(job))
            raise
        if outcome == CHANGED:  # the index will follow, or the disk come back
            self._passed_over.add(job.document_id)
            self._unreadable += 1
            self._store.write(lambda writer: writer.pictures.release(job))
            return
        self._unreadable = 0
        seconds = perf_counter() - began_s
        self._pace_s = (self._pace_s or seconds) * 0.75 + seconds * 0.25
        has_text = outcome != PROBLEM and bool(PictureText.load(text).lines)

        def put(writer: Writer) -> None:
            name = self._recogniser.name
            if outcome == PROBLEM:
                writer.pictures.put(job, name, problem=text)
            else:
                writer.pictures.put(job, name, text=text)
            writer.meta.put(PACE, f"{self._pace_s:.4g}")

        self._store.write(put)
        self.failed += outcome == PROBLEM
        self.empty += outcome != PROBLEM and not has_text
        self.read += has_text
        self._join_if_due(job, int(outcome != PROBLEM))

    def _result(self, job: PictureJob) -> tuple[str, str]:
        """What `qmd.ingest.read_picture.read_picture` returned; a page may be too much for it."""
        most = format_of(job.path).max_bytes or (
            _MOST_BYTES if format_of(job.path).reads_parts else MAX_BYTES
        )
        argument = (
            *(self._recogniser.function, job.root, job.path, job.page, job.source, most),
            turned_on_plugins(),
        )
        [result] = workers.run([Job(argument, MB, _BUDGET)], waiting=self._check)
        if isinstance(result, JobFailure):
            return PROBLEM, result.detail
        outcome, text = result.value
        return outcome, text

    def _join_if_due(self, job: PictureJob, pages: int) -> None:
        key = f"{job.collection}/{job.path}"
        self._unjoined[key] = self._unjoined.get(key, 0) + pages
        with self._store.reading() as reader:
            is_done = not reader.pictures.are_waiting(self._recogniser.name, job.document_id)
        if self._unjoined[key] and (is_done or self._unjoined[key] >= _JOINED_PAGES):
            self._join(job.collection, job.path)
            self._join_copies(job.source)
        if is_done or self._unjoined[key] >= _JOINED_PAGES:
            del self._unjoined[key]

    def _join_copies(self, source: bytes) -> None:
        """Parse the other documents with these pictures again: no page of theirs is read."""
        for collection, path in self._store.read(lambda reader: reader.pictures.to_join(source)):
            self._join(collection, path)

    def _join(self, collection: str, path: str) -> None:
        place = self._store.read(lambda reader: reader.collections.by_name(collection))
        if not Path(place.path).is_dir():  # it lies on another machine, or its disk is not there
            return
        index_files(self._store, [Path(place.path).resolve() / path], [place], self._events)
