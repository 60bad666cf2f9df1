"""
Makes pages and questions of what others were asked and answered, for `order.py`.

    python benchmarks/order_faq.py OUT NAME=FOLDER … [--most N] [--pages N] [--seed N]

FOLDER has the documentation of a package: Markdown, HTML, reStructuredText, pages of GNOME's help,
the ``.po`` of a translation. A heading that asks, with text enough below it, is a question, and its
answer a page, ``OUT/NAME/17.md``: the text below the heading, with the name of the section that it
is in as its title, and without lines that repeat the question. So the page must be known by its
content. A section whose heading does not ask becomes a page with its heading, a wrong answer.
The questions go to ``OUT.json``.

`docs/search.md` names the packages. Their texts stay outside of the project.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import NamedTuple

from qmd.parse.convert import html, restructured

#: Letters of an answer; a Chinese character counts as three. More is a chapter.
LETTERS = range(160, 12_000)
#: Words of a heading that asks: English, Chinese (characters). Shorter ones ask "Why?".
LEAST = (4, 6)

_HEADING = re.compile(r"^(?:[-*] )?(#{1,6}) +(.+?)[ #]*$")
_SUMMARY = re.compile(r"^<summary>(?:<b>)?(.+?)(?:</b>)?</summary>.*$", re.MULTILINE)
#: A question that is no heading: a term with its definition, or a paragraph after "Q:".
_TERM = re.compile(r"^(?:- |(?:Q:|问：?)\n\n)(.{10,200}[?？])\n\n", re.MULTILINE)
_ASKS = re.compile(
    r"(how|why|when|what|which|where|who)\b.*"
    r"|(如何|怎[样么]|为什么|为何|何为|什么是|哪[些个里种]).*|.*[?？]",
    re.I,
)
_NUMBER = re.compile(
    r"^(?:chapter |第)?[\dA-Z]?\d*(?:\.\d+)*[a-z]?(?:[.、:：)）]| 章|(?<=\d)(?=\s))\s*"
    r"|^\(FAQ \w+\)\s*|^[QA问答]\d*\s*[:：.、]\s*|^面试官\s*[:：]\s*|^[一二三四五六七八九十]+、\s*",
    re.I,
)
_TAG = re.compile(r"<[^>]{1,200}>|\{#[^}]*\}|!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_ONLY_A_LINK = re.compile(r"^\s*[-*+]\s*(?:\[[^\[\]]*\]\([^()]*\)|https?://\S+)\W*$")
_BLANK_LINES = re.compile(r"\n\s*\n\s*\n")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_WORD = re.compile(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+")
_ENTRY = re.compile(r'^msgid ((?:".*"\n)+)msgstr ((?:".*"\n)+)', re.MULTILINE)


class Section(NamedTuple):
    """
    A part of a text.

    Attributes:
        above: The nearest heading above it that does not ask.
    """

    heading: str
    above: str
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("out", type=Path)
    parser.add_argument("packages", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--most", type=int, default=200, help="questions of each package")
    parser.add_argument("--pages", type=int, default=70, help="other pages of each package")
    parser.add_argument("--seed", type=int, default=3)
    arguments = parser.parse_args()
    queries = []
    for package in arguments.packages:
        name, _, folder = package.partition("=")
        all_sections = list(dict.fromkeys(sections(Path(folder))))
        random.Random(arguments.seed).shuffle(all_sections)
        answers = [each for each in all_sections if asks(each.heading)][: arguments.most]
        others = [each for each in all_sections if not asks(each.heading)][: arguments.pages]
        (arguments.out / name).mkdir(parents=True, exist_ok=True)
        for number, each in enumerate(answers):
            file = f"{name}/{number}.md"
            _write(arguments.out / file, each.above or name, each.text)
            queries.append({"id": f"{name}-{number}", "query": each.heading, "file": file})
        for number, each in enumerate(others):
            _write(arguments.out / f"{name}/other-{number}.md", each.heading, each.text)
        print(name, len(answers), len(others))
    text = json.dumps({"queries": queries}, ensure_ascii=False, indent=1)
    arguments.out.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


def _write(file: Path, title: str, text: str) -> None:
    file.write_text(f"# {title}\n\n{text}\n", encoding="utf-8")


def sections(folder: Path) -> Iterator[Section]:
    """The sections of all files of a folder that have text enough."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        for section in _parted(_markdown(file)):
            text = _without(section.heading, section.text)
            if section.heading and len(text) + 2 * len(_HAN.findall(text)) in LETTERS:
                yield section._replace(text=text)


def asks(heading: str) -> bool:
    least = LEAST[bool(_HAN.search(heading))]
    return bool(_ASKS.fullmatch(heading)) and len(_WORD.findall(heading)) >= least


def _markdown(file: Path) -> str:
    data = file.read_bytes()
    match file.suffix:
        case ".html" | ".htm":
            return _TERM.sub(r"###### \1\n\n", html.convert(file.name, data).markdown)
        case ".rst" | ".txt":
            return restructured.convert(file.name, data).markdown
        case ".page":
            return _of_gnome(data.decode())
        case ".po":
            return _of_a_translation(data.decode())
        case ".md":
            return _SUMMARY.sub(r"###### \1", data.decode(errors="replace"))
        case _:
            return ""


def _of_gnome(page: str) -> str:
    text = re.sub(r"(?s)<info>.*?</info>|<\?.*?\?>|<!--.*?-->", "", page)
    text = re.sub(r"<title>\s*(.+?)\s*</title>", r"\n# \1\n", text)
    return _BLANK_LINES.sub("\n\n", _TAG.sub("", unescape(text)))


def _of_a_translation(po: str) -> str:
    """Paragraphs have no kind there: a short one that asks is a heading."""
    blocks = []
    for entry in _ENTRY.findall(po):
        original, text = ("".join(map(json.loads, each.splitlines())) for each in entry)
        if original and text:
            is_heading = original.endswith("?") and len(original) < 120
            blocks.append(f"## {text}" if is_heading else text)
    return "\n\n".join(blocks)


def _parted(markdown: str) -> Iterator[Section]:
    """The sections of a text: one whose heading asks has those below it, others their own text."""
    above: dict[int, str] = {}
    level, heading, lines = 0, "", list[str]()
    is_code = False
    for line in markdown.splitlines():
        is_code ^= line.lstrip().startswith("```")
        match = None if is_code else _HEADING.match(line)
        if match is None or (asks(heading) and len(match[1]) > level):
            lines.append(line)
            continue
        yield Section(heading, _named(above, level), "\n".join(lines))
        level, heading, lines = len(match[1]), _plain(match[2]), []
        above = {deep: other for deep, other in above.items() if deep < level} | {level: heading}
    yield Section(heading, _named(above, level), "\n".join(lines))


def _named(above: dict[int, str], level: int) -> str:
    names = [name for deep, name in above.items() if deep < level and not asks(name)]
    return names[-1] if names else ""


def _plain(heading: str) -> str:
    text = _TAG.sub("", _LINK.sub(r"\1", heading)).strip()
    return re.sub(r"[*`]", "", _NUMBER.sub("", text)).strip()


def _without(question: str, text: str) -> str:
    """The text without pictures, addresses, lists of links, and lines with the question's words."""
    words = set(_WORD.findall(question.lower()))
    kept = []
    for line in text.splitlines():
        shown = _TAG.sub("", _LINK.sub(r"\1", line))
        shared = words & set(_WORD.findall(shown.lower()))
        repeats = len(shared) >= 0.9 * max(4, len(words)) and len(shown) < 1.5 * len(question)
        if not repeats and not _ONLY_A_LINK.match(line):
            kept.append(shown)
    return _BLANK_LINES.sub("\n\n", "\n".join(kept)).strip()


if __name__ == "__main__":
    main()
