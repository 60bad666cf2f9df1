"""What a model reads of the server before its first call: instructions, the prompt ``query``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import mcp_types as types

from qmd.operations.definition import Language
from qmd.values import Collection
from qmd.values.printable import one_line

PROMPT = types.Prompt(
    name="query", title="QMD Query Guide", description="如何有效使用QMD搜索知识库"
)

_MOST_COLLECTIONS = 20  # that the instructions name


def guide() -> str:
    """The prompt's text, verbatim from the interface's specification."""
    return files("qmd.tools").joinpath("guide.md").read_text(encoding="utf-8").removesuffix("\n")


def instructions(collections: Sequence[Collection], language: Language | None = None) -> str:
    """
    The instructions that a client gives its model before the first call of a tool.

    Args:
        language: None for English.
    """
    shown, more = collections[:_MOST_COLLECTIONS], len(collections) - _MOST_COLLECTIONS
    if language == "zh":
        return _in_chinese(shown, more)
    usage = (
        "qmd searches the user's own documents (Markdown; English and Chinese). "
        "Use search for words and exact phrases, query for questions, vsearch for meaning alone; "
        "then read with get or multi_get, by the hit's file. The best hit's score, 0 to 1, is the "
        "estimated chance that it answers; the other hits' scores are in proportion to it, and "
        "relevance is each hit's own chance. notice says so if no hit seems to answer."
    )
    if not shown:
        return (
            f"{usage} The index has no collections yet: "
            "the user adds one with 'qmd collection add DIR'."
        )
    named = ", ".join(
        f"{each.name} ({each.documents} document{'' if each.documents == 1 else 's'})"
        for each in shown
    )
    others = f", and {more} more (see status)" if more > 0 else ""
    return f"{usage} Collections: {one_line(named)}{others}."


def _in_chinese(shown: Sequence[Collection], more: int) -> str:
    usage = (
        "qmd 搜索用户自己的文档（Markdown，中英文皆可）。查词语和原句用 search，提问用 query，"
        "只按含义查用 vsearch；再用 get 或 multi_get 按结果的 file 阅读。最佳结果的 score（0 到 1）"
        "是它能回答问题的估计概率，其他结果的 score 与之成比例；relevance 是每个结果自己的概率。"
        "没有结果像是答案时，notice 会说明。"
    )
    if not shown:
        return f"{usage}索引中还没有集合：用户可用 'qmd collection add DIR' 添加。"
    named = "、".join(f"{each.name}（{each.documents} 篇文档）" for each in shown)
    return f"{usage}集合：{one_line(named)}{f'，另有 {more} 个（见 status）' if more > 0 else ''}。"
