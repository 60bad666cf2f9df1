"""
A recogniser that needs no model: it reads text that a picture holds as black and white squares.

Each row of eight squares is a byte of UTF-8, the first bit on the left, black for 1.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image

from qmd.values.pictures import PictureLine, PictureText, Pixels, Recogniser

TINY = Recogniser("tiny, 1", "tests.support.tiny_ocr:read", "PIL")
#: Bytes of a picture.
ROWS = 64


def squares(text: str) -> bytes:
    """A picture as bytes, one for each square: 8 to a row."""
    data = text.encode().ljust(ROWS, b"\0")
    assert len(data) == ROWS, "too long"
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    return bytes(np.where(bits, 0, 255).astype(np.uint8))


def page(text: str) -> bytes:
    """The content of a page of a PDF (`tests.support.pdf.pdf`) that is this picture."""
    start = f"q 612 0 0 792 0 0 cm BI /W 8 /H {ROWS} /CS /G /BPC 8 ID ".encode()
    return start + squares(text) + b" EI Q"


def photo(text: str, *, kind: str = "PNG") -> bytes:
    """A photo that is this picture."""
    image = Image.frombytes("L", (8, ROWS), squares(text)).resize((64, 8 * ROWS), 0)
    data = BytesIO()
    image.convert("RGB").save(data, kind)
    return data.getvalue()


def read(pixels: Pixels) -> PictureText:
    """
    The text of a picture, a line below the other.

    ``crash``, ``hang`` and ``fail`` do what they say.
    """
    height, width, _ = pixels.rgb.shape
    rows = (np.arange(ROWS) * 2 + 1) * height // (2 * ROWS)
    columns = (np.arange(8) * 2 + 1) * width // 16
    bits = pixels.rgb[np.ix_(rows, columns)][:, :, 0] < 128
    text = np.packbits(bits).tobytes().rstrip(b"\0").decode()
    if text == "crash":
        import os

        os.abort()
    if text == "hang":
        while True:
            pass
    if text == "fail":
        raise ValueError("cannot read this")
    return PictureText(
        tuple(
            PictureLine(line, 72, 700 - 14 * number, 72 + 6 * len(line), 710 - 14 * number)
            for number, line in enumerate(text.splitlines())
        )
    )
