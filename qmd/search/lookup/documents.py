"""From the name of a document, as people and programs write it, to the document."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from qmd.errors import (
    AmbiguousNameError,
    DocumentNotFoundError,
    InputError,
    NoMatchError,
)
from qmd.parse.lines import split_lines
from qmd.search.lookup.similar import SimilarNames
from qmd.search.present.contexts import join_contexts
from qmd.system import cancellation
from qmd.values import DocumentInfo, DocumentSlice, MultiGetReply, SkippedDocument

if TYPE_CHECKING:
    from qmd.store import Reader

#: ``:LINE`` is tried before ``:LINE:COUNT``, because a file may be called ``notes.md:100``.
_LINES = (
    re.compile(r"(?P<file>.+):(?P<line>[0-9]+)(?P<count>)", re.DOTALL),
    re.compile(r"(?P<file>.+):(?P<line>[0-9]+):(?P<count>[0-9]+)", re.DOTALL),
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_DOCID = re.compile(r"[0-9a-fA-F]{6,64}")

#: The most names that one list may have.
MAX_NAMES = 1000
#: Of a list, so many names that are unknown come with suggestions.
MAX_SUGGESTED = 20
#: No path is longer, so a longer pattern can only be a mistake.
MAX_PATTERN = 4096
#: ``**`` in one glob: each one more multiplies the ways in which a deep path can be tried.
MAX_GLOBSTARS = 4


def get(
    reader: Reader, name: str, *, from_line: int | None, max_lines: int | None
) -> DocumentSlice:
    """Raises DocumentNotFoundError, AmbiguousNameError, InputError."""
    if max_lines is not None and max_lines < 1:
        raise InputError(
            "The number of lines must be 1 or more.", hint="Leave it out for the whole document."
        )
    document, line, count = resolve(reader, name)
    return read(
        reader,
        document,
        from_line=line if line is not None else from_line,
        max_lines=max_lines if max_lines is not None else count,
    )


def read(
    reader: Reader,
    document: DocumentInfo,
    *,
    from_line: int | None = None,
    max_lines: int | None = None,
) -> DocumentSlice:
    """Lines of a document; without limits its text as it is. Lines below 1 count as 1."""
    text = reader.documents.text(document.id)
    start = max(1, from_line or 1)
    more = 0
    if start > 1 or max_lines is not None:
        lines = split_lines(text)
        end = len(lines) if max_lines is None else min(len(lines), start - 1 + max_lines)
        more = len(lines) - end if start <= len(lines) else 0
        if start > 1 or more:
            text = "\n".join(lines[start - 1 : end])
    context = join_contexts(reader.contexts.all(), document.collection, document.path)
    return DocumentSlice(document, context, start, more, text)


def multi_get(
    reader: Reader, pattern: str, *, max_lines: int | None, max_bytes: int
) -> MultiGetReply:
    """Raises NoMatchError if nothing at all is found, InputError."""
    if max_lines is not None and max_lines < 1:
        raise InputError(
            "The number of lines must be 1 or more.", hint="Leave it out for whole documents."
        )
    if max_bytes < 1:
        raise InputError("The size limit must be 1 byte or more.")
    chosen: list[tuple[DocumentInfo, int | None]] = []
    errors: list[str] = []
    pattern = _storable(pattern)
    whole = _whole(reader, pattern)
    if whole is not None:
        chosen.append((whole, None))
    elif _is_glob(pattern):
        chosen = [(document, None) for document in match(reader, pattern)]
    else:
        similar = SimilarNames(reader, most=MAX_SUGGESTED)
        for name in _listed(pattern):
            try:
                document, line, _ = resolve(reader, name, similar)
                chosen.append((document, line))
            except DocumentNotFoundError as error:
                hint = ", ".join(error.suggestions)
                errors.append(
                    f"File not found: {name}" + (f" (did you mean: {hint}?)" if hint else "")
                )
            except AmbiguousNameError as error:
                errors.append(str(error))
    if not chosen and not (errors and "," in pattern):
        raise NoMatchError(
            f"No files matched pattern: {pattern}",
            hint="Run 'qmd ls' to see the documents; patterns match collection/path and path.",
        )
    items: list[DocumentSlice | SkippedDocument] = []
    for document, line in dict.fromkeys(chosen):
        if reader.documents.text_bytes(document.id) > max_bytes:
            items.append(SkippedDocument(document))
        else:
            items.append(read(reader, document, from_line=line, max_lines=max_lines))
    return MultiGetReply(tuple(errors), tuple(items))


def _listed(pattern: str) -> list[str]:
    """The names in a list. Raises InputError."""
    names = [name for part in pattern.split(",") if (name := part.strip())]
    if len(names) > MAX_NAMES:
        raise InputError(
            f"The list has {len(names):,} names, and may have {MAX_NAMES:,} at most.",
            hint="Ask for them in several parts, or by a glob such as 'notes/2025/**/*.md'.",
        )
    return names


def _is_glob(pattern: str) -> bool:
    """Whether it holds ``*``, ``?``, or brackets or braces around something."""
    if "*" in pattern or "?" in pattern:
        return True
    pairs = ((pattern.find(opening), closing) for opening, closing in ("[]", "{}"))
    return any(start >= 0 and pattern.find(closing, start + 2) >= 0 for start, closing in pairs)


def _whole(reader: Reader, pattern: str) -> DocumentInfo | None:
    """The document whose name looks like a glob or a list, and is neither."""
    found = _exactly(reader, pattern)
    if found is None and "," in pattern:
        named = reader.documents.by_suffix(pattern.strip("/"))
        found = named[0] if len(named) == 1 else None
    return found


def match(reader: Reader, pattern: str) -> list[DocumentInfo]:
    """Documents whose ``collection/path`` or ``path`` matches a glob (``**``, braces), in order."""
    from wcmatch import glob
    from wcmatch._wcparse import PatternLimitException

    flags = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB | glob.FORCEUNIX | glob.NODOTDIR
    pattern = pattern.removeprefix("qmd://")
    if len(pattern) > MAX_PATTERN:
        raise InputError(
            f"The pattern is too long (more than {MAX_PATTERN:,} characters).",
            hint="Use a shorter one, or a list of names without * and ?.",
        )
    if pattern.count("**") > MAX_GLOBSTARS:
        raise InputError(
            f"The pattern has more than {MAX_GLOBSTARS} times **.", hint="Name more of the folders."
        )
    try:
        matcher = glob.compile(pattern, flags=flags, limit=1000)
    except PatternLimitException as error:
        raise InputError(
            "The pattern stands for too many patterns.", hint="Use fewer alternatives in braces."
        ) from error
    matching = []
    for document in reader.documents.below(None):
        cancellation.check()
        if matcher.match(document.file) or matcher.match(document.path):
            matching.append(document)
    return matching


def resolve(
    reader: Reader, name: str, similar: SimilarNames | None = None
) -> tuple[DocumentInfo, int | None, int | None]:
    """
    The document a name stands for, and the ``:LINE[:COUNT]`` behind it.

    A document of that very name comes first, so ``notes.md:100`` may be a file.

    Args:
        similar: Suggests names; given by callers that resolve several.

    Raises:
        DocumentNotFoundError: With suggestions.
        AmbiguousNameError: With the candidates.
    """
    name = _storable(name)
    document = _find(reader, name)
    if document is not None:
        return document, None, None
    wanted = name
    for form in _LINES:
        lines = form.fullmatch(name)
        if lines is not None:
            document = _find(reader, lines["file"])
            if document is not None:
                return document, int(lines["line"]), int(lines["count"]) if lines["count"] else None
            wanted = lines["file"]
    raise DocumentNotFoundError(name, (similar or SimilarNames(reader)).like(wanted))


def _storable(name: str) -> str:
    """Without blanks around it, and without what no stored name can hold."""
    return _SURROGATE.sub("\ufffd", name.strip())


def _find(reader: Reader, name: str) -> DocumentInfo | None:
    if name.startswith("#"):
        digits = name[1:].lower()
        return _by_docid(reader, digits) if _DOCID.fullmatch(digits) else None
    found = _exactly(reader, name)
    if found is not None:
        return found
    if name.startswith("qmd://"):
        name = unquote(name.removeprefix("qmd://"))
    name = name.removeprefix("./")
    found_below = _by_absolute_path(reader, name)
    if found_below is not None:
        return found_below
    suffixes = reader.documents.by_suffix(name.strip("/"))
    if len(suffixes) > 1:
        raise AmbiguousNameError(name, [document.file for document in suffixes])
    if suffixes:
        return suffixes[0]
    return _by_docid(reader, name.lower()) if _DOCID.fullmatch(name) else None


def _exactly(reader: Reader, name: str) -> DocumentInfo | None:
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
    found = reader.documents.by_docid(digits)
    contents = {reader.documents.content_hash(document.id) for document in found}
    if len(contents) > 1:
        raise AmbiguousNameError(
            f"#{digits}", [f"{document.docid} ({document.file})" for document in found]
        )
    return found[0] if found else None


def _by_absolute_path(reader: Reader, name: str) -> DocumentInfo | None:
    """A path on the disk, as the collection's directory spells it or resolved."""
    if not name.startswith(("/", "~")) and not Path(name).is_absolute():
        return None
    try:
        path = Path(name).expanduser()
        spellings = {str(path), str(path.resolve())}
    except (RuntimeError, OSError, ValueError):
        return None  # no such user, or a name no file can have
    for collection in reader.collections.all():
        for spelling in spellings:
            if spelling.startswith(collection.path.rstrip("/") + "/"):
                relative = Path(spelling).relative_to(collection.path).as_posix()
                document = reader.documents.by_path(collection.name, relative)
                if document is not None:
                    return document
    return None
