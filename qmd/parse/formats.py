"""
Lists the formats of files that become documents, and finds the format of a file by its suffix.

A new format is a row in `FORMATS` and a parser in a module of its own, which the row names.
`qmd.files.moved_links.REWRITERS` may have a function for it, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import PurePosixPath

from qmd.records import NamedTuple, dataclass
from qmd.values.text import NOTE_SUFFIXES

MB = 1_000_000


class ParseBudget(NamedTuple):
    """
    What parsing one file may take: a part for every file, and more for each of its megabytes.

    On a computer of 2023, real texts take 0.1 to 0.2 s and some ten bytes of memory per byte.

    Attributes:
        cpu_s: Seconds of CPU time.
        memory: Bytes.
    """

    cpu_s: float = 5.0
    cpu_s_per_mb: float = 2.0
    memory: int = 512 * MB
    memory_per_mb: int = 50 * MB


@dataclass(frozen=True, slots=True)
class FileFormat:
    """
    A file format: what its files can do, what they may take, and where their parser is.

    Args:
        suffixes: In lower case, with the dot; letter case of a file's name does not matter.
        parser: Its module and function, as ``module:function``: a `qmd.parse.document.Parser`. The
            module is imported for the first file of the format.
        version: To be raised when the parser gives another result for the same bytes; the stored
            documents of this format are then parsed anew.
        max_bytes: Larger files are skipped. None for the limit of text files.
        needs: The package that the parser imports, if qmd can do without it, and the extra of qmd
            that installs it. Without it, the files are skipped with a reason that names the extra.
        else_text: Without that package, the files are plain text instead.
        reads_parts: Its parser takes a `PhotoSource` and reads a few places of the file, so a
            file may be of any size. Otherwise it takes all bytes, and the size has a limit.
        is_edited: Whether the text of its documents is that of its files, so that it can be edited.
        is_note: Whether tags, wikilinks and inline fields in what its parser makes are those of a
            note. In other formats, ``#include`` and ``[[`` are text.
        has_links: Whether its documents may have links, which a move of a note has to mind.
        picture: If its pages may be pictures: the function that draws one so that its text can be
            read (OCR), as ``module:function``. It takes the path, the bytes of the file and the
            number of the page, from 1, and returns `qmd.values.pictures.Pixels`. The parser then
            takes as its third argument what was read: page → `qmd.values.pictures.PictureText`.
        remedy: What to do with a file that holds something else; a sentence begins with it.
    """

    name: str
    suffixes: tuple[str, ...]
    parser: str
    version: int = 0
    max_bytes: int | None = None
    budget: ParseBudget = ParseBudget()
    needs: tuple[str, str] | None = None
    else_text: bool = False
    reads_parts: bool = False
    is_edited: bool = False
    is_note: bool = False
    has_links: bool = False
    picture: str | None = None
    remedy: str = "Save it as UTF-8 text if it is meant to be read"

    def __hash__(self) -> int:
        return hash(self.name)  # a parser is looked up by its format for each file


#: Any file without a suffix of another format; the mask of a collection selects its documents.
MARKDOWN = FileFormat(
    "Markdown",
    (),
    parser="qmd.parse.document:parse_document",
    version=2,
    is_edited=True,
    is_note=True,
    has_links=True,
)
PHOTO = FileFormat(
    "photo",
    (".jpg", ".jpeg", ".png", ".heic"),
    parser="qmd.parse.photo.metadata:parse_photo",
    version=2,
    reads_parts=True,
    picture="qmd.parse.pictures:picture_of_photo",
    remedy="Give it the suffix of the format it is in",
)
#: In an Obsidian vault, canvases are documents wherever notes are.
CANVAS = FileFormat(
    "canvas",
    (".canvas",),
    parser="qmd.parse.canvas:convert",
    version=1,
    is_note=True,
    has_links=True,
    remedy="Open it in Obsidian and save it again",
)
HTML = FileFormat(
    "HTML",
    (".html", ".htm", ".xhtml", ".shtml", ".mhtml", ".mht"),
    parser="qmd.parse.convert.html:convert",
    version=4,
    remedy="Save the page again",
)
PDF = FileFormat(
    "PDF",
    (".pdf",),
    parser="qmd.parse.convert.pdf:convert",
    version=5,
    picture="qmd.parse.pictures:picture_of_page",
    max_bytes=200 * MB,
    # Its streams are compressed. A page of text takes 3 ms.
    budget=ParseBudget(cpu_s=20.0, cpu_s_per_mb=1.0, memory=768 * MB, memory_per_mb=8 * MB),
    remedy="Open it in a viewer and save it again",
)
EPUB = FileFormat(
    "EPUB",
    (".epub",),
    parser="qmd.parse.convert.epub:convert",
    version=2,
    max_bytes=100 * MB,
    remedy="Open it in a reader of books and save it again",
)
TABLE = FileFormat(
    "CSV", (".csv", ".tsv", ".tab"), "qmd.parse.convert.delimited:convert", version=2
)
NOTEBOOK = FileFormat(
    "notebook",
    (".ipynb",),
    parser="qmd.parse.convert.notebook:convert",
    version=1,
    remedy="Open it in Jupyter and save it again",
)
MAIL = FileFormat(
    "e-mail",
    (".eml", ".mbox", ".mbx"),
    parser="qmd.parse.convert.mail:convert",
    version=4,
    max_bytes=100 * MB,
    remedy="Save the message again in the program that wrote it",
)
SUBTITLES = FileFormat(
    "subtitles", (".srt", ".vtt"), "qmd.parse.convert.subtitles:convert", version=2
)


def _office(name: str, suffixes: tuple[str, ...], parser: str, version: int = 1) -> FileFormat:
    return FileFormat(
        name,
        suffixes,
        parser=f"qmd.parse.convert.{parser}",
        version=version,
        max_bytes=100 * MB,
        remedy="Open it in its program and save it again",
    )


WORD = _office("Word", (".docx", ".docm"), "word:convert", version=3)
SLIDES = _office("PowerPoint", (".pptx", ".pptm"), "office:convert_slides", version=2)
SHEETS = _office("Excel", (".xlsx", ".xlsm"), "office:convert_sheets", version=2)
OPEN_DOCUMENT = _office("OpenDocument", (".odt", ".ods", ".odp"), "opendocument:convert", version=2)
RICH_TEXT = FileFormat(
    "RTF",
    (".rtf",),
    parser="qmd.parse.convert.rich_text:convert",
    version=2,
    max_bytes=100 * MB,
    remedy="Open it in a word processor and save it again",
)
ORG = FileFormat("Org", (".org",), "qmd.parse.convert.org:convert", version=1, has_links=True)
RESTRUCTURED_TEXT = FileFormat(
    "reStructuredText",
    (".rst", ".rest"),
    parser="qmd.parse.convert.restructured:convert",
    version=2,
    has_links=True,
)
ASCIIDOC = FileFormat(
    "AsciiDoc",
    (".adoc", ".asciidoc", ".asc"),
    parser="qmd.parse.convert.asciidoc:convert",
    version=1,
    has_links=True,
)
#: The languages of `qmd.parse.convert.source_code`.
CODE = FileFormat(
    "code",
    (
        *(".py", ".pyi", ".pyw", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"),
        *(".go", ".rs", ".java", ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"),
        *(".cs", ".rb", ".php", ".sh", ".bash"),
    ),
    parser="qmd.parse.convert.source_code:convert",
    version=1,
    needs=("tree_sitter", "code"),
    else_text=True,
)
FORMATS: tuple[FileFormat, ...] = (
    *(PHOTO, CANVAS, HTML, PDF, EPUB, TABLE, NOTEBOOK, MAIL, SUBTITLES),
    *(WORD, SLIDES, SHEETS, OPEN_DOCUMENT, RICH_TEXT, ORG, RESTRUCTURED_TEXT, ASCIIDOC, CODE),
)
#: Characters of a suffix, with the dot, that names a kind of files.
MAX_KIND = 8


#: The formats and the plugins that `turn_on` has added.
_of_plugins: list[FileFormat] = []
_plugins: list[str] = []


def turn_on(plugins: Iterable[str], formats: Iterable[FileFormat]) -> None:
    """
    Read files of these formats, too, in this process.

    Args:
        plugins: Whose formats they are: the names by which other processes find them.
        formats: `problem_of` finds nothing wrong with them.
    """
    _plugins[:] = plugins
    _of_plugins[:] = formats
    _by_suffix.cache_clear()


def turned_on_plugins() -> tuple[str, ...]:
    """The names of the plugins whose formats are read in this process."""
    return tuple(_plugins)


def problem_of(file_format: FileFormat) -> str | None:
    """Why a format of a plugin cannot be used, in a sentence; None if it can."""
    for suffix in file_format.suffixes:
        if not re.fullmatch(r"\.[a-z0-9]+", suffix) or suffix in NOTE_SUFFIXES:
            return f"{suffix!r} is no suffix that a format can have."
        claiming = next((each for each in FORMATS if suffix in each.suffixes), None)
        if claiming is not None:
            return f"{suffix} is a suffix of the format {claiming.name}, which qmd has."
    if file_format.is_edited or not re.fullmatch(r"[\w.]+:\w+", file_format.parser):
        return f"The format {file_format.name} names no parser, or says that it is edited."
    return None


def format_of(path: str) -> FileFormat:
    """The format as which a file of this name is read, whatever its content is."""
    _, dot, suffix = path.rpartition(".")
    return _by_suffix().get(suffix.lower(), MARKDOWN) if dot else MARKDOWN


@cache
def _by_suffix() -> dict[str, FileFormat]:
    """The format of each suffix, without its dot."""
    return {
        suffix.removeprefix("."): each
        for each in (*_of_plugins, *FORMATS)
        if not each.else_text or each.needs is None or find_spec(each.needs[0]) is not None
        for suffix in each.suffixes
    }


def is_photo(path: str) -> bool:
    """Whether a file of this name is read as a photo."""
    return format_of(path) is PHOTO


def is_shown_as_markdown(path: str) -> bool:
    """Whether the document of such a file is Markdown; all formats but plain text give Markdown."""
    return format_of(path) is not MARKDOWN or path.lower().endswith(NOTE_SUFFIXES)


def has_suffix_of_files(path: str) -> bool:
    """
    Whether a text ends as the names of files do that are notes or documents.

    Those of code and of Org are left out: things are called so, too (Node.js, example.org).
    """
    is_document = format_of(path) not in (MARKDOWN, CODE, ORG)
    return is_document or path.lower().endswith((*NOTE_SUFFIXES, ".txt"))


def has_signs_in_lines(path: str) -> bool:
    """Whether emphasis, formulas and the like count in the document of such a file."""
    return format_of(path).is_note or format_of(path) is NOTEBOOK


def kind_of(path: str) -> str:
    """What people call a file of this name: ``photo``, ``Markdown`` or its suffix, ``PDF``."""
    format_ = format_of(path)
    suffix = PurePosixPath(path).suffix
    if format_ is not MARKDOWN or suffix.lower() in NOTE_SUFFIXES:
        return format_.name
    return suffix[1:].upper() if 1 < len(suffix) <= MAX_KIND and suffix.isprintable() else "other"
