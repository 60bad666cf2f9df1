"""
One ignore file, with the semantics of git.

A line is translated into a regular expression that cannot backtrack without bound
(`a*a*a*…b` is cheap here), because ignore files arrive with other people's vaults.
What git decides byte by byte is decided by character, so ``?`` matches one ``文``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal

RuleSource = Literal[".gitignore", ".qmdignore", "ignore option"]

#: The patterns of all ignore files that hold in one folder, in characters; those with wildcards
#: cost time for each file, and thousands of times their size in memory while they are compiled.
MAX_PATTERNS = 256 * 1024
MAX_WILD_PATTERNS = 16 * 1024

_NEVER = "(?!)"
#: A regex of more characters is not kept in the cache of `re`, which holds 512 of any size.
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


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """
    A line of an ignore file that means something.

    ``line`` is 1-based; for an ignore option, the number of the option. ``whole_path``
    says whether ``regex`` is for the path below the file's directory or for the name.
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
    The rules of one ignore file; the last that matches decides.

    ``directory`` is where the file lies, relative to the root of the scan: "" for the
    root itself, "a/b" below it. ``above`` is the other direction, for a file above the
    root: the path from its directory down to the root.
    """

    __slots__ = (
        "_above",
        "_compiled",
        "_name_regex",
        "_names",
        "_path_regex",
        "_paths",
        "_skip",
        "has_negation",
        "rules",
    )

    def __init__(
        self, rules: Iterable[IgnoreRule], *, directory: str = "", above: str = ""
    ) -> None:
        self.rules = tuple(rules)
        self.has_negation = any(rule.negated for rule in self.rules)
        self._skip = len(directory) + 1 if directory else 0
        self._above = above + "/" if above else ""
        self._names = frozenset(
            rule.literal for rule in self.rules if rule.literal is not None and not rule.whole_path
        )
        self._paths = frozenset(
            rule.literal for rule in self.rules if rule.literal is not None and rule.whole_path
        )
        wild = [rule for rule in self.rules if rule.literal is None]
        self._name_regex = _any_of(rule.regex for rule in wild if not rule.whole_path)
        self._path_regex = _any_of(rule.regex for rule in wild if rule.whole_path)
        self._compiled: dict[str, re.Pattern[str]] = {}

    def match(self, path: str, name: str, is_directory: bool) -> IgnoreRule | None:
        """The rule that decides about ``path`` (relative to the root), whichever way, or None."""
        return self.decide(self._above + path[self._skip :], name, is_directory)

    def decide(self, below: str, name: str, is_directory: bool) -> IgnoreRule | None:
        """As `match`, for a path relative to the ignore file's own directory."""
        # Nearly every path matches nothing: four cheap questions before the loop.
        if (
            name not in self._names
            and below not in self._paths
            and (self._name_regex is None or not self._name_regex.fullmatch(name))
            and (self._path_regex is None or not self._path_regex.fullmatch(below))
        ):
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

    def _regex(self, rule: IgnoreRule) -> re.Pattern[str]:
        compiled = self._compiled.get(rule.regex)
        if compiled is None:
            compiled = self._compiled[rule.regex] = _compile(rule.regex)
        return compiled


def parse_ignore_lines(text: str, reason: RuleSource, file: str) -> Iterator[IgnoreRule]:
    """The rules in the text of an ignore file; lines git would disregard give none."""
    # Only "\n" ends a line, and one "\r" before it belongs to the end: names may hold the rest.
    lines = text.removeprefix("\ufeff").split("\n")
    groups = count()
    for number, raw in enumerate(lines, start=1):
        line = raw.removesuffix("\r")
        if line and not line.startswith("#"):
            rule = parse_rule(line, reason, file, number, groups)
            if rule is not None:
                yield rule


def fitting(text: str, above: Iterable[IgnoreFile]) -> str:
    """
    The lines from the beginning of an ignore file for whose patterns there is room beside those
    of the files ``above`` that hold in the same folder; see `MAX_PATTERNS`.
    """
    files = list(above)
    room = MAX_PATTERNS - sum(len(rule.pattern) for file in files for rule in file.rules)
    wild_room = MAX_WILD_PATTERNS - sum(
        len(rule.pattern) for file in files for rule in file.rules if rule.literal is None
    )
    position = 0
    for line in text.split("\n"):
        if line and not line.startswith("#"):
            room -= len(line)
            if _WILD.search(line):
                wild_room -= len(line)
            if room < 0 or wild_room < 0:
                return text[:position]
        position += len(line) + 1
    return text


def parse_rule(
    line: str, reason: RuleSource, file: str, number: int, groups: Iterator[int]
) -> IgnoreRule | None:
    """``groups`` numbers the groups of the regex, so that rules can be joined into one."""
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
    kept = line.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return line[: len(kept) + 1] if backslashes % 2 else kept


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
    """The regex for a pattern without its flags; `_NEVER` where git lets it match nothing."""
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
    deep = False
    last = len(components) - 1
    for position, component in enumerate(components):
        if len(component) < 2 or set(component) != {_STAR}:
            pending.append(_component(component, groups) + ("" if position == last else "/"))
            continue
        run = "".join(pending)
        if deep and run:
            # The next "**" takes whatever is left, so the nearest match is as good as any:
            # never come back to it.
            parts.append(_nearest(f"(?:[^/]+/)*?{run}", groups))
        else:
            parts.append(run)
        pending = []
        deep = True
        if position == last:
            return "".join(parts) + "(?s:.+)"
    if deep:
        parts.append("(?:[^/]+/)*")
    return "".join(parts + pending)


def _nearest(regex: str, groups: Iterator[int]) -> str:
    """The first match of ``regex``, for good: an atomic group."""
    if sys.version_info >= (3, 11):
        return f"(?>{regex})"
    group = f"g{next(groups)}"
    return f"(?=(?P<{group}>{regex}))(?P={group})"


def _component(tokens: list[str], groups: Iterator[int]) -> str:
    """The regex for what stands between two slashes."""
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
            # As above: behind a star the nearest match of a chunk is as good as any.
            regex += _nearest(f"[^/]*?{chunk}", groups)
    return f"{regex}[^/]*{chunks[-1]}"


def _tokens(pattern: str) -> list[str] | None:
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
            found = _bracket(pattern, position)
            if found is None:
                return None
            token, position = found
            tokens.append(token)
        else:
            tokens.append(re.escape(character))
    return tokens


def _bracket(pattern: str, position: int) -> tuple[str, int] | None:
    """The regex for ``[…]`` whose inside begins here, and where it ends; None: it never does."""
    negated = pattern[position : position + 1] in ("!", "^")
    if negated:
        position += 1
    items: list[str] = []
    previous: str | None = None
    first = True
    while first or pattern[position : position + 1] != "]":
        first = False
        if position >= len(pattern):
            return None
        character = pattern[position]
        if character == "[" and pattern[position + 1 : position + 2] == ":":
            end = pattern.find("]", position + 2)
            if end < 0:
                return None
            if end > position + 2 and pattern[end - 1] == ":":
                name = pattern[position + 2 : end - 1]
                if name not in _POSIX_CLASSES:
                    return None
                items.append(_POSIX_CLASSES[name])
                previous = None
                position = end + 1
                continue
        following = pattern[position + 1 : position + 2]
        if character == "-" and previous is not None and following not in ("", "]"):
            position += 1
            if following == "\\":
                position += 1
                following = pattern[position : position + 1]
                if not following:
                    return None
            if previous <= following:
                items.append(f"{re.escape(previous)}-{re.escape(following)}")
            previous = None
        else:
            if character == "\\":
                position += 1
                character = pattern[position : position + 1]
                if not character:
                    return None
            items.append(re.escape(character))
            previous = character
        position += 1
    inside = "".join(items)
    if negated:
        return f"[^/{inside}]", position + 1
    return (f"(?!/)[{inside}]" if inside else _NEVER), position + 1
