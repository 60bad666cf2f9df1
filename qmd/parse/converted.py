"""What a converter makes of a file that is no Markdown; warnings, limited to a few sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from qmd.records import NamedTuple


class Anchor(NamedTuple):
    """
    A place of the file, such as a page, at which a part of the Markdown begins.

    The part ends where the next anchor begins.

    Attributes:
        kind: Such as ``page``, ``slide``, ``sheet``, ``chapter``, ``message`` or ``time``.
        label: Its number or name among those of its kind, as people count: ``12``, ``B2:F40``.
        start_char: Characters of the Markdown before it; the start of a line.
        shown: What the file itself calls it, if that differs, such as the page number ``xii``.
    """

    kind: str
    label: str
    start_char: int
    shown: str | None = None


class Converted(NamedTuple):
    """
    A file as Markdown.

    Only the marks of blocks count in it: headings, lists, tables, code. Unless the format says that
    it is a note (`qmd.parse.formats.FileFormat.is_note`), tags, wikilinks, inline fields and
    frontmatter are text, so nothing need be escaped for their sake.

    Attributes:
        markdown: Its text, at most as long as the limits of documents allow.
        anchors: By `Anchor.start_char`, ascending.
        title: None if the file has none; then its name is the title.
        date: An ISO 8601 date, or None.
        properties: As the frontmatter of a note would give them.
        warnings: What could not be read; each is a whole sentence.
        encoding: How the file is encoded, if it is text: the name of a codec.
        pictures: The numbers, from 1, of pages that are pictures without text, if the format says
            how to draw them (`qmd.parse.formats.FileFormat.picture`).
    """

    markdown: str
    anchors: tuple[Anchor, ...] = ()
    title: str | None = None
    date: str | None = None
    properties: Mapping[str, object] = {}
    warnings: tuple[str, ...] = ()
    encoding: str = "utf-8"
    pictures: tuple[int, ...] = ()


#: A converter takes the file's path with ``/``, and its bytes. It reads nothing else, and raises
#: an `qmd.errors.IngestError` for a file that is no document.
Converter = Callable[[str, bytes], Converted]


MAX_WARNINGS = 20
#: Characters of a warning; those of plugins may be any.
MAX_WARNING = 500
#: A sentence about so many documents is told once.
_MANY = 3


def limit_warnings(warnings: Iterable[str]) -> tuple[str, ...]:
    """
    The warnings, at most `MAX_WARNINGS`; a last sentence counts the rest.

    Equal warnings become one, with a count: "… (3 times)".
    """
    counts: dict[str, int] = {}
    for each in warnings:
        warning = each if len(each) <= MAX_WARNING else f"{each[: MAX_WARNING - 1]}…"
        counts[warning] = counts.get(warning, 0) + 1
    sentences = [
        warning if count == 1 else f"{warning} ({count:,} times)"
        for warning, count in list(counts.items())[:MAX_WARNINGS]
    ]
    if len(counts) > MAX_WARNINGS:
        sentences.append(f"And {len(counts) - MAX_WARNINGS:,} more warnings.")
    return tuple(sentences)


def group_warnings(warnings: Iterable[tuple[str, str]]) -> list[str]:
    """
    Sentences about documents; one that is about many documents is told once, with their number.

    Args:
        warnings: ``collection/path`` of a document, and a sentence about it.
    """
    documents: dict[str, list[str]] = {}
    for document, sentence in warnings:
        documents.setdefault(sentence, []).append(document)
    sentences: list[str] = []
    for sentence, names in documents.items():
        if len(names) < _MANY:
            sentences += [f"{name}: {sentence}" for name in names]
        else:
            sentences.append(f"{len(names):,} documents, such as {names[0]}: {sentence}")
    return sentences
