"""
Copies a knowledge base into another database, of whatever kind: a file, or one on a server.

What only the database holds goes as an export does. Documents are made again of their stored texts,
so each engine has them in its own form, with the state of the file: the next run of the indexer
reads no file again. Vectors and token states go by the hash of their text. Each step leaves alone
what is there already, so a copy that was interrupted goes on where it was.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import ConflictError, DecodeError, InputError
from qmd.ingest.collection_indexer import BATCH_CHARACTERS, BATCH_DOCUMENTS
from qmd.ingest.parse_file import new_document
from qmd.parse.converted import Anchor, Converted
from qmd.parse.decode import Decoded
from qmd.parse.document import converted_document, parse_markdown
from qmd.parse.formats import MARKDOWN, PHOTO, format_of
from qmd.parse.lines import line_starts
from qmd.parse.photo.metadata import stored_photo
from qmd.transfer.export import export
from qmd.transfer.take_back import take_back
from qmd.values import ModelSpec, NewDocument, ParsedDocument, Progress, ProgressCallback
from qmd.values.pictures import ReadPicture
from qmd.values.transfer import CopyReport, NotTaken

if TYPE_CHECKING:
    from qmd.store import Reader, Store, Writer
    from qmd.store.sql.models import ChunkText, StoredModel

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
        exported = export(source, archive, settings=None, version=version, force=False)
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
        not_taken=(*returned.folders.not_taken, *_damaged(exported.damaged)),
    )


def _damaged(contents: int) -> list[NotTaken]:
    if not contents:
        return []
    return [NotTaken(f"{contents:,} earlier contents of files", "They cannot be read any more.")]


def _collections(source: Store, target: Store) -> list[str]:
    """The names of the collections that both databases have for the same folder."""
    with source.reading() as reader:
        ours = {each.name: each.path for each in reader.collections.all()}
    with target.reading() as reader:
        theirs = {each.name: each.path for each in reader.collections.all()}
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
    target.write(lambda writer: writer.models.take_over(theirs))
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
