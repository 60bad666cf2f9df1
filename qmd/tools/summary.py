"""The toolset ``summary``: update_summary, with the texts of its specification."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from qmd.errors import QmdError, SummaryError
from qmd.files.summary import SummaryMode, checked
from qmd.kb import KnowledgeBase
from qmd.operations.problems import InvalidArgumentsError, shortened
from qmd.operations.replies import Reply, json_block
from qmd.operations.texts import Dialect
from qmd.tools import summary_texts
from qmd.tools.arguments import Arguments, TextAsSent
from qmd.tools.definition import Tool
from qmd.tools.schemas import prescribed_schema
from qmd.tools.summary_texts import SummaryResult
from qmd.values.wire import to_wire


class UpdateSummaryArguments(Arguments):
    """The arguments; the specification demands snake case, so they have no aliases."""

    model_config = ConfigDict(alias_generator=None)

    content: TextAsSent = Field(
        description=(
            "需要写入文件的文本内容，建议支持Markdown语法以确保最终文件的可读性。"
            "内容不能为空字符串或仅包含空白字符（如空格、制表符）。"
        )
    )
    file_path: TextAsSent = Field(
        description=(
            "目标Markdown文件的路径。可以是绝对路径，"
            "也可以是相对于MCP服务器当前工作目录的相对路径。"
            "路径必须以 .md 或 .markdown 扩展名结尾。"
        )
    )
    mode: SummaryMode = Field(
        "append",
        description=(
            "定义写入文件的方式。append：将新的总结内容追加到文件末尾。"
            "overwrite：清空文件原有内容，然后写入新的总结内容。"
        ),
    )


def invalid_arguments(tool: str, error: InvalidArgumentsError) -> SummaryError:
    """The error for the first problem in the order of the specification; unknown names last."""
    for excess in error.excesses:
        return SummaryError(f"Invalid {excess.name}: {excess}")
    arguments = error.arguments
    try:
        checked(*map(arguments.get, ("content", "file_path", "mode")))
    except SummaryError as problem:
        return problem
    unknown = next(problem.name for problem in error.problems if problem.kind == "unknown")
    names = ", ".join(error.names)
    return SummaryError(f"Invalid {shortened(unknown)}: unknown argument (known: {names})")


def _run(kb: KnowledgeBase, arguments: UpdateSummaryArguments, dialect: Dialect) -> Reply:
    path = arguments.file_path
    try:
        summary = kb.summary.update(arguments.content, path, arguments.mode)
    except QmdError as error:
        raise summary_texts.in_words(error, path, kb.policy) from error
    return _reply(summary_texts.success(summary))


def _reply(result: SummaryResult) -> Reply:
    structured = to_wire(result)
    return Reply((json_block(structured),), structured, is_error=result.status == "error")


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="update_summary",
        title=None,
        description=(
            "安全、可靠地将AI生成的文本总结（Content）"
            "写入或追加到用户指定的本地Markdown（.md）文件中。"
        ),
        arguments=UpdateSummaryArguments,
        run=_run,
        output_schema=lambda dialect: prescribed_schema(SummaryResult),
        read_only=False,
        destructive=True,
        idempotent=False,
        refusal=invalid_arguments,
        failed=lambda error: _reply(summary_texts.failure(error)),
    ),
)
