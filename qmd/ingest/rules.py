"""
Decide which files and directories of a collection are included, also by a vault's settings.

The rules apply in this order. The first one that excludes a path is reported as the reason:

1. hidden files and directories; ``node_modules``, ``__pycache__`` (not build, dist, vendor);
   ``logseq/bak``;
2. for files, the mask;
3. the collection's ignore options, then ``.qmdignore``, then ``.gitignore``; of the files of
   one name, that of the deepest directory first. Within a file the last match decides. A path
   that matches a ``!`` pattern is included, whatever the later sources of this list say. Nothing
   below an excluded directory can be included;
4. in an Obsidian vault, the files that Obsidian excludes from its search by its settings.

A vault may come from a stranger, so its settings have limits: of a regular expression qmd applies
only what cannot take long, and says which ones it does not apply.

In a vault, canvases are included wherever the mask includes notes. The mask comes before the ignore
files because it is quick, and because the counts of ignored files are then about documents and not
about the pictures beside them.
"""

from __future__ import annotations

import errno
import json
import os
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from qmd.errors import InputError
from qmd.ingest import patterns
from qmd.parse.formats import CANVAS, format_of
from qmd.records import NamedTuple, dataclass
from qmd.system.beneath import READ, open_beneath
from qmd.system.settings_file import read_opened, read_regular

if TYPE_CHECKING:
    from qmd.values import Collection


VAULT_FOLDER = ".obsidian"
MAX_SETTINGS_BYTES = 1024 * 1024  # of a file of settings
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
        data = read_opened(open_beneath(root, path, READ), MAX_SETTINGS_BYTES, path)
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in (errno.EISDIR, errno.EINVAL):
            return {}, f"{path} is no regular file; {not_applied}."
        reason = error.strerror if isinstance(error, OSError) else error
        return {}, f"{path} could not be read ({reason or error}); {not_applied}."
    if len(data) > MAX_SETTINGS_BYTES:
        return {}, f"{path} has more than {MAX_SETTINGS_BYTES:,} bytes; {not_applied}."
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


# Paths are strings here, as in the scan:
# ruff: noqa: PTH118, PTH119, PTH120


IGNORE_FILES = (".gitignore", ".qmdignore")
#: The names in a directory that may change the rules below it.
RULE_NAMES = (*IGNORE_FILES, VAULT_FOLDER)
#: The default for the largest file to read, in bytes.
MAX_BYTES = 20 * 1024 * 1024
MAX_IGNORE_FILE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class BuiltinRule:
    """A rule that no ignore file or option contains."""

    reason: str


HIDDEN = BuiltinRule("hidden")
#: Archives of posts and saved pages keep their pictures in such folders: no documents, but notes
#: link to what is in them.
PICTURES_FOLDER = ".assets"
PICTURES = BuiltinRule("hidden")
MASK = BuiltinRule("mask")
#: Logseq copies each page that it changes into "logseq/bak".
BACKUPS = BuiltinRule("Logseq backups")
DEPENDENCIES = {name: BuiltinRule(name) for name in ("node_modules", "__pycache__")}

Exclusion = BuiltinRule | patterns.IgnoreRule | VaultRule


class RuledVault(NamedTuple):
    """An Obsidian vault: its path relative to the root ("" for the root), and what it excludes."""

    path: str
    excluded: ExcludedFiles

    def exclude(self, path: str) -> VaultRule | None:
        """The line that excludes a file; ``path`` is relative to the root of the collection."""
        return self.excluded.match(path[len(self.path) :].lstrip("/"))


@dataclass(frozen=True, slots=True)
class RuledFolder:
    """
    A directory with the ignore files that apply in it.

    Attributes:
        path: Relative to the root; "" for the root.
        ignores: The ``options``, ``qmdignores`` and ``gitignores`` in one sequence, the one with
            the highest precedence first.
        problems: The ignore files of this directory that were not applied, or only in part, as
            (path, sentence).
        vault: The Obsidian vault that the directory is or lies in, if the root contains it.
    """

    path: str
    options: tuple[patterns.IgnoreFile, ...]
    qmdignores: tuple[patterns.IgnoreFile, ...]
    gitignores: tuple[patterns.IgnoreFile, ...]
    ignores: tuple[patterns.IgnoreFile, ...]
    problems: tuple[tuple[str, str], ...]
    vault: RuledVault | None = None


class Rules:
    """
    Decides which files a collection includes. It keeps no state: every scan reads the ignore files.

    Args:
        root: The collection's directory.
        mask: Globs, separated by commas or in braces; see `qmd.ingest.patterns`.
        ignore: Patterns like lines of a .gitignore at the root, braces allowed.
        max_bytes: Larger files are reported as too large, unless their format has a limit of its
            own.
        enters_pictures: Whether `PICTURES` excludes nothing: for files that notes link to.

    Raises:
        InputError: The mask or an ignore pattern is not valid.
    """

    def __init__(
        self,
        root: Path,
        mask: str,
        ignore: Sequence[str] = (),
        max_bytes: int = MAX_BYTES,
        *,
        enters_pictures: bool = False,
    ) -> None:
        self._enters_pictures = enters_pictures
        self.root = root
        self.mask = mask
        self.max_bytes = max_bytes
        self.matches_mask = patterns.compile_mask(mask)
        self._options = _compile_options(ignore)

    @classmethod
    def of_collection(cls, collection: Collection) -> Rules:
        """Those of a collection. Raises InputError."""
        return cls(Path(collection.path), collection.pattern, collection.ignore)

    def most_bytes(self, path: str) -> int:
        """The size of the largest file of this name that is read."""
        return format_of(path).max_bytes or self.max_bytes

    def root_folder(self, names: Sequence[str] = RULE_NAMES) -> RuledFolder:
        """The root; look in it for ``names``, some of `RULE_NAMES`."""
        gitignores, problems = _gitignores_above(os.path.realpath(self.root))
        ignores = (*self._options, *gitignores)
        above = RuledFolder("", self._options, (), gitignores, ignores, problems)
        return self.subfolder(above, "", names)

    def subfolder(
        self, parent: RuledFolder, path: str, names: Sequence[str] = RULE_NAMES
    ) -> RuledFolder:
        """The directory ``path`` in ``parent``; look in it for ``names``, some of `RULE_NAMES`."""
        problems = [] if path else list(parent.problems)
        vault = parent.vault
        qmdignores, gitignores = parent.qmdignores, parent.gitignores
        for name in names:
            file = f"{path}/{name}" if path else name
            if name == VAULT_FOLDER:
                vault = self._vault_at(path, problems) or vault
                continue
            text, problem = _read_ignore_file(os.path.join(self.root, file))
            text, cut_notice = _limit_patterns(text, (*qmdignores, *gitignores))
            if problem is not None or cut_notice is not None:
                problems.append((file, problem or cut_notice or ""))
            if not text:
                continue
            if name == ".gitignore":
                gitignores = (_ignore_file(text, ".gitignore", file, path), *gitignores)
            else:
                qmdignores = (_ignore_file(text, ".qmdignore", file, path), *qmdignores)
        if qmdignores is parent.qmdignores and gitignores is parent.gitignores:
            ignores = parent.ignores
        else:
            ignores = (*parent.options, *qmdignores, *gitignores)
        return RuledFolder(
            path, parent.options, qmdignores, gitignores, ignores, tuple(problems), vault
        )

    def _vault_at(self, path: str, problems: list[tuple[str, str]]) -> RuledVault | None:
        """The vault whose top folder ``path`` is, if it is one; adds to ``problems``."""
        settings = vault_settings(self.root / path)
        if settings is None:
            return None
        excluded = excluded_files(settings.excluded, path)
        file = f"{path}/{VAULT_FOLDER}" if path else VAULT_FOLDER
        problems += [(file, text) for text in (settings.problem, excluded.problem) if text]
        return RuledVault(path, excluded)

    def exclude_directory(self, folder: RuledFolder, path: str, name: str) -> Exclusion | None:
        """The rule that excludes a directory in ``folder``, with all its content, or None."""
        if name == PICTURES_FOLDER:
            ignored = _ignored(folder.ignores, path, name, True)
            return ignored or (None if self._enters_pictures else PICTURES)
        if name[0] == ".":
            return HIDDEN
        if name in DEPENDENCIES:
            return DEPENDENCIES[name]
        if name == "bak" and path.endswith("logseq/bak"):
            return BACKUPS
        return _ignored(folder.ignores, path, name, True) if folder.ignores else None

    def exclude_file(self, folder: RuledFolder, path: str, name: str) -> Exclusion | None:
        """The rule that excludes a file in ``folder``, or None."""
        if name[0] == ".":
            return HIDDEN
        if not self.matches_mask(path, name) and (
            folder.vault is None or not self.matches_canvas(path, name)
        ):
            return MASK
        rule = _deciding_rule(folder.ignores, path, name, False) if folder.ignores else None
        if rule is not None:
            return None if rule.negated else rule
        return folder.vault.exclude(path) if folder.vault is not None else None

    def matches_canvas(self, path: str, name: str) -> bool:
        """Whether a file is a canvas where the mask would match a Markdown file."""
        suffix = CANVAS.suffixes[0]
        return name.lower().endswith(suffix) and self.matches_mask(
            path[: -len(suffix)] + ".md", name[: -len(suffix)] + ".md"
        )

    def exclude_directory_link(self, folder: RuledFolder, path: str, name: str) -> Exclusion | None:
        """
        The rule that excludes a link to a directory in ``folder``, or None.

        As in git, patterns for directories do not match such a link. No mask applies to it.
        """
        if name[0] == ".":
            return HIDDEN
        if name in DEPENDENCIES:
            return DEPENDENCIES[name]
        return _ignored(folder.ignores, path, name, False) if folder.ignores else None


def _ignored(
    ignores: Sequence[patterns.IgnoreFile], path: str, name: str, is_directory: bool
) -> patterns.IgnoreRule | None:
    rule = _deciding_rule(ignores, path, name, is_directory)
    return None if rule is None or rule.negated else rule


def _deciding_rule(
    ignores: Sequence[patterns.IgnoreFile], path: str, name: str, is_directory: bool
) -> patterns.IgnoreRule | None:
    """The rule that decides about a path; a negated one includes it."""
    if not path.isascii() and not unicodedata.is_normalized("NFC", path):
        # macOS may return decomposed names; people type composed ones into ignore files.
        path = unicodedata.normalize("NFC", path)
        name = path.rpartition("/")[2]
    for file in ignores:
        rule = file.match(path, name, is_directory)
        if rule is not None:
            return rule
    return None


def _compile_options(ignore: Sequence[str]) -> tuple[patterns.IgnoreFile, ...]:
    rules: list[patterns.IgnoreRule] = []
    groups = count()
    for option_number, option in enumerate(ignore, start=1):
        line = option.strip().removeprefix("./")
        if not line:
            raise InputError(
                "An ignore pattern is empty.",
                hint="Write it like a line of a .gitignore: 'drafts/'.",
            )
        if "\n" in line or "\0" in line:
            raise InputError(
                f"The ignore pattern {option!r} holds a line break or NUL.",
                hint="Give several patterns as several --ignore options.",
            )
        parsed = [
            rule
            for glob in (patterns.expand_braces(line) if "{" in line else [line])
            if (rule := patterns.parse_rule(glob, "ignore option", "", option_number, groups))
            is not None
        ]
        if not parsed:
            raise InputError(
                f"The ignore pattern '{option}' can match nothing.",
                hint="Write it like a line of a .gitignore: 'drafts/', '*.tmp.md', '/archive/**'.",
            )
        rules += parsed
    return (patterns.IgnoreFile(rules),) if rules else ()


def _read_ignore_file(path: str) -> tuple[str, str | None]:
    """Read an ignore file: its text ("" if there is none), and a sentence about a problem."""
    try:
        data = read_regular(path, MAX_IGNORE_FILE_BYTES, follow_link=False)  # as in git
    except (FileNotFoundError, NotADirectoryError):
        return "", None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "", "This ignore file is a symbolic link and was not applied."
        if error.errno in (errno.EISDIR, errno.EINVAL):
            return "", "This ignore file is no regular file and was not applied."
        return "", f"This ignore file was not applied: {error.strerror}."
    problem = None
    if len(data) > MAX_IGNORE_FILE_BYTES:
        data = data[: data.rfind(b"\n", 0, MAX_IGNORE_FILE_BYTES) + 1]
        problem = (
            f"Only the first {MAX_IGNORE_FILE_BYTES:,} bytes of this ignore file were applied."
        )
    return data.decode("utf-8", "surrogateescape"), problem


@lru_cache(maxsize=8)
def _ignore_file(
    text: str, reason: patterns.RuleSource, file: str, directory: str
) -> patterns.IgnoreFile:
    """Cached, because each change below a directory needs the files above it again."""
    return patterns.IgnoreFile(patterns.parse_ignore_lines(text, reason, file), directory=directory)


def _limit_patterns(text: str, above: Sequence[patterns.IgnoreFile]) -> tuple[str, str | None]:
    """Cut an ignore file at the limit for patterns; with a sentence if that shortens it."""
    part = patterns.fitting(text, above)
    if len(part) == len(text):
        return text, None
    lines = part.count("\n")
    return part, (
        f"Of this ignore file only the first {lines:,} lines were applied: all that hold in one"
        f" folder may have {patterns.MAX_PATTERNS:,} characters of patterns together,"
        f" {patterns.MAX_WILD_PATTERNS:,} of them in patterns with wildcards."
    )


def directories_above(root: str) -> list[str]:
    """The directories above one, up to the top of its git work tree; none outside of any."""
    above: list[str] = []
    directory = root
    while not os.path.lexists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return []
        above.append(parent)
        directory = parent
    return above


def _gitignores_above(
    root: str,
) -> tuple[tuple[patterns.IgnoreFile, ...], tuple[tuple[str, str], ...]]:
    """
    Read the .gitignore files above ``root``, up to the top of the git work tree that contains it.

    None of them applies if they ignore the root as a whole: a user who adds an ignored directory
    as a collection wants to read it.

    Returns:
        The ignore files, and problems as `RuledFolder.problems` has them.
    """
    directories = directories_above(root)
    problems: list[tuple[str, str]] = []
    files: list[tuple[str, patterns.IgnoreFile]] = []
    for levels, directory in enumerate(directories, start=1):
        text, _ = _read_ignore_file(os.path.join(directory, ".gitignore"))
        name = "../" * levels + ".gitignore"
        text, cut_notice = _limit_patterns(text, [file for _, file in files])
        if cut_notice is not None:
            problems.append((name, cut_notice))
        if text:
            rules = patterns.parse_ignore_lines(text, ".gitignore", name)
            files.append((directory, patterns.IgnoreFile(rules, above=_relative(root, directory))))
    if not files or _is_ignored_as_a_whole(root, directories, files):
        return (), ()
    return tuple(file for _, file in files), tuple(problems)


def _is_ignored_as_a_whole(
    root: str, directories: Sequence[str], files: Sequence[tuple[str, patterns.IgnoreFile]]
) -> bool:
    for ancestor in (*directories[-2::-1], root):
        for directory, file in files:
            if ancestor.startswith(os.path.join(directory, "")):
                below = _relative(ancestor, directory)
                rule = file.decide(below, os.path.basename(ancestor), True)
                if rule is not None:
                    if not rule.negated:
                        return True
                    break
    # "vault/*" does not match the folder itself, but everything in it, whatever its name.
    probe = "\x01"
    return not any(file.has_negation for _, file in files) and any(
        file.match(probe, probe, False) for _, file in files
    )


def _relative(path: str, start: str) -> str:
    return os.path.relpath(path, start).replace(os.sep, "/")
