"""Decide whether the rules of the scan include one path, and name the rule that decides."""

# Paths are strings here, as in the scan:
# ruff: noqa: PTH117

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.ingest.gitignore import IgnoreRule
from qmd.ingest.rules import BACKUPS, HIDDEN, MASK, Exclusion, Rules
from qmd.ingest.scan import End, ScannedFile, ScanSkip, descend, printable, unreadable_root
from qmd.ingest.vault import VAULT_FOLDER, VaultRule
from qmd.parse.formats import PHOTO, format_of

#: In a remedy: the collection's name, which is not known here.
NAME = "NAME"
#: Suffixes of documents that people keep beside their notes, and whose text qmd cannot read.
_UNREADABLE = frozenset(("pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "epub"))


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """
    The decision of the scan about a path.

    Attributes:
        reason: "included", "directory" (the scan goes into it), "missing", or the word under which
            the scan counts or reports the path.
        subject: The path that the rule matched: the path itself, or a directory above it that is
            excluded with all its content.
        file, line, pattern: The line of the ignore file that decided, if one did.
    """

    included: bool
    reason: str
    subject: str
    detail: str
    remedy: str | None = None
    file: str | None = None
    line: int | None = None
    pattern: str | None = None


def judge_path(root: Path, rules: Rules, path: str) -> RuleVerdict:
    """
    Decide as a scan of ``root`` by ``rules`` does. ``path`` is relative to the root.

    Raises:
        InputError: The path is empty, absolute or leads out of the root by "..".
        NotFoundError: The root does not exist.
    """
    components = _components(path)
    try:
        os.scandir(root).close()
    except OSError as error:
        raise unreadable_root(root, error) from error
    relative = "/".join(components)
    end = descend(rules, relative, {}, os.path.realpath(root))
    match end.decision:
        case None:
            return RuleVerdict(True, "directory", end.path, "The scan goes into this folder.")
        case ScanSkip() as skip:
            return _skipped(skip)
        case ScannedFile() if end.path == relative:
            detail = "No rule excludes it, and the mask matches."
            return RuleVerdict(True, "included", end.path, detail)
        case ScannedFile():  # a file is where a folder would have to be
            return _missing(relative, None)
        case OSError():
            is_last = end.path == relative
            exclusion = (
                rules.exclude_file(end.folder, relative, components[-1]) if is_last else None
            )
            return _missing(end.path, exclusion)
        case exclusion:
            return _excluded(exclusion, end, rules)


def exclusion_of_new_file(rules: Rules, path: str) -> RuleVerdict | None:
    """
    The decision that keeps a file at ``path`` out of the index, or None if none does.

    Neither the file nor the folders above it need to be there.

    Raises:
        InputError: The path is empty, absolute or leads out of the root by "..".
    """
    relative = "/".join(_components(path))
    end = descend(rules, relative, {}, "", is_new=True)
    match end.decision:
        case ScanSkip() as skip if end.path != relative:
            return _skipped(skip)
        case ScannedFile() | ScanSkip() | OSError() | None:  # nothing is said of its format
            return None
        case exclusion:
            return _excluded(exclusion, end, rules)


def _components(path: str) -> list[str]:
    """Split a relative path into names. Raises InputError."""
    names = [name for name in path.replace(os.sep, "/").split("/") if name not in ("", ".")]
    if not names or ".." in names or os.path.isabs(path) or "\0" in path:
        raise InputError(
            f"Not a path below the folder: {path!r}", hint="Give a path relative to the folder."
        )
    return names


def _missing(path: str, exclusion: Exclusion | None) -> RuleVerdict:
    exclusion_note = f" The rules would exclude it, too: {exclusion.reason}." if exclusion else ""
    return RuleVerdict(
        False, "missing", printable(path), f"Nothing of this name is on the disk.{exclusion_note}"
    )


#: Sentences that tell the user how to mend a skipped file, by the reason.
SKIP_REMEDIES = {
    "too large": "Split it into smaller files.",
    "unreadable": "Give yourself permission to read it, then run 'qmd index'.",
    "bad file name": "Rename it so that its name is valid UTF-8.",
    "too deep": "Move it up, or add a folder above it as a collection of its own.",
    "symlink out of the collection": "Add the folder it leads to as a collection of its own.",
    "dangling symlink": "Correct or remove the link.",
    "symlink loop": "Correct or remove the link.",
    "over budget": "Split or mend it; it is read again when it has changed.",
    "parser failed": "Mend it, or report it as an error of qmd with the file; it is read again"
    " when it has changed, or by 'qmd index --verify'.",
    "HTML file": "Save the page as Markdown, or leave HTML out of the collection's mask.",
    "no answer": "Is its disk reachable? The next run tries it again.",
}


def _skipped(skip: ScanSkip) -> RuleVerdict:
    detail = f"{skip.reason[0].upper()}{skip.reason[1:]}: {skip.detail}."
    return RuleVerdict(False, skip.reason, skip.path, detail, remedy=SKIP_REMEDIES.get(skip.reason))


def _excluded(exclusion: Exclusion, end: End, rules: Rules) -> RuleVerdict:
    path = end.path
    is_directory = end.status is not None and stat.S_ISDIR(end.status.st_mode)
    kind = "folder" if is_directory else "file"
    shown = printable(path)
    if isinstance(exclusion, IgnoreRule):
        return _excluded_by_line(exclusion, path, is_directory)
    if isinstance(exclusion, VaultRule):
        return _excluded_by_vault(exclusion, path)
    if exclusion is HIDDEN:
        detail = engine_text(
            "The {kind} '{name}' is hidden: its name begins with a dot.", kind=kind, name=shown
        )
        remedy = "Rename it without the dot, or add its folder as a collection of its own."
    elif exclusion is MASK:
        detail = engine_text("The collection's mask '{mask}' does not match it.", mask=rules.mask)
        remedy = _wider_mask(path, rules.mask)
    elif exclusion is BACKUPS:
        detail = f"The folder '{shown}' holds Logseq's copies of earlier pages."
        remedy = "Add it as a collection of its own if you want to search them."
    else:
        detail = engine_text(
            "Folders named '{name}' hold other people's files.", name=exclusion.reason
        )
        remedy = "Move your documents out of it, or add it as a collection of its own."
    return RuleVerdict(False, exclusion.reason, shown, detail, remedy=remedy)


def _wider_mask(path: str, mask: str) -> str:
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix in _UNREADABLE:
        return f"qmd reads text files and what photos say about themselves, but no {suffix} files."
    if not format_of(path).is_read:
        return f"{format_of(path).remedy}: qmd reads no {suffix} files."
    if f".{suffix}" in PHOTO.suffixes:
        suffix = ",".join(each.removeprefix(".") for each in PHOTO.suffixes)
    elif not suffix.isalnum() or suffix == "md":
        suffix = "txt"
    wider = f"**/*.{{md,{suffix}}}" if mask == "**/*.md" else f"{mask},**/*.{suffix}"
    return engine_text(
        "Give it a wider mask: qmd collection set {name} --mask '{mask}'.", name=NAME, mask=wider
    )


def _excluded_by_vault(rule: VaultRule, path: str) -> RuleVerdict:
    shown = printable(path)
    return RuleVerdict(
        included=False,
        reason=rule.reason,
        subject=shown,
        detail=f"Obsidian excludes it from its search: '{printable(rule.pattern)}' in the setting"
        f" Excluded files matches '{shown}'.",
        remedy=f"Remove it from Excluded files in Obsidian's settings, or add the line"
        f" {printable(_including_line(path, is_directory=False))} to .qmdignore in the"
        " collection's folder.",
        file=f"{rule.vault}/{VAULT_FOLDER}/app.json".lstrip("/"),
        pattern=printable(rule.pattern),
    )


def _including_line(path: str, *, is_directory: bool) -> str:
    """The line of an ignore file that includes exactly this path."""
    return "!/" + re.sub(r"([\\*?\[ ])", r"\\\1", path) + ("/" if is_directory else "")


def _excluded_by_line(rule: IgnoreRule, path: str, is_directory: bool) -> RuleVerdict:
    shown = printable(path)
    including_line = _including_line(path, is_directory=is_directory)
    if rule.reason == "ignore option":
        detail = engine_text(
            "The collection's ignore pattern '{pattern}' matches '{name}'.",
            pattern=rule.pattern,
            name=shown,
        )
        remedy = engine_text(
            "Give it other patterns: qmd collection set {name} --ignore PATTERN.", name=NAME
        )
    else:
        detail = f"Line {rule.line} of {printable(rule.file)}, '{rule.pattern}', matches '{shown}'."
        remedy = (
            f"Remove that line, or add the line {printable(including_line)} to .qmdignore "
            "in the collection's folder."
        )
    return RuleVerdict(
        included=False,
        reason=rule.reason,
        subject=shown,
        detail=detail,
        remedy=remedy,
        file=printable(rule.file) or None,
        line=rule.line,
        pattern=printable(rule.pattern),
    )
