"""The form in which a person types a token, and the button that ends the session."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.errors import QmdError
from qmd.server.page.site import Problem, Site
from qmd.server.sessions import COOKIE, LOGIN_PATH, LOGOUT_PATH, cookie_name, own_path, set_cookie


def routes(site: Site) -> list[Route]:
    sessions = site.sessions
    if sessions is None or not sessions.takes_tokens:
        return []

    def form(
        request: Request, following: str, problem: str = "", *, http_status: int = 200
    ) -> Response:
        values = {
            "following": own_path(following),
            "problem": Problem(site.text(request, problem)) if problem else None,
            "is_login": True,
        }
        return site.page(request, "login.html", values, http_status=http_status)

    async def show(request: Request) -> Response:
        return form(request, request.query_params.get("next", "/"))

    async def log_in(request: Request) -> Response:
        sent = site.form(request)
        try:
            cookie = await sessions.log_in(sent.get("token").strip())
        except QmdError:
            return form(request, sent.get("next"), "login.no_lookup", http_status=503)
        if cookie is None:
            return form(request, sent.get("next"), "login.not_valid", http_status=401)
        sessions.end(request.scope)
        response = site.redirect(own_path(sent.get("next")))
        set_cookie(response, request, COOKIE, cookie)
        return response

    async def log_out(request: Request) -> Response:
        sessions.end(request.scope)
        response = site.redirect(LOGIN_PATH)
        response.delete_cookie(
            cookie_name(request.scope, COOKIE), httponly=True, samesite="strict", path="/"
        )
        return response

    async def answer(request: Request) -> Response:
        return await (log_in if request.method == "POST" else show)(request)

    async def show_again(request: Request, _: QmdError) -> Response:
        sent = site.form(request)
        return form(request, sent.get("next"), "login.stale", http_status=403)

    return [
        site.route(LOGIN_PATH, answer, ("GET", "POST"), stale=show_again),
        site.route(LOGOUT_PATH, log_out, ("POST",)),
    ]
