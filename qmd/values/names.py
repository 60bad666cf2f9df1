"""
The keys under which names are looked up: one form for all spellings of a name.

People type names in any case, and macOS may store "é" as two characters where others store one. The
files of a Logseq graph have names of their own: ``work___plan.md`` is "work/plan". Journals are
taken to have Logseq's own date format, as "Mar 1st, 2025".
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from urllib.parse import quote, unquote

from qmd import lazy, libraries
from qmd.records import NamedTuple

#: The mask of a new collection: notes, and the documents that people keep beside them. Saved pages,
#: tables, mail and others are taken by a mask that names them.
DEFAULT_MASK = "**/*.{md,pdf,epub,docx,pptx,xlsx,odt,odp,ods}"
#: The suffixes that a link to a note, and a person, may leave out.
NOTE_SUFFIXES = (".md", ".markdown")
#: The kinds of links that are Markdown's; the others are wikilinks.
MARKDOWN_LINKS = ("link", "image")
#: The files, folded, to which a Markdown link to their folder leads, as on GitHub.
FOLDER_PAGES = ("readme.md", "index.md")

#: A web address, ``mailto:`` and the like; one letter and a colon may be a drive of Windows.
_ADDRESS = lazy.pattern(r"[a-zA-Z][a-zA-Z0-9+.-]+:|//")

# Only digits count as a date or time: a title may have "_" where a timestamp has it.
_STAMPED = lazy.pattern(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})_(?:([0-9]{2}_[0-9]{2}_[0-9]{2})_)?(.*)", re.DOTALL
)
_JOURNAL = lazy.pattern(r"(?:^|/)journals/(\d{4})_(\d{2})_(\d{2})\.(?:md|markdown)$", re.IGNORECASE)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DAY = lazy.pattern(rf"({'|'.join(_MONTHS)}) (\d{{1,2}})(?:st|nd|rd|th), (\d{{4}})", re.IGNORECASE)
#: What Logseq does not write to a file's name as it is.
_ENCODED = lazy.pattern(r'[<>:"|?*\\#%]')


def fold(text: str) -> str:
    """
    A text without the differences of letter case and Unicode form: NFC and case folding.

    A space that does not break a line counts as a space, as in Obsidian.
    """
    if text.isascii():
        return text.lower()
    text = text.replace("\u00a0", " ").replace("\u202f", " ")
    # Folding may decompose characters again.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def file_stem(path: str) -> str:
    """The name of a file without its folders and its suffix: ``notes/Plan.md`` → ``Plan``."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


class PostName(NamedTuple):
    """The parts of a post's file name: ``YYYY-MM-DD[_HH_MM_SS]_title``, without the suffix."""

    day: str
    time: str | None
    title: str


def post_name(stem: str) -> PostName | None:
    """The parts of a file's stem that has the form of a post's name; None for any other."""
    stamped = _STAMPED.fullmatch(stem)
    return None if stamped is None else PostName(*stamped.groups())


def without_note_suffix(name: str) -> str:
    """A folded name or path without ``.md`` or ``.markdown``. Any other suffix stays."""
    for suffix in NOTE_SUFFIXES:
        if name.endswith(suffix) and not name.endswith("/" + suffix):
            return name[: -len(suffix)] or name
    return name


def are_alike(typed: str, name: str) -> bool:
    """
    Whether a name may be a misspelling of another: three letters of five are the same.

    A swap of two letters is one mistake, and so is a letter of two. What all paths of a folder
    share, the folder and the suffix, must not be in the names.
    """
    least = 0.6 if max(len(typed), len(name)) > 2 else 0.5
    return libraries.rapidfuzz.distance.OSA.normalized_similarity(typed, name) >= least


def name_key(path: str) -> str:
    """The key of a path's file name: ``Notes/Plan.md`` → ``plan``, ``Albums.base`` stays."""
    return without_note_suffix(fold(path.rpartition("/")[2]))


def link_path(kind: str, target: str) -> str | None:
    """
    The path that a link names, as it is to be looked up; "" is the note with the link itself.

    The target of a Markdown link (``kind`` "link" or "image") is percent-decoded; that of a
    wikilink is taken as it stands. None for a web address, which names no file.
    """
    if kind in MARKDOWN_LINKS:
        return None if _ADDRESS.match(target) else unquote(target)
    return None if "://" in target else target


def link_anchor(kind: str, heading: str | None, block: str | None) -> tuple[str, str]:
    """
    The heading (``Heading#Sub``) and the block that a link names; "" where it names none.

    Those of a Markdown link are percent-decoded, as its path is.
    """
    if kind not in MARKDOWN_LINKS:
        return heading or "", block or ""
    heading, block = unquote(heading or ""), unquote(block or "")
    return ("", heading[1:]) if heading.startswith("^") and not block else (heading, block)


def link_key(kind: str, target: str) -> str | None:
    """
    The key of the file that a link names, as `name_key` gives it for that file.

    None for a web address; "" for a link inside its own note.
    """
    path = link_path(kind, target)
    return None if path is None else name_key(path.rstrip("/"))


def keys_of_target(path: str) -> set[str]:
    """The keys of the files to which a link path may lead, but for pages of folders."""
    # The file of [[Plan.md]] may be Plan.md.md, that of [[Plan.md.md]] cannot be Plan.md.
    keys = {name_key(path), fold(path.rpartition("/")[2])}
    page_file = file_of_page(path)
    return keys if page_file is None else keys | {name_key(page_file)}


def path_from(path: str, source: str) -> str:
    """
    Where a link path leads from the folder of the note ``source``, or with ``/`` from the root.

    ``.`` is the root. ``../`` at the beginning is left if it leads out of the collection.
    """
    folder = "" if path.startswith("/") else posixpath.dirname(source)
    return posixpath.normpath(posixpath.join(folder, path.lstrip("/")))


def link_keys_to(path: str) -> tuple[str, ...]:
    """
    The keys of all links that may lead to a file.

    Several for ``Plan.md.md``, which both ``[[Plan.md.md]]`` and ``[[Plan.md]]`` may name, and for
    ``docs/README.md``, to which ``[x](docs)``, ``[x](.)`` and ``[x](..)`` may lead; also the last
    part of the page that Logseq keeps in the file.
    """
    key = name_key(path)
    keys = [key, without_note_suffix(key)]
    folder, _, name = fold(path).rpartition("/")
    page = page_of_file(path)
    if page is not None:
        keys.append(name_key(page))
    if name in FOLDER_PAGES:
        keys += [name_key(folder), ".", ".."]
    return tuple(dict.fromkeys(each for each in keys if each))


def journal_day(path: str) -> str | None:
    """The day ``YYYY-MM-DD`` of a journal of Logseq; None for any other file."""
    match = _JOURNAL.search(path)
    if match is None or not (1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= 31):
        return None
    return "-".join(match.groups())


def page_of_file(path: str) -> str | None:
    """The name of the page in a file, if it differs from the file's; None if it does not."""
    day = journal_day(path)
    if day is not None:
        return f"{_MONTHS[int(day[5:7]) - 1]} {_ordinal(int(day[8:]))}, {day[:4]}"
    name = path.rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    return unquote(stem.replace("___", "/")) if "___" in stem.strip("_") else None


def file_of_page(page: str) -> str | None:
    """The path, without ``.md``, of the file that holds a page; None if it is the page's name."""
    day = _DAY.fullmatch(page)
    if day is not None:
        month = _MONTHS.index(day[1].title()) + 1
        return f"journals/{day[3]}_{month:02}_{int(day[2]):02}"
    if "/" not in page.strip("/"):
        return None
    return _ENCODED.sub(lambda match: quote(match[0]), page).replace("/", "___")


def _ordinal(number: int) -> str:
    suffix = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
