"""What documents hold: headings, properties, tasks, tables of notes; and the notes of days."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from qmd import errors
from qmd.operations.arguments import InCollection, Limit
from qmd.operations.definition import KnowledgeBase, Replied, Row, Styled, operation
from qmd.values.days import PeriodicNote
from qmd.values.documents import ListedTask, TaskList
from qmd.values.facts import DAY, MONTH, Describe, InSchema, Shell
from qmd.values.graph import ViewList
from qmd.values.properties import PropertyList
from qmd.values.reading import DocumentOutline
from qmd.values.search import Tags
from qmd.values.text import one_line
from qmd.values.writing import EditedNote

FAMILY = {"toolset": "graph", "group": "read"}


# --- outline -------------------------------------------------------------------------


def _outline(outlined: DocumentOutline) -> Iterator[Row]:
    """One row for each heading and block, in the order of their lines."""
    parts: list[tuple[int, tuple[Styled | str, ...]]] = [
        (heading.line, ("  " * (heading.level - 1), heading.text)) for heading in outlined.headings
    ]
    parts += [(block.line, (Styled(f"^{block.block}", "dim"),)) for block in outlined.blocks]
    for line, text in sorted(parts, key=lambda part: part[0]):
        yield Row((Styled(f"{line:>5}", "line", outlined.file, line), "  ", *text))


def _outline_lines(outlined: DocumentOutline) -> Iterator[str]:
    lines = [
        (heading.line, f"{heading.line}: {'#' * heading.level} {heading.text}")
        for heading in outlined.headings
    ]
    lines += [(block.line, f"{block.line}: ^{block.block}") for block in outlined.blocks]
    return (text for _, text in sorted(lines, key=lambda line: line[0]))


def _outline_rest(outlined: DocumentOutline, budget: str) -> str:
    headings = outlined.total - len(outlined.headings)
    count = max(headings, outlined.left_out)
    if not count:
        return ""
    more = f"{count:,} more {'heading' if headings else 'block'}{'' if count == 1 else 's'}"
    or_raise = f", or raise {budget}" if outlined.left_out else ""
    return f"… {more}: name a section, as in FILE#Heading{or_raise}"


@operation(
    rows=_outline,
    lines=_outline_lines,
    heading="{file} ({lines:,} lines)",
    when_empty="{file} has no headings.",
    left_out_text=_outline_rest,
    title="Outline of a document",
    zh="一篇文档的标题和命名块，附行号。",
    examples=("qmd outline plan", "qmd outline 'plan#Next steps'", "qmd outline MOC --json"),
    errors=(errors.DocumentNotFoundError, errors.SectionNotFoundError, errors.AmbiguousNameError),
)
def outline(
    kb: KnowledgeBase,
    file: Annotated[
        str,
        Describe(
            "A name as get takes it, perhaps with #Heading", zh="get 所接受的名称，可加 #标题"
        ),
        Shell("FILE[#HEADING]", completes="documents"),
    ],
) -> DocumentOutline:
    """
    List the headings and named blocks of a document, with lines.

    With #Heading, those of that section.
    """
    return kb.outline(file)


# --- properties ----------------------------------------------------------------------


def _properties(listed: PropertyList) -> Iterator[Row]:
    rows = [(each.documents, each.key, _counts(each.kinds)) for each in listed.keys]
    rows += [(each.documents, each.value or "(none)", each.kind) for each in listed.values]
    width = max((len(f"{documents:,}") for documents, _, _ in rows), default=0)
    for documents, name, kinds in rows:
        count = Styled(f"{documents:>{width},}", "dim")
        yield Row((count, "  ", Styled(name, "file"), "  ", Styled(kinds, "dim")))


def _counts(kinds: Mapping[str, int]) -> str:
    """``number``, or ``12 number, 3 text`` if the values are of several kinds."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())


def _property_lines(listed: PropertyList) -> Iterator[str]:
    for key in listed.keys:
        yield f"{key.key} {key.documents} ({', '.join(key.kinds)})"
    for value in listed.values:
        yield f"{value.value or '(empty)'} {value.documents}"


def _property_heading(replied: Replied) -> str:
    key = replied.arguments.get("key")
    title = f"Values of {key}" if key else "Properties"
    return f"{title}, with their documents: {replied.value.total:,}"


@operation(
    rows=_properties,
    lines=_property_lines,
    heading=_property_heading,
    when_empty="No document has properties.",
    json_is_list=True,
    zh="所有笔记的属性（frontmatter 与行内字段）或某一属性的取值，附数量。搜索时写成 key:value。",
    examples=("qmd properties", "qmd properties status", "qmd properties --json"),
    errors=(errors.NotFoundError,),
)
def properties(
    kb: KnowledgeBase,
    key: Annotated[
        str,
        Describe("List the values of this property instead", zh="改为列出此属性的取值"),
        Shell("[KEY]", completes="property_keys", positional=True),
    ] = "",
    limit: Limit = 50,
) -> PropertyList:
    """
    List the properties of all notes, or the values of one.

    Each with the number of documents. Properties are the values of frontmatter and of inline fields
    (key:: value). Searches take conditions on them, such as status:draft.
    """
    if not key:
        keys = kb.properties()
        return PropertyList(keys=tuple(keys[:limit]), total=len(keys))
    try:
        values = kb.property_values(key)
    except errors.NotFoundError as error:
        begin = f"{error.hint.removesuffix('.')}. " if error.hint else ""
        hint = f"{begin}To see the properties of one note, get the note."
        raise errors.NotFoundError(str(error), hint=hint) from error
    return PropertyList(values=tuple(values[:limit]), total=len(values))


_BOXES = {"open": "[ ]", "doing": "[/]", "done": "[x]", "cancelled": "[-]"}


def _tasks(listed: TaskList) -> Iterator[Row]:
    width = max((len(task.due or "") for task in listed.tasks), default=0)
    for task in listed.tasks:
        due = Styled(f"{task.due or '':<{width}}", "dim")
        priority = "" if task.priority is None else f"({task.priority}) "
        yield Row(
            (due, f"{'  ' if width else ''}{_BOXES[task.status]} ", priority, task.text),
            task.file,
            task.line,
        )


def _lines(listed: TaskList) -> Iterator[str]:
    for task in listed.tasks:
        yield f"{task.file}:{task.line} {_BOXES[task.status]} {task.text}{_facts(task)}"


def _facts(task: ListedTask) -> str:
    facts = [
        f"{name} {value}"
        for name in ("due", "scheduled", "start", "finished", "priority")
        if (value := getattr(task, name)) is not None
    ]
    return f" ({', '.join(facts)})" if facts else ""


@operation(
    rows=_tasks,
    lines=_lines,
    heading="Tasks: {total:,}",
    when_empty="There is no such task.",
    zh="所有笔记中的任务（- [ ] 与 TODO），按到期日排序；用 edit_note 的 tick 勾选。",
    examples=(
        "qmd tasks",
        "qmd tasks --due week --tag work",
        "qmd tasks --done -n 20",
        "qmd tasks --due overdue --json",
    ),
    errors=(errors.CollectionNotFoundError,),
)
def tasks(
    kb: KnowledgeBase,
    due: Annotated[
        str | None,
        Describe(
            "Due by then: overdue, today, week, 3d, a date; or any, none",
            zh="到此为止到期：overdue、today、week、3d 或日期；any 为有到期日，none 为没有",
        ),
        InSchema(
            pattern=r"^(|overdue|today|tomorrow|week|month|any|none|[0-9]{1,4}(d|w|mo)"
            rf"|{MONTH}|{DAY})$"
        ),
        Shell("WHEN"),
    ] = None,
    tags: Tags = (),
    open: Annotated[  # noqa: A002 - the name on the wire
        bool, Describe("Those to be done; the default", zh="未完成的；默认")
    ] = False,
    done: Annotated[
        bool,
        Describe("Those done or cancelled; both: all", zh="已完成或已取消的；两者并用为全部"),
    ] = False,
    collection: InCollection = None,
    limit: Limit = 50,
) -> TaskList:
    """
    List the tasks of all notes, by when they are due.

    A task is a list item with a box (- [ ]) or TODO. Its days and priority are read as Obsidian
    Tasks, Dataview and Logseq write them. A search takes task:open and due:<2026-12-01.
    """
    return kb.tasks(due=due, tags=tags, open=open, done=done, collection=collection, limit=limit)


#: A text that is no name of a note.
_DESCRIBED = re.compile(
    r"\s*((table|list|task|calendar)(\s|$)|(name|query|from|tags|where|columns|sort|group|limit):\s)",
    re.IGNORECASE,
)


def _tables(replied: Replied) -> str:
    listed: ViewList = replied.value
    parts = []
    for each in listed.views:
        heading = [one_line(each.name)] if each.name else []
        empty = [] if each.rows or each.problem else ["No note is in it."]
        parts += [*heading, each.markdown.rstrip("\n"), *empty]
    return "\n\n".join(parts)


def _shows_none(listed: ViewList) -> bool:
    return all(view.problem for view in listed.views)


@operation(
    text=_tables,
    fails=_shows_none,
    command="view",
    examples=(
        "qmd view Books",
        "qmd view 'TABLE rating FROM #book WHERE rating > 3 SORT rating DESC'",
        "qmd view notes/Books.base --json",
    ),
    title="Table of notes",
    zh="按属性列出笔记的表格：笔记中 qmd、dataview、base 代码块所描述的，或 text 所描述的。只读。",
    errors=(
        errors.DocumentNotFoundError,
        errors.AmbiguousNameError,
        errors.NotFoundError,
        errors.CollectionNotFoundError,
    ),
)
def view(
    kb: KnowledgeBase,
    view: Annotated[
        str,
        Describe(
            "A note with views, a path .base, or a view: TABLE rating FROM #book WHERE rating > 3"
            " SORT rating DESC; or YAML with query, from, tags, where, columns, sort, group, limit",
            zh="含有视图的笔记、.base 文件的路径，或视图本身："
            "TABLE rating FROM #book WHERE rating > 3 SORT rating DESC；"
            "或 YAML，其键为 query、from、tags、where、columns、sort、group、limit",
        ),
        Shell("VIEW|-", completes="documents", stdin=True),
    ],
    collection: InCollection = None,
    limit: Limit = 200,
) -> ViewList:
    """
    Show tables of notes by their properties.

    A note describes them in blocks of code: qmd, dataview (TABLE and LIST) or base. They are only
    read.

    If none can be shown, the exit code is 1.
    """
    if _DESCRIBED.match(view):
        return kb.views(text=view, collection=collection, limit=limit)
    return kb.views(view, collection=collection, limit=limit)


When = Annotated[
    str,
    Describe(
        "today, 2026-11-20, week, 2026-W47, last month, 2026-11, 2026-Q4 or 2026",
        zh="today、2026-11-20、week、2026-W47、last month、2026-11、2026-Q4 或 2026",
    ),
    InSchema(
        pattern=r"^((this|last|next) )?(week|month|quarter|year)$|^(today|yesterday|tomorrow)$"
        rf"|^{DAY}$|^{MONTH}$|^20[0-9]{{2}}-(W(0[1-9]|[1-4][0-9]|5[0-2])|Q[1-4])$"
    ),
    Shell("[WHEN]", positional=True),
]


def _note(replied: Replied) -> str:
    note: PeriodicNote = replied.value
    if not note.exists:
        return (
            f"There is no note of {note.period} yet: it would be {one_line(note.file)}\n"
            f"'qmd note day {note.period}', or the tool create_periodic_note, creates it."
        )
    text = f"{one_line(note.file)}\n\n{note.text}".rstrip("\n")
    if note.more_lines:
        next_line = len(note.text.splitlines()) + 1
        text += f"\n\n… {note.more_lines:,} more lines: get {one_line(note.file)}:{next_line}"
    return text


@operation(
    text=_note,
    command="day",
    other_names=("today",),
    examples=("qmd day", "qmd day yesterday", "qmd day 2026-11-20", "qmd day 'last week' --json"),
    title="Note of a day",
    zh="某日、某周、某月、某季或某年的笔记：按 Obsidian 日记插件的设置找到，不新建。",
    errors=(errors.CollectionNotFoundError,),
)
def periodic_note(
    kb: KnowledgeBase, when: When = "today", collection: InCollection = None
) -> PeriodicNote:
    """
    Show the note of a day, a week or a month.

    Or of a quarter or a year. It lies where the vault's settings of daily and periodic notes say.
    Nothing is created.
    """
    return kb.periodic_note(when, collection=collection)


def _created(replied: Replied) -> str:
    note: EditedNote = replied.value
    file = one_line(note.file)
    if not note.written:
        return f"{file} exists; nothing was changed."
    text = f"Created {file}, {note.docid} (change {note.change})"
    return text if note.problem is None else f"{text}\nNot searchable yet: {note.problem}"


@operation(
    text=_created,
    command="note day",
    examples=("qmd note day", "qmd note day week", "qmd note day 2026-11-20"),
    title="New note of a day",
    zh="按模板新建某日、某周或某月的笔记；已有的保持不变。可撤销。",
    group="write",
    lane="write",
    bodies=({"when": "today"},),
    errors=(
        errors.OutsideRootsError,
        errors.CollectionNotFoundError,
        errors.NotFoundError,
        errors.InvalidPathError,
        errors.FileAccessError,
    ),
)
def create_periodic_note(
    kb: KnowledgeBase, when: When = "today", collection: InCollection = None
) -> EditedNote:
    """
    Create the note of a day, a week or a month from its template.

    Or of a quarter or a year. One that exists stays as it is. 'qmd undo' takes it back.
    """
    return kb.create_periodic_note(when, collection=collection)
