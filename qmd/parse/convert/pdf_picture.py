"""Draws a page of a PDF, so that its text can be read."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pypdfium2 as pdfium

from qmd.parse.convert.pdf import opened
from qmd.values.pictures import Pixels

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Pixels for each inch, as scanners have it; but no side is longer than this many pixels, so that a
#: page takes 20 MB whatever its size.
_PER_INCH, _LONGEST = 200, 2400


def picture(path: str, data: bytes, number: int) -> Pixels:
    """
    Draw one page.

    Args:
        number: From 1.

    Raises:
        EncryptedFileError, DamagedFileError: As `qmd.parse.convert.pdf.convert`.
    """
    with closing(opened(data)) as document, closing(document[number - 1]) as page:
        scale = min(_PER_INCH / 72, _LONGEST / max(*page.get_size(), 1.0))
        bitmap = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)
        with closing(bitmap):
            return Pixels(_opaque(bitmap), scale)


def _opaque(bitmap: pdfium.PdfBitmap) -> NDArray[np.uint8]:
    drawn: NDArray[np.uint8] = bitmap.to_numpy()
    if drawn.ndim == 2 or drawn.shape[2] == 1:
        drawn = drawn.reshape(*drawn.shape[:2], 1).repeat(3, axis=2)
    return np.ascontiguousarray(drawn[:, :, :3])
