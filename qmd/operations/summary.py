"""
The operation update_summary, with the texts of its specification.

They are Chinese, as those of ``qmd summary`` in a Chinese locale. The English texts about invalid
arguments are in `qmd.files.notes`.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from qmd import errors, files
from qmd.files.writing.policy import WritePolicy, lies_below
from qmd.operations.definition import ByHand, KnowledgeBase, Replied, operation
from qmd.operations.problems import InvalidArgumentsError, shortened
from qmd.operations.replies import Reply, json_block
from qmd.operations.texts import Dialect
from qmd.values.facts import AsSent, Describe, OmitDefault
from qmd.values.wire import to_wire
from qmd.values.writing import Language, SummaryMode, WrittenSummary

_FAILED = "写入文件失败："
_DENIED = "权限被拒绝。请检查文件是否已被打开或您是否有写权限。"
_FULL = "磁盘空间不足。请清理磁盘空间后重试。"
_IN_USE = "文件正被其他进程占用。请关闭正在使用该文件的程序，稍后重试。"
_READ_ONLY_DISK = "文件系统是只读的。请改用可写的磁盘，或将其重新挂载为可写。"
_FOLDER = "目标是一个目录：{path}。请指定该目录中的一个 .md 文件。"
_BELOW_A_FILE = "上级路径不是目录：{path}。请换一个目录，或先移走同名的文件。"
_LINKS_IN_A_CIRCLE = "路径中的符号链接无法跟随：{path}。请直接使用它指向的路径。"
_NO_PLAIN_FILE = "目标不是普通文件，或文件名无效：{path}。请指定一个普通的 .md 文件。"
_TOO_LARGE = "文件超过了允许的大小。请改用另一个文件。"
_NO_FOLDER = "目录不存在：{path}。请检查路径后重试。"
_LONG_NAME = "文件名过长。请将文件名缩短到 255 字节以内（一个汉字占 3 字节）后重试。"
_LONG_PATH = "路径过长。请缩短文件名或减少目录层级后重试。"

#: By `OSError.errno`. ENAMETOOLONG is either `_LONG_NAME` or `_LONG_PATH`.
_SYSTEM_PROBLEMS = {
    errno.EBUSY: _IN_USE,
    errno.ETXTBSY: _IN_USE,
    errno.EAGAIN: _IN_USE,
    errno.EDEADLK: _IN_USE,
    errno.ENOSPC: _FULL,
    getattr(errno, "EDQUOT", errno.ENOSPC): _FULL,
    errno.EROFS: _READ_ONLY_DISK,
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EISDIR: _FOLDER,
    errno.ENOTDIR: _BELOW_A_FILE,
    errno.EEXIST: _BELOW_A_FILE,
    errno.ELOOP: _LINKS_IN_A_CIRCLE,
    errno.EINVAL: _NO_PLAIN_FILE,
    errno.EFBIG: _TOO_LARGE,
    errno.ENOENT: _NO_FOLDER,
}
#: By `OSError.winerror`: sharing and lock violations, a full disk.
_WINDOWS_PROBLEMS = {32: _IN_USE, 33: _IN_USE, 112: _FULL, 39: _FULL}
_WINDOWS_NAME_TOO_LONG = 206


# --- results -------------------------------------------------------------------------


def message(summary: WrittenSummary, language: Language = "zh") -> str:
    if language == "en":
        return f"{'Appended to' if summary.mode == 'append' else 'Wrote'} {summary.path}"
    action = "追加至" if summary.mode == "append" else "写入"
    return f"总结已成功{action}文件：{summary.path}"


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """The result of the specification; ``warning`` says why searches do not find the text yet."""

    status: Literal["success", "error"]
    message: str
    file_path: Annotated[str | None, OmitDefault()] = None
    warning: Annotated[str | None, OmitDefault()] = None


def success(summary: WrittenSummary, language: Language = "zh") -> SummaryResult:
    text = message(summary, language)
    return SummaryResult("success", text, str(summary.path), summary.problem)


def failure(error: errors.QmdError) -> SummaryResult:
    return SummaryResult("error", error.with_hint)


# --- errors --------------------------------------------------------------------------


def in_words(
    error: errors.QmdError, path: str, policy: WritePolicy, language: Language = "zh"
) -> errors.SummaryError:
    """
    An error of `Summary.update`, in Chinese with the text of the specification.

    Args:
        path: The file as the client named it.
        policy: The write policy that was applied to the file.
    """
    if isinstance(error, errors.SummaryError):
        return error
    if language == "en":
        return errors.SummaryError(str(error), hint=error.hint)
    return errors.SummaryError(_FAILED + _problem(error, path, policy))


def _problem(error: errors.QmdError, path: str, policy: WritePolicy) -> str:
    if isinstance(error, errors.FileAccessError):
        return _system_problem(error.os_error, path)
    if isinstance(error, errors.UnencodableTextError):
        return (
            f"文件的编码是 {error.encoding}，无法表示字符“{error.character}”。"
            "请先将文件转换为 UTF-8，或改用 overwrite 模式。"
        )
    if isinstance(error, errors.SteeringFileError):
        return (
            f"{error.path} 会影响其他程序的行为（{error.reason}），智能体不得写入。"
            "请换一个文件名，或由用户自己写入。"
        )
    if isinstance(error, errors.OutsideRootsError):
        return _policy_problem(path, policy)
    return _writer_problem(error)


def _system_problem(error: OSError, path: str) -> str:
    """The text for an error of the operating system, with a remedy."""
    windows_code = getattr(error, "winerror", None)
    if windows_code in _WINDOWS_PROBLEMS:
        return _WINDOWS_PROBLEMS[windows_code]
    if windows_code == _WINDOWS_NAME_TOO_LONG or error.errno == errno.ENAMETOOLONG:
        return _LONG_NAME if len(os.fsencode(Path(path).name)) > 255 else _LONG_PATH
    sentence = _SYSTEM_PROBLEMS.get(error.errno or 0)
    if sentence is None:
        return f"{error.strerror or error}。请检查磁盘和路径后重试。"
    return sentence.format(path=error.filename if isinstance(error.filename, str) else path)


def _policy_problem(path: str, policy: WritePolicy) -> str:
    """The text for a path that the policy does not allow, with a remedy."""
    if not policy.writable:
        return (
            "服务器以只读模式（--read-only）运行，不允许写入任何文件。"
            "请去掉 --read-only 后重新启动。"
        )
    if "\0" in path:
        return "路径中含有空字符（NUL）。请去掉该字符后重试。"
    try:
        path.encode()
    except UnicodeEncodeError:
        return "路径无法编码为 UTF-8。请改用有效的文件名后重试。"
    try:
        as_named = Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111
    except FileNotFoundError:
        return "当前工作目录已不存在。请使用绝对路径。"
    try:
        target = Path(os.path.realpath(as_named))
    except OSError:  # a link that is being changed
        return f"路径中的符号链接无法跟随：{as_named}。请稍后重试。"
    advice = f"请改用允许的目录，或在启动服务器时加上 --write-root {target.parent} 。"
    if policy.agent:
        return f"{target} 不在集合和笔记库之内，智能体只能写入那里。{advice}"
    if target != as_named and any(lies_below(as_named, root) for root in policy.roots):
        return f"路径中的符号链接指向允许写入的目录之外：{target}。{advice}"
    return (
        f"{target} 不在允许写入的目录之内"
        f"（主目录和临时目录中以“.”开头的文件和目录也不开放）。{advice}"
    )


def _writer_problem(error: errors.QmdError) -> str:
    """The text for an error of the writer, which has not changed the file."""
    if isinstance(error, errors.DiskFullError):
        return _FULL
    if isinstance(error, errors.DatabaseBusyError):
        return "数据库正被其他进程占用，无法保存文件的旧内容，文件未改动。请稍后重试。"
    if isinstance(error, errors.DatabaseReplacedError):
        return (
            "数据库文件在使用期间被删除、移动或替换，无法保存文件的旧内容，文件未改动。"
            f"请恢复数据库后重试。（{error.with_hint}）"
        )
    if isinstance(error, errors.ReadOnlyError):
        return "数据库不可写，无法保存文件的旧内容，文件未改动。请检查数据库文件的权限。"
    if isinstance(error, errors.FileChangedError):
        return "文件在征求用户同意之后发生了变化，未作改动。请重新读取后再试。"
    if isinstance(error, errors.ConflictError):
        return (
            "现有内容过长，无法保存为历史版本，文件未改动。请先将该文件改名，或改用 append 模式。"
        )
    if isinstance(error, errors.WriteDeclinedError):
        return f"未获用户同意，文件未改动（{error.with_hint}）"
    return error.with_hint


# --- the operation -------------------------------------------------------------------


def invalid_arguments(tool: str, error: InvalidArgumentsError) -> errors.SummaryError:
    """The error for the first problem in the order of the specification; unknown names last."""
    for excess in error.excesses:
        return errors.SummaryError(f"Invalid {excess.name}: {excess}")
    arguments = error.arguments
    try:
        files.notes.checked_arguments(*map(arguments.get, ("content", "file_path", "mode")))
    except errors.SummaryError as problem:
        return problem
    unknown = next(problem.name for problem in error.problems if problem.kind == "unknown")
    names = ", ".join(error.names)
    return errors.SummaryError(f"Invalid {shortened(unknown)}: unknown argument (known: {names})")


def _reply(result: SummaryResult) -> Reply:
    structured = to_wire(result)
    return Reply((json_block(structured),), structured, is_error=result.status == "error")


def _written(replied: Replied, dialect: Dialect) -> Reply:
    return _reply(success(replied.value))


@operation(
    command=None,
    tool=ByHand(
        _written,
        SummaryResult,
        as_specified=True,
        failed=lambda error: _reply(failure(error)),
        refusal=invalid_arguments,
        arguments={"alias_generator": None},  # the specification demands snake case
        language="zh",
    ),
    title=None,
    zh="安全、可靠地将AI生成的文本总结（Content）写入或追加到用户指定的本地Markdown（.md）文件中。",
    lane="write",
    idempotent=False,
)
def update_summary(
    kb: KnowledgeBase,
    content: Annotated[
        str,
        AsSent(),
        Describe(
            "The text, in Markdown; it must not be blank",
            zh="需要写入文件的文本内容，建议支持Markdown语法以确保最终文件的可读性。"
            "内容不能为空字符串或仅包含空白字符（如空格、制表符）。",
        ),
    ],
    file_path: Annotated[
        str,
        AsSent(),
        Describe(
            "Path of the file, absolute or from the server's working directory; ends in .md or"
            " .markdown",
            zh="目标Markdown文件的路径。可以是绝对路径，"
            "也可以是相对于MCP服务器当前工作目录的相对路径。"
            "路径必须以 .md 或 .markdown 扩展名结尾。",
        ),
    ],
    mode: Annotated[
        SummaryMode,
        Describe(
            "append: at the end of the file. overwrite: in place of what is there",
            zh="定义写入文件的方式。append：将新的总结内容追加到文件末尾。"
            "overwrite：清空文件原有内容，然后写入新的总结内容。",
        ),
    ] = "append",
) -> WrittenSummary:
    """Write a summary that you made into a Markdown file of the user, or append it."""
    try:
        return kb.summary.update(content, file_path, mode)
    except errors.QmdError as error:
        raise in_words(error, file_path, kb.policy) from error
