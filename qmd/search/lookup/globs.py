"""Lists the documents whose names match a glob."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wcmatch import glob
from wcmatch._wcparse import PatternLimitException

from qmd.errors import InputError
from qmd.search.lookup.resolve import MAX_PATTERN, innermost
from qmd.system import cancellation
from qmd.values import DocumentInfo

if TYPE_CHECKING:
    from qmd.store import Reader

_GLOB_SIGN = re.compile(r"[*?\[\]{}\\!|~()@+]")
#: The most ``**`` in one glob: each multiplies the number of ways to match a deep path.
MAX_GLOBSTARS = 4


def match_glob(reader: Reader, pattern: str) -> list[DocumentInfo]:
    """
    List the documents whose ``collection/path`` or ``path`` matches a glob, in order.

    A file that matches in several collections is listed once.
    """
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
        parts, _ = glob.translate(pattern, flags=flags, limit=1000)
    except PatternLimitException as error:
        raise InputError(
            "The pattern stands for too many patterns.", hint="Use fewer alternatives in braces."
        ) from error
    matches = [re.compile(part).fullmatch for part in parts]
    matching = []
    for document_id, collection, path in reader.documents.places(_literal_beginning(pattern)):
        cancellation.check()
        file = f"{collection}/{path}"
        if any(match(file) or match(path) for match in matches):
            matching.append((document_id, collection, path))
    kept = innermost(reader, matching)
    return reader.documents.by_ids([each for each, _, _ in matching if each in kept])


def _literal_beginning(pattern: str) -> str:
    """What each name begins with that matches a glob: all before its first sign."""
    beginning = _GLOB_SIGN.split(pattern, maxsplit=1)[0]
    is_plain = "//" not in beginning and not beginning.startswith((".", "/"))
    return beginning if is_plain and "/." not in beginning else ""
