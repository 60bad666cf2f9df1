"""
The formats of files that become documents, by the suffixes of their names.

A new format is a row in `FORMATS`, a parser in a module beside this one, and a line for it in
`qmd.ingest.parse_file.PARSERS`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileFormat:
    """
    What is to be known of a format before a file is opened.

    Args:
        suffixes: In lower case, with the dot; letter case of a file's name does not matter.
        reads_parts: Its parser takes a `PhotoSource` and reads a few places of the file, so a
            file may be of any size. Otherwise it takes all bytes, and the size has a limit.
        remedy: What to do with a file that holds something else; a sentence begins with it.
    """

    name: str
    suffixes: tuple[str, ...]
    reads_parts: bool = False
    remedy: str = "Save it as UTF-8 text if it is meant to be read"


#: Every file that no other format claims: which files are documents is for a mask to say.
MARKDOWN = FileFormat("Markdown", ())
PHOTO = FileFormat(
    "photo",
    (".jpg", ".jpeg", ".png", ".heic"),
    reads_parts=True,
    remedy="Give it the suffix of the format it is in",
)
FORMATS = (PHOTO,)


def format_of(path: str) -> FileFormat:
    """The format that a file of this name is read as, whatever it holds."""
    name = path.lower()
    return next((each for each in FORMATS if name.endswith(each.suffixes)), MARKDOWN)


def is_photo(path: str) -> bool:
    """Whether a file of this name is read as a photo."""
    return format_of(path) is PHOTO
