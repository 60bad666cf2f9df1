"""Find the document that a name refers to, and the documents that match a glob."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from qmd.errors import AmbiguousNameError, DocumentNotFoundError, InputError
from qmd.search.lookup.similar import SimilarNames
from qmd.system import cancellation
from qmd.values import DocumentInfo

if TYPE_CHECKING:
    from qmd.store import Reader

#: ``:LINE`` is tried before ``:LINE:COUNT``, because a file may be called ``notes.md:100``.
_LINES = (
    re.compile(r"(?P<file>.+):(?P<line>[0-9]+)(?P<count>)", re.DOTALL),
    re.compile(r"(?P<file>.+):(?P<line>[0-9]+):(?P<count>[0-9]+)", re.DOTALL),
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_DOCID = re.compile(r"[0-9a-fA-F]{6,64}")


#: The longest pattern, in characters. No path is longer, so a longer pattern is a mistake.
MAX_PATTERN = 4096
#: The most ``**`` in one glob: each multiplies the number of ways to match a deep path.
MAX_GLOBSTARS = 4


def resolve(
    reader: Reader, name: str, similar: SimilarNames | None = None
) -> tuple[DocumentInfo, int | None, int | None]:
    """
    Find the document that a name refers to.

    A document with exactly this name comes first, so ``notes.md:100`` may be a file.

    Args:
        similar: Suggests names. Callers that resolve several names pass the same one each time.

    Returns:
        The document, and the line and the count of ``:LINE[:COUNT]`` after its name.

    Raises:
        DocumentNotFoundError: With suggestions.
        AmbiguousNameError: With the candidates.
    """
    name = storable(name)
    document = _find(reader, name)
    if document is not None:
        return document, None, None
    file_name = name
    for form in _LINES:
        lines = form.fullmatch(name)
        if lines is not None:
            document = _find(reader, lines["file"])
            if document is not None:
                return document, int(lines["line"]), int(lines["count"]) if lines["count"] else None
            file_name = lines["file"]
    raise DocumentNotFoundError(name, (similar or SimilarNames(reader)).like(file_name))


def storable(name: str) -> str:
    """Strip blanks from a name, and replace the surrogates that no stored name can hold."""
    return _SURROGATE.sub("\ufffd", name.strip())


def _find(reader: Reader, name: str) -> DocumentInfo | None:
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
    candidates = reader.documents.by_suffix(name.strip("/"))
    if len(candidates) > 1:
        raise AmbiguousNameError(name, [candidate.file for candidate in candidates])
    if candidates:
        return candidates[0]
    return _by_docid(reader, name.lower()) if _DOCID.fullmatch(name) else None


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
    for collection in reader.collections.all():
        for spelling in spellings:
            if spelling.startswith(collection.path.rstrip("/") + "/"):
                relative = Path(spelling).relative_to(collection.path).as_posix()
                document = reader.documents.by_path(collection.name, relative)
                if document is not None:
                    return document
    return None


def is_glob(pattern: str) -> bool:
    """Whether the pattern holds ``*``, ``?``, or brackets or braces that are not empty."""
    if "*" in pattern or "?" in pattern:
        return True
    pairs = ((pattern.find(opening), closing) for opening, closing in ("[]", "{}"))
    return any(start >= 0 and pattern.find(closing, start + 2) >= 0 for start, closing in pairs)


def by_whole_pattern(reader: Reader, pattern: str) -> DocumentInfo | None:
    """Find the document whose name only looks like a glob or a list."""
    document = _by_exact_name(reader, pattern)
    if document is None and "," in pattern:
        candidates = reader.documents.by_suffix(pattern.strip("/"))
        document = candidates[0] if len(candidates) == 1 else None
    return document


def match_glob(reader: Reader, pattern: str) -> list[DocumentInfo]:
    """List the documents whose ``collection/path`` or ``path`` matches a glob, in order."""
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
