"""The command line as a neighbour: terminals, pipes, signals, hostile names, odd encodings."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qmd.cli.terminal import columns
from tests.support.cli import TIMEOUT_S, Scratch, filled, installed_command

posix = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals and signals of POSIX")

HOSTILE_NAME = "evil\x1b[2J\x07\n\u202egnp.md"
HOSTILE_TEXT = "# Title\x1b]0;owned\x07\n\nneedle \x1b[31mred\u202e \x9b2J \x08 end\n"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    scratch = filled(tmp_path_factory.mktemp("cli"))
    scratch.write(f"odd/{HOSTILE_NAME}", HOSTILE_TEXT)
    scratch.ok("collection", "add", "odd")
    return scratch


def on_terminal(scratch: Scratch, *args: str) -> tuple[int, str]:
    """Run the installed command on a pseudo-terminal; exit code and all it showed."""
    import pty

    ours, theirs = pty.openpty()
    process = scratch.start(*args, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = bytearray()
    try:
        while data := read_terminal(ours):
            shown += data
        code = process.wait(TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return code, shown.decode().replace("\r\n", "\n")


def read_terminal(fd: int) -> bytes:
    """What is there; nothing once the other side has closed, or if nothing comes any more."""
    if not select.select([fd], [], [], TIMEOUT_S)[0]:
        return b""
    try:
        return os.read(fd, 65536)
    except OSError:  # Linux's way to say that the other side has closed
        return b""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Twelve notes with long paths, titles and lines, one of them Chinese."""
    text = (
        "and more words " * 20 + "until the harbour comes. " + "后来的文字" * 60 + "\n\nharbour\n"
    )
    notes = {
        f"notes/{'long folder ' * number}/Note {number}.md": f"# Title {'long ' * number}\n\n{text}"
        for number in range(11)
    }
    notes["notes/关于港口的笔记/一个很长的文件名.md"] = f"# 港口\n\nharbour {text}"
    return filled(tmp_path_factory.mktemp("many"), notes).with_env(TERM="xterm")


def plain(shown: str) -> str:
    """What a person sees of it: no colours, no addresses of links."""
    return re.sub("\x1b]8;;[^\x1b]*\x1b\\\\|\x1b\\[[0-9;]*m", "", shown)


@posix
class TestFitting:
    @pytest.mark.parametrize(
        ("width", "height"), [(80, 13), (80, 24), (60, 34), (80, 60), (132, 100)]
    )
    def test_ten_hits_fit_the_screen(self, many: Scratch, width: int, height: int) -> None:
        screen = many.with_env(COLUMNS=str(width), LINES=str(height))
        code, shown = on_terminal(screen, "search", "harbour")
        lines = plain(shown).splitlines()
        assert code == 0
        assert len(lines) < height
        assert max(map(columns, lines)) <= width
        assert plain(shown).count(".md") == 10
        if height > 20:
            assert plain(shown).count("harbour") >= 10

    def test_a_file_name_without_room_gives_way_to_its_docid(self, tmp_path: Path) -> None:
        name = "a file name that is longer than the line of a terminal, because people write so"
        notes = {f"notes/{name} {number}.md": "harbour\n" for number in range(9)}
        screen = filled(tmp_path, notes).with_env(COLUMNS="80", LINES="24", TERM="xterm")
        _, shown = on_terminal(screen, "search", "harbour")
        lines = plain(shown).splitlines()
        assert max(map(columns, lines)) <= 80
        assert sum("  #" in line and line.endswith("…:1") for line in lines) == 9

    def test_whole_texts_are_never_shortened(self, many: Scratch) -> None:
        _, shown = on_terminal(
            many.with_env(COLUMNS="80", LINES="24"), "search", "harbour", "--full"
        )
        assert shown.count("until the") == 10

    def test_a_pager_shows_what_a_terminal_would(self, many: Scratch) -> None:
        screen = many.with_env(COLUMNS="80", LINES="24", QMD_PAGER="tee seen")
        code, shown = on_terminal(screen, "search", "harbour")
        assert code == 0
        assert "\x1b[" in shown
        assert len(shown.splitlines()) > 40
        assert (many.root / "seen").read_text("utf-8") == shown
        (many.root / "seen").unlink()
        assert screen.run("ls").code == 0
        assert not (many.root / "seen").exists(), "a pipe gets no pager"

    def test_a_pager_may_leave_early_or_be_missing(self, many: Scratch) -> None:
        assert on_terminal(many.with_env(QMD_PAGER="head -n 1"), "ls")[0] == 0
        code, shown = on_terminal(many.with_env(QMD_PAGER="no-such-pager"), "ls")
        assert code == 1
        assert "QMD_PAGER" in shown


@posix
class TestTerminal:
    def test_a_hit_is_in_colour_and_its_words_are_marked(self, scratch: Scratch) -> None:
        code, shown = on_terminal(scratch.with_env(TERM="xterm"), "search", "deploys")
        assert code == 0
        assert "\x1b[1mRoad map\x1b[0m" in shown
        assert "\x1b[1;31mdeploy\x1b[0m the parser" in shown

    def test_chinese_words_are_marked(self, scratch: Scratch) -> None:
        _, shown = on_terminal(scratch.with_env(TERM="xterm"), "search", "数据库")
        assert "每天备份\x1b[1;31m数据库\x1b[0m。" in shown

    def test_a_search_by_meaning_says_at_once_that_it_loads_the_model(
        self, scratch: Scratch
    ) -> None:
        env = scratch.with_env(TERM="xterm", NO_COLOR="1")
        _, shown = on_terminal(env, "query", "deploy")
        before, erased, after = shown.partition("\r\x1b[2K")
        assert before.startswith("Loading the model for meaning")
        assert erased
        assert "Road map" in after
        _, shown = on_terminal(env, "search", "deploy")
        assert "Loading" not in shown

    @pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
    def test_colour_can_be_declined(self, scratch: Scratch, env: dict[str, str]) -> None:
        _, shown = on_terminal(scratch.with_env(**{"TERM": "xterm", **env}), "search", "deploy")
        assert "Road map" in shown
        assert "\x1b" not in shown

    @pytest.mark.parametrize(
        "args",
        [
            ["search", "needle"],
            ["search", "needle", "--full"],
            ["search", "needle", "--json"],
            ["search", "needle", "--csv"],
            ["search", "needle", "--md"],
            ["search", "needle", "--xml"],
            ["search", "needle", "--files"],
            ["ls", "odd"],
            ["get", "odd/" + HOSTILE_NAME],
            ["multi-get", "odd/*"],
            ["get", "nope\x1b[2J\u202e.md"],
            ["status"],
            ["why", "odd/" + HOSTILE_NAME],
        ],
        ids=lambda args: " ".join(args[:3]).encode("unicode_escape").decode(),
    )
    def test_no_control_character_of_a_document_reaches_it(
        self, scratch: Scratch, args: list[str]
    ) -> None:
        _, shown = on_terminal(scratch.with_env(NO_COLOR="1"), *args)
        assert shown != ""
        assert not set(shown) & set("\x1b\x07\x08\x9b\u202e")

    def test_indexing_shows_progress_and_leaves_a_clean_summary(self, scratch: Scratch) -> None:
        code, shown = on_terminal(
            scratch.with_env(TERM="xterm", COLUMNS="100"), "index", "--verify", "--no-embed"
        )
        assert code == 0
        assert "Indexed 3 collections: 6 documents" in shown
        assert "6 unchanged" in shown

    def test_an_import_of_conversations_shows_progress(self, tmp_path: Path) -> None:
        scratch = filled(tmp_path)
        talk = {"name": "Boats", "updated_at": "2025-01-02T00:00:00Z", "chat_messages": []}
        message = {"sender": "human", "text": "Why?", "created_at": "2025-01-01T00:00:00Z"}
        talks = [{**talk, "uuid": str(n), "chat_messages": [message]} for n in range(30)]
        export = scratch.write("export/conversations.json", json.dumps(talks))
        on_screen = scratch.with_env(TERM="xterm", COLUMNS="100")
        code, shown = on_terminal(on_screen, "import", "claude", str(export))
        assert (code, "Importing" in shown, "Wrote 30 new notes" in shown) == (0, True, True)

    def test_lines_fit_the_terminal_and_a_pipe_gets_them_whole(
        self, tmp_path: Path, model_cache: Path
    ) -> None:
        scratch = Scratch(tmp_path, {"QMD_CACHE_DIR": str(model_cache)})
        title = "A title about databases that is longer than the line 数据库备份的完整方案" * 2
        scratch.write("notes/long.md", f"# {title}\n\nalpha\n")
        text = (
            "alpha and the words of one long line, " * 5
            + "数据库每天夜里两点备份，保留三十天。" * 4
        )
        scratch.write("notes/中文.md", f"# {title[::-1]}\n\n{text}\n")
        for name in ("one", "two"):
            (tmp_path / f"notes/{name}.md").write_bytes(b"\0\xff" * 50)
        scratch.run("collection", "add", "notes")
        narrow = scratch.with_env(TERM="xterm", COLUMNS="80", NO_COLOR="1")
        for command in (
            *("ls", "recent", "orphans", "config", "doctor", "status", "index"),
            *("search alpha", "search 备份", "query alpha -c nonsense", "open"),
        ):
            _, shown = on_terminal(narrow, *command.split())
            lines = re.sub(r"\x1b\]8;;.*?\x1b\\\\|\x1b\[[0-9;?]*[A-Za-z]", "", shown).split("\n")
            too_long = [line for line in lines if columns(line.rpartition("\r")[2]) > 80]
            assert [line for line in too_long if str(tmp_path) not in line] == [], command
            assert shown.count("The file holds bytes that no text has") <= 1, command
        assert title in scratch.run("ls").out
        assert text[:200] in scratch.run("search", "alpha").out

    # Not measured: Ctrl-C within the measurement leaves its lock closed for ever.
    @pytest.mark.unmeasured
    def test_ctrl_c_is_exit_code_130_and_loses_nothing(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path)
        total = 1500
        for number in range(total):
            scratch.write(f"notes/{number % 50}/{number}.md", f"# Note {number}\n\nword{number}\n")
        import pty

        ours, theirs = pty.openpty()
        process = scratch.start(
            "collection", "add", "notes", stdout=subprocess.DEVNULL, stderr=theirs
        )
        os.close(theirs)
        shown = b""
        try:
            while b"Indexing" not in shown and (data := read_terminal(ours)):
                shown += data
            process.send_signal(signal.SIGINT)
            while data := read_terminal(ours):
                shown += data
            process.wait(TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
            os.close(ours)
        assert process.returncode == 130
        assert b"Interrupted. What was indexed stays: run 'qmd index' to go on." in shown
        assert f"Indexed 1 collection: {total:,} documents" in scratch.ok("index", "--no-embed").out


# In the place of a library that the command line is made with.
SLOW = """
import os
os.write(1, b"loading\\n")
os.read(0, 1)
"""


@posix
@pytest.mark.parametrize(
    "command", [installed_command(), [sys.executable, "-m", "qmd"]], ids=["qmd", "python -m qmd"]
)
def test_ctrl_c_while_it_loads_is_exit_code_130_without_a_word(
    tmp_path: Path, command: list[str]
) -> None:
    scratch = Scratch(tmp_path).with_env(PYTHONPATH=str(tmp_path / "slow"))
    scratch.write("slow/click.py", SLOW)
    process = subprocess.Popen(
        [*command, "search", "x"],
        env=scratch.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"loading\n"
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, told) == (130, (b"", b""))


class TestPipes:
    def test_colour_can_be_forced_into_a_pipe(self, scratch: Scratch) -> None:
        assert "\x1b[1m" in scratch.with_env(FORCE_COLOR="1").ok("search", "deploy").out
        assert "\x1b" not in scratch.ok("search", "deploy").out

    def test_no_colour_wins_over_forced_colour(self, scratch: Scratch) -> None:
        both = scratch.with_env(FORCE_COLOR="1", NO_COLOR="1")
        assert "\x1b" not in both.ok("search", "deploy").out

    def test_a_pipe_gets_the_text_unchanged(self, scratch: Scratch) -> None:
        done = scratch.run_raw("get", f"odd/{HOSTILE_NAME}", "--no-line-numbers")
        assert done.stdout == HOSTILE_TEXT.encode()

    def test_json_holds_names_as_they_are(self, scratch: Scratch) -> None:
        result = scratch.ok("ls", "odd", "--json")
        assert result.json()[0]["path"] == HOSTILE_NAME
        assert "\u202e" not in result.out

    def test_a_name_takes_one_line_of_a_listing(self, scratch: Scratch) -> None:
        assert len(scratch.ok("ls", "odd").out.splitlines()) == 1

    @posix
    @pytest.mark.parametrize("args", [["get", "odd/big.md"], ["ls"], ["search", "big", "--full"]])
    def test_a_reader_that_leaves_ends_it_quietly(self, tmp_path: Path, args: list[str]) -> None:
        scratch = Scratch(tmp_path)
        scratch.write("odd/big.md", "# Big\n" + "a line of text\n" * 50_000)
        scratch.ok("collection", "add", "odd")
        read_end, write_end = os.pipe()
        os.close(read_end)  # gone before the first byte
        process = scratch.start(*args, stdout=write_end, stderr=subprocess.PIPE)
        os.close(write_end)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, b"")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
    def test_a_full_disk_behind_the_output_is_an_error(self, scratch: Scratch) -> None:
        with Path("/dev/full").open("wb") as full:
            process = scratch.start("ls", stdout=full, stderr=subprocess.PIPE)
            _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 1
        assert err == b"qmd: error: No space left on device\n"

    @pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
    @pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
    def test_a_closed_stream_is_an_empty_one(self, scratch: Scratch, closed: str) -> None:
        line = f'"$@" {closed}'
        done = subprocess.run(
            ["/bin/sh", "-c", line, "sh", *installed_command(), "ls", "--json"],
            cwd=scratch.root,
            env=scratch.environment,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert bool(done.stdout) == (">&-" not in closed.replace("2>&-", ""))

    def test_an_encoding_without_the_character_shows_an_escape(self, scratch: Scratch) -> None:
        ascii_only = scratch.with_env(PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
        done = ascii_only.run_raw("ls", "notes/zh")
        assert done.returncode == 0
        assert b"notes/zh/\\u5907\\u4efd.md" in done.stdout

    def test_results_and_remarks_go_different_ways(self, scratch: Scratch) -> None:
        result = scratch.run("query", "SQLite", "--files")
        assert result.out.count("\n") == 1
        assert result.err.startswith("qmd: ")

    def test_progress_is_not_drawn_into_a_pipe(self, scratch: Scratch) -> None:
        assert scratch.run("index", "--verify", "--no-embed").err == ""


def test_the_shell_can_ask_for_completions(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, {"_QMD_COMPLETE": "bash_source"})
    assert "_QMD_COMPLETE=bash_complete" in scratch.run().out
    asked = scratch.with_env(_QMD_COMPLETE="bash_complete", COMP_LINE="qmd coll", COMP_WORD="coll")
    assert "collection" in asked.run().out
