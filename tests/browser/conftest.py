"""
A real Chromium, and a server for it to look at.

Chromium is Debian's, or the program that QMD_CHROMIUM names. Without it these tests are skipped,
and say how to install it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)
from support.browser import program
from support.site import Served, serve

TIMEOUT_MS = 20_000
"""For a busy machine; nothing ever waits for it to pass."""
expect.set_options(timeout=TIMEOUT_MS)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of the page without a browser take the same branches, and cost less."""
    for item in items:
        if item.nodeid.startswith("tests/browser/"):
            item.add_marker(pytest.mark.unmeasured)


@pytest.fixture(scope="session")
def launched() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """
    The browser, and the event loop by which this thread speaks to it.

    Its driver takes a second of CPU to start, so one serves all modules. Between them this thread
    has no loop, so that other tests can run one.
    """
    path = program()
    if path is None:
        pytest.skip(
            "NO CHROMIUM: THE PAGE IS NOT TESTED. Install it with: apt-get install chromium"
        )
    with sync_playwright() as playwright:
        loop = asyncio.get_running_loop()
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture(scope="module")
def chromium(launched: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """For one module: as long as it runs, this thread cannot run another event loop."""
    browser, loop = launched
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


@pytest.fixture
def new_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """
    Opens pages; the options are those of a browser context, such as ``locale`` and ``viewport``.

    A test fails if one of them reports an error: of a script, of the network, or of the content
    security policy. The words of expected errors are added to ``page.expected``.
    """
    contexts: list[BrowserContext] = []
    problems: list[str] = []
    expected: list[str] = []

    def record(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(f"{message.text} {message.location['url']}")

    def open_page(**options: object) -> Page:
        context = chromium.new_context(**{"locale": "en-GB", **options})  # type: ignore[arg-type]
        context.set_default_timeout(TIMEOUT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", record)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.expected = expected  # type: ignore[attr-defined]
        return page

    yield open_page
    for context in contexts:
        context.close()
    unexpected = [text for text in problems if not any(words in text for words in expected)]
    assert not unexpected


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    return new_page()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path) as server:
        yield server
