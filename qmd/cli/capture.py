"""``qmd add`` keeps thoughts, ``qmd save`` pages of the web."""

from __future__ import annotations

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
#: Bytes that are read from a pipe.
MAX_PIPE = 50_000_000


def add(
    operation: Operation, arguments: Mapping[str, Any], *, files: tuple[str, ...], as_json: bool
) -> None:
    """Keep a thought with its files."""
    text = arguments["text"]
    if text in ("", "-") and not (files and sys.stdin.isatty()):
        text = _piped("Type a thought, or pipe it: qmd add 'a thought #idea'")
    elif _is_path(text):
        is_there = Path(text).expanduser().is_file()
        raise InputError(
            f"{text} is a file, and no thought." if is_there else f"There is no file {text}.",
            hint=f"A file is kept with: qmd add --file {shlex.quote(text)}. To keep the name itself"
            f" as a thought: echo {shlex.quote(text)} | qmd add",
        )
    attachments = [_attachment(Path(each).expanduser()) for each in files]
    with session().open(write=True) as kb:
        kept = kb.capture(text, attachments=attachments, at=arguments.get("at"))
    if as_json:
        write_json(to_wire(kept))
    else:
        write(f"{capture.captured(Replied(kept, arguments))}\n")


def _is_path(text: str) -> bool:
    """
    Whether a text is the path of a file rather than a thought.

    A slash alone is no sign: Chinese thoughts have no blanks, and may have one.
    """
    if "://" in text or len(text.split()) != 1:
        return False
    is_below = "/" in text and Path(text).expanduser().parent.is_dir()
    return is_below or text.startswith(("/", "./", "../", "~/")) or has_suffix_of_files(text)


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
