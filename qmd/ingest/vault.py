"""
Reads the settings of an Obsidian vault, and decides which files they exclude.

A vault may come from a stranger, so its settings have limits: of a regular expression qmd applies
only what cannot take long, and says which ones it does not apply.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from qmd.records import dataclass
from qmd.system.beneath import READ, open_beneath
from qmd.system.settings_file import read_opened

VAULT_FOLDER = ".obsidian"
MAX_BYTES = 1024 * 1024  # of a file of settings
MAX_EXCLUDED = 200
_MAX_PATTERN = 200  # characters
_MAX_EXPRESSIONS = 20
#: "*", "+" and "?" of a regular expression, and one more if it may begin anywhere: the time grows
#: with this power of the path's length.
_MAX_REPEATS = 2
_MAX_PATH = 300  # characters of a path that expressions are applied to
# No groups, no counts, nothing that Python reads in another way than Obsidian.
_SIMPLE_REGEX = re.compile(r"(?:[^\\()\[\]{}*+?|]|\\[.\-/_ $^()\[\]{}*+?|]|\[[\w .\-]+\]|[*+?|])+")
_REPEAT = re.compile(r"(?<!\\)[*+?]")
#: Obsidian's "New link format": the shortest unique path, or relative to the note, or to the vault.
LinkFormat = Literal["shortest", "relative", "absolute"]


def vault_settings(root: Path) -> VaultSettings | None:
    """
    The settings of the vault whose top folder this is; None if it is no Obsidian vault.

    A missing setting has Obsidian's default. A file that is no JSON, or too large, changes nothing,
    and `VaultSettings.problem` says so.
    """
    try:
        os.close(open_beneath(root, VAULT_FOLDER, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)))
    except (OSError, ValueError):
        return None
    app, app_problem = read_settings(root, f"{VAULT_FOLDER}/app.json")
    templates, templates_problem = read_settings(root, f"{VAULT_FOLDER}/templates.json")
    formats: dict[object, LinkFormat] = {each: each for each in get_args(LinkFormat)}
    return VaultSettings(
        excluded=_texts(app.get("userIgnoreFilters")),
        attachment_folder=_text(app.get("attachmentFolderPath")) or "/",
        use_markdown_links=app.get("useMarkdownLinks") is True,
        link_format=formats.get(_text(app.get("newLinkFormat")), "shortest"),
        template_folder=_text(templates.get("folder")).strip("/"),
        strict_line_breaks=app.get("strictLineBreaks") is True,
        problem=app_problem or templates_problem,
    )


def read_settings(root: Path, path: str) -> tuple[dict[str, Any], str]:
    """The mapping in a file of settings, and a sentence about a problem."""
    not_applied = "Obsidian's settings in it were not applied"
    try:
        data = read_opened(open_beneath(root, path, READ), MAX_BYTES, path)
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in (errno.EISDIR, errno.EINVAL):
            return {}, f"{path} is no regular file; {not_applied}."
        return {}, f"{path} could not be read ({error}); {not_applied}."
    if len(data) > MAX_BYTES:
        return {}, f"{path} has more than {MAX_BYTES:,} bytes; {not_applied}."
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return {}, f"{path} is no valid JSON ({error}); {not_applied}."
    if not isinstance(value, dict):
        return {}, f"{path} holds no settings by name; {not_applied}."
    return value, ""


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else []
    return tuple(text for each in texts if (text := _text(each)))


@dataclass(frozen=True, slots=True)
class VaultRule:
    """
    A line of Obsidian's "Excluded files" that excludes a file.

    Attributes:
        vault: The vault's path relative to the collection's root; "" for the root itself.
    """

    pattern: str
    vault: str
    reason: str = "excluded in Obsidian"


class ExcludedFiles:
    """
    The files that a vault excludes from its search.

    As in Obsidian, a line is the beginning of a path in any letter case, or a regular expression
    between slashes that matches anywhere in the path.

    Attributes:
        problem: A sentence about lines that are not applied; "" if all are.
    """

    def __init__(self, lines: Sequence[str], vault: str) -> None:
        self._begins: list[tuple[str, VaultRule]] = []
        self._regexes: list[tuple[re.Pattern[str], VaultRule]] = []
        left_out = list(lines[MAX_EXCLUDED:])
        for line in lines[:MAX_EXCLUDED]:
            rule = VaultRule(line, vault)
            if len(line) < 3 or not line.startswith("/") or not line.endswith("/"):
                self._begins.append((line.lstrip("/").casefold(), rule))
                continue
            regex = _compile(line[1:-1])
            if regex is None or len(self._regexes) == _MAX_EXPRESSIONS:
                left_out.append(line)
            else:
                self._regexes.append((regex, rule))
        self.problem = (
            f"Of Obsidian's excluded files qmd does not apply {left_out[0][:100]!r}"
            f"{f' and {len(left_out) - 1:,} more' if len(left_out) > 1 else ''}: it follows at most"
            f" {MAX_EXCLUDED:,} lines, and of regular expressions {_MAX_EXPRESSIONS} simple ones."
            " Use .qmdignore instead."
            if left_out
            else ""
        )

    def match(self, path: str) -> VaultRule | None:
        """The line that excludes a file, by its path in the vault; None if none does."""
        folded = path.casefold()
        for begin, rule in self._begins:
            if folded.startswith(begin):
                return rule
        if len(path) <= _MAX_PATH:
            for regex, rule in self._regexes:
                if regex.search(path):
                    return rule
        return None


@lru_cache(maxsize=8)
def excluded_files(lines: tuple[str, ...], vault: str) -> ExcludedFiles:
    """Cached, because each change below a folder needs the rules above it again."""
    return ExcludedFiles(lines, vault)


def _compile(source: str) -> re.Pattern[str] | None:
    """The expression, if it is simple enough to be quick whatever the path is."""
    if len(source) > _MAX_PATTERN or not _SIMPLE_REGEX.fullmatch(source):
        return None
    # A ".*" at an end changes nothing, because the expression may match anywhere.
    source = source.removeprefix("^.*").removeprefix(".*").removesuffix(".*$").removesuffix(".*")
    repeats = len(_REPEAT.findall(source)) + (not source.startswith("^") or "|" in source)
    if repeats > _MAX_REPEATS:
        return None
    try:
        return re.compile(source, re.IGNORECASE)
    except re.error:
        return None


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """
    What the folder ``.obsidian`` of a vault says. The defaults are Obsidian's.

    Attributes:
        excluded: "Excluded files": beginnings of paths, or ``/regular expressions/``.
        attachment_folder: Where Obsidian puts new attachments: ``/`` is the vault's root, ``./`` or
            ``./media`` is relative to the note, anything else is a folder of the vault.
        use_markdown_links: New links are ``[text](path)`` instead of ``[[path]]``.
        link_format: How the paths of new links are written.
        template_folder: The folder of the core plugin "Templates"; "" without one.
        strict_line_breaks: Whether a single line end inside a paragraph is shown as a space, as
            in Markdown, and not as a line end.
        problem: A sentence, if a file of settings could not be read; "" without one.
    """

    excluded: tuple[str, ...] = ()
    attachment_folder: str = "/"
    use_markdown_links: bool = False
    link_format: LinkFormat = "shortest"
    template_folder: str = ""
    strict_line_breaks: bool = False
    problem: str = ""
