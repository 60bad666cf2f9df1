"""What a page tells a person about the form before it: that it was carried out, with an undo."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

MAX_BROWSERS = 200
"""The notices of so many browsers wait for their next page; the oldest are dropped."""

MAX_NOTICES = 5  # of one browser


@dataclass(frozen=True, slots=True)
class FormNotice:
    """
    A sentence above the next page.

    Attributes:
        text: In the language of the person.
        change: The number of the change that an undo button takes back; None for no button.
        is_undo: Whether ``change`` was an undo itself, so that the button does again what it undid.
    """

    text: str
    change: int | None = None
    kind: Literal["ok", "warn", "bad"] = "ok"
    is_undo: bool = False


class Notices:
    """The notices that wait, by the cookie of the browser. Use it on the event loop only."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, list[FormNotice]] = OrderedDict()

    def add(self, cookie: str, notice: FormNotice) -> None:
        waiting = [*self._waiting.pop(cookie, []), notice]
        self._waiting[cookie] = waiting[-MAX_NOTICES:]
        while len(self._waiting) > MAX_BROWSERS:
            self._waiting.popitem(last=False)

    def take(self, cookie: str) -> list[FormNotice]:
        """The notices of a browser, which are shown once."""
        return self._waiting.pop(cookie, [])
