"""What the person is shown before the agent writes: all of it, and nothing raw."""

from __future__ import annotations

import re
import time
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from qmd.agent.consents import described, heading, shortened
from qmd.values.proposed import ProposedFields, ProposedText

NOTE = Path("/vault/plan.md")


def text(before: str | None, after: str) -> list[str]:
    old = None if before is None else before.encode()
    return described(ProposedText("create_note", NOTE, old, after.encode()))


def test_a_change_is_a_unified_diff() -> None:
    before = "".join(f"line {n}\n" for n in range(1, 41))
    after = before.replace("line 20\n", "line twenty\n").replace("line 38\n", "")
    assert text(before, after) == [
        *("@@ -17,7 +17,7 @@", " line 17", " line 18", " line 19", "-line 20", "+line twenty"),
        *(" line 21", " line 22", " line 23"),
        *("@@ -35,6 +35,5 @@", " line 35", " line 36", " line 37", "-line 38"),
        *(" line 39", " line 40"),
    ]


def test_a_new_file_is_shown_as_its_text() -> None:
    assert text(None, "# A\n\nb") == ["+# A", "+", "+b", "\\ No newline at end of file"]
    new = ProposedText("create_note", Path("/v/a\x1b[2J\u202e.md"), None, b"12345")
    assert heading(new) == "create_note would make a new file of 5 bytes: /v/a\\x1b[2J\\u202e.md"


def test_what_nobody_could_see_is_shown() -> None:
    hidden = "a\u200bb\u202ec\x1b[2Jd\U000e0041e\ufefff\r\n"
    assert text(None, hidden) == ["+a\\u200bb\\u202ec\\x1b[2Jd\\U000e0041e\\ufefff\\r"]
    fields = ProposedFields(
        "writeImageMetadata", NOTE, {"XMP-dc:Subject": ("a",)}, {"XMP-dc:Subject": ("b\n\x1b[2J",)}
    )
    assert described(fields) == ["@ XMP-dc:Subject", "- a", "+ b\\n\\x1b[2J"]


def test_other_encodings_are_read_and_no_text_is_said_to_be_none() -> None:
    old = "每天备份数据库，恢复时先停止写入。\n" * 3
    proposed = ProposedText("create_note", NOTE, old.encode("gb18030"), old.encode() + b"new\n")
    assert described(proposed)[-1] == "+new"
    binary = ProposedText("update_summary", NOTE, bytes(range(256)) * 9, b"new\n")
    assert described(binary) == ["@@ -1 +1 @@", "-(2,304 bytes that are no text)",
                                 "\\ No newline at end of file", "+new"]  # fmt: skip


def test_what_is_left_out_is_counted() -> None:
    lines = text(None, "".join(f"line {n}\n" for n in range(1000)))
    shown, left_out = shortened(lines)
    assert (len(shown), left_out) == (121, "880 more lines (7,920 characters)")
    assert shown[-1] == "… 880 more lines (7,920 characters)"
    shown, left_out = shortened(text(None, "x" * 5000 + "\n"))
    assert (len(shown), left_out) == (2, "3,001 more characters")
    assert shortened(["a"]) == (["a"], "")


line = st.sampled_from(["a", "b", "", "@@ -1 +1 @@", "+a", "-b", "\\ x", " ", "\u2028", "\x0b"])
contents = st.tuples(
    st.lists(line, max_size=30).map("\n".join), st.sampled_from(["", "\n", "\n\n"])
).map("".join)


@settings(deadline=None)
@given(contents, contents)
@example("a\n" * 600, "b\n" * 600 + "a\n" * 600)
@example("", "a")
def test_the_new_text_is_told_by_the_old_one_and_the_diff(before: str, after: str) -> None:
    """Applied to the old lines, as ``patch`` does it, the diff makes the new ones."""
    shown = text(before, after)
    if before == after:
        assert shown == ["(It holds these words already.)"]
        return
    old = numbered_lines(before)
    new: list[str] = []
    place = 0
    for each in shown:
        hunk = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", each)
        if hunk:
            begin = int(hunk[1]) - (hunk[2] != "0")
            new += old[place:begin]
            place = begin
        elif each != "\\ No newline at end of file":
            kind, content = each[:1], each[1:]
            if kind in "- ":
                assert old[place].rstrip("\\") == content or old[place] == content
                place += 1
            if kind in "+ ":
                new.append(content)
    new += old[place:]
    assert [each.removesuffix("\\") for each in new] == [
        each.removesuffix("\\") for each in numbered_lines(after)
    ]


def numbered_lines(content: str) -> list[str]:
    """As they are shown; a backslash stands for the newline that the last one lacks."""
    from qmd.values.text import visible

    lines = content.split("\n")
    last = lines.pop()
    return [visible(each) for each in lines] + ([visible(last) + "\\"] if last else [])


def test_the_time_grows_with_the_size_and_no_faster() -> None:
    def cpu_s(lines: int) -> float:
        before = "".join(f"{n % 7}\n" for n in range(lines))
        after = "".join(f"{n % 5}\n" for n in range(lines))
        begin = time.process_time()
        for _ in range(3):
            text(before, after)
        return time.process_time() - begin

    cpu_s(2_000)
    assert cpu_s(40_000) < 20 * max(cpu_s(10_000), 0.02)
