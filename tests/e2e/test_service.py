"""``qmd server service``: the managers take its files, and a manager runs the server."""

from __future__ import annotations

import json
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from qmd.system import running
from qmd.system.services import Service, Systemd
from tests.support.cli import TIMEOUT_S, Scratch, filled
from tests.support.http_server import qmd_server, request

NOTES = {"notes/plan.md": "# Plan\n\nBoats and harbours.\n"}
ODD = "a b%h $HOME 'q' \"r\" \\ 笔记"
TASK = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"

linux = pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")

#: Does what systemctl does with a user unit: starts its command, asks for it, and stops it.
SYSTEMCTL = """\
#!{python}
import os, pathlib, shlex, signal, subprocess, sys
home = pathlib.Path(os.environ["HOME"])
with open(home / "systemctl.log", "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
words = [word for word in sys.argv[1:] if not word.startswith("-")]
pid_file = home / "pid"
def stop():
    if pid_file.exists():
        os.kill(int(pid_file.read_text()), signal.SIGTERM)
        pid_file.unlink()
if words[0] == os.environ.get("FAILS"):
    sys.exit("Job failed.")
if words[0] == "restart":
    stop()
    unit = (home / ".config/systemd/user" / words[1]).read_text()
    lines = dict(line.partition("=")[::2] for line in unit.splitlines() if "=" in line)
    command = [w.replace("$$", "$").replace("%%", "%") for w in shlex.split(lines["ExecStart"])]
    variables = [shlex.split(line.partition("=")[2])[0].replace("%%", "%").partition("=")[::2]
                 for line in unit.splitlines() if line.startswith("Environment=")]
    folder = lines["WorkingDirectory"].removeprefix("-")
    server = subprocess.Popen(command, cwd=folder, start_new_session=True,
        env={{"HOME": str(home), "PYTHONUTF8": "1", **dict(variables)}},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid_file.write_text(str(server.pid))
if words[0] == "disable":
    stop()
if words[0] == "is-active":
    sys.exit(0 if pid_file.exists() else 3)
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return filled(tmp_path, NOTES)


@pytest.fixture
def managed(scratch: Scratch) -> Iterator[Scratch]:
    """A home with a manager of services."""
    program = scratch.write("bin/systemctl", SYSTEMCTL.format(python=sys.executable))
    program.chmod(0o755)
    yield scratch.with_env(PATH=f"{program.parent}:/usr/bin:/bin")
    subprocess.run(
        [str(program), "disable"], env=scratch.environment, check=True, timeout=TIMEOUT_S
    )


def dry_run(scratch: Scratch, *options: str, manager: str = "systemd") -> str:
    result = scratch.ok("service", "install", "--dry-run", "--json", "--manager", manager, *options)
    content: str = result.json()["content"]
    return content


def exec_start(unit: str) -> list[str]:
    (line,) = re.findall("^ExecStart=(.*)$", unit, re.MULTILINE)
    return [word.replace("$$", "$").replace("%%", "%") for word in shlex.split(line)]


def serves(scratch: Scratch) -> running.RunningServer:
    server = running.find(scratch.database)
    assert server is not None
    assert running.answers(server)
    return server


# --- the files -----------------------------------------------------------------------


def test_all_managers_get_the_same_command_with_full_paths(scratch: Scratch) -> None:
    database = str(scratch.root / f"{ODD}.sqlite")
    options = ["--db", f"{ODD}.sqlite", "--port", "9000", "--vault", "notes", "--read-only"]
    expected = [
        *("--db", database, "server", "--transport", "http", "--port", "9000", "--read-only"),
        *("--vault", str(scratch.root / "notes")),
    ]
    systemd = exec_start(dry_run(scratch, *options))
    launchd = plistlib.loads(dry_run(scratch, *options, manager="launchd").encode())
    task = ElementTree.fromstring(
        dry_run(scratch, *options, manager="windows").partition("?>")[2].strip()
    )
    program = systemd[0]
    assert Path(program).is_absolute()
    assert sorted(systemd[1:]) == sorted(expected)
    assert launchd["ProgramArguments"] == systemd
    assert task.findtext(f".//{TASK}Command") == program
    arguments = task.findtext(f".//{TASK}Arguments")
    assert arguments == subprocess.list2cmdline(systemd[1:])


@linux
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_accepts_the_unit(scratch: Scratch) -> None:
    settings = scratch.with_env(QMD_MODEL=ODD, QMD_TOKEN="top secret", XDG_DATA_HOME="/a b%")
    unit = dry_run(settings, "--db", f"{ODD}.sqlite", "--allow-host", "x", "--allow-host", "y")
    (scratch.root / "home/.local/state/qmd").mkdir(parents=True, exist_ok=True)
    file = scratch.write("qmd-test.service", unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(file)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=scratch.environment | {"XDG_RUNTIME_DIR": str(scratch.root)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    # It reads the other units of the machine, too.
    assert "qmd-test" not in done.stderr
    assert "Restart=on-failure" in unit


@linux
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@pytest.mark.parametrize("folder", [ODD, "a$HOME b%h", "x;y 笔记"])
def test_systemd_finds_a_program_in_an_odd_place(folder: str, tmp_path: Path) -> None:
    program = tmp_path / folder / "qmd"
    program.parent.mkdir()
    unit = tmp_path / "qmd-test.service"
    service = Service("qmd-test", "d", (str(program), "$x"), {}, program.parent, tmp_path)
    unit.write_bytes(Systemd().content(service))

    def complaints() -> list[str]:
        done = subprocess.run(
            ["systemd-analyze", "verify", "--user", "--man=no", str(unit)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)},
            check=False,
        )
        return [line for line in done.stderr.splitlines() if "qmd-test" in line]

    if "'" not in folder:  # /usr/bin/env, which starts the other one, is there
        assert "not executable" in complaints()[0]
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert complaints() == []


def test_a_launch_agent_restarts_and_logs(scratch: Scratch) -> None:
    agent = plistlib.loads(dry_run(scratch, manager="launchd").encode())
    assert agent["Label"] == "local.qmd"
    assert agent["RunAtLoad"] is True
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["StandardErrorPath"] == str(scratch.root / "home/.local/state/qmd/qmd.err")


def test_a_task_restarts_has_no_time_limit_and_starts_at_logon(scratch: Scratch) -> None:
    user = scratch.with_env(USERNAME="Kim & Co", USERDOMAIN="DESK")
    text = dry_run(user, manager="windows")
    task = ElementTree.fromstring(text.partition("?>")[2].strip())
    assert task.findtext(f".//{TASK}LogonTrigger/{TASK}UserId") == "DESK\\Kim & Co"
    assert task.findtext(f".//{TASK}ExecutionTimeLimit") == "PT0S"
    assert task.findtext(f".//{TASK}RestartOnFailure/{TASK}Interval") == "PT1M"


def test_a_task_cannot_hold_a_token(scratch: Scratch) -> None:
    secret = scratch.with_env(QMD_TOKEN="top secret")
    result = secret.call("service", "install", "--dry-run", "--manager", "windows")
    assert result.code == 1
    assert "QMD_TOKEN" in result.err
    assert "top secret" not in result.err


@pytest.mark.parametrize("manager", ["systemd", "launchd"])
def test_settings_of_the_environment_come_along(scratch: Scratch, manager: str) -> None:
    settings = scratch.with_env(
        QMD_VAULT="notes", QMD_WRITE_ROOTS="notes", QMD_MODEL="m", QMD_DB="other.sqlite"
    )
    content = dry_run(settings, manager=manager)
    assert str(scratch.root / "notes") in content
    assert str(scratch.root / "other.sqlite") in content
    assert "QMD_DB" not in content  # the command has --db
    for name in ("QMD_VAULT", "QMD_WRITE_ROOTS", "QMD_MODEL"):
        assert name in content


def test_a_dry_run_writes_nothing_and_hides_the_token(scratch: Scratch) -> None:
    before = sorted(scratch.root.rglob("*"))
    for options in ([], ["--token", "top secret"]):
        settings = scratch.with_env(QMD_TOKEN="top secret")
        result = settings.ok("service", "install", "--dry-run", *options)
        assert "top secret" not in result.out
        assert "Environment" in result.out
        assert "daemon-reload" in result.out or sys.platform != "linux"
    assert "delete" in scratch.ok("service", "uninstall", "--dry-run").out
    assert sorted(scratch.root.rglob("*")) == before


@pytest.mark.parametrize(
    "options", [["--no-such"], ["--port", "x"], ["--toolset", "none"], ["stray"]]
)
def test_wrong_options_of_the_server_are_refused(scratch: Scratch, options: list[str]) -> None:
    assert scratch.call("service", "install", "--dry-run", *options).code == 2


def test_databases_have_services_of_their_own(scratch: Scratch) -> None:
    def name(*options: str) -> str:
        result = scratch.ok(*options, "service", "install", "--dry-run", "--json")
        answer: str = result.json()["name"]
        return answer

    assert name() == "qmd"
    assert name("--index", "my work") == "qmd-my-work"
    one, other = name("--db", "a/x.sqlite"), name("--db", "b/x.sqlite")
    assert one != other
    assert re.fullmatch("qmd-x-[0-9a-f]{4}", one)


# --- a manager -----------------------------------------------------------------------


@linux
def test_install_status_and_uninstall(managed: Scratch) -> None:
    installed = managed.run("service", "install", "--port", "0", "--json")
    assert installed.code == 0, installed
    file = Path(installed.json()["file"])
    server = serves(managed)
    assert installed.json()["url"] == server.url
    answer = request(server.url, "POST", "/search", {"query": "boats"})
    assert [hit["file"] for hit in answer.json()["results"]] == ["notes/plan.md"]

    status = managed.run("service", "status", "--json")
    assert (status.code, status.json()["active"], status.json()["pid"]) == (0, True, server.pid)

    again = managed.run("service", "install", "--port", "0", "--read-only", "--json")
    assert again.code == 0, again
    assert "--read-only" in exec_start(file.read_text())

    removed = managed.run("service", "uninstall")
    assert removed.code == 0, removed
    assert not file.exists()
    assert managed.run("service", "status").code == 1
    assert managed.run("service", "uninstall").code == 1
    log = (managed.root / "home/systemctl.log").read_text().splitlines()
    assert log[:3] == ["--user daemon-reload", "--user enable qmd.service",
                       "--user restart qmd.service"]  # fmt: skip
    assert log[-1] == "--user daemon-reload"


@linux
def test_the_token_is_in_a_file_that_only_the_user_reads(managed: Scratch) -> None:
    secrets = {"QMD_TOKEN": "top-secret", "QMD_LLM_API_KEY": "sk-of-a-server"}
    result = managed.with_env(**secrets).run("service", "install", "--port", "0")
    assert result.code == 0, result
    assert "Not kept: the key in QMD_LLM_API_KEY." in result.err
    assert "top-secret" not in result.out + result.err
    file = managed.root / "home/.config/systemd/user/qmd.service"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "sk-of-a-server" not in file.read_text()
    assert "top-secret" not in " ".join(exec_start(file.read_text()))
    server = serves(managed)
    assert (server.token, server.guard) == ("top-secret", "token")


@linux
def test_a_failed_installation_leaves_no_file_or_the_earlier_one(managed: Scratch) -> None:
    file = managed.root / "home/.config/systemd/user/qmd.service"
    failing = managed.with_env(FAILS="enable")
    result = failing.run("service", "install", "--port", "0")
    assert (result.code, file.exists()) == (1, False)
    assert "systemctl --user enable qmd.service failed: Job failed." in result.err

    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("earlier")
    assert failing.run("service", "install", "--port", "0").code == 1
    assert file.read_text() == "earlier"
    stays = managed.with_env(FAILS="disable").run("service", "uninstall")
    assert (stays.code, file.exists()) == (1, True)


@linux
def test_without_a_manager_the_error_says_so(scratch: Scratch) -> None:
    empty = scratch.root / "empty"
    empty.mkdir()
    result = scratch.with_env(PATH=str(empty)).run("service", "install", "--json")
    assert result.code == 1
    assert "no systemctl here" in result.error()["message"]
    assert not (scratch.root / "home/.config/systemd/user/qmd.service").exists()


@linux
def test_a_server_of_the_database_that_runs_is_in_the_way(managed: Scratch) -> None:
    with qmd_server(managed.database, environment=managed.environment) as serving:
        url = serving.url  # it listens now
        result = managed.run("service", "install", "--json")
        assert result.code == 1
        assert url in result.error()["message"]


@pytest.mark.skipif(sys.platform == "win32", reason="its manager is there")
def test_a_manager_of_another_system_is_refused(scratch: Scratch) -> None:
    for command in ("install", "uninstall"):
        result = scratch.call("service", command, "--manager", "windows")
        assert result.code == 1
        assert "--dry-run" in result.err


def test_the_status_of_nothing(scratch: Scratch) -> None:
    result = scratch.call("service", "status", "--json")
    assert result.code == 1
    assert json.loads(result.out)["file"] is None
    assert "not installed" in scratch.call("service", "status").out
