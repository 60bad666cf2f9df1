"""The view that creates a note, at ``/new``. A wikilink without a note leads here."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from qmd.errors import ConflictError, QmdError
from qmd.kb import KnowledgeBase
from qmd.server.page.browser import Form, FormNotice
from qmd.server.page.edit import wants_json
from qmd.server.page.forms import WRITE_S
from qmd.server.page.links import address
from qmd.server.page.site import Site
from qmd.values import Collection

_HEADING = re.compile(r"^(?:---\n.*?\n---\n)?\s*#?[ \t]*([^\n]*)", re.DOTALL)
_NOT_IN_NAMES = re.compile(r'[\\/<>:"|?*#^\[\]\x00-\x1f]+')
_MAX_NAME = 80  # characters of a suggested name
_MAX_FOLDERS = 500
_READ_DOCUMENTS = 20_000


def routes(site: Site) -> list[Route]:
    async def new_note(request: Request) -> Response:
        collections = await site.run(request, site.kb.writable_collections)
        if request.method != "POST":
            return await _page(site, request, collections, _from_link(request, collections))
        fields = _sent(site.form(request), collections)
        try:
            site.require_notes(request)
            path = "/".join(filter(None, (fields["collection"], fields["folder"], fields["name"])))
            if not fields["name"]:
                raise ConflictError(site.text(request, "edit.needs_name"))
            created = await site.run(
                request,
                lambda: site.kb.create_note(path, site.form(request).get("text")),
                timeout_s=WRITE_S,
            )
        except QmdError as error:
            return await _page(
                site,
                request,
                collections,
                fields,
                problem=site.error_text(request, error),
                http_status=error.http_status if error.http_status < 500 else 409,
            )
        words = site.text(request, "edit.created")
        site.notify(
            request,
            FormNotice(
                f"{words} {site.translated(request, created.problem or '')}".strip(),
                created.change,
            ),
        )
        note = f"/note/{address(created.file)}"
        return JSONResponse({"address": note}) if wants_json(request) else site.redirect(note)

    async def after_stale_token(request: Request) -> Response:
        collections = await site.run(request, site.kb.writable_collections)
        fields = _sent(site.form(request), collections)
        problem = site.text(request, "edit.stale")
        return await _page(site, request, collections, fields, problem=problem, http_status=403)

    return [site.route("/new", new_note, ("GET", "POST"), stale=after_stale_token)]


async def _page(
    site: Site,
    request: Request,
    collections: list[Collection],
    fields: dict[str, str],
    *,
    problem: str | None = None,
    http_status: int = 200,
) -> Response:
    names = [each.name for each in collections]
    folders = await site.run(request, lambda: _folders(site.kb, names))
    return site.page(
        request,
        "new.html",
        http_status=http_status,
        collections=names,
        fields=fields,
        folders=folders,
        problem=problem,
        may_write=bool(names) and not site.read_only,
    )


def _from_link(request: Request, collections: list[Collection]) -> dict[str, str]:
    """
    The fields as a link asks for them: ``?name=folder/Note#Heading&from=collection/path``, where
    ``from`` is the note with the link.
    """
    query = request.query_params
    names = [each.name for each in collections]
    path = re.split(r"[#^|]", query.get("name", ""))[0].strip().strip("/")
    collection = query.get("collection") or query.get("from", "").partition("/")[0]
    first, _, rest = path.partition("/")
    if rest and first in names and (not collection or first == collection):
        collection, path = first, rest
    folder, _, name = path.rpartition("/")
    name = name.removesuffix(".md")
    return {
        "collection": collection if collection in names else (names or [""])[0],
        "folder": folder or query.get("folder", "").strip("/"),
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
    title = match[1] if match is not None else ""
    words = _NOT_IN_NAMES.sub(" ", title.strip("# \t")).split()
    return " ".join(words)[:_MAX_NAME].strip(" .")


def _folders(kb: KnowledgeBase, collections: list[str]) -> list[str]:
    """The folders of some collections that hold documents."""
    folders: set[str] = set()
    for name in collections:
        for document in kb.documents(name, limit=_READ_DOCUMENTS):
            folder = document.path.rpartition("/")[0]
            if folder:
                folders.add(folder)
    return sorted(folders)[:_MAX_FOLDERS]
