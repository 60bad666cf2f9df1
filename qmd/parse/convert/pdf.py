"""
Converts a PDF to Markdown: its pages are anchors, its bookmarks headings.

The order of the text is that in which pdfium gives it, which is right for nearly all files. Only a
page whose lines evidently jump between two columns is read column by column. Heads and feet that
repeat are left out, and so is the table of contents. Words that the end of a line parted are
joined, and so are lines of Chinese, where a break would part words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from itertools import chain, islice, pairwise
from statistics import median
from typing import NamedTuple

import pypdfium2 as pdfium

from qmd.errors import DamagedFileError, EncryptedFileError
from qmd.parse.convert.blocks import inert_lines
from qmd.parse.converted import Anchor, Converted
from qmd.parse.segment import is_joined
from qmd.values.pictures import PictureText

#: The rest of the pages is left out.
MAX_PAGES = 5_000
#: The most bookmarks that become headings.
MAX_BOOKMARKS = 20_000
#: Characters of one page; more is no page that somebody reads.
MAX_PAGE = 1_000_000
#: Objects of a page with hardly any text among which a picture is looked for.
MAX_OBJECTS = 1_000
#: Characters that programs and devices put on a scan; a page with more says what it says by them.
MOST_STAMPED = 100
#: Lines and boxes of a page without text; more are the outlines of characters.
MOST_RULES = 100
#: Lines at the top and at the bottom of a page that may be a head or foot.
_EDGE_LINES = 2
#: A head or foot stands on so many pages, and on this part of all, unless its number changes.
_LEAST_REPEATS, _REPEATED_ON = 3, 0.3
#: Of a head or foot: characters, numbers among which that of the page is looked for, their digits.
_MOST_CHARACTERS, _MOST_NUMBERS, _MOST_DIGITS = 300, 8, 6
#: A gap between lines that is so many times as large as usual begins a paragraph.
_PARAGRAPH_GAP = 1.4
#: Columns: so many lines in each, of which one in ten may cross the gap between them.
_LEAST_ROWS, _MOST_CROSSING = 8, 0.1
#: Rows of a page that are put in order; more stand on no page that somebody reads.
_MOST_ROWS = 1000

_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_NUMBER = re.compile(r"\d+|\b[ivxlcdm]+\b")
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
#: A hyphen at the end of a line, where pdfium has joined the word; before it a part of the word.
_PARTED = re.compile("(\\S*)[\ufffe\x02]")
#: What leads from an entry of a table of contents to its page.
_LEADERS = re.compile(r"(?: ?\.){5,} ?")
#: A line of a table of contents, whose leaders `_mended` has left out unless they are few or none.
_ENTRY = re.compile(r"(.+?)(?:(?: …|(?: ?\.){3,4}) \S{1,8}| \d{1,5})")
#: The most lines of an entry.
_ENTRY_LINES = 3
_LEAST_ENTRIES = 3
#: What stands above or below a table or a figure, such as "Table 3.1: Sizes", without its number.
_CAPTION = re.compile(r"[^\W\d_]{1,12} ?\d[\d.]{0,9}[:：.]? (.{3,300})")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?")
#: Names that programs give a file in place of a title.
_NO_TITLE = re.compile(
    r"untitled.*|microsoft (?:word|powerpoint|excel) - .*|.*\.(?:docx?|odt|tex|dvi|indd|pptx?|pdf)|"
    r"(?:slide|layout|document) ?\d*|\W*",
    re.IGNORECASE,
)


class _Line(NamedTuple):
    """A line and where it is, in points from the left and from the bottom of the page."""

    text: str
    left: float
    right: float
    middle: float


class _Box(NamedTuple):
    """A rectangle of text, in points."""

    left: float
    bottom: float
    right: float
    top: float


class _HeadKey(NamedTuple):
    """
    What lines at the edges of several pages have in common: their text, perhaps without a number.

    Attributes:
        at: Where in the text the number was.
        ahead: By how much it is more than that of the page, from 0; None if none was taken out.
    """

    text: str
    at: int = 0
    ahead: int | None = None


class _Bookmark(NamedTuple):
    """A bookmark; ``level`` from 1. ``top``: where it leads on its page, if it says so."""

    level: int
    title: str
    top: float | None


def convert(path: str, data: bytes, texts: Mapping[int, PictureText] | None = None) -> Converted:
    """
    Read one PDF.

    Args:
        texts: What was read from pages that are pictures, by their numbers from 1.

    Raises:
        EncryptedFileError: It opens only with a password.
        DamagedFileError: It is no PDF, or damaged.
    """
    with closing(opened_pdf(data)) as document:
        return _Reader(document, texts or {}).converted()


def opened_pdf(data: bytes) -> pdfium.PdfDocument:
    """A PDF, to be closed. Raises as `convert`."""
    try:
        return pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise EncryptedFileError("PDF") from error
        raise DamagedFileError(
            "The PDF is damaged, or is no PDF.",
            hint="Open it in a viewer and save it again, or leave it out.",
        ) from error


class _Reader:
    """Reads an open document once."""

    def __init__(self, document: pdfium.PdfDocument, texts: Mapping[int, PictureText]) -> None:
        self._document = document
        self._texts = texts
        self._warnings: list[str] = []
        self._pictures: list[int] = []  # numbers of pages that are pictures
        self._without_text: list[int] = []  # those of them without a text layer

    def converted(self) -> Converted:
        total = len(self._document)
        count = min(total, MAX_PAGES)
        if count < total:
            self._warnings.append(f"Only the first {count:,} of its {total:,} pages were read.")
        bookmarks = self._bookmarks()
        pages = [self._lines(number) for number in range(count)]
        labels = [self._label(number) for number in range(count)]
        _drop_repeated(pages, labels, {number - 1 for number in self._pictures})
        _drop_contents(pages, [mark.title for marks in bookmarks.values() for mark in marks])
        texts: list[str] = []
        anchors: list[Anchor] = []
        length = 0
        for number, lines in enumerate(pages):
            text = _page_text(lines, bookmarks.get(number, ()))
            if not text:
                continue
            label = str(number + 1)
            shown = labels[number]
            anchors.append(Anchor("page", label, length, None if shown in ("", label) else shown))
            texts.append(text)
            length += len(text)
        unread = [number for number in self._without_text if number not in self._texts]
        if unread:
            self._warnings.append(_pictures_warning(unread, count))
        about = self._document.get_metadata_dict(skip_empty=True)
        return Converted(
            "".join(texts),
            anchors=tuple(anchors),
            title=_title(about.get("Title", "")),
            date=_date(about.get("CreationDate", "")),
            properties=_properties(about, total),
            warnings=tuple(self._warnings),
            pictures=tuple(self._pictures),
        )

    def _bookmarks(self) -> dict[int, list[_Bookmark]]:
        """The bookmarks of each page, from 0, in the order of the outline."""
        by_page: dict[int, list[_Bookmark]] = {}
        try:
            for number, bookmark in enumerate(self._document.get_toc(max_depth=6)):
                if number == MAX_BOOKMARKS:
                    self._warnings.append(f"Only the first {number:,} bookmarks are headings.")
                    break
                target = bookmark.get_dest()
                page = None if target is None else target.get_index()
                title = " ".join(_mended(bookmark.get_title()).split())
                if page is not None and title:
                    mode, place = target.get_view()
                    is_point = mode == pdfium.raw.PDFDEST_VIEW_XYZ and len(place) > 1
                    top = place[1] if is_point else None
                    by_page.setdefault(page, []).append(_Bookmark(bookmark.level + 1, title, top))
        except pdfium.PdfiumError:
            self._warnings.append("The outline is damaged and was not read whole.")
        return by_page

    def _label(self, number: int) -> str:
        try:
            return str(self._document.get_page_label(number)).strip()
        except (pdfium.PdfiumError, UnicodeDecodeError):
            return ""

    def _lines(self, number: int) -> list[_Line]:
        """The lines of a page; none if it has no text, and none was read from its picture."""
        try:
            page = self._document[number]
        except pdfium.PdfiumError:
            self._warnings.append(f"Page {number + 1} is damaged and was not read.")
            return []
        with closing(page), closing(page.get_textpage()) as text_page:
            if text_page.count_chars() > MAX_PAGE:
                self._warnings.append(f"Page {number + 1} has too much text and was cut.")
            text = text_page.get_text_range(count=min(text_page.count_chars(), MAX_PAGE))
            if len(text.strip()) < MOST_STAMPED and _is_picture(page, has_text=bool(text.strip())):
                self._pictures.append(number + 1)
                if not text.strip():
                    self._without_text.append(number + 1)
                read = self._texts.get(number + 1)
                if read is not None or not text.strip():
                    return _lines_read(read)
            if not text.strip():
                return []
            if not _RIGHT_TO_LEFT.search(text):
                rows = _columns_of(text_page)
                if rows is not None:
                    return rows
            return _placed(text_page, text)


def _is_picture(page: pdfium.PdfPage, *, has_text: bool) -> bool:
    """
    Whether what a page says is drawn: as a picture, or as the outlines of its characters.

    With some text, only if a picture covers half of it, as that of a scan with a stamp does.
    """
    outlines = 0
    width, height = page.get_size()
    for each in islice(page.get_objects(max_depth=3), MAX_OBJECTS):
        if each.type == pdfium.raw.FPDF_PAGEOBJ_IMAGE:
            left, bottom, right, top = each.get_bounds()
            if not has_text or (right - left) * (top - bottom) > width * height / 2:
                return True
        outlines += each.type == pdfium.raw.FPDF_PAGEOBJ_PATH
    return outlines > MOST_RULES and not has_text


def _pictures_warning(pictures: Sequence[int], count: int) -> str:
    if len(pictures) > 1:
        which = "All pages" if len(pictures) == count else f"{len(pictures):,} of {count:,} pages"
        first = "" if len(pictures) == count else f" (the first: page {pictures[0]})"
        return f"{which} are pictures without a text layer{first}: 'qmd ocr' reads them."
    page = "The page" if count == 1 else f"Page {pictures[0]}"
    return f"{page} is a picture without a text layer: 'qmd ocr' reads it."


def _placed(text_page: pdfium.PdfTextPage, text: str) -> list[_Line]:
    """The lines in the order of pdfium, with their places."""
    # Where some characters have no number of their own, nothing is known of places.
    has_places = len(text) == text_page.count_chars()
    lines = []
    start = 0
    for end in (*(match.start() for match in _LINE_ENDS.finditer(text)), len(text)):
        line = text[start:end]
        left = right = middle = 0.0
        stripped = line.strip()
        if stripped and has_places:
            first = start + line.index(stripped[0])
            left, bottom, _, top = text_page.get_charbox(first)
            right = text_page.get_charbox(first + len(stripped) - 1)[2]
            middle = (bottom + top) / 2
        if mended := _mended(stripped):
            lines.append(_Line(mended, left, right, middle))
        start = end + (2 if text.startswith("\r\n", end) else 1)
    return lines


# --- columns ------------------------------------------------------------------------------


def _columns_of(text_page: pdfium.PdfTextPage) -> list[_Line] | None:
    boxes = [_Box(*text_page.get_rect(number)) for number in range(text_page.count_rects())]
    return _columns(
        [box for box in boxes if box.right - box.left > 1],
        lambda row: text_page.get_text_bounded(*row),
    )


def _columns(boxes: Sequence[_Box], text_in: Callable[[_Box], str]) -> list[_Line] | None:
    """
    The lines of a page of two columns whose text jumps between them from line to line.

    None if that is not evident: a table looks nearly the same, and reordering would destroy it.
    """
    gap = _gap(boxes) if len(boxes) >= 2 * _LEAST_ROWS else None
    if gap is None:
        return None
    sides = [_side(box, gap) for box in boxes]
    left, across, right = (
        _rows(box for box, each in zip(boxes, sides, strict=True) if each == side)
        for side in (-1, 0, 1)
    )
    jumps = sum({one, other} == {-1, 1} for one, other in pairwise(sides))
    least = min(len(left), len(right))
    if len(left) + len(across) + len(right) > _MOST_ROWS:
        return None  # pdfium looks through the whole page for the text of each
    if least < _LEAST_ROWS or jumps < 0.6 * least or not _are_prose(left, right):
        return None
    lines: list[_Line] = []
    for rows in _bands(left, across, right):
        lines += _lines_of(rows, text_in)
    return lines


def _bands(
    left: Sequence[_Box], across: Sequence[_Box], right: Sequence[_Box]
) -> Iterator[Sequence[_Box]]:
    """Rows in the order of reading: what goes across both columns parts them into bands."""
    edges = [float("inf"), *(row.bottom for row in across), float("-inf")]
    for band, (upper, lower) in enumerate(pairwise(edges)):
        for column in (left, right):
            yield [row for row in column if lower <= row.bottom < upper]
        yield across[band : band + 1]


def _gap(boxes: Sequence[_Box]) -> float | None:
    """Where the gap between two columns is, from the left; None without one."""
    start, end = min(box.left for box in boxes), max(box.right for box in boxes)
    steps = 100
    width = (end - start) / steps
    if width <= 0:
        return None
    changes = [0] * (steps + 2)  # how many more boxes cover each step than the one before
    for box in boxes:
        changes[max(0, int((box.left - start) / width))] += 1
        changes[min(steps, int((box.right - start) / width)) + 1] -= 1
    covering = 0
    best: tuple[int, int] | None = None
    for step in range(steps):
        covering += changes[step]
        if 35 <= step <= 65:
            best = min(best or (covering, step), (covering, step))
    if best is None or best[0] > _MOST_CROSSING * len(boxes):
        return None
    return start + (best[1] + 0.5) * width


def _side(box: _Box, gap: float) -> int:
    if box.right <= gap:
        return -1
    return 1 if box.left >= gap else 0


def _rows(boxes: Iterable[_Box]) -> list[_Box]:
    """The boxes, those of one line as one, from the top down."""
    rows: list[_Box] = []
    for box in sorted(boxes, key=lambda box: (-box.bottom - box.top, box.left)):
        last = rows[-1] if rows else None
        if last is not None and (box.bottom + box.top) / 2 > last.bottom:
            rows[-1] = _Box(
                min(last.left, box.left),
                min(last.bottom, box.bottom),
                max(last.right, box.right),
                max(last.top, box.top),
            )
        else:
            rows.append(box)
    return rows


def _are_prose(left: Sequence[_Box], right: Sequence[_Box]) -> bool:
    """Whether the lines of two columns fill them, and the columns are about as wide."""
    widths = []
    for rows in (left, right):
        width = max(row.right for row in rows) - min(row.left for row in rows)
        if median(row.right - row.left for row in rows) < 0.75 * width:
            return False
        widths.append(width)
    return max(widths) < 1.3 * min(widths)


def _lines_of(rows: Iterable[_Box], text_in: Callable[[_Box], str]) -> Iterator[_Line]:
    for row in rows:
        if text := _mended(" ".join(text_in(row).split())):
            yield _Line(text, row.left, row.right, (row.bottom + row.top) / 2)


def _lines_read(read: PictureText | None) -> list[_Line]:
    """The lines that were read from a picture, what stands side by side as one."""
    if read is None:
        return []
    texts = {_Box(*box): text for text, *box in read.lines}
    boxes = sorted(texts, key=lambda box: box.left)

    def text_in(row: _Box) -> str:
        return " ".join(
            texts[box]
            for box in boxes
            if row.bottom <= (box.bottom + box.top) / 2 <= row.top
            and row.left <= (box.left + box.right) / 2 <= row.right
        )

    in_order = sorted(boxes, key=lambda box: (-box.top, box.left))
    lines = _columns(in_order, text_in)
    return list(_lines_of(_rows(boxes), text_in)) if lines is None else lines


# --- heads, feet, paragraphs and headings -----------------------------------------------------


def _drop_repeated(pages: Sequence[list[_Line]], labels: Sequence[str], pictures: Set[int]) -> None:
    """
    Take the heads and feet that repeat out of the pages, but for the first with a word of its own.

    They say the same on many pages, but for the number of the page. Rows of a table differ by their
    numbers, too, but these do not count the pages. A page of heads and feet alone keeps those with
    a word, because it says nothing else; not so one of ``pictures``, on which it is a stamp.
    ``labels`` are the numbers that the file itself gives to the pages, where it does.
    """
    repeated = _repeated_keys(pages)
    words: set[str] = set()
    heads: set[int] = set()
    for number, lines in enumerate(pages):
        heads.update(
            id(line)
            for line in _edges(lines)
            if line.text == labels[number] or not repeated.isdisjoint(_head_keys(line.text, number))
        )
        for line in lines:
            if id(line) not in heads:
                words.update(line.text.casefold().split())
    for number, lines in enumerate(pages):
        kept = [line for line in lines if id(line) not in heads or _says_more(line, words)]
        if not kept and number not in pictures:
            kept = [line for line in lines if _words(line)]
        lines[:] = kept


def _repeated_keys(pages: Sequence[list[_Line]]) -> set[_HeadKey]:
    """What the heads and feet of many pages have in common."""
    keys_of = (
        {key for line in _edges(lines) for key in _head_keys(line.text, number)}
        for number, lines in enumerate(pages)
    )
    counts = Counter(chain.from_iterable(keys_of))
    many = max(_LEAST_REPEATS, _REPEATED_ON * len(pages))
    return {
        key
        for key, count in counts.items()
        # That of a chapter stands on few pages, but counts them.
        if count >= many or (count >= _LEAST_REPEATS and key.ahead is not None and _key(key.text))
    }


def _says_more(head: _Line, words: set[str]) -> bool:
    """Whether a head has a word that is not among those of the text; they are added to them."""
    new = _words(head) - words
    words |= new
    return bool(new)


def _words(line: _Line) -> set[str]:
    """The words of a line, without what may be the number of its page."""
    return {each for each in _NUMBER.sub("", line.text).casefold().split() if _key(each)}


def _head_keys(line: str, page: int) -> Iterator[_HeadKey]:
    """What a head or foot has in common with those of other pages, if this line is one."""
    if len(line) > _MOST_CHARACTERS:
        return
    yield _HeadKey(line)
    for match in islice(_NUMBER.finditer(line), _MOST_NUMBERS):
        if len(match[0]) <= _MOST_DIGITS:
            value = int(match[0]) if match[0].isdecimal() else _roman(match[0])
            yield _HeadKey(line[: match.start()] + line[match.end() :], match.start(), value - page)


def _roman(numeral: str) -> int:
    """The value of a Roman numeral in small letters."""
    values = [_ROMAN[letter] for letter in numeral]
    following = (*values[1:], 0)
    return sum(-one if one < other else one for one, other in zip(values, following, strict=True))


def _drop_contents(pages: Sequence[list[_Line]], titles: Iterable[str]) -> None:
    """
    Take the entries of tables of contents, and of lists of tables, out of the pages.

    Each entry stands as a heading or a caption where it leads, and there a search shall find it.
    """
    keys = {_key(title) for title in titles}
    keys |= {
        _key(caption[1])
        for lines in pages
        for line in lines
        if (caption := _CAPTION.fullmatch(line.text)) and not _ENTRY.fullmatch(line.text)
    }
    keys.discard("")  # of a title without a letter
    for lines in pages:
        entries = set(_entries([line.text for line in lines], keys))
        if len(entries) >= _LEAST_ENTRIES:
            lines[:] = [line for number, line in enumerate(lines) if number not in entries]


def _entries(texts: Sequence[str], titles: Set[str]) -> Iterator[int]:
    """The lines that are a title, perhaps with the number of its section, and the page."""
    for number, text in enumerate(texts):
        if not _ENTRY.fullmatch(text):
            continue
        for first in range(number, max(-1, number - _ENTRY_LINES), -1):
            entry = _ENTRY.fullmatch(" ".join(texts[first : number + 1]))
            title = entry[1] if entry is not None else ""
            if not titles.isdisjoint({_key(title), _key(title.lstrip("0123456789. "))}):
                yield from range(first, number + 1)
                break


def _edges(lines: list[_Line]) -> list[_Line]:
    """The first and the last lines of a page, in the order of the text and on the paper."""
    by_height = sorted(lines, key=lambda line: -line.middle)
    return [
        line
        for order in (lines, by_height)
        for line in (*order[:_EDGE_LINES], *order[-_EDGE_LINES:])
    ]


def _page_text(lines: Sequence[_Line], bookmarks: Sequence[_Bookmark]) -> str:
    """The Markdown of a page, which ends with a blank line; empty for a page without text."""
    if not lines:
        return ""
    headings = _headings(lines, bookmarks)
    usual = _usual_gap(lines)
    right = max(line.right for line in lines)
    parts: list[str] = []
    paragraph: list[str] = []
    before: _Line | None = None
    for number, line in enumerate(lines):
        marks, replaces = headings.get(number, ((), False))
        if before is not None and (marks or _is_apart(before, line, usual)):
            parts.append(inert_lines("\n".join(paragraph)))
            paragraph = []
        parts += (f"{'#' * min(6, mark.level)} {inert_lines(mark.title)}" for mark in marks)
        if not replaces:
            if paragraph and before is not None and _goes_on(before, line, right):
                paragraph[-1] += line.text
            else:
                paragraph.append(line.text)
        before = line
    parts.append(inert_lines("\n".join(paragraph)))
    return "\n\n".join(part for part in parts if part) + "\n\n"


def _headings(
    lines: Sequence[_Line], bookmarks: Sequence[_Bookmark]
) -> dict[int, tuple[list[_Bookmark], bool]]:
    """
    The bookmarks before each line, and whether the line itself is the last of them.

    A bookmark belongs to the line that says the same, else to the place on the page that it names.
    """
    headings: dict[int, tuple[list[_Bookmark], bool]] = {}
    first = 0
    keys = [_key(line.text) for line in lines] if bookmarks else []
    for bookmark in bookmarks:
        title = _key(bookmark.title)
        same_line = next(
            (
                number
                for number in range(first, len(lines))
                if keys[number] and (keys[number] == title or _is_numbered(keys[number], title))
            ),
            None,
        )
        number = same_line
        if number is None:
            below = (
                number
                for number in range(first, len(lines))
                if bookmark.top is not None and 0 < lines[number].middle < bookmark.top
            )
            number = next(below, first)
        marks = headings.get(number, ([], False))[0]
        headings[number] = ([*marks, bookmark], same_line is not None)
        first = number if same_line is None else min(number + 1, len(lines) - 1)
    return headings


def _key(text: str) -> str:
    """A title for comparisons: without blanks, signs and letter case."""
    return re.sub(r"[\W_]+", "", text).casefold()


def _is_numbered(line: str, title: str) -> bool:
    """Whether a line is a title with the number of its section, or "Chapter 3", before it."""
    return len(title) > 3 and line.endswith(title) and len(line) - len(title) <= 12


def _usual_gap(lines: Sequence[_Line]) -> float:
    gaps = [one.middle - other.middle for one, other in pairwise(lines)]
    return median(positive) if (positive := [gap for gap in gaps if gap > 1]) else 0.0


def _is_apart(before: _Line, line: _Line, usual: float) -> bool:
    """Whether a line begins a paragraph; unknown where no places are known."""
    gap = before.middle - line.middle
    return usual > 0 and (gap > _PARAGRAPH_GAP * usual or gap < -_PARAGRAPH_GAP * usual)


def _goes_on(before: _Line, line: _Line, right: float) -> bool:
    """Whether a line of Chinese or Japanese goes on in the next line."""
    if not is_joined(before.text[-1], line.text[0]):
        return False
    # A line that ends early ends a paragraph. Two characters may be wider than what was left.
    width = (before.right - before.left) / max(1, len(before.text))
    return not right or before.right > right - 2.5 * max(width, 1)


def _mended(text: str) -> str:
    """Words that the end of a line parted are joined, and controls and leaders left out."""
    if "\ufffe" in text or "\x02" in text:
        text = _PARTED.sub(_joined, text)
    if "...." in text or ". . . ." in text:
        text = _LEADERS.sub(" … ", text)
    return _CONTROLS.sub("", text)


def _joined(match: re.Match[str]) -> str:
    """Keep the hyphen of ``MS-DOS``, ``x-y-z`` and ``a/b-c``, which a syllable would not have."""
    before = match[1]
    keeps = before[-1:].isupper() or before[-1:].isdigit() or re.search(r"[-/_.:]", before)
    return f"{before}-" if keeps else before


# --- about the document ------------------------------------------------------------------------


def _title(title: str) -> str | None:
    title = " ".join(_mended(title).split())
    return None if _NO_TITLE.fullmatch(title) else title


def _date(written: str) -> str | None:
    """``D:20230204115901-00'00'`` as ``2023-02-04``."""
    match = _DATE.match(written)
    if match is None or not "1980" <= match[1] <= "2100":
        return None
    month, day = match[2] or "01", match[3] or "01"
    if not ("01" <= month <= "12" and "01" <= day <= "31"):
        return None
    return f"{match[1]}-{month}-{day}"


def _properties(about: dict[str, str], pages: int) -> dict[str, object]:
    properties: dict[str, object] = {}
    for key, name in (("Author", "author"), ("Subject", "description"), ("Keywords", "keywords")):
        value = " ".join(_mended(about.get(key, "")).split())
        if value:
            properties[name] = value
    return {**properties, "pages": pages}
