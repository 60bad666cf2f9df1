"""Read documents, or lines of them, by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmd.errors import (
    AmbiguousNameError,
    DocumentNotFoundError,
    InputError,
    NoMatchError,
    SectionNotFoundError,
)
from qmd.parse.lines import split_lines
from qmd.parse.sections import block_ids, outline_of
from qmd.search import lookup
from qmd.search.budget import ReadingBudget
from qmd.search.lookup.resolve import (
    ResolvedName,
    by_whole_pattern,
    is_glob,
    resolve,
    storable,
)
from qmd.search.present import join_contexts
from qmd.values import DocumentSlice, MultiGetReply, SkippedDocument, reading

if TYPE_CHECKING:
    from qmd.store import Reader

#: The most names that one list may have.
MAX_NAMES = 1000
#: The most globs in such a list.
MAX_GLOBS = 20
#: At most this many unknown names of a list come with suggestions.
MAX_SUGGESTED = 20
#: As long as what a face says of a document that is too large.
_SKIPPED = "[SKIPPED: File too large (100KB). Use get with file= to retrieve.]"

#: A name in a list. What stands in ``[[…]]``, ``{…}`` or ``[…]`` may hold commas.
_LISTED = re.compile(r"(?:\[\[(?:[^\[\]]|\](?!\]))*\]\]|\{[^{}]*\}|\[[^\[\]]*\]|[^,])+")


def get(
    reader: Reader,
    name: str,
    *,
    from_line: int | None,
    max_lines: int | None,
    budget: ReadingBudget | None = None,
) -> DocumentSlice:
    """
    Read the document with this name, or lines of it.

    Lines in the name (``:LINE[:COUNT]``) are the default for ``max_lines``, and take precedence
    over ``from_line``.

    Raises:
        DocumentNotFoundError, AmbiguousNameError, InputError
    """
    if max_lines is not None and max_lines < 1:
        raise InputError(
            "The number of lines must be 1 or more.", hint="Leave it out for the whole document."
        )
    lines = read(reader, _lines(resolve(reader, name), from_line, max_lines))
    if budget is None:
        return lines
    return budget.take_document(lines, is_first=True) or lines


def details(reader: Reader, name: str) -> reading.DocumentDetails:
    """Raises DocumentNotFoundError, SectionNotFoundError, AmbiguousNameError."""
    document = resolve(reader, name).document
    facts = reader.documents.facts(document.id)
    return reading.DocumentDetails(
        document,
        facts.date,
        facts.properties,
        tuple(facts.tags),
        tuple(facts.aliases),
        tuple(reader.documents.warnings(document.id)),
        reader.collections.by_name(document.collection).path,
        reader.collections.is_vault(document.collection),
    )


def _lines(name: ResolvedName, from_line: int | None, max_lines: int | None) -> ResolvedName:
    """The lines that a name names, or the part of them that other arguments leave."""
    if name.line is not None:
        from_line = name.line if name.end_line is None else max(name.line, from_line or 1)
    return name._replace(line=from_line, max_lines=max_lines or name.max_lines)


def read(reader: Reader, name: ResolvedName) -> DocumentSlice:
    """Read lines of a document; without limits, its unchanged text. Lines below 1 count as 1."""
    document, from_line, max_lines, end_line, same_name = name
    text = reader.documents.text(document.id)
    lines = split_lines(text)
    start = max(1, from_line or 1)
    remaining_lines, count = 0, len(lines)
    if start > 1 or max_lines is not None or end_line is not None:
        if end_line is not None and end_line <= len(lines):
            lines = lines[: end_line - 1]
            text = "\n".join(lines)
        end = len(lines) if max_lines is None else min(len(lines), start - 1 + max_lines)
        remaining_lines = len(lines) - end if start <= len(lines) else 0
        count = max(0, end - start + 1)
        if start > 1 or remaining_lines:
            text = "\n".join(lines[start - 1 : end])
    context = join_contexts(reader.contexts.all(), document.collection, document.path)
    return DocumentSlice(
        document, context, start, remaining_lines, text, count, same_name=same_name
    )


def multi_get(
    reader: Reader,
    pattern: str,
    *,
    max_lines: int | None,
    max_bytes: int,
    budget: ReadingBudget | None = None,
) -> MultiGetReply:
    """
    Read the documents that match a glob, or those of a comma-separated list of names.

    ``budget``: the room of the whole reply; None for no bound.

    Raises:
        NoMatchError: No document matches.
        InputError: A bound or the pattern is not valid.
    """
    if max_lines is not None and max_lines < 1:
        raise InputError(
            "The number of lines must be 1 or more.", hint="Leave it out for whole documents."
        )
    if max_bytes < 1:
        raise InputError("The size limit must be 1 byte or more.")
    chosen, errors = _choose(reader, pattern, max_lines)
    budget = budget or ReadingBudget()
    errors = _fitting_errors(errors, budget)
    distinct = list(dict.fromkeys(chosen))
    items: list[DocumentSlice | SkippedDocument] = []
    for lines in distinct:
        item = _read_into(reader, lines, max_bytes, budget, is_first=not items)
        if item is None:
            break
        items.append(item)
        if isinstance(item, DocumentSlice) and item.left_out is not None:
            break
    more = len(distinct) - len(items)
    next_file = distinct[len(items)].document.file if more else None
    return MultiGetReply(tuple(items), tuple(errors), more, next_file)


def _choose(
    reader: Reader, pattern: str, max_lines: int | None
) -> tuple[list[ResolvedName], list[str]]:
    """
    The lines of documents that a pattern names, and errors for names without any.

    Raises:
        NoMatchError: No document matches, and the pattern is no list.
    """
    pattern = storable(pattern)
    document = by_whole_pattern(reader, pattern)
    chosen: list[ResolvedName] = []
    errors: list[str] = []
    if document is not None:
        chosen = [ResolvedName(document, max_lines=max_lines)]
    elif is_glob(pattern):  # a comma may be a part of file names
        chosen = [
            ResolvedName(document, max_lines=max_lines)
            for document in lookup.globs.match_glob(reader, pattern)
        ]
    names = _split_list(pattern)
    if not chosen and not (len(names) == 1 and is_glob(pattern)):
        chosen, errors = _resolve_list(reader, names, max_lines)
    if not chosen and not (errors and "," in pattern):
        raise NoMatchError(
            f"No files matched pattern: {pattern}",
            hint="Run 'qmd ls' to see the documents; patterns match collection/path and path.",
        )
    return chosen, errors


def _read_into(
    reader: Reader, lines: ResolvedName, max_bytes: int, budget: ReadingBudget, *, is_first: bool
) -> DocumentSlice | SkippedDocument | None:
    """One document of `multi_get`; None if the budget has no room for it."""
    document = lines.document
    is_section = lines.end_line is not None
    if is_section or reader.documents.text_bytes(document.id) <= max_bytes:
        part = read(reader, lines)
        if not is_section or len(part.text.encode()) <= max_bytes:
            return budget.take_document(part, is_first=is_first)
    fits = budget.take_text(f"{document.file} {document.uri} {_SKIPPED}")
    return SkippedDocument(document) if fits else None


def _fitting_errors(errors: list[str], budget: ReadingBudget) -> list[str]:
    """The first errors, which take at most half of a budget, and how many more there are."""
    half_tokens, half_bytes = budget.tokens / 2, budget.bytes / 2
    for number, error in enumerate(errors):
        fits = budget.take_text(error)
        if not fits or budget.tokens < half_tokens or budget.bytes < half_bytes:
            return [*errors[:number], f"{len(errors) - number:,} more names were not found."]
    return errors


def _resolve_list(
    reader: Reader, names: Sequence[str], max_lines: int | None
) -> tuple[list[ResolvedName], list[str]]:
    """Resolve the names and globs of a list to the lines to read, and to errors for the rest."""
    chosen: list[ResolvedName] = []
    errors: list[str] = []
    similar = lookup.similar.SimilarNames(reader, most=MAX_SUGGESTED)
    for name in names:
        if is_glob(name) and by_whole_pattern(reader, name) is None:
            matching = lookup.globs.match_glob(reader, name)
            chosen += [ResolvedName(document, max_lines=max_lines) for document in matching]
            if not matching:
                errors.append(f"No files matched pattern: {name}")
            continue
        try:
            chosen.append(_lines(resolve(reader, name, similar), None, max_lines))
        except DocumentNotFoundError as error:
            hint = ", ".join(error.suggestions)
            suffix = f" (did you mean: {hint}?)" if hint else ""
            errors.append(f"File not found: {name}{suffix}")
        except (AmbiguousNameError, SectionNotFoundError) as error:
            errors.append(str(error))
    return chosen, errors


def _split_list(pattern: str) -> list[str]:
    """
    Split a comma-separated list of names and globs.

    Raises:
        InputError: It has too many.
    """
    names = [name for part in _LISTED.findall(pattern) if (name := part.strip())]
    if sum(map(is_glob, names)) > MAX_GLOBS:
        raise InputError(
            f"The list has more than {MAX_GLOBS} patterns.",
            hint="Each is compared with all names: ask for them in several parts.",
        )
    if len(names) > MAX_NAMES:
        raise InputError(
            f"The list has {len(names):,} names, and may have {MAX_NAMES:,} at most.",
            hint="Ask for them in several parts, or by a glob such as 'notes/2025/**/*.md'.",
        )
    return names


def outline(reader: Reader, name: str) -> reading.DocumentOutline:
    """
    The headings and named blocks of the document with this name, or of the section it names.

    Raises:
        DocumentNotFoundError, SectionNotFoundError, AmbiguousNameError
    """
    resolved = resolve(reader, name)
    text = reader.documents.text(resolved.document.id)
    lines = len(split_lines(text))
    first, end = 1, lines + 1
    if resolved.end_line is not None:
        first, end = resolved.line or 1, resolved.end_line
    headings = [
        reading.OutlinedHeading(
            each.heading.level, each.heading.text, each.start_line, each.end_line - 1
        )
        for each in outline_of(text)
        if first <= each.start_line < end
    ]
    blocks = [
        reading.OutlinedBlock(block, line) for block, line in block_ids(text) if first <= line < end
    ]
    return reading.DocumentOutline(
        resolved.document,
        lines,
        tuple(headings[: reading.MAX_OUTLINED]),
        tuple(blocks[: reading.MAX_OUTLINED]),
        len(headings),
    )
