"""
The page: what a person sees of the server in a browser.

A view is a function from a request to a page (`views`). `site.Site` runs it on a thread, renders
its template, and refuses a form without the token of this page. The templates, styles, scripts and
texts of a view have the name of its module in ``templates/``, ``static/`` and ``texts/``.
"""

from __future__ import annotations

from starlette.routing import BaseRoute

from qmd.server.endpoints import definition  # noqa: F401 - makes "file" known to routes
from qmd.server.page import (
    ask,
    beside,
    capture,
    days,
    edit,
    files,
    health,
    history,
    login,
    note,
    pdf,
    photos,
    search,
    suggest,
)
from qmd.server.page.site import Site
from qmd.server.page.views import PageView, Shown, Visit, view_routes

__all__ = ["Site", "page_routes"]


def _help(visit: Visit) -> Shown:
    """The keys of the page and the language of queries, whole or for a dialog."""
    return Shown("help_part.html" if visit.is_part else "help.html")


_VIEWS = (
    *search.VIEWS,
    *note.VIEWS,
    *edit.VIEWS,
    *days.VIEWS,
    *history.VIEWS,
    *files.VIEWS,
    *beside.VIEWS,
    *health.VIEWS,
    *ask.VIEWS,
    PageView("/help", _help),
    PageView("/part/help", _help),
)


def page_routes(site: Site) -> list[BaseRoute]:
    """The routes of all views and of the files that they load."""
    of_site = (capture, login, pdf, photos, suggest)  # which keep something, or need the event loop
    return [
        site.static.route(),
        *view_routes(site, _VIEWS),
        *(route for view in of_site for route in view.routes(site)),
    ]
