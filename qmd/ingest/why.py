"""
Explain why a path is or is not a document, by the rules of the scan: ``qmd why PATH``.

A verdict is an `Explanation` whose ``detail`` names the rule that decides: ``rule`` is "included",
"directory" (the scan goes into it), "missing", or the word under which the scan counts or reports
the path; ``subject`` is the path that the rule matched: the path itself, or a directory above it
that is excluded with all its content; ``ignore_file``, ``line`` and ``pattern`` are those of the
ignore file that decided, if one did.
"""

# Paths are strings here, as in the scan:
# ruff: noqa: PTH117

from __future__ import annotations

import os
import re
import shlex
import stat
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qmd.engine_text import engine_text, sentences
from qmd.errors import InputError, NotFoundError
from qmd.ingest.collection_paths import locate
from qmd.ingest.patterns import IgnoreRule
from qmd.ingest.rules import (
    BACKUPS,
    HIDDEN,
    MASK,
    PICTURES,
    VAULT_FOLDER,
    Exclusion,
    Rules,
    VaultRule,
)
from qmd.ingest.scan import (
    End,
    ScannedFile,
    ScanSkip,
    descend,
    is_readable,
    printable,
    unreadable_root,
)
from qmd.parse.formats import MARKDOWN, PHOTO, format_of
from qmd.values import Explanation
from qmd.values.search import encode_uri
from qmd.values.text import DEFAULT_MASK, fold

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import Collection, DocumentInfo

#: Suffixes of documents, and of pictures, that people keep beside their notes, and whose text qmd
#: cannot read.
_UNREADABLE = frozenset(("doc", "xls", "ppt", "mobi", "azw3"))
_UNREADABLE_PICTURES = frozenset(("avif", "bmp", "gif", "tif", "tiff", "webp"))
_NOT_IN_MASK = re.compile(r"[^\w. -]")
#: The most files and folders that are looked at for a name: some seconds of a cold disk.
MOST_LOOKED_AT = 200_000
#: The most files of a name that are listed.
MOST_NAMED = 10
#: Sentences that tell the user how to mend a skipped file, by the reason.
SKIP_REMEDIES = {
    "too large": "Split it into smaller files.",
    "unreadable": "Give yourself permission to read it, then run 'qmd index'.",
    "bad file name": "Rename it so that its name is valid UTF-8.",
    "too deep": "Move it up, or add a folder above it as a collection of its own.",
    "symlink out of the collection": "Add the folder it leads to as a collection of its own.",
    "dangling symlink": "Correct or remove the link.",
    "symlink loop": "Correct or remove the link.",
    "encrypted": "Save a copy without a password, or leave it out.",
    "format not installed": "Run that command, then 'qmd index'.",
    "over budget": "Split or mend it; it is read again when it has changed.",
    "parser failed": "Mend it, or report it as an error of qmd with the file; it is read again"
    " when it has changed, or by 'qmd index --verify'.",
    "no answer": "Is its disk reachable? The next run tries it again.",
}


def explain_path(reader: Reader, path: str) -> Explanation:
    """Explain why a path is or is not a document."""
    location = locate(path, reader.collections.all())
    if location is None:
        return Explanation(
            path,
            indexed=False,
            reason="It lies in no collection.",
            remedy="Add its directory: qmd collection add DIRECTORY",
        )
    collection, relative = location
    shown = printable(relative)
    file = f"{collection.name}/{shown}" if relative else collection.name
    detail: dict[str, object] = {"collection": collection.name, "path": shown}
    if not relative:
        reason = engine_text(
            "It is the collection '{name}' with {documents} that match {pattern}.",
            name=collection.name,
            documents=_documents(collection.documents),
            pattern=collection.pattern,
        )
        return Explanation(file, indexed=True, reason=reason, detail=detail)
    document = reader.documents.by_path(collection.name, shown)
    skip = reader.files.skips_in_collection(collection.id).get(shown)
    try:
        verdict = judge_path(Rules.of_collection(collection), relative, collection.name)
    except NotFoundError as error:
        return Explanation(file, document is not None, error.message, error.hint, detail)
    detail |= verdict.detail
    if verdict.indexed and verdict.detail["rule"] == "directory":
        count = len(reader.documents.below(collection.name, shown))
        reason = engine_text(
            "It is a folder of the collection '{name}' with {documents} below it.",
            name=collection.name,
            documents=_documents(count),
        )
        return Explanation(file, indexed=count > 0, reason=reason, detail=detail)
    if verdict.indexed and skip is not None:
        skipped = skip[0]
        return Explanation(
            file,
            indexed=False,
            reason=engine_text(
                "The rules include it, but it is no document: {reason}. {detail}",
                reason=skipped.reason,
                detail=skipped.detail,
            ),
            remedy=SKIP_REMEDIES.get(skipped.reason)
            or engine_text("{remedy}, then run 'qmd index'.", remedy=format_of(relative).remedy),
            detail=detail | {"skipped": skipped.reason},
        )
    if document is None:
        if verdict.indexed:
            reason = "The rules include it, but it has not been indexed yet."
            return Explanation(file, False, reason, "qmd index", detail)
        return replace(verdict, path=file, detail=detail)
    return _of_document(reader, document, f"{collection.path}/{relative}", verdict, file, detail)


def _of_document(
    reader: Reader,
    document: DocumentInfo,
    on_disk: str,
    verdict: Explanation,
    file: str,
    detail: Mapping[str, object],
) -> Explanation:
    """Explain a path that is a document; ``verdict`` is that of the rules."""
    warnings = reader.documents.warnings(document.id)
    detail = {
        **detail,
        "docid": document.docid,
        "title": document.title,
        "modified": document.modified,
        "warnings": warnings,
    }
    # A run keeps the documents below a folder that cannot be listed: they are unknown, not gone.
    rule, subject = verdict.detail["rule"], verdict.detail["subject"]
    is_unlisted = rule == "unreadable" and subject != printable(document.path)
    if not verdict.indexed and not is_unlisted:
        reason = engine_text(
            "It is still in the index, but the next run drops it: {reason}", reason=verdict.reason
        )
        return Explanation(file, True, reason, "qmd index", detail)
    reason = sentences(
        engine_text(
            "It is a document ({docid}, “{title}”).", docid=document.docid, title=document.title
        ),
        *(engine_text("Warning: {warning}", warning=warning) for warning in warnings),
        *_unread_pictures(reader, document.id, is_photo=format_of(document.path) is PHOTO),
    )
    if is_unlisted or not is_readable(on_disk):
        # A run opens only files that have changed, so it does not notice.
        reason = sentences(reason, "The file cannot be read any more; searches show what it held.")
        return Explanation(file, True, reason, SKIP_REMEDIES["unreadable"], detail)
    return Explanation(file, indexed=True, reason=reason, detail=detail)


def _unread_pictures(reader: Reader, document_id: int, *, is_photo: bool) -> list[str]:
    """What keeps the text in pictures from being searched, as sentences; a PDF has a warning."""
    problems = reader.pictures.problems(document_id)
    if not is_photo:
        return [
            engine_text("Page {page} cannot be read: {problem}", page=page, problem=each)
            for page, each in problems.items()
        ]
    if problems:
        return [engine_text("The text in it cannot be read: {problem}", problem=problems[1])]
    if any(picture.read_by is None for picture in reader.pictures.of_document(document_id)):
        return ["The text in it was not read yet: 'qmd ocr' reads it."]
    return []


# --- by the rules alone ------------------------------------------------------------------


def judge_path(rules: Rules, path: str, collection: str = "NAME") -> Explanation:
    """
    What a scan by these rules decides about a path.

    Args:
        path: Relative to the root of the rules.
        collection: The name of the collection, for remedies.

    Returns:
        ``indexed`` says whether the rules include the path.

    Raises:
        InputError: The path is empty, absolute or leads out of the root by "..".
        NotFoundError: The root does not exist.
    """
    relative = _relative(path)
    try:
        os.scandir(rules.root).close()
    except OSError as error:
        raise unreadable_root(rules.root, error) from error
    end = descend(rules, relative, {}, os.path.realpath(rules.root))
    is_last = end.path == relative
    match end.decision:
        case None:
            return _verdict("directory", end.path, "The scan goes into this folder.", indexed=True)
        case ScanSkip() as skip:
            return _skipped(skip)
        case ScannedFile() if is_last:
            sentence = "No rule excludes it, and the mask matches."
            return _verdict("included", end.path, sentence, indexed=True)
        case ScannedFile() | OSError():  # (a file is where a folder would have to be)
            sentence = "Nothing of this name is on the disk."
            name = relative.rpartition("/")[2]
            exclusion = rules.exclude_file(end.folder, relative, name) if is_last else None
            if exclusion:
                also = engine_text(
                    "The rules would exclude it, too: {reason}.", reason=exclusion.reason
                )
                sentence = sentences(sentence, also)
            gone = end.path if isinstance(end.decision, OSError) else relative
            return _verdict("missing", printable(gone), sentence)
        case exclusion:
            return _excluded(exclusion, end, rules, collection)


def exclusion_of_new_file(rules: Rules, path: str, collection: str = "NAME") -> Explanation | None:
    """
    The decision that keeps a file at ``path`` out of the index, or None if none does.

    Neither the file nor the folders above it need to be there. Arguments and errors are those of
    `judge_path`.
    """
    relative = _relative(path)
    end = descend(rules, relative, {}, "", is_new=True)
    match end.decision:
        case ScanSkip() as skip if end.path != relative:
            return _skipped(skip)
        case ScannedFile() | ScanSkip() | OSError() | None:  # nothing is said of its format
            return None
        case exclusion:
            return _excluded(exclusion, end, rules, collection)


def _relative(path: str) -> str:
    """A relative path without empty names and dots. Raises InputError."""
    names = [name for name in path.replace(os.sep, "/").split("/") if name not in ("", ".")]
    if not names or ".." in names or os.path.isabs(path) or "\0" in path:
        raise InputError(
            engine_text("Not a path below the folder: {path}", path=repr(path)),
            hint="Give a path relative to the folder.",
        )
    return "/".join(names)


def _verdict(
    rule: str,
    subject: str,
    reason: str,
    remedy: str | None = None,
    *,
    indexed: bool = False,
    **line: object,
) -> Explanation:
    """``line``: ``ignore_file``, ``line`` and ``pattern``, as far as there are any."""
    detail = {"rule": rule, "subject": subject, **line}
    facts = {key: value for key, value in detail.items() if value is not None}
    return Explanation(subject, indexed, reason, remedy, facts)


def _skipped(skip: ScanSkip) -> Explanation:
    sentence = engine_text(
        "{reason}: {detail}.",
        reason=f"{skip.reason[0].upper()}{skip.reason[1:]}",
        detail=skip.detail,
    )
    return _verdict(skip.reason, skip.path, sentence, SKIP_REMEDIES.get(skip.reason))


def _excluded(exclusion: Exclusion, end: End, rules: Rules, collection: str) -> Explanation:
    path = end.path
    shown = printable(path)
    is_directory = end.status is not None and stat.S_ISDIR(end.status.st_mode)
    including_line = printable(
        "!/" + re.sub(r"([\\*?\[ ])", r"\\\1", path) + ("/" if is_directory else "")
    )
    add_line = engine_text(
        "add the line {line} to .qmdignore in the collection's folder.", line=including_line
    )
    name = shlex.quote(collection)
    pattern: str | None = None
    ignore_file: str | None = None
    line: int | None = None
    if isinstance(exclusion, VaultRule):
        pattern = printable(exclusion.pattern)
        ignore_file = f"{exclusion.vault}/{VAULT_FOLDER}/app.json".lstrip("/")
        sentence = engine_text(
            "Obsidian excludes it from its search: '{pattern}' in the setting Excluded files"
            " matches '{name}'.",
            pattern=pattern,
            name=shown,
        )
        remedy = engine_text(
            "Remove it from Excluded files in Obsidian's settings, or {add_line}", add_line=add_line
        )
    elif isinstance(exclusion, IgnoreRule):
        pattern, line = printable(exclusion.pattern), exclusion.line
        ignore_file = printable(exclusion.file) or None
        if exclusion.reason == "ignore option":
            sentence = engine_text(
                "The collection's ignore pattern '{pattern}' matches '{name}'.",
                pattern=exclusion.pattern,
                name=shown,
            )
            remedy = engine_text(
                "Give it other patterns: qmd collection set {name} --ignore PATTERN.", name=name
            )
        else:
            sentence = engine_text(
                "Line {line} of {file}, '{pattern}', matches '{name}'.",
                line=line,
                file=ignore_file or "",
                pattern=exclusion.pattern,
                name=shown,
            )
            remedy = engine_text("Remove that line, or {add_line}", add_line=add_line)
    elif exclusion in (HIDDEN, PICTURES):
        sentence = engine_text(
            "The {kind} '{name}' is hidden: its name begins with a dot.",
            kind="folder" if is_directory else "file",
            name=shown,
        )
        remedy = "Rename it without the dot, or add its folder as a collection of its own."
    elif exclusion is MASK:
        sentence = engine_text("The collection's mask '{mask}' does not match it.", mask=rules.mask)
        remedy = _wider_mask(path, rules.mask, name)
    elif exclusion is BACKUPS:
        sentence = engine_text(
            "The folder '{name}' holds Logseq's copies of earlier pages.", name=shown
        )
        remedy = "Add it as a collection of its own if you want to search them."
    else:
        sentence = engine_text(
            "Folders named '{name}' hold other people's files.", name=exclusion.reason
        )
        remedy = "Move your documents out of it, or add it as a collection of its own."
    return _verdict(
        exclusion.reason,
        shown,
        sentence,
        remedy,
        ignore_file=ignore_file,
        line=line,
        pattern=pattern,
    )


def _wider_mask(path: str, mask: str, collection: str) -> str:
    suffix = Path(path).suffix.lower().removeprefix(".")
    has_format = format_of(path) is not MARKDOWN  # that of a plugin
    if suffix in _UNREADABLE_PICTURES and not has_format:
        return engine_text(
            "qmd reads no {suffix} files. Save a copy as JPEG, PNG or HEIC.", suffix=suffix
        )
    if suffix in _UNREADABLE and not has_format:
        return engine_text(
            "qmd reads no {suffix} files. Save a copy in a format that it reads, like docx or PDF.",
            suffix=suffix,
        )
    photos = [each.removeprefix(".") for each in PHOTO.suffixes]
    suffixes = photos if suffix in photos else [suffix]
    if not suffix.isalnum():  # a file without a suffix, such as LICENSE
        wider = f"{mask},**/{_NOT_IN_MASK.sub('?', Path(path).name)}"
    elif mask == "**/*.md":
        wider = f"**/*.{{md,{','.join(suffixes)}}}"
    elif mask == DEFAULT_MASK:
        wider = f"{DEFAULT_MASK[:-1]},{','.join(suffixes)}}}"
    else:
        wider = ",".join([mask, *(f"**/*.{each}" for each in suffixes)])
    return engine_text(
        "Give it a wider mask: qmd collection set {name} --mask '{mask}'.",
        name=collection,
        mask=wider,
    )


# --- files that are named without their whole path -----------------------------------------


def explain_named_file(reader: Reader, name: str, explanation: Explanation) -> Explanation:
    """
    Explain the file that somebody names without its whole path.

    Args:
        explanation: That of the name as a path.

    Returns:
        ``explanation`` if the name is the path of something that is there, or of a file nowhere.
    """
    is_missing = explanation.detail.get("rule", "missing") == "missing"
    if not is_missing or os.path.lexists(Path(name).expanduser()):
        return explanation
    named = files_of_name(reader.collections.all(), name.removeprefix("qmd://"))
    if named.paths:
        first = explain_path(reader, named.paths[0])
        if others := named.paths[1:]:
            more = ", ".join(explain_path(reader, other).path for other in others)
            also = engine_text("Others of this name: {files}.", files=more)
            return replace(first, reason=sentences(first.reason, also))
        return first
    sentence = (
        "No file or folder of this name lies below the folders of the collections."
        if named.is_complete
        else engine_text(
            "It is not among the first {most} files below those of the collections.",
            most=f"{MOST_LOOKED_AT:,}",
        )
    )
    is_below_cwd = "collection" in explanation.detail and not (
        os.path.isabs(Path(name).expanduser())
        or explanation.path == name.removeprefix("qmd://").rstrip("/")
    )
    reason = explanation.reason
    if is_below_cwd:  # nobody typed this path, so its rules explain nothing
        reason = "Nothing of this name is on the disk."
    return replace(explanation, reason=sentences(reason, sentence))


class FilesOfName(NamedTuple):
    """
    Files below the folders of collections with one name; folders of this name if there is no file.

    Attributes:
        paths: ``qmd://`` addresses, at most `MOST_NAMED`.
        is_complete: Whether all folders were looked through.
    """

    paths: Sequence[str]
    is_complete: bool


def files_of_name(collections: Sequence[Collection], name: str) -> FilesOfName:
    """
    Look for a file, or else a folder, on the disk, whatever the rules say of it and of those above.

    Folders near the root come first. The search ends after `MOST_LOOKED_AT` entries.

    Args:
        name: The end of a path: a file's name, with or without its suffix and folders above it.
    """
    parts = _parts(name)
    if not parts:
        return FilesOfName((), True)
    paths: list[str] = []
    named_folders: list[str] = []
    folders = deque((each, "") for each in sorted(collections, key=lambda each: each.name))
    left = MOST_LOOKED_AT
    while folders and left > 0 and len(paths) < MOST_NAMED:
        collection, folder = folders.popleft()
        entries = _entries(Path(collection.path, folder))
        left -= len(entries)
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            named = paths
            if entry.is_dir(follow_symlinks=False):
                folders.append((collection, path))
                named = named_folders
            if _ends_with(path, parts):
                named.append(encode_uri(f"{collection.name}/{path}"))
    return FilesOfName((paths or named_folders)[:MOST_NAMED], left > 0 and not folders)


def _parts(name: str) -> list[str]:
    return [fold(part) for part in name.replace(os.sep, "/").split("/") if part not in ("", ".")]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What lies in a folder, by name; nothing in one that cannot be read, or is gone."""
    try:
        with os.scandir(folder) as listed:
            return sorted(listed, key=lambda entry: entry.name)
    except OSError:
        return []


def _ends_with(path: str, parts: Sequence[str]) -> bool:
    """Whether a path ends with these folded names; the last may lack the suffix of the file."""
    *folders, name = [fold(part) for part in path.split("/")[-len(parts) :]]
    stem = name.rpartition(".")[0] or name
    return folders == list(parts[:-1]) and parts[-1] in (name, stem)


def _documents(count: int) -> str:
    return "1 document" if count == 1 else engine_text("{count} documents", count=f"{count:,}")
