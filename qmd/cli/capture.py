"""``qmd add`` keeps thoughts, ``qmd save`` pages of the web."""

# `os` is used instead of Path, which raises for what is no path:
# ruff: noqa: PTH110, PTH111, PTH112, PTH120

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from qmd.cli.session import session
from qmd.cli.terminal import note, one_line, write, write_json
from qmd.errors import InputError, QmdError, file_access
from qmd.files.captures import MAX_FILE
from qmd.kb import KnowledgeBase
from qmd.operations import Operation, capture
from qmd.operations.definition import Replied
from qmd.parse.formats import has_suffix_of_files
from qmd.system.web import addresses_in
from qmd.values.wire import to_wire
from qmd.values.writing import Attachment, SavedPage

#: The most addresses of one list.
MAX_PAGES = 10_000
#: The most words of a thought that may each be the name of a file.
MAX_NAMED = 100
#: Bytes that are read from a pipe.
MAX_PIPE = 50_000_000


def add(
    operation: Operation, arguments: Mapping[str, Any], *, files: tuple[str, ...], as_json: bool
) -> None:
    """Keep a thought with its files."""
    text = arguments["text"]
    if text in ("", "-") and not (files and sys.stdin.isatty()):
        text = _piped("Type a thought, or pipe it: qmd add 'a thought #idea'")
    else:
        _require_thought(text)
    attachments = [_attachment(Path(each).expanduser()) for each in files]
    with session().open(write=True) as kb:
        kept = kb.capture(text, attachments=attachments, at=arguments.get("at"))
    if as_json:
        write_json(to_wire(kept))
    else:
        write(f"{capture.captured(Replied(kept, arguments))}\n")


def _require_thought(text: str) -> None:
    """Raises InputError: It is the path of a file or a folder, or several, and no thought."""
    paths = _paths(text)
    if not paths:
        return
    folder = next((path for path in paths if os.path.isdir(os.path.expanduser(path))), None)
    missing = next((path for path in paths if not os.path.exists(os.path.expanduser(path))), None)
    if folder is not None:
        problem = f"{folder} is a folder, and no thought."
        way = f"To make a folder searchable: qmd up {shlex.quote(folder)}"
    else:
        files = "is a file" if len(paths) == 1 else "are files"
        problem = f"There is no file {missing}." if missing else f"{text} {files}, and no thought."
        options = " ".join(f"--file {shlex.quote(path)}" for path in paths)
        way = f"To keep {'the file' if len(paths) == 1 else 'the files'}: qmd add {options}"
    names = " ".join(map(shlex.quote, paths))
    words = "the name itself" if len(paths) == 1 else "the names themselves"
    raise InputError(problem, hint=f"{way}; to keep {words} as a thought: echo {names} | qmd add")


def _paths(text: str) -> list[str]:
    """The paths that a text is rather than a thought; none for a thought."""
    words = text.split()
    if "\n" in text or len(words) > MAX_NAMED:
        return []
    if os.path.exists(os.path.expanduser(text)):
        return [text]
    return words if all(map(_is_path, words)) else []


def _is_path(word: str) -> bool:
    """
    Whether a word is a path: that of a file that is there, or with the signs of one.

    A slash alone is no sign: Chinese thoughts have no blanks, and may have one.
    """
    if "://" in word:
        return False
    path = os.path.expanduser(word)
    is_below = "/" in word and os.path.isdir(os.path.dirname(path))
    has_sign = word.startswith(("/", "./", "../", "~/")) or has_suffix_of_files(word)
    return is_below or has_sign or os.path.exists(path)


def _attachment(path: Path) -> Attachment:
    """Raises FileAccessError."""
    with file_access(str(path), reading=True), path.open("rb") as file:
        return Attachment(path.name, file.read(MAX_FILE + 1))


def _piped(usage: str) -> str:
    if sys.stdin.isatty():
        raise click.UsageError(usage)
    data: bytes = sys.stdin.buffer.read(MAX_PIPE)
    return data.decode(errors="replace")


def save(operation: Operation, arguments: Mapping[str, Any], *, again: bool, as_json: bool) -> None:
    """Save the pages that were named, or those that a pipe lists."""
    named = [each for each in arguments["url"].split("\n") if each]
    pages = named or _from_pipe()
    if len(pages) > MAX_PAGES:
        raise click.UsageError(f"Save at most {MAX_PAGES:,} pages at once.")
    others = {name: value for name, value in arguments.items() if name != "url"}
    with session().open(write=True) as kb:
        if len(pages) == 1 and named:
            saved = kb.save_page(_page(pages[0]), **others)
            if as_json:
                write_json(to_wire(saved))
            else:
                write(f"{capture.saved(Replied(saved, arguments))}\n")
            return
        failed = _save_all(kb, pages, others, again=again, as_json=as_json)
    if failed:
        click.get_current_context().exit(1)


def _save_all(
    kb: KnowledgeBase,
    pages: Sequence[str],
    others: Mapping[str, Any],
    *,
    again: bool,
    as_json: bool,
) -> int:
    """Save one page after the other, and tell each at once; returns how many failed."""
    failed = there = 0
    for each in pages:
        try:
            page = _page(each)
            if isinstance(page, str) and not again and kb.saved_note(page) is not None:
                there += 1
                continue
            saved: SavedPage = kb.save_page(page, **others)
        except QmdError as error:
            failed += 1
            reason = error.with_hint
            note(reason if each in reason else f"{one_line(each)}: {reason}")
            continue
        if as_json:
            write_json(to_wire(saved))
        else:
            write(f"{capture.saved(Replied(saved, others))}\n")
    if there:
        note(f"{there:,} of {len(pages):,} are saved already; --again updates them.")
    return failed


def _page(named: str) -> str | Path:
    """The address, or the file with this name."""
    path = Path(named).expanduser()
    is_file = "://" not in named and (
        path.is_file() or path.suffix.lower() in (".html", ".htm", ".mhtml", ".mht")
    )
    return path if is_file else named


def _from_pipe() -> list[str]:
    text = _piped("Name a page, or pipe addresses: qmd save < links.txt")
    addresses = list(dict.fromkeys(addresses_in(text)))
    if not addresses:
        raise click.UsageError("No line of what was piped has an address: https://… or http://…")
    return addresses
