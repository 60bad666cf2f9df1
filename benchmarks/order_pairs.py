"""
Makes questions of links, for `order.py`: what one page says of another.

    python benchmarks/order_pairs.py FOLDER OUT.json [--seed N] [--most N]

A Markdown link whose file exists below FOLDER gives a pair. If the sentence around it says enough,
the sentence without the words of the link is the question (``link-…``); else the words of the link
are (``anchor-…``), as somebody types the name of a page. The page that has the link is left out
of the hits (``exclude``), because it holds the question's very words. At most two sentences and one
name lead to a page, so that no page counts much. A path that begins with ``/`` starts in the
outermost folder of the page below FOLDER, as the documentation of TiDB writes links.

The fixture has sentences of the pages, so it stays outside of the project.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from os.path import normpath
from pathlib import Path
from typing import Any, NamedTuple

_LINK = re.compile(r"(?<!!)\[([^\]\[]{2,120})\]\(([^)\s]+?\.md)(?:#[^)]*)?\)")
_SHOWN = re.compile(r"!?\[([^\]\[]*)\]\([^)]*\)")
_MARKS = re.compile(r"[`*_>#|\s]+")
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*[-*|])")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\|")
_WORD = re.compile(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+")
#: The words (in Chinese: characters) of a sentence that says enough, and is no list.
WORDS = range(8, 50)
MOST = {"link": 2, "anchor": 1}


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
    parser.add_argument("--most", type=int, default=600)
    arguments = parser.parse_args()
    found = list(pairs(arguments.folder))
    random.Random(arguments.seed).shuffle(found)
    counts: Counter[tuple[str, str]] = Counter()
    queries: list[dict[str, Any]] = []
    for pair in dict.fromkeys(found):
        counts[pair.kind, pair.file] += 1
        if counts[pair.kind, pair.file] <= MOST[pair.kind]:
            queries.append(
                {
                    "id": f"{pair.kind}-{len(queries)}",
                    "query": pair.query,
                    "file": pair.file,
                    "exclude": [pair.source],
                }
            )
    text = json.dumps({"queries": queries[: arguments.most]}, ensure_ascii=False, indent=1)
    arguments.out.write_text(text + "\n", encoding="utf-8")
    print(Counter(query["id"].split("-")[0] for query in queries[: arguments.most]))


def pairs(folder: Path) -> Iterator[Pair]:
    """The pairs of a folder of Markdown files, file by file."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    for source in sorted(files):
        text = (folder / source).read_text(encoding="utf-8", errors="replace")
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
