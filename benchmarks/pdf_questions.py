"""
How often a search shows the answer when it stands in a PDF, and when it stands in Markdown.

    python benchmarks/pdf_questions.py --work DIR PDF=HTML_FOLDER [PDF=HTML_FOLDER ...]

Each PDF is indexed beside the same book as Markdown, which qmd makes of its HTML edition, chapter
by chapter. The questions are those of ``pdf_questions.toml`` whose ``book`` is the name of a PDF. A
question is answered if its answer begins within `REACH` characters of the line that a hit names.
Only the first hit counts, and it may be in the other book. The vectors stay in DIR.

The files: debian-policy 4.6.2 (policy.pdf, policy.html) and debian-reference-zh-cn 2.100.
"""

from __future__ import annotations

import argparse
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from shutil import copyfile
from typing import NamedTuple

from qmd import Filters, KnowledgeBase
from qmd.parse.convert import html

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REACH = 1_000
_QUESTIONS = Path(__file__).with_name("pdf_questions.toml")


class Question(NamedTuple):
    book: str
    asked: str
    answer: str  # some words of the book, of which white space and the width of signs do not count


def _questions(books: Sequence[str]) -> list[Question]:
    tables = tomllib.loads(_QUESTIONS.read_text("utf-8"))["question"]
    return [each for table in tables if (each := Question(**table)).book in books]


def _chapters(folder: Path, index: str) -> list[Path]:
    """The files of a book in HTML, in the order in which its table of contents names them."""
    links = re.findall(r'href="([\w.-]+\.html)', (folder / index).read_text("utf-8"))
    return [folder / name for name in dict.fromkeys(links) if (folder / name).exists()]


def _as_markdown(folder: Path) -> str:
    index = next(each.name for each in sorted(folder.glob("index*.html")))
    texts = (
        html.convert(each.name, each.read_bytes()).markdown
        for each in _chapters(folder, index)
        if each.name not in (index, "genindex.html", "search.html")
    )
    return "\n".join(texts)


def _plain(text: str) -> str:
    """The letters and digits of a text: how it is marked does not count."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _has_answer(lines: Sequence[str], line: int, answer: str) -> bool:
    """Whether an answer begins within `REACH` characters of a line."""
    starts = [0, *accumulate(len(each) + 1 for each in lines)]
    at, text = starts[line - 1], "\n".join(lines)
    near = text[max(0, at - REACH) : at + len(lines[line - 1]) + REACH + len(answer)]
    return _plain(answer) in _plain(near)


def _open(work: Path, books: Mapping[Path, Path]) -> KnowledgeBase:
    """The knowledge base of both forms, indexed and embedded."""
    (work / "pdf").mkdir(parents=True, exist_ok=True)
    (work / "md").mkdir(exist_ok=True)
    for pdf, folder in books.items():
        copyfile(pdf, work / "pdf" / pdf.name)
        (work / "md" / f"{pdf.stem}.md").write_text(_as_markdown(folder), "utf-8")
    kb = KnowledgeBase.open(work / "books.sqlite", create=True)
    for name in {"pdf", "md"} - {each.name for each in kb.collections()}:
        kb.add_collection(work / name, mask="**/*.{md,pdf}")
    kb.index()
    kb.embed()
    return kb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("books", nargs="+", help="PDF=HTML_FOLDER")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--misses", action="store_true", help="print what no form answers alike")
    arguments = parser.parse_args()
    books = {
        Path(pdf): Path(folder) for pdf, _, folder in (b.partition("=") for b in arguments.books)
    }
    with _open(arguments.work, books) as kb:
        texts = {
            f"{form}/{pdf.stem}.{form}": kb.get(f"{form}/{pdf.stem}.{form}").text.split("\n")
            for pdf in books
            for form in ("pdf", "md")
        }
        searches = {"search": kb.search, "vsearch": kb.vsearch, "query": kb.query}
        print("| book | questions | form | " + " | ".join(searches) + " |")
        print("|---|--:|---|" + "--:|" * len(searches))
        for pdf in books:
            questions = _questions([pdf.name])
            misses: dict[tuple[str, str], set[str]] = {}
            for form in ("pdf", "md"):
                file = f"{form}/{pdf.stem}.{form}"
                lines = texts[file]
                absent = [q for q in questions if _plain(q.answer) not in _plain("\n".join(lines))]
                for question in absent:
                    print(f"not in the text of {file}: {question.answer}")
                shares = []
                for name, search in searches.items():
                    answered = 0
                    for question in questions:
                        hits = search(
                            question.asked, filters=Filters(collections=(form,)), limit=1
                        ).hits
                        found = hits[0].file == file if hits else False
                        if found and _has_answer(lines, hits[0].line, question.answer):
                            answered += 1
                        else:
                            misses.setdefault((name, question.asked), set()).add(
                                f"{form} {hits[0].place or hits[0].line if hits else 'no hit'}"
                            )
                    shares.append(f"{answered / len(questions):.2f}")
                print(f"| {pdf.stem} | {len(questions)} | {form} | " + " | ".join(shares) + " |")
            if arguments.misses:
                for (name, asked), forms in misses.items():
                    print(f"{name:8} {asked}: {', '.join(sorted(forms))}")


if __name__ == "__main__":
    main()
