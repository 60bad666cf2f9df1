"""
The view that keeps a thought or a page of the web, at ``/add``, and files beside notes.

Phones install it as an app and share to it; bookmarklets lead to it. What is in its address only
fills its fields: nothing is written before the person has sent the form.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from threading import BoundedSemaphore, Lock
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.routing import Route

from qmd.errors import ConflictError, InputError
from qmd.parse.convert.blocks import link
from qmd.parse.convert.in_note import inert_in_note, inert_markdown, without_templates
from qmd.parse.lines import split_lines
from qmd.server.page.links import note_address
from qmd.server.page.site import Site
from qmd.server.page.views import Answer, PageView, Shown, Visit, view_routes
from qmd.system.web import addresses_in
from qmd.values.writing import Attachment

#: A page with its pictures may take so long.
_SAVE_S = 90.0
#: Thoughts whose ids are remembered, so that one that is sent twice is kept once.
_REMEMBERED = 1000
_SAVES = 2
_MAX_ID = 100


def _shown(visit: Visit) -> Shown:
    return _form(visit, *_from_address(visit))


def _again(visit: Visit) -> Shown:
    return _form(visit, visit["text"], visit["url"])


def _form(visit: Visit, text: str, url: str) -> Shown:
    base = str(visit.request.base_url)
    script = (
        f"javascript:void(location.href={json.dumps(base + 'add')}+'?'+new URLSearchParams("
        "{url:location.href,title:document.title,text:String(getSelection())}))"
    )
    may_write = not visit.site.read_only and bool(visit.kb.writable_collections())
    values = {
        "text": text,
        "url": url,
        "bookmarklet": script,
        "may_write": may_write,
        "is_part": visit.is_part,
    }
    return Shown("capture_part.html" if visit.is_part else "capture.html", values)


def _from_address(visit: Visit) -> tuple[str, str]:
    """The text and the address of a page, as a bookmarklet or another app has sent them."""
    text, title = (visit.query(name).strip()[:100_000] for name in ("text", "title"))
    url = visit.query("url").strip() or next(addresses_in(text), "")
    if urlsplit(url).scheme not in ("http", "https"):
        # Any page may link here, and another app shares what somebody wrote to the person.
        return inert_markdown("\n".join(filter(None, (title, text)))), ""
    rest = text.replace(url, "").strip()
    # Of what the page says nothing is the person's task, tag or fact.
    quoted = "\n".join(f"> {line}".rstrip() for line in split_lines(inert_markdown(rest)))
    named = link(without_templates(inert_in_note(title or url)), url)
    return "\n".join(filter(None, (named, quoted))), url


class _Captures:
    """Keeps thoughts; one that a browser sends again, because it saw no answer, is kept once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, str] = OrderedDict()  # id → the file of the note
        self._lock = Lock()
        self._saves = BoundedSemaphore(_SAVES)  # so that slow sites leave threads for other views

    def send(self, visit: Visit) -> Answer:
        if visit["action"] == "save":
            if not self._saves.acquire(blocking=False):
                raise ConflictError(
                    "Other pages are being saved at the moment.",
                    hint="Send the form again in a while.",
                )
            try:
                return _save(visit)
            finally:
                self._saves.release()
        name = visit["id"][:_MAX_ID]
        if not name:
            return self._keep(visit, "")
        with self._lock:  # two tabs may send the same one
            if name in self._kept:
                file = self._kept[name]
                return _answer(visit, file, visit.text("capture.added", file=file))
            return self._keep(visit, name)

    def _keep(self, visit: Visit, name: str) -> Answer:
        kept = visit.kb.capture(visit["text"], at=visit["at"] or None)
        if name:
            self._kept[name] = kept.file
            while len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
        words = visit.text("capture.added", file=kept.file)
        return _answer(visit, kept.file, words, kept.problem, kept.change)


def _save(visit: Visit) -> Answer:
    saved = visit.kb.save_page(visit["url"])
    is_same = saved.saved_as == "unchanged"
    words = visit.text("capture.saved_same" if is_same else "capture.saved", file=saved.file)
    if saved.left_out:
        words += " " + visit.text("capture.left_out", n=saved.left_out)
    return _answer(visit, saved.file, words, saved.problem, saved.change)


def _answer(
    visit: Visit, file: str, words: str, problem: str | None = None, change: int | None = None
) -> Answer:
    if visit.wants_json:
        more = visit.site.translated(visit.request, problem or "")
        return JSONResponse({"said": f"{words} {more}".strip(), "address": note_address(file)})
    visit.notify(words, problem, change)
    return "/add" if visit["action"] != "save" else note_address(file)


def _attach(visit: Visit) -> Answer:
    name = visit.query("name")
    if not name or not visit.sent_file:
        raise InputError("There is nothing to keep.", hint="Choose a file.")
    kept = visit.kb.attach(visit.path.get("file"), Attachment(name, visit.sent_file))
    return JSONResponse({"file": kept.file, "link": kept.link})


def routes(site: Site) -> list[Route]:
    captures = _Captures()
    return view_routes(
        site,
        (
            PageView("/add", _shown, captures.send, "writer", again=_again, timeout_s=_SAVE_S),
            PageView("/part/add", _shown),
            PageView("/attach", act=_attach, sender="writer"),
            PageView("/attach/{file:file}", act=_attach, sender="writer"),
        ),
    )
