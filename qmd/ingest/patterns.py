"""
Compiles the patterns that choose files: those of ignore files, with git's semantics, and masks.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Literal

from qmd.errors import InputError
from qmd.records import dataclass

# --- ignore files -----------------------------------------------------------------------
# A line is translated into a regular expression that cannot backtrack without bound (`a*a*a*…b` is
# cheap here), because ignore files come with other people's vaults. Git matches bytes, and this
# module characters, so ``?`` matches one ``文``.

RuleSource = Literal[".gitignore", ".qmdignore", "ignore option"]

#: The most characters of patterns in all ignore files that apply to one folder, and the most in
#: patterns with wildcards. Those take time for each file, and thousands of times their size in
#: memory while they are compiled.
MAX_PATTERNS = 256 * 1024
MAX_WILD_PATTERNS = 16 * 1024

_NEVER = "(?!)"
#: A longer regex, in characters, must not stay in the cache of `re`, which keeps 512 of any size.
_MAX_CACHED = 4096
_POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r" \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_WILD = re.compile(r"[*?\[\\]")
#: A class, a character or a range in brackets; a backslash escapes the next character.
_BRACKET_ITEM = re.compile(
    r"\[:(?P<class>[^\]]*):\]|(?P<first>\\?.)(?:-(?P<last>\\.|[^\]\\]))?", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """
    The pattern of one line of an ignore file, or of one ignore option.

    ``line`` is 1-based; for an ignore option, it is the number of the option. If ``whole_path``,
    ``regex`` matches the path relative to the file's directory, otherwise the name alone.
    ``literal`` is the pattern itself if it has no wildcards, otherwise None.
    """

    reason: RuleSource
    file: str
    line: int
    pattern: str
    negated: bool
    directories_only: bool
    whole_path: bool
    literal: str | None
    regex: str


class IgnoreFile:
    """
    The rules of one ignore file; the last one that matches decides.

    Args:
        directory: The directory of the file, relative to the root of the scan: "" for the root
            itself, "a/b" for a directory below it.
        above: For a file above the root: the path from the file's directory down to the root.
    """

    def __init__(
        self, rules: Iterable[IgnoreRule], *, directory: str = "", above: str = ""
    ) -> None:
        self.rules = tuple(rules)
        self.has_negation = any(rule.negated for rule in self.rules)
        self._skip = len(directory) + 1 if directory else 0
        self._above = above + "/" if above else ""
        name_rules = [rule for rule in self.rules if not rule.whole_path]
        path_rules = [rule for rule in self.rules if rule.whole_path]
        self._names = _literals(name_rules)
        self._paths = _literals(path_rules)
        self._name_regex = _any_of(rule.regex for rule in name_rules if rule.literal is None)
        self._path_regex = _any_of(rule.regex for rule in path_rules if rule.literal is None)
        self._compiled: dict[str, re.Pattern[str]] = {}

    def match(self, path: str, name: str, is_directory: bool) -> IgnoreRule | None:
        """The rule that includes or excludes ``path`` (relative to the root), or None."""
        return self.decide(self._above + path[self._skip :], name, is_directory)

    def decide(self, below: str, name: str, is_directory: bool) -> IgnoreRule | None:
        """As `match`, but the path ``below`` is relative to the directory of the ignore file."""
        if not self._may_match(below, name):
            return None
        for rule in reversed(self.rules):
            if rule.directories_only and not is_directory:
                continue
            subject = below if rule.whole_path else name
            if rule.literal is not None:
                if rule.literal == subject:
                    return rule
            elif self._regex(rule).fullmatch(subject):
                return rule
        return None

    def _may_match(self, below: str, name: str) -> bool:
        """Whether any rule may match. Most paths match none, and four quick tests show that."""
        return (
            name in self._names
            or below in self._paths
            or (self._name_regex is not None and self._name_regex.fullmatch(name) is not None)
            or (self._path_regex is not None and self._path_regex.fullmatch(below) is not None)
        )

    def _regex(self, rule: IgnoreRule) -> re.Pattern[str]:
        compiled = self._compiled.get(rule.regex)
        if compiled is None:
            compiled = self._compiled[rule.regex] = _compile(rule.regex)
        return compiled


def parse_ignore_lines(text: str, reason: RuleSource, file: str) -> Iterator[IgnoreRule]:
    """Parse the text of an ignore file; a line that git would ignore gives no rule."""
    # A line ends with "\n" or "\r\n" only, because names may hold all other line separators.
    lines = text.removeprefix("\ufeff").split("\n")
    groups = count()
    for line_number, raw in enumerate(lines, start=1):
        line = raw.removesuffix("\r")
        if line and not line.startswith("#"):
            rule = parse_rule(line, reason, file, line_number, groups)
            if rule is not None:
                yield rule


def fitting(text: str, above: Iterable[IgnoreFile]) -> str:
    """
    Cut the text of an ignore file before the line that would exceed `MAX_PATTERNS` or
    `MAX_WILD_PATTERNS`.

    The patterns of the files ``above``, which apply to the same folder, count as well.
    """
    files = list(above)
    remaining_chars = MAX_PATTERNS - sum(len(rule.pattern) for file in files for rule in file.rules)
    remaining_wild_chars = MAX_WILD_PATTERNS - sum(
        len(rule.pattern) for file in files for rule in file.rules if rule.literal is None
    )
    position = 0
    for line in text.split("\n"):
        if line and not line.startswith("#"):
            remaining_chars -= len(line)
            if _WILD.search(line):
                remaining_wild_chars -= len(line)
            if remaining_chars < 0 or remaining_wild_chars < 0:
                return text[:position]
        position += len(line) + 1
    return text


def parse_rule(
    line: str, reason: RuleSource, file: str, number: int, groups: Iterator[int]
) -> IgnoreRule | None:
    """
    Parse a line of an ignore file; None if it can match nothing.

    ``groups`` numbers the groups of the regex, so that the regexes of rules can be joined.
    """
    body = pattern = _without_trailing_spaces(line)
    negated = body.startswith("!")
    if negated:
        body = body[1:]
    directories_only = body.endswith("/")
    if directories_only:
        body = body[:-1]
    whole_path = "/" in body
    body = body.removeprefix("/") if whole_path else body
    if not body:
        return None
    literal = None if _WILD.search(body) else body
    regex = re.escape(body) if literal is not None else _translate(body, groups)
    if regex == _NEVER:
        return None
    return IgnoreRule(
        reason, file, number, pattern, negated, directories_only, whole_path, literal, regex
    )


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return line[: len(stripped) + 1] if backslashes % 2 else stripped  # "\ " is escaped


def _literals(rules: Iterable[IgnoreRule]) -> frozenset[str]:
    """The names or paths of the rules without wildcards."""
    return frozenset(rule.literal for rule in rules if rule.literal is not None)


def _any_of(regexes: Iterable[str]) -> re.Pattern[str] | None:
    joined = "|".join(f"(?:{regex})" for regex in regexes)
    return _compile(joined) if joined else None


def _compile(regex: str) -> re.Pattern[str]:
    compiled = re.compile(regex)
    if len(regex) > _MAX_CACHED:
        re.purge()
    return compiled


# A token is a regex for one character, or one of these.
_STAR, _SLASH = "*", "/"


def _translate(pattern: str, groups: Iterator[int]) -> str:
    """The regex for a pattern without ``!`` and outer slashes; `_NEVER` if it matches nothing."""
    tokens = _tokens(pattern)
    if tokens is None:
        return _NEVER
    components: list[list[str]] = [[]]
    for token in tokens:
        if token == _SLASH:
            components.append([])
        else:
            components[-1].append(token)
    parts: list[str] = []  # the regex so far
    pending: list[str] = []  # components since the last "**", each with its slash
    is_after_globstar = False
    last = len(components) - 1
    for position, component in enumerate(components):
        if len(component) < 2 or set(component) != {_STAR}:
            pending.append(_component(component, groups) + ("" if position == last else "/"))
            continue
        run = "".join(pending)
        if is_after_globstar and run:
            # The next "**" matches any rest, so the nearest match is as good as any other, and
            # the regex need not backtrack into this part.
            parts.append(_nearest(f"(?:[^/]+/)*?{run}", groups))
        else:
            parts.append(run)
        pending = []
        is_after_globstar = True
        if position == last:
            return "".join(parts) + "(?s:.+)"
    if is_after_globstar:
        parts.append("(?:[^/]+/)*")
    return "".join(parts + pending)


def _nearest(regex: str, groups: Iterator[int]) -> str:
    """An atomic group: keep the first match of ``regex``, and never backtrack into it."""
    if sys.version_info >= (3, 11):
        return f"(?>{regex})"
    group = f"g{next(groups)}"
    return f"(?=(?P<{group}>{regex}))(?P={group})"


def _component(tokens: list[str], groups: Iterator[int]) -> str:
    """The regex for the tokens between two slashes."""
    chunks = [""]
    for token in tokens:
        if token != _STAR:
            chunks[-1] += token
        elif len(chunks) == 1 or chunks[-1]:
            chunks.append("")
    if len(chunks) == 1:
        return chunks[0]
    regex = chunks[0]
    for chunk in chunks[1:-1]:
        if chunk:
            # As in `_translate`: after a star, the nearest match of a chunk is as good as any.
            regex += _nearest(f"[^/]*?{chunk}", groups)
    return f"{regex}[^/]*{chunks[-1]}"


def _tokens(pattern: str) -> list[str] | None:
    """Split a pattern into tokens; None if git lets it match nothing."""
    tokens: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character in "*/":
            tokens.append(character)
        elif character == "?":
            tokens.append("[^/]")
        elif character == "\\":
            if position == len(pattern):
                return None
            escaped = pattern[position]
            tokens.append(_SLASH if escaped == "/" else re.escape(escaped))
            position += 1
        elif character == "[":
            bracket = _bracket(pattern, position)
            if bracket is None:
                return None
            tokens.append(bracket[0])
            position = bracket[1]
        else:
            tokens.append(re.escape(character))
    return tokens


def _bracket(pattern: str, position: int) -> tuple[str, int] | None:
    """
    Read ``[…]`` in a pattern, from the character after the "[" on.

    Returns:
        The regex for one character, and the position after the "]"; None if git lets the pattern
        match nothing.
    """
    negated = pattern.startswith(("!", "^"), position)
    start = position = position + negated
    items: list[str] = []
    while position == start or not pattern.startswith("]", position):  # the first may be a "]"
        item = _BRACKET_ITEM.match(pattern, position)
        if item is None:  # it has no end
            return None
        position = item.end()
        if item["class"] is not None:
            if item["class"] not in _POSIX_CLASSES:
                return None
            items.append(_POSIX_CLASSES[item["class"]])
            continue
        first, last = item["first"][-1], (item["last"] or "")[-1:]
        items.append(re.escape(first))
        if first <= last:
            items.append(f"{re.escape(first)}-{re.escape(last)}")
    inside = "".join(items)
    if negated:
        return f"[^/{inside}]", position + 1
    return f"(?!/)[{inside}]" if inside else _NEVER, position + 1


# --- masks ------------------------------------------------------------------------------
# Masks are the globs that say which files of a collection are documents. Examples are ``**/*.md``
# (all levels), ``*.md`` (top level only) and ``notes/**/*.{md,txt}``; commas separate several
# globs. Letter case does not matter: ``README.MD`` matches ``**/*.md``, because it is Markdown too,
# and because a collection must be the same on every file system.

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
