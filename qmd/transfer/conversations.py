"""
Reads the conversations that ChatGPT and Claude export, and sessions of Claude Code and Codex, and
makes notes of them.

Sources: the archives of "Export data" of both programs: ``conversations.json``, in newer ones of
ChatGPT ``conversations-000.json`` and so on; the transcripts of Claude Code and the rollouts of
Codex, each a file of JSON lines for a session. Only the branch that the person saw last is read;
what tools and the system said is left out. Of a session the last answer to each question is kept,
the files that were changed, and what is still to do.
"""

from __future__ import annotations

import codecs
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from qmd.errors import FileAccessError, InputError, file_access
from qmd.files.vault import file_name_of, harmless_name
from qmd.parse.convert.in_note import (
    code_in_note,
    inert_heading,
    inert_in_note,
    inert_markdown,
    inert_value,
)
from qmd.parse.lines import split_lines
from qmd.parse.markdown import closed, outline

ConversationProgram = Literal["chatgpt", "claude", "claude-code", "codex"]

#: Bytes of all conversations, unpacked.
MAX_BYTES = 512 * 1024 * 1024
#: Conversations of one export, and messages of one conversation.
MAX_CONVERSATIONS, MAX_MESSAGES = 50_000, 5000
#: Characters of a note; what is longer is left out.
MAX_TEXT = 4_000_000
_MAX_TITLE, _MAX_FILE_NAME, _MAX_HEADING = 200, 80, 100
#: Characters of a conversation in JSON.
MAX_ITEM = 64 * 1024 * 1024
_PIECE = 1 << 20  # bytes that are read at once
_MAX_LINE = 64 * 1024 * 1024  # bytes of a line of a transcript; a longer one is left out
_MAX_LISTED = 200  # files and tasks of a session
#: The tools of Claude Code that change files.
_WRITES = ("Edit", "MultiEdit", "Write", "NotebookEdit")
#: What stands in the place of a person's words in a transcript.
_NOT_TYPED = ("<command-", "<local-command-", "<bash-", "Caveat: ", "[Request interrupted")
#: What only the conversations of a program have.
_KEYS: dict[ConversationProgram, str] = {"chatgpt": "mapping", "claude": "chat_messages"}
#: The same in a rollout of Codex.
_NOT_TYPED_IN_CODEX = (
    *("<environment_context>", "<user_instructions>", "<INSTRUCTIONS>", "# AGENTS.md instructions"),
    *("<turn_aborted>", "<user_shell_command>", "<skill>", "<subagent_notification>"),
    *("<permissions instructions>", "<collaboration_mode>", "<model_switch>"),
)
#: The kinds of blocks that are text, in the messages of all of them.
_TEXTS = ("text", "input_text", "output_text")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (\S.*)$", re.MULTILINE)
_FILES = re.compile(r"(?:.*/)?conversations(?:-\d{1,5})?\.json")
_BAD = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError)
_BLANKS = re.compile(r"[\s,]*")
_ATX = re.compile(r" {0,3}#{1,6}(?=[ \t]|$)")


class ExportedMessage(NamedTuple):
    """What a person or the model said, as Markdown; ``files`` are the names of what was sent."""

    is_question: bool
    text: str
    files: tuple[str, ...] = ()


class Conversation(NamedTuple):
    """
    A conversation of an export.

    Attributes:
        id: What the program calls it.
        created, updated: ISO 8601 UTC; "" if the export does not say.
        changed: The files that a session has changed.
        to_do: What a session has left to do.
    """

    source: ConversationProgram
    id: str
    title: str
    created: str
    updated: str
    messages: tuple[ExportedMessage, ...]
    changed: tuple[str, ...] = ()
    to_do: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The value of the property ``conversation`` of its note."""
        return f"{self.source}:{self.id}"

    @property
    def file_name(self) -> str:
        """That of a new note: day and title, and the id for those of the same title."""
        title = file_name_of(self.title)[:_MAX_FILE_NAME].strip(" .") or self.source
        name = f"{self.created[:10]} {title} {file_name_of(self.id)[:8]}"
        return f"{harmless_name(name)}.md"


def conversations(source: ConversationProgram, file: Path) -> Iterator[Conversation]:
    """
    The conversations of an export, each when it is asked for; those without a message are left out.

    Args:
        file: The archive, or the ``conversations.json`` in it; the transcript of a session.

    Raises:
        FileAccessError: The file cannot be read.
        InputError: It is no export of the program, damaged or too large.
    """
    if source in ("claude-code", "codex"):
        read_session = _of_codex if source == "codex" else _of_claude_code
        session = read_session(_lines(file), file.stem)
        if session is not None:
            yield session
        return
    read = _of_chatgpt if source == "chatgpt" else _of_claude
    number = 0
    for pieces in _parts(file):
        for item in _items(pieces, file):
            number += 1
            if number > MAX_CONVERSATIONS:
                raise _refused(file, f"it has more than {MAX_CONVERSATIONS:,} conversations")
            if not isinstance(item, dict):
                raise _refused(file, "its conversations are no objects")
            for other, key in _KEYS.items():
                if other != source and key in item:
                    raise InputError(
                        f"{file} is an export of another program.",
                        hint=f"qmd import {other} {file}",
                    )
            conversation = read(item)
            if conversation is not None:
                yield conversation


def as_note(conversation: Conversation) -> str:
    """
    Frontmatter, and for each question a heading with the answers below it.

    `qmd.parse.convert.in_note.inert_markdown` says what of the texts is not kept.
    """
    head = ["---", f"title: {json.dumps(inert_value(conversation.title), ensure_ascii=False)}"]
    head += [
        f"{name}: {value}"
        for name, value in (
            ("date", conversation.created),
            ("updated", conversation.updated),
            ("source", conversation.source),
            ("conversation", json.dumps(conversation.key, ensure_ascii=False)),
        )
        if value
    ]
    parts = ["\n".join([*head, "---", "", f"# {inert_heading(_first_line(conversation.title))}"])]
    if conversation.to_do:
        parts.append("\n".join(["## To do", "", *(f"- [ ] {each}" for each in conversation.to_do)]))
    if conversation.changed:
        parts.append("\n".join(["## Changed", "", *(f"- {each}" for each in conversation.changed)]))
    room = MAX_TEXT
    for message in conversation.messages:
        part = _question(message) if message.is_question else _answer(message.text)
        room -= len(part)
        if room < 0:
            parts.append("*The rest is too long and was left out.*")
            break
        parts.append(part)
    return "\n\n".join(parts) + "\n"


# --- the file ------------------------------------------------------------------------


def _parts(file: Path) -> Iterator[Iterator[bytes]]:
    """The JSON texts of an export, each in pieces."""
    try:
        if not zipfile.is_zipfile(file):
            with file.open("rb") as opened:
                yield _pieces(opened, file, [MAX_BYTES])
            return
        with zipfile.ZipFile(file) as archive:
            names = sorted(name for name in archive.namelist() if _FILES.fullmatch(name))
            if not names:
                raise _refused(file, "there is no conversations.json in it")
            # Before anything is read. The sizes may be wrong, so reading is limited, too.
            if sum(archive.getinfo(name).file_size for name in names) > MAX_BYTES:
                raise _too_large(file)
            room = [MAX_BYTES]
            for name in names:
                with archive.open(name) as entry:
                    yield _pieces(entry, file, room)
    except OSError as error:
        raise FileAccessError(str(file), error, reading=True) from error
    except _BAD as error:
        raise _refused(file, "the archive is damaged") from error


def _pieces(opened: IO[bytes], file: Path, room: list[int]) -> Iterator[bytes]:
    """What a file holds, as long as there is ``room`` for it, which it takes away."""
    while piece := opened.read(_PIECE):
        room[0] -= len(piece)
        if room[0] < 0:
            raise _too_large(file)
        yield piece


def _items(pieces: Iterator[bytes], file: Path) -> Iterator[object]:
    """The items of a list in JSON, one after the other, so that only one is in memory."""
    text = _GrowingText(pieces)
    if text.next_sign() != "[":
        raise _refused(file, "it is neither a ZIP archive nor a list of conversations in JSON")
    text.at += 1
    number = 0
    while text.next_sign() != "]":
        try:
            item = text.next_value()
        except (ValueError, RecursionError) as error:
            if text.unread > MAX_ITEM:
                reason = f"a conversation has more than {MAX_ITEM:,} characters"
                raise _refused(file, reason) from error
            if not number:
                raise _refused(file, "its JSON is damaged") from error
            raise InputError(
                f"{file} is damaged behind conversation {number:,}.",
                hint="Those before are imported. Download the export again, and import that:"
                " nothing is doubled.",
            ) from error
        yield item
        number += 1


class _GrowingText:
    """
    JSON of which no more is in memory than the next value takes, and a piece.

    Attributes:
        at: Where the next sign is, in what is in memory.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._json = json.JSONDecoder()
        self._text = ""
        self._is_whole = False
        self.at = 0

    @property
    def unread(self) -> int:
        return len(self._text) - self.at

    def next_sign(self) -> str:
        """The next sign but blanks and commas; "" at the end."""
        while True:
            self.at = _BLANKS.match(self._text, self.at).end()  # type: ignore[union-attr]
            if self.unread or self._is_whole:
                return self._text[self.at : self.at + 1]
            self._read(1)

    def next_value(self) -> object:
        """
        The next value.

        Raises:
            ValueError, RecursionError: There is none, or it is too long.
        """
        while True:
            try:
                value, self.at = self._json.raw_decode(self._text, self.at)
            except ValueError:
                if self._is_whole or self.unread > MAX_ITEM:
                    raise
                self._read(self.unread)  # twice as much, so that the attempts are few
            else:
                return value

    def _read(self, characters: int) -> None:
        """Read as many characters, and up to a piece more."""
        parts = [self._text[self.at :]]
        while characters > 0 and not self._is_whole:
            piece = next(self._pieces, b"")
            self._is_whole = not piece
            parts.append(self._decoder.decode(piece, final=self._is_whole))
            characters -= len(parts[-1])
        self._text, self.at = "".join(parts), 0


def _refused(file: Path, reason: str) -> InputError:
    return InputError(
        f"{file} is no export that qmd can read: {reason}.",
        hint="Give the ZIP archive that 'Export data' of ChatGPT or Claude sends.",
    )


def _too_large(file: Path) -> InputError:
    return InputError(
        f"{file} has more than {MAX_BYTES:,} bytes of conversations.",
        hint="Split the list in its conversations.json, and import the parts one after the other.",
    )


def _lines(file: Path) -> Iterator[Mapping[str, Any]]:
    """The objects of a file with one in each line; lines that are none are left out."""
    with file_access(str(file), reading=True), file.open("rb") as opened:
        read = 0
        while line := opened.readline(_MAX_LINE + 1):
            read += len(line)
            if read > MAX_BYTES:
                raise _too_large(file)
            if len(line) <= _MAX_LINE:
                with suppress(ValueError, RecursionError):
                    yield _mapping(json.loads(line))


# --- the programs --------------------------------------------------------------------


def _of_chatgpt(item: Mapping[str, Any]) -> Conversation | None:
    nodes = _mapping(item.get("mapping"))
    name = item.get("current_node")
    branch: list[ExportedMessage] = []
    for _ in range(MAX_MESSAGES):  # a damaged export may go round in circles
        node = _mapping(nodes.get(name)) if isinstance(name, str) else {}
        if not node:
            break
        message = _message_of_chatgpt(_mapping(node.get("message")))
        if message is not None:
            branch.append(message)
        name = node.get("parent")
    number = item.get("conversation_id") or item.get("id")
    times = (moment(item.get("create_time")), moment(item.get("update_time")))
    return _conversation("chatgpt", number, item.get("title"), times, branch[::-1])


def _message_of_chatgpt(message: Mapping[str, Any]) -> ExportedMessage | None:
    role = _mapping(message.get("author")).get("role")
    is_hidden = _mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
    content = _mapping(message.get("content"))
    if role not in ("user", "assistant") or is_hidden:
        return None
    if content.get("content_type") not in ("text", "multimodal_text"):
        return None  # thoughts, calls of tools and what they answered
    parts = content.get("parts")
    texts, files = [], []
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            spoken = part.get("text")
            texts.append(spoken if isinstance(spoken, str) else "")
            if part.get("content_type") == "image_asset_pointer":
                files.append("a picture")
    attachments = _mapping(message.get("metadata")).get("attachments")
    names = [_mapping(each).get("name") for each in _list(attachments)]
    files = [each for each in names if isinstance(each, str)] or files
    return _message(role == "user", texts, files)


def _of_claude(item: Mapping[str, Any]) -> Conversation | None:
    messages = []
    for each in _list(item.get("chat_messages"))[:MAX_MESSAGES]:
        entry = _mapping(each)
        blocks = [_mapping(block) for block in _list(entry.get("content"))]
        strings = _texts_of(blocks)
        if not strings and isinstance(entry.get("text"), str):
            strings = [entry["text"]]
        sent = [*_list(entry.get("attachments")), *_list(entry.get("files"))]
        names = [_mapping(one).get("file_name") for one in sent]
        message = _message(
            entry.get("sender") == "human",
            strings,
            [each for each in names if isinstance(each, str)],
        )
        if message is not None:
            messages.append(message)
    times = (moment(item.get("created_at")), moment(item.get("updated_at")))
    return _conversation("claude", item.get("uuid"), item.get("name"), times, messages)


def _of_claude_code(lines: Iterator[Mapping[str, Any]], number: str) -> Conversation | None:
    """
    A session, from the lines of its transcript.

    Args:
        number: Its id, if no line says it.
    """
    messages: list[ExportedMessage] = []
    changed: dict[str, None] = {}
    to_do: list[str] = []
    title, times = "", list[str]()
    for line in lines:
        if line.get("type") == "summary" and isinstance(line.get("summary"), str):
            title = line["summary"]
        if not _is_said(line):
            continue
        if isinstance(line.get("sessionId"), str):
            number = line["sessionId"]
        times.append(moment(line.get("timestamp")))
        content = _mapping(line.get("message")).get("content")
        blocks = [_mapping(block) for block in _list(content)]
        for block in blocks:
            to_do = _used(block, changed, to_do)
        texts = [content] if isinstance(content, str) else _texts_of(blocks)
        _add(messages, _message(line["type"] == "user", texts, ()))
    times = sorted(filter(None, times))
    span = (times[0], times[-1]) if times else ("", "")
    session = _conversation("claude-code", number, title, span, messages)
    return session and session._replace(changed=tuple(changed)[:_MAX_LISTED], to_do=tuple(to_do))


def _of_codex(lines: Iterator[Mapping[str, Any]], number: str) -> Conversation | None:
    """
    A session, from the lines of its rollout. In early versions a line is what ``payload`` is now.

    Args:
        number: Its id, if no line says it.
    """
    messages: list[ExportedMessage] = []
    changed: dict[str, None] = {}
    to_do: list[str] = []
    times: list[str] = []
    is_named = False
    for line in lines:
        payload = _mapping(line.get("payload")) or line
        kind = payload.get("type")
        times.append(moment(line.get("timestamp")))
        if kind == "message":
            texts = _texts_of(map(_mapping, _list(payload.get("content"))))
            role = payload.get("role")
            texts = [text for text in texts if not text.lstrip().startswith(_NOT_TYPED_IN_CODEX)]
            if role in ("user", "assistant"):
                _add(messages, _message(role == "user", texts, ()))
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            to_do = _called(payload, changed, to_do)
        elif kind is None and not is_named and isinstance(payload.get("id"), str):
            # A session that goes on from another one names that, too, after itself.
            number, is_named = payload["id"], True
    times = sorted(filter(None, times))
    span = (times[0], times[-1]) if times else ("", "")
    session = _conversation("codex", number, "", span, messages)
    return session and session._replace(changed=tuple(changed)[:_MAX_LISTED], to_do=tuple(to_do))


def _called(call: Mapping[str, Any], changed: dict[str, None], to_do: list[str]) -> list[str]:
    """What is to do after a call of a tool; the files that it changes are put into ``changed``."""
    sent = call.get("arguments") or call.get("input") or ""
    values = call.get("action")
    if isinstance(sent, str):
        with suppress(ValueError, RecursionError):
            values = json.loads(sent)
    if call.get("name") == "update_plan":
        plan = map(_mapping, _list(_mapping(values).get("plan"))[:_MAX_LISTED])
        return _open_tasks(plan, "step")
    values = _mapping(values)
    command = values.get("command") or values.get("cmd") or values.get("input")
    words = command if isinstance(command, list) else [command, sent]
    for text in filter(_is_patch, words):
        for match in _PATCHED.finditer(text):
            changed[_as_code(match[1])] = None
        break
    return to_do


def _is_patch(text: object) -> bool:
    return isinstance(text, str) and "*** Begin Patch\n" in text


def _open_tasks(tasks: Iterable[Mapping[str, Any]], key: str) -> list[str]:
    return [
        inert_in_note(" ".join(each[key].split())[:_MAX_TITLE])
        for each in tasks
        if each.get("status") != "completed" and isinstance(each.get(key), str)
    ]


def _as_code(path: str) -> str:
    return code_in_note(" ".join(path.replace("`", "").split())[:500])


def _add(messages: list[ExportedMessage], message: ExportedMessage | None) -> None:
    """Add a message of a session; an answer replaces what was said between its steps."""
    if message is None or message.text.startswith(_NOT_TYPED):
        return
    if not message.is_question and messages and not messages[-1].is_question:
        messages.pop()
    if len(messages) < MAX_MESSAGES:
        messages.append(message)


def _is_said(line: Mapping[str, Any]) -> bool:
    """Whether it is of the person or the model, not of the program or helpers of the model."""
    is_aside = line.get("isMeta") or line.get("isSidechain")
    return line.get("type") in ("user", "assistant") and not is_aside


def _used(block: Mapping[str, Any], changed: dict[str, None], to_do: list[str]) -> list[str]:
    """What is to do after a call of a tool; the file that it changes is put into ``changed``."""
    sent = _mapping(block.get("input")) if block.get("type") == "tool_use" else {}
    if block.get("name") in _WRITES:
        path = sent.get("file_path") or sent.get("notebook_path")
        if isinstance(path, str):
            changed[_as_code(path)] = None
    elif sent and block.get("name") == "TodoWrite":
        return _open_tasks(map(_mapping, _list(sent.get("todos"))[:_MAX_LISTED]), "content")
    return to_do


def _texts_of(blocks: Iterable[Mapping[str, Any]]) -> list[str]:
    texts = [block.get("text") for block in blocks if block.get("type") in _TEXTS]
    return [text for text in texts if isinstance(text, str)]


def _message(
    is_question: bool, texts: Sequence[str], files: Sequence[str]
) -> ExportedMessage | None:
    text = "\n\n".join(filter(None, map(str.strip, texts)))
    return (
        ExportedMessage(is_question, text, tuple(dict.fromkeys(files))) if text or files else None
    )


def _conversation(
    source: ConversationProgram,
    number: object,
    title: object,
    times: tuple[str, str],
    messages: Sequence[ExportedMessage],
) -> Conversation | None:
    if not messages or not isinstance(number, str) or not number:
        return None
    written = " ".join(title.split())[:_MAX_TITLE] if isinstance(title, str) else ""
    first = next((each.text for each in messages if each.text), "")
    return Conversation(
        source, number[:100], written or _first_line(first) or "Untitled", *times, tuple(messages)
    )


def moment(value: object) -> str:
    """ISO 8601 UTC of a time in seconds or in ISO 8601; "" for anything else."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value, timezone.utc)
        else:
            return ""
        return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# --- the note ------------------------------------------------------------------------


def _question(message: ExportedMessage) -> str:
    """A heading with the first line, and the whole question as a quotation if it is longer."""
    heading = _first_line(message.text)
    parts = [f"## {inert_heading(heading) or 'A file'}"]
    if heading != " ".join(message.text.split()) or "\n" in message.text:
        lines = split_lines(inert_markdown(message.text))
        parts.append("\n".join(f"> {line}".rstrip() for line in lines))
    if message.files:
        names = (inert_in_note(" ".join(name.split())[:200]) for name in message.files)
        parts.append("\n".join(f"- sent: {name}" for name in names))
    return "\n\n".join(parts)


def _answer(text: str) -> str:
    """An answer, its headings below those of the questions."""
    shown = closed(inert_markdown(text))
    structure = outline(shown)
    pieces: list[str] = []
    at = 0
    for heading in structure.headings:
        line = structure.lines[heading.line - 1]
        if _ATX.match(line) and heading.level <= 4:
            start = structure.starts[heading.line - 1] + line.index("#")
            pieces += [shown[at:start], "##"]
            at = start
    return "".join([*pieces, shown[at:]])


def _first_line(text: str) -> str:
    """The first line of a text, without the signs that begin it, shortened."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    plain = " ".join(first[: 2 * _MAX_HEADING].split()).lstrip("#>-*+` ")
    return plain if len(plain) <= _MAX_HEADING else f"{plain[:_MAX_HEADING].rstrip()}…"
