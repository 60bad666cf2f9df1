"""What every view must be: accessible by axe-core's rules, and no wider than its window."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import Page, expect

#: The rules of axe-core that a theme can break; no others of its standard set look at colours.
OF_COLOURS = ("color-contrast", "link-in-text-block")


@cache
def _program() -> str:
    return Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")


def violations(page: Page, *rules: str) -> list[dict[str, Any]]:
    """
    The violations of axe-core that are serious or critical, each with its elements.

    axe-core is in the page. ``rules``: the only ones to look at; all without one.
    """
    options: dict[str, Any] = {"resultTypes": ["violations"], "iframes": False}
    if rules:
        options["runOnly"] = list(rules)
    result: dict[str, Any] = page.evaluate("options => axe.run(document, options)", options)
    return [
        {"rule": each["id"], "elements": [node["html"][:200] for node in each["nodes"]]}
        for each in result["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def assert_accessible(page: Page) -> None:
    """Nothing serious, in the light theme and in the dark one."""
    # `evaluate` speaks to the browser itself, so the policy of the page does not forbid it.
    page.evaluate(_program())
    # A theme is colours and nothing else, so all other rules hold in both or in none.
    for scheme, rules in (("light", ()), ("dark", OF_COLOURS)):
        # Without motion: the colours of a button would be measured on their way to the new theme.
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        expect(page.locator("[aria-busy=true]")).to_have_count(0)  # it may be pale until then
        # Half-way between two colours the contrast is that of neither.
        page.evaluate("Promise.allSettled(document.getAnimations().map(each => each.finished))")
        problems = violations(page, *rules)
        assert not problems, f"{scheme}: {problems}"


def assert_fits(page: Page) -> None:
    """Nothing sticks out of the window to the side."""
    width, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= inner, f"{width} px in a window of {inner} px"
