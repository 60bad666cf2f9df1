"""qmd.files.edits: one place of a text changes, and what is outside of it stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qmd.errors import EditError, InputError
from qmd.files.edits.diff import MAX_LINES, short_diff
from qmd.files.edits.note_editor import edited
from qmd.files.edits.operations import replace_all, set_seen_task
from qmd.files.edits.text_file import TextFile, line_end, with_line_ends
from qmd.parse import frontmatter
from qmd.values.writing import NoteEdit, PropertyValue

NOTE = """\
---
title: Plan
---
# Plan

Intro.

## Tasks

- [ ] Call the bank
- [x] Write
  - [ ] Send

## Notes

Old.

### Sub

Deep.

## Log
"""


def changed(before: str, after: str) -> list[str]:
    """The changed lines of a diff."""
    return [
        line for line in short_diff(before, after).splitlines() if line[:1] in "+-" and line[1:]
    ]


# --- replacing -----------------------------------------------------------------------------


def test_the_only_occurrence_is_replaced() -> None:
    assert edited("a b c", NoteEdit("replace", old="b", text="x\ny")) == "a x\ny c"
    assert edited("a b c", NoteEdit("replace", old=" b", text="")) == "a c"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("typed", ["\n", "\r\n"])
def test_line_ends_of_the_note_count_as_equal_and_stay(end: str, typed: str) -> None:
    text = end.join(["one", "two", "three", "four", ""])
    edit = NoteEdit("replace", old=f"two{typed}three", text=f"2{typed}2½{typed}3")
    assert edited(text, edit) == end.join(["one", "2", "2½", "3", "four", ""])


def test_mixed_line_ends_outside_stay() -> None:
    text = "a\r\nb\nc\r\nd\re\r\n"
    assert edited(text, NoteEdit("replace", old="b\nc", text="x\ny")) == "a\r\nx\r\ny\r\nd\re\r\n"
    assert edited(text, NoteEdit("replace", old="\nd\n", text="\n")) == "a\r\nb\nc\r\ne\r\n"


@pytest.mark.parametrize(
    ("text", "old", "message"),
    [
        ("a\nb\na\n", "a", "occurs 2 times, at lines 1 and 3"),
        ("aaa", "aa", "occurs 2 times, at line 1\\."),
        ("x\n" * 200, "x", "occurs at least 100 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and"),
        ("abc", "B", "does not occur"),
    ],
)
def test_what_occurs_never_or_often_is_not_replaced(text: str, old: str, message: str) -> None:
    with pytest.raises(EditError, match=message):
        edited(text, NoteEdit("replace", old=old, text="new"))


def test_a_near_miss_is_told() -> None:
    with pytest.raises(EditError) as caught:
        edited("a\n  b\nc\n", NoteEdit("replace", old="b\nd", text="x"))
    assert "line 2" in (caught.value.hint or "")


# --- sections ------------------------------------------------------------------------------


def test_a_section_is_replaced_with_all_below_it() -> None:
    new = edited(NOTE, NoteEdit("replace_section", heading="Notes", text="New.\n\nMore.\n\n"))
    assert "## Notes\n\nNew.\n\nMore.\n\n## Log\n" in new
    assert new.startswith(NOTE[: NOTE.index("Old.")])
    assert new.endswith("\n\n## Log\n")


@pytest.mark.parametrize(
    ("before", "heading", "text", "after"),
    [
        ("# A\n# B\n", "A", "x", "# A\nx\n# B\n"),
        ("# A\n\n# B\n", "A", "x", "# A\n\nx\n# B\n"),
        ("# A", "A", "x", "# A\nx\n"),
        ("# A\n\nold", "A", "x", "# A\n\nx\n"),
        ("# A\n\nold\n\n\n# B\n", "a", "# A\n\nx\n", "# A\n\nx\n\n\n# B\n"),
        ("# A\n\nold\n\n# B\n", "A", "", "# A\n\n\n# B\n"),
        ("# A\r\nold\r\n# B\r\n", "A", "x\ny", "# A\r\nx\r\ny\r\n# B\r\n"),
        ("A\n===\nold\n", "A", "x", "A\n===\nx\n"),
        ("# A\n## S\n1\n# B\n## S\n2\n", "B#S", "x", "# A\n## S\n1\n# B\n## S\nx\n"),
    ],
)
def test_sections_of_all_kinds(before: str, heading: str, text: str, after: str) -> None:
    assert edited(before, NoteEdit("replace_section", heading=heading, text=text)) == after


@pytest.mark.parametrize(
    ("action", "heading", "text", "place"),
    [
        ("insert_before", "Notes", "Line.", "  - [ ] Send\n\nLine.\n\n## Notes\n"),
        ("insert_after", "Notes", "Line.", "## Notes\n\nLine.\n\nOld.\n"),
        ("insert_after", "Tasks", "- [ ] New", "## Tasks\n\n- [ ] New\n- [ ] Call the bank\n"),
        ("append", "Tasks", "- [ ] New", "  - [ ] Send\n- [ ] New\n\n## Notes\n"),
        ("append", "Notes", "End.", "Deep.\n\nEnd.\n\n## Log\n"),
        ("append", "Log", "Today.", "## Log\nToday.\n"),
        ("append", None, "Today.", "## Log\nToday.\n"),
        ("prepend", None, "First.", "---\n\nFirst.\n\n# Plan\n"),
    ],
)
def test_lines_are_inserted(action: str, heading: str | None, text: str, place: str) -> None:
    new = edited(NOTE, NoteEdit(action, heading=heading, text=text))  # type: ignore[arg-type]
    assert place in new
    assert new.replace(place, "") != new
    removed = [line for line in changed(NOTE, new) if line.startswith("-")]
    assert removed == []


def test_an_appended_text_begins_on_a_line_of_its_own() -> None:
    assert edited("", NoteEdit("append", text="x")) == "x"
    assert edited("a", NoteEdit("append", text="x")) == "a\n\nx"
    assert edited("- a\n", NoteEdit("append", text="- x")) == "- a\n- x\n"
    assert edited("a\r\n", NoteEdit("append", text="x\ny\n")) == "a\r\n\r\nx\r\ny\r\n"
    assert edited("| a |\n", NoteEdit("append", text="| x |")) == "| a |\n| x |\n"


def test_headings_that_are_missing_or_doubled_are_told() -> None:
    with pytest.raises(EditError, match="has no heading 'None'") as caught:
        edited(NOTE, NoteEdit("append", heading="None", text="x"))
    assert "Plan#Notes#Sub" in (caught.value.hint or "")
    twice = "# A\n## S\n1\n# B\n## S\n2\n"
    with pytest.raises(EditError, match="2 times, at lines 2 and 5"):
        edited(twice, NoteEdit("replace_section", heading="S", text="x"))


# --- tasks ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "lines"),
    [
        (NoteEdit("tick", old="Call the bank"), ["-- [ ] Call the bank", "+- [x] Call the bank"]),
        (NoteEdit("tick", old="bank"), ["-- [ ] Call the bank", "+- [x] Call the bank"]),
        (NoteEdit("tick", line=12), ["-  - [ ] Send", "+  - [x] Send"]),
        (NoteEdit("untick", old="Write"), ["-- [x] Write", "+- [ ] Write"]),
        (NoteEdit("tick", old="Write"), []),
        (NoteEdit("untick", old="Send"), []),
    ],
)
def test_tasks_are_ticked(edit: NoteEdit, lines: list[str]) -> None:
    assert changed(NOTE, edited(NOTE, edit)) == lines


@pytest.mark.parametrize(
    ("line", "ticked"),
    [
        ("> * [/] a", "> * [x] a"),
        ("1. [ ] a", "1. [x] a"),
        ("+ [-] a", "+ [x] a"),
        ("- [ ]", None),
    ],
)
def test_tasks_of_all_kinds(line: str, ticked: str | None) -> None:
    assert edited(line, NoteEdit("tick", line=1)) == (ticked or "- [x]")


@pytest.mark.parametrize(
    ("text", "edit", "message"),
    [
        (NOTE, NoteEdit("tick", line=1), "Line 1 is no task"),
        (NOTE, NoteEdit("tick", old="none"), "no task 'none'"),
        ("- [ ] a b\n- [ ] a c\n", NoteEdit("tick", old="a"), "2 tasks have this text, at lines 1"),
        ("```\n- [ ] a\n```\n", NoteEdit("tick", old="a"), "no task"),
        ("- [ ] one\n- [ ] two\n", NoteEdit("tick", old="one", line=2), "line 2 is another: two"),
        ("- [ ] one\n- [x] two\n", NoteEdit("untick", old="one", line=2), "line 2 is another: two"),
        ("- [ ] one\n- [x] two\n", NoteEdit("tick", old="one", line=2), "line 2 is another: two"),
        ("- [ ] one\n", NoteEdit("tick", old="none", line=1), "line 1 is another: one"),
    ],
)
def test_tasks_that_are_missing_or_doubled(text: str, edit: NoteEdit, message: str) -> None:
    with pytest.raises(EditError, match=message):
        edited(text, edit)


def test_a_line_and_a_text_name_one_of_several_equal_tasks() -> None:
    text = "- [ ] call\n- [ ] call Bob\n- [ ] call\n"
    assert edited(text, NoteEdit("tick", old=" call ", line=3)).endswith("- [x] call\n")
    assert "- [x] call Bob" in edited(text, NoteEdit("tick", old="Bob", line=2))


# --- properties ----------------------------------------------------------------------------

FRONT = """\
---
# what it is about
title: "A: b"  # shown
Status: draft
tags: [a, "b"]
aliases:
- One
- 'Two'

# dates
date: 2026-01-01
nested:
  key: 1
note: |
  some
  text
---
Body.
"""


@pytest.mark.parametrize(
    ("key", "value", "lines"),
    [
        ("title", "C", ['-title: "A: b"  # shown', '+title: "C"  # shown']),
        ("title", 5, ['-title: "A: b"  # shown', "+title: 5  # shown"]),
        ("status", "done", ["-Status: draft", "+Status: done"]),
        ("Status", True, ["-Status: draft", "+Status: true"]),
        ("Status", "true", ["-Status: draft", '+Status: "true"']),
        ("Status", "a: b", ["-Status: draft", '+Status: "a: b"']),
        ("Status", "[[Note]]", ["-Status: draft", '+Status: "[[Note]]"']),
        ("Status", "数据", ["-Status: draft", "+Status: 数据"]),
        ("Status", "", ["-Status: draft", '+Status: ""']),
        ("Status", None, ["-Status: draft", "+Status:"]),
        ("tags", ("x", "y, z"), ['-tags: [a, "b"]', '+tags: [x, "y, z"]']),
        ("tags", (), ['-tags: [a, "b"]', "+tags: []"]),
        ("aliases", ("One", "3"), ["-- 'Two'", '+- "3"']),
        ("date", "2026-12-01", ["-date: 2026-01-01", "+date: 2026-12-01"]),
        ("note", "x", ["-note: |", "-  some", "-  text", "+note: x"]),
        ("new", "x", ["+new: x"]),
        ("new key", ("a", "b"), ["+new key:", "+  - a", "+  - b"]),
        ("a:b", 1.5, ["+a:b: 1.5"]),
        ("on", (1e20, -1e-07, 1.5e300), ["+on:", "+  - 1.0e+20", "+  - -1.0e-07", "+  - 1.5e+300"]),
        ("007", ("9:30", "02134", "1_0"), ["+007:", '+  - "9:30"', '+  - "02134"', '+  - "1_0"']),
        (
            "x",
            ("1e3", "120", "yes", ".5"),
            ["+x:", *(f'+  - "{each}"' for each in ("1e3", "120", "yes", ".5"))],
        ),
        # other programs read these as numbers or booleans
        *(
            ("x", each, [f'+x: "{each}"'])
            for each in ("12:30:45", "010", "089", "0x1F", "0o17", "1_000", "1:30.5", "y", "=")
        ),
        # PyYAML refuses the whole frontmatter for these
        *(("x", each, [f'+x: "{each}"']) for each in ("2026-13-45", "2026-02-30")),
        ("x", "a\tb", ['+x: "a\\tb"']),
        *(("x", each, [f"+x: {each}"]) for each in ("09:30", "2026-12-01", "1.2.3", "0x", "yes!")),
    ],
)
def test_only_the_property_changes(key: str, value: PropertyValue, lines: list[str]) -> None:
    new = edited(FRONT, NoteEdit("set_property", property=key, value=value))
    assert changed(FRONT, new) == lines
    windows = edited(
        FRONT.replace("\n", "\r\n"), NoteEdit("set_property", property=key, value=value)
    )
    assert windows == new.replace("\n", "\r\n")
    assert edited(new, NoteEdit("set_property", property=key, value=value)) == new


@pytest.mark.parametrize(
    ("key", "lines"),
    [
        ("title", ['-title: "A: b"  # shown']),
        ("STATUS", ["-Status: draft"]),
        ("aliases", ["-aliases:", "-- One", "-- 'Two'"]),
        ("nested", ["-nested:", "-  key: 1"]),
        ("note", ["-note: |", "-  some", "-  text"]),
    ],
)
def test_only_the_property_goes(key: str, lines: list[str]) -> None:
    assert changed(FRONT, edited(FRONT, NoteEdit("remove_property", property=key))) == lines


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("Body.\n", "---\nkey: x\n---\nBody.\n"),
        ("", "---\nkey: x\n---\n"),
        ("---\n---\nBody.\n", "---\nkey: x\n---\nBody.\n"),
        ("---\nno end\n", "---\nkey: x\n---\n---\nno end\n"),
        ("Body.\r\n", "---\r\nkey: x\r\n---\r\nBody.\r\n"),
    ],
)
def test_frontmatter_is_created(text: str, after: str) -> None:
    assert edited(text, NoteEdit("set_property", property="key", value="x")) == after


def test_the_last_property_takes_the_frontmatter_along() -> None:
    remove = NoteEdit("remove_property", property="a")
    assert edited("---\na: 1\n---\nBody.\n", remove) == "Body.\n"
    assert edited("---\n# why\na: 1\n---\nBody.\n", remove) == "---\n# why\n---\nBody.\n"


@pytest.mark.parametrize(
    ("fence", "line"), [("---", "a: 1"), ("+++", "a = 1")], ids=["YAML", "TOML"]
)
def test_where_the_frontmatter_never_ends_no_edit_moves_or_ends_it_unasked(
    fence: str, line: str
) -> None:
    joined = f"{fence}\n{line}\n{line.replace('a', 'b')}\nText.\n"
    with pytest.raises(EditError, match="never ends"):
        edited(joined, NoteEdit("prepend", text="x"))
    note = f"{fence}\n{line}\n\n# Plan\n\nText.\n"
    rule = f"x\n\n{fence}\n\ny"
    with pytest.raises(EditError, match="never ends") as refused:
        edited(note, NoteEdit("prepend", text="x"))
    assert f"'{fence}' below them" in str(refused.value.hint)
    for edit in (
        NoteEdit("append", text=rule),
        NoteEdit("append", text=rule, heading="Plan"),
        NoteEdit("insert_before", text=rule, heading="Plan"),
        NoteEdit("insert_after", text=rule, heading="Plan"),
        NoteEdit("replace_section", text=rule, heading="Plan"),
    ):
        with pytest.raises(EditError, match="would end it"):
            edited(note, edit)
        assert edited(note, replace(edit, text="x")).startswith(f"{fence}\n{line}\n\n")
    mended = edited(note, NoteEdit("replace", old=line, text=f"{line}\n{fence}"))
    assert edited(mended, NoteEdit("prepend", text="x")).startswith(
        f"{fence}\n{line}\n{fence}\n\nx\n"
    )


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ("+++\na = 1\n+++\n", "a", "is TOML"),
        ("---\na: 1\na: 2\n---\n", "a", "2 times"),
        ("---\na: &x 1\nb: *x\n---\n", "a", "without changing more"),
        ("---\n{a: 1, b: 2}\n---\n", "a", "without changing more"),
        ("---\ntitle: T\na: draft\n\nText", "a", "never ends"),
        ("---\ntitle: T\n", "a", "never ends"),
        ("---\ntitle: T\nText.\n", "a", "never ends"),
        ("+++\ntitle = 1\n", "a", "never ends"),
        ("---\nb: 1\n---\n`a:: 0`\n\n- A:: open\n", "a", "in line 6, as an inline field"),
        ("Text [a:: open].\n", "a", "in line 1, as an inline field"),
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text: str, key: str, message: str) -> None:
    with pytest.raises(EditError, match=message):
        edited(text, NoteEdit("set_property", property=key, value="x"))
    if "without" not in message:
        with pytest.raises(EditError, match=message):
            edited(text, NoteEdit("remove_property", property=key))


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), 10**30, ("a", 2**63)])
def test_a_number_that_is_not_read_again_is_refused(value: PropertyValue) -> None:
    with pytest.raises(InputError, match=r"The number .* cannot be written"):
        edited(FRONT, NoteEdit("set_property", property="x", value=value))


MEETING = """\
---
title: Meeting
date: 2026-11-01
tags:
  - a
prose

# Agenda

important text

---

Later
"""


@pytest.mark.parametrize(
    ("key", "value", "lines"),
    [
        ("date", "2026-11-29", ["-date: 2026-11-01", "+date: 2026-11-29"]),
        ("tags", "x", ["-tags:", "-  - a", "+tags: x"]),
        ("status", "done", ["+status: done"]),
    ],
)
def test_text_in_a_frontmatter_that_never_ends_stays(
    key: str, value: PropertyValue, lines: list[str]
) -> None:
    new = edited(MEETING, NoteEdit("set_property", property=key, value=value))
    assert changed(MEETING, new) == lines
    assert new.partition("prose")[2] == MEETING.partition("prose")[2]
    removed = edited(new, NoteEdit("remove_property", property=key))
    assert changed(MEETING, removed) == [line for line in lines if line.startswith("-")]


def test_comments_between_the_lines_of_a_property_stay() -> None:
    text = "---\ntags: # mine\n- a\n# of the project\n- b\nc: 1\n---\n"
    edit = NoteEdit("set_property", property="tags", value=("x",))
    assert changed(text, edited(text, edit)) == ["-- a", "+- x", "-- b"]


@pytest.mark.parametrize(
    "block",
    [
        "date: x\n\n    indented code",
        "date: x\n due: y",
        "date:\n\n  - an item\n: [",
        "date: [x\nprose",
        'date: "x\ny"\n: [',
    ],
)
def test_what_may_be_text_below_a_property_is_no_part_of_it(block: str) -> None:
    text = f"---\na: 1\n{block}\n---\nBody.\n"
    for edit in (
        NoteEdit("set_property", property="date", value="x"),
        NoteEdit("remove_property", property="date"),
    ):
        with pytest.raises(EditError, match="without changing more"):
            edited(text, edit)


def test_a_list_of_python_is_a_list() -> None:
    items: Any = ["a", "b"]
    assert edited("", NoteEdit("set_property", property="x", value=items)) == (
        "---\nx:\n  - a\n  - b\n---\n"
    )


def test_a_property_that_is_not_there_is_not_removed() -> None:
    with pytest.raises(EditError, match="no property 'x'") as caught:
        edited(FRONT, NoteEdit("remove_property", property="x"))
    assert caught.value.hint == ("Its properties: title, Status, tags, aliases, date, nested, note")


# --- arguments -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (NoteEdit("replace", text="x"), "needs old"),
        (NoteEdit("replace", text="x", old=""), "is empty"),
        (NoteEdit("append"), "needs text"),
        (NoteEdit("append", text="x", old="y"), "does not take old"),
        (NoteEdit("prepend", text="x", heading="y"), "does not take heading"),
        (NoteEdit("set_property", property=" ", value="x"), "must be one line"),
        (NoteEdit("remove_property", property="a\nb"), "must be one line"),
        (NoteEdit("tick"), "needs old, the text of the task, or line"),
        (NoteEdit("tick", old=" "), "Which task"),
        (NoteEdit("tick", old="", line=1), "Which task"),
    ],
)
def test_each_action_takes_what_it_needs(edit: NoteEdit, message: str) -> None:
    with pytest.raises(InputError, match=message):
        edited("a", edit)


# --- bytes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030", "cp932", "cp1252"]
)
def test_the_encoding_and_its_mark_stay(encoding: str) -> None:
    words = {"cp932": "これは日本語の文です。" * 5, "cp1252": "Übergröße, naïve façade é è ü. " * 5}
    text = words.get(encoding, "这是一个中文的笔记，我们在这里写下一些内容。" * 5) + "\r\nend\r\n"
    data = text.encode(encoding)
    file = TextFile.decoded("a.md", data)
    assert file.text == text
    new = edited(file.text, NoteEdit("replace", old="end", text="END"))
    assert file.encode(new) == data.replace(
        "end".encode(file.encoding), "END".encode(file.encoding)
    )
    assert line_end(text) == "\r\n"


def test_a_character_that_the_encoding_lacks_is_refused() -> None:
    file = TextFile.decoded("a.md", ("Übergröße, naïve façade é è ü. " * 5).encode("cp1252"))
    with pytest.raises(EditError, match=r"a.md is in cp1252, which lacks '数'"):
        file.encode(file.text + "数")
    assert file.encode(file.text + "€").endswith(b"\x80")


def test_what_gbk_lacks_is_refused_unless_the_file_goes_beyond_it() -> None:
    text = "这是一个中文的笔记，我们在这里写下一些内容。\n" * 5
    file = TextFile.decoded("a.md", text.encode("gbk"))
    with pytest.raises(EditError, match=r"a.md is in gbk, which lacks '😀'"):
        file.encode(file.text + "😀")
    assert file.encode(file.text + "数") == (text + "数").encode("gbk")
    wider = TextFile.decoded("a.md", (text + "😀").encode("gb18030"))
    assert wider.encode(wider.text + "😃") == (text + "😀😃").encode("gb18030")


def test_what_big5_lacks_is_refused_unless_the_file_goes_beyond_it() -> None:
    text = "這是一個中文的筆記，我們在這裡寫下一些內容。\n" * 5
    file = TextFile.decoded("a.md", text.encode("big5"))
    with pytest.raises(EditError, match=r"a.md is in big5, which lacks 'é'"):
        file.encode(file.text + "é")
    assert file.encode(file.text + "數") == (text + "數").encode("big5")
    wider = TextFile.decoded("a.md", (text + "é").encode("big5hkscs"))
    assert wider.encode(wider.text + "é") == (text + "éé").encode("big5hkscs")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("数据库".encode() + b"\xff" + "我们".encode() * 20, "not valid in its encoding"),
        (b"\x89PNG\r\n\x00\x00", "is no text"),
    ],
)
def test_a_file_that_would_lose_bytes_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(EditError, match=message):
        TextFile.decoded("a.md", data)


def test_a_long_diff_says_what_it_leaves_out() -> None:
    diff = short_diff("", "x\n" * 1000)
    assert diff.splitlines()[-1] == f"… {1001 - MAX_LINES} more lines"
    assert short_diff("a\r\nb\r\n", "a\r\nc\r\n").splitlines()[1:] == [" a", "-b", "+c"]
    assert short_diff("a\r\n", "a\n").splitlines()[1:] == ["-a\\r", "+a"]


def test_frontmatter_of_the_examples_is_read() -> None:
    assert frontmatter.split(FRONT).properties["title"] == "A: b"


def test_an_action_that_does_not_exist_is_told_with_those_that_do() -> None:
    with pytest.raises(InputError, match="no action 'tock'") as caught:
        edited("text", NoteEdit("tock"))  # type: ignore[arg-type]
    assert "untick" in (caught.value.hint or "")


# --- what a person does in an editor -------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_text_that_is_replaced_whole_keeps_its_line_ends(end: str) -> None:
    text = end.join(["one", "two", ""])
    assert replace_all(text, "one\ntwo\n") == text
    assert replace_all(text, "one\n2\nthree") == end.join(["one", "2", "three"])


def test_a_line_that_stays_keeps_its_own_line_end() -> None:
    text = "a\r\nb\nc\r\nd\r\n"
    assert replace_all(text, "a\nb\nnew\nd\n") == "a\r\nb\nnew\r\nd\r\n"


@example("a\r\rb\nc\n", "a\n\nc\n")
@example("\ra\n\n", "\n\na")
@given(st.text("ab\r\n", max_size=12), st.text("ab\n", max_size=12))
def test_what_was_typed_is_written_but_for_line_ends(text: str, typed: str) -> None:
    assert with_line_ends(replace_all(text, typed), "\n") == typed
    assert replace_all(text, with_line_ends(text, "\n")) == text


def test_a_task_is_ticked_where_the_person_sees_it() -> None:
    text = "- [ ] same\n- [ ] same\n"
    assert set_seen_task(text, done=True, task="same", line=2) == "- [ ] same\n- [x] same\n"


def test_a_task_is_ticked_though_other_lines_came_above_it() -> None:
    text = "# New\n\n- [ ] other\n- [ ] paint\n"
    assert set_seen_task(text, done=True, task="paint", line=3).endswith("- [x] paint\n")


@pytest.mark.parametrize("line", [1, 2, 0, 99])
def test_a_task_that_has_another_text_now_is_left_alone(line: int) -> None:
    with pytest.raises(EditError):
        set_seen_task("- [ ] sell\n- [ ] sell\n", done=True, task="buy", line=line)
