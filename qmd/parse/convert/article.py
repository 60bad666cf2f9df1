"""
Finds the article of a page: what is left without navigation, adverts, heads and feet.

A page that says what its article is (``<main>``, ``<article>``, the names that generators use) is
believed if that holds most of the text that is no link. Otherwise the whole page counts. Either way
blocks that are mostly links, or say that they are navigation, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from qmd.parse.convert.html_blocks import SILENT, Element, is_hidden, local_name, walk

_ARTICLE_NAMES = re.compile(
    r"(?:^|\s)(?:main-?content|article-?(?:body|content)|post-?(?:body|content)|entry-?content|"
    r"mw-content-text|markdown-body|js_content|rich_media_content|content|story-?body)(?:$|\s)",
    re.IGNORECASE,
)
_NAVIGATION = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|navheader|navfooter|navbox|sphinxsidebar|breadcrumbs?|"
    r"cookies?|consent|newsletter|noprint|catlinks|pagination|pager)(?:$|[\s_-])",
    re.IGNORECASE,
)
_OTHER_NAMES = re.compile(
    r"(?:^|[\s_-])(?:menu|sidebar|footer|header|shar(?:e|ing)|social|related|advert\w*|ads?|promo|"
    r"subscribe|popup|modal|toc|skip|jump|banner|toolbar|topbar|masthead|paywall|copyright)(?:$|[\s_-])",
    re.IGNORECASE,
)
_EDIT_LINKS = re.compile(r"(?:^|\s)(?:mw-editsection|headerlink|anchorjs-link)(?:$|\s)")
_OTHER_ROLES = frozenset(
    ("navigation", "banner", "contentinfo", "search", "menu", "menubar", "dialog", "toolbar")
)
_OTHER_ELEMENTS = frozenset(("header", "aside", "form"))
#: Characters of a block that counts as navigation by its name alone.
_SHORT = 300


class _Size(NamedTuple):
    """Characters of an element, and those of links and of code and tables among them."""

    text: int
    links: int
    kept: int
    has_title: bool

    @property
    def prose(self) -> int:
        return self.text - self.links


class Article(NamedTuple):
    """The element that holds an article, and those in it that are left out."""

    root: Element
    skipped: frozenset[Element]


def find_article(page: Element) -> Article:
    """The article of a page."""
    sizes = _sizes(page)
    whole = sizes[page]
    skipped = frozenset(_others(page, sizes))
    kept = whole.kept - sum(sizes[each].kept for each in skipped)
    best = page
    for element in _candidates(page, skipped, sizes):
        size = sizes[element]
        smallest = sizes[best]
        if size.prose * 2 > whole.prose and size.kept * 5 >= kept * 4 and size.text < smallest.text:
            best = element
    return Article(best, skipped)


def _candidates(
    page: Element, skipped: frozenset[Element], sizes: dict[Element, _Size]
) -> Iterator[Element]:
    for element in _outside(page, skipped, sizes):
        name, attributes = local_name(element), element.attrib
        if (
            name in ("main", "article")
            or attributes.get("role") in ("main", "article")
            or attributes.get("itemprop") == "articleBody"
            or _ARTICLE_NAMES.search(attributes.get("id") or "")
            or _ARTICLE_NAMES.search(attributes.get("class") or "")
        ):
            yield element


def _others(page: Element, sizes: dict[Element, _Size]) -> Iterator[Element]:
    """The outermost elements that are no part of any article."""
    prose = sizes[page].prose
    stack = [page]
    while stack:
        for child in stack.pop():
            size = sizes.get(child)
            if size is None:
                continue
            if _is_other(child, size, prose):
                yield child
            else:
                stack.append(child)


def _is_other(element: Element, size: _Size, prose: int) -> bool:
    name, attributes = local_name(element), element.attrib
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
    if _EDIT_LINKS.search(names):
        return True
    is_navigation = (
        name in ("nav", "footer")
        or attributes.get("role") in _OTHER_ROLES
        or _NAVIGATION.search(names) is not None
    )
    if size.has_title:
        return False
    if not is_navigation and name not in _OTHER_ELEMENTS and not _OTHER_NAMES.search(names):
        return False
    return _is_beside_text(size, prose, is_navigation=is_navigation)


def _is_beside_text(size: _Size, prose: int, *, is_navigation: bool) -> bool:
    """Whether what has such a name is little beside the text of its page."""
    is_short = size.text < _SHORT
    is_of_links = size.links * 3 > size.text
    # A name may mislead: what holds much of the text stays. But of a page that is little more than
    # a list of chapters, the links to its neighbours are much of the text.
    if size.prose * 4 > prose and not (is_short and (is_navigation or is_of_links)):
        return False
    return is_navigation or (size.kept * 2 <= size.text and (is_short or is_of_links))


def _outside(
    page: Element, skipped: frozenset[Element], sizes: dict[Element, _Size]
) -> Iterator[Element]:
    """The elements that are shown, those that are left out excepted."""
    stack = [page]
    while stack:
        element = stack.pop()
        yield element
        stack += [child for child in element if child in sizes and child not in skipped]


def _sizes(page: Element) -> dict[Element, _Size]:
    """The size of each element that is shown."""
    sizes: dict[Element, _Size] = {}
    open_sizes: list[list[int]] = [[0, 0, 0, 0]]
    hidden = links = kept = 0
    for element, begins in walk(page):
        name = local_name(element)
        is_silent = name in SILENT or not name or is_hidden(element)
        step = 1 if begins else -1
        hidden += step * is_silent
        links += step * (name == "a")
        kept += step * (name in ("pre", "table"))
        if begins:
            open_sizes.append([0, 0, 0, int(name == "h1")])
            text = element.text
        else:
            size = open_sizes.pop()
            for index, number in enumerate(size):
                open_sizes[-1][index] += number
            if not hidden and not is_silent:
                sizes[element] = _Size(size[0], size[1], size[2], bool(size[3]))
            text = element.tail if element is not page else None
        if text and not hidden:
            length = len(text) if text.isascii() else len(text) + len(text.encode()) // 3
            length = length if not text.isspace() else 0
            count = open_sizes[-1]
            count[0] += length
            count[1] += length * bool(links)
            count[2] += length * bool(kept)
    sizes.setdefault(page, _Size(0, 0, 0, has_title=False))
    return sizes
