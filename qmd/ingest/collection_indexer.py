"""
Index one collection: make its stored documents equal to the files in its directory.

A run first scans the whole directory. Then it reads and parses the files that have changed, and
stores them in batches, each in one transaction. After an interruption the finished batches stay,
and the next run continues, since it does not read a file whose size, times and inode are as stored.
"""

from __future__ import annotations

import gc
import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import ingest, system
from qmd.errors import InputError
from qmd.ingest.file_job import FileJob, NoDocument, ParsedFile, PlainTexts, SameText, version_of
from qmd.ingest.rules import IGNORE_FILES, MAX_BYTES, Rules, vault_settings
from qmd.ingest.scan import (
    LARGEST,
    PackedRows,
    Scan,
    ScannedFile,
    ScanSkip,
    ancestors,
    is_gone,
    printable,
    scan,
)
from qmd.parse.formats import format_of, turned_on_plugins
from qmd.records import dataclass, field
from qmd.store.sql.files import DocumentPlace, StoredFile, stored_file
from qmd.system import cancellation
from qmd.values import Collection, FileState, NewDocument, Progress, ProgressCallback, SkippedFile

if TYPE_CHECKING:
    from qmd.ingest.events import EventKind, OnChange
    from qmd.store import Reader, Store, Writer

#: By path, each file that was skipped, with its state then.
_Skips = dict[str, tuple[SkippedFile, "FileState | None"]]
#: A transaction stores no more. With twice as many characters the peak of memory is 8 MB higher,
#: and nothing is faster; with half as many, pages are filled less well.
BATCH_DOCUMENTS = 256
BATCH_CHARACTERS = 2_000_000
#: If reading this many files in a row takes too long, the disk does not answer.
MOST_UNANSWERED = 3


@dataclass(slots=True)
class CollectionReport:
    """
    The result of a run over one collection; see `qmd.values.reports.IndexReport` for the fields.

    ``warnings`` are pairs of a document, as ``collection/path``, and a sentence about it;
    ``problem`` is that of the workers that parsed files, if any were parsed.
    """

    added: int = 0
    updated: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: list[SkippedFile] = field(default_factory=list)
    excluded: dict[str, int] = field(default_factory=dict)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    problem: str | None = None

    @property
    def changed(self) -> bool:
        return bool(self.added or self.updated or self.moved or self.removed)


class CollectionIndexer:
    """
    One run over one collection.

    Args:
        verify: Read the files that look unchanged as well.
        max_bytes: Skip files that are larger.
        progress: Called with the state of the run before each file.
        changed: Called with each change after its commit.
    """

    def __init__(
        self,
        store: Store,
        collection: Collection,
        *,
        verify: bool = False,
        max_bytes: int = MAX_BYTES,
        progress: ProgressCallback | None = None,
        changed: OnChange | None = None,
    ) -> None:
        self.store = store
        self.collection = collection
        self.root = Path(collection.path)
        self.verify = verify
        self.rules = Rules(self.root, collection.pattern, collection.ignore, max_bytes)
        self.progress = progress or (lambda tick: None)
        self.changed = changed or (lambda kind, path, previous: None)
        self.reread: frozenset[str] = frozenset()
        self.report = CollectionReport()
        self.stored: dict[str, StoredFile] = {}
        self.scanned = 0
        self.vanished: dict[str, StoredFile] = {}
        # By content hash, once with the inode and once without: heaps of paths, some not in
        # `vanished` any more.
        self.vanished_paths: dict[tuple[str, int | None], list[str]] = {}
        self.sought: set[str] = set()  # content hashes
        self.skips: list[tuple[SkippedFile, FileState | None]] = []
        self.batch: list[tuple[NewDocument, DocumentPlace | None]] = []
        self.batch_characters = 0
        self.unanswered = 0  # in a row
        self.changes: list[tuple[EventKind, str, str | None]] = []
        self.touched: list[tuple[int, FileState]] = []
        self.moved: list[tuple[str, StoredFile]] = []
        self.unreadable_folders: list[str] = []
        self.with_texts: bool | None = None  # whether anything was read from pictures, once known
        # Files whose pictures were read before, as became known while they were parsed.
        self.known: dict[str, tuple[bytes, PlainTexts]] = {}

    def run(self) -> CollectionReport:
        """
        Index the whole collection.

        Raises:
            NotFoundError, InputError: The directory does not exist or cannot be read. The documents
                stay as they are.
        """
        with _patient_collector():
            with self.store.reading() as reader:
                rows = reader.files.rows_in_collection(self.collection.id)
                stored = PackedRows(stored_file, rows)
                old_skips = reader.files.skips_in_collection(self.collection.id, version_of)
            walk = scan(self.root, self.rules)
            files = self._scan(walk, stored, old_skips)
        self._store_differences(files)
        self._finish(old_skips, old_skips, others=walk.others, places=None)
        self._tidy()
        return self.report

    def run_paths(self, paths: Iterable[str]) -> CollectionReport:
        """
        Index the files at some paths and below them.

        The documents there become what `run` would make them. The files at the paths themselves are
        read even if they look unchanged. The counts of excluded files stay those of the last `run`.

        Args:
            paths: Relative to the root of the collection.

        Raises:
            NotFoundError, InputError: As `run`.
        """
        self.reread = frozenset(paths)
        if any(path.rpartition("/")[2] in IGNORE_FILES for path in self.reread):
            return self.run()
        walk = scan(self.root, self.rules)
        places = walk.at(self.reread)
        with self.store.reading() as reader:
            self.stored = reader.files.at_or_below(self.collection.id, places)
            all_skips = reader.files.skips_in_collection(self.collection.id, version_of)
        printed = {printable(place) for place in places}
        old_skips = {
            path: skip
            for path, skip in all_skips.items()
            if "" in printed or not printed.isdisjoint((path, *ancestors(path)))
        }
        files = self._sort((item for items in places.values() for item in items), old_skips)
        self._check_disk(walk.device, {file.path for file in files})
        self._store_differences(files)
        self._finish(all_skips, old_skips, others=walk.others, places=tuple(places))
        return self.report

    def _store_differences(self, unread: PackedRows[ScannedFile]) -> None:
        gone = set(self.stored).difference(file.path for file in unread)
        for path, stored in self.stored.items():
            if path in gone:
                self._vanish(path, stored)
        with _patient_collector():
            self._read(unread)
            if self.known:
                self._read(_packed(file for file in unread if file.path in self.known))
            self._flush()

    # -- scanning ----------------------------------------------------------------------

    def _scan(
        self, walk: Scan, stored: Iterable[tuple[str, StoredFile]], old_skips: _Skips
    ) -> PackedRows[ScannedFile]:
        """
        Scan the whole directory; as `_sort`.

        Args:
            stored: The documents of the collection by their paths, in the order of these.
        """
        files = self._sort(self._beside(walk, stored), old_skips)
        self.report.excluded = walk.excluded
        if not self.scanned:
            self._check_disk(walk.device, set())
        return files

    def _beside(
        self, walk: Scan, stored: Iterable[tuple[str, StoredFile]]
    ) -> Iterator[ScannedFile | ScanSkip]:
        """
        The items of a scan. When a file comes, ``self.stored`` has the documents up to its path.

        Both are in the order of paths, so documents of unchanged files are never there together.
        """
        ahead = iter(stored)
        path, document = next(ahead, _END)
        for item in walk:
            if isinstance(item, ScannedFile):
                while document is not None and path <= item.path:
                    self.stored[path] = document
                    path, document = next(ahead, _END)
            yield item
        while document is not None:
            self.stored[path] = document
            path, document = next(ahead, _END)

    def _sort(
        self, items: Iterable[ScannedFile | ScanSkip], old_skips: _Skips
    ) -> PackedRows[ScannedFile]:
        """
        The files of a scan that are to be read. The others are recorded, as unchanged or skipped.

        ``self.stored`` keeps no document of an unchanged file, nor those below a directory that
        cannot be read: these stay.
        """
        files = _packed()
        skipped_again: list[tuple[SkippedFile, FileState]] = []
        for item in items:
            cancellation.check()
            if isinstance(item, ScannedFile):
                self.scanned += 1
                if self.scanned % 1000 == 0:
                    self.progress(Progress("scan", self.scanned, None, item.path))
                if self._is_unchanged(item):
                    del self.stored[item.path]
                elif self._is_skipped(item, old_skips):
                    skipped_again.append((old_skips[item.path][0], item.state))
                else:
                    files.append(_row(item))
            else:
                self._skip(item.path, item.reason, item.detail)
                if item.is_directory and item.reason == "unreadable":
                    self.unreadable_folders.append(item.path)
        for skip, state in skipped_again:
            self._skip(skip.path, skip.reason, skip.detail, state)
        self._keep_unknown()
        return files

    def _check_disk(self, device: int, scanned_paths: set[str]) -> None:
        """
        Check that the root is not an empty mount point, which would look like deleted files.

        Raises:
            InputError: A stored document without a file was on another disk than the root is now.
        """
        if any(
            stored.state.device != device & LARGEST
            for path, stored in self.stored.items()
            if path not in scanned_paths
        ):
            raise InputError(
                f"The folder {self.root} is empty and lies on another disk than its documents.",
                hint="Is its disk mounted? If all its files are gone, remove the collection.",
            )

    def _keep_unknown(self) -> None:
        """Keep the documents below unreadable directories: they are unknown, not gone."""
        unknown = tuple(f"{folder}/" for folder in self.unreadable_folders)
        for path in [path for path in self.stored if path.startswith(unknown)]:
            del self.stored[path]
            self.report.unchanged += 1

    def _is_unchanged(self, file: ScannedFile) -> bool:
        stored = self.stored.get(file.path)
        if (
            stored is None
            or self.verify
            or file.path in self.reread
            or stored.state != file.state
            or stored.parser_version != version_of(file.path)
        ):
            return False
        self.report.unchanged += 1
        return True

    def _is_skipped(self, file: ScannedFile, old_skips: _Skips) -> bool:
        """Whether a file was skipped by the last run and has not changed since."""
        if self.verify or file.path in self.reread or file.path not in old_skips:
            return False
        return file.path not in self.stored and old_skips[file.path][1] == file.state

    def _vanish(self, path: str, stored: StoredFile) -> None:
        self.vanished[path] = stored
        for inode in (stored.state.inode, None):
            heapq.heappush(self.vanished_paths.setdefault((stored.hash, inode), []), path)

    # -- reading -----------------------------------------------------------------------

    def _read(self, unread: PackedRows[ScannedFile]) -> None:
        if not unread:
            self.progress(Progress("index", 0, 0, ""))
            return
        workers = ingest.parse_workers  # which a run without changes need not load
        done, name = 0, ""

        def tick() -> None:
            cancellation.check()
            self.progress(Progress("index", done, len(unread), name))

        jobs = (self._job(file) for file in unread)
        with closing(workers.parse_files(jobs, waiting=tick)) as results:
            for file in unread:
                name = file.path
                tick()
                self._take(file, next(results))
                done += 1
        name = ""
        tick()
        self.report.problem = workers.problem()

    def _job(self, file: ScannedFile) -> FileJob:
        stored = self.stored.get(file.path)
        same = stored is not None and stored.parser_version == version_of(file.path)
        stored_hash = stored.hash if stored is not None and same else None
        most = self.rules.most_bytes(file.path)
        read = self.known.get(file.path)
        if read is None and stored is not None:
            read = self._read_texts(file.path, stored)
        read = read or (b"", ())
        if stored is not None and read[1] and self._lacks(stored, read[1]):
            stored_hash = None  # its pictures are to be noted, even if there is no text in them
        return FileJob(str(self.root), file, most, stored_hash, turned_on_plugins(), *read)

    def _read_texts(self, path: str, stored: StoredFile) -> tuple[bytes, PlainTexts] | None:
        """The hash of a stored document's file, and what was read from its pictures."""
        if format_of(path).picture is None:
            return None
        with self.store.reading() as reader:
            pictures = reader.pictures.of_document(stored.id)
            if not pictures:
                return None
            source = pictures[0].source
            return source, _plain_texts(reader, source)

    def _lacks(self, stored: StoredFile, texts: PlainTexts) -> bool:
        """Whether a stored document does not say yet what was read from its pictures."""
        pictures = self.store.read(lambda reader: reader.pictures.of_document(stored.id))
        readers = {picture.page: picture.read_by for picture in pictures}
        return any(readers.get(page) != read_by for page, read_by, _ in texts)

    def _have_texts(self) -> bool:
        if self.with_texts is None:
            self.with_texts = self.store.read(lambda reader: reader.pictures.have_texts())
        return self.with_texts

    def _is_known(self, document: NewDocument) -> bool:
        """
        Whether more was read from the pictures of this file than the document says.

        The file came back, was copied or moved; it is parsed once more, with the texts.
        """
        if not document.pictures or document.path in self.known or not self._have_texts():
            return False
        source = document.pictures[0].source
        texts = self.store.read(lambda reader: _plain_texts(reader, source))
        readers = {picture.page: picture.read_by for picture in document.pictures}
        if all(readers.get(page, read_by) == read_by for page, read_by, _ in texts):
            return False
        self.known[document.path] = (source, texts)
        return True

    def _take(self, file: ScannedFile, parsed: ParsedFile) -> None:
        stored = self.stored.get(file.path)
        if isinstance(parsed, NoDocument):
            if not parsed.vanished:
                self._skip(file.path, parsed.reason, parsed.detail, parsed.state)
            self._check_answers(parsed)
            if stored is not None:
                self._vanish(file.path, stored)
            return
        self.unanswered = 0
        if isinstance(parsed, SameText):
            assert stored is not None  # it has the text that the job named
            self.report.unchanged += 1
            if parsed.state != stored.state:
                self.touched.append((stored.id, parsed.state))
                if len(self.touched) >= BATCH_DOCUMENTS:
                    self._flush()
        elif not self._is_known(parsed):
            if stored is not None:
                replace: DocumentPlace | None = DocumentPlace(stored.id, file.path)
            else:
                replace = self._moved_from(parsed.hash, file)
            self.report.warnings += [
                (f"{self.collection.name}/{file.path}", warning)
                for warning in parsed.parsed.warnings
            ]
            self._add(parsed, replace)

    def _check_answers(self, parsed: NoDocument) -> None:
        """
        Count files that could not be read in time, and end the run at `MOST_UNANSWERED` in a row.

        A disk that hangs would hold up the run for minutes with each of its files. Raises
        InputError.
        """
        is_unanswered = parsed.reason == ingest.parse_workers.NO_ANSWER
        self.unanswered = self.unanswered + 1 if is_unanswered else 0
        if self.unanswered == MOST_UNANSWERED:
            self._flush()
            raise InputError(
                f"Files below {self.root} give no answer: {parsed.detail}",
                hint="Is its disk reachable? What was indexed of it before is kept.",
            )

    def _moved_from(self, digest: str, file: ScannedFile) -> DocumentPlace | None:
        """
        The place of a vanished document with the same text; None if there is none.

        If there is one, its file was renamed or moved.
        """
        inode = file.state.inode
        path = self._pop_vanished(digest, inode)
        if path is None and self.reread and digest not in self.sought:
            self.sought.add(digest)
            self._look_for_vanished(digest)
            path = self._pop_vanished(digest, inode)
        if path is None:
            return None
        stored = self.vanished.pop(path)
        self.moved.append((path, stored))
        return DocumentPlace(stored.id, path)

    def _pop_vanished(self, digest: str, inode: int) -> str | None:
        """The first vanished path with this text, of this inode if there is one."""
        for paths in map(self.vanished_paths.get, ((digest, inode), (digest, None))):
            while paths:
                path = heapq.heappop(paths)
                if path in self.vanished:
                    return path
        return None

    def _look_for_vanished(self, digest: str) -> None:
        """
        Find vanished documents with this text outside the paths of `run_paths`.

        When a file is moved, the event for its old path may come after that for its new one.
        """
        moved = {path for path, _ in self.moved}
        with self.store.reading() as reader:
            candidates = reader.files.with_hash(self.collection.id, digest)
        for path, stored in candidates.items():
            if path not in self.stored and path not in moved and is_gone(self.root, path):
                self._vanish(path, stored)

    def _add(self, document: NewDocument, replace: DocumentPlace | None) -> None:
        kind: EventKind = "updated"
        previous = None
        if replace is None:
            self.report.added += 1
            kind = "added"
        elif replace.path == document.path:
            self.report.updated += 1
        else:
            self.report.moved += 1
            kind, previous = "moved", replace.path
        self.batch.append((document, replace))
        self.changes.append((kind, document.path, previous))
        self.batch_characters += len(document.parsed.text)
        if len(self.batch) >= BATCH_DOCUMENTS or self.batch_characters >= BATCH_CHARACTERS:
            self._flush()
            system.memory.give_back()

    def _skip(self, path: str, reason: str, detail: str, state: FileState | None = None) -> None:
        skip = SkippedFile(self.collection.name, path, reason, detail)
        self.report.skipped.append(skip)
        self.skips.append((skip, state))

    # -- storing -----------------------------------------------------------------------

    def _flush(self) -> None:
        """
        Store the batch, then report its changes.

        This thread waits for the commit. Reading on in the meantime cost a tenth to a quarter more
        CPU time, because both threads need the interpreter's lock, and was no faster.
        """
        batch, self.batch, self.batch_characters = self.batch, [], 0
        touched, self.touched = self.touched, []
        changes, self.changes = self.changes, []
        if batch or touched:
            self.store.write(lambda writer: self._put(writer, batch, touched))
        for change in changes:
            self.changed(*change)

    def _put(
        self,
        writer: Writer,
        batch: Sequence[tuple[NewDocument, DocumentPlace | None]],
        touched: Sequence[tuple[int, FileState]],
    ) -> None:
        writer.collections.require_unchanged(self.collection)
        paths = [document.path for document, _ in batch]
        states = writer.files.states_at(self.collection.id, paths)
        current = (
            each for each in batch if not self._is_overtaken(each[0], states.get(each[0].path))
        )
        writer.files.put_all(self.collection.id, current)
        writer.files.set_states(touched)

    def _is_overtaken(self, document: NewDocument, current: FileState | None) -> bool:
        """
        Whether another process has stored a newer state of the file since this run began.

        An older text must not replace the text that a tool has written and stored meanwhile. Since
        modification times can be set backwards, the file on the disk decides.

        Args:
            current: The state of the file that the stored document was made from.
        """
        stored = self.stored.get(document.path)
        if current is None or (stored is not None and stored.state == current):
            return False
        if current.mtime_ns <= document.state.mtime_ns:
            return False
        return not ingest.read_file.is_still(self.root / document.path, document.state)

    def _finish(
        self,
        all_skips: _Skips,
        old: _Skips,
        *,
        others: Sequence[str],
        places: Sequence[str] | None,
    ) -> None:
        """
        Delete vanished documents, store the other files, and record the end of the run.

        Args:
            all_skips: The skips that were stored before the run, by path.
            old: Those of ``all_skips`` that this run has examined again.
            others: As `Scan.others`.
            places: The paths at and below which the run has looked; None for the whole collection.
        """
        whole = places is None
        self.report.removed = len(self.vanished)
        # A moved document has left its old path, unless another process has stored it at the new
        # path first: then the row of the old path is left.
        gone = [*self.vanished.items(), *self.moved]
        skips = {skip.path: (skip, state) for skip, state in self.skips}
        with self.store.reading() as reader:
            below = [""] if places is None else places
            attachments = self._attachments(reader, below, others, skips)

        def finish(writer: Writer) -> None:
            writer.collections.require_unchanged(self.collection)
            writer.files.delete(self.collection.id, gone)
            if skips != old:
                kept = {path: skip for path, skip in all_skips.items() if path not in old}
                noted = (kept | skips).values()
                writer.files.replace_skips(self.collection.id, noted, version_of)
            writer.files.change_attachments(self.collection.id, *attachments)
            if whole:
                writer.collections.mark_indexed(
                    self.collection.id,
                    excluded=self.report.excluded,
                    changed=self.report.changed,
                    is_vault=vault_settings(self.root) is not None,
                )
            elif self.report.changed:
                writer.collections.mark_changed(self.collection.id)

        if whole or gone or skips != old or any(attachments) or self.report.changed:
            self.store.write(finish)
        for path in self.vanished:
            self.changed("removed", path, None)

    def _attachments(
        self, reader: Reader, places: Sequence[str], others: Iterable[str], skipped: Iterable[str]
    ) -> tuple[set[str], set[str]]:
        """
        The attachments to store, and the stored ones to forget.

        Args:
            places: The paths at and below which the run has looked; "" is the root.
            others: As `Scan.others`.
            skipped: The paths of files that the rules include and that are no documents.
        """
        present = set(others)
        present.update(
            path
            for path in skipped
            if path not in self.unreadable_folders and path.rpartition("/")[2] not in IGNORE_FILES
        )
        stored = reader.files.attachments_at_or_below(self.collection.id, places)
        # What is below them is unknown: it stays.
        unreadable = tuple(f"{folder}/" for folder in self.unreadable_folders)
        present.update(path for path in stored if path.startswith(unreadable))
        return present - stored, stored - present

    def _tidy(self) -> None:
        """
        Merge full text and shrink the file, after a run that stored many of all documents.

        It takes a hundredth of the time of a first index, and searches take a tenth less.
        """
        stored = self.report.added + self.report.updated + self.report.moved
        if stored <= BATCH_DOCUMENTS:
            return
        total = self.store.read(lambda reader: reader.documents.count())
        if stored * 10 >= total:
            self.store.merge_full_text()
            self.store.shrink()
        system.memory.give_back()


#: What stands after the last document.
_END: tuple[str, None] = ("", None)


def _packed(files: Iterable[ScannedFile] = ()) -> PackedRows[ScannedFile]:
    return PackedRows(_scanned_file, map(_row, files))


def _row(file: ScannedFile) -> tuple[str, tuple[int, ...]]:
    return file.path, tuple(file.state)


def _scanned_file(row: tuple[str, tuple[int, int, int, int]]) -> ScannedFile:
    path, state = row
    return ScannedFile(path, FileState(*state))


def _plain_texts(reader: Reader, source: bytes) -> PlainTexts:
    texts = reader.pictures.texts(source)
    return tuple((page, *read) for page, read in texts.items())


@contextmanager
def _patient_collector() -> Iterator[None]:
    """
    Make the garbage collector run less often inside the block.

    Documents and states of files are many small values without cycles. Examining them again and
    again took an eighth of the time of a first index, and a tenth of that of a scan.
    """
    before = gc.get_threshold()
    gc.set_threshold(50_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
