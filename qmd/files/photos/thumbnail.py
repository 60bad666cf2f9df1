"""
Makes small pictures of photos, each in a worker process with limits.

Whoever sends a photo chooses how much memory its picture takes, so no server decodes one itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

from qmd.system.beneath import READ, open_beneath
from qmd.system.cancellation import check
from qmd.system.worker.jobs import MB, Job, JobAnswer, JobBudget
from qmd.system.worker.pool import WorkerPool

SIDES = (320, 1600)
"""The longest side of a picture, in pixels."""

_BUDGET = JobBudget(cpu_s=10.0, memory_bytes=600 * MB)
_MAX_PIXELS = 120_000_000
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")

#: Pictures that are made at once: each may take the memory of its budget.
_AT_ONCE = threading.BoundedSemaphore(2)
_TICK_S = 0.2

workers = WorkerPool("qmd.files.photos.thumbnail:make_thumbnail")


def thumbnail(root: str, path: str, side: int) -> bytes | None:
    """
    A JPEG of the photo at a path below a root; None if it cannot be decoded within the limits.

    HEIC photos give None: browsers and Pillow cannot decode them.

    Raises:
        RequestEndedError: Nobody waits for it any more; the process ends.
    """
    if path.lower().endswith((".heic", ".heif")):
        return None
    with one_of_few():
        (result,) = workers.run([Job((root, path, side), MB, _BUDGET)], waiting=check)
    return result.value if isinstance(result, JobAnswer) else None


@contextmanager
def one_of_few() -> Iterator[None]:
    """
    Wait until another picture may be made, of a photo or of a page.

    A request that has ended waits no longer.
    """
    while not _AT_ONCE.acquire(timeout=_TICK_S):
        check()
    try:
        yield
    finally:
        _AT_ONCE.release()


def make_thumbnail(argument: tuple[str, str, int]) -> bytes:
    """The work of one process: decode, turn as the camera says, shrink, encode."""
    from PIL import Image, ImageOps

    root, path, side = argument
    Image.MAX_IMAGE_PIXELS = _MAX_PIXELS
    with os.fdopen(open_beneath(root, path, READ), "rb") as file:
        image: Image.Image = Image.open(file, formats=_FORMATS)
        if image.width * image.height > _MAX_PIXELS:
            raise ValueError("too many pixels")
        image.draft("RGB", (side, side))  # a JPEG is decoded at an eighth of its size at best
        image.thumbnail((side, side))
        image = ImageOps.exif_transpose(image)
        if image.mode in ("RGBA", "LA", "P", "PA"):
            opaque = image.convert("RGBA")
            image = Image.new("RGB", opaque.size, "white")
            image.paste(opaque, mask=opaque.getchannel("A"))
        output = BytesIO()
        image.convert("RGB").save(output, "JPEG", quality=82, optimize=True)
    return output.getvalue()
