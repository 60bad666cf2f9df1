"""Reading stored documents: by path, suffix, docid or folder, and their texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, get_args

from qmd.store.selection import Selection
from qmd.values import DocumentInfo
from qmd.values.names import file_stem

#: A name of a document, by what gives it. The one by which people know it best comes first.
NameKind = Literal["file name", "alias", "title"]
NAME_KINDS: tuple[NameKind, ...] = get_args(NameKind)


class FullDocument(NamedTuple):
    """A document with its text; its body is ``text[body_start:]``, without the frontmatter."""

    info: DocumentInfo
    text: str
    body_start: int
    aliases: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """The title, the file's name without its suffix, and the aliases."""
        return [self.info.title, file_stem(self.info.path), *self.aliases]


class DocumentFacts(NamedTuple):
    """
    What was read from a document besides its text.

    Attributes:
        date: Its own date, ISO 8601; None without one.
        description: As `ParsedDocument` has it.
        properties: As in the frontmatter; values as JSON has them.
        tags, aliases: By name.
    """

    date: str | None
    description: str
    properties: Mapping[str, object]
    tags: Sequence[str]
    aliases: Sequence[str]


class DocumentName(NamedTuple):
    """
    A name of a document, and where the document is.

    Attributes:
        name: As it is written; of a file its path.
    """

    document_id: int
    collection: str
    path: str
    kind: NameKind
    name: str


class Order(NamedTuple):
    """
    What documents are sorted by.

    Attributes:
        by: The date of a document is its own, else that of its file.
        key: The property; None unless documents are sorted by one. Of several values the one that
            comes first counts. Numbers come before dates and texts (after them if descending), and
            documents without a value last.
        descending: The latest or greatest first.
    """

    by: Literal["date", "title", "property"]
    key: str | None = None
    descending: bool = False


class Documents(Protocol):
    """Reads documents. Ids are those of `DocumentInfo.id`."""

    def by_id(self, document_id: int) -> DocumentInfo:
        """The document of this id, which must exist."""
        ...

    def by_ids(self, document_ids: Sequence[int]) -> list[DocumentInfo]:
        """Documents that exist, in the order of the ids; each id once."""
        ...

    def below(
        self,
        collection: str | None,
        prefix: str = "",
        *,
        selection: Selection | None = None,
        order: Order | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[DocumentInfo]:
        """
        The documents below a folder.

        Args:
            collection: Its name; None for all collections.
            prefix: A path of whole components below the collection; empty for its root.
            selection: Only these; None for all.
            order: None for the order of collection and path, which also puts equals in order.
            limit: Return at most this many; None for all.
            offset: Leave out this many at the start.
        """
        ...

    def places(self, beginning: str = "") -> Iterator[tuple[int, str, str]]:
        """
        Id, collection and path of all documents, by collection and path; an index has all of it.

        Args:
            beginning: Only documents whose ``collection/path`` or path begins so.
        """
        ...

    def name_keys(self) -> Iterator[tuple[str, int]]:
        """
        The folded names of all documents with their ids: file names, then titles and aliases.

        They come from indexes, one row after the other: a million take a second and no memory.
        """
        ...

    def count(self) -> int:
        """How many documents there are."""
        ...

    def count_below(
        self, collection: str | None, prefix: str = "", *, selection: Selection | None = None
    ) -> int:
        """How many documents `below` returns without a limit."""
        ...

    def by_path(self, collection: str, path: str) -> DocumentInfo | None:
        """The document at a path below its collection; None if there is none."""
        ...

    def with_file_names(self, keys: Iterable[str]) -> list[DocumentName]:
        """The documents whose file name has one of these `qmd.values.names.name_key`s."""
        ...

    def with_file_name_prefix(self, prefix: str, limit: int) -> list[str]:
        """The first ``collection/path`` whose file name begins so, folded as `name_key`."""
        ...

    def entries(self, collection: str, prefix: str, limit: int) -> list[str]:
        """
        The first paths that begin with ``prefix``, cut behind the next slash, each once.

        ``notes/20`` gives the folder ``notes/2025/`` and the document ``notes/20.md``, in order.
        One step in the index for each of them.
        """
        ...

    def with_other_names(self, keys: Iterable[str]) -> list[DocumentName]:
        """The documents with an alias or a title whose `qmd.values.names.fold` is one of these."""
        ...

    def by_docid(self, digits: str) -> list[DocumentInfo]:
        """Documents whose content hash starts with these hex digits, in path order."""
        ...

    def content_hash(self, document_id: int) -> str:
        """The hash of a document's text in hexadecimal; its docid is the beginning of it."""
        ...

    def text(self, document_id: int) -> str:
        """The whole text of a document, as it was decoded."""
        ...

    def text_bytes(self, document_id: int) -> int:
        """The size of a document's text in UTF-8, without reading it into Python."""
        ...

    def named(self, kind: NameKind, name: str, selection: Selection, limit: int) -> list[int]:
        """
        Ids of at most ``limit`` selected documents with this name, ascending.

        Letter case and Unicode form do not matter; a file may be named with ``.md`` or without.
        """
        ...

    def file_names(self) -> list[str]:
        """Every ``collection/path``, in order."""
        ...

    def other_names(self) -> list[tuple[str, str]]:
        """Every title and alias, after the ``collection/path`` of its document."""
        ...

    def warnings(self, document_id: int) -> list[str]:
        """Sentences that say what was wrong with the file when it was parsed."""
        ...

    def full(self, document_ids: Sequence[int]) -> list[FullDocument]:
        """Documents that exist, with their texts, in the order of the ids; each id once."""
        ...

    def facts(self, document_id: int) -> DocumentFacts:
        """Of a document that exists."""
        ...

    def identities(self) -> list[tuple[int, str, str, str]]:
        """Id, collection, path and content hash of every document."""
        ...

    def searched_text(
        self, document_id: int, field: Literal["title", "description", "path"] | None
    ) -> str:
        """
        What a field of a document holds: its names (`FullDocument.names`), a name on each line,
        for the title; its description or path; or (None) its names and its text.
        """
        ...

    def names_and_texts(self, selection: Selection) -> Iterator[tuple[int, str]]:
        """Id, and names and text in lines (`FullDocument.names`), of all selected documents."""
        ...

    def selected_ids(self, selection: Selection) -> list[int]:
        """The ids of the selected documents, in no order, some perhaps twice."""
        ...

    def count_selected(self, selection: Selection) -> int:
        """How many documents are selected."""
        ...

    def ordered_ids(self, document_ids: Collection[int], order: Order) -> list[int]:
        """These documents in an order; equals by collection and path."""
        ...

    def latest_ids(self, selection: Selection) -> Iterator[int]:
        """
        Ids of all selected documents, the latest first, then by collection and path.

        Dates are compared as moments: they may be written with different offsets from UTC.
        """
        ...
