"""
Decide whether git may run in a work tree: only if the work tree's configuration starts no program.

A folder of notes may come from a stranger with its ``.git``, whose configuration can name programs
in dozens of keys, some with names that the stranger chooses (``filter.NAME.smudge``), and in more
with each version of git. So only keys that are known to be harmless are accepted, and any other
key is refused. The configuration of the user and of the system is trusted.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from qmd.errors import InputError

#: Keys by section that start no program and name no file or server, in a repository's own
#: configuration; ``*.`` stands for a subsection of any name.
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
#: Keys that the command line overrides, so that what a repository says of them counts for nothing.
OVERRIDES = {
    "core.hookspath": os.devnull,
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": "true",
    "core.askpass": "",
    "sequence.editor": "true",
    "submodule.recurse": "false",
    "fetch.recursesubmodules": "false",
    "gc.auto": "0",  # no child that goes on behind our back
    "maintenance.auto": "false",
    "merge.stat": "false",
    "merge.autostash": "false",
    "transfer.bundleuri": "false",
    "protocol.ext.allow": "never",
    "safe.barerepository": "explicit",
}
_SCHEMES = {"https", "http", "ssh", "git", "file", "git+ssh", "ssh+git"}
#: ``NAME::…`` hands the address to the program ``git-remote-NAME``.
_HELPER = re.compile(r"[A-Za-z0-9+.-]*::")
_SCHEME = re.compile(r"([A-Za-z0-9+.-]+)://")
#: ``host:path``, by ssh; a single letter is a drive of Windows.
_SCP_LIKE = re.compile(r"[^/\\]{2,}:")
_CONFIG_TIMEOUT_S = 30
#: Directories of .git with many files that git replaces by renaming, or that git does not write.
_UNCHECKED = {"objects", "lfs", "annex", "hooks", "modules"}


@dataclass(frozen=True, slots=True)
class Repository:
    """
    A work tree whose configuration is harmless.

    ``config`` holds what it sets: the key, in lower case but for the subsection, and the value.
    """

    work_tree: Path
    git_dir: Path
    config: tuple[tuple[str, str], ...]

    def value(self, key: str) -> str | None:
        """The value that counts: the last one."""
        values = self.values(key)
        return values[-1] if values else None

    def values(self, key: str) -> list[str]:
        return [value for name, value in self.config if name == key]


def work_tree_of(folder: Path) -> Path | None:
    """The nearest folder, this one or above it, that holds a ``.git``."""
    for each in (folder, *folder.parents):
        if os.path.lexists(each / ".git"):
            return each
    return None


def trusted_repository(work_tree: Path, git: str, environ: dict[str, str]) -> Repository:
    """
    The repository of a work tree, after a check of all of its configuration.

    Raises:
        InputError: It may start a program, or lead elsewhere.
    """
    git_dir, common = _git_dirs(work_tree)
    for directory in {git_dir, common}:
        _refuse_links(work_tree, directory)
    config: list[tuple[str, str]] = []
    for file in (common / "config", common / "config.worktree", git_dir / "config.worktree"):
        if file.exists():
            config += _read_config(work_tree, file, git, environ)
    for key, value in config:
        _check_key(work_tree, key)
        if _form(key) == "remote.*.url":
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
    # A linked work tree ('git worktree add') is known to its repository, which names it in turn.
    # No other file may lead away: that repository's branches and files would be changed.
    named = _line(entry).removeprefix("gitdir:").strip()
    git_dir = (work_tree / named).resolve()
    back = git_dir / "gitdir"
    if not named or git_dir.parent.name != "worktrees" or not back.is_file():
        raise _refusal(work_tree, f"its .git is a file that leads to {named or 'nowhere'}")
    common = git_dir.parent.parent
    leads_back = (git_dir / _line(back)).resolve() == entry.resolve()
    shares = (git_dir / _line(git_dir / "commondir")).resolve() == common
    if not (leads_back and shares):
        raise _refusal(work_tree, f"its .git leads to {git_dir}, which does not lead back")
    return git_dir, common


def _line(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return os.fsdecode(opened.read(4096)).strip()
    except OSError:
        return ""


def _refuse_links(work_tree: Path, git_dir: Path) -> None:
    """git writes through links: FETCH_HEAD or a log might be any file of the user's."""
    for folder, directories, files in os.walk(git_dir):
        here = Path(folder)
        for name in (*directories, *files):
            path = here / name
            if path.is_symlink() and path.relative_to(git_dir).parts[0] != "hooks":
                raise _refusal(work_tree, f"{path} is a symbolic link")
        if here == git_dir:
            directories[:] = [name for name in directories if name not in _UNCHECKED]


def _read_config(
    work_tree: Path, file: Path, git: str, environ: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Key and value of each entry, as git reads them; what the file includes is not read."""
    try:
        done = subprocess.run(
            [git, "--no-pager", "config", "--file", file, "--no-includes", "--null", "--list"],
            cwd=Path(file.anchor),  # which is no repository of a stranger's
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CONFIG_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _refusal(work_tree, f"git cannot read {file} in time") from None
    if done.returncode:
        raise _refusal(work_tree, f"git cannot read {file}")
    for entry in os.fsdecode(done.stdout).split("\0"):
        if entry:
            key, _, value = entry.partition("\n")
            yield key, value


def _form(key: str) -> str:
    """The key with ``*`` for its subsection."""
    section, _, rest = key.partition(".")
    _, dot, variable = rest.rpartition(".")
    return f"{section}.*.{variable}" if dot else f"{section}.{variable}"


def _check_key(work_tree: Path, key: str) -> None:
    form = _form(key)
    section, _, rest = form.partition(".")
    if form in OVERRIDES or rest in _HARMLESS.get(section, "").split():
        return
    # git names none of its variables with a hyphen; other programs note there what they like.
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
    # A repository of this machine runs its half of the transfer under its own configuration.
    beside = remote.with_name(remote.name + ".git")
    for directory in (remote / ".git", remote, beside / ".git", beside):
        if directory.is_file() and directory.name == ".git":
            raise _refusal(work_tree, f"{key} leads to {remote}, whose .git is a file")
        _check_config_files(remote, directory, work_tree, git, environ)


def _check_config_files(
    remote: Path, directory: Path, work_tree: Path, git: str, environ: dict[str, str]
) -> None:
    """Check the keys of a repository of this machine, whose git directory this may be."""
    for file in (directory / "config", directory / "config.worktree"):
        if file.is_file():
            for name, _ in _read_config(work_tree, file, git, environ):
                _check_key(remote, name)


def _refusal(work_tree: Path, reason: str) -> InputError:
    return InputError(
        f"not pulled: {reason}.", hint=f"If you trust it, pull yourself: git -C '{work_tree}' pull"
    )
