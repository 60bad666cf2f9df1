"""A parsed file in the form in which the store takes it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from qmd.ingest.file_job import version_of
from qmd.parse.chunk import embedded_text
from qmd.parse.segment import camel_parts, derivation, is_cjk, segment
from qmd.values import FileState, FullTextEntry, NewDocument, ParsedDocument
from qmd.values.names import file_stem
from qmd.values.pictures import Picture

_TOKEN = re.compile(r"[^\W_]+")


def new_document(
    path: str,
    parsed: ParsedDocument,
    digest: str,
    state: FileState,
    pictures: Sequence[Picture] = (),
) -> NewDocument:
    """
    Make the stored form of a parsed file.

    Args:
        path: Relative to the collection's root, with ``/``.
        digest: SHA-256 of the text, in hex digits.
        pictures: As of `NewDocument`.
    """
    front, body = parsed.text[: parsed.body_start], parsed.text[parsed.body_start :]
    segmented_front, segmented_body = segment(front), segment(body)
    derived = None
    if segmented_front != front or segmented_body != body:
        derived = derivation([front, body], [segmented_front, segmented_body])
    return NewDocument(
        path=path,
        state=state,
        hash=digest,
        parser_version=version_of(path),
        parsed=parsed,
        fulltext=FullTextEntry(
            title=_segmented_names(path, parsed),
            headings=segment("\n".join(heading.text for heading in parsed.headings)),
            body=None if segmented_body == body else segmented_body,
            path=_segmented(path),
            front=None if segmented_front == front else segmented_front,
            words=" ".join(camel_parts(parsed.text)),
            description=_segmented(parsed.description),
            replacements=derived.replacements if derived else (),
            has_pairs=derived is not None and derived.has_pairs,
        ),
        chunk_hashes=[
            text_hash(
                embedded_text(
                    parsed.title,
                    " > ".join(chunk.heading_path),
                    parsed.text[chunk.start_char : chunk.end_char],
                )
            )
            for chunk in parsed.chunks
        ],
        pictures=pictures,
    )


def _segmented_names(path: str, parsed: ParsedDocument) -> str | None:
    """
    The title, the file's name and the aliases as full text stores them; None for the title itself.

    A name whose words stand in those before it is left out, so that no word counts twice.
    """
    others = [name for name in (file_stem(path), *parsed.aliases) if name != parsed.title]
    if not others:
        return _segmented(parsed.title)
    names = [parsed.title]
    words = _words(parsed.title)
    for name in others:
        of_name = _words(name)
        if not of_name <= words:
            names.append(name)
            words |= of_name
    segmented = segment("\n".join(names))
    return None if segmented == parsed.title else segmented


def _words(name: str) -> set[str]:
    """The tokens of a name in full text, without the last character of a run of Chinese."""
    tokens = _TOKEN.findall(segment(name).casefold())
    return {token for token in tokens if len(token) > 1 or not is_cjk(token)} or set(tokens)


def _segmented(text: str) -> str | None:
    """The text as full text stores it; None if that is the text itself."""
    segmented = segment(text)
    return None if segmented == text else segmented


def text_hash(text: str) -> bytes:
    """The key of a text in the embedding cache: 16 bytes of SHA-256."""
    return hashlib.sha256(text.encode()).digest()[:16]
