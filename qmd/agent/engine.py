"""
The engine of conversations: what `qmd ask`, `qmd chat`, REST and the page answer questions with.

::

    engine = Engine(kb)
    result = engine.loop(engine.offering_tools(model)).run("What did we decide?")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qmd.agent.citations import CheckedAnswer, CitedLines, check_answer
from qmd.agent.executor import ToolExecutor
from qmd.agent.loop import MAX_ITERATIONS, ChatModel, CheckAnswer, ExecutionLoop, Happening
from qmd.agent.native import ToolModel, with_tool_calls
from qmd.agent.prompt import Prompt, prompt_for
from qmd.agent.reading import Reading
from qmd.errors import QmdError
from qmd.kb import KnowledgeBase
from qmd.tools.toolsets import select


class Engine:
    """
    The tools of a knowledge base, the system prompt that describes them, and loops with both.

    Args:
        toolsets: The toolsets that the model may use; none for all.
        max_rounds, model_time_s: As for `ExecutionLoop`.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        toolsets: Sequence[str] = (),
        *,
        max_rounds: int = MAX_ITERATIONS,
        model_time_s: float | None = None,
    ) -> None:
        self._kb = kb
        self._max_rounds = max_rounds
        self._model_time_s = model_time_s
        self.window = kb.language_model.window
        self.executor = ToolExecutor(kb, select(toolsets).tools)
        self._definitions = self.executor.definitions()
        self.prompt = prompt_for(kb, self._definitions)

    def offering_tools(self, model: ToolModel) -> ChatModel:
        """The model for `loop`, which is offered the tools in the way that the settings say."""
        mode = self._kb.language_model.tool_calls
        return with_tool_calls(model, mode, self.prompt, self._definitions)

    def loop(
        self,
        model: ChatModel,
        *,
        prompt: Prompt | None = None,
        read_before: Reading | None = None,
        listen: Callable[[Happening], None] | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> ExecutionLoop:
        """
        A loop for one question; its other arguments are those of `ExecutionLoop`.

        Args:
            prompt: The system prompt; None for that of the engine.
            read_before: What the model has read in the turns before.
        """
        return ExecutionLoop(
            model,
            self.executor,
            system=prompt or self.prompt,
            max_iterations=self._max_rounds,
            window=self.window,
            model_time_s=self._model_time_s,
            check=citation_check(self._kb, read_before),
            listen=listen,
            stopped=stopped,
        )


def citation_check(kb: KnowledgeBase, before: Reading | None = None) -> CheckAnswer:
    """
    The check for the runs of one conversation.

    Args:
        before: What the model has read in the turns before.
    """

    def read_lines(name: str, first: int, last: int) -> CitedLines | None:
        try:
            document = kb.get(name, from_line=first, max_lines=last - first + 1)
        except QmdError:  # no document, several, or a name that no document can have
            return None
        count = document.last_line + document.more_lines if document.lines else line_count(name)
        return CitedLines(document.document.file, document.document.title, document.text, count)

    def line_count(name: str) -> int:
        document = kb.get(name, max_lines=1)
        return document.lines + document.more_lines

    def similarity(claim: str, text: str) -> float | None:
        if not kb.model_loaded():
            return None
        query = kb.embed_texts([claim], kind="query")[0]
        return float(query @ kb.embed_texts([text])[0])

    def check(text: str, reading: Reading) -> CheckedAnswer:
        return check_answer(text, reading.merge([before] if before else []), read_lines, similarity)

    return check
