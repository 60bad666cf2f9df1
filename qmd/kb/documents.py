"""Reading documents by name, and listing them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

from qmd import files, search
from qmd.kb.parts import Parts, open_to_scopes
from qmd.records import replace
from qmd.search import lookup
from qmd.values import Filters
from qmd.values.pictures import PictureText
from qmd.values.text import MAX_TOTAL_BYTES, check_max_tokens, fold, replace_halves

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import DocumentAnchor, DocumentInfo, DocumentSlice, MultiGetReply
    from qmd.values.properties import PropertySummary, PropertyValue
    from qmd.values.reading import DocumentDetails, DocumentOutline, PdfPage


class DocumentMethods(Parts):
    @open_to_scopes
    def get(
        self,
        file: str,
        *,
        from_line: int | None = None,
        max_lines: int | None = None,
        max_tokens: int | None = None,
        max_total_bytes: int | None = None,
        line_numbers: bool = False,
    ) -> DocumentSlice:
        """
        Read one document, or some of its lines.

        Args:
            file: ``collection/path``, ``qmd://collection/path``, a path on the disk, the end of a
                path, ``#docid`` or its six hex digits, an alias or a title, in any letter case and
                Unicode form, with or without ``.md``; also as ``[[name]]``. ``#Heading``,
                ``#Heading#Subheading`` or ``^block`` after it gives that part of the document;
                ``:LINE`` or ``:LINE:COUNT`` overrides the other arguments.
            from_line: The first line, counted from 1; None for the first of the document.
            max_lines: Return at most this many lines; None for all.
            max_tokens: Return as many of these lines as are estimated to have at most this many
                tokens; ``left_out`` of the result has the others. None for all.
            max_total_bytes: As ``max_tokens``, for the bytes of the reply as JSON.
            line_numbers: Whether the caller will number the lines, which takes tokens, too.

        Raises:
            DocumentNotFoundError: With up to three suggestions.
            SectionNotFoundError: The document has no such heading or block; with suggestions.
            AmbiguousNameError: More than one document fits.
            InputError: ``max_lines`` is less than 1, or ``max_tokens`` less than `MIN_TOKENS`.
        """
        check_max_tokens(max_tokens)
        budget = None
        if max_tokens is not None or max_total_bytes is not None:
            budget = search.budget.ReadingBudget(
                max_tokens=max_tokens, max_bytes=max_total_bytes, line_numbers=line_numbers
            )
        with self._store.reading() as reader:
            return lookup.documents.get(
                reader, file, from_line=from_line, max_lines=max_lines, budget=budget
            )

    @open_to_scopes
    def multi_get(
        self,
        pattern: str,
        *,
        max_lines: int | None = None,
        max_bytes: int = 10240,
        max_tokens: int | None = None,
        max_total_bytes: int | None = MAX_TOTAL_BYTES,
        line_numbers: bool = False,
    ) -> MultiGetReply:
        """
        Read several documents, as many as the reply has room for.

        The documents come in the order of the list, or by collection and path. The last one may be
        cut; ``more`` of the reply counts those that are missing.

        Args:
            pattern: A glob, or names as `get` takes them, separated by commas.
            max_lines: Return at most this many lines of each document; None for all.
            max_bytes: A larger document is named in the reply and not read.
            max_tokens: The most tokens of the reply, estimated; None for no bound.
            max_total_bytes: The most bytes of the reply as JSON; None for no bound.
            line_numbers: Whether the caller will number the lines, which takes room, too.

        Raises:
            NoMatchError: No document matches.
            InputError: A bound is too small, or the pattern cannot be used.
        """
        check_max_tokens(max_tokens)
        budget = search.budget.ReadingBudget(
            max_tokens=max_tokens, max_bytes=max_total_bytes, line_numbers=line_numbers
        )
        with self._store.reading() as reader:
            return lookup.documents.multi_get(
                reader, pattern, max_lines=max_lines, max_bytes=max_bytes, budget=budget
            )

    @open_to_scopes
    def outline(self, file: str) -> DocumentOutline:
        """
        The headings and named blocks of one document, with their lines.

        Args:
            file: A name as `get` takes it. With ``#Heading``: those of that section.

        Raises:
            DocumentNotFoundError, SectionNotFoundError, AmbiguousNameError: As `get`.
        """
        return self._store.read(lambda reader: lookup.documents.outline(reader, file))

    @open_to_scopes
    def details(self, file: str) -> DocumentDetails:
        """
        The properties, tags, other names, date and place of one document.

        Args:
            file: A name as `get` takes it.

        Raises:
            DocumentNotFoundError, SectionNotFoundError, AmbiguousNameError: As `get`.
        """
        return self._store.read(lambda reader: lookup.documents.details(reader, file))

    @open_to_scopes
    def open_file(self, file: str) -> BinaryIO:
        """
        Open a document or an attachment, ``collection/path``, for reading its bytes.

        No link below the collection is followed, and only files that the index lists are opened,
        never the database.

        Raises:
            DocumentNotFoundError: There is no such file.
            CollectionNotFoundError.
        """
        store = self._store
        with ExitStack() as stack:  # the end of reading may raise that nobody waits any more
            with store.reading() as reader:
                opened = stack.enter_context(
                    files.vault.open_indexed_file(reader, file, database=store.location)
                )
            stack.pop_all()
        return opened

    @open_to_scopes
    def file_version(self, file: str) -> str:
        """A text that changes with a file. Raises the errors of `open_file`."""
        with self.open_file(file) as opened:
            status = os.fstat(opened.fileno())
        return f"{status.st_mtime_ns:x}-{status.st_size:x}"

    @open_to_scopes
    def places(self, file: str) -> Sequence[DocumentAnchor]:
        """
        The pages, slides and the like of one document, in order; none if it has lines alone.

        Args:
            file: A name as `get` takes it.

        Raises:
            DocumentNotFoundError, SectionNotFoundError, AmbiguousNameError: As `get`.
        """
        with self._store.reading() as reader:
            return reader.documents.anchors(lookup.resolve.resolve(reader, file).document.id)

    @open_to_scopes
    def pdf_page(
        self, file: str, number: int, *, query: str = "", lines: Sequence[str] = ()
    ) -> PdfPage | None:
        """
        The size of a page of the PDF ``collection/path``, and where words stand on it.

        Args:
            number: From 1; a greater one than there are is the last.
            query: Its words are marked as in the hits of a search; of a scan, in what was read.
            lines: Lines of the document's text, marked where no word of the query stands.

        Returns:
            None if the page cannot be read, or not within the limits for one.

        Raises:
            DocumentNotFoundError, CollectionNotFoundError: As `open_file`.
        """
        root, path = self._root_and_path(file)
        read = None
        if query or lines:
            with self._store.reading() as reader:
                document = lookup.resolve.resolve(reader, file).document
                stored = reader.pictures.text_on_page(document.id, number)
            read = None if stored is None else PictureText.load(stored)
        look_at = files.pictures.look_at
        return look_at(root, path, number, query=query, lines=lines, read=read)

    @open_to_scopes
    def page_picture(
        self, file: str, number: int, *, width: int
    ) -> tuple[tuple[bytes, str] | None, str]:
        """
        A picture of a page, its media type, and a text that changes with the file.

        Args:
            file, number: As `pdf_page` takes them.
            width: In pixels; a very high page is drawn narrower.

        Returns:
            None for a page that cannot be drawn, or not within the limits for one.

        Raises:
            DocumentNotFoundError, CollectionNotFoundError: As `open_file`.
        """
        version = self.file_version(file)
        root, path = self._root_and_path(file)
        return files.pictures.draw_page(root, path, number, width=width), version

    def _root_and_path(self, file: str) -> tuple[str, str]:
        """The directory of a file's collection, and its path in it; as `open_file` checks it."""
        self.open_file(file).close()
        collection, _, path = file.partition("/")
        return self._root(collection), path

    def _root(self, collection: str) -> str:
        return self._store.read(lambda reader: reader.collections.by_name(collection).path)

    @open_to_scopes
    def files_named(self, prefix: str, *, limit: int = 100) -> list[str]:
        """
        Documents (``collection/path``) whose file name begins with ``prefix``, by this name.

        Letter case and Unicode form do not matter. An empty prefix gives none.
        """
        key = fold(lookup.resolve.storable(prefix))
        if not key:
            return []
        return self._store.read(lambda reader: reader.documents.with_file_name_prefix(key, limit))

    @open_to_scopes
    def files_beginning(self, prefix: str, *, limit: int | None = None) -> list[str]:
        """
        Documents whose ``collection/path`` begins with ``prefix``, by collection and path.

        Letter case matters. It takes a tenth of the time of `documents`, which reads more of each.
        """
        prefix = replace_halves(prefix)
        with self._store.reading() as reader:
            places = reader.documents.places(prefix)
            files = (f"{collection}/{path}" for _, collection, path in places)
            return list(islice((file for file in files if file.startswith(prefix)), limit))

    @open_to_scopes
    def titles_beginning(self, prefix: str, *, limit: int = 100) -> list[tuple[str, str]]:
        """
        Titles and aliases that begin with ``prefix``, each after its ``collection/path``.

        Letter case and Unicode form do not matter. An empty prefix gives none.
        """
        key = fold(lookup.resolve.storable(prefix))
        if not key:
            return []
        names = self._store.read(lambda reader: reader.documents.with_other_name_prefix(key, limit))
        return [(f"{each.collection}/{each.path}", each.name) for each in names]

    @open_to_scopes
    def paths_from(self, prefix: str, *, limit: int = 100, start: str = "") -> list[str]:
        """
        What ``collection/path`` may continue with: the entries of one folder that begin so.

        Folders and collections end with ``/``. Letter case matters. The cost grows with the number
        of entries that are returned, not with that of the documents below them.

        Args:
            prefix: The beginning of a path. Without a slash it is that of a collection's name.
            start: An entry, as this returns it: those before it are left out.
        """
        collection, slash, path = replace_halves(prefix).partition("/")
        with self._store.reading() as reader:
            if slash:
                first = replace_halves(start).partition("/")[2]
                names = reader.documents.entries(collection, path, limit, first)
                return [f"{collection}/{name}" for name in names]
            names = sorted(each.name for each in reader.collections.all())
            return [f"{name}/" for name in names if name.startswith(collection)][:limit]

    @open_to_scopes
    def documents(
        self,
        prefix: str = "",
        *,
        collections: Sequence[str] = (),
        tags: Sequence[str] = (),
        properties: Sequence[str] = (),
        sort: str | None = None,
        group_by: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[DocumentInfo]:
        """
        The documents below ``collection/prefix``, by collection and path.

        Args:
            prefix: ``collection`` or ``collection/folder``; empty for all documents.
            collections: Only documents of one of these collections; empty for all.
            tags: Only documents with all of these tags.
            properties: Only documents that meet all these conditions, such as ``rating:>4``.
            sort: ``date``, ``title`` or a property, with ``-`` in front for descending order.
            group_by: A property. Documents with the same value stand together, and
                `DocumentInfo.group` has it; unless sorted otherwise, groups are sorted by it.
            limit: Return at most this many; None for all.
            offset: Leave out this many at the start.

        Raises:
            CollectionNotFoundError.
            InputError: A condition is none.
            NotFoundError: No document has the property to sort or group by.
        """
        with self._store.reading() as reader:
            return search.listing.list_documents(
                reader,
                *_folder(reader, prefix),
                filters=_filters(collections, tags, properties),
                sort=sort,
                group_by=group_by,
                limit=limit,
                offset=offset,
            )

    @open_to_scopes
    def count_documents(
        self,
        prefix: str = "",
        *,
        collections: Sequence[str] = (),
        tags: Sequence[str] = (),
        properties: Sequence[str] = (),
    ) -> int:
        """
        How many documents `documents` lists without a limit.

        Raises:
            CollectionNotFoundError.
            InputError: A condition is none.
        """
        with self._store.reading() as reader:
            collection, folder = _folder(reader, prefix)
            filters = _filters(collections, tags, properties)
            selection = reader.select(filters, one_per_file=collection is None)
            return reader.documents.count_below(collection, folder, selection=selection)

    def why_none(
        self, prefix: str = "", *, tags: Sequence[str] = (), properties: Sequence[str] = ()
    ) -> str:
        """
        Sentences that say why `documents` lists nothing, with the nearest names.

        "" if each of these filters alone would leave something.

        Raises:
            InputError: A condition is none.
        """
        with self._store.reading() as reader:
            return search.spelling.missing(
                reader, replace(_filters((), tags, properties), path=prefix or None)
            )

    @open_to_scopes
    def properties(self) -> list[PropertySummary]:
        """The properties that documents have: keys, kinds of values and how many documents."""
        with self._store.reading() as reader:
            return reader.properties.summaries(reader.select(Filters()))

    @open_to_scopes
    def property_values(self, key: str, *, limit: int | None = None) -> list[PropertyValue]:
        """
        The values of a property, those of most documents first.

        Args:
            limit: Return at most this many; None for all.

        Raises:
            NotFoundError: No document has the property; with suggestions.
        """
        with self._store.reading() as reader:
            key = search.listing.existing_key(reader, key)
            return reader.properties.values(reader.select(Filters()), key, limit=limit)


def _filters(collections: Sequence[str], tags: Sequence[str], properties: Sequence[str]) -> Filters:
    return Filters(collections=tuple(collections), tags=tuple(tags), properties=tuple(properties))


def _folder(reader: Reader, prefix: str) -> tuple[str | None, str]:
    """The collection (None for all) and the path below it. Raises CollectionNotFoundError."""
    collection, _, rest = prefix.removeprefix("qmd://").strip("/").partition("/")
    if collection:
        reader.collections.by_name(collection)
    return collection or None, rest
