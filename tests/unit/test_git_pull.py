"""Pulling a collection runs nothing that the collection brings, and asks nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from qmd.ingest import git_pull
from qmd.values import Collection
from tests.support.live import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts, links")

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def git(*arguments: str | Path, where: Path) -> str:
    """As somebody prepares a repository: nothing of the user's own settings."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(where), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *IDENTITY, *arguments], cwd=where, env=environ, check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def commit(where: Path, **files: str) -> None:
    for name, text in files.items():
        (where / name.replace("_", ".")).write_text(text)
    git("add", "--all", where=where)
    git("commit", "-qm", "more", where=where)


@dataclass
class Stage:
    """A clone that is one commit behind its origin, and a script that leaves a mark."""

    root: Path

    @property
    def clone(self) -> Path:
        return self.root / "clone"

    @property
    def mark(self) -> Path:
        return self.root / "mark"

    @property
    def script(self) -> str:
        return str(self.root / "script")

    def set(self, key: str, value: str) -> None:
        git("config", key, value, where=self.clone)

    def pull(self, folder: Path | None = None) -> list[str]:
        path = str(folder or self.clone)
        return git_pull.pull([Collection(1, "notes", path, "**/*.md", (), 0, None, None)])

    @property
    def is_pulled(self) -> bool:
        return (self.clone / "new.md").exists()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template")
    origin = root / "origin"
    origin.mkdir()
    git("init", "-q", "-b", "main", where=origin)
    commit(origin, a_md="# Apple\n")
    git("clone", "-q", "../origin", root / "clone", where=origin)
    commit(origin, new_md="# New\n", a_md="# Apple tree\n", _gitattributes="* filter=x merge=x\n")
    return root


@pytest.fixture
def stage(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    root = tmp_path / "stage"
    shutil.copytree(template, root, symlinks=True)
    script = root / "script"
    script.write_text(f"#!/bin/sh\ntouch {root}/mark\nexit 0\n")
    script.chmod(0o755)
    stage = Stage(root)
    stage.set("remote.origin.url", str(root / "origin"))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    (root / "home").mkdir()
    monkeypatch.setenv("HOME", str(root / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return stage


def test_a_clone_with_the_settings_people_have_is_pulled(stage: Stage) -> None:
    for key, value in {
        "user.name": "me", "core.autocrlf": "input", "pull.rebase": "true",
        "rerere.enabled": "true", "gc.auto": "0",
        "branch.main.vscode-merge-base": "origin/main", "remote.origin.gh-resolved": "base",
        "remote.origin.prune": "true", "submodule.active": ".", "commit.gpgsign": "true",
        "core.hooksPath": ".husky/_", "core.fsmonitor": "true", "lfs.repositoryformatversion": "0",
        "merge.autoStash": "true", "core.editor": "vim",
    }.items():  # fmt: skip
        stage.set(key, value)
    assert stage.pull() == []
    assert stage.is_pulled


HOOKS = (
    "post-merge", "pre-merge-commit", "post-checkout", "reference-transaction",
    "post-index-change", "fsmonitor-watchman", "pre-auto-gc", "post-rewrite",
)  # fmt: skip


def _hooks(stage: Stage) -> None:
    for name in HOOKS:
        shutil.copy(stage.script, stage.clone / ".git/hooks" / name)


def _hooks_elsewhere(stage: Stage) -> None:
    shutil.copytree(stage.clone / ".git/hooks", stage.clone / "hooks")
    for name in HOOKS:
        shutil.copy(stage.script, stage.clone / "hooks" / name)
    stage.set("core.hooksPath", "hooks")


def _submodule(stage: Stage) -> None:
    origin = stage.root / "origin"
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", stage.clone, "sub",
        where=origin)  # fmt: skip
    commit(origin)
    git("init", "-q", "sub", where=stage.clone)
    git("config", "core.fsmonitor", stage.script, where=stage.clone / "sub")
    stage.set("submodule.recurse", "true")
    stage.set("submodule.sub.update", f"!{stage.script}")
    stage.set("submodule.sub.url", f"ext::{stage.script}")


@pytest.mark.parametrize(
    "trap",
    [
        _hooks,
        _hooks_elsewhere,
        lambda stage: stage.set("core.fsmonitor", stage.script),
        lambda stage: stage.set("core.pager", stage.script),
        lambda stage: stage.set("core.editor", stage.script),
        _submodule,
    ],
)
def test_what_can_be_switched_off_is_and_the_rest_is_pulled(
    stage: Stage, trap: Callable[[Stage], None]
) -> None:
    trap(stage)
    stage.mark.unlink(missing_ok=True)
    problems = stage.pull()
    assert not stage.mark.exists()
    assert stage.is_pulled or "sub" in problems[0]


KEYS = [
    "filter.x.smudge", "filter.x.clean", "filter.x.process", "merge.x.driver", "diff.external",
    "diff.x.textconv", "diff.x.command", "core.sshCommand", "core.gitProxy", "credential.helper",
    "credential.https://example.org.helper", "remote.origin.uploadpack",
    "remote.origin.receivepack", "remote.origin.vcs", "remote.origin.proxy", "http.proxy",
    "http.cookieFile", "url.ext::x.insteadOf", "alias.fetch", "alias.credential-x", "include.path",
    "includeIf.gitdir:/**.path", "core.worktree", "core.attributesFile", "core.excludesFile",
    "gpg.program", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "merge.verifySignatures",
    "core.alternateRefsCommand", "uploadpack.packObjectsHook", "hook.x.command",
    "gc.recentObjectsHook", "fetch.bundleURI", "bundle.x.uri", "branch.main.mergeOptions",
    "pager.fetch", "protocol.ext.allow", "man.x.cmd", "trailer.x.command", "ssh.variant",
    "mergetool.x.cmd", "sendemail.toCmd", "core.some-key", "unheard.of",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.unmeasured
def test_any_key_not_known_to_be_harmless_is_refused_by_name(stage: Stage, key: str) -> None:
    stage.set(key, stage.script)
    (problem,) = stage.pull()
    # git itself writes section and variable in lower case.
    assert f"sets {key}".lower() in problem.lower()
    assert problem.startswith("notes: not pulled: ")
    assert f"git -C '{stage.clone}' pull" in problem
    assert not stage.mark.exists() and not stage.is_pulled


def test_a_key_of_a_work_tree_s_own_configuration_counts(stage: Stage) -> None:
    stage.set("extensions.worktreeConfig", "true")
    git("config", "--worktree", "filter.x.smudge", stage.script, where=stage.clone)
    assert "filter.x.smudge" in stage.pull()[0]


@pytest.mark.parametrize(
    "url", ["ext::sh -c {script}", "::x", "fd::7", "hg::https://example.org", "x://example.org",
            "FILE:///x", "-u{script}", "ext::{script} %S"]
)  # fmt: skip
def test_an_address_that_names_a_program_is_refused(stage: Stage, url: str) -> None:
    stage.set("remote.origin.url", url.format(script=stage.script))
    assert "remote.origin.url is no address" in stage.pull()[0]
    assert not stage.mark.exists()


@pytest.mark.parametrize("form", ["{0}/origin", "../origin", "file://{0}/%6frigin", "~/../origin"])
def test_a_repository_of_this_machine_is_looked_at_like_the_collection(
    stage: Stage, form: str
) -> None:
    stage.set("remote.origin.url", form.format(stage.root))
    git("config", "uploadpack.packObjectsHook", stage.script, where=stage.root / "origin")
    assert "uploadpack.packobjectshook" in stage.pull()[0]
    git("config", "--unset", "uploadpack.packObjectsHook", where=stage.root / "origin")
    if not form.startswith("~"):  # git gives '~' to a shell, or to nobody
        assert stage.pull() == []


def _git_is_a_link(stage: Stage) -> str:
    (stage.clone / ".git").rename(stage.root / "elsewhere")
    (stage.clone / ".git").symlink_to(stage.root / "elsewhere")
    return "symbolic link"


def _git_is_a_file(stage: Stage) -> str:
    (stage.clone / ".git").rename(stage.root / "elsewhere")
    (stage.clone / ".git").write_text(f"gitdir: {stage.root}/elsewhere\n")
    return "is a file that leads to"


def _git_is_the_work_tree_of_another(stage: Stage) -> str:
    git("worktree", "add", "-q", stage.root / "tree", where=stage.root / "origin")
    shutil.rmtree(stage.clone / ".git")
    shutil.copy(stage.root / "tree/.git", stage.clone / ".git")
    return "does not lead back"


def _shares_another_repository(stage: Stage) -> str:
    (stage.clone / ".git/commondir").write_text(f"{stage.root}/origin/.git")
    return "commondir"


def _fetch_head_is_a_link(stage: Stage) -> str:
    (stage.clone / ".git/FETCH_HEAD").symlink_to(stage.root / "diary")
    return "symbolic link"


def _log_is_a_link(stage: Stage) -> str:
    log = stage.clone / ".git/logs/refs/remotes/origin/main"
    log.unlink(missing_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.symlink_to(stage.root / "diary")
    return "symbolic link"


def _the_folder_is_a_bare_repository(stage: Stage) -> str:
    """``.git`` looks harmless and is no repository, so that git goes on looking."""
    bare = stage.root / "bare"
    git("clone", "-q", "--bare", stage.root / "origin", bare, where=stage.root)
    git("config", "core.fsmonitor", stage.script, where=bare)
    (bare / ".git").mkdir()
    shutil.rmtree(stage.clone)
    bare.rename(stage.clone)
    return ""


@pytest.mark.parametrize(
    "trap",
    [
        _git_is_a_link,
        _git_is_a_file,
        _git_is_the_work_tree_of_another,
        _shares_another_repository,
        _fetch_head_is_a_link,
        _log_is_a_link,
        _the_folder_is_a_bare_repository,
    ],
)
def test_a_repository_that_leads_elsewhere_is_refused(
    stage: Stage, trap: Callable[[Stage], str]
) -> None:
    (stage.root / "diary").write_text("dear diary\n")
    reason = trap(stage)
    before = git("rev-parse", "HEAD", where=stage.root / "origin")
    (problem,) = stage.pull()
    assert reason in problem
    assert not stage.mark.exists()
    assert (stage.root / "diary").read_text() == "dear diary\n"
    assert git("rev-parse", "HEAD", where=stage.root / "origin") == before


def test_the_environment_leads_git_nowhere(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    (stage.clone / "ssh").symlink_to(stage.script)
    for name, value in {
        "GIT_DIR": str(stage.root / "nowhere"), "GIT_WORK_TREE": "/", "GIT_INDEX_FILE": "/x",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": stage.script, "GIT_EXTERNAL_DIFF": stage.script,
        "GIT_TRACE": str(stage.root / "trace"), "GIT_ASKPASS": stage.script,
        "GIT_PROXY_COMMAND": stage.script, "GIT_ALLOW_PROTOCOL": "ext",
        "PATH": f".{os.pathsep}{os.pathsep}{os.environ['PATH']}",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert stage.pull() == []
    assert stage.is_pulled
    assert not stage.mark.exists() and not (stage.root / "trace").exists()


def test_no_program_of_the_folder_is_taken_for_ssh(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.clone / "ssh").symlink_to(stage.script)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    stage.set("remote.origin.url", "ssh://127.0.0.1:1/x")  # where nobody listens
    assert "git fetch failed" in stage.pull()[0]
    assert not stage.mark.exists()


def test_a_linked_work_tree_is_pulled(stage: Stage) -> None:
    git("worktree", "add", "-q", "-b", "side", stage.root / "tree", where=stage.clone)
    git("branch", "-q", "--set-upstream-to=origin/main", "side", where=stage.clone)
    assert stage.pull(stage.root / "tree") == []
    assert (stage.root / "tree/new.md").exists()


def test_programs_of_the_users_own_configuration_run(stage: Stage) -> None:
    """git-lfs works so: its filter stands in ~/.gitconfig."""
    mine = stage.root / "home/.gitconfig"
    mine.write_text(f'[filter "x"]\n\tsmudge = {stage.script} && cat\n')
    assert stage.pull() == []
    assert stage.is_pulled and stage.mark.exists()


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda clone: git("checkout", "-q", "--detach", where=clone), "git failed"),
        (lambda clone: git("checkout", "-qb", "own", where=clone), "has no upstream"),
        (lambda clone: commit(clone, b_md="b\n"), "git merge failed"),
        (lambda clone: (clone / "a.md").write_text("mine\n"), "git merge failed"),
        (lambda clone: git("config", "branch.main.merge", "refs/x:refs/y", where=clone),
         "no remote branch"),
        (lambda clone: git("config", "branch.main.remote", "..", where=clone), "no remote branch"),
        (lambda clone: (clone / ".git/config").write_text("[core"), "git cannot read"),
    ],
)  # fmt: skip
def test_what_cannot_be_pulled_is_told(
    stage: Stage, prepare: Callable[[Path], object], reason: str
) -> None:
    prepare(stage.clone)
    (problem,) = stage.pull()
    assert reason in problem
    assert not stage.is_pulled


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        if "hang" in self.path:
            self.server.closing.wait(60)  # type: ignore[attr-defined]
            return
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def web() -> Iterator[ThreadingHTTPServer]:
    from threading import Event

    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.asked = []  # type: ignore[attr-defined]
    server.closing = Event()  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.closing.set()  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


def test_nobody_is_asked_for_a_password_and_none_is_shown(
    stage: Stage, web: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_ASKPASS", stage.script)
    monkeypatch.setenv("DISPLAY", ":99")
    stage.set("remote.origin.url", f"http://me:s3cret@127.0.0.1:{web.server_address[1]}/x")
    (problem,) = stage.pull()
    assert "git fetch failed" in problem and "s3cret" not in problem
    assert not stage.mark.exists()


def test_a_server_that_never_answers_holds_nobody(
    stage: Stage, web: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_pull, "TIMEOUT_S", 2)
    stage.set("remote.origin.url", f"http://127.0.0.1:{web.server_address[1]}/hang")
    assert stage.pull() == ["notes: git fetch took longer than 2 s and was stopped."]
    assert web.asked  # type: ignore[attr-defined]
    if Path("/proc/self/cwd").exists():
        until(lambda: not processes_in(stage.clone), "the end of git and its children")
    assert not list((stage.clone / ".git").glob("*.lock"))


def processes_in(folder: Path) -> list[str]:
    """The processes whose working directory is this folder."""
    places = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        try:
            places.append(str(place.readlink()))
        except OSError:
            continue  # it has ended, or is another user's
    return [place for place in places if place == str(folder)]


def test_what_git_says_is_bounded(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A credential helper of the user's own is the one who talks here."""
    monkeypatch.setattr(git_pull, "TIMEOUT_S", 60)
    talk = "yes '                                         x' | head -c 20000000 >&2; false"
    mine = stage.root / "home/.gitconfig"
    mine.write_text(f'[filter "x"]\n\tsmudge = "{talk}"\n\trequired = true\n')
    (problem,) = stage.pull()
    assert "git merge failed" in problem
    assert len(problem) < 2000
