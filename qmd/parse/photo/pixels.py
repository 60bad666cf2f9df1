"""Decodes a photo, so that the text in it can be read."""

from __future__ import annotations

from io import BytesIO

from qmd import libraries
from qmd.errors import DamagedFileError
from qmd.values.pictures import Pixels

#: More are not decoded, and no side keeps more than this many pixels.
_MOST_PIXELS, _LONGEST = 120_000_000, 2400
_FORMATS = ("JPEG", "PNG")


def picture(path: str, data: bytes, number: int) -> Pixels:
    """
    Decode one photo, turned as the camera says.

    Raises:
        DamagedFileError: It cannot be decoded.
    """
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = _MOST_PIXELS
    try:
        image: Image.Image = Image.open(BytesIO(data), formats=_FORMATS)
        if image.width * image.height > _MOST_PIXELS:
            raise ValueError(f"it has more than {_MOST_PIXELS:,} pixels")
        image.draft("RGB", (_LONGEST, _LONGEST))
        image.thumbnail((_LONGEST, _LONGEST))
        image = ImageOps.exif_transpose(image)
        if image.mode in ("RGBA", "LA", "P", "PA"):
            opaque = image.convert("RGBA")
            image = Image.new("RGB", opaque.size, "white")
            image.paste(opaque, mask=opaque.getchannel("A"))
        return Pixels(libraries.np.asarray(image.convert("RGB")), 1.0)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DamagedFileError(
            f"The photo cannot be decoded: {error}.",
            hint="Open it in a viewer and save it again, or leave it out.",
        ) from error
