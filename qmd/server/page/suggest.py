"""Suggests what a query, or a link in a note, may go on with while it is being typed."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import urlencode

from starlette.routing import Route

from qmd.errors import NotFoundError
from qmd.kb import KnowledgeBase
from qmd.server.page.links import note_address
from qmd.server.page.site import Site
from qmd.server.page.views import PageView, Shown, Visit, view_routes
from qmd.values import SearchRequest
from qmd.values.properties import fold_key, fold_value
from qmd.values.text import fold

#: Seconds for which the tags and keys are kept: with 12,000 notes the keys take 200 ms to count.
KEPT_S = 30.0

#: A longer query, in characters, is a pasted text and gets no suggestions.
MAX_TYPED = 500

_NOTES, _TAGS, _KEYS, _VALUES = 4, 3, 3, 7  # the most suggestions of each kind
_LINKS = 8
_NAMED, _HITS = 6, 6  # notes of the palette: by their names, and by their words
_MOST_NAMED = 200  # files with such a name that are looked at, to tell those with the same name
_MOST_READ = 1_000  # tags, or values of a property, of those that most documents have

_TAG = re.compile(r"(-?)(?:#|tag[:：])([^\s#:：]*)$", re.IGNORECASE)
_VALUE = re.compile(r"(-?)([^\s:：\"-][^\s:：\"]*)[:：](\S*)$")
_WORD = re.compile(r"(-?)([^\s:：\"#]+)$")
_NOT_IN_LINKS = re.compile(r"[\[\]|\n]")

Kind = Literal["note", "tag", "property", "value", "link", "search"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """
    One way to go on.

    Attributes:
        text: What is shown.
        detail: The folder of a note; else how many documents have it.
        query: The query with the suggestion in it; "" for a note or a link.
        address: The page to open; "" if the query changes.
        target: What a link to the note says between its brackets; "" for all but links.
    """

    kind: Kind
    text: str
    detail: str
    query: str = ""
    address: str = ""
    target: str = ""


class SuggestedNames:
    """The tags and keys of properties, each with the number of its documents. Thread-safe."""

    def __init__(self, kb: KnowledgeBase, *, now: Callable[[], float] = time.monotonic) -> None:
        self._kb = kb
        self._now = now
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._tags: list[tuple[str, int]] = []
        self._keys: list[tuple[str, int]] = []

    def tags(self) -> Sequence[tuple[str, int]]:
        self._refresh()
        return self._tags

    def property_keys(self) -> Sequence[tuple[str, int]]:
        self._refresh()
        return self._keys

    def _refresh(self) -> None:
        with self._lock:
            if self._now() - self._read_at < KEPT_S:
                return
            tags = self._kb.tags(limit=_MOST_READ).tags
            self._tags = sorted(((each.tag, each.documents) for each in tags), key=lambda t: -t[1])
            self._keys = [(each.key, each.documents) for each in self._kb.properties()]
            self._read_at = self._now()


def suggestions(kb: KnowledgeBase, vocabulary: SuggestedNames, typed: str) -> list[Suggestion]:
    """
    Ways to go on with a query.

    Args:
        typed: The query up to the place where the person types.
    """
    if len(typed) > MAX_TYPED or not typed.strip():
        return []
    if match := _TAG.search(typed):
        return _tags(vocabulary, typed[: match.start()] + match[1], match[2], _VALUES)
    if match := _VALUE.search(typed):
        return _values(kb, vocabulary, typed[: match.start()] + match[1], match[2], match[3])
    match = _WORD.search(typed)
    notes = _notes(kb, typed.strip())
    if match is None or _is_short(match[2]):
        return notes
    before = typed[: match.start()] + match[1]
    tags = _tags(vocabulary, before, match[2], _TAGS)
    return [*notes, *tags, *_keys(vocabulary, before, match[2])]


def links(kb: KnowledgeBase, collection: str, name: str) -> list[Suggestion]:
    """
    The files of a collection to which a link may lead, by a name that begins with ``name``.

    A link names the file alone, and its path where other files have the same name. Behind names of
    files come titles and aliases; such a link shows what was chosen: ``[[file|alias]]``.
    """
    if len(name) > MAX_TYPED:
        return []
    prefix, inside = name.strip(), f"{collection}/"
    files = [file for file in kb.files_named(prefix, limit=_MOST_NAMED) if file.startswith(inside)]
    suggested = [_link(kb, file) for file in files[:_LINKS]]
    for file, title in kb.titles_beginning(prefix, limit=_MOST_NAMED):
        if len(suggested) == _LINKS:
            break
        if file.startswith(inside) and file not in files and not _NOT_IN_LINKS.search(title):
            suggested.append(_link(kb, file, title))
    return suggested


def in_properties(
    kb: KnowledgeBase, vocabulary: SuggestedNames, key: str, prefix: str
) -> list[Suggestion]:
    """
    What the properties of a note, or a tag in its text, may go on with.

    Args:
        key: The property whose value is typed; "tags" for a tag; "" for the key of a property.
    """
    if len(prefix) > MAX_TYPED or len(key) > MAX_TYPED:
        return []
    if not key:
        return _keys(vocabulary, "", prefix)
    if fold_key(key) in ("tags", "tag"):
        return _tags(vocabulary, "", prefix.removeprefix("#"), _VALUES)
    return _values(kb, vocabulary, "", key, prefix)


def palette(kb: KnowledgeBase, typed: str) -> list[Suggestion]:
    """
    Notes to go to: by their names, then by their words; and the search for all of them.

    Args:
        typed: A query.
    """
    typed = typed.strip()
    if len(typed) > MAX_TYPED or not typed:
        return []
    suggested = _notes(kb, typed, limit=_NAMED)
    addresses = {each.address for each in suggested}
    if not _is_short(typed):
        request = SearchRequest(typed, limit=_NAMED + _HITS, spelling=False)
        for hit in kb.run_search("search", request).hits:
            address = note_address(hit.file)
            if address not in addresses and len(suggested) < _NAMED + _HITS:
                folder = hit.file.rpartition("/")[0]
                suggested.append(Suggestion("note", hit.title, folder, address=address))
    search = f"/?{urlencode({'q': typed})}"
    return [*suggested, Suggestion("search", typed, "", address=search)]


def _link(kb: KnowledgeBase, file: str, shown: str = "") -> Suggestion:
    path = PurePosixPath(file.partition("/")[2])
    inside = file.removesuffix(str(path))
    name = fold(path.name)
    same_name = [
        each
        for each in kb.files_named(path.name.removesuffix(".md"), limit=_MOST_NAMED)
        if each.startswith(inside) and fold(PurePosixPath(each).name) == name
    ]
    target = (path.name if len(same_name) == 1 else str(path)).removesuffix(".md")
    if not shown:
        folder = "" if path.parent == PurePosixPath() else str(path.parent)
        return Suggestion("link", path.name.removesuffix(".md"), folder, target=target)
    return Suggestion("link", shown, str(path).removesuffix(".md"), target=f"{target}|{shown}")


def _is_short(word: str) -> bool:
    """Whether too much begins with it: one character, unless it is Chinese or the like."""
    return len(word) < 2 and word.isascii()


def _notes(kb: KnowledgeBase, prefix: str, *, limit: int = _NOTES) -> list[Suggestion]:
    if _is_short(prefix):
        return []
    notes = [
        Suggestion(
            "note",
            PurePosixPath(file).name.removesuffix(".md"),
            str(PurePosixPath(file).parent),
            address=note_address(file),
        )
        for file in kb.files_named(prefix, limit=limit)
    ]
    addresses = {each.address for each in notes}
    for file, title in kb.titles_beginning(prefix, limit=2 * limit):
        address = note_address(file)
        if len(notes) < limit and address not in addresses:
            notes.append(Suggestion("note", title, file.removesuffix(".md"), address=address))
            addresses.add(address)
    return notes


def _tags(vocabulary: SuggestedNames, before: str, prefix: str, limit: int) -> list[Suggestion]:
    """The tags with a part that begins with the prefix; those that begin with it whole first."""
    sought = fold_value(prefix)
    suited = []
    for tag, documents in vocabulary.tags():
        folded = fold_value(tag)
        if folded.startswith(sought):
            suited.append((0, tag, documents))
        elif f"/{sought}" in folded:
            suited.append((1, tag, documents))
    suited.sort(key=lambda each: each[0])
    return [
        Suggestion("tag", f"#{tag}", f"{documents:,}", f"{before}tag:{tag} ")
        for _, tag, documents in suited[:limit]
    ]


def _keys(vocabulary: SuggestedNames, before: str, prefix: str) -> list[Suggestion]:
    sought = fold_key(prefix)
    suited = [
        entry for entry in vocabulary.property_keys() if sought and entry[0].startswith(sought)
    ]
    return [
        Suggestion("property", f"{key}:", f"{documents:,}", f"{before}{key}:")
        for key, documents in suited[:_KEYS]
    ]


def _values(
    kb: KnowledgeBase, vocabulary: SuggestedNames, before: str, key: str, prefix: str
) -> list[Suggestion]:
    folded_key = fold_key(key)
    if all(folded_key != each for each, _ in vocabulary.property_keys()):
        return []
    try:
        values = kb.property_values(folded_key, limit=_MOST_READ)
    except NotFoundError:  # removed since the keys were read
        return []
    sought = fold_value(prefix.strip('"“”「」'))
    suited = [each for each in values if each.value and fold_value(each.value).startswith(sought)]
    return [
        Suggestion(
            "value",
            each.value,
            f"{each.documents:,}",
            f"{before}{folded_key}:{_quoted(each.value)} ",
        )
        for each in suited[:_VALUES]
    ]


def _quoted(value: str) -> str:
    """A value as a query says it: in quotes if it has blanks, signs or quotes of its own."""
    if re.fullmatch(r"[\w./+-]+", value):
        return value
    return '"' + value.replace('"', " ") + '"'


def routes(site: Site) -> list[Route]:
    kb, names = site.kb, SuggestedNames(site.kb)

    def shown(suggested: list[Suggestion], template: str = "suggest.html") -> Shown:
        return Shown(template, {"suggestions": suggested})

    views: dict[str, Callable[[Visit], Shown]] = {
        "suggest": lambda visit: shown(suggestions(kb, names, visit.query("q"))),
        "links": lambda visit: shown(links(kb, visit.query("collection"), visit.query("name"))),
        "palette": lambda visit: shown(palette(kb, visit.query("q")), "palette.html"),
        "properties": lambda visit: shown(
            in_properties(kb, names, visit.query("key"), visit.query("name"))
        ),
        "words": lambda _: Shown(
            "suggest_words.html",
            {"tags": names.tags(), "keys": names.property_keys(), "most": 200},
        ),
    }
    return view_routes(site, [PageView(f"/part/{part}", show) for part, show in views.items()])
