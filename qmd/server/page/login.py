"""The form in which a person types a token, and the button that ends the session."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.errors import QmdError
from qmd.server.logins import LOGIN_PATH, LOGOUT_PATH
from qmd.server.page.site import Site
from qmd.server.sessions import cookie_name


def routes(site: Site) -> list[Route]:
    logins = site.logins
    if logins is None or not logins.is_needed:
        return []

    def form(
        request: Request, following: str, problem: str = "", *, http_status: int = 200
    ) -> Response:
        values = {"following": _own_path(following), "problem": problem, "is_login": True}
        return site.page(request, "login.html", values, http_status=http_status)

    async def show(request: Request) -> Response:
        return form(request, request.query_params.get("next", "/"))

    async def log_in(request: Request) -> Response:
        sent = site.form(request)
        try:
            cookie = await logins.begin(sent.get("token").strip())
        except QmdError:
            return form(request, sent.get("next"), "login.no_lookup", http_status=503)
        if cookie is None:
            return form(request, sent.get("next"), "login.not_valid", http_status=401)
        logins.end(request.scope, _cookies(request))
        response = site.redirect(_own_path(sent.get("next")))
        response.set_cookie(
            cookie_name(request.scope),
            cookie,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
            path="/",
        )
        return response

    async def log_out(request: Request) -> Response:
        logins.end(request.scope, _cookies(request))
        if site.sessions is not None:
            site.sessions.end(request.scope, _cookies(request))
        response = site.redirect(LOGIN_PATH)
        response.delete_cookie(
            cookie_name(request.scope), httponly=True, samesite="strict", path="/"
        )
        return response

    async def answer(request: Request) -> Response:
        return await (log_in if request.method == "POST" else show)(request)

    async def show_again(request: Request) -> Response:
        sent = site.form(request)
        return form(request, sent.get("next"), "login.stale", http_status=403)

    return [
        site.route(LOGIN_PATH, answer, ("GET", "POST"), stale=show_again),
        site.route(LOGOUT_PATH, log_out, ("POST",)),
    ]


def _own_path(address: str) -> str:
    """A path on this server; that of the search for any other address."""
    is_own = address.startswith("/") and address[1:2] not in ("/", "\\") and address.isprintable()
    return address if is_own and not address.startswith(LOGIN_PATH) else "/"


def _cookies(request: Request) -> bytes:
    return "; ".join(request.headers.getlist("cookie")).encode("latin-1", "replace")
