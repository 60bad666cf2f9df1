"""Formats of installed packages: off until they are named, and a broken one costs only itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.ingest import parse_workers
from qmd.operations.plugins import listed
from qmd.parse import formats
from qmd.parse.formats import FileFormat
from qmd.system import plugins
from qmd.values.reports import PluginInfo

SAMPLE = Path(__file__).parents[2] / "integrations/qmd-ics"
CALENDAR = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Sourdough day\nEND:VEVENT\nEND:VCALENDAR\n"
OTHERS = {
    "none": "qmd_ics:missing",
    "number": "qmd_ics.convert:MAX_EVENTS",
    "raising": "qmd_raising:FORMAT",
    "taken": "qmd_taken:FORMATS",
    "failing": "qmd_taken:FAILING",
}


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The sample plugin and some broken ones, as a package manager installs them."""
    site = tmp_path / "site"
    about = site / "qmd_ics-0.1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: qmd-ics\nVersion: 0.1.0\n")
    points = "".join(f"{name} = {value}\n" for name, value in OTHERS.items())
    (about / "entry_points.txt").write_text(f"[qmd.formats]\nics = qmd_ics:CALENDAR\n{points}")
    (site / "qmd_raising.py").write_text("print('noise')\nraise RuntimeError('no luck')\n")
    (site / "qmd_taken.py").write_text(
        "from qmd.parse.formats import FileFormat\n"
        "FORMATS = (FileFormat('mine', ('.pdf',), 'qmd_taken:convert'),)\n"
        "FAILING = FileFormat('failing', ('.fail',), 'qmd_taken:convert')\n"
        "def convert(path, data):\n"
        "    return ('text', (), None, None, {'set': {1}}) if data == b'set' else 1 / 0\n"
    )
    monkeypatch.setattr(sys, "path", [str(site), str(SAMPLE), *sys.path])
    packages = ("qmd_ics", "qmd_raising", "qmd_taken")
    for name in [each for each in sys.modules if each.partition(".")[0] in packages]:
        monkeypatch.delitem(sys.modules, name)  # of another test
    parse_workers.workers.close()  # a worker that another test has left looks in other folders
    yield
    plugins.turn_on(())
    formats.turn_on((), ())
    parse_workers.workers.close()


def test_none_is_on_before_it_is_named(tmp_path: Path) -> None:
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        listing = listed(kb.plugins).plugins
    assert [each.name for each in listing] == sorted(["ics", *OTHERS])
    assert {each.state for each in listing} == {"off"}
    assert "qmd_ics" not in sys.modules
    assert formats.format_of("a.ics") is formats.MARKDOWN


def test_a_named_one_reads_its_files_and_a_broken_one_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/work.ics").write_text(CALENDAR)
    (tmp_path / "notes/bad.ics").write_text("Dear all,")
    (tmp_path / "notes/a.fail").write_text("set")
    (tmp_path / "notes/b.fail").write_text("other")
    names = ("ics", "raising", "taken", "failing", "gone")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", Settings(plugins=names), create=True) as kb:
        kb.add_collection(tmp_path / "notes", mask="**/*.{ics,fail}")
        report = kb.index()
        assert report.added == 1
        [hit] = kb.search("sourdough").hits
        assert (hit.file, hit.anchor) == ("notes/work.ics", "event=1")
        reasons = {skip.path: (skip.reason, skip.detail) for skip in report.skipped}
        assert reasons["bad.ics"] == ("damaged", "The file is no calendar.")
        assert [reasons[name][0] for name in ("a.fail", "b.fail")] == ["parser failed"] * 2
        assert reasons["b.fail"][1].startswith("ZeroDivisionError: division by zero (")
        offered = {each.name: each for each in listed(kb.plugins).plugins}
    expected = PluginInfo("ics", "formats", "qmd-ics", "0.1.0", "on", ("calendar (.ics)",))
    assert offered["ics"] == expected
    assert offered["none"].state == offered["number"].state == "off"
    assert {name: offered[name].problem for name in ("raising", "taken", "gone")} == {
        "raising": "RuntimeError: no luck",
        "taken": ".pdf is a suffix of the format PDF, which qmd has.",
        "gone": "It is not installed.",
    }
    assert "noise" not in capfd.readouterr().out  # which may be that of MCP


@pytest.mark.parametrize("name", ["none", "number"])
def test_what_is_no_format_is_broken(name: str) -> None:
    [plugin] = [each for each in listed((name,)).plugins if each.name == name]
    assert (plugin.state, plugin.offers) == ("broken", ())
    assert plugin.problem


@pytest.mark.parametrize(
    "file_format",
    [
        FileFormat("a", (".md",), "a:b"),
        FileFormat("a", ("a",), "a:b"),
        FileFormat("a", (".A",), "a:b"),
        FileFormat("a", (".csv",), "a:b"),
        FileFormat("a", (".a",), "a"),
        FileFormat("a", (".a",), "a:b", is_edited=True),
    ],
)
def test_a_format_that_would_change_those_of_qmd_is_refused(file_format: FileFormat) -> None:
    assert formats.problem_of(file_format)
    assert formats.problem_of(FileFormat("a", (".a",), "a:b")) is None


@pytest.mark.unmeasured
def test_the_sample_passes_its_own_tests() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", SAMPLE / "tests"],
        env={**os.environ, "PYTHONPATH": str(SAMPLE)},
        cwd=SAMPLE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
