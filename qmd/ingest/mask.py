"""
Compile masks, the globs that say which files of a collection are documents.

Examples are ``**/*.md`` (all levels), ``*.md`` (top level only) and ``notes/**/*.{md,txt}``; commas
separate several globs. Letter case does not matter: ``README.MD`` matches ``**/*.md``, because it
is Markdown too, and because a collection must be the same on every file system.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

from qmd.errors import InputError

_EXAMPLE = "Use globs such as '**/*.md', 'notes/**/*.{md,txt}' or '**/*.md,**/*.txt'."
#: The most ``**`` in one glob: each multiplies the number of ways to match a deep path.
_MAX_GLOBSTARS = 4
_BY_SUFFIX = re.compile(r"\*\*/\*(\.\w+(?:\.\w+)*|\.\{\w+(?:,\w+)*\})", re.ASCII)


def compile_mask(mask: str) -> Callable[[str, str], bool]:
    """
    Compile a mask to a function ``matches(path, name)``.

    The path is relative to the root of the collection, with ``/``.

    Raises:
        InputError: The mask is empty or absolute, leads out by ``..``, or is no glob.
    """
    suffixes: list[str] = []
    globs: list[str] = []
    for part in split_mask(mask):
        match = _BY_SUFFIX.fullmatch(part)
        if match is None:
            globs.append(part)
        elif match[1].startswith(".{"):
            suffixes += ("." + suffix.lower() for suffix in match[1][2:-1].split(","))
        else:
            suffixes.append(match[1].lower())
    endings = tuple(suffixes)
    regex = _compile_globs(globs, mask) if globs else None

    def by_suffix(path: str, name: str) -> bool:
        return name.endswith(endings) or name.lower().endswith(endings)

    def by_either(path: str, name: str) -> bool:
        return by_suffix(path, name) or (regex is not None and regex.match(path) is not None)

    # Most masks have suffixes only, and then wcmatch is not imported.
    return by_suffix if regex is None else by_either


def split_mask(mask: str) -> list[str]:
    """Split a mask at the commas outside braces, and check the globs. Raises InputError."""
    parts = [""]
    depth = 0
    escaped = False
    for character in mask:
        if character == "," and depth == 0 and not escaped:
            parts.append("")
            continue
        if not escaped:
            depth += (character == "{") - (character == "}")
        if depth < 0:
            break
        escaped = character == "\\" and not escaped
        parts[-1] += character
    if depth != 0:
        raise InputError(f"The mask '{mask}' has an unbalanced brace.", hint=_EXAMPLE)
    globs = [part for part in (_without_dot(part.strip()) for part in parts) if part]
    if not globs:
        raise InputError("The mask is empty.", hint=_EXAMPLE)
    for glob in globs:
        _check_glob(glob)
    return globs


def _without_dot(glob: str) -> str:
    while glob.startswith("./"):
        glob = glob[2:].lstrip("/")
    return glob


def _check_glob(glob: str) -> None:
    if glob.count("**") > _MAX_GLOBSTARS:
        raise InputError(
            f"The mask '{glob[:100]}' has more than {_MAX_GLOBSTARS} times **.", hint=_EXAMPLE
        )
    if glob.startswith(("/", "~/", "\\\\")) or re.match(r"[A-Za-z]:[\\/]", glob):
        raise InputError(
            f"The mask '{glob}' is absolute; masks are relative to the collection's folder.",
            hint=_EXAMPLE,
        )
    if ".." in re.split(r"[/{},]", glob):
        raise InputError(
            f"The mask '{glob}' leads out of the collection's folder by '..'.", hint=_EXAMPLE
        )
    if glob.startswith("!"):
        raise InputError(
            f"The mask '{glob}' excludes; a mask only says what is included.",
            hint=f"Exclude with --ignore '{glob[1:]}', or write \\! for a name that begins with !.",
        )
    if glob.endswith("/"):
        raise InputError(
            f"The mask '{glob}' names a folder and matches no file.",
            hint=f"For all Markdown below it: '{glob}**/*.md'.",
        )
    if "\0" in glob:
        raise InputError("The mask holds a NUL character.", hint=_EXAMPLE)


def expand_braces(glob: str) -> list[str]:
    """Expand ``a.{md,txt}`` to ``a.md``, ``a.txt``. Raises InputError for over 1,000 globs."""
    from bracex import ExpansionLimitException, expand

    try:
        return expand(glob, keep_escapes=True, limit=1000)
    except ExpansionLimitException as error:
        raise InputError(f"'{glob}' expands to more than 1,000 globs.", hint=_EXAMPLE) from error


def _compile_globs(globs: list[str], mask: str) -> re.Pattern[str]:
    from wcmatch import glob as wcglob

    expanded = [each for glob in globs for each in (expand_braces(glob) if "{" in glob else [glob])]
    # The scan excludes hidden names, so a star may match a dot here.
    flags = wcglob.GLOBSTAR | wcglob.DOTGLOB | wcglob.FORCEUNIX | wcglob.IGNORECASE
    try:
        included = [wcglob.translate(each, flags=flags)[0][0] for each in expanded]
        with warnings.catch_warnings():
            # The warning is about "[" within a set, which a future Python may read differently.
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile("|".join(f"(?:{regex})" for regex in included))
    except (re.error, ValueError) as error:
        raise InputError(f"The mask '{mask}' is no valid glob: {error}", hint=_EXAMPLE) from error
