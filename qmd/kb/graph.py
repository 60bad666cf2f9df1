"""The graph of documents: tags, tasks, views, what changed, what is similar, what is linked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING

from qmd import files, parse, search, values
from qmd.engine_text import engine_text
from qmd.errors import DocumentNotEmbeddedError, InputError, NotFoundError, VectorIndexMissingError
from qmd.kb.parts import open_to_scopes
from qmd.kb.search import SearchMethods
from qmd.records import replace
from qmd.search import graph, lookup

if TYPE_CHECKING:
    from qmd.search.views.written import ViewBlock
    from qmd.store import Reader
    from qmd.values import DocumentInfo
    from qmd.values.documents import Link, TaskList


class GraphMethods(SearchMethods):
    """
    Each method returns at most ``limit`` (1 to 1000, or None for all) items, and how many there are
    in all.

    All of them raise InputError if the limit is out of its range. A ``collection`` is the name of
    the only one to look at; None for all. CollectionNotFoundError: there is none of this name.
    A ``file`` is a name as `get` takes it; DocumentNotFoundError and AmbiguousNameError as there.
    """

    @open_to_scopes
    def links(self, file: str, *, limit: int | None = 50) -> values.graph.NoteLinks:
        """
        The links in one note, in the order of its text, and where each leads.

        Embeds and web addresses are links, too.
        """
        with self._store.reading() as reader:
            return graph.links.links_in(
                reader, document_named(reader, file), limit=most_listed(limit)
            )

    @open_to_scopes
    def link_targets(
        self, file: str, links: Sequence[Link], *, check_sections: bool = False
    ) -> tuple[values.graph.NoteLink, ...]:
        """
        Where links would lead if they stood in a note, in their order.

        Args:
            file: ``collection/path`` of the note; it need not exist yet.
            check_sections: Look in each linked note for the heading or block that a link names.

        Raises:
            CollectionNotFoundError.
        """
        collection, _, path = file.partition("/")
        with self._store.reading() as reader:
            reader.collections.by_name(collection)
            return graph.links.targets_of(
                reader, collection, path, links, check_sections=check_sections
            )

    @open_to_scopes
    def backlinks(self, file: str, *, limit: int | None = 50) -> values.graph.Backlinks:
        """The links in other notes that lead to one note, by file and line, each with its line."""
        with self._store.reading() as reader:
            return graph.links.backlinks_to(
                reader, document_named(reader, file), limit=most_listed(limit)
            )

    @open_to_scopes
    def neighbourhood(
        self, file: str, *, steps: int = 2, most: int = 100
    ) -> values.graph.Neighbourhood:
        """
        The notes at most ``steps`` links away, in either direction, and the links among them.

        Args:
            most: At most so many notes. Of those at the same distance the ones with most links to
                what is nearer stay.
        """
        with self._store.reading() as reader:
            return graph.links.neighbourhood(
                reader, document_named(reader, file), steps=steps, most=most
            )

    @open_to_scopes
    def broken_links(
        self, *, collection: str | None = None, limit: int | None = 50
    ) -> values.graph.BrokenLinks:
        """
        The links that lead nowhere, by file and line, each with the most similar existing name.

        A link to a heading or block that its note lacks is one of them; a web address is not.
        """
        with self._store.reading() as reader:
            return graph.links.broken_links(reader, collection=collection, limit=most_listed(limit))

    @open_to_scopes
    def orphans(
        self, *, collection: str | None = None, limit: int | None = 50
    ) -> values.graph.Orphans:
        """
        The documents to which no other document links, by collection and path.

        Embeds count as links; links of a document to itself do not. Photos are left out.
        """
        with self._store.reading() as reader:
            return graph.links.orphans(reader, collection=collection, limit=most_listed(limit))

    @open_to_scopes
    def similar(
        self, file: str, *, collection: str | None = None, limit: int | None = 10
    ) -> values.graph.SimilarDocuments:
        """
        The documents most similar to one, by the vectors of their chunks, the most similar first.

        Each says whether one of both links to the other.

        Raises:
            VectorIndexMissingError: No document has a vector yet, and nobody makes them.
            VectorsUnavailableError: sqlite-vec cannot be loaded here.
            DocumentNotEmbeddedError: This document has no vectors yet.
        """
        with self._store.reading() as reader:
            document = document_named(reader, file)
            try:
                return graph.similar.similar_documents(
                    reader,
                    document,
                    collection=collection,
                    limit=most_listed(limit),
                    cache=self._vector_cache(),
                )
            except VectorIndexMissingError:
                reason = self._without_vectors(reader)
                if reason is None:
                    raise
                raise DocumentNotEmbeddedError(document.file, reason) from None

    @open_to_scopes
    def tags(
        self, prefix: str = "", *, collection: str | None = None, limit: int | None = 50
    ) -> values.graph.TagTree:
        """
        The tags with most documents, as a tree; each comes with the number of its documents.

        Args:
            prefix: ``work`` or ``work/``: only this tag and those below it; empty for all.
        """
        with self._store.reading() as reader:
            return graph.tags.tag_tree(
                reader, prefix, collection=collection, limit=most_listed(limit)
            )

    @open_to_scopes
    def recent(
        self, *, since: str | None = None, collection: str | None = None, limit: int | None = 20
    ) -> values.graph.RecentChanges:
        """
        The documents whose files changed last, the latest first, and which tool wrote them.

        Args:
            since: A span such as ``7d`` (m, h, d, w, y), or a date; None for any time.

        Raises:
            InputError: ``since`` is neither.
        """
        with self._store.reading() as reader:
            return search.listing.recent_changes(
                reader, since=since, collection=collection, limit=most_listed(limit)
            )

    @open_to_scopes
    def tasks(
        self,
        *,
        due: str | None = None,
        tags: Sequence[str] = (),
        open: bool = False,  # noqa: A002 - as the option
        done: bool = False,
        collection: str | None = None,
        limit: int | None = 50,
    ) -> TaskList:
        """
        The tasks of all notes, those that are due first come first.

        Args:
            due: Only those due by then: ``overdue``, ``today``, ``week``, ``3d``, a date; ``any``
                and ``none``: those that say when they are due, and those that do not.
            tags: Only those with all of these tags, or tags below them, of their own or of the
                frontmatter.
            open, done: Those to be done (the default), those done or cancelled, or both.

        Raises:
            InputError: ``due`` is none of these.
        """
        with self._store.reading() as reader:
            return search.listing.task_list(
                reader,
                statuses=search.listing.task_statuses(is_open=open, done=done),
                due=due,
                tags=tags,
                collection=collection,
                limit=most_listed(limit),
                today=date.today(),
            )

    @open_to_scopes
    def views(
        self,
        file: str | None = None,
        *,
        text: str | None = None,
        collection: str | None = None,
        limit: int | None = 200,
    ) -> values.graph.ViewList:
        """
        Tables of notes by their properties: those that a note describes, or that a text does.

        A note describes them in blocks of code (``qmd``, ``dataview``, ``base``), and is called
        ``this`` in them. A view that cannot be made has a problem instead of rows.

        Args:
            file: A name as `get` takes it, or ``collection/path`` of a file ``.base``.
            text: YAML of qmd, or a query of Dataview, instead of a note's.
            collection: The only one with the notes; None: that of the note, and for a text all.
            limit: The most rows of each view, 1 to 1000.

        Raises:
            InputError: There is neither a file nor a text, or both; or the limit is out of range.
            NotFoundError: The note describes no view.
        """
        limit = most_listed(limit)
        if (file is None) == (text is None):
            raise InputError("Name a note with views, or give the text of one.")
        this, blocks = None, [search.views.written.ViewBlock("qmd", text or "", 0)]
        if file is not None:
            this, blocks = self._blocks_of(file)
        return values.graph.ViewList(
            tuple(
                view
                for block in blocks
                for view in self._block_views(block, this=this, collection=collection, limit=limit)
            )
        )

    def _blocks_of(self, name: str) -> tuple[str, list[ViewBlock]]:
        """``collection/path`` of a note or a base, and the blocks that it has."""
        store = self._store
        with store.reading() as reader:
            if name.lower().endswith(".base"):
                opened = files.vault.open_indexed_file(reader, name, database=store.location)
                with opened:
                    data = opened.read(search.views.written.MAX_TEXT + 1)
                text = parse.decode.decode(data).text
                return name, [search.views.written.ViewBlock("base", text, 0)]
            document = document_named(reader, name)
            described = []
            if parse.formats.has_signs_in_lines(document.path):  # else they are a stranger's code
                blocks = search.views.written.view_blocks(reader.documents.text(document.id))
                described = list(blocks)
        if not described:
            raise NotFoundError(
                engine_text("{file} has no view.", file=document.file),
                hint="A view is a block of code of qmd, dataview or base: docs/views.md",
            )
        return document.file, described

    @open_to_scopes
    def view_of_block(
        self, file: str, language: str, text: str, *, limit: int
    ) -> list[values.graph.View]:
        """The views that a block of code of the note ``collection/path`` describes."""
        block = search.views.written.ViewBlock(language, text, 0)
        return list(self._block_views(block, this=file, collection=None, limit=limit))

    def _block_views(
        self, block: ViewBlock, *, this: str | None, collection: str | None, limit: int
    ) -> Iterator[values.graph.View]:
        name = collection or (None if this is None else this.partition("/")[0])
        line = block.line or None
        try:
            queries = search.views.written.read_views(block.language, block.text)
        except (InputError, RecursionError) as error:
            yield _not_shown("", line, error)
            return
        for query in queries:
            try:
                hits = None
                if query.words:
                    found_by_words = self.search(
                        query.words,
                        limit=values.graph.MAX_LISTED,
                        filters=values.Filters(collections=(name,) if name else ()),
                    )
                    hits = [hit.file for hit in found_by_words.hits]
                with self._store.reading() as reader:
                    view = search.views.table.make_view(
                        reader,
                        query,
                        collection=name,
                        this=this,
                        hits=hits,
                        limit=limit,
                        now=datetime.now(),
                    )
                yield replace(view, line=line)
            except (InputError, RecursionError) as error:
                yield _not_shown(query.name, line, error)


def _not_shown(
    name: str, line: int | None, error: InputError | RecursionError
) -> values.graph.View:
    problem = error.with_hint if isinstance(error, InputError) else "This view nests too deep."
    return values.graph.View(name, line=line, problem=problem)


def most_listed(limit: int | None) -> int:
    """How many items to list, all for None. Raises InputError: it is out of range."""
    if limit is None:
        return sys.maxsize
    if not 1 <= limit <= values.graph.MAX_LISTED:
        raise InputError(f"The limit must be between 1 and {values.graph.MAX_LISTED}, not {limit}.")
    return limit


def document_named(reader: Reader, file: str) -> DocumentInfo:
    """The document that a name refers to. Raises DocumentNotFoundError, AmbiguousNameError."""
    return lookup.resolve.resolve(reader, file).document
