"""The view that creates a note, at ``/new``. A wikilink without a note leads here."""

from __future__ import annotations

import re

from starlette.responses import JSONResponse

from qmd.errors import ConflictError
from qmd.files.vault import file_name_of
from qmd.kb import KnowledgeBase
from qmd.server.page.browser import Form
from qmd.server.page.links import note_address
from qmd.server.page.views import Answer, PageView, Shown, Visit
from qmd.values import Collection

_HEADING = re.compile(r"^(?:---\n.*?\n---\n)?\s*#?[ \t]*([^\n]*)", re.DOTALL)
_MAX_FOLDERS = 500
_READ_DOCUMENTS = 20_000


def _form(visit: Visit) -> Shown:
    collections = visit.kb.writable_collections()
    return _shown(visit, collections, _from_link(visit, collections))


def _again(visit: Visit) -> Shown:
    collections = visit.kb.writable_collections()
    return _shown(visit, collections, _sent(visit.form, collections))


def _create(visit: Visit) -> Answer:
    fields = _sent(visit.form, visit.kb.writable_collections())
    if not fields["name"]:
        raise ConflictError(visit.text("edit.needs_name"))
    path = "/".join(filter(None, (fields["collection"], fields["folder"], fields["name"])))
    created = visit.kb.create_note(path, visit["text"])
    visit.notify(visit.text("edit.created"), created.problem, created.change)
    note = note_address(created.file)
    return JSONResponse({"address": note}) if visit.wants_json else note


VIEWS = (PageView("/new", _form, _create, "writer", again=_again),)


def _shown(visit: Visit, collections: list[Collection], fields: dict[str, str]) -> Shown:
    names = [each.name for each in collections]
    values = {
        "collections": names,
        "fields": fields,
        "folders": _folders(visit.kb, names),
        "may_write": bool(names) and not visit.site.read_only,
    }
    return Shown("new.html", values)


def _from_link(visit: Visit, collections: list[Collection]) -> dict[str, str]:
    """
    The fields as a link asks for them: ``?name=folder/Note#Heading&from=collection/path``, where
    ``from`` is the note with the link.
    """
    names = [each.name for each in collections]
    path = re.split(r"[#^|]", visit.query("name"))[0].strip().strip("/")
    collection = visit.query("collection") or visit.query("from").partition("/")[0]
    first, _, rest = path.partition("/")
    if rest and first in names and (not collection or first == collection):
        collection, path = first, rest
    folder, _, name = path.rpartition("/")
    name = name.removesuffix(".md")
    return {
        "collection": collection if collection in names else (names or [""])[0],
        "folder": folder or visit.query("folder").strip("/"),
        "name": name,
        "text": f"# {name}\n\n" if name else "",
    }


def _sent(form: Form, collections: list[Collection]) -> dict[str, str]:
    """The fields that were sent; a name that was left empty is made of the first line."""
    fields = {name: form.get(name).strip() for name in ("collection", "folder", "name")}
    fields["folder"] = fields["folder"].strip("/")
    fields["collection"] = fields["collection"] or next((each.name for each in collections), "")
    fields["text"] = form.get("text")
    fields["name"] = fields["name"] or suggested_name(fields["text"])
    return fields


def suggested_name(text: str) -> str:
    """A file name made of the first heading or line of a text; empty without one."""
    match = _HEADING.match(text[:10_000])
    return file_name_of(match[1].strip("# \t") if match is not None else "")


def _folders(kb: KnowledgeBase, collections: list[str]) -> list[str]:
    """The folders of some collections that hold documents."""
    folders: set[str] = set()
    for name in collections:
        for document in kb.documents(name, limit=_READ_DOCUMENTS):
            folder = document.path.rpartition("/")[0]
            if folder:
                folders.add(folder)
    return sorted(folders)[:_MAX_FOLDERS]
