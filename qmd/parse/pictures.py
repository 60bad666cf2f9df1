"""Draws what is a picture, a page of a PDF or a photo, so that its text can be read."""

from __future__ import annotations

from contextlib import closing
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from qmd import libraries, system
from qmd.engine_text import engine_text
from qmd.errors import DamagedFileError, MissingExtraError
from qmd.parse.convert.pdf import opened_pdf
from qmd.values.pictures import Pixels

if TYPE_CHECKING:
    from PIL import Image


#: Pixels for each inch, as scanners have it; but no side is longer than this many pixels, so that a
#: page takes 20 MB whatever its size.
_PER_INCH, _LONGEST_PAGE = 200, 2400


def picture_of_page(path: str, data: bytes, number: int) -> Pixels:
    """
    Draw one page.

    Args:
        number: From 1.

    Raises:
        EncryptedFileError, DamagedFileError: As `qmd.parse.convert.pdf.convert`.
    """
    with closing(opened_pdf(data)) as document, closing(document[number - 1]) as page:
        scale = min(_PER_INCH / 72, _LONGEST_PAGE / max(*page.get_size(), 1.0))
        bitmap = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)
        with closing(bitmap):
            return Pixels(np.ascontiguousarray(bitmap.to_numpy()), scale)


#: More are not decoded, and no side keeps more than this many pixels.
_MOST_PIXELS, _LONGEST_PHOTO = 120_000_000, 2400
_FORMATS = ("JPEG", "PNG")
_DAMAGED = (OSError, ValueError, SyntaxError, RuntimeError, EOFError)


def picture_of_photo(path: str, data: bytes, number: int) -> Pixels:
    """
    Decode one photo, turned as the camera says.

    Raises:
        DamagedFileError: It cannot be decoded.
        MissingExtraError: It is a HEIC photo, and the package that decodes these is missing.
    """
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = _MOST_PIXELS
    is_heic = path.lower().endswith(".heic")
    if is_heic and find_spec("pillow_heif") is None:
        raise MissingExtraError(
            engine_text(
                "HEIC photos need the package pillow-heif, then 'qmd ocr --force': {command}",
                command=system.installation.current().install(
                    f"{system.installation.DISTRIBUTION}[ocr]"
                ),
            )
        )
    try:
        image = _heic(data) if is_heic else Image.open(BytesIO(data), formats=_FORMATS)
        if image.width * image.height > _MOST_PIXELS:
            raise Image.DecompressionBombError
        image.draft("RGB", (_LONGEST_PHOTO, _LONGEST_PHOTO))
        image.thumbnail((_LONGEST_PHOTO, _LONGEST_PHOTO))
        image = ImageOps.exif_transpose(image)
        if image.mode in ("RGBA", "LA", "P", "PA"):
            opaque = image.convert("RGBA")
            image = Image.new("RGB", opaque.size, "white")
            image.paste(opaque, mask=opaque.getchannel("A"))
        return Pixels(libraries.np.asarray(image.convert("RGB")), 1.0)
    except (*_DAMAGED, Image.DecompressionBombError) as error:
        is_large = isinstance(error, Image.DecompressionBombError)
        reason = f"it has more than {_MOST_PIXELS:,} pixels" if is_large else error
        raise DamagedFileError(
            f"The photo cannot be decoded: {reason}.",
            hint="Open it in a viewer and save it again, or leave it out.",
        ) from error


def _heic(data: bytes) -> Image.Image:
    """Not all programs of this process shall read HEIC, so no plugin of Pillow is registered."""
    from pillow_heif import HeifImageFile

    image: Image.Image = HeifImageFile(BytesIO(data))  # type: ignore[no-untyped-call]
    return image
