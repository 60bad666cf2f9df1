"""Puts the questions of a fixture to the agent, each in its own conversation, and measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from agent_bench import metrics
from agent_bench.fixture import AgentQuestion, AgentQuestions
from qmd.agent.chat import AgentTurn
from qmd.agent.loop import ChatModel, RunState
from qmd.errors import ConfigError, InputError
from qmd.evaluate.fixtures import DocumentNames
from qmd.inference.llm import ChatAnswer, Event, Message
from qmd.kb import KnowledgeBase
from qmd.values import Progress, ProgressCallback, SearchRequest
from qmd.values.text import estimate_tokens

SEARCH_DEPTH = 10
"""The hits of `qmd query` that are compared with the agent's citations."""

Ask = Callable[[str, ChatModel], AgentTurn]
"""Answers a question in a new conversation with a model."""


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """
    The figures of one question; None where a figure is not defined.

    Attributes:
        precision, recall: Of the citations (`agent_bench.metrics`).
        missing: The facts that the answer lacks; ``wrong``: those that it must not have.
        tokens: What the model read and wrote; ``estimated``: the server did not count them.
        search_hit: Whether `qmd query` has a note that answers among its first hits.
        error: Why there is no answer; None if there is one.
    """

    question: str
    text: str
    precision: float | None
    recall: float | None
    facts: float | None
    forbidden_absent: float | None
    missing: tuple[str, ...]
    wrong: tuple[str, ...]
    citations: int
    rounds: int
    tool_calls: int
    tokens: int
    estimated: bool
    seconds: float
    search_hit: bool | None
    error: str | None


@dataclass(frozen=True, slots=True)
class AgentReport:
    """
    The measurement of a fixture. ``unknown``: names of notes that the database lacks.

    A question that failed counts for the shares as an answer that says nothing.
    """

    name: str
    model: str
    answers: tuple[AgentAnswer, ...]
    unknown: tuple[str, ...]

    @property
    def failed(self) -> int:
        return sum(answer.error is not None for answer in self.answers)


def run(
    kb: KnowledgeBase,
    fixture: AgentQuestions,
    model: ChatModel,
    ask: Ask,
    *,
    model_name: str = "",
    progress: ProgressCallback | None = None,
) -> AgentReport:
    """
    Measure the agent. An error of one question is recorded, and the run goes on.

    Raises:
        InputError: No note that the fixture names is in the database.
        ConfigError: The model cannot be asked at all.
    """
    names = DocumentNames(document.file for document in kb.documents(""))
    answers: list[AgentAnswer] = []
    resolved = [names.resolve(dict.fromkeys(question.files, 1)) for question in fixture.questions]
    unknown = tuple(dict.fromkeys(name for _, missing in resolved for name in missing))
    named = {name for question in fixture.questions for name in question.files}
    if named and len(unknown) == len(named):
        raise InputError(
            f"None of the notes that {fixture.name} names is in the database",
            hint=f"It names {unknown[0]}, for example; 'qmd ls' lists what there is.",
        )
    for number, (question, (files, _)) in enumerate(zip(fixture.questions, resolved, strict=True)):
        if progress is not None:
            progress(Progress("bench", number, len(fixture.questions), question.id))
        answers.append(_measure(kb, question, frozenset(files), model, ask))
    return AgentReport(fixture.name, model_name, tuple(answers), unknown)


def _measure(
    kb: KnowledgeBase, question: AgentQuestion, files: frozenset[str], model: ChatModel, ask: Ask
) -> AgentAnswer:
    hits = kb.run_search("query", SearchRequest(question.text, limit=SEARCH_DEPTH)).hits
    meter = _Meter(model)
    start_s = perf_counter()
    turn = ask(question.text, meter)
    seconds = perf_counter() - start_s
    if isinstance(turn.error, ConfigError):
        raise turn.error
    result = turn.result or RunState(())
    error = None if turn.error is None else str(turn.error)
    if error is None and turn.status != "done":
        error = f"no answer within {result.rounds} rounds"
    text = result.final_response if error is None else ""
    citations = result.checked.citations if error is None else ()
    facts = metrics.present(text, question.facts)
    wrong = metrics.present(text, question.forbidden)
    forbidden = len(question.forbidden) if error is None else 0  # silence is no merit
    return AgentAnswer(
        question=question.id,
        text=text,
        precision=metrics.citation_precision(citations, files),
        recall=metrics.citation_recall(citations, files),
        facts=metrics.share(len(facts), len(question.facts)),
        forbidden_absent=metrics.share(forbidden - len(wrong), forbidden),
        missing=tuple(fact.source for fact in question.facts if fact not in facts),
        wrong=tuple(fact.source for fact in wrong),
        citations=len(citations),
        rounds=result.rounds,
        tool_calls=len(result.tool_executions),
        tokens=meter.tokens,
        estimated=meter.estimated,
        seconds=seconds,
        search_hit=any(hit.file in files for hit in hits) if files else None,
        error=error,
    )


class _Meter:
    """Counts the tokens of a model's answers; estimates them if the server does not count."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.tokens = 0
        self.estimated = False

    def chat(
        self,
        messages: Sequence[Message],
        *,
        listen: Callable[[Event], None] | None = None,
        budget_s: float | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> ChatAnswer:
        answer = self._model.chat(messages, listen=listen, budget_s=budget_s, tools=tools)
        if answer.usage is not None:
            self.tokens += answer.usage.prompt_tokens + answer.usage.completion_tokens
        else:
            texts = [message.content for message in messages]
            texts += [answer.text, answer.reasoning]
            self.tokens += round(sum(map(estimate_tokens, texts)))
            self.estimated = True
        return answer
