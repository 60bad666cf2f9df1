"""
The page: what a person sees of the server in a browser.

`site.Site` is what all views share: it renders templates, runs calls of the knowledge base on
threads, and refuses a form without the token of this page. Each view is a module with
``routes(site)``; its templates, styles, scripts and texts have the view's name in ``templates/``,
``static/`` and ``texts/``.
"""

from __future__ import annotations

from starlette.routing import BaseRoute

from qmd.server import file_paths  # noqa: F401 - makes the kind "file" known to routes
from qmd.server.page import (
    ask,
    change,
    edit,
    files,
    health,
    help_page,
    history,
    live,
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
    help_page,
    live,
    login,
)


def page_routes(site: Site) -> list[BaseRoute]:
    """The routes of all views and of the files that they load."""
    return [
        site.static.route(),
        *(route for view in _VIEWS for route in view.routes(site)),
    ]
