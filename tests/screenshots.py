"""
Take the pictures of the page that the documentation shows, of a folder made up for it.

    python tests/screenshots.py [NAME…]     writes docs/images/NAME.png
    python tests/screenshots.py --all DIR   each view, in both themes and languages, three widths

Needs Chromium (see `tests/browser/conftest.py`) and fonts with Chinese characters.
"""

# ruff: noqa: E402 - the path to `support` comes first

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent)]

from PIL import Image, ImageDraw, ImageFilter
from playwright.sync_api import Browser, Page, sync_playwright
from support.browser import program
from support.model_server import ModelServer, says
from support.site import Served, serve

from qmd.settings import BackendSettings
from qmd.values.photos import PhotoChange

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"

NOTES = {
    "Home server.md": """\
---
tags: [home, server]
status: running
since: 2024-03-02
---
# Home server

A small machine in the cellar that keeps our photos, the calendar and the wiki.

> [!warning] Before an upgrade
> Make a backup first, see [[Backups#Restore]]. The last one without cost us a weekend.

## What runs on it

| service | port | memory |
|---|--:|--:|
| photo library | 2342 | 1.2 GB |
| calendar | 5232 | 80 MB |
| wiki | 8080 | 300 MB |

```bash
systemctl --user restart calendar   # after a change of its settings
```

## To do

- [x] replace the old disk
- [ ] move the wiki to the new machine
- [ ] test the [[Backups|backup]] of the photos

It draws $P = U \\cdot I \\approx 18$ watts when idle. #home/energy
""",
    "Backups.md": """\
---
tags: [server]
status: checked
---
# Backups

Every night at three, [[Home server]] copies what changed to a disk in the office.

## Restore

1. Stop the service that owns the data.
2. Copy the folder back from the newest snapshot.
3. Start the service, and look at its log.

We tried this in October: the whole photo library came back in two hours.
""",
    "Network.md": "# Network\n\nThe router, the switch and [[Home server]] have fixed addresses.\n",
    "Energy.md": "# Energy\n\nWhat draws power day and night: the [[Home server]], the router, and "
    "the heating pump.\n\n#home/energy\n",
    "Recipes/Sourdough.md": "# Sourdough\n\nFeed the starter the evening before. Bake at 250 °C "
    "with steam for twenty minutes.\n",
    "日记/2026-10-18.md": """\
---
tags: [日记]
---
# 第一次恢复演练

今天按照《[[数据库备份]]》做了一次恢复演练：先停止写入，再从最近的快照恢复照片库，整个过程用了两个小时。
""",
    "数据库备份.md": """\
# 数据库备份

每天凌晨三点，[[Home server]] 把当天的变化复制到办公室的硬盘上。

> [!tip] 恢复之前
> 先停止写入，再复制文件；恢复之后检查日志。
""",
}

PICTURES = {
    "photos/harbour.jpg": (("#f3b27a", "#2c4a66"), ["harbour", "evening"], ["Ana"], "Lisbon"),
    "photos/ridge.jpg": (("#bcd3e6", "#3f5d4a"), ["mountains"], ["Ben"], "Alps"),
    "photos/kitchen.jpg": (("#f6e7c8", "#a0522d"), ["home", "bread"], ["Ana", "Ben"], "Home"),
    "photos/西湖.jpg": (("#d9e6d2", "#48706f"), ["湖", "旅行"], ["小林"], "杭州"),
    "photos/snow.jpg": (("#f4f7fb", "#7d93ad"), ["mountains", "winter"], [], "Alps"),
    "photos/night.jpg": (("#22304f", "#0b0f1c"), ["evening"], ["Ben"], "Lisbon"),
}

ANSWER = (
    "You restore in three steps [notes/Backups.md:11-13]: stop the service, copy the folder back "
    "from the newest snapshot, then start it and look at its log. In October the whole photo "
    "library came back in two hours [notes/Backups.md:15]."
)
CALL = '```json:tool\n{"tool": "%s", "params": %s}\n```'


def draw(path: Path, sky: str, ground: str) -> None:
    """A picture of hills: something to see, of nobody."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", (960, 720), sky)
    pencil = ImageDraw.Draw(image)
    seed = sum(map(ord, path.stem))
    pencil.ellipse((620, 90, 760, 230), fill="#fff4d6")
    for layer in range(4):
        height = 330 + layer * 95
        points = [
            (x, height + ((x * (7 + layer) + seed * 31) % 173) * 0.7 - 60)
            for x in range(0, 961, 120)
        ]
        shade = Image.blend(
            Image.new("RGB", (1, 1), sky), Image.new("RGB", (1, 1), ground), 0.35 + 0.2 * layer
        ).getpixel((0, 0))
        pencil.polygon([(0, 720), *points, (960, 720)], fill=shade)
    image.filter(ImageFilter.GaussianBlur(1.2)).save(path, quality=88)


@contextmanager
def demo() -> Iterator[Served]:
    """A server with notes in two languages, photos, and a model that answers one question."""
    with tempfile.TemporaryDirectory(prefix="qmd-demo-") as name:
        directory = Path(name)
        model = ModelServer(
            says("I look for it.\n\n" + CALL % ("query", '{"query": "restore a backup"}')),
            says("I read the note.\n\n" + CALL % ("get", '{"file": "notes/Backups.md"}')),
            says(ANSWER),
        )
        with (
            model,
            serve(
                directory,
                NOTES,
                settings={
                    "backends": BackendSettings(llm_url=model.url, llm_model="qwen3:8b"),
                    "embedder": None,  # the built-in model
                },
            ) as served,
        ):
            for path, ((sky, ground), tags, people, place) in PICTURES.items():
                draw(served.folder / path, sky, ground)
                change = PhotoChange(tags=tuple(tags), people=tuple(people), location=place)
                served.kb.images.write(served.folder / path, change)
            served.kb.index()
            served.kb.embed()
            yield served


@dataclass(frozen=True)
class Shot:
    """A picture: where, how wide, in which theme and language, and what happens before."""

    address: str
    width: int = 1200
    height: int = 800
    scheme: str = "light"
    locale: str = "en-GB"
    before: Callable[[Page], None] = lambda page: None


def ask(page: Page) -> None:
    page.get_by_role("textbox", name="Your question").fill("How do I restore a backup?")
    page.keyboard.press("Enter")
    page.locator(".sources").first.wait_for()


VIEWS = {
    "search": "/?q=restore a backup",
    "start": "/",
    "note": "/note/notes/Home server.md",
    "edit": "/edit/notes/Backups.md",
    "history": "/history/notes/Backups.md",
    "new": "/new",
    "ask": "/ask",
    "photos": "/photos",
    "photo": "/photo/notes/photos/harbour.jpg",
    "health": "/overview",
}
SHOTS = {
    "search": Shot(VIEWS["search"]),
    "note": Shot(VIEWS["note"], width=1400, height=1000),
    "edit": Shot(VIEWS["edit"]),
    "ask": Shot(VIEWS["ask"], before=ask),
    "photos": Shot(VIEWS["photos"]),
    "health": Shot(VIEWS["health"], height=1000),
    "note-dark": Shot("/note/notes/数据库备份.md", scheme="dark", locale="zh-CN"),
    "search-narrow": Shot("/?q=备份", width=390, locale="zh-CN"),
}


def take(
    browser: Browser, served: Served, shot: Shot, target: Path, *, whole: bool = False
) -> None:
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height},
        color_scheme=shot.scheme,  # type: ignore[arg-type]
        locale=shot.locale,
    )
    page = context.new_page()
    page.goto(served.url + shot.address)
    page.wait_for_load_state("networkidle" if "/ask" not in shot.address else "load")
    shot.before(page)
    target.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=target, full_page=whole)
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", type=Path, metavar="DIR")
    options = parser.parse_args()
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with demo() as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=root)
        if options.all:
            for name, address in VIEWS.items():
                for scheme in ("light", "dark"):
                    for locale, width in (("en-GB", 1280), ("zh-CN", 360), ("en-GB", 2560)):
                        target = options.all / f"{name}-{scheme}-{width}.png"
                        shot = Shot(address, width, 900, scheme, locale)
                        take(browser, served, shot, target, whole=width < 2000)
        else:
            for name, shot in SHOTS.items():
                if not options.names or name in options.names:
                    take(browser, served, shot, IMAGES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
