"""A fence around text of documents in what a language model is told: data, no instructions."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

_REMOVED = "[mark removed]"


@dataclass(frozen=True, slots=True)
class Fence:
    """
    Two lines around a text, which the text itself cannot hold.

    Whoever wrote a document could not know the mark in them: it is made by chance for one
    conversation.
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

        Only the mark itself is taken out of it: a model could have written it into a note.
        """
        inside = re.sub(re.escape(self.mark), _REMOVED, text, flags=re.IGNORECASE)
        return f"{self.opening}\n{inside}\n{self.closing}"
