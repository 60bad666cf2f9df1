"""
Run ``git pull`` for collections, as a fetch and a fast-forward that start no other program.

Over the network anybody who may use the server can ask for it, and a folder of notes may come
from a stranger; so hooks and other programs are off, git asks no question, and time and output are
bounded. Programs that the user's own configuration names (``~/.gitconfig``: a credential helper,
ssh, git-lfs) do run.

The stranger's folder brings its ``.git``, whose configuration can name programs in dozens of keys;
the stranger chooses the names of some of them (``filter.NAME.smudge``), and each version of git
adds more. So `trusted_repository` accepts a list of harmless keys, and any other key is refused.
The configuration of the user and of the system is trusted.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from urllib.parse import unquote

from qmd.engine_text import with_cause
from qmd.errors import InputError
from qmd.system import cancellation
from qmd.values import Collection

#: For a fetch and its fast-forward together.
TIMEOUT_S = 120

_END_S = 5  # for git to remove its lock files, once it is asked to end
_LOOK_S = 0.5  # whether anybody still waits
_MOST_BYTES = 64 * 1024  # of what git says; the rest is read and dropped
#: What of ``GIT_*`` is kept: how the user reaches servers, and where the user's settings are.
_KEPT = re.compile(
    r"GIT_(SSH|SSH_COMMAND|SSH_VARIANT|SSL_\w+|PROXY_SSL_\w+|HTTP_PROXY_AUTHMETHOD|EXEC_PATH"
    r"|CONFIG_GLOBAL|CONFIG_SYSTEM|CONFIG_NOSYSTEM)"
)
_REFERENCE = re.compile(r"refs/[^\s:^~?*\[\\]+")  # and no refspec, which would write another one
_PASSWORD = re.compile(r"(?<=//)[^/@\s]*@")


def pull(collections: Sequence[Collection]) -> list[str]:
    """Bring each collection inside a git work tree up to date; what went wrong, in sentences."""
    environ = _environment()
    git = shutil.which("git", path=environ["PATH"])
    problems = []
    for collection in collections:
        cancellation.check()
        work_tree = work_tree_of(Path(os.path.realpath(collection.path)))
        if work_tree is None:
            continue
        if git is None:
            return ["git is not installed; nothing was pulled."]
        try:
            _pull(trusted_repository(work_tree, git, environ), git, environ)
        except InputError as error:
            problems.append(with_cause(collection.name, error.with_hint))
    return problems


def _pull(repository: Repository, git: str, environ: dict[str, str]) -> None:
    """Raises InputError: It was not pulled."""
    run = _Git(git, repository.work_tree, environ)
    # git itself looks at who owns the repository, and must find the one that was looked at.
    seen = run("rev-parse", "--absolute-git-dir")
    if Path(seen).resolve() != repository.git_dir:
        raise InputError(f"not pulled: git finds its repository in {seen}.")
    branch = run("symbolic-ref", "--short", "HEAD")
    remote = repository.value(f"branch.{branch}.remote")
    merge = repository.value(f"branch.{branch}.merge")
    if remote is None or merge is None:
        raise InputError(f"not pulled: the branch {branch} has no upstream.")
    if (
        remote.startswith("-")
        or not repository.values(f"remote.{remote}.url")
        or not _REFERENCE.fullmatch(merge)
    ):
        raise InputError(f"not pulled: the upstream of the branch {branch} is no remote branch.")
    run("fetch", "--quiet", "--no-recurse-submodules", "--no-auto-maintenance", "--", remote, merge,
        what="git fetch")  # fmt: skip
    with cancellation.uninterrupted():  # half a fast-forward would look like changes of the user's
        run("merge", "--quiet", "--ff-only", "--no-stat", "FETCH_HEAD", what="git merge")


def _environment() -> dict[str, str]:
    """That of git: without what steers it from outside, and with nobody to answer questions."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or _KEPT.fullmatch(name)
    }
    environ.pop("SSH_ASKPASS", None)
    # git works inside the collection, where "." must name no program.
    paths = environ.get("PATH", os.defpath).split(os.pathsep)
    environ["PATH"] = os.pathsep.join(path for path in paths if Path(path).is_absolute())
    return environ | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "GCM_INTERACTIVE": "never",
        "SSH_ASKPASS_REQUIRE": "never",
    }


class _Git:
    """Runs git in one work tree; all runs together within a time."""

    def __init__(self, git: str, work_tree: Path, environ: dict[str, str]) -> None:
        overrides = [f"{key}={value}" for key, value in OVERRIDES.items()]
        options = [part for override in overrides for part in ("-c", override)]
        self._command = [git, "--no-pager", "-C", str(work_tree), *options]
        self._environ = environ
        self._end = monotonic() + TIMEOUT_S

    def __call__(self, *arguments: str, what: str = "git") -> str:
        """
        What git says, its errors too.

        Raises:
            InputError: It failed, or the time is up.
        """
        child = subprocess.Popen(
            [*self._command, *arguments],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # no terminal to ask at, and one group with its children
        )
        output = bytearray()
        reader = threading.Thread(target=_read, args=(child, output), daemon=True)
        reader.start()
        try:
            code = self._wait(child)
        except BaseException as error:
            _stop(child)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise InputError(f"{what} took longer than {TIMEOUT_S} s and was stopped.") from None
        # What git leaves behind, such as a shared ssh connection, may keep its output open.
        reader.join(_END_S)
        text = _PASSWORD.sub("", os.fsdecode(bytes(output)).strip())
        if code:
            lines = text.splitlines()
            raise InputError(f"{what} failed: {lines[-1] if lines else f'exit code {code}'}")
        return text

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        """The exit code; raises TimeoutExpired, and RequestEndedError if nobody waits any more."""
        while True:
            cancellation.check()
            rest_s = self._end - monotonic()
            try:
                return child.wait(min(max(rest_s, 0.0), _LOOK_S))
            except subprocess.TimeoutExpired:
                if rest_s <= _LOOK_S:
                    raise


def _read(child: subprocess.Popen[bytes], output: bytearray) -> None:
    assert child.stdout is not None
    with child.stdout as pipe:
        while data := os.read(pipe.fileno(), 65536):
            output += data
            del output[:-_MOST_BYTES]


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End git and all that it started: politely first, so that it removes its lock files."""
    if sys.platform == "win32":
        child.kill()
    else:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(_END_S)
    child.wait()


#: The accepted keys of a repository's configuration, by section. They start no program and name no
#: file or server. ``*.`` stands for any subsection.
_HARMLESS = {
    "core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode"
    " symlinks autocrlf eol safecrlf sharedrepository abbrev quotepath longpaths compression"
    " loosecompression sparsecheckout sparsecheckoutcone untrackedcache preloadindex fscache"
    " hidedotfiles splitindex commitgraph multipackindex trustctime checkstat bigfilethreshold"
    " whitespace deltabasecachelimit packedgitlimit packedgitwindowsize",
    "remote": "*.url *.pushurl *.fetch *.push *.tagopt *.prune *.prunetags *.mirror"
    " *.skipdefaultupdate *.skipfetchall *.promisor *.partialclonefilter *.followremotehead"
    " pushdefault",
    "branch": "*.remote *.merge *.rebase *.pushremote *.description autosetupmerge"
    " autosetuprebase sort",
    "extensions": "objectformat compatobjectformat refstorage worktreeconfig partialclone noop"
    " noop-v1 preciousobjects relativeworktrees",
    "submodule": "*.url *.active *.branch *.ignore *.update *.fetchrecursesubmodules active"
    " recurse fetchjobs",
    "user": "name email signingkey useconfigonly",
    "author": "name email",
    "committer": "name email",
    "pull": "rebase ff twohead octopus",
    "merge": "ff conflictstyle renames renamelimit stat log",
    "fetch": "prune prunetags parallel output writecommitgraph showforcedupdates",
    "push": "default autosetupremote followtags gpgsign recursesubmodules",
    "rerere": "enabled autoupdate",
    "rebase": "autostash autosquash updaterefs",
    "init": "defaultbranch",
    "commit": "gpgsign verbose",
    "tag": "gpgsign sort",
    "gpg": "format",
    "gc": "auto autodetach autopacklimit pruneexpire reflogexpire reflogexpireunreachable",
    "maintenance": "auto strategy autodetach",
    "pack": "threads window depth windowmemory packsizelimit writebitmaps",
    "index": "version threads sparse",
    "feature": "manyfiles experimental",
    "http": "postbuffer version lowspeedlimit lowspeedtime",
    "receive": "denycurrentbranch denynonfastforwards denydeletes fsckobjects autogc",
    "transfer": "fsckobjects",
    "i18n": "commitencoding logoutputencoding",
    "color": "ui branch diff status interactive",
    "gui": "wmstate geometry encoding",
    "lfs": "repositoryformatversion *.access *.locksverify concurrenttransfers",
}
#: Keys whose values the command line overrides, so that those of a repository have no effect.
OVERRIDES = {
    "core.hookspath": os.devnull,
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": "true",
    "core.askpass": "",
    "sequence.editor": "true",
    "submodule.recurse": "false",
    "fetch.recursesubmodules": "false",
    "gc.auto": "0",  # no child process that runs on in the background
    "maintenance.auto": "false",
    "merge.stat": "false",
    "merge.autostash": "false",
    "transfer.bundleuri": "false",
    "protocol.ext.allow": "never",
    "safe.barerepository": "explicit",
}
_SCHEMES = {"https", "http", "ssh", "git", "file", "git+ssh", "ssh+git"}
#: With ``NAME::…`` git passes the address to the program ``git-remote-NAME``.
_HELPER = re.compile(r"[A-Za-z0-9+.-]*::")
_SCHEME = re.compile(r"([A-Za-z0-9+.-]+)://")
#: ``host:path`` is an address of ssh; a single letter before the colon is a drive of Windows.
_SCP_LIKE = re.compile(r"[^/\\]{2,}:")
_CONFIG_TIMEOUT_S = 30
#: Directories of .git in which links are harmless: git replaces their files by renaming or does not
#: write there. They have many files.
_UNCHECKED = {"objects", "lfs", "annex", "hooks", "modules"}


@dataclass(frozen=True, slots=True)
class Repository:
    """
    A work tree whose configuration is harmless.

    ``config`` has the keys and values of the configuration. A key is in lower case, except for its
    subsection.
    """

    work_tree: Path
    git_dir: Path
    config: tuple[tuple[str, str], ...]

    def value(self, key: str) -> str | None:
        """The value that applies, which is the last one; None if the key is not set."""
        values = self.values(key)
        return values[-1] if values else None

    def values(self, key: str) -> list[str]:
        return [value for name, value in self.config if name == key]


def work_tree_of(folder: Path) -> Path | None:
    """The nearest folder, this one or above it, that holds a ``.git``."""
    for directory in (folder, *folder.parents):
        if os.path.lexists(directory / ".git"):
            return directory
    return None


def trusted_repository(work_tree: Path, git: str, environ: dict[str, str]) -> Repository:
    """
    Check all of the configuration of a work tree's repository, and return the repository.

    Raises:
        InputError: The configuration may start a program, or the ``.git`` leads elsewhere.
    """
    git_dir, common_dir = _git_dirs(work_tree)
    for directory in {git_dir, common_dir}:
        _refuse_links(work_tree, directory)
    config: list[tuple[str, str]] = []
    for file in (
        common_dir / "config",
        common_dir / "config.worktree",
        git_dir / "config.worktree",
    ):
        if file.exists():
            config += _read_config(work_tree, file, git, environ)
    for key, value in config:
        _check_key(work_tree, key)
        if _with_wildcard(key) == "remote.*.url":
            _check_url(work_tree, key, value, git, environ)
    return Repository(work_tree, git_dir, tuple(config))


def _git_dirs(work_tree: Path) -> tuple[Path, Path]:
    """The git directory of a work tree, and the one that linked work trees share."""
    entry = work_tree / ".git"
    if entry.is_symlink():
        raise _refusal(work_tree, "its .git is a symbolic link")
    if entry.is_dir():
        if (entry / "commondir").exists():
            raise _refusal(work_tree, "its .git/commondir leads to another repository")
        return entry.resolve(), entry.resolve()
    # In a linked work tree ('git worktree add') the file .git names a directory of the repository,
    # and a file in there names the work tree. A .git file without such a reference back is refused,
    # because git would change the branches and files of that repository.
    target = _read_line(entry).removeprefix("gitdir:").strip()
    git_dir = (work_tree / target).resolve()
    back_reference = git_dir / "gitdir"
    if not target or git_dir.parent.name != "worktrees" or not back_reference.is_file():
        raise _refusal(work_tree, f"its .git is a file that leads to {target or 'nowhere'}")
    common_dir = git_dir.parent.parent
    leads_back = (git_dir / _read_line(back_reference)).resolve() == entry.resolve()
    shares_common_dir = (git_dir / _read_line(git_dir / "commondir")).resolve() == common_dir
    if not (leads_back and shares_common_dir):
        raise _refusal(work_tree, f"its .git leads to {git_dir}, which does not lead back")
    return git_dir, common_dir


def _read_line(file: Path) -> str:
    """Read a file of one line; "" if it cannot be read."""
    try:
        with file.open("rb") as opened:
            return os.fsdecode(opened.read(4096)).strip()
    except OSError:
        return ""


def _refuse_links(work_tree: Path, git_dir: Path) -> None:
    """Refuse links, because git writes through them: FETCH_HEAD could be any file of the user."""
    for folder, subdirectories, files in os.walk(git_dir):
        directory = Path(folder)
        for name in (*subdirectories, *files):
            path = directory / name
            if path.is_symlink() and path.relative_to(git_dir).parts[0] != "hooks":
                raise _refusal(work_tree, f"{path} is a symbolic link")
        if directory == git_dir:
            subdirectories[:] = [name for name in subdirectories if name not in _UNCHECKED]


def _read_config(
    work_tree: Path, file: Path, git: str, environ: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Let git read the keys and values of a file, without the files that it includes."""
    try:
        process = subprocess.run(
            [git, "--no-pager", "config", "--file", file, "--no-includes", "--null", "--list"],
            cwd=Path(file.anchor),  # not in the repository of a stranger
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CONFIG_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _refusal(work_tree, f"git cannot read {file} in time") from None
    if process.returncode:
        raise _refusal(work_tree, f"git cannot read {file}")
    for entry in os.fsdecode(process.stdout).split("\0"):
        if entry:
            key, _, value = entry.partition("\n")
            yield key, value


def _with_wildcard(key: str) -> str:
    """Replace the subsection of a key by ``*``."""
    section, _, rest = key.partition(".")
    _, dot, variable = rest.rpartition(".")
    return f"{section}.*.{variable}" if dot else f"{section}.{variable}"


def _check_key(work_tree: Path, key: str) -> None:
    general_key = _with_wildcard(key)
    section, _, rest = general_key.partition(".")
    if general_key in OVERRIDES or rest in _HARMLESS.get(section, "").split():
        return
    # No variable of git in these sections has a hyphen in its name. Such keys are notes of other
    # programs.
    if section in {"branch", "remote"} and "-" in rest.rpartition(".")[2]:
        return
    raise _refusal(work_tree, f"its own git configuration sets {key}, which may start a program")


def _check_url(work_tree: Path, key: str, url: str, git: str, environ: dict[str, str]) -> None:
    scheme = _SCHEME.match(url)
    if (
        not url.isprintable()
        or url.startswith("-")
        or _HELPER.match(url)
        or (scheme and scheme[1] not in _SCHEMES)
    ):
        raise _refusal(work_tree, f"{key} is no address of https, http, ssh, git or a file")
    if scheme and scheme[1] == "file":
        remote = Path("/" + unquote(url.removeprefix("file://"))).resolve()
    elif scheme or _SCP_LIKE.match(url):
        return
    else:
        remote = (work_tree / os.path.expanduser(url)).resolve()  # noqa: PTH111 - git does so
    # A repository on this machine runs its half of the transfer under its own configuration.
    with_suffix = remote.with_name(remote.name + ".git")
    for directory in (remote / ".git", remote, with_suffix / ".git", with_suffix):
        if directory.is_file() and directory.name == ".git":
            raise _refusal(work_tree, f"{key} leads to {remote}, whose .git is a file")
        _check_config_files(remote, directory, work_tree, git, environ)


def _check_config_files(
    remote: Path, directory: Path, work_tree: Path, git: str, environ: dict[str, str]
) -> None:
    """Check the configuration in ``directory``, which may be the git directory of ``remote``."""
    for file in (directory / "config", directory / "config.worktree"):
        if file.is_file():
            for key, _ in _read_config(work_tree, file, git, environ):
                _check_key(remote, key)


def _refusal(work_tree: Path, reason: str) -> InputError:
    return InputError(
        f"not pulled: {reason}.", hint=f"If you trust it, pull yourself: git -C '{work_tree}' pull"
    )
