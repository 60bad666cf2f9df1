"""
Finds the title of a document: what its properties, its headings or its file's name say.

And its description: what its frontmatter says that it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from qmd.parse.frontmatter import is_placeholder
from qmd.values import Heading
from qmd.values.names import file_stem, journal_day, page_of_file, post_name

#: Characters of a title; it goes to the embedding model with every chunk.
MAX_TITLE = 1000
#: The names under which sites and vaults keep a description; the first that has a text counts.
NAMES = ("description", "summary", "abstract", "excerpt", "desc")
#: Characters of a description. A longer one is no description, and its rest is found all the same,
#: because full text has the whole frontmatter.
MAX_DESCRIPTION = 4000


def find_title(
    path: str, properties: Mapping[str, object], headings: Sequence[Heading]
) -> tuple[str, Literal["frontmatter", "heading", "filename"]]:
    """
    The title and where it is from: the properties, the first heading of level 1, the file's name.

    Headings of other levels name parts of a document: dozens of notes may begin with the same one.
    """
    value = properties.get("title")
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        title = " ".join(str(value).split())[:MAX_TITLE].rstrip()
        if title and not is_placeholder(title):
            return title, "frontmatter"
    for heading in headings:
        if heading.level == 1 and heading.text and not is_placeholder(heading.text):
            return heading.text, "heading"
    return title_of_file(path), "filename"


def title_of_file(path: str) -> str:
    """
    A file's name without its suffix, in the form that Logseq shows.

    Logseq writes the page ``work/plan`` to ``work___plan.md`` (other signs as in a URL), and the
    journal "Mar 1st, 2025" to ``journals/2025_03_01.md``. The time stamp of a post's name is left
    out; a date alone stays, because it is what tells meetings and daily notes apart.
    """
    page = page_of_file(path)
    if page is not None and journal_day(path) is not None:
        return page
    title = file_stem(path)
    post = post_name(title)
    if post is not None and post.time is not None and post.title.strip():
        return post.title
    return page or title


def find_description(properties: Mapping[str, object]) -> str:
    """The description in the frontmatter, on one line; empty if there is none."""
    for name in NAMES:
        value = properties.get(name)
        if isinstance(value, str):
            description = " ".join(value.split())[:MAX_DESCRIPTION].rstrip()
            if description:
                return description
    return ""
