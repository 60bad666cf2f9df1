"""
Files that steer other programs, which a language model never writes.

Whoever makes the model write one of them, as a note may try, gives orders to the next program
that reads it. Names are compared as a disk may compare them: ignoring case, composition and
invisible characters, and dots and blanks at the end.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

_INSTRUCTIONS = "it holds instructions for programs that write code or act for the person"

#: Files that assistants read without being told to, in any folder, by their documentation.
#: What only lies in hidden directories (.github, .claude, .cursor) needs no entry.
_NAMES = frozenset(
    {
        "claude.md",  # Claude Code; also below it, the next one
        "claude.local.md",
        "agents.md",  # Codex, Cursor, Copilot, Gemini, Zed, Amp, opencode and others
        "agents.override.md",  # Codex
        "agents.local.md",  # forks of OpenCode
        "agent.md",  # Amp, before it took AGENTS.md
        "codex.md",  # Codex, likewise
        "gemini.md",  # Gemini CLI
        "qwen.md",  # Qwen Code
        "opencode.md",  # OpenCode, before it took AGENTS.md
        "opencode.local.md",
        "crush.md",  # Crush
        "crush.local.md",
        "warp.md",  # Warp
        "replit.md",  # Replit Agent
        "copilot-instructions.md",  # GitHub Copilot
        "skill.md",  # a skill of Claude, Codex and others, with the right to run programs
    }
)
#: Prompts, instructions and agents of VS Code, whose folders a person may choose.
_SUFFIXES = (".instructions.md", ".prompt.md", ".chatmode.md", ".agent.md")


#: Variation selectors and the joiner of graphemes, which are no format characters.
_UNSEEN = frozenset(map(chr, (0x34F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))


def steering_reason(names: Sequence[str]) -> str | None:
    """
    Why a file steers a program; None if it does not.

    Args:
        names: Its path from a write root on, the file's own name last.
    """
    for name in names:
        if _as_disk_reads(name).startswith("."):
            where = (
                "it is hidden" if name == names[-1] else f"it lies below {name}, which is hidden"
            )
            return f"{where}, and programs keep their settings in hidden files and directories"
    plain = unicodedata.normalize("NFKC", _as_disk_reads(names[-1])).casefold() if names else ""
    if plain in _NAMES or plain.endswith(_SUFFIXES):
        return _INSTRUCTIONS
    return None


def link_to(target: Path, root: Path) -> Path | None:
    """
    A link with a name that steers programs, such as CLAUDE.md -> docs/guide.md, that leads to
    the file or to a directory above it and lies in a directory from ``root`` down to ``target``.

    Args:
        target: Below ``root``; both resolved. It may not exist yet.
    """
    for directory in target.parents:
        for link in _links(directory):
            if steering_reason([link.name]) is not None:
                leads_to = Path(os.path.realpath(link))
                if target == leads_to or leads_to in target.parents:
                    return link
        if directory == root:
            break
    return None


def _links(directory: Path) -> Iterator[Path]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield Path(entry.path)
    except OSError:  # not there yet, or not readable: nothing is written there either
        return


def _as_disk_reads(name: str) -> str:
    """A name as some disks read it: no invisible characters, no dots or blanks at the end."""
    visible = "".join(
        each for each in name if unicodedata.category(each) != "Cf" and each not in _UNSEEN
    )
    return unicodedata.normalize("NFC", visible).rstrip(" .") or visible
