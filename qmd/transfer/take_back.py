"""
Fills a database with a knowledge base: one read back from an export, or that of another database.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from qmd.errors import ConflictError, DecodeError, InputError
from qmd.ingest.collection_indexer import BATCH_CHARACTERS, BATCH_DOCUMENTS
from qmd.ingest.parse_file import new_document
from qmd.parse.converted import Anchor, Converted
from qmd.parse.decode import Decoded
from qmd.parse.document import converted_document, parse_markdown
from qmd.parse.formats import MARKDOWN, PHOTO, format_of
from qmd.parse.lines import line_starts
from qmd.parse.photo.metadata import stored_photo
from qmd.store.sql.conversations import ChatSummary
from qmd.store.sql.revisions import NO_FILE, RevisionContent, pack_revision
from qmd.transfer import export
from qmd.transfer.export import content_name, turns_name
from qmd.transfer.programs import FolderImport, check_folders
from qmd.values import ModelSpec, NewDocument, ParsedDocument, Progress, ProgressCallback, transfer
from qmd.values.chats import MAX_CHAT_BYTES, MAX_CHATS, ChatInfo, StoredTurn
from qmd.values.pictures import ReadPicture
from qmd.values.text import is_utf8
from qmd.values.transfer import CopyReport, NotTaken
from qmd.values.wire import from_wire

if TYPE_CHECKING:
    from qmd.store import Reader, Store, Writer
    from qmd.store.sql.models import ChunkText, StoredModel


T = TypeVar("T")

# --- from an export ---------------------------------------------------------------------
# Collections, contexts, history and conversations come back. An export may be damaged or come from
# a stranger: each record is checked, and each content compared with its hash, before anything is
# written.

_MAX_SETTINGS = 1024 * 1024  # bytes
_MAX_LINES = 256 * 1024 * 1024  # bytes of a file of records
_MAX_CONTENT = 80 * 1024 * 1024  # bytes of a revision, as `pack_revision` has it
#: Bytes of all contents, as they are kept.
_MAX_CONTENTS = 4 * 1024**3
_MAX_NUMBER = 2**62
_CHAT_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")

#: A folder on the other machine, and the same folder on this one.
Move = tuple[str, str]


_Chat = tuple[ChatInfo, ChatSummary, list[StoredTurn]]


def take_back(
    store: Store,
    path: Path,
    *,
    moves: Sequence[Move] = (),
    dry_run: bool = False,
    has_folders: bool = True,
    record: Callable[[Writer], object] = lambda writer: None,
) -> transfer.ReturnReport:
    """
    Add what an export holds, all in one transaction; what is there already stays as it is.

    The history is added only to a database that has none: two cannot be merged, because the number
    of a change is its name.

    Args:
        moves: Folders that have another path on this machine.
        dry_run: Only say what would be added.
        has_folders: Leave collections out whose folders are not on this machine.
        record: Called in the transaction, for the audit log.

    Raises:
        NotFoundError: There is nothing at the path.
        InputError: It is no export, is damaged, or was written by a newer program. Nothing was
            written.
    """
    with export.reading(path) as read:
        _check_head(read)
        plan = _plan(read, path, moves)
        checked_folders = check_folders(plan) if has_folders else plan.collections
        history = _History(read, moves)
        chats = list(_chats(read))
        settings = read(export.SETTINGS, _MAX_SETTINGS)

        def run(reader: Reader, writer: Writer | None) -> transfer.ReturnReport:
            folders = FolderImport(plan, reader, writer).run(checked_folders)
            changes, revisions, not_taken = history.add(reader, writer)
            new, too_many = _new_chats(reader, chats)
            if writer is not None:
                record(writer)
                for chat in new:
                    writer.conversations.restore(*chat)
            folders = replace(folders, not_taken=(*folders.not_taken, *not_taken, *too_many))
            text = None if settings is None else settings.decode(errors="replace")
            return transfer.ReturnReport(folders, changes, revisions, len(new), text)

        if dry_run:
            return store.read(lambda reader: run(reader, None))
        return store.write(lambda writer: run(writer, writer))


def _new_chats(
    reader: Reader, chats: Sequence[_Chat]
) -> tuple[list[_Chat], list[transfer.NotTaken]]:
    """The conversations that are not here yet, as far as there is room."""
    new = [chat for chat in chats if reader.conversations.get(chat[0].id) is None]
    room = max(0, MAX_CHATS - reader.conversations.count())
    if len(new) <= room:
        return new, []
    reason = f"At most {MAX_CHATS:,} are kept. Delete some, then import again."
    return new[:room], [transfer.NotTaken(f"{len(new) - room:,} conversations", reason)]


def _check_head(read: export.Read) -> None:
    data = read(export.HEAD, _MAX_SETTINGS)
    if data is None:
        raise InputError(
            "This is no export of qmd: it has no export.json.",
            hint="For an archive of notes: 'qmd import markdown-zip FILE FOLDER'.",
        )
    head = _record(transfer.ExportHead, data, export.HEAD)
    if head.version > transfer.EXPORT_VERSION:
        raise InputError(
            f"The export was written by qmd {head.qmd}, which is newer.", hint="Upgrade qmd."
        )


def _plan(read: export.Read, path: Path, moves: Sequence[Move]) -> transfer.ImportPlan:
    contexts = list(_records(read, export.CONTEXTS, transfer.ExportedContext))
    overall = [context.text for context in contexts if context.collection is None]
    return transfer.ImportPlan(
        str(path),
        tuple(
            transfer.PlannedCollection(
                each.name,
                _moved(each.path, moves),
                each.pattern,
                each.ignore,
                each.included,
                tuple(
                    transfer.PlannedContext(context.prefix, context.text)
                    for context in contexts
                    if context.collection == each.name
                ),
                each.owner,
            )
            for each in _records(read, export.COLLECTIONS, transfer.ExportedCollection)
        ),
        overall[0] if overall else "",
    )


class _History:
    """The changes and revisions of an export."""

    def __init__(self, read: export.Read, moves: Sequence[Move]) -> None:
        self._read = read
        self._changes = list(_records(read, export.CHANGES, transfer.KeptChange))
        self._revisions = [
            replace(
                each,
                path=_moved(each.path, moves),
                moved_from=None if each.moved_from is None else _moved(each.moved_from, moves),
            )
            for each in _records(read, export.REVISIONS, transfer.KeptRevision)
        ]
        _check_numbers([each.number for each in self._changes])
        _check_numbers([each.number for each in self._revisions])
        if any("\0" in f"{each.path}{each.moved_from}" for each in self._revisions):
            raise _damaged(export.REVISIONS, "a path holds a NUL")

    def add(
        self, reader: Reader, writer: Writer | None
    ) -> tuple[int, int, list[transfer.NotTaken]]:
        """How many changes and revisions were added, and what was not."""
        present = (reader.revisions.kept_changes(), reader.revisions.kept_revisions())
        if present == (self._changes, self._revisions):
            return 0, 0, []
        if any(present) and (self._changes or self._revisions):
            reason = "This database has a history already. A new one takes it: --index NAME"
            return 0, 0, [transfer.NotTaken("history", reason)]
        if writer is not None:
            for change in self._changes:
                writer.revisions.put_change(change)
            total = 0
            for revision in self._revisions:
                content = self._content(revision)
                total += len(content.stored)
                if total > _MAX_CONTENTS:
                    raise InputError(
                        f"The earlier contents of files have more than {_MAX_CONTENTS:,} bytes."
                    )
                writer.revisions.put_revision(revision, content)
        return len(self._changes), len(self._revisions), []

    def _content(self, revision: transfer.KeptRevision) -> RevisionContent:
        if revision.kind == "none":
            return NO_FILE
        if not _HASH.fullmatch(revision.hash):
            raise _damaged(export.REVISIONS, f"{revision.hash!r} is no hash")
        name = content_name(revision.hash)
        data = self._read(name, _MAX_CONTENT)
        content = None if data is None else pack_revision(data, revision.kind)
        if content is None or (content.hash, content.size) != (revision.hash, revision.bytes):
            raise _damaged(name, "it is missing, or is not what was exported")
        return content


def _chats(read: export.Read) -> Iterator[_Chat]:
    for chat in _records(read, export.CHATS, transfer.ExportedChat):
        if not _CHAT_ID.fullmatch(chat.id):
            raise _damaged(export.CHATS, f"{chat.id!r} is no id of a conversation")
        name = turns_name(chat.id)
        turns = [
            # The process that ran a turn is not here.
            replace(turn, status="interrupted") if turn.status == "running" else turn
            for turn in _records(read, name, StoredTurn, limit=4 * MAX_CHAT_BYTES)
        ]
        _check_numbers([turn.number for turn in turns])
        info = ChatInfo(chat.id, chat.name, chat.mode, chat.created, chat.updated, len(turns))
        yield info, ChatSummary(chat.summary, chat.summarized), turns


def _check_numbers(numbers: Sequence[int]) -> None:
    """Numbers must be those that a database can have, each once. Raises InputError."""
    if len({*numbers}) < len(numbers) or any(not 0 < each < _MAX_NUMBER for each in numbers):
        raise _damaged("the export", "two records have the same number, or one an impossible one")


def _moved(path: str, moves: Sequence[Move]) -> str:
    """The path on this machine."""
    for other, new in moves:
        old = other.rstrip("/\\")
        if path == old or path.startswith((f"{old}/", f"{old}\\")):
            return new.rstrip("/\\") + path[len(old) :]
    return path


def _records(
    read: export.Read, name: str, record_type: type[T], *, limit: int = _MAX_LINES
) -> Iterator[T]:
    """The records of a file, one a line; none without the file. Raises InputError."""
    for line in (read(name, limit) or b"").splitlines():
        yield _record(record_type, line, name)


def _record(record_type: type[T], data: bytes, name: str) -> T:
    try:
        value = json.loads(data, parse_int=_number, parse_constant=_number)
        if not is_utf8(json.dumps(value, ensure_ascii=False)):
            raise ValueError("half a character")
        return from_wire(record_type, value)
    except (ValueError, RecursionError) as error:
        raise _damaged(name, str(error)[:200]) from error


def _number(text: str) -> int:
    """A number of a record. Raises ValueError: SQLite cannot store it."""
    number = int(text) if len(text) < 20 else _MAX_NUMBER
    if abs(number) >= _MAX_NUMBER:
        raise ValueError(f"{text} is too large")
    return number


def _damaged(name: str, problem: str) -> InputError:
    return InputError(
        f"The export is damaged: {name}: {problem}.",
        hint="Nothing was changed. Export again, or import another copy.",
    )


# --- from another database --------------------------------------------------------------
# Both may be of any kind: a file, or one on a server. What only the database holds goes as an
# export does. Documents are made again of their stored texts, so each engine has them in its own
# form, with the state of the file: the next run of the indexer reads no file again. Vectors and
# token states go by the hash of their text. Each step leaves alone what is there already, so a copy
# that was interrupted goes on where it was.

#: Vectors in one transaction.
BATCH_VECTORS = 1_000


def copy_to(
    source: Store,
    target: Store,
    *,
    name: str,
    version: str,
    progress: ProgressCallback = lambda tick: None,
) -> CopyReport:
    """
    Copy everything but the answers of models, tokens of clients and the audit log.

    Args:
        name: Names the target to people.
        version: Of this program.

    Raises:
        ConflictError: The target has a collection of the same name for another folder.
        StoreError: One of the databases failed. What was copied stays.
    """
    with tempfile.TemporaryDirectory(prefix="qmd-copy-") as folder:
        archive = Path(folder) / "export"
        exported = export.export(source, archive, settings=None, version=version, force=False)
        # The documents are copied, too, so it does not matter where their folders are.
        returned = take_back(target, archive, has_folders=False)
    documents, unchanged = 0, 0
    for collection in _collections(source, target):
        added, same = _copy_documents(source, target, collection, progress)
        documents += added
        unchanged += same
    vectors, token_states = _copy_vectors(source, target, progress)
    return CopyReport(
        target=name,
        collections=len(returned.folders.collections),
        documents=documents,
        unchanged=unchanged,
        vectors=vectors,
        token_states=token_states,
        changes=returned.changes,
        revisions=returned.revisions,
        conversations=returned.chats,
        not_taken=(*returned.folders.not_taken, *_damaged_parts(exported.damaged)),
    )


def _damaged_parts(contents: int) -> list[NotTaken]:
    if not contents:
        return []
    return [NotTaken(f"{contents:,} earlier contents of files", "They cannot be read any more.")]


def _collections(source: Store, target: Store) -> list[str]:
    """The names of the collections that both databases have for the same folder."""
    ours = source.read(lambda reader: {each.name: each.path for each in reader.collections.all()})
    theirs = target.read(lambda reader: {each.name: each.path for each in reader.collections.all()})
    for name, path in ours.items():
        if theirs.get(name, path) != path:
            raise ConflictError(
                f"The target has a collection '{name}' of another folder: {theirs[name]}",
                hint="Rename or remove it there, or copy to an empty database.",
            )
    return sorted(ours.keys() & theirs.keys())


# -- documents -------------------------------------------------------------------------


def _copy_documents(
    source: Store, target: Store, name: str, progress: ProgressCallback
) -> tuple[int, int]:
    """How many documents were copied, and how many were there already."""
    with source.reading() as reader, target.reading() as there:
        theirs = there.collections.by_name(name)
        stored = there.files.in_collection(theirs.id)
        ours = reader.files.in_collection(reader.collections.by_name(name).id)
        new = [
            path
            for path, file in sorted(ours.items())
            if path not in stored or stored[path].hash != file.hash
        ]
        done = 0
        for batch in _batches(reader, name, new):
            sources = {each.pictures[0].source for each in batch if each.pictures}
            texts = {source: reader.pictures.texts(source) for source in sources}
            _put(target, theirs.id, batch, texts)
            done += len(batch)
            progress(Progress("index", done, len(new), batch[-1].path))

        is_vault = reader.collections.is_vault(name)

    def finish(writer: Writer) -> None:
        writer.collections.mark_indexed(theirs.id, excluded={}, changed=True, is_vault=is_vault)

    if done or theirs.last_indexed is None:  # an earlier copy was interrupted before this
        target.write(finish)
    return done, len(ours) - len(new)


def _put(
    target: Store,
    collection_id: int,
    batch: Sequence[NewDocument],
    texts: Mapping[bytes, Mapping[int, ReadPicture]],
) -> None:
    def put(writer: Writer) -> None:
        for source, read in texts.items():
            writer.pictures.put_texts(source, read)
        writer.files.put_all(collection_id, ((document, None) for document in batch))

    target.write(put)


def _batches(reader: Reader, name: str, paths: Sequence[str]) -> Iterator[list[NewDocument]]:
    """Documents made of stored texts, in batches that fit one transaction."""
    files = reader.files.in_collection(reader.collections.by_name(name).id)
    batch: list[NewDocument] = []
    characters = 0
    for path in paths:
        file = files[path]
        text = reader.documents.text(file.id)
        try:
            parsed = _parsed(reader, path, file.id, text)
        except DecodeError as error:
            raise InputError(f"{name}/{path} cannot be copied: {error}") from error
        pictures = reader.pictures.of_document(file.id)
        document = new_document(path, parsed, file.hash, file.state, pictures)
        if format_of(path) is not MARKDOWN:  # what a newer version would say, only the file tells
            document = replace(document, parser_version=file.parser_version)
        batch.append(document)
        characters += len(text)
        if len(batch) >= BATCH_DOCUMENTS or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _parsed(reader: Reader, path: str, document_id: int, text: str) -> ParsedDocument:
    file_format = format_of(path)
    if file_format is MARKDOWN:
        return parse_markdown(path, Decoded(text, "utf-8", ()))
    facts = reader.documents.facts(document_id)
    title = reader.documents.by_id(document_id).title
    if file_format is not PHOTO:
        starts = line_starts(text)
        anchors = (
            Anchor(each.kind, each.label, starts[each.line - 1], each.shown)
            for each in reader.documents.anchors(document_id)
        )
        converted = Converted(text, tuple(anchors), title, facts.date, facts.properties)
        document = converted_document(file_format, path, converted)
        return replace(document, warnings=tuple(reader.documents.warnings(document_id)))
    return stored_photo(
        text,
        title=title,
        description=facts.description,
        tags=facts.tags,
        date=facts.date,
        properties=facts.properties,
        warnings=reader.documents.warnings(document_id),
    )


# -- vectors ---------------------------------------------------------------------------


def _copy_vectors(source: Store, target: Store, progress: ProgressCallback) -> tuple[int, int]:
    """How many chunks got their vectors, and how many texts their token states."""
    with source.reading() as reader:
        model = reader.models.active()
        projection = None if model is None else reader.tokens.projection(model)
    if model is None:
        return 0, 0
    spec = ModelSpec(model.name, model.fingerprint, model.dimension, max_tokens=512)
    theirs = target.write(lambda writer: writer.models.begin(spec))
    with target.reading() as there:
        total = there.embeddings.count_waiting(theirs)
    copied = states = 0
    for waiting in _waiting(target, theirs, lambda reader: reader.embeddings.waiting):
        with source.reading() as reader:
            vectors = reader.embeddings.cached(model, [chunk.hash for chunk in waiting])
        chunks = [(chunk.id, chunk.hash) for chunk in waiting if chunk.hash in vectors]
        copied += _put_vectors(target, theirs, chunks, vectors)
        progress(Progress("embed", copied, total))
    target.write(lambda writer: writer.models.make_active(theirs))
    if projection is not None:
        target.write(lambda writer: writer.tokens.begin(theirs, projection))
        for waiting in _waiting(target, theirs, lambda reader: reader.tokens.waiting):
            with source.reading() as reader:
                codes = reader.tokens.cached(model, [chunk.hash for chunk in waiting])
            states += _put_codes(target, theirs, codes)
    return copied, states


def _waiting(
    target: Store, model: StoredModel, read: Callable[[Reader], Callable[..., list[ChunkText]]]
) -> Iterator[list[ChunkText]]:
    """The chunks that wait in the target, in batches; each comes once."""
    after = 0
    while True:
        with target.reading() as reader:
            waiting = read(reader)(model, BATCH_VECTORS, after=after)
        if not waiting:
            return
        after = waiting[-1].id
        yield waiting


def _put_vectors(
    target: Store,
    model: StoredModel,
    chunks: Sequence[tuple[int, bytes]],
    vectors: dict[bytes, bytes],
) -> int:
    return target.write(lambda writer: writer.embeddings.put(model, chunks, vectors))


def _put_codes(target: Store, model: StoredModel, codes: dict[bytes, bytes]) -> int:
    return target.write(lambda writer: writer.tokens.put(model, codes))
