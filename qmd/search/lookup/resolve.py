"""Find the document that a name refers to, and the lines of a place in it."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from qmd.errors import AmbiguousNameError, DocumentNotFoundError, SectionNotFoundError
from qmd.parse.formats import PDF, format_of
from qmd.parse.lines import split_lines
from qmd.parse.sections import block, block_ids, heading_path, outline_of, section
from qmd.search import lookup
from qmd.values import DocumentAnchor, DocumentInfo
from qmd.values.text import fold, name_key, unescaped, without_note_suffix

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.store.sql.documents import DocumentName


#: ``:LINE`` is tried before ``:LINE:COUNT``, because a file may be called ``notes.md:100``.
_LINES = (
    re.compile(r"(?P<file>.+):(?P<line>[0-9]{1,18})(?P<count>)", re.DOTALL),
    re.compile(r"(?P<file>.+):(?P<line>[0-9]{1,18}):(?P<count>[0-9]{1,18})", re.DOTALL),
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOTE_SUFFIX = re.compile(r"(?<=[^/])\.(?:md|markdown)\Z", re.IGNORECASE)
_DOCID = re.compile(r"[0-9a-fA-F]{6,64}")
_WIKILINK = re.compile(r"!?\[\[((?:[^\[\]]|\](?!\]))*)\]\]")
_WIKILINKS = re.compile(r"!?\[\[(?!:)(?:[^\[\]]|\](?!\]))*\]\]")
_BLOCK = re.compile(r"(?P<file>.+?)\^(?P<block>[A-Za-z0-9-]+)", re.DOTALL)

#: The longest pattern, in characters. No path is longer, so a longer pattern is a mistake.
MAX_PATTERN = 4096
#: The longest name, in characters: a path, a heading of a note, and what is around them.
MAX_NAME = 10_000
#: A file name may hold this many ``#`` before the one that begins a heading.
MAX_SIGNS = 4

#: Smaller is better; None is no match at all.
_Rank = tuple[int, ...]


class ResolvedName(NamedTuple):
    """
    A document, and the lines of it that a name names.

    Attributes:
        line: The first line: that of ``:LINE``, or of the section or block; None for all.
        max_lines: That of ``:LINE:COUNT``; None without it.
        end_line: The line after the section or block, from 1; None for the whole document.
        same_name: The lines of other sections or blocks of this name.
    """

    document: DocumentInfo
    line: int | None = None
    max_lines: int | None = None
    end_line: int | None = None
    same_name: tuple[int, ...] = ()


class _Reading(NamedTuple):
    """One way to read a name: a file, and lines or an anchor in it."""

    file: str
    anchor: str = ""
    line: int | None = None
    max_lines: int | None = None


def resolve(
    reader: Reader, name: str, similar: lookup.similar.SimilarNames | None = None
) -> ResolvedName:
    """
    Find the document that a name refers to, and its lines.

    Names are ``collection/path``, ``qmd://collection/path``, a path on the disk, the end of a path,
    ``#docid``, an alias, a title. Letter case and Unicode form do not matter, and ``.md`` may be
    left out. ``[[name]]``, ``[[name|shown]]`` and ``![[name]]`` are the name inside. Behind it may
    be ``:LINE[:COUNT]``, ``#Heading#Subheading``, ``^block`` or ``#^block``.

    A document with exactly this name comes first, so ``notes.md:100`` and ``a#b.md`` may be files.
    Then paths and file names come before docids, these before aliases, and these before titles; of
    each kind the exact spelling comes before others.

    Args:
        similar: Suggests names. Callers that resolve several names pass the same one each time.

    Raises:
        DocumentNotFoundError: With suggestions.
        SectionNotFoundError: The document has no such heading or block; with suggestions.
        AmbiguousNameError: With the candidates.
    """
    name = storable(name)
    if len(name) > MAX_NAME:
        raise DocumentNotFoundError(f"{name[:100]}…")
    document, reading = _first_match(reader, name)
    if document is None:
        is_docid = reading.file.startswith("#")
        similar = similar or lookup.similar.SimilarNames(reader)
        raise DocumentNotFoundError(name, [] if is_docid else similar.like(reading.file))
    if not reading.anchor:
        return ResolvedName(document, reading.line, reading.max_lines)
    start, end, same_name = anchored_lines(reader, document, reading.anchor)
    return ResolvedName(document, start, end_line=end, same_name=same_name)


def find_document(reader: Reader, name: str) -> DocumentInfo | None:
    """The document that a name refers to, as `resolve`; None without one. AmbiguousNameError."""
    name = storable(name)
    return _first_match(reader, name)[0] if len(name) <= MAX_NAME else None


def _first_match(reader: Reader, name: str) -> tuple[DocumentInfo | None, _Reading]:
    """The first reading whose file is a document; None and the last reading if there is none."""
    reading = _Reading(name)
    # Lists show a line end in a name as "\n", which may also be the name itself.
    for spelling in dict.fromkeys((name, storable(unescaped(name)))):
        for reading in _readings(spelling):
            document = _find(reader, reading.file)
            if document is not None:
                return document, reading
    return None, reading


def _readings(name: str) -> Iterator[_Reading]:
    """The ways to read a name, those first in which more of it is the file's name."""
    yield _Reading(name)
    for form in _LINES:
        lines = form.fullmatch(name)
        if lines is not None:
            count = int(lines["count"]) if lines["count"] else None
            yield _Reading(lines["file"], "", int(lines["line"]), count)
    wikilink = _WIKILINK.fullmatch(name)
    if wikilink is not None:
        name = wikilink[1].partition("|")[0].removesuffix("\\").strip()
        yield _Reading(name)
    signs = [sign.start() for sign in re.finditer("#", name) if sign.start()]
    for position in signs[:MAX_SIGNS][::-1]:
        file, anchor = name[:position], name[position + 1 :]
        yield _Reading(file.strip(), unquote(anchor) if name.startswith("qmd://") else anchor)
    block = None if signs else _BLOCK.fullmatch(name)
    if block is not None:
        yield _Reading(block["file"].strip(), f"^{block['block']}")


def storable(name: str) -> str:
    """Strip blanks from a name, and replace the surrogates that no stored name can hold."""
    return _SURROGATE.sub("\ufffd", name.strip())


def _find(reader: Reader, name: str) -> DocumentInfo | None:
    if len(name) > MAX_PATTERN:
        return None
    if name.startswith("#"):
        digits = name[1:].lower()
        return _by_docid(reader, digits) if _DOCID.fullmatch(digits) else None
    document = _by_exact_name(reader, name)
    if document is not None:
        return document
    if name.startswith("qmd://"):
        name = unquote(name.removeprefix("qmd://"))
    name = name.removeprefix("./")
    document = _by_absolute_path(reader, name)
    if document is not None:
        return document
    name = name.strip("/")
    if not name:
        return None
    document = best_named(reader, name, reader.documents.with_file_names)
    if document is None and _DOCID.fullmatch(name):
        document = _by_docid(reader, name.lower())
    return document or best_named(reader, name, reader.documents.with_other_names)


def _by_exact_name(reader: Reader, name: str) -> DocumentInfo | None:
    spellings = [name]
    if name.startswith("qmd://"):
        rest = name.removeprefix("qmd://")
        spellings = [unquote(rest), rest]
    for spelling in spellings:
        collection, _, path = spelling.partition("/")
        document = reader.documents.by_path(collection, path)
        if document is not None:
            return document
    return None


def _by_docid(reader: Reader, digits: str) -> DocumentInfo | None:
    candidates = reader.documents.by_docid(digits)
    contents = {reader.documents.content_hash(document.id) for document in candidates}
    if len(contents) > 1:
        raise AmbiguousNameError(
            f"#{digits}", [f"{document.docid} ({document.file})" for document in candidates]
        )
    return candidates[0] if candidates else None


def _by_absolute_path(reader: Reader, name: str) -> DocumentInfo | None:
    """Find a document by its path on the disk; links in the path may be resolved or not."""
    if not name.startswith(("/", "~")) and not Path(name).is_absolute():
        return None
    try:
        path = Path(name).expanduser()
        spellings = {str(path), str(path.resolve())}
    except (RuntimeError, OSError, ValueError):
        return None  # the user of ~user does not exist, or no file can have this name
    for collection in sorted(reader.collections.all(), key=lambda each: (-len(each.path), each.id)):
        for spelling in spellings:
            if spelling.startswith(collection.path.rstrip("/") + "/"):
                relative = Path(spelling).relative_to(collection.path).as_posix()
                document = reader.documents.by_path(collection.name, relative) or best_named(
                    reader,
                    f"{collection.name}/{relative}",
                    reader.documents.with_file_names,
                    is_whole=True,
                )
                if document is not None:
                    return document
    return None


def is_glob(pattern: str) -> bool:
    """
    Whether the pattern holds ``*``, ``?``, or brackets or braces that are not empty.

    What stands in ``[[…]]`` is the name of a note.
    """
    pattern = _WIKILINKS.sub("", pattern)
    if "*" in pattern or "?" in pattern:
        return True
    pairs = ((pattern.find(opening), closing) for opening, closing in ("[]", "{}"))
    return any(start >= 0 and pattern.find(closing, start + 2) >= 0 for start, closing in pairs)


def by_whole_pattern(reader: Reader, pattern: str) -> DocumentInfo | None:
    """Find the document whose name only looks like a glob or a list."""
    document = _by_exact_name(reader, pattern)
    if document is None and "," in pattern:
        try:
            document = best_named(reader, pattern.strip("/"), reader.documents.with_file_names)
        except AmbiguousNameError:
            document = None
    return document


def best_named(
    reader: Reader,
    name: str,
    lookup: Callable[[Iterable[str]], list[DocumentName]],
    *,
    is_whole: bool = False,
) -> DocumentInfo | None:
    """
    The document that a name means; None if none has it.

    Args:
        name: Without slashes at its ends.
        lookup: Returns the names with one of some keys: `Documents.with_file_names` for the end of
            a path, `Documents.with_other_names` for aliases and titles.
        is_whole: Whether the name is a whole ``collection/path``, not the end of one.

    Raises:
        AmbiguousNameError: Several documents have it, and none of them is a better match.
    """
    whole = fold(" ".join(name.split()))
    end = fold(name.rpartition("/")[2])
    keys = dict.fromkeys((whole, without_note_suffix(whole), end, name_key(name)))
    ranked: dict[_Rank, dict[int, DocumentName]] = {}
    for candidate in lookup(keys):
        rank = (_file_rank if candidate.kind == "file name" else _rank)(name, candidate)
        if rank is not None and not (is_whole and rank[1]):
            ranked.setdefault(rank, {})[candidate.document_id] = candidate
    if not ranked:
        return None
    best = ranked[min(ranked)]
    if len(best) > 1:
        kept = innermost(reader, ((each, best[each].collection, best[each].path) for each in best))
        best = {each: best[each] for each in best if each in kept}
    if len(best) > 1:
        files = sorted(f"{candidate.collection}/{candidate.path}" for candidate in best.values())
        raise AmbiguousNameError(name, files)
    [document_id] = best
    return reader.documents.by_id(document_id)


def innermost(reader: Reader, places: Iterable[tuple[int, str, str]]) -> set[int]:
    """
    The ids of documents without those of a file that another one is of, too.

    Of the documents of one file the one whose collection lies deepest stays, as in a search.

    Args:
        places: The id, the collection and the path of each document.
    """
    collections = {each.name: each for each in reader.collections.all()}
    by_file: dict[tuple[str, str], tuple[int, int, int]] = {}
    for document_id, name, path in places:
        collection = collections[name]
        folder = collection.path.rstrip(os.sep)
        deeper = (-len(folder), collection.id, document_id)
        file = (collection.owner, f"{folder}/{path}")
        by_file[file] = min(by_file.get(file, deeper), deeper)
    return {document_id for _, _, document_id in by_file.values()}


def _file_rank(name: str, candidate: DocumentName) -> _Rank | None:
    """
    How well a name fits the end of a file's path.

    First the exact spelling counts; then that it is the whole ``collection/path``, or the whole
    path, before the end of a path; then that ``.md`` is not left out.
    """
    file = f"{candidate.collection}/{candidate.path}"
    folded_name, folded_file = fold(name), fold(file)
    omits_suffix = not f"/{folded_file}".endswith(f"/{folded_name}")
    if omits_suffix:
        folded_file = without_note_suffix(folded_file)
        if not f"/{folded_file}".endswith(f"/{folded_name}"):
            return None
        file = _NOTE_SUFFIX.sub("", file)
    is_folded = not f"/{file}".endswith(f"/{name}")
    if folded_file == folded_name:
        place = 0
    else:
        place = 1 if folded_file == f"{fold(candidate.collection)}/{folded_name}" else 2
    return (is_folded, place, omits_suffix)


def _rank(name: str, candidate: DocumentName) -> _Rank | None:
    """How well a name fits an alias or a title: an alias first, then the exact spelling counts."""
    folded = fold(" ".join(name.split()))
    if fold(candidate.name) not in (folded, without_note_suffix(folded)):
        return None
    return (candidate.kind == "title", candidate.name != name)


#: What names a place of a file, as a `DocumentAnchor` does.
_PLACE = re.compile(r"[a-z]+=.", re.IGNORECASE)
#: A sheet, perhaps with a cell of it; and the piece of a sheet that an anchor names.
_SHEET = re.compile(
    r"(?P<name>sheet=.+?)(?:!\$?[a-z]{1,3}\$?(?P<row>\d{1,7}))?(?::[^!]*)?", re.DOTALL
)
_PIECE = re.compile(r"(?P<name>sheet=.+)![a-z]+(?P<first>\d+):[a-z]+(?P<last>\d+)", re.DOTALL)
#: A place that has a number.
_NUMBERED = re.compile(r"(?P<kind>[a-z]+)=(?P<number>-?\d{1,9})")
#: Characters of a heading that an error repeats.
MAX_SHOWN = 200


class AnchoredLines(NamedTuple):
    """The lines ``[start, end)`` of a section or block, from 1; lines of others of its name."""

    start: int
    end: int
    same_name: tuple[int, ...] = ()


def anchored_lines(reader: Reader, document: DocumentInfo, anchor: str) -> AnchoredLines:
    """
    The lines of a section or block, or of a place of the file.

    Args:
        anchor: ``Heading``, ``Heading#Subheading``, ``^block``, ``Heading#^block`` or ``page=12``.

    Raises:
        SectionNotFoundError: With the nearest headings, blocks or places.
    """
    text = reader.documents.text(document.id)
    if _PLACE.match(anchor):
        places = reader.documents.anchors(document.id)
        if lines := _lines_of_place(anchor, places, len(split_lines(text))):
            return lines
        page = _page_without_text(reader, document, anchor)
        if places or page is not None:
            raise _no_place(document, anchor, places, page)
    headings, mark, block_id = anchor.rpartition("^")
    if mark and (not headings or headings.endswith("#")):
        span = block(text, block_id.strip())
        if span is None:
            blocks = (f"^{each}" for each, _ in block_ids(text))
            raise _not_found(document, f"^{block_id}", blocks)
        return AnchoredLines(span.start_line, span.end_line, span.others)
    path = heading_path(anchor)
    if not path:
        return AnchoredLines(1, len(text) + 1)
    named = section(text, path)
    if named is None:
        texts = (each.heading.text for each in outline_of(text))
        raise _not_found(document, f"#{'#'.join(path)}", (f"#{each}" for each in texts if each))
    return AnchoredLines(named.start_line, named.end_line, named.others)


def _lines_of_place(
    anchor: str, places: Sequence[DocumentAnchor], lines: int
) -> AnchoredLines | None:
    folded = anchor.strip().casefold()
    numbers = [n for n, place in enumerate(places) if place.fragment.casefold() == folded]
    if not numbers and (sheet := _SHEET.fullmatch(folded)):
        return _lines_of_sheet(sheet, places, lines)
    numbers = numbers or _places_around(folded, places)
    if not numbers:
        return None
    after = numbers[0] + 1
    end = places[after].line if after < len(places) else lines + 1
    return AnchoredLines(places[numbers[0]].line, end, tuple(places[n].line for n in numbers[1:]))


def _places_around(anchor: str, places: Sequence[DocumentAnchor]) -> list[int]:
    """The piece of a table with a line of the file, or the page that has a number such as xii."""
    kind, _, label = anchor.partition("=")
    if kind == "line" and (match := _NUMBERED.fullmatch(anchor)):
        line = int(match["number"])
        before = [
            n
            for n, place in enumerate(places)
            if place.kind == kind and place.label.isdecimal() and int(place.label) <= line
        ]
        return before[-1:]
    return [
        n
        for n, place in enumerate(places)
        if place.kind == kind
        and place.shown is not None
        and place.shown.casefold() == label
        and not label.isdecimal()  # this counts from the first page
    ]


def _page_without_text(reader: Reader, document: DocumentInfo, anchor: str) -> int | None:
    """The number of a page of a PDF, if the PDF has so many; None for all else."""
    match = _NUMBERED.fullmatch(anchor.strip().casefold())
    if match is None or match["kind"] != "page" or format_of(document.path) is not PDF:
        return None
    pages = reader.documents.facts(document.id).properties.get("pages")
    number = int(match["number"])
    return number if isinstance(pages, int) and 1 <= number <= pages else None


def _no_place(
    document: DocumentInfo, anchor: str, places: Sequence[DocumentAnchor], page: int | None
) -> SectionNotFoundError:
    """
    The error with the places of the nearest numbers, or of the names most like it.

    Args:
        page: The number of a page that is there, but has no text.
    """
    match = _NUMBERED.match(anchor.strip().casefold())
    if match is not None:
        number = int(match["number"])
        far = {
            place.fragment: abs(int(place.label) - number)
            for place in places
            if place.kind == match["kind"] and place.label.isdecimal()
        }
        if far or page is not None:
            nearest = heapq.nsmallest(
                lookup.similar.SUGGESTIONS, far, key=lambda fragment: far[fragment]
            )
            return SectionNotFoundError(
                document.file,
                _shortened(f"#{anchor}"),
                [f"#{each}" for each in nearest],
                page=page,
            )
    return _not_found(document, f"#{anchor}", (f"#{place.fragment}" for place in places))


def _lines_of_sheet(
    sheet: re.Match[str], places: Sequence[DocumentAnchor], lines: int
) -> AnchoredLines | None:
    """The lines of a whole sheet, which lies in pieces, or of the piece with a cell's row."""
    row = int(sheet["row"] or 0)
    pieces = [
        number
        for number, place in enumerate(places)
        if (piece := _PIECE.fullmatch(place.fragment.casefold())) is not None
        and piece["name"] == sheet["name"]
        and (not row or int(piece["first"]) <= row <= int(piece["last"]))
    ]
    if not pieces:
        return None
    after = pieces[-1] + 1
    end = places[after].line if after < len(places) else lines + 1
    return AnchoredLines(places[pieces[0]].line, end)


def _not_found(document: DocumentInfo, anchor: str, anchors: Iterable[str]) -> SectionNotFoundError:
    last = anchor.rpartition("#")[2] if anchor.startswith("#") else anchor
    nearest = lookup.similar.similar_anchors(last, anchors)
    return SectionNotFoundError(document.file, _shortened(anchor), nearest)


def _shortened(anchor: str) -> str:
    return anchor if len(anchor) <= MAX_SHOWN else f"{anchor[:MAX_SHOWN]}…"
