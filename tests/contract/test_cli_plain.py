"""A plain search is read and answered without click, exactly as click would have it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.cli import plain
from qmd.cli.main import cli
from qmd.cli.session import Session
from qmd.operations import searches
from qmd.system.session import SERVES_ONLY
from tests.support.cli import Scratch, filled

PLAIN = [
    ("search", "parser"),
    ("search", "parser", "tree", "-n", "1"),
    ("search", "parser", "--limit", "2", "--json"),
    ("search", "--json", "-c", "docs", "parser"),
    ("search", "-c", "notes", "parser", "--collection", "docs", "-n", "1", "--limit", "9"),
    ("search", "数据库"),
    ("search", 'title:plan "road map"'),
    ("search", "nothing-like-this"),
    ("search", "parsr", "--json"),
    ("search", "nothing like this", "--json"),
    ("search", "tag:team OR tag:none"),
    ("search", "search", "-n", "3"),
    ("search", "parser", "-c", "nowhere"),
    ("search", "parser", "-c", "nowhere", "--json"),
    ("--db", "none.sqlite", "search", "parser"),
    ("search", "parser", "--index", "other", "--json"),
    ("--index", "../other", "search", "parser"),
]
LEFT_TO_CLICK = [
    (),
    ("search",),
    ("search", ""),
    ("search", "--help"),
    ("search", "parser", "-n", "0"),
    ("search", "parser", "-n", "1001"),
    ("search", "parser", "-n", "²"),
    ("search", "parser", "-n"),
    ("search", "parser", "-n5"),
    ("search", "parser", "--limit=5"),
    ("search", "parser", "-c", ""),
    ("search", "parser", "-tree"),
    ("search", "--", "parser"),
    ("search", "\ue000parser"),
    ("search", "parser", "--csv"),
    ("--json", "search", "parser"),
    ("-n", "3", "search", "parser"),
    ("query", "search"),
    ("note", "search", "parser"),
    ("--db", "-", "search", "parser"),
    ("--db", "a.sqlite", "search", "--index", "b", "parser"),
]


OPTIONS = ("--db", "--index", "-n", "--limit", "-c", "--collection", "--json", "--", "--all", "-x")
WORDS = ("search", "query", "word", "3", "0", "1001", "٣", "", " ", "a,b", "\ue000", "-", "+1")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return filled(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("line", PLAIN, ids=" ".join)
def test_the_answer_is_that_of_the_general_way(line: tuple[str, ...], scratch: Scratch) -> None:
    assert plain.read(line) is not None
    assert scratch.run(*line) == scratch.call(*line)


@pytest.mark.parametrize("line", LEFT_TO_CLICK, ids=" ".join)
def test_what_is_not_plain_is_left_alone(line: tuple[str, ...]) -> None:
    assert plain.search(line) is None


@pytest.mark.parametrize(
    "line",
    [
        ("index", "--no-embed"),
        ("--db", "none.sqlite", "index"),
        ("--index", "../other", "index", "--no-embed"),
    ],
    ids=" ".join,
)
def test_indexing_is_that_of_the_general_way(line: tuple[str, ...], scratch: Scratch) -> None:
    assert plain.read_index(list(line)) is not None
    assert scratch.run(*line) == scratch.call(*line)


@pytest.mark.parametrize(
    "line",
    [
        ("index", "--verify"),
        ("index", "--help"),
        ("index", "notes"),
        ("index", "--no-embed", "--verify"),
        ("--no-embed", "index"),
        ("index", "--no-embed", "--embed"),
        ("--db", "index"),
        ("--db", "--no-embed", "index"),
        ("--db", "a", "--index", "b", "index"),
        ("search", "index"),
        ("-n", "3", "index"),
        ("--json", "index"),
        ("--", "index"),
    ],
    ids=" ".join,
)
def test_what_is_no_plain_indexing_is_left_alone(line: tuple[str, ...]) -> None:
    assert plain.index(list(line)) is None


@given(st.lists(st.sampled_from((*OPTIONS, *WORDS, "index", "--no-embed", "--embed")), max_size=5))
def test_what_is_plain_indexing_is_read_as_click_reads_it(args: list[str]) -> None:
    read = plain.read_index(args)
    if read is None:
        return
    ours, embed = read
    theirs = Session()
    seen: list[object] = []

    def keep(collections: object, **options: object) -> None:
        seen.append((collections, options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qmd.cli.runs.index_everything", keep)
        with cli.make_context("qmd", args, obj=theirs) as ctx:
            cli.invoke(ctx)
    assert (ours.db, ours.index, ours.command) == (theirs.db, theirs.index, theirs.command)
    assert seen == [((), {"verify": False, "embed": embed, "ocr": None})]


@pytest.mark.parametrize("name", ["_QMD_COMPLETE", SERVES_ONLY])
def test_a_program_that_wants_something_else_gets_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    assert plain.search(("search", "parser")) is None


ARGUMENTS = st.lists(st.sampled_from(OPTIONS + WORDS), max_size=5)


@given(ARGUMENTS, ARGUMENTS)
def test_what_is_plain_is_read_as_click_reads_it(before: list[str], behind: list[str]) -> None:
    args = [*before, "search", *behind]
    read = plain.read(args)
    if read is None:
        return
    ours, request, as_json = read
    theirs = Session()
    seen: dict[str, object] = {}

    def keep(operation: object, arguments: dict[str, object], **options: object) -> None:
        seen.update(arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qmd.cli.search.answer", keep)
        with cli.make_context("qmd", args, obj=theirs) as ctx:
            cli.invoke(ctx)
    assert (ours.db, ours.index, ours.command) == (theirs.db, theirs.index, theirs.command)
    names = ("output", "mode", "full", "line_numbers", "full_path")
    assert [seen.pop(name) for name in names] == [
        "json" if as_json else "cli",
        "auto",
        *3 * [False],
    ]
    assert searches.search.gathered(seen)["request"] == request


#: What a plain search does without, and how many modules of qmd it may load: each takes a tenth of
#: a millisecond, or far more.
UNUSED = (
    "qmd.kb.knowledge_base",
    "click",
    "dataclasses",
    "inspect",
    "uuid",
    "platform",
    "gettext",
    "tempfile",
    "hashlib",
)
MOST_MODULES = 85


@pytest.mark.unmeasured
@pytest.mark.cold
def test_a_plain_search_loads_next_to_nothing(scratch: Scratch) -> None:
    code = (
        "import os, sys\n"
        "def end(code):\n"
        "    print(*sorted(sys.modules))\n"
        "    sys.stdout.flush()\n"
        "    end_at_once(code)\n"
        "end_at_once, os._exit = os._exit, end\n"
        "from qmd.__main__ import run\n"
        "run()"
    )
    args = [sys.executable, "-S", "-c", code, "search", "parser"]
    environment = {**scratch.environment, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("COVERAGE_PROCESS_CONFIG", None)
    done = subprocess.run(
        args,
        check=False,
        cwd=scratch.root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.splitlines()[-1].split()
    assert [name for name in loaded if name in UNUSED] == []
    assert len([name for name in loaded if name.startswith("qmd")]) <= MOST_MODULES


@pytest.mark.unmeasured
@pytest.mark.cold
@pytest.mark.skipif(not hasattr(os, "wait4"), reason="counts the CPU of one process")
def test_a_plain_search_takes_little_more_than_click_takes_to_load(scratch: Scratch) -> None:
    """Before, it took 2.7 times as much, with click and without compiled code 4 times."""
    environment = {**scratch.environment}
    environment.pop("COVERAGE_PROCESS_CONFIG", None)

    def cpu_s(*args: str) -> float:
        with subprocess.Popen(
            [sys.executable, *args], cwd=scratch.root, env=environment, stdout=subprocess.DEVNULL
        ) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_utime + usage.ru_stime

    lines = (("-c", "import click"), ("-m", "qmd", "search", "parser"))
    costs = [[cpu_s(*line) for line in lines] for _ in range(5)]
    click, search = map(min, zip(*costs, strict=True))
    assert search < 2.2 * click
