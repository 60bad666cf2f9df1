"""
The toolset ``images``: writeImageMetadata, in the words of its specification, which wants every
failure to be an error of JSON-RPC with a code of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from qmd.errors import PhotoError, PhotoProblem, ProtocolError, QmdError, StoreError
from qmd.kb import KnowledgeBase
from qmd.system.surrogates import shown
from qmd.tools.arguments import Arguments
from qmd.tools.bounds import excesses
from qmd.tools.definition import Reply, TextBlock, Tool
from qmd.tools.spelling import closest, shortened
from qmd.tools.texts import Dialect, error_text
from qmd.values import PhotoChange, PhotoWritten

_INVALID_PARAMS, _INTERNAL_ERROR, _INVALID_METADATA = -32602, -32603, -32007

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "filePath": {"type": "string", "description": "要写入元数据的图片的绝对路径。"},
        "metadata": {
            "type": "object",
            "properties": {
                "tags": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "图片标签/关键词列表。例如：['家庭', '假期', '海滩']。",
                },
                "description": {"type": "string", "description": "图片的详细描述文本。"},
                "people": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": (
                        "图片中的人物名称列表，将作为关键词处理。例如：['张三', '李四']。"
                    ),
                },
                "location": {
                    "type": "string",
                    "description": "描述图片拍摄地点的文本。例如：'法国巴黎埃菲尔铁塔'。",
                },
            },
            "required": [],
            "additionalProperties": False,
            "description": (
                "包含要写入的元数据。所有字段都是可选的；如果某个字段未提供或为 null，"
                "则不会修改图片中对应的元数据"
                "（除非 `overwrite` 明确设置为 true 且该字段提供了新值）。"
            ),
        },
        "overwrite": {
            "type": "boolean",
            "default": True,
            "description": (
                "当设置为 true (默认) 时，对于提供的元数据字段（如 tags, description)，"
                "新值将覆盖图片中已有的对应值。如果设置为 false，则尝试追加"
                "（例如，对于标签和人物列表），对于描述和地点，"
                "如果已有值则可能不作修改或返回错误（此行为待细化）。MVP 默认行为是覆盖。"
            ),
        },
    },
    "required": ["filePath", "metadata"],
    "additionalProperties": False,
}
_METADATA: Mapping[str, Any] = SCHEMA["properties"]["metadata"]["properties"]

_RESULT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "success": {"type": "boolean", "const": True},
        "filePath": {"type": "string", "description": "已成功处理的图片文件路径。"},
        "message": {
            "type": "string",
            "description": "描述操作成功的消息，例如：'元数据已成功写入.'",
        },
    },
    "required": ["success", "filePath", "message"],
    "additionalProperties": False,
}

_ERRORS: Mapping[PhotoProblem, tuple[int, str]] = {
    "not_found": (-32001, "文件未找到: {path}"),
    "not_readable": (-32002, "文件不可读: {path}"),
    "not_writable": (-32003, "文件不可写: {path}"),
    "unsupported": (-32004, "不支持的文件格式: {path}。仅支持 JPG, PNG, HEIC。"),
    "not_written": (-32005, "元数据写入失败: {path}。原因: {reason}"),
    "not_verified": (-32006, "元数据读取失败 (验证步骤): {path}。原因: {reason}"),
    "invalid_metadata": (_INVALID_METADATA, "提供的元数据结构无效。"),
}
#: By `PhotoError.cause`; what has no words here is told in the error's own.
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
    "disk_full": "磁盘空间不足。",
    "name": "文件名不是有效的 UTF-8。",
    "declined": "未获用户同意（{reason}）",
    "changed": "写入期间图片被其他程序修改，请重试。",
    "different": "写入后的副本与要求不符（{reason}），原图未改动。",
}
_FIELDS = {"description": "描述", "location": "地点"}


class WriteImageMetadataArguments(Arguments):
    file_path: str
    change: PhotoChange
    overwrite: bool


# --- arguments -----------------------------------------------------------------------


def _check(raw: Mapping[str, Any]) -> WriteImageMetadataArguments:
    """Raises ProtocolError: -32602 about the arguments, then -32007 about the metadata."""
    too_long = excesses(raw)
    if too_long:
        message = "; ".join(map(str, too_long))
        raise ProtocolError(_INVALID_PARAMS, f"Invalid arguments for writeImageMetadata: {message}")
    given = raw.get("filePath")
    path = given if isinstance(given, str) else None
    overwrite = True if raw.get("overwrite") is None else raw["overwrite"]
    metadata = raw.get("metadata")
    problems = [_unknown(name, SCHEMA["properties"]) for name in raw if name not in _TOP]
    for name, expected, is_right in (
        ("filePath", "a string", path is not None),
        ("metadata", "an object", isinstance(metadata, Mapping)),
        ("overwrite", "true or false", isinstance(overwrite, bool)),
    ):
        if not is_right and raw.get(name) is None:
            problems.append(f"{name} is required ({expected})")
        elif not is_right:
            problems.append(f"{name} must be {expected}")
    if path is not None and not os.path.isabs(path):  # noqa: PTH117
        problems.append("filePath must be an absolute path")
    if problems:
        message = "Invalid arguments for writeImageMetadata: " + "; ".join(problems)
        raise ProtocolError(_INVALID_PARAMS, message, _data(path))
    assert path is not None and isinstance(metadata, Mapping)
    change = _change(path, metadata)
    return WriteImageMetadataArguments.model_construct(
        file_path=path, change=change, overwrite=overwrite
    )


_TOP = frozenset(SCHEMA["properties"])


def _change(path: str, metadata: Mapping[str, Any]) -> PhotoChange:
    too_many = excesses(dict.fromkeys(metadata))
    if too_many:
        raise _error("invalid_metadata", path, str(too_many[0]), explained=True)
    problems = [_unknown(name, _METADATA) for name in metadata if name not in _METADATA]
    values = {name: metadata.get(name) for name in _METADATA}
    for name, value in values.items():
        if value is None:
            continue
        if _METADATA[name]["type"] == "string":
            if not isinstance(value, str):
                problems.append(f"{name} must be a string")
        elif not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            problems.append(f"{name} must be a list of strings")
        else:
            values[name] = tuple(value)
    if problems:
        raise _error("invalid_metadata", path, "; ".join(problems), explained=True)
    return PhotoChange(**values)


def _unknown(name: str, known: Mapping[str, Any]) -> str:
    close = closest(name, known)
    hint = f"did you mean {close}?" if close else f"known: {', '.join(known)}"
    return f"unknown argument {json.dumps(shortened(name))} ({hint})"


# --- the work ------------------------------------------------------------------------


def _run(kb: KnowledgeBase, arguments: WriteImageMetadataArguments, dialect: Dialect) -> Reply:
    path = arguments.file_path
    try:
        written = kb.images.write(path, arguments.change, overwrite=arguments.overwrite)
    except PhotoError as error:
        reason = _REASONS.get(error.cause, "{reason}").format(reason=error.reason)
        explained = error.cause in ("", "outside")
        raise _error(error.problem, path, reason, explained=explained) from error
    except StoreError as error:
        raise _error("not_written", path, error_text(error)) from error
    result = success(written)
    return Reply((TextBlock(json.dumps(result, ensure_ascii=False)),), structured=result)


def success(written: PhotoWritten) -> dict[str, Any]:
    """The result of the specification."""
    message = f"元数据已成功写入{written.kind}图片。"
    if written.kept:
        message += f"已有的{'和'.join(_FIELDS[name] for name in written.kept)}未改动。"
    if written.problem is not None:
        message += f"索引尚未更新：{written.problem}"
    return {"success": True, "filePath": shown(written.path), "message": message}


def _error(
    problem: PhotoProblem, path: str, reason: str, *, explained: bool = False
) -> ProtocolError:
    """``explained``: the message, which is prescribed, has no place for the reason."""
    number, template = _ERRORS[problem]
    message = template.format(path=shown(path), reason=reason)
    hint = reason if explained else None
    return ProtocolError(number, message, _data(path, hint), hint=hint)


def _data(path: str | None, reason: str | None = None) -> dict[str, object]:
    found = {"filePath": None if path is None else shown(path), "reason": reason}
    return {name: value for name, value in found.items() if value is not None}


def _failed(error: QmdError) -> Reply:
    raise ProtocolError(_INTERNAL_ERROR, error_text(error), {}) from error


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
        output_schema=lambda dialect: _RESULT_SCHEMA,
        read_only=False,
        destructive=True,
        idempotent=True,
        schema=SCHEMA,
        check=_check,
        failed=_failed,
    ),
)
