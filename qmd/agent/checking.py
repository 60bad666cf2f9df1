"""Compares the citations of an answer with the documents of a knowledge base."""

from __future__ import annotations

from qmd.agent.citations import CheckedAnswer, CitedLines, check_answer
from qmd.agent.loop import CheckAnswer
from qmd.agent.reading import Reading
from qmd.errors import QmdError
from qmd.kb import KnowledgeBase


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
