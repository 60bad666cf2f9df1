"""Small notes and questions that once took minutes or gigabytes, each with what it was."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import QmdError
from qmd.inference.replies import expansions
from qmd.parse.converted import MAX_WARNINGS
from qmd.parse.document import MAX_TITLE, parse_document
from qmd.search import query
from qmd.search.present import MAX_NEEDLES, make_snippet, needles
from qmd.values import ParsedDocument
from qmd.values.search import MAX_QUERY
from tests.support.vault import make_index

pytestmark = pytest.mark.unmeasured


def parse(text: str | bytes) -> ParsedDocument:
    return parse_document("note.md", text if isinstance(text, bytes) else text.encode())


IMAGE = b"iVBORw0KGgoAAAANSUhEUg" * 14_000
SLOW: dict[str, bytes] = {
    "a base64 image in a Latin-1 note": b"caf\xe9\n\n![](data:image/png;base64," + IMAGE + b")\n",
    "such an image and no line end": IMAGE + b" caf\xe9",
    "a leader of dots": b"Chapter 1 " + b"." * 60_000 + b"12\n",
    "dots behind a word, again and again": (b"x" + b"." * 20_000 + b"x ") * 5,
    "rules under a long paragraph": b"word " * 80 + b"\n" + b"=\n" * 40_000,
    "half rules under a long paragraph": b"word " * 80 + b"\n" + b"--\n" * 40_000,
    "comments in frontmatter that is no YAML": b"---\n" + b"# " * 200 + b"\n[\n---\n",
    "a number in base 60": b"---\na: 1" + b":59" * 80_000 + b"\n---\n",
    "lines below a deep list": b"".join(b" " * n + b"- a\n" for n in range(1_500))
    + b"\n"
    + b" a\n" * 60_000,
}  # fmt: skip


@pytest.mark.parametrize("name", SLOW)
def test_a_note_takes_little_cpu(name: str) -> None:
    start = time.process_time()
    parse(SLOW[name])
    # Minutes or more once; now a tenth of a second or less.
    assert time.process_time() - start < 5


def test_a_reply_of_blanks_takes_little_cpu() -> None:
    start = time.process_time()
    with pytest.raises(QmdError):
        expansions("\n".join(["1. " + " " * 4_000] * 8), "query", 5)
    assert time.process_time() - start < 1


def test_a_pasted_page_is_looked_for_in_parts() -> None:
    # The pairs of 32,000 characters took 21 s in a text of 1 MB.
    page = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(20_000))
    wanted = needles(query.parse_string(page))
    text = (
        "".join(chr(0x4E00 + number * 104_729 % 20_000) for number in range(300_000)) + page[-40:]
    )
    start = time.process_time()
    make_snippet(text, 0, wanted)
    assert len(wanted) <= MAX_NEEDLES
    assert time.process_time() - start < 3


def test_many_references_to_a_long_target_do_not_fill_the_memory() -> None:
    document = parse("[a]: " + "x#y" * 20_000 + "\n\n" + "[a] " * 15_000)
    assert sum(len(link.target) + len(link.heading or "") for link in document.links) < 200_000
    assert [each for each in document.warnings if "long link targets" in each]


def test_usual_references_are_all_kept() -> None:
    document = parse("[a]: https://example.org/page\n\n" + "[a] " * 3_000)
    assert len(document.links) == 3_000
    assert not document.warnings


def test_nested_links_do_not_repeat_their_text_without_end() -> None:
    text = ("[" * 900 + "word " * 60 + "](x)" * 900 + "\n\n") * 30
    document = parse(text)
    assert len(document.links) == 27_000
    assert sum(len(link.text or "") for link in document.links) < 2 * len(text)


@pytest.mark.parametrize("title", ["title: " + "word " * 40_000, 'title: "' + "长" * 60_000 + '"'])
def test_a_long_title_is_cut(title: str) -> None:
    # It goes to the embedding model with every chunk.
    document = parse(f"---\n{title}\n---\nbody\n")
    assert 0 < len(document.title) <= MAX_TITLE


def test_a_thousand_warnings_are_told_in_few_sentences() -> None:
    keys = "".join(f"k{number}: 1\nk{number}: 2\n" for number in range(5_000))
    warnings = parse(f"---\n{keys}---\nbody\n").warnings
    assert len(warnings) == MAX_WARNINGS + 1
    assert warnings[-1] == f"And {5_000 - MAX_WARNINGS:,} more warnings."


def test_equal_warnings_are_one() -> None:
    (warning,) = parse("---\n" + "key: 1\n" * 20_000 + "---\nbody\n").warnings
    assert warning == "The frontmatter has the key 'key' twice; the last one counts. (19,999 times)"


@pytest.mark.parametrize("number", ["1:59:59", "0b" + "1" * 64, "1" * 30, "1:" + "59:" * 500 + "1"])
def test_what_is_no_number_or_too_large_for_one_stays_as_it_is_written(number: str) -> None:
    assert parse(f"---\nn: {number}\nlist: [a, {{}}]\n---\n").properties["n"] == number


@pytest.mark.parametrize("comment", ["# a comment", "#", "# # # a: b", "\n\n# a\n  # b\n"])
def test_broken_frontmatter_below_comments_is_still_read_line_by_line(comment: str) -> None:
    document = parse(f"---\n{comment}\ntitle: Kept\nbroken: [\n---\nbody\n")
    assert document.title == "Kept"


def test_tags_in_a_question_are_no_way_around_the_bound_of_tags(tmp_path: Path) -> None:
    groups = [" OR ".join(f"tag:t{n}" for n in range(start, start + 64)) for start in range(200)]
    with KnowledgeBase.open(make_index(tmp_path)) as kb:
        for query in (" ".join(groups)[:MAX_QUERY], " ".join(f"-tag:t{n}" for n in range(9000))):
            assert kb.search(query[:MAX_QUERY]).hits == () or query.startswith("-")
