"""
update_summary: a text that an AI client wants kept, written or appended to a Markdown file.

Its messages are Chinese, those of wrong arguments English, as its specification has them.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qmd.errors import (
    ConflictError,
    DatabaseBusyError,
    DatabaseReplacedError,
    DecodeError,
    DiskFullError,
    FileChangedError,
    OutsideRootsError,
    QmdError,
    ReadOnlyError,
    SteeringFileError,
    SummaryError,
    WriteDeclinedError,
)
from qmd.files.encoding import encoding_of
from qmd.files.policy import lies_below
from qmd.files.writer import FileWriter

TOOL = "update_summary"
MODES = ("append", "overwrite")
SUFFIXES = (".md", ".markdown")

_FAILED = "写入文件失败："
_DENIED = "权限被拒绝。请检查文件是否已被打开或您是否有写权限。"
_FULL = "磁盘空间不足。请清理磁盘空间后重试。"
_IN_USE = "文件正被其他进程占用。请关闭正在使用该文件的程序，稍后重试。"
_READ_ONLY = (
    "服务器以只读模式（--read-only）运行，不允许写入任何文件。请去掉 --read-only 后重新启动。"
)


@dataclass(frozen=True, slots=True)
class Summarized:
    """
    What was done: the file, all links followed, and the sentence that says so.

    ``problem``: why searches do not find the text yet, in a sentence.
    """

    file: Path
    message: str
    problem: str | None = None

    def as_dict(self) -> dict[str, str]:
        """The JSON of the specification; ``problem`` is a ``warning`` beside it."""
        result = {"status": "success", "message": self.message, "file_path": str(self.file)}
        return result if self.problem is None else {**result, "warning": self.problem}


def failure(error: QmdError) -> dict[str, str]:
    """The JSON of the specification for what `Summary.update` raises, and whatever else."""
    return {"status": "error", "message": error.with_hint}


class Summary:
    """Writes summaries through the one `FileWriter`."""

    def __init__(
        self, files: FileWriter, *, now: Callable[[], time.struct_time] = time.localtime
    ) -> None:
        """``now``: the local time that stands over an appended summary."""
        self._files = files
        self._now = now

    def update(self, content: object, file_path: object, mode: object = None) -> Summarized:
        """
        Check the arguments, in the order of the specification, and write.

        Args:
            content: The text; it is written as it is, in UTF-8.
            file_path: Absolute, or relative to the working directory.
            mode: "append" (the default, also for None) puts it behind what the file holds, under
                a heading with the time; "overwrite" makes it the whole content.

        Raises:
            SummaryError: Nothing was written; the message says why and what to do.
        """
        text, path, chosen = checked(content, file_path, mode)
        data = _encoded(text)
        try:
            if chosen == "append":
                written = self._files.append(path, lambda old: self._behind(old, text), tool=TOOL)
            else:
                written = self._files.write(path, data, tool=TOOL)
        except OSError as error:
            raise SummaryError(_FAILED + _system_problem(error, path)) from error
        except SteeringFileError as error:
            raise SummaryError(
                f"{_FAILED}{error.path} 会影响其他程序的行为（{error.reason}），智能体不得写入。"
                "请换一个文件名，或由用户自己写入。"
            ) from error
        except OutsideRootsError as error:
            raise SummaryError(_FAILED + self._refusal(path)) from error
        except SummaryError:
            raise
        except QmdError as error:
            raise SummaryError(_FAILED + _own_problem(error)) from error
        done = "追加至" if chosen == "append" else "写入"
        return Summarized(written.path, f"总结已成功{done}文件：{written.path}", written.problem)

    def _behind(self, old: bytes | None, text: str) -> bytes:
        if old is None:
            return text.encode()
        moment = time.strftime("%Y-%m-%d %H:%M:%S", self._now())
        added = f"\n\n---\n\n## 总结更新 [{moment}]\n\n{text}"
        try:
            encoding = encoding_of(old)
        except DecodeError:  # it is no text, and stays as it is in front of this one
            encoding = "utf-8"
        try:
            return added.encode(encoding)
        except UnicodeEncodeError as error:
            lacking = added[error.start]
            raise SummaryError(
                f"{_FAILED}文件的编码是 {encoding}，无法表示字符“{lacking}”。"
                "请先将文件转换为 UTF-8，或改用 overwrite 模式。"
            ) from error

    def _refusal(self, path: str) -> str:
        policy = self._files.policy
        if not policy.writable:
            return _READ_ONLY
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


# --- arguments -----------------------------------------------------------------------


def checked(content: object, file_path: object, mode: object) -> tuple[str, str, str]:
    """
    The arguments as `Summary.update` needs them; the disk is not looked at.

    Raises:
        SummaryError: The first thing that is wrong, in the order of the specification.
    """
    for name, value in (("content", content), ("file_path", file_path)):
        if value is None:
            raise SummaryError(f"Invalid {name}: is required")
    if not isinstance(content, str):
        raise SummaryError("Invalid content: must be a string")
    if not content.strip():
        raise SummaryError("Invalid content: must not be empty or only whitespace")
    if not isinstance(file_path, str):
        raise SummaryError("Invalid file_path: must be a string")
    if not file_path.lower().endswith(SUFFIXES):
        raise SummaryError("Invalid file_path: must end with .md or .markdown")
    if mode is None:
        mode = MODES[0]
    if mode not in MODES or not isinstance(mode, str):
        raise SummaryError("Invalid mode: must be append or overwrite")
    if any(name.strip() == ".." for name in re.split(r"[/\\]", file_path)):
        raise SummaryError("Invalid file_path: must not contain '..' (path traversal)")
    return content, file_path, mode


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SummaryError(
            f"Invalid content: character {error.start + 1} is half of a surrogate pair"
        ) from error


# --- what went wrong -----------------------------------------------------------------

_IN_USE_ERRORS = (errno.EBUSY, errno.ETXTBSY, errno.EAGAIN, errno.EDEADLK)
_FULL_ERRORS = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
#: Windows: sharing and lock violations; the file name is too long; the disk is full.
_WINDOWS = {32: _IN_USE, 33: _IN_USE, 206: None, 112: _FULL, 39: _FULL}


def _system_problem(error: OSError, path: str) -> str:
    """What the operating system said, and what to do about it."""
    winerror = getattr(error, "winerror", None)
    if winerror in _WINDOWS:
        return _WINDOWS[winerror] or _too_long(path)
    number = error.errno
    where = error.filename if isinstance(error.filename, str) else path
    if number in _IN_USE_ERRORS:
        return _IN_USE
    if number in _FULL_ERRORS:
        return _FULL
    if number == errno.EROFS:
        return "文件系统是只读的。请改用可写的磁盘，或将其重新挂载为可写。"
    if number in (errno.EACCES, errno.EPERM):
        return _DENIED
    if number == errno.ENAMETOOLONG:
        return _too_long(path)
    if number == errno.EISDIR:
        return f"目标是一个目录：{where}。请指定该目录中的一个 .md 文件。"
    if number in (errno.ENOTDIR, errno.EEXIST):
        return f"上级路径不是目录：{where}。请换一个目录，或先移走同名的文件。"
    if number == errno.ELOOP:
        return f"路径中的符号链接无法跟随：{where}。请直接使用它指向的路径。"
    if number == errno.EINVAL:
        return f"目标不是普通文件，或文件名无效：{where}。请指定一个普通的 .md 文件。"
    if number == errno.EFBIG:
        return "文件超过了允许的大小。请改用另一个文件。"
    if number == errno.ENOENT:
        return f"目录不存在：{where}。请检查路径后重试。"
    return f"{error.strerror or error}。请检查磁盘和路径后重试。"


def _too_long(path: str) -> str:
    if len(os.fsencode(Path(path).name)) > 255:
        return "文件名过长。请将文件名缩短到 255 字节以内（一个汉字占 3 字节）后重试。"
    return "路径过长。请缩短文件名或减少目录层级后重试。"


def _own_problem(error: QmdError) -> str:
    """What qmd itself said; the old content could not be kept, so the file is as it was."""
    if isinstance(error, DiskFullError):
        return _FULL
    if isinstance(error, DatabaseBusyError):
        return "数据库正被其他进程占用，无法保存文件的旧内容，文件未改动。请稍后重试。"
    if isinstance(error, DatabaseReplacedError):
        return (
            "数据库文件在使用期间被删除、移动或替换，无法保存文件的旧内容，文件未改动。"
            f"请恢复数据库后重试。（{error.with_hint}）"
        )
    if isinstance(error, ReadOnlyError):
        return "数据库不可写，无法保存文件的旧内容，文件未改动。请检查数据库文件的权限。"
    if isinstance(error, FileChangedError):
        return "文件在征求用户同意之后发生了变化，未作改动。请重新读取后再试。"
    if isinstance(error, ConflictError):
        return (
            "现有内容过长，无法保存为历史版本，文件未改动。请先将该文件改名，或改用 append 模式。"
        )
    if isinstance(error, WriteDeclinedError):
        return f"未获用户同意，文件未改动（{error.with_hint}）"
    return error.with_hint
