"""
Makes questions of pages for `order.py`: what one page says of another, and what a page is called.

    python benchmarks/order_pairs.py FOLDER OUT.json [--seed N] [--most N]

A Markdown link whose file exists below FOLDER gives a pair. If the sentence around it says enough,
the sentence without the words of the link is the question (``link-…``); else the words of the link
are (``anchor-…``), as somebody types the name of a page. The page that has the link is left out
of the hits (``exclude``), because it holds the question's very words. A path that begins with ``/``
starts in the outermost folder of the page below FOLDER, as the documentation of TiDB writes links.

The page itself gives the other pairs, and holds their words, so they say less about questions: its
description in the frontmatter (``description-…``), headings that ask or tell how (``heading-…``)
and other names in the frontmatter, those of an index among them (``alias-…``).

At most two sentences and one pair of each other kind lead to a page, so that no page counts much.
The fixture has sentences of the pages, so it stays outside of the project.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Collection, Iterator
from os.path import normpath
from pathlib import Path
from typing import Any, NamedTuple

from qmd.parse import frontmatter

_LINK = re.compile(r"(?<!!)\[([^\]\[]{2,120})\]\(([^)\s]+?\.md)(?:#[^)]*)?\)")
_SHOWN = re.compile(r"!?\[([^\]\[]*)\]\([^)]*\)")
_MARKS = re.compile(r"[`*_>#|\s]+")
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*[-*|])")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\|")
_WORD = re.compile(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+")
#: With fewer words a heading stands on many pages ("What is next").
LEAST_OF_HEADING = 5
#: The words (in Chinese: characters) of a sentence that says enough, and is no list.
WORDS = range(8, 50)
MOST = {"link": 2, "anchor": 1, "description": 1, "heading": 1, "alias": 1}
_DESCRIPTIONS = ("description", "summary")
_ALIASES = ("aliases", "keywords", "helpviewer_keywords")
#: How a description begins that says nothing more.
_LEARN = re.compile(
    r"^(learn more about|learn about|describes|本文介绍|介绍|了解)\s*[:：]?\s*", re.I
)
_HEADING = re.compile(r"^#{2,6} +(.+?)[ #]*$", re.MULTILINE)
_ASKS = re.compile(r"(how|why|when|what|which)\b|如何|怎[样么]|为什么|什么|.*[?？]$", re.I)


class Pair(NamedTuple):
    kind: str
    query: str
    file: str
    source: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--most", type=int, default=600, help="of each kind")
    arguments = parser.parse_args()
    found = list(pairs(arguments.folder))
    random.Random(arguments.seed).shuffle(found)
    of_kind: Counter[str] = Counter()
    of_page: Counter[tuple[str, str]] = Counter()
    queries: list[dict[str, Any]] = []
    for pair in dict.fromkeys(found):
        of_page[pair.kind, pair.file] += 1
        if of_page[pair.kind, pair.file] > MOST[pair.kind] or of_kind[pair.kind] == arguments.most:
            continue
        of_kind[pair.kind] += 1
        query = {"id": f"{pair.kind}-{len(queries)}", "query": pair.query, "file": pair.file}
        queries.append(query | {"exclude": [pair.source] if pair.source != pair.file else []})
    text = json.dumps({"queries": queries}, ensure_ascii=False, indent=1)
    arguments.out.write_text(text + "\n", encoding="utf-8")
    print(dict(of_kind))


def pairs(folder: Path) -> Iterator[Pair]:
    """The pairs of a folder of Markdown files, file by file."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    for source in sorted(files):
        text = (folder / source).read_text(encoding="utf-8", errors="replace")
        yield from _of_links(source, text, files)
        for kind, query in _of_the_page(text):
            yield Pair(kind, query, source, source)


def _of_links(source: str, text: str, files: Collection[str]) -> Iterator[Pair]:
    for paragraph in _PARAGRAPH.split(text):
        for sentence in filter(None, _SENTENCE_END.split(_protected(paragraph))):
            for link in _LINK.finditer(sentence):
                target = _target(source, link[2])
                if target not in files or target == source:
                    continue
                around = _plain(sentence[: link.start()] + " " + sentence[link.end() :])
                name = _plain(link[1])
                if len(_WORD.findall(around)) in WORDS:
                    yield Pair("link", around, target, source)
                elif name:
                    yield Pair("anchor", name, target, source)


def _of_the_page(text: str) -> Iterator[tuple[str, str]]:
    """Kind and question, from a page's own text."""
    front = frontmatter.split(text)
    title = str(front.properties.get("title", ""))
    for key in _DESCRIPTIONS:
        description = _LEARN.sub("", _plain(str(front.properties.get(key, ""))))
        if len(_WORD.findall(description)) >= WORDS.start and description != title:
            yield "description", description[:300]
    for heading in map(_plain, _HEADING.findall(text, front.body_start)):
        if _ASKS.match(heading) and len(_WORD.findall(heading)) >= LEAST_OF_HEADING:
            yield "heading", heading
    for key in _ALIASES:
        names = front.properties.get(key) or []
        for name in names if isinstance(names, list) else [names]:
            # The aliases of some generators are paths.
            if isinstance(name, str) and "/" not in name and _plain(name) not in ("", title):
                yield "alias", _plain(name)


def _target(source: str, path: str) -> str:
    """The file that a link of ``source`` leads to, below the folder of all files."""
    if path.startswith("/"):
        return normpath(Path(source).parts[0] + path)
    return normpath(Path(source).parent / path)


def _protected(paragraph: str) -> str:
    """The paragraph in one line, so that a link is not parted at the end of a line."""
    return " ".join(paragraph.split())


def _plain(markdown: str) -> str:
    return _MARKS.sub(" ", _SHOWN.sub(r"\1", markdown)).strip(" -.")


if __name__ == "__main__":
    main()
