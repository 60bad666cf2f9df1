"""The managers of other systems, with programs in their place that record what they are asked."""

from __future__ import annotations

import plistlib
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from qmd.errors import QmdError
from qmd.system import services
from qmd.system.services import Launchd, Manager, Service, TaskScheduler

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="scripts of POSIX")

PROGRAMS = {"launchd": "launchctl", "windows": "schtasks"}
MANAGERS: dict[str, type[Launchd | TaskScheduler]] = {
    "launchd": Launchd,
    "windows": TaskScheduler,
}
#: What each is asked to stop an earlier service; it fails if there is none.
STOPS = {"launchd": "bootout", "windows": "/End"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()
    return tmp_path


def put(home: Path, program: str, *fails: str) -> None:
    """Install a program that records its arguments, and fails for some first ones."""
    lines = ["#!/bin/sh", f'echo "$@" >> {home}/log']
    lines += [f'[ "$1" != "{first}" ] || {{ echo "no $1" >&2; exit 1; }}' for first in fails]
    file = home / "bin" / program
    file.write_text("\n".join(lines) + "\n")
    file.chmod(0o755)


def service(home: Path) -> Service:
    return Service("qmd-x", "d", (str(home / "bin/qmd"), "server"), {}, home, home / "log.d/err")


def asked(home: Path) -> list[str]:
    return [line.split()[0] for line in (home / "log").read_text().splitlines()]


@pytest.mark.parametrize("name", sorted(MANAGERS))
def test_a_service_is_written_started_asked_for_and_removed(name: str, home: Path) -> None:
    manager: Manager = MANAGERS[name]()
    put(home, PROGRAMS[name], STOPS[name])
    file = manager.file("qmd-x")
    services.install(manager, service(home))
    assert asked(home)[0] == STOPS[name]
    assert len(asked(home)) == len(manager.install_steps("qmd-x"))
    assert file.stat().st_mode & 0o777 == 0o600
    assert (home / "log.d").is_dir()
    assert services.is_active(manager, "qmd-x")
    services.uninstall(manager, "qmd-x")
    assert not file.exists()


def test_a_command_that_fails_leaves_nothing(home: Path) -> None:
    put(home, "schtasks", "/Create")
    with pytest.raises(QmdError, match="no /Create"):
        services.install(TaskScheduler(), service(home))
    assert not TaskScheduler().file("qmd-x").exists()


def test_a_launch_agent_is_started_as_soon_as_the_earlier_one_has_ended(home: Path) -> None:
    put(home, "launchctl")
    program = home / "bin/launchctl"
    ends = f'[ "$1" != bootstrap ] || [ $(grep -c bootstrap {home}/log) -ge 2 ] || exit 5'
    program.write_text(f"{program.read_text()}{ends}\n")
    services.install(Launchd(), service(home))
    assert asked(home) == ["bootout", "bootstrap", "bootstrap"]


def test_a_command_that_is_missing_is_an_error_and_no_service_runs(home: Path) -> None:
    with pytest.raises(QmdError, match="no launchctl here"):
        services.install(Launchd(), service(home))
    assert not services.is_active(Launchd(), "qmd-x")


def test_the_environment_of_a_launch_agent(home: Path) -> None:
    planned = Service("qmd", "d", ("/qmd",), {"QMD_TOKEN": "t & <x>"}, home, home / "err")
    assert plistlib.loads(Launchd().content(planned))["EnvironmentVariables"] == {
        "QMD_TOKEN": "t & <x>"
    }


def test_a_task_starts_python_without_a_console_where_it_can(home: Path) -> None:
    (home / "bin/pythonw.exe").write_text("")
    task = ElementTree.fromstring(TaskScheduler().content(service(home)))
    texts = {element.tag.rpartition("}")[2]: element.text for element in task.iter()}
    assert texts["Command"] == str(home / "bin/pythonw.exe")
    assert texts["Arguments"] == "-I -m qmd server"
