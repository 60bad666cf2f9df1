"""What the pages of the state share: who may change something, forms with errors, reasons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from qmd.errors import QmdError
from qmd.server.endpoints.definition import RestError
from qmd.server.page.site import Site


def can_change(site: Site) -> bool:
    """Whether the server takes what changes the index or files."""
    return site.may_administer and not site.read_only and site.kb.policy.writable


def require_change(site: Site) -> None:
    """Raises RestError (403)."""
    require_writes(site)
    if not can_change(site):
        raise RestError(403, "This is for the administrator; your token opens notes alone.")


def require_writes(site: Site) -> None:
    """Raises RestError (403): Not even notes may be changed."""
    if site.read_only or not site.kb.policy.writable:
        raise RestError(
            403,
            "This server is read-only.\n\n"
            "Start it without --read-only to allow what changes the index.",
        )


def reason_text(site: Site, request: Request, start: str, reason: str) -> str | None:
    """
    What a reason means, in the person's language; None for a reason without a text.

    Args:
        start: ``health.skip_`` for files that were skipped, ``health.rule_`` for rules, or
            ``health.reason_`` for the name of the reason.
    """
    name = start + reason.lower().lstrip("._").rstrip("_").replace(" ", "_")
    if name not in site.texts.names():
        return None
    return site.texts.text(site.language(request), name)


async def attempt(site: Site, request: Request, work: Callable[[], object]) -> QmdError | None:
    """
    Run what a form asks for, and return an error that the person can mend in the form.

    Raises:
        RestError: The server is read-only.
        QmdError: An error of the server.
    """
    require_change(site)
    try:
        await site.run(request, work)
    except QmdError as error:
        if error.http_status >= 500:
            raise
        return error
    return None


def form_page(
    site: Site, request: Request, template: str, problem: QmdError | None, **values: Any
) -> Response:
    """A page with a form; ``problem`` stands above the form."""
    status = 200 if problem is None else problem.http_status
    allowed = can_change(site)
    return site.page(
        request,
        template,
        http_status=status,
        problem=problem,
        can_change=allowed,
        meaning=lambda start, reason: reason_text(site, request, start, reason),
        **values,
    )
