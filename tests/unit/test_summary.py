"""update_summary: the order of its checks, and a sentence with advice for each failure."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import DatabaseBusyError, DiskFullError, QmdError
from qmd.files.notes import Summary
from qmd.files.writing.policy import WritePolicy
from qmd.files.writing.writer import FileWriter
from qmd.operations import summary as summary_texts

NOON = time.strptime("2026-02-03 04:05:06", "%Y-%m-%d %H:%M:%S")
SEPARATOR = "\n\n---\n\n## 总结更新 [2026-02-03 04:05:06]\n\n"
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions and links")


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    database = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(database, Settings(write_roots=[tmp_path / "work"]), create=True) as kb:
        yield kb


@pytest.fixture
def summary(kb: KnowledgeBase) -> Summary:
    return Summary(kb.files, now=lambda: NOON)


def refused(summary: Summary, *arguments: object) -> str:
    """The message of the tool."""
    with pytest.raises(QmdError) as caught:
        summary.update(*arguments)  # type: ignore[arg-type]
    return str(summary_texts.in_words(caught.value, str(arguments[1]), summary._files.policy))


# --- what is written -------------------------------------------------------------------


def test_a_new_file_holds_the_content_alone(summary: Summary) -> None:
    path = Path.cwd() / "a/b/week.md"
    done = summary.update("# 总结\r\nno newline", "a/b/week.md")
    assert path.read_bytes() == "# 总结\r\nno newline".encode()
    assert done.path == path
    assert summary_texts.message(done) == f"总结已成功追加至文件：{path}"


@pytest.mark.parametrize("before", ["", "first", "first\n", "\r\n\r\n"])
def test_an_appended_summary_stands_under_a_heading_with_the_time(
    summary: Summary, before: str
) -> None:
    Path("week.md").write_bytes(before.encode())
    summary.update("second", "week.md", "append")
    assert Path("week.md").read_bytes() == (before + SEPARATOR + "second").encode()


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16"])
def test_an_appended_summary_has_the_encoding_of_its_file(summary: Summary, encoding: str) -> None:
    before = "这是一个用旧编码保存的文件，里面有很多中文内容，我们要在后面追加一段总结。\n"
    Path("week.md").write_bytes(before.encode(encoding))
    summary.update("第二段", "week.md")
    assert Path("week.md").read_bytes().decode(encoding) == before + SEPARATOR + "第二段"


def test_what_the_encoding_of_the_file_lacks_is_told(summary: Summary) -> None:
    before = "Les élèves mangent à l'école; où est la forêt, près du château?\n".encode("latin-1")
    Path("week.md").write_bytes(before)
    assert "请先将文件转换为 UTF-8" in refused(summary, "第二段", "week.md")
    assert Path("week.md").read_bytes() == before


def test_overwriting_leaves_the_content_alone(summary: Summary) -> None:
    path = Path.cwd() / "week.MARKDOWN"
    path.write_bytes(b"first")
    done = summary.update(" second ", str(path), "overwrite")
    assert path.read_bytes() == b" second "
    assert summary_texts.message(done) == f"总结已成功写入文件：{path}"


def test_a_summary_that_no_search_will_show_says_so(kb: KnowledgeBase, summary: Summary) -> None:
    kb.add_collection(Path.cwd())
    Path("skip").mkdir()
    Path(".qmdignore").write_text("skip/\n")
    assert "matches 'skip'" in str(summary.update("new", "skip/week.md").problem)
    assert summary.update("new", "week.md").problem is None


def test_the_file_in_the_answer_has_no_links_in_it(summary: Summary) -> None:
    Path("real").mkdir()
    Path("link").symlink_to("real")
    assert summary.update("x", "link/./week.md").path == Path.cwd() / "real/week.md"


def test_two_dots_in_a_name_are_no_way_up(summary: Summary) -> None:
    assert summary.update("x", "a..b.md").path.name == "a..b.md"
    assert summary.update("x", "..c.md").path.name == "..c.md"


def test_the_time_is_local(kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(time, "tzset"):
        pytest.skip("no time zones to set here")
    monkeypatch.setenv("TZ", "XXX-13:37")
    time.tzset()
    try:
        before = time.strftime("%Y-%m-%d %H:%M:%S")
        kb.summary.update("one", "x.md")
        kb.summary.update("two", "x.md")
        after = time.strftime("%Y-%m-%d %H:%M:%S")
    finally:
        monkeypatch.undo()
        time.tzset()
    shown = Path(kb.policy.roots[0].path, "x.md").read_text().partition("[")[2].partition("]")[0]
    assert before <= shown <= after


# --- arguments ---------------------------------------------------------------------------

#: Each is wrong in all that stands below it, too: the first in the order is told.
WRONG = [
    ((None, None, "x"), "Invalid content: is required"),
    (("", None, "x"), "Invalid file_path: is required"),
    (("", "x.txt", "x"), "Invalid content: must not be empty or only whitespace"),
    ((" \t\r\n\u3000\u00a0\u2028", "x.txt", "x"), "Invalid content: must not be empty"),
    ((7, "x.txt", "x"), "Invalid content: must be a string"),
    (("text", "../x.txt", "x"), "Invalid file_path: must end with .md or .markdown"),
    (("text", "", "x"), "Invalid file_path: must end with .md"),
    (("text", "x.md/", "x"), "Invalid file_path: must end with .md"),
    (("text", "x.md ", "x"), "Invalid file_path: must end with .md"),
    (("text", ["x.md"], "x"), "Invalid file_path: must be a string"),
    (("text", "../x.md", "x"), "Invalid mode: must be append or overwrite"),
    (("text", "../x.md", ""), "Invalid mode: must be append or overwrite"),
    (("text", "../x.md", ["append"]), "Invalid mode: must be append or overwrite"),
    (("text", "../x.md", None), "Invalid file_path: must not contain '..'"),
    (("text", "a/../x.md", "append"), "Invalid file_path: must not contain '..'"),
    (("text", "a\\..\\x.md", "append"), "Invalid file_path: must not contain '..'"),
    (("text", "/tmp/../etc/x.md", "append"), "Invalid file_path: must not contain '..'"),
    (("text", "a\nb.md", "append"), "Invalid file_path: a\\nb.md contains control characters"),
    (("text", "a\u202eb/x.md", None), "Invalid file_path: a\\u202eb/x.md contains control"),
    (("half \ud83d", "x.md", "append"), "Invalid content: character 6 is half"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_the_first_wrong_argument_is_told_and_the_disk_is_not_touched(
    summary: Summary, arguments: tuple[object, ...], message: str
) -> None:
    assert refused(summary, *arguments).startswith(message)
    assert list(Path.cwd().parent.rglob("*.md")) == []
    assert list(Path.cwd().iterdir()) == []


# --- what the disk says ------------------------------------------------------------------


@posix
def test_every_trouble_with_the_path_has_its_own_sentence_with_advice(
    tmp_path: Path, summary: Summary
) -> None:
    Path("folder.md").mkdir()
    Path("file").write_text("x")
    Path("loop.md").symlink_to("loop.md")
    Path("closed.md").write_text("old")
    Path("closed.md").chmod(0o444)
    os.mkfifo("pipe.md")
    Path("out").symlink_to(tmp_path)
    before = sorted(Path.cwd().iterdir())
    elsewhere = tmp_path / "x.md"
    for path, said, advice in (
        ("closed.md", "权限被拒绝。", "请检查文件是否已被打开或您是否有写权限。"),
        ("folder.md", "目标是一个目录", "请指定该目录中的一个 .md 文件"),
        ("file/x.md", "上级路径不是目录", "请换一个目录"),
        ("loop.md", "符号链接无法跟随", "请直接使用它指向的路径"),
        ("pipe.md", "目标不是普通文件", "请指定一个普通的 .md 文件"),
        ("长" * 90 + ".md", "文件名过长", "255 字节"),
        ("a/" * 3000 + "x.md", "路径过长", "请缩短"),
        (str(elsewhere), f"{elsewhere} 不在允许写入的目录之内", f"--write-root {tmp_path} "),
        ("out/x.md", f"符号链接指向允许写入的目录之外：{elsewhere}", "--write-root"),
        ("a\0.md", "空字符", "请去掉"),
        ("a\udcff.md", "无法编码", "请改用"),
        ("a\ud800.md", "无法编码", "请改用"),
    ):
        for mode in ("append", "overwrite"):
            message = refused(summary, "text", path, mode)
            assert message.startswith("写入文件失败："), path
            assert said in message, path
            assert advice in message, path
    assert sorted(Path.cwd().iterdir()) == before
    assert not elsewhere.exists()


@posix
def test_a_working_directory_that_is_gone_is_told(summary: Summary) -> None:
    Path("gone").mkdir()
    os.chdir("gone")
    Path("../gone").rmdir()
    assert "请使用绝对路径" in refused(summary, "text", "x.md")


def test_a_link_that_is_being_changed_is_told(
    summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path.cwd() / "week.md"

    def gone(path: object, **how: object) -> str:
        raise OSError(errno.EINVAL, "Invalid argument", str(path))  # it is a link no more

    monkeypatch.setattr(os.path, "realpath", gone)
    expected = f"写入文件失败：路径中的符号链接无法跟随：{path}。请稍后重试。"
    assert refused(summary, "text", "week.md") == expected


def test_the_sentence_for_a_missing_permission_is_that_of_the_source(summary: Summary) -> None:
    Path("x.md").write_text("old")
    Path("x.md").chmod(0o444)
    assert refused(summary, "text", "x.md") == (
        "写入文件失败：权限被拒绝。请检查文件是否已被打开或您是否有写权限。"
    )


@pytest.mark.parametrize(
    ("error", "said", "advice"),
    [
        (OSError(errno.ENOSPC, "x"), "磁盘空间不足", "请清理磁盘空间"),
        (OSError(errno.EBUSY, "x"), "被其他进程占用", "请关闭正在使用该文件的程序"),
        (OSError(errno.ETXTBSY, "x"), "被其他进程占用", "请关闭"),
        (OSError(errno.EROFS, "x"), "文件系统是只读的", "请改用可写的磁盘"),
        (OSError(errno.EPERM, "x"), "权限被拒绝", "请检查"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error", "请检查磁盘"),
        (DiskFullError("full"), "磁盘空间不足", "请清理磁盘空间"),
        (DatabaseBusyError("busy"), "文件未改动", "请稍后重试"),
        (QmdError("something", hint="do this"), "something", "do this"),
    ],
)
def test_every_trouble_of_the_system_has_its_own_sentence_with_advice(
    kb: KnowledgeBase, error: Exception, said: str, advice: str
) -> None:
    class Failing(FileWriter):
        def rewrite(self, *args: object, **options: object) -> None:  # type: ignore[override]
            raise error

    message = refused(Summary(Failing(kb._store, kb.policy, print)), "text", "x.md")
    assert message.startswith("写入文件失败：")
    assert said in message
    assert advice in message


def test_what_windows_says_has_the_same_sentences(kb: KnowledgeBase) -> None:
    class WindowsLike(OSError):
        winerror = 32  # another program has it open

    class Failing(FileWriter):
        def rewrite(self, *args: object, **options: object) -> None:  # type: ignore[override]
            raise WindowsLike(errno.EACCES, "x")

    message = refused(Summary(Failing(kb._store, kb.policy, print)), "text", "x.md")
    assert "被其他进程占用" in message


def test_a_read_only_server_says_so(kb: KnowledgeBase) -> None:
    files = FileWriter(kb._store, WritePolicy.read_only(), print)
    message = refused(Summary(files), "text", "x.md")
    assert "--read-only" in message
    assert "只读" in message
