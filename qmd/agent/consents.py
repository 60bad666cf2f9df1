"""Asks a person who is somewhere else before each write, and waits for the answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from qmd import values
from qmd.agent.events import EventLog
from qmd.engine_text import engine_text
from qmd.errors import NotFoundError, WriteDeclinedError
from qmd.files.edits.diff import diff_lines, single_lines, split_lines
from qmd.files.edits.text_file import shown_text
from qmd.system import clock
from qmd.system.cancellation import Cancellation
from qmd.values.text import one_line, visible

#: The longest wait for a person's consent, in seconds; then the write is declined.
CONSENT_S = 300.0


class Consents:
    """
    What a person is asked to agree to in one turn; a `qmd.values.proposed.Confirm`.

    Args:
        name: How a file is called in the event.
        timeout_s: How long each write waits.
    """

    def __init__(
        self,
        log: EventLog,
        stop: Cancellation,
        *,
        name: Callable[[Path], str],
        timeout_s: float = CONSENT_S,
    ) -> None:
        self._log = log
        self._stop = stop
        self._name = name
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._count = 0
        self._waiting: _Consent | None = None  # a turn writes one thing at a time

    def __call__(self, proposed: values.proposed.Proposed) -> bool:
        """
        Ask, and wait for the answer. No lock is held meanwhile.

        Raises:
            WriteDeclinedError: Nobody answered in time, or the turn was stopped.
        """
        lines = described(proposed)
        shown, left_out = shortened(lines)
        self._count += 1
        consent = _Consent(f"q{self._count}", lines)
        with self._lock:
            self._waiting = consent
        self._log.add(
            "question",
            question=consent.id,
            tool=proposed.tool,
            file=self._name(proposed.path),
            heading=heading(proposed),
            diff=shown,
            left_out=left_out,
            asked_at=clock.now(),
            timeout_s=self._timeout_s,
        )
        self._stop.add(consent.ended.set)
        if not self._stop.is_cancelled:
            consent.ended.wait(self._timeout_s)
        self._stop.remove(consent.ended.set)
        with self._lock:
            self._waiting = None
        agreed = consent.agreed
        outcome = "agreed" if agreed else "declined"
        if agreed is None:
            outcome = "stopped" if self._stop.is_cancelled else "timeout"
        self._log.add("answered", question=consent.id, agreed=agreed is True, outcome=outcome)
        if outcome == "stopped":
            raise WriteDeclinedError("Nothing was written: the person stopped this turn.")
        if agreed is None:
            raise WriteDeclinedError(
                f"Nothing was written: nobody answered within {self._timeout_s / 60:g} minutes.",
                hint="Do not try again now; tell the person what you wanted to write.",
            )
        return agreed

    def decide(self, consent_id: str, *, agreed: bool) -> None:
        """Agree to a write or decline it. Raises NotFoundError if it does not wait."""
        with self._lock:
            waiting = self._the(consent_id)
            if waiting.agreed is not None:
                raise not_waiting(consent_id)
            waiting.agreed = agreed
        waiting.ended.set()

    def lines(self, consent_id: str) -> list[str]:
        """The whole change that a consent is about. Raises NotFoundError if it does not wait."""
        with self._lock:
            return self._the(consent_id).lines

    def _the(self, consent_id: str) -> _Consent:
        if self._waiting is None or self._waiting.id != consent_id:
            raise not_waiting(consent_id)
        return self._waiting


@dataclass
class _Consent:
    """A write that waits; ``agreed`` is None until somebody answers."""

    id: str
    lines: list[str]
    agreed: bool | None = None
    ended: threading.Event = field(default_factory=threading.Event)


def not_waiting(consent_id: str) -> NotFoundError:
    """The error for a consent that nobody waits for."""
    return NotFoundError(
        engine_text("No question {question} waits for an answer.", question=consent_id),
        hint="It was answered before, or has waited too long.",
    )


# --- a proposed change in words -------------------------------------------------------
# Lines that a person can judge. They hold exactly what will be written; control characters and
# invisible characters are shown as escapes.


_LINES, _LINE_CHARS = 120, 2_000  # shown at first


def heading(proposed: values.proposed.Proposed) -> str:
    """One line, safe for a terminal, that names the tool, the change and the file."""
    action = "change the metadata of"
    if isinstance(proposed, values.proposed.ProposedText):
        size = f"{len(proposed.after):,} bytes"
        if proposed.before is None:
            action = f"make a new file of {size}:"
        else:
            action = f"change {len(proposed.before):,} bytes to {size} in"
    elif isinstance(proposed, values.proposed.ProposedDeletion):
        action = f"delete, with its {len(proposed.before):,} bytes,"
    elif isinstance(proposed, values.proposed.ProposedMove):
        action = "move"
    return f"{proposed.tool} would {action} {visible(one_line(str(proposed.path)))}"


def described(proposed: values.proposed.Proposed) -> list[str]:
    """The whole change, safe for a terminal: a unified diff, or the fields of a photo."""
    if isinstance(proposed, values.proposed.ProposedFields):
        return [
            one_line(visible(line))
            for field in proposed.after
            for line in (
                f"@ {field}",
                *(f"- {value}" for value in proposed.before.get(field, ())),
                *(f"+ {value}" for value in proposed.after[field]),
            )
        ]
    if isinstance(proposed, values.proposed.ProposedMove):
        return [visible(one_line(f"to {proposed.target}"))]
    if isinstance(proposed, values.proposed.ProposedDeletion):
        deleted = split_lines(_text(proposed.before))
        return [visible(line) for line in single_lines(f"-{line}" for line in deleted)]
    after = _text(proposed.after)
    if proposed.before is None:
        return [visible(line) for line in single_lines(f"+{line}" for line in split_lines(after))]
    before = _text(proposed.before)
    if before == after:
        return ["(It holds these words already.)"]
    return list(map(visible, diff_lines(before, after)))


def shortened(lines: list[str]) -> tuple[list[str], str]:
    """The beginning of a description, and a phrase that says how much is left out."""
    shown = [line[:_LINE_CHARS] for line in lines[:_LINES]]
    more_lines = len(lines) - len(shown)
    more_chars = sum(map(len, lines)) - sum(map(len, shown))
    if not more_lines and not more_chars:
        return shown, ""
    left_out = f"{more_chars:,} more characters"
    if more_lines:
        left_out = f"{more_lines:,} more lines ({more_chars:,} characters)"
    return [*shown, f"… {left_out}"], left_out


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return shown_text(data)
