"""The view of conversations with the agent, at ``/ask``."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Protocol
from urllib.parse import quote

from markupsafe import Markup, escape
from starlette.responses import JSONResponse, Response

from qmd.agent.chat import AgentTurn
from qmd.engine_text import EngineText
from qmd.errors import ChatNotFoundError, InputError, NotFoundError, QmdError
from qmd.inference.llm import LlmSettings
from qmd.kb import KnowledgeBase
from qmd.render import LinkResolver, NoLinks, render_note
from qmd.server.page.links import PageLinks, note_address
from qmd.server.page.views import Answer, PageView, Shown, Visit
from qmd.server.streams import MEDIA_TYPE, EventResponse, encoded, turn_stream
from qmd.system import clock
from qmd.values.chats import RESUMABLE, ChatMode, ChatTurn

_HEARTBEAT_S = 15.0
_MODES: dict[str, ChatMode] = {"read": "read", "write": "write"}
_LISTED = 50
_NO_NAME = re.compile(r"[\x00-\x1f\x7f<>:\"/\\|?*#^\[\]]+")


# --- what is shown ----------------------------------------------------------------------


def _new(visit: Visit) -> Shown:
    nothing: dict[str, Any] = {
        "chat": None,
        "turns": [],
        "mode": "read",
        "is_running": False,
        "export_path": "",
    }
    return Shown("ask.html", {**_around(visit, visit.query("find")), **nothing})


def _conversation(visit: Visit) -> Shown:
    chat = visit.site.chats.chat(visit.path["id"])
    turns = [_turn(visit, turn) for turn in chat.turns]
    for turn in turns[:-1]:
        turn.may_retry = False
    if visit.is_part:
        return Shown("ask_turns.html", {"turns": turns})
    around = _around(visit, "")
    values = {
        "chat": chat.info,
        "turns": turns,
        "mode": chat.info.mode if around["may_write"] else "read",
        "is_running": any(turn.is_running for turn in turns),
        "export_path": _export_path(visit.kb, chat.info.name),
    }
    return Shown("ask.html", {**around, **values})


def _around(visit: Visit, find: str) -> dict[str, Any]:
    """What stands around a conversation."""
    chats = visit.site.chats
    model: LlmSettings | None = None
    problem: QmdError | None = None
    try:
        if chats.has_model:
            model = visit.kb.backend_settings.server()
    except QmdError as error:
        problem = error
    more = {"model": model, "problem": problem, "may_write": chats.may_write}
    return {**_latest(visit, find), **more}


def _latest(visit: Visit, find: str) -> dict[str, Any]:
    """The latest conversations, those that have the words; and which are answered now."""
    running = {turn.chat for turn in visit.site.chats.running()}
    return {"chats": visit.kb.chats(find, limit=_LISTED).chats, "find": find, "running": running}


def _list(visit: Visit) -> Shown:
    values = _latest(visit, visit.query("find"))
    return Shown("ask_list.html", {**values, "current": visit.query("current")})


def _last_turn(visit: Visit) -> Shown:
    last = visit.site.chats.last_turn(visit.path["id"])
    return Shown("ask_turns.html", {"turns": [_turn(visit, last)]})


def _change(visit: Visit) -> Shown:
    """The whole change that a question is about."""
    question = visit.query("question")
    consents = _running_turn(visit).consents
    if consents is None:
        raise NotFoundError(f"There is no question {question}.")
    return Shown("ask_change.html", {"lines": consents.lines(question)})


def _events(visit: Visit) -> Response:
    """What happens in the turn that runs; `idle` if none does, or another process runs it."""
    turn = _turn_here(visit)
    response = Response(encoded("idle", {}), media_type=MEDIA_TYPE)
    if turn is not None and turn.status == "running":
        response = EventResponse(turn_stream(turn, heartbeat_s=_HEARTBEAT_S))
    response.headers.update({"cache-control": "no-store", "x-accel-buffering": "no"})
    return response


def _turn_here(visit: Visit) -> AgentTurn | None:
    """The last turn of a conversation that this process has run, if any."""
    try:
        return visit.site.chats.turn(visit.path["id"])
    except ChatNotFoundError:
        return None


def _running_turn(visit: Visit) -> AgentTurn:
    """
    The turn of a conversation that is answered now.

    Raises:
        NotFoundError: There is none.
    """
    turn = _turn_here(visit)
    if turn is None or turn.status != "running":
        raise NotFoundError("No question of this conversation is being answered.")
    return turn


def _turn(visit: Visit, stored: ChatTurn) -> TurnView:
    """A turn with all that has happened in it."""

    def markdown(text: str) -> Markup:
        """Safe HTML for what the model wrote."""
        collections = visit.kb.collections()
        links: LinkResolver = NoLinks()
        if collections:
            links = PageLinks(visit.kb, f"{collections[0].name}/answer.md")
        # The model may begin with a rule, "---", and a text that begins so has frontmatter.
        return Markup(render_note(f"\n{text}", links).html)  # noqa: S704 - it is safe

    turn = TurnView(visit.path["id"], stored.number, stored.question, stored.status)
    turn.seconds = seconds_since(stored.started) if turn.is_running else stored.seconds
    turn.may_retry = stored.status in RESUMABLE
    for event in stored.events:
        turn.take(event.kind, event.data)
    for step in turn.steps:
        if step["kind"] == "text":
            is_open = turn.is_running and step is turn.steps[-1]
            step["shown"] = finished(step["text"]) if is_open else step["text"]
            step["html"] = markdown(step["shown"])
    if turn.answer:
        turn.sources = sources_of(turn.citations)
        turn.html = answer_html(turn, markdown, visit.text)
    return turn


def _export_path(kb: KnowledgeBase, name: str) -> str:
    """A path for the note of a conversation with this name, in the first collection."""
    name = _NO_NAME.sub(" ", name).strip(" .…")[:80] or "conversation"
    collections = kb.collections()
    return f"{collections[0].name}/{name}.md" if collections else f"{name}.md"


# --- what forms do ----------------------------------------------------------------------


def _send(visit: Visit) -> Answer:
    mode = _MODES.get(visit["mode"] or "read")
    if mode is None:
        raise InputError("The mode of a conversation is read or write.")
    return _begun(visit, visit.site.chats.start(visit["text"], visit["chat"] or None, mode=mode))


def _retry(visit: Visit) -> Answer:
    return _begun(visit, visit.site.chats.retry(visit.path["id"]))


def _begun(visit: Visit, turn: AgentTurn) -> Answer:
    """Tell a script where the turn is to be followed; without one load its page."""
    if not visit.wants_json:
        return f"/ask/{turn.chat}"
    path = _export_path(visit.kb, turn.name)
    return JSONResponse({"chat": turn.chat, "name": turn.name, "export_path": path})


def _stop(visit: Visit) -> Answer:
    turn = _turn_here(visit)
    if turn is not None:
        turn.stop()
    return _done(visit)


def _answer(visit: Visit) -> Answer:
    agree = visit["agree"]
    if agree not in ("yes", "no"):
        raise InputError("The answer to a question is yes or no.")
    _running_turn(visit).decide(visit["question"], agree == "yes")
    return _done(visit)


def _done(visit: Visit) -> Answer:
    if visit.wants_json:
        return Response(status_code=204)
    return f"/ask/{quote(visit.path['id'], safe='')}"


def _rename(visit: Visit) -> str:
    return f"/ask/{visit.kb.rename_chat(visit.path['id'], visit['name']).id}"


def _delete(visit: Visit) -> str:
    visit.site.chats.forget(visit.path["id"])
    return "/ask"


def _export(visit: Visit) -> str:
    """Save the conversation as a note, and show the note."""
    return note_address(visit.kb.export_chat(visit.path["id"], visit["path"]).path)


VIEWS = (
    PageView("/ask", _new),
    PageView("/ask/send", act=_send),
    PageView("/ask/{id}", _conversation),
    PageView("/ask/{id}/events", _events, compress=False),
    PageView("/ask/{id}/stop", act=_stop),
    PageView("/ask/{id}/answer", act=_answer),
    PageView("/ask/{id}/retry", act=_retry),
    PageView("/ask/{id}/rename", act=_rename),
    PageView("/ask/{id}/delete", act=_delete),
    PageView("/ask/{id}/export", act=_export),
    PageView("/part/ask/list", _list),
    PageView("/part/ask/{id}/turns", _conversation),
    PageView("/part/ask/{id}/turn", _last_turn),
    PageView("/part/ask/{id}/change", _change),
)


#: The document, first line and last line of a citation, and whether they support its sentence.
CitedLines = tuple[str, int, int, bool]


class Words(Protocol):
    """Texts of the view in one language."""

    def __call__(self, name: str, /, **values: object) -> str: ...


def sources_of(citations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """
    The citations of an answer, equal ones once, each with its ``number`` from 1, whether it is
    ``ok``, and the ``address`` that shows its lines.
    """
    sources: dict[CitedLines, dict[str, Any]] = {}
    for citation in citations:
        file, first, last, ok = cited = _cited_lines(citation)
        address = _address(file, first, last, citation.get("anchor"))
        shown = {"number": len(sources) + 1, "ok": ok, "address": address}
        sources.setdefault(cited, {"place": None, **citation, **shown})
    return list(sources.values())


def answer_html(turn: TurnView, markdown: Callable[[str], Markup], words: Words) -> Markup:
    """The answer of a turn as HTML; `TurnView.sources` are linked where they are cited."""
    marks = [*_citation_marks(turn, words), *_unsupported_marks(turn, words)]
    return render_with_marks(turn.answer, marks, markdown)


def _citation_marks(turn: TurnView, words: Words) -> Iterator[Mark]:
    sources = {_cited_lines(source): source for source in turn.sources}
    links: dict[tuple[int, int], list[Markup]] = {}
    for citation in turn.citations:
        # Several citations in one bracket share its place.
        links.setdefault((citation["start"], citation["end"]), []).append(
            _link(turn, sources[_cited_lines(citation)], words)
        )
    for (start, end), at_place in links.items():
        yield Mark(start, end, Markup("").join(at_place))


def _link(turn: TurnView, source: Mapping[str, Any], words: Words) -> Markup:
    label = words("ask.source_number", n=source["number"])
    text = str(source["number"])
    if not source["ok"]:
        missing = words("ask.not_in_source")
        text, label = f"{text} · {missing}", f"{label}: {missing}"
    return Markup('<a class="{}" href="{}" data-source="{}" aria-label="{}">{}</a>').format(
        "cite" if source["ok"] else "cite missing",
        source["address"],
        f"{turn.id}-source-{source['number']}",
        label,
        text,
    )


def _unsupported_marks(turn: TurnView, words: Words) -> Iterator[Mark]:
    position = 0
    for sentence in turn.unsupported:
        start = turn.answer.find(sentence, position)
        if start < 0:
            continue
        position = start + len(sentence)
        # In a row of a table the mark belongs into the last cell.
        end = start + len(sentence.rstrip(" \t\r\n|"))
        if any(start <= citation["start"] < position for citation in turn.citations):
            continue  # the link says so
        flag = Markup('<span class="unsupported" title="{}">{}</span>')
        yield Mark(end, end, flag.format(words("ask.unsupported_title"), words("ask.unsupported")))


def _cited_lines(citation: Mapping[str, Any]) -> CitedLines:
    is_ok = citation["status"] == "ok"
    return citation["file"], citation["from_line"], citation["to_line"], is_ok


def _address(file: str, first: int, last: int, anchor: str | None) -> str:
    """Where the cited lines are shown; a viewer knows the fragment, too."""
    lines = str(first) if first == last else f"{first}-{last}"
    fragment = f"#{quote(anchor, safe='=')}" if anchor else ""
    return f"{note_address(file)}?line={lines}{fragment}"


# --- marks in Markdown ----------------------------------------------------------------
# A mark's place is a position in the Markdown of a model, but only the rendered HTML can take it.
# So each mark stands in the Markdown as a random word, which no text can contain and which Markdown
# leaves as it is, and is put in its place in the sanitised HTML.


_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>")


@dataclass(frozen=True, slots=True)
class Mark:
    """
    HTML that replaces ``text[start:end]``; nothing is replaced if both are the same.

    ``html`` may hold a link.
    """

    start: int
    end: int
    html: Markup


def render_with_marks(
    text: str, marks: Iterable[Mark], to_html: Callable[[str], str], *, nonce: str | None = None
) -> Markup:
    """
    Render Markdown, with ``marks`` in it; of marks that overlap the first counts.

    A mark that would stand in an attribute or within a link is left out; the text that it should
    have replaced stays.

    Args:
        to_html: Returns safe HTML for Markdown; double quotes enclose its attributes.
        nonce: The random word, for tests.
    """
    nonce = nonce or f"m{secrets.token_hex(12)}"
    pieces: list[str] = []
    placed: list[tuple[Mark, str]] = []
    position = 0
    for mark in sorted(marks, key=lambda mark: (mark.start, mark.end)):
        if mark.start < position:
            continue
        pieces += [text[position : mark.start], f"{nonce}x{len(placed)}x"]
        placed.append((mark, text[mark.start : mark.end]))
        position = mark.end
    pieces.append(text[position:])
    html = to_html("".join(pieces))
    token = re.compile(rf"{nonce}x(\d+)x")

    def mark_html(match: re.Match[str]) -> str:
        return str(placed[int(match[1])][0].html)

    def original(match: re.Match[str]) -> str:
        return str(escape(placed[int(match[1])][1]))

    result: list[str] = []
    position = links = 0
    for tag in _TAG.finditer(html):
        between = html[position : tag.start()]
        result += [token.sub(original if links else mark_html, between)]
        result += [token.sub(original, tag[0])]
        position = tag.end()
        if tag[2].lower() == "a":
            links += -1 if tag[1] else 1
    result.append(token.sub(mark_html, html[position:]))
    return Markup("".join(result))  # noqa: S704 - `to_html` has made it safe, and marks are ours


#: What a step lacks as long as it goes on; turns of earlier versions lack ``at``, too.
_OPEN = dict.fromkeys(("at", "success", "result", "duration_ms", "outcome"))


@dataclass
class TurnView:
    """
    A question and all that came of it.

    Attributes:
        number: Of the turn within its conversation, from 1.
        status: "running", "done", "stopped", "failed", "limit" or "interrupted".
        steps: What happened before the answer: the data of the events ``text``, ``tool_started``,
            ``bad_block`` and ``question``, each with that of the event that completes it.
        answer: The answer in Markdown.
        html: The answer as it is shown.
        citations: The citations of the answer, as its event holds them.
        unsupported: Sentences of the answer without a source.
        sources: Its citations as the list below it has them (`qmd.server.page.ask.sources_of`).
        rounds: How often the model was asked.
        seconds: How long it took, or has taken until now.
    """

    chat: str
    number: int
    question: str
    status: str = "running"
    steps: list[dict[str, Any]] = field(default_factory=list)
    answer: str = ""
    html: Markup = field(default_factory=Markup)
    citations: Sequence[Mapping[str, Any]] = ()
    unsupported: Sequence[str] = ()
    sources: Sequence[Mapping[str, Any]] = ()
    error: Mapping[str, Any] | None = None
    seconds: float = 0
    may_retry: bool = False
    rounds: int = 0

    @property
    def id(self) -> str:
        return f"turn-{self.number}"

    @property
    def is_running(self) -> bool:
        return self.status == "running"

    def take(self, kind: str, data: Mapping[str, Any]) -> None:
        """Take the next event of the turn."""
        match kind:
            case "asking" | "discard":
                self.rounds += kind == "asking"
                self._drop_words()  # of an answer that was broken off
                self.error = None
            case "text":
                self._add_words(data["text"])
            case "tool_started" | "bad_block":
                self._add(kind, **data)
            case "question":
                left = data["timeout_s"] - seconds_since(data["asked_at"])
                self._add(kind, **data, seconds_left=max(0.0, left))
            case "tool_finished":
                self._complete("call", data)
            case "answered":
                self._complete("question", data)
            case "answer":
                self._drop_words()  # the answer holds them
                self.answer = data["text"]
                self.citations = data["citations"]
                self.unsupported = data["unsupported"]
            case "error":
                phrases = data.get("phrases", {}).items()
                self.error = {
                    **data,
                    **{name: EngineText.from_json(each) for name, each in phrases},
                }

    def _add(self, kind: str, **data: Any) -> None:
        step_id = f"{self.id}-step-{len(self.steps) + 1}"
        self.steps.append({"kind": kind, "id": step_id, "chat": self.chat, **_OPEN, **data})

    def _add_words(self, text: str) -> None:
        if self.steps and self.steps[-1]["kind"] == "text":
            self.steps[-1]["text"] += text
        elif text.strip():
            self._add("text", text=text, round=self.rounds)

    def _drop_words(self) -> None:
        if self.steps and self.steps[-1]["kind"] == "text":
            self.steps.pop()

    def _complete(self, name: str, data: Mapping[str, Any]) -> None:
        """Add what came of a tool call, or of a question."""
        for step in self.steps:
            if step.get(name) == data[name]:
                step.update(data)


_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)


def finished(text: str) -> str:
    """The blocks of Markdown at the beginning of a text to which nothing more can be added."""
    text = text[: text.rfind("\n\n") + 2] if "\n\n" in text else ""
    fences = [match.start() for match in _FENCE.finditer(text)]
    return text[: fences[-1]] if len(fences) % 2 else text


def seconds_since(moment: str) -> float:
    """How long ago a time in ISO 8601 was, in seconds."""
    began = clock.parse(moment)
    return max(0.0, (datetime.now(timezone.utc) - began).total_seconds())
