"""Org, reStructuredText and AsciiDoc as Markdown: each line in its place."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

import pytest

from qmd.errors import DamagedFileError
from qmd.parse.convert import asciidoc, org, restructured
from qmd.parse.converted import Converted
from qmd.parse.document import parse_literal
from qmd.parse.markdown import outline

Convert = Callable[[str, bytes], Converted]


def assert_same_lines(convert: Convert, pairs: list[tuple[str, str]]) -> Converted:
    """What each line of a file becomes, in its place."""
    converted = convert("a.x", "\n".join(source for source, _ in pairs).encode())
    lines = converted.markdown.removesuffix("\n").split("\n")
    lines += [""] * (len(pairs) - len(lines))
    assert [*zip_longest((source for source, _ in pairs), lines)] == pairs
    return converted


def test_org() -> None:
    converted = assert_same_lines(
        org.convert,
        [
            (":PROPERTIES:", ""),
            (":ID: abc-1", ""),
            (':ROAM_ALIASES: "Sour dough" bread', ""),
            (":END:", ""),
            ("#+TITLE: On", ""),
            ("#+TITLE: bread", ""),
            ("#+DATE: <2024-03-05 Tue>", ""),
            ("#+AUTHOR: Ann", ""),
            ("#+FILETAGS: :food:baking:", ""),
            ("", ""),
            (
                "[[https://a.org][a link]], [[file:b.org::*x][B]]",
                "[a link](https://a.org), [B](b.org)",
            ),
            ("[[id:x][roam]], [[*Part]], [[./i.png]]", "roam, Part, ![image](./i.png)"),
            ("=code [[x]]= ~b~ a=b= [[", "`code [[x]]` `b` a=b= [["),
            ("#tag key:: v <b> [a](b)", "#tag key:: v \\<b> [a]\\(b)"),
            ("* TODO [#A] Make [[x][dough]] :work:hot:", "# TODO Make dough"),
            ("  SCHEDULED: <2024-03-06 Wed>", "SCHEDULED: <2024-03-06 Wed>"),
            ("  :LOGBOOK:", ""),
            ("  CLOCK: [2024-03-05 Tue 10:00]", ""),
            ("  :END:", ""),
            ("     Deep text.", "Deep text."),
            ("  - item", "- item"),
            ("    continues", "  continues"),
            ("    + [X] nested", "  - [X] nested"),
            ("      1) deep", "    1) deep"),
            ("", ""),
            ("  after", "after"),
            ("********* Deep", "###### Deep"),
            ("  #+BEGIN_SRC python :results output", "````python"),
            ("  def f():", "def f():"),
            ("      return '```' # [[x]]", "    return '```' # [[x]]"),
            ("  #+END_SRC", "````"),
            ("| a | b |", "| a | b |"),
            ("|---+---|", "|---|---|"),
            ("| 1 | =x= |", "| 1 | `x` |"),
            ("#+begin_quote", ""),
            ("quoted", "quoted"),
            ("#+end_quote", ""),
            (": as it stands", "`as it stands`"),
            ("# comment", "\\# comment"),
            ("-----", "* * *"),
            ("#+begin_comment", ""),
            ("hidden", ""),
            ("#+end_comment", ""),
            ("#+INCLUDE: /etc/passwd", ""),
            ("#+begin_src sh", "````sh"),
            ("code", "code"),
            ("#+end_src", "````"),
        ],
    )
    assert (converted.title, converted.date) == ("On bread", "2024-03-05")
    assert converted.properties == {
        "id": "abc-1",
        "aliases": ["Sour dough", "bread"],
        "author": "Ann",
        "tags": ["food", "baking", "work", "hot"],
    }
    document = parse_literal("a.org", converted, has_links=True)
    assert document.tags == ("food", "baking", "work", "hot")
    assert document.aliases == ("Sour dough", "bread")
    assert [link.target for link in document.links] == ["https://a.org", "b.org", "./i.png"]


def test_restructured_text() -> None:
    converted = assert_same_lines(
        restructured.convert,
        [
            ("=======", ""),
            ("A title", "# A title"),
            ("=======", ""),
            (":Author: Ann", "Author: Ann"),
            (":Date: 2024-03-05", "Date: 2024-03-05"),
            ("", ""),
            (".. _target: https://a.org", ""),
            ("..", ""),
            ("", ""),
            ("   A quote", "A quote"),
            ("", ""),
            (".. comment", ""),
            ("   of two lines", ""),
            ("", ""),
            ("Part ``a``", "## Part a"),
            ("---------", ""),
            ("`B <https://b.org>`_, :func:`~os.walk`", "[B](https://b.org), `os.walk`"),
            (":ref:`Text <x>` ``c [[x]]`` `D`_ #tag", "Text `c [[x]]` D #tag"),
            ("", ""),
            ("Code::", "Code:"),
            ("", "````"),
            ("    if a:", "if a:"),
            ("        ```", "    ```"),
            ("", "````"),
            (".. code-block:: python", ""),
            ("   :linenos:", ""),
            ("", "````python"),
            ("   x = 1", "x = 1"),
            ("", "````"),
            (".. note:: Take care.", "Take care."),
            (".. warning::", "Warning:"),
            ("   :class: x", ""),
            ("", ""),
            ("   Hot.", "Hot."),
            ("", ""),
            ("- item", "- item"),
            ("  more", "  more"),
            ("", ""),
            ("  #. one", "  1. one"),
            ("", ""),
            ("Sub", "### Sub"),
            ("~~~", ""),
            ("", "````"),
            ("=====  =====", "=====  ====="),
            ("a      b", "a      b"),
            ("=====  =====", "=====  ====="),
            ("", "````"),
            ("----", "* * *"),
            ("", "````pycon"),
            (">>> 1 + 1", ">>> 1 + 1"),
            ("2", "2"),
            ("", "````"),
            (".. image:: i/a.png", "![A](i/a.png)"),
            ("   :alt: A", ""),
            (".. include:: /etc/passwd", ""),
            (".. raw:: html", ""),
            ("", ""),
            ("   <script>x</script>", ""),
            ("", ""),
            ("Part 2", "## Part 2"),
            ("------", ""),
            ("# no heading", "\\# no heading"),
        ],
    )
    assert (converted.title, converted.date) == ("A title", "2024-03-05")
    assert converted.properties == {"author": "Ann"}


def test_asciidoc() -> None:
    converted = assert_same_lines(
        asciidoc.convert,
        [
            ("= A title", "# A title"),
            ("Ann Baker <ann@example.org>", "Ann Baker <ann@example.org>"),
            ("v1.0, 2024-03-05", "v1.0, 2024-03-05"),
            (":toc: left", ""),
            (":description: On bread", ""),
            ("", ""),
            ("// comment", ""),
            ("[[anchor]]", ""),
            ("== Part `a`", "## Part a"),
            ("https://a.org[A], link:b.adoc#x[B], <<id,C>>", "[A](https://a.org), [B](b.adoc), C"),
            ("`c [[x]]` image:i.png[I] xref:d[] #tag", "`c [[x]]` ![I](i.png) d #tag"),
            ("", ""),
            ("[source,python]", ""),
            ("----", "```python"),
            ("== no heading", "== no heading"),
            ("----", "```"),
            ("....", "```"),
            ("as is", "as is"),
            ("....", "```"),
            ("NOTE: Take care.", "NOTE: Take care."),
            ("[WARNING]", "Warning:"),
            ("====", ""),
            ("Hot.", "Hot."),
            ("====", ""),
            ("* item", "- item"),
            ("** [x] nested", "  - [x] nested"),
            ("+", ""),
            ("more", "    more"),
            ("* item 2", "- item 2"),
            (". one", "  1. one"),
            ("CPU:: The brain", "- CPU: The brain"),
            ("", ""),
            (".Flour", "Flour"),
            ("|===", ""),
            ("|Kind |Hours", "| Kind | Hours |"),
            ("", "|---|---|"),
            ("|Rye |12", "| Rye | 12 |"),
            ("|===", ""),
            ("", ""),
            ("Part 2", "## Part 2"),
            ("------", ""),
            ("", ""),
            (" indented", "     indented"),
            ("", ""),
            ("////", ""),
            ("hidden", ""),
            ("////", ""),
            ("++++", ""),
            ("<b>", "\\<b>"),
            ("++++", ""),
            ("include::/etc/passwd[]", ""),
            ("ifdef::x[]", ""),
            ("image::i.png[I]", "![I](i.png)"),
            ("#no [[link]] heading", "#no  heading"),
        ],
    )
    assert (converted.title, converted.date) == ("A title", "2024-03-05")
    assert converted.properties == {"author": "Ann Baker", "description": "On bread"}


@pytest.mark.parametrize("convert", [org.convert, restructured.convert, asciidoc.convert])
def test_empty_files_and_old_encodings(convert: Convert) -> None:
    assert convert("a.x", b"").markdown == ""
    assert convert("a.x", b"\n \n").markdown == ""
    text = "数据库备份的方案在这里，我们每天都要做一次。\n" * 5
    converted = convert("a.x", text.encode("gb18030"))
    assert converted.markdown == text
    assert converted.encoding == "gb18030"
    assert convert("a.x", b"#+begin_src\na\n\n----\nb").markdown.count("`") in (0, 6)
    assert {block.kind for block in outline(converted.markdown).blocks} == {"text"}


def test_keys_and_signatures_are_no_asciidoc_and_a_signed_text_is_read() -> None:
    for kind in ("PUBLIC KEY BLOCK", "SIGNATURE", "MESSAGE"):
        with pytest.raises(DamagedFileError, match="OpenPGP"):
            asciidoc.convert("a.asc", f"-----BEGIN PGP {kind}-----\n\nmQINBF\n".encode())
    signed = b"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nHello\n"
    assert "Hello" in asciidoc.convert("a.asc", signed).markdown
