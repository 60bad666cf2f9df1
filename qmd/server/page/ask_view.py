"""Reads conversations for the Ask view, and renders their answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from qmd.errors import ChatNotFoundError, NotFoundError, QmdError
from qmd.server.page.answer import Words, answer_html, sources_of
from qmd.server.page.ask_turn import TurnView, finished, seconds_since
from qmd.server.page.language import Language
from qmd.server.page.links import PageLinks
from qmd.values.chats import ChatTurn

if TYPE_CHECKING:
    from qmd.agent.chat import AgentTurn
    from qmd.inference.llm import LlmSettings
    from qmd.server.page.site import Site

_LISTED = 50
_RESUMABLE = ("failed", "stopped", "limit", "interrupted")
_NO_NAME = re.compile(r"[\x00-\x1f\x7f<>:\"/\\|?*#^\[\]]+")


class AskView:
    """What the templates of the Ask view get."""

    def __init__(self, site: Site) -> None:
        self._site = site

    # -- whole pages ---------------------------------------------------------------------

    def new(self, find: str) -> dict[str, Any]:
        return {
            **self._around(find),
            "chat": None,
            "turns": [],
            "mode": "read",
            "is_running": False,
            "export_path": "",
        }

    def conversation(self, chat_id: str, language: Language) -> dict[str, Any]:
        """Raises ChatNotFoundError."""
        chat = self._site.chats.chat(chat_id)
        turns = self._turns(chat_id, chat.turns, language)
        around = self._around("")
        mode = chat.info.mode if around["may_write"] else "read"
        return {
            **around,
            "chat": chat.info,
            "turns": turns,
            "mode": mode,
            "is_running": any(turn.is_running for turn in turns),
            "export_path": self.export_path(chat.info.name),
        }

    def _around(self, find: str) -> dict[str, Any]:
        model: LlmSettings | None = None
        problem: QmdError | None = None
        try:
            if self._site.chats.model_name is not None:
                model = self._site.kb.language_model.server()
        except QmdError as error:
            problem = error
        return {
            **self.listed(find),
            "model": model,
            "problem": problem,
            "may_write": self._site.chats.may_write,
        }

    # -- parts ---------------------------------------------------------------------------

    def listed(self, find: str) -> dict[str, Any]:
        """The latest conversations, those that have the words; and which are answered now."""
        chats = self._site.kb.chats(find, limit=_LISTED).chats
        running = {turn.chat for turn in self._site.chats.running()}
        return {"chats": chats, "find": find, "running": running}

    def turn_here(self, chat_id: str) -> AgentTurn | None:
        """The last turn of a conversation that this process has run, if any."""
        try:
            return self._site.chats.turn(chat_id)
        except ChatNotFoundError:
            return None

    def running_turn(self, chat_id: str) -> AgentTurn:
        """
        The turn of a conversation that is answered now.

        Raises:
            NotFoundError: There is none.
        """
        turn = self.turn_here(chat_id)
        if turn is None or turn.status != "running":
            raise NotFoundError("No question of this conversation is being answered.")
        return turn

    def change(self, chat_id: str, question: str) -> list[str]:
        """
        The lines of the whole change that a question is about.

        Raises:
            NotFoundError: The question does not wait any longer.
        """
        questions = self.running_turn(chat_id).questions
        if questions is None:
            raise NotFoundError(f"There is no question {question}.")
        return questions.lines(question)

    def turns(self, chat_id: str, language: Language) -> list[TurnView]:
        return self._turns(chat_id, self._site.chats.chat(chat_id).turns, language)

    def _turns(self, chat_id: str, turns: Sequence[ChatTurn], language: Language) -> list[TurnView]:
        shown = [self.turn(chat_id, turn, language) for turn in turns]
        for turn in shown[:-1]:
            turn.may_retry = False
        return shown

    def last_turn(self, chat_id: str, language: Language) -> TurnView:
        """Raises ChatNotFoundError: the conversation was deleted meanwhile."""
        return self.turn(chat_id, self._site.chats.chat(chat_id).turns[-1], language)

    def turn(self, chat_id: str, stored: ChatTurn, language: Language) -> TurnView:
        """A turn with all that has happened in it."""
        turn = TurnView(chat_id, stored.number, stored.question, stored.status)
        turn.seconds = seconds_since(stored.started) if turn.is_running else stored.seconds
        turn.may_retry = stored.status in _RESUMABLE
        for event in stored.events:
            turn.take(event.kind, event.data)
        for step in turn.steps:
            if step["kind"] == "text":
                is_open = turn.is_running and step is turn.steps[-1]
                step["shown"] = finished(step["text"]) if is_open else step["text"]
                step["html"] = self.markdown(step["shown"])
        if turn.answer:
            words = self._words(language)
            turn.sources = sources_of(turn.citations)
            turn.html = answer_html(turn, self.markdown, words)
        return turn

    def _words(self, language: Language) -> Words:
        texts = self._site.texts
        return lambda name, **values: texts.text(language, name, **values)

    def markdown(self, text: str) -> Markup:
        """Safe HTML for what the model wrote."""
        from qmd.render import LinkResolver, NoLinks, render_note

        collections = self._site.kb.collections()
        links: LinkResolver = NoLinks()
        if collections:
            links = PageLinks(self._site.kb, f"{collections[0].name}/answer.md")
        # The model may begin with a rule, "---", and a text that begins so has frontmatter.
        html = render_note(f"\n{text}", links).html
        return Markup(html)  # noqa: S704 - it is safe

    # -- the note of a conversation --------------------------------------------------------

    def export_path(self, name: str) -> str:
        """A path for the note of a conversation with this name, in the first collection."""
        name = _NO_NAME.sub(" ", name).strip(" .…")[:80] or "conversation"
        collections = self._site.kb.collections()
        return f"{collections[0].name}/{name}.md" if collections else f"{name}.md"
