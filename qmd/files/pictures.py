"""
Draws pages of PDFs and small pictures of photos, each in a worker process with limits.

A file is opened where it lies and read in pieces, so a page of a large one takes no more memory
than one of a small one. As photos do, whoever sends a PDF chooses what a page of it takes.

Whoever sends a photo chooses how much memory its picture takes, so no server decodes one itself.
"""

from __future__ import annotations

import math
import os
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from ctypes import byref, c_int
from io import BytesIO
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from qmd import libraries
from qmd.parse.segment import is_cjk, is_joined
from qmd.search.present import splitter
from qmd.system.beneath import READ, open_beneath
from qmd.system.cancellation import check
from qmd.system.worker.jobs import MB, Job, JobAnswer, JobBudget
from qmd.system.worker.pool import WorkerPool
from qmd.values.pictures import PictureText
from qmd.values.reading import PdfPage, PlaceOnPage

if TYPE_CHECKING:
    import pypdfium2


#: The widths of pictures, in pixels: for small windows, and for large or dense ones.
WIDTHS = (800, 1600)

_BUDGET = JobBudget(cpu_s=10.0, memory_bytes=600 * MB)
#: Of one picture, and of its height, which WebP limits. A page that is much higher than wide
#: becomes narrower than asked for.
_MAX_PAGE_PIXELS, _MAX_HEIGHT = 6_000_000, 16_000
#: Rectangles that are marked on a page, and characters in which words are looked for.
_MAX_MARKS, _MAX_CHARACTERS = 400, 100_000
#: Lines that are looked for, and characters of each.
_MAX_LINES, _MAX_LINE = 60, 2_000
#: A drawing with more colours is a photo, which JPEG writes in a quarter of the bytes.
_MOST_COLOURS = 1_024
#: What pdfium puts where the end of a line parted a word.
_PARTED = "\ufffe\x02"

page_workers = WorkerPool("qmd.files.pictures:work_on_page")


def look_at(
    root: str,
    path: str,
    number: int,
    *,
    query: str = "",
    lines: Sequence[str] = (),
    read: PictureText | None = None,
) -> PdfPage | None:
    """
    The size of a page, and where words stand on it; None if it cannot be read within the limits.

    Args:
        number: Of the page, from 1; a greater one than there are is the last.
        query: Its words are marked as in the hits of a search.
        lines: Marked where no word of the query stands on the page; else the first mark is that of
            a word in them.
        read: What was read from the page, if it is a picture without a text layer.

    Raises:
        RequestEndedError: Nobody waits for it any more; the process ends.
    """
    cut = [line[:_MAX_LINE] for line in lines[:_MAX_LINES]]
    page = _run((root, path, number, 0, query, cut))
    if page is None:
        return None
    width, height = page["width"], page["height"]
    marks = page["marks"]
    if read is not None and not marks:
        marks = _marks_in_picture(read, width, height, query, cut)
    return PdfPage(
        page["number"], page["pages"], width, height, tuple(PlaceOnPage(*each) for each in marks)
    )


def draw_page(root: str, path: str, number: int, *, width: int) -> tuple[bytes, str] | None:
    """
    The picture of a page and its media type; None if it cannot be drawn within the limits.

    Raises:
        RequestEndedError: As `look_at`.
    """
    drawn = _run((root, path, number, width, "", []))
    return None if drawn is None else (drawn["picture"], drawn["type"])


def _run(argument: tuple[str, str, int, int, str, list[str]]) -> dict[str, Any] | None:
    with one_of_few():
        (result,) = page_workers.run([Job(argument, MB, _BUDGET)], waiting=check)
    return result.value if isinstance(result, JobAnswer) else None


def _marks_in_picture(
    read: PictureText, width: float, height: float, query: str, lines: Sequence[str]
) -> list[tuple[float, float, float, float]]:
    """As `_Words.marks`, of a page that is a picture."""
    text = "\n".join(line.text for line in read.lines)
    ends = [*accumulate(len(line.text) + 1 for line in read.lines)]
    marks: list[tuple[float, float, float, float]] = []
    for start, end in _spans(text, query, lines):
        at = bisect_right(ends, start)
        while at < len(ends) and len(marks) < _MAX_MARKS:
            line, begin = read.lines[at], ends[at] - len(read.lines[at].text) - 1
            if begin >= end:
                break
            cells = [0, *accumulate(2 if is_cjk(sign) else 1 for sign in line.text)]
            # A line's letters are about as wide as each other, and signs of Chinese twice.
            per_cell = (line.right - line.left) / max(1, cells[-1])
            left = line.left + per_cell * cells[max(0, start - begin)]
            right = line.left + per_cell * cells[min(len(line.text), end - begin)]
            if right > left:
                box = (left, line.bottom, right, line.top)
                marks.append(_turned_back(box, read.turn, width, height))
            at += 1
    return marks


def _turned_back(
    box: tuple[float, float, float, float], turn: int, width: float, height: float
) -> tuple[float, float, float, float]:
    """
    Left, top, width and height on the page as it is shown.

    Args:
        box: Left, bottom, right, top of the page that was turned to the right by ``turn`` degrees.
        width, height: Of the page as it is shown.
    """
    left, bottom, right, top = box
    if turn == 90:
        x, y, across, down = width - top, height - right, top - bottom, right - left
    elif turn == 180:
        x, y, across, down = width - right, bottom, right - left, top - bottom
    elif turn == 270:
        x, y, across, down = bottom, left, top - bottom, right - left
    else:
        x, y, across, down = left, height - top, right - left, top - bottom
    return round(x, 1), round(y, 1), round(across, 1), round(down, 1)


# --- in the process -------------------------------------------------------------------


def work_on_page(argument: tuple[str, str, int, int, str, list[str]]) -> dict[str, Any]:
    """Draw a page if a width is given, else look at it."""
    root, path, number, width, query, lines = argument
    with ExitStack() as opened:
        file = opened.enter_context(os.fdopen(open_beneath(root, path, READ), "rb"))
        document = opened.enter_context(closing(libraries.pypdfium2.PdfDocument(file)))
        pages = len(document)
        number = max(1, min(number, pages))
        page = opened.enter_context(closing(document[number - 1]))
        page_width, page_height = page.get_size()
        if not (page_width > 0 and page_height > 0):
            raise ValueError("a page without a size")
        if width:
            return _drawn(page, width)
        marks = opened.enter_context(closing(_Words(page))).marks(query, lines)
        return {
            "number": number,
            "pages": pages,
            "width": round(page_width, 2),
            "height": round(page_height, 2),
            "marks": marks,
        }


def _drawn(page: pypdfium2.PdfPage, width: int) -> dict[str, Any]:
    page_width, page_height = page.get_size()
    most = math.sqrt(_MAX_PAGE_PIXELS / (page_width * page_height))
    scale = min(width / page_width, most, _MAX_HEIGHT / page_height)
    image = page.render(scale=scale).to_pil()
    output = BytesIO()
    if image.getcolors(_MOST_COLOURS) is None:
        image.convert("RGB").save(output, "JPEG", quality=82)
        return {"picture": output.getvalue(), "type": "image/jpeg"}
    # Letters stay sharp, in half of the bytes and the time of PNG.
    image.convert("RGB").save(output, "WEBP", lossless=True, quality=20, method=1)
    return {"picture": output.getvalue(), "type": "image/webp"}


class _Words:
    """The text of a page, and the place of each of its characters."""

    def __init__(self, page: pypdfium2.PdfPage) -> None:
        self._raw = libraries.pypdfium2.raw
        self._page = page
        self._text_page = page.get_textpage()
        self._count = min(self._text_page.count_chars(), _MAX_CHARACTERS)

    def close(self) -> None:
        self._text_page.close()

    def marks(self, query: str, lines: Sequence[str]) -> list[tuple[float, float, float, float]]:
        """Left, top, width and height of what to mark, in points from the left and the top."""
        if not (query or lines):
            return []
        characters = [self._raw.FPDFText_GetUnicode(self._text_page, n) for n in range(self._count)]
        text = "".join(chr(each) if each < 0x110000 else "\ufffd" for each in characters)
        marks: list[tuple[float, float, float, float]] = []
        for start, end in _spans(text, query, lines):
            for at in range(self._text_page.count_rects(start, end - start)):
                if len(marks) == _MAX_MARKS:
                    return marks
                marks.append(self._on_page(self._text_page.get_rect(at)))
        return marks

    def _on_page(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        """A box of the text, on the page as it is shown: turned and cropped."""
        left, bottom, right, top = box
        corners = [self._shown(left, top), self._shown(right, bottom)]
        x, y = min(each[0] for each in corners), min(each[1] for each in corners)
        width = max(each[0] for each in corners) - x
        height = max(each[1] for each in corners) - y
        return round(x, 1), round(y, 1), round(width, 1), round(height, 1)

    def _shown(self, x: float, y: float) -> tuple[float, float]:
        width, height = self._page.get_size()
        fine = 20  # pdfium counts whole pixels
        on_x, on_y = c_int(), c_int()
        size = round(width * fine), round(height * fine)
        to_device = self._raw.FPDF_PageToDevice
        to_device(self._page, 0, 0, *size, 0, x, y, byref(on_x), byref(on_y))
        return on_x.value / fine, on_y.value / fine


def _spans(text: str, query: str, lines: Sequence[str]) -> list[tuple[int, int]]:
    """What to mark in the text of a page: words of the query, or the lines if it has none."""
    of_lines = [*_spans_of_lines(text, lines)]
    spans = _spans_of_query(text, query) if query else []
    if spans and of_lines:
        first = next((n for n, (_, end) in enumerate(spans) if end > of_lines[0][0]), 0)
        return spans[first:] + spans[:first]
    return spans or of_lines


def _spans_of_query(text: str, query: str) -> list[tuple[int, int]]:
    """Where words of the query stand, as in the lines of hits."""
    joined, places = _joined(text)
    spans = []
    at = 0
    for part, is_match in splitter(query)(joined):
        if is_match:
            spans.append((places[at], places[at + len(part) - 1] + 1))
        at += len(part)
    return spans


def _joined(text: str) -> tuple[str, list[int]]:
    """The text with its parted words and lines of Chinese joined; where each character stood."""
    kept: list[str] = []
    places: list[int] = []
    at = 0
    while at < len(text):
        character = text[at]
        end = at + 1
        while end < len(text) and text[end] in "\r\n":
            end += 1
        if character in _PARTED:
            at = end
            continue
        if character in "\r\n":
            before, after = text[at - 1 : at], text[end : end + 1]
            if not (before and after and is_joined(before, after)):
                kept.append(" ")
                places.append(at)
            at = end
            continue
        kept.append(character)
        places.append(at)
        at += 1
    return "".join(kept), places


def _spans_of_lines(text: str, lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where lines stand, by their letters and digits alone: signs and line ends may differ."""
    letters, places = _letters(text)
    begin = 0
    for line in lines:
        of_line, _ = _letters(line)
        if len(of_line) < 2:
            continue
        at = letters.find(of_line, begin)
        if at < 0:
            at = letters.find(of_line)
        if at >= 0:
            begin = at + len(of_line)
            yield places[at], places[begin - 1] + 1


def _letters(text: str) -> tuple[str, list[int]]:
    """The letters and digits of a text, folded, and where each stands."""
    kept = [
        (folded, at)
        for at, character in enumerate(text)
        if character.isalnum()
        for folded in character.casefold()
    ]
    return "".join(folded for folded, _ in kept), [at for _, at in kept]


#: The longest side of a picture, in pixels.
SIDES = (320, 1600)

_MAX_PHOTO_PIXELS = 120_000_000
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")

#: Pictures that are made at once: each may take the memory of its budget.
_AT_ONCE = threading.BoundedSemaphore(2)
_TICK_S = 0.2

thumbnail_workers = WorkerPool("qmd.files.pictures:make_thumbnail")


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
        (result,) = thumbnail_workers.run([Job((root, path, side), MB, _BUDGET)], waiting=check)
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
    Image.MAX_IMAGE_PIXELS = _MAX_PHOTO_PIXELS
    with os.fdopen(open_beneath(root, path, READ), "rb") as file:
        image: Image.Image = Image.open(file, formats=_FORMATS)
        if image.width * image.height > _MAX_PHOTO_PIXELS:
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
