"""
Writes a conversation with the agent as the text of a note, harmless to the programs that open it.

A note may have led the model to write what acts when it is shown: an image at another site tells
that site the text of its address, and programs for notes run queries and scripts in code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from qmd.parse.markdown import outline
from qmd.values.chats import Chat, ChatTurn

_STATUS = {
    "running": "This question is still being answered.",
    "stopped": "Stopped before it was answered.",
    "failed": "An error ended this turn.",
    "limit": "The limit of rounds or time was reached.",
    "interrupted": "The program ended before it was answered.",
}

_ACTIVE = re.compile(r"\\.|!(?=\[)|<(?=[A-Za-z/!?])(?!https?://)")
"""Images, embeds and HTML; a link in angle brackets is none, and what is escaped is taken whole."""
_PASSES = 4
_SPAN = re.compile(r"`[^`]*`")
_HIDDEN = "\0"
_FENCE = re.compile(
    r"(?m)^((?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*(?:`{3,}|~{3,})[ \t]*)([^\s`]+)([^\r\n]*)$"
)
_INLINE_QUERY = re.compile(r"`(?=[ \t]*\$?=)")
#: Languages that programs for notes colour and do not run.
_SHOWN = {
    *("bash", "c", "clojure", "console", "cpp", "csharp", "css", "csv", "diff", "dockerfile"),
    *("elixir", "erlang", "fish", "go", "graphql", "haskell", "html", "http", "ini", "java"),
    *("javascript", "js", "json", "jsonc", "jsx", "julia", "kotlin", "latex", "lua", "makefile"),
    *("markdown", "md", "mermaid", "nginx", "objective-c", "perl", "php", "plaintext"),
    *("powershell", "python", "py", "r", "regex", "ruby", "rust", "scala", "scss", "sh", "shell"),
    *("sql", "swift", "text", "toml", "ts", "tsx", "txt", "typescript", "vim", "xml", "yaml"),
    *("yml", "zsh"),
}


def chat_as_note(chat: Chat) -> str:
    """
    Frontmatter, and for each turn the question as a heading, the answer and its sources.

    The answers are those of a model: `inert` says what of them is not kept.
    """
    info = chat.info
    head = [
        "---",
        f"title: {json.dumps(info.name, ensure_ascii=False)}",
        f"created: {info.created}",
        f"updated: {info.updated}",
        f"qmd_chat: {info.id}",
        "---",
        "",
        f"# {info.name}",
    ]
    return "\n".join([*head, *(line for turn in chat.turns for line in _turn(turn))]) + "\n"


def _turn(turn: ChatTurn) -> Iterator[str]:
    first, *others = turn.question.strip().splitlines() or [""]
    yield from ("", f"## {first.strip()}", "")
    if any(map(str.strip, others)):
        yield from (*(f"> {line}".rstrip() for line in others), "")
    yield inert(turn.answer.strip()) or f"*{_STATUS.get(turn.status, 'No answer.')}*"
    sources = list(dict.fromkeys(_sources(turn)))
    if sources:
        yield from ("", "Sources:", "", *(f"- {source}" for source in sources))


def _sources(turn: ChatTurn) -> Iterator[str]:
    for event in turn.events:
        if event.kind == "answer":
            citations = event.data.get("citations")
            for each in citations if isinstance(citations, list) else ():
                if isinstance(each, dict) and each.get("status") == "ok":
                    page = f", {each['place']}" if each.get("place") else ""
                    lines = f"{each.get('from_line')}-{each.get('to_line')}"
                    yield f"`{each.get('file')}:{lines}`{page}"


def inert(text: str) -> str:
    """
    Markdown that shows the same and acts less: no images, embeds, HTML, queries or scripts.

    What stands in code stays, but for the names of languages that are not known to be harmless.
    Links, tags and tasks stay.
    """
    for _ in range(_PASSES):
        shown = _escaped(text, _without_code(text))
        if shown == text:
            break
        text = shown  # what was HTML is text now, in which a fence may begin or end elsewhere
    else:
        text = _escaped(text, text)
    text = _INLINE_QUERY.sub(r"\\`", text)
    return _FENCE.sub(_plain_fence, text)


def _without_code(text: str) -> str:
    """
    The text with what is surely code overwritten.

    HTML and formulas are no code here, though they hold no links and tags. Code in a line counts in
    paragraphs in which all readers of Markdown find the same: with single backticks, in pairs on
    each line.
    """
    structure = outline(text)
    others = {(block.start, block.end) for block in structure.blocks if block.kind == "html"}
    others.update(structure.formulas)
    code = {number for lines in structure.hidden if lines not in others for number in range(*lines)}
    pieces: list[str] = []
    paragraph: list[str] = []
    starts = [*structure.starts, len(text)]
    for number, begin in enumerate(structure.starts):
        line = text[begin : starts[number + 1]]
        if number not in code and line.strip():
            paragraph.append(line)
            continue
        pieces += _without_spans(paragraph)
        paragraph = []
        pieces.append(_HIDDEN * len(line) if number in code else line)
    return "".join([*pieces, *_without_spans(paragraph)])


def _without_spans(paragraph: list[str]) -> list[str]:
    """The lines of a paragraph with code between backticks overwritten, if it surely is."""
    is_sure = all(
        line.count("`") % 2 == 0 and "``" not in line and "\\`" not in line and "<http" not in line
        for line in paragraph
    )
    return [_SPAN.sub(_overwritten, line) for line in paragraph] if is_sure else paragraph


def _overwritten(match: re.Match[str]) -> str:
    return _HIDDEN * len(match[0])


def _escaped(text: str, masked: str) -> str:
    """The text with a backslash before each sign that acts; ``masked`` says which are code."""
    pieces: list[str] = []
    at = 0
    for match in _ACTIVE.finditer(masked):
        if match[0][0] != "\\":
            pieces += [text[at : match.start()], "\\"]
            at = match.start()
    return "".join([*pieces, text[at:]])


def _plain_fence(match: re.Match[str]) -> str:
    opening, language, rest = match.groups()
    is_shown = language.lower() in _SHOWN and not rest.strip()
    return f"{opening}{language}" if is_shown else f"{opening}text"
