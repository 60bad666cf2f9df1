"""Fences text of documents in a prompt, so that a model takes it as data, not as instructions."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

_REMOVED = "[mark removed]"


@dataclass(frozen=True, slots=True)
class Fence:
    """
    Two lines around a text, with a mark that the text cannot contain.

    The author of a document cannot know the mark: it is random, and new for each conversation.
    """

    mark: str

    @classmethod
    def new(cls) -> Fence:
        return cls(secrets.token_hex(16))

    @property
    def opening(self) -> str:
        return f"<data-{self.mark}>"

    @property
    def closing(self) -> str:
        return f"</data-{self.mark}>"

    def around(self, text: str) -> str:
        """
        The text between the two lines, unchanged.

        Only the mark is removed from it: a model could have written the mark into a note.
        """
        inside = re.sub(re.escape(self.mark), _REMOVED, text, flags=re.IGNORECASE)
        return f"{self.opening}\n{inside}\n{self.closing}"
