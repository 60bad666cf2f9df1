"""Pictures: pages without a text layer, and photos; and what was read from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from qmd.records import NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Picture(NamedTuple):
    """
    A page of a document's file that is a picture.

    Attributes:
        page: From 1; a photo has one.
        source: A hash of the file's bytes.
        read_by: What read the text that the document has of the page; None while it has none.
    """

    page: int
    source: bytes
    read_by: str | None


class PictureLine(NamedTuple):
    """A line and where it is on the upright page, in points from the left and from the bottom."""

    text: str
    left: float
    bottom: float
    right: float
    top: float


class PictureText(NamedTuple):
    """
    What was read from a picture.

    Attributes:
        lines: From the top down; none of a picture without text.
        turn: The degrees by which the picture had to be turned to the right to be upright.
    """

    lines: tuple[PictureLine, ...]
    turn: int = 0

    def stored(self) -> str:
        """The form that `PictureText.load` reads, which the database keeps."""
        lines = [(text, *(round(each, 1) for each in box)) for text, *box in self.lines]
        return json.dumps(
            {"turn": self.turn, "lines": lines}, ensure_ascii=False, separators=(",", ":")
        )

    @classmethod
    def load(cls, stored: str) -> PictureText:
        """What `stored` made a text."""
        values = json.loads(stored)
        return cls(tuple(PictureLine(*line) for line in values["lines"]), values["turn"])


class ReadPicture(NamedTuple):
    """What is stored of a picture's text: by whom it was read, and its `PictureText.stored`."""

    read_by: str
    text: str


class PictureJob(NamedTuple):
    """
    A picture that a process has claimed.

    Attributes:
        root: The directory of the collection.
        path: Relative to it, with ``/``.
    """

    document_id: int
    collection: str
    root: str
    path: str
    page: int
    source: bytes


class PictureCounts(NamedTuple):
    """
    Attributes:
        total: Pictures in all documents.
        waiting: Those that nothing has read yet.
        failed: Those that cannot be read.
    """

    total: int
    waiting: int
    failed: int


class Recogniser(NamedTuple):
    """
    What reads the text in a picture.

    Attributes:
        name: Stored with what it read. Another name has all pages read anew.
        function: ``module:function``, which takes `Pixels` and returns a `PictureText`. A worker
            process imports it.
        package: A package that it needs.
    """

    name: str
    function: str
    package: str


class Pixels(NamedTuple):
    """
    A picture as its reader gets it.

    Attributes:
        rgb: uint8[height, width, 3], from the top left.
        per_point: Pixels for each point of the page; 1 for a photo.
    """

    rgb: NDArray[np.uint8]
    per_point: float
