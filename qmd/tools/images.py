"""
The toolset ``images``: writeImageMetadata, with the texts of its specification.

The specification demands that every failure is a JSON-RPC error with a separate code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from qmd.errors import PhotoError, PhotoProblem, ProtocolError, QmdError, StoreError
from qmd.kb import KnowledgeBase
from qmd.operations.bounds import excesses
from qmd.operations.problems import (
    ArgumentProblem,
    InvalidArgumentsError,
    closest,
    expectation,
    shortened,
)
from qmd.operations.replies import Reply, json_block
from qmd.operations.texts import Dialect, error_text
from qmd.tools.arguments import Arguments, TextAsSent
from qmd.tools.definition import Tool
from qmd.tools.schemas import prescribed_schema
from qmd.values import PhotoChange, PhotoWritten
from qmd.values.facts import Describe, Name
from qmd.values.text import as_utf8, one_line
from qmd.values.wire import to_wire

_INVALID_PARAMS, _INTERNAL_ERROR, _INVALID_METADATA = -32602, -32603, -32007

_ERRORS: Mapping[PhotoProblem, tuple[int, str]] = {
    "not_found": (-32001, "文件未找到: {path}"),
    "not_readable": (-32002, "文件不可读: {path}"),
    "not_writable": (-32003, "文件不可写: {path}"),
    "unsupported": (-32004, "不支持的文件格式: {path}。仅支持 JPG, PNG, HEIC。"),
    "not_written": (-32005, "元数据写入失败: {path}。原因: {reason}"),
    "not_verified": (-32006, "元数据读取失败 (验证步骤): {path}。原因: {reason}"),
    "invalid_metadata": (_INVALID_METADATA, "提供的元数据结构无效。"),
}
#: `PhotoError.cause` → text. For other causes the text is the reason in the error.
_REASONS = {
    "missing": (
        "未找到 exiftool（{reason}）。请安装：apt-get install libimage-exiftool-perl"
        "（Debian、Ubuntu）、brew install exiftool（macOS）或 "
        "winget install OliverBetz.ExifTool（Windows），或用 QMD_EXIFTOOL 指定其路径。"
    ),
    "timeout": "exiftool 超时，已被终止。",
    "ended": "exiftool 意外退出。",
    "refused": "exiftool：{reason}",
    "truncated": "文件不完整，图像数据在中途截断。",
    "size": "图片超过 256 MB。",
    "disk_full": "磁盘空间不足。",
    "name": "文件名不是有效的 UTF-8。",
    "declined": "未获用户同意（{reason}）",
    "changed": "写入期间图片被其他程序修改，请重试。",
    "different": "写入后的副本与要求不符（{reason}），原图未改动。",
}
_FIELDS = {"description": "描述", "location": "地点"}


# --- arguments -----------------------------------------------------------------------


def _lists_required(schema: dict[str, Any]) -> None:
    """Add an empty list of required fields, as the specification has it."""
    schema["required"] = []


class ImageMetadata(Arguments):
    model_config = ConfigDict(json_schema_extra=_lists_required)

    tags: list[TextAsSent] | None = Field(
        None, description="图片标签/关键词列表。例如：['家庭', '假期', '海滩']。"
    )
    description: TextAsSent | None = Field(None, description="图片的详细描述文本。")
    people: list[TextAsSent] | None = Field(
        None, description="图片中的人物名称列表，将作为关键词处理。例如：['张三', '李四']。"
    )
    location: TextAsSent | None = Field(
        None, description="描述图片拍摄地点的文本。例如：'法国巴黎埃菲尔铁塔'。"
    )

    @model_validator(mode="before")
    @classmethod
    def _is_small(cls, fields: object) -> object:
        """Refuse 200,000 unknown fields at once: each would become a separate problem."""
        too_many = excesses(dict.fromkeys(fields)) if isinstance(fields, Mapping) else []
        if too_many:
            raise ValueError(str(too_many[0]))
        return fields

    def change(self) -> PhotoChange:
        return PhotoChange(
            tags=None if self.tags is None else tuple(self.tags),
            people=None if self.people is None else tuple(self.people),
            description=self.description,
            location=self.location,
        )


def _is_absolute(path: str) -> str:
    if not os.path.isabs(path):  # noqa: PTH117
        raise ValueError("an absolute path")
    return path


class WriteImageMetadataArguments(Arguments):
    file_path: Annotated[TextAsSent, AfterValidator(_is_absolute)] = Field(
        description="要写入元数据的图片的绝对路径。"
    )
    metadata: ImageMetadata = Field(
        description=(
            "包含要写入的元数据。所有字段都是可选的；如果某个字段未提供或为 null，"
            "则不会修改图片中对应的元数据"
            "（除非 `overwrite` 明确设置为 true 且该字段提供了新值）。"
        )
    )
    overwrite: bool = Field(
        True,
        description=(
            "当设置为 true (默认) 时，对于提供的元数据字段（如 tags, description)，"
            "新值将覆盖图片中已有的对应值。如果设置为 false，则尝试追加"
            "（例如，对于标签和人物列表），对于描述和地点，"
            "如果已有值则可能不作修改或返回错误（此行为待细化）。MVP 默认行为是覆盖。"
        ),
    )


def invalid_arguments(tool: str, error: InvalidArgumentsError) -> ProtocolError:
    """The error -32602 for invalid arguments; -32007 if only the metadata is invalid."""
    sent_path = error.arguments.get("filePath")
    path = sent_path if isinstance(sent_path, str) else None
    if error.excesses:
        message = "; ".join(map(str, error.excesses))
        return ProtocolError(_INVALID_PARAMS, f"Invalid arguments for {tool}: {message}")
    in_metadata = [problem for problem in error.problems if _is_in_metadata(problem)]
    others = [problem for problem in error.problems if not _is_in_metadata(problem)]
    if others:
        message = "; ".join(_sentences(others, error.names))
        return ProtocolError(
            _INVALID_PARAMS, f"Invalid arguments for {tool}: {message}", _data(path)
        )
    assert path is not None
    fields = error.schema["properties"]["metadata"]["properties"]
    return _error(
        "invalid_metadata", path, "; ".join(_sentences(in_metadata, fields)), explained=True
    )


def _is_in_metadata(problem: ArgumentProblem) -> bool:
    return problem.path[0] == "metadata" and (len(problem.path) > 1 or problem.kind == "value")


def _sentences(problems: Iterable[ArgumentProblem], names: Collection[str]) -> list[str]:
    """A sentence for each problem, unknown names first; ``names``: the valid names."""
    in_order = sorted(problems, key=lambda problem: problem.kind != "unknown")
    return [_sentence(problem, names) for problem in in_order]


def _sentence(problem: ArgumentProblem, names: Collection[str]) -> str:
    if problem.kind == "unknown":
        similar_name = closest(problem.name, names)
        hint = f"did you mean {similar_name}?" if similar_name else f"known: {', '.join(names)}"
        return f"unknown argument {json.dumps(shortened(problem.name))} ({hint})"
    if problem.path == ("metadata",) and problem.expected is not None:
        return problem.expected  # a whole sentence: there are too many fields
    expected = problem.expected or expectation(problem.schema)
    if problem.kind == "missing":
        return f"{problem.name} is required ({expected})"
    return f"{problem.name} must be {expected}"


# --- the work ------------------------------------------------------------------------


def _run(kb: KnowledgeBase, arguments: WriteImageMetadataArguments, dialect: Dialect) -> Reply:
    path = arguments.file_path
    try:
        written = kb.images.write(path, arguments.metadata.change(), overwrite=arguments.overwrite)
    except PhotoError as error:
        reason = _REASONS.get(error.cause, "{reason}").format(reason=error.reason)
        explained = error.cause in ("", "outside")
        raise _error(error.problem, path, reason, explained=explained) from error
    except StoreError as error:
        raise _error("not_written", path, error_text(error)) from error
    result = to_wire(success(written))
    return Reply((json_block(result),), structured=result)


@dataclass(frozen=True, slots=True)
class ImageResult:
    """The structured result, as the specification defines it."""

    success: Literal[True]
    file_path: Annotated[str, Name("filePath"), Describe("已成功处理的图片文件路径。")]
    message: Annotated[str, Describe("描述操作成功的消息，例如：'元数据已成功写入.'")]


def success(written: PhotoWritten) -> ImageResult:
    message = f"元数据已成功写入{written.kind}图片。"
    if written.kept:
        message += f"已有的{'和'.join(_FIELDS[name] for name in written.kept)}未改动。"
    if written.problem is not None:
        message += f"索引尚未更新：{written.problem}"
    return ImageResult(True, as_utf8(written.path), message)


def _error(
    problem: PhotoProblem, path: str, reason: str, *, explained: bool = False
) -> ProtocolError:
    """
    The error of the specification for a problem.

    ``explained``: put the reason into a hint, because the prescribed message has no place for it.
    """
    code, template = _ERRORS[problem]
    message = template.format(path=one_line(path), reason=one_line(reason))
    hint = reason if explained else None
    return ProtocolError(code, message, _data(path, hint), hint=hint)


def _data(path: str | None, reason: str | None = None) -> dict[str, object]:
    data = {"filePath": None if path is None else as_utf8(path), "reason": reason}
    return {name: value for name, value in data.items() if value is not None}


def _failed(error: QmdError) -> Reply:
    raise ProtocolError(_INTERNAL_ERROR, error_text(error), {}) from error


_ENGLISH = {
    "does": "Write metadata (tags, description, people, location) into a photo: JPG, PNG or HEIC."
    " What you do not name stays as it is.",
    "filePath": "Absolute path of the photo",
    "metadata": "What to write; a field that is absent or null is not changed",
    "metadata.tags": "Tags, such as ['family', 'beach']",
    "metadata.description": "What the photo shows",
    "metadata.people": "Names of the people on it, kept as tags as well",
    "metadata.location": "Where it was taken, such as 'Eiffel Tower, Paris'",
    "overwrite": "true: the new values take the place of the old ones. false: tags"
    " and people are added, and a description or location that is there stays",
}

TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="writeImageMetadata",
        title=None,
        description=(
            "将结构化的元数据（标签、描述、人物名称、地点文本）写入指定的本地图片文件。"
            "该 Tool 支持 JPG, PNG, 和 HEIC 格式。它会尝试保留图片中未明确修改的现有元数据。"
        ),
        arguments=WriteImageMetadataArguments,
        run=_run,
        output_schema=lambda dialect: prescribed_schema(ImageResult),
        read_only=False,
        idempotent=True,
        is_prescribed=True,
        wordings={"en": _ENGLISH},
        refusal=invalid_arguments,
        failed=_failed,
    ),
)

(_WRITE,) = TOOLS

#: Tool → the one that a server with several toolsets has in its place: a model reads the listing of
#: all of them, so this one says the same in a quarter of the words.
TOGETHER: Mapping[str, Tool[Any]] = {
    _WRITE.name: replace(
        _WRITE,
        is_prescribed=False,
        description="把标签、描述、人物、地点写入一张照片（JPG、PNG、HEIC）；未提及的元数据不变。",
        argument_texts={
            "filePath": "绝对路径",
            "metadata": "",
            "metadata.tags": "",
            "metadata.description": "",
            "metadata.people": "也记作标签",
            "metadata.location": "",
            "overwrite": "false：追加标签和人物",
        },
    )
}
