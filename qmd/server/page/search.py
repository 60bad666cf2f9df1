"""
The view that searches, at ``/``.

A query is an address: ``/?q=…&mode=…`` and the filters. ``/part/hits`` takes the same and answers
with the hits alone, for the script that searches while the person types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import urlencode

from qmd.engine_text import engine_text
from qmd.errors import DocumentNotFoundError, InputError, QmdError
from qmd.kb import KnowledgeBase
from qmd.parse.formats import PDF, format_of, is_photo, is_shown_as_markdown
from qmd.server.activity import SearchKind
from qmd.server.page.note_text import has_signs, plain_line
from qmd.server.page.templating import lines_of
from qmd.server.page.views import PageView, Shown, Visit
from qmd.values import Filters, Hit, SearchReply, SearchRequest
from qmd.values.graph import RecentChange
from qmd.values.search import SHOWING

#: How to search: the word in the address → the command.
MODES = {"words": "search", "meaning": "vsearch", "both": "query"}

_STEP = 20  # hits of the first page, and how many more the link at its end shows
_MAX_HITS = 200
_RECENT = 8
_MEANT = 3  # names that are offered where nothing matches


@dataclass(frozen=True, slots=True)
class SearchView:
    """What the address of the page says: the query, how to search, and the filters."""

    query: str
    mode: str
    filters: Filters
    limit: int

    def address(self, changes: Mapping[str, object] = MappingProxyType({})) -> str:
        """The address of this search, with other values of some parameters."""
        values: dict[str, object] = {
            "q": self.query,
            "mode": self.mode if self.mode != "both" else "",
            "collection": self.filters.collections,
            "path": self.filters.path or "",
            "tag": self.filters.tags,
            "property": self.filters.properties,
            "after": self.filters.after or "",
            "before": self.filters.before or "",
            "n": self.limit if self.limit != _STEP else "",
        }
        sent = {name: value for name, value in {**values, **changes}.items() if value}
        return f"/?{urlencode(sent, doseq=True)}" if sent else "/"

    def active(self) -> list[tuple[str, str, str]]:
        """The filters: name, value, and the address without this one."""
        filters = self.filters
        several = {
            "collection": filters.collections,
            "tag": filters.tags,
            "property": filters.properties,
        }
        single = {"path": filters.path, "after": filters.after, "before": filters.before}
        return [
            (name, value, self.address({name: [other for other in values if other != value]}))
            for name, values in several.items()
            for value in values
        ] + [(name, value, self.address({name: ""})) for name, value in single.items() if value]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a snippet: its number and its parts, each with whether it matches."""

    number: int
    parts: list[tuple[str, bool]]


def _view(visit: Visit) -> SearchView:
    """
    What a request asks for.

    Raises:
        InputError: A value cannot be read.
    """
    values = visit.request.query_params

    def several(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(filter(None, map(str.strip, values.getlist(name)))))

    mode = visit.query("mode") or "both"
    if mode not in MODES:
        raise InputError(
            engine_text("There is no mode '{mode}'.", mode=mode), hint=f"Modes: {', '.join(MODES)}."
        )
    limit = visit.number(visit.query("n") or str(_STEP))
    if limit is None or not 1 <= limit <= _MAX_HITS:
        raise InputError(engine_text("The number of hits must be 1 to {most}.", most=_MAX_HITS))
    filters = Filters(
        collections=several("collection"),
        path=visit.query("path").strip() or None,
        tags=tuple(tag.lstrip("#") for tag in several("tag")),
        properties=several("property"),
        after=visit.query("after").strip() or None,
        before=visit.query("before").strip() or None,
    )
    return SearchView(visit.query("q").strip(), mode, filters, limit)


def _hits(visit: Visit) -> dict[str, Any]:
    """What the hits' template shows: the hits and what stands beside them, or what is wrong."""
    try:
        view = _view(visit)
        if not view.query:
            return {"view": view, "reply": None}
        is_typing = "typing" in visit.request.query_params
        # Half of a word is no misspelt one.
        search = SearchRequest(
            view.query, limit=view.limit, filters=view.filters, spelling=not is_typing
        )
        reply = visit.kb.run_search(MODES[view.mode], search)  # type: ignore[arg-type]
        visit.site.note_search(visit.request, cast("SearchKind", view.mode), len(reply.hits))
    except QmdError as error:
        if error.http_status >= 500:
            raise
        view = SearchView(visit.query("q"), "both", Filters(), _STEP)
        problem = visit.site.problem(visit.request, error)
        status = error.http_status
        return {"view": view, "reply": None, "problem": problem, "http_status": status}
    beside = _beside(visit.kb, view, reply, is_typing=is_typing)
    return {"view": view, "reply": reply, **_shown(view, reply), **beside}


def _search(visit: Visit) -> Shown:
    hits = _hits(visit)
    collections = visit.kb.collections()
    recent: Sequence[RecentChange] = ()
    if collections and not hits["reply"]:
        recent = visit.kb.recent(limit=_RECENT).changes
    values = {
        "modes": tuple(MODES),
        "collections": collections,
        "recent": recent,
        "indexing": visit.kb.freshness(embeddings_pending=0).indexing,
    }
    # The script shows the part with the hits, whatever is wrong.
    return Shown("search.html", {**values, **hits}, hits.get("http_status", 200))


VIEWS = (
    PageView("/", _search),
    PageView("/part/hits", lambda visit: Shown("search_hits.html", _hits(visit))),
)


def _shown(view: SearchView, reply: SearchReply) -> Mapping[str, object]:
    from qmd.search.present import splitter

    split = splitter(view.query)
    shown = str if has_signs(view.query) else plain_line
    more = replace(view, limit=min(_MAX_HITS, view.limit + _STEP))
    is_full = len(reply.hits) == view.limit < _MAX_HITS
    sentences = lines_of(reply.notice or "")
    return {
        "is_of_suggestion": sentences[0].startswith(SHOWING),
        "sentences": sentences[1:] if reply.suggestion else sentences,
        "titles": {hit.file: split(hit.title) for hit in reply.hits},
        "lines": {
            hit.file: _lines(hit, split, shown if is_shown_as_markdown(hit.file) else str)
            for hit in reply.hits
        },
        # A PDF is shown by page; the words are marked on it.
        "marking": {
            hit.file: f"&{urlencode({'q': view.query})}" if format_of(hit.file) is PDF else ""
            for hit in reply.hits
        },
        "photos": {hit.file for hit in reply.hits if is_photo(hit.file)},
        "more": more.address() if is_full else None,
    }


def _beside(
    kb: KnowledgeBase, view: SearchView, reply: SearchReply, *, is_typing: bool
) -> Mapping[str, object]:
    """
    What stands beside the hits: whether the index is behind, and what may have been meant.

    Args:
        is_typing: The person types on. Similar names are not looked for then: comparing those of
            10,000 notes takes 40 ms of CPU time.
    """
    may_be_meant = not (reply.hits or is_typing)
    return {
        "fresh": kb.freshness(embeddings_pending=reply.needs_embedding),
        "meant_tags": _similar_tags(kb, view) if may_be_meant else [],
        "meant_notes": _similar_notes(kb, view.query) if may_be_meant else (),
    }


def _similar_tags(kb: KnowledgeBase, view: SearchView) -> list[tuple[str, str]]:
    """Tags like those that the search names and no document has: the tag, and its search."""
    from qmd.search.query import parse_string

    similar = []
    for number, tag in enumerate(view.filters.tags[:_MEANT]):
        for near in kb.tags(tag, limit=1).nearest[:_MEANT]:
            tags = [*view.filters.tags[:number], near, *view.filters.tags[number + 1 :]]
            similar.append((near, view.address({"tag": tags})))
    for tag in parse_string(view.query).tags[:_MEANT]:
        written = re.compile(rf'(?<!\S)((?:#|tag[:：])"?){re.escape(tag)}', re.IGNORECASE)
        if match := written.search(view.query):
            for near in kb.tags(tag, limit=1).nearest[:_MEANT]:
                query = view.query[: match.end(1)] + near + view.query[match.end() :]
                similar.append((near, view.address({"q": query})))
    return similar[:_MEANT]


def _similar_notes(kb: KnowledgeBase, query: str) -> tuple[str, ...]:
    """Notes whose names are like the query."""
    try:
        return (kb.get(query, max_lines=1).document.file,)
    except DocumentNotFoundError as error:
        return error.suggestions
    except QmdError:  # the query is no name
        return ()


def _lines(
    hit: Hit, split: Callable[[str], list[tuple[str, bool]]], shown: Callable[[str], str]
) -> list[Line]:
    """The lines ``N: text`` of a snippet as ``shown`` gives them; not the title once more."""
    lines: list[Line] = []
    title: list[Line] = []
    for line in hit.snippet.split("\n"):
        number, _, text = line.partition(": ")
        text = shown(text)
        if number.isdecimal() and text.strip():
            (title if text == hit.title else lines).append(Line(int(number), split(text)))
    return lines or title
