"""
The page: what a person sees of the server in a browser.

`site.Site` is what all views share: it renders templates, runs calls of the knowledge base on
threads, and refuses a form without the token of this page. Each view is a module with
``routes(site)``; its templates, styles, scripts and texts have the view's name in ``templates/``,
``static/`` and ``texts/``.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from qmd.server import file_paths  # noqa: F401 - makes the kind "file" known to routes
from qmd.server.page import (
    ask,
    change,
    edit,
    files,
    health,
    history,
    login,
    new_note,
    note,
    photos,
    search,
    suggest,
)
from qmd.server.page.site import Site

_VIEWS = (
    search,
    suggest,
    ask,
    change,
    edit,
    files,
    health,
    history,
    new_note,
    note,
    photos,
    login,
)


def page_routes(site: Site) -> list[BaseRoute]:
    """The routes of all views and of the files that they load."""

    async def help_(request: Request) -> Response:
        """The keys of the page and the language of queries, whole or for a dialog."""
        is_part = request.url.path.startswith("/part/")
        return site.page(request, "help_part.html" if is_part else "help.html")

    return [
        site.static.route(),
        site.route("/help", help_),
        site.route("/part/help", help_),
        *(route for view in _VIEWS for route in view.routes(site)),
    ]
