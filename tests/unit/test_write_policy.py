"""Below which directories a client may write, or make a collection."""

from __future__ import annotations

import os
from pathlib import Path, PureWindowsPath

import pytest

from qmd.errors import OutsideRootsError
from qmd.files.writing.policy import WritePolicy, is_plain_on_windows


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, a temporary directory beside it, and a working directory in it."""
    for name in ("home/work", "home/.ssh", "home/.config/qmd", "temp/.cache", "elsewhere/x"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    monkeypatch.chdir(tmp_path / "home" / "work")
    return tmp_path / "home"


def may_write(policy: WritePolicy, path: Path | str) -> bool:
    try:
        policy.resolve(path)
    except OutsideRootsError:
        return False
    return True


def may_add(policy: WritePolicy, path: Path | str) -> bool:
    try:
        policy.new_collection(path)
    except OutsideRootsError as error:
        assert error.hint
        return False
    return True


def test_home_temp_and_the_working_directory_are_open(home: Path) -> None:
    policy = WritePolicy.default()
    for path in (home / "a.md", home / "x/y/a.md", home.parent / "temp/a.md", Path("here.md")):
        assert may_write(policy, path), path
    assert may_write(policy, "~/a.md")
    assert policy.resolve("~/a.md").target == home / "a.md"
    for path in (home, home.parent / "elsewhere/x/a.md", "/a.md", "/etc/passwd", "~nobody/a.md"):
        assert not may_write(policy, path), path


def test_nothing_hidden_in_home_and_temp(home: Path) -> None:
    policy = WritePolicy.default()
    temp = home.parent / "temp"
    for path in (home / ".bashrc", home / ".ssh/keys.md", home / "x/.git/a.md", temp / ".cache/a"):
        assert not may_write(policy, path), path


def test_a_hidden_working_directory_opens_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home / ".config" / "qmd")
    assert not may_write(WritePolicy.default(), "a.md")


def test_a_collection_is_open_also_where_it_is_hidden(home: Path) -> None:
    policy = WritePolicy.default([home / ".config" / "qmd"])
    assert may_write(policy, home / ".config/qmd/a.md")
    assert not may_write(policy, home / ".config/other.md")


def test_links_are_followed_first(home: Path) -> None:
    (home / "out").symlink_to(home.parent / "elsewhere")
    (home / "in").symlink_to(home / "work")
    (home / "key.md").symlink_to(home / ".ssh" / "id")
    policy = WritePolicy.default()
    assert not may_write(policy, home / "out/a.md")
    assert not may_write(policy, home / "key.md")
    assert may_write(policy, home / "in/a.md")
    assert not may_write(policy, home / "work/../../elsewhere/a.md")
    assert may_write(policy, home / "work/../a..md")


def test_explicit_roots_replace_the_defaults(home: Path) -> None:
    elsewhere = home.parent / "elsewhere"
    policy = WritePolicy.explicit([elsewhere])
    assert may_write(policy, elsewhere / "a.md")
    assert may_write(policy, elsewhere / ".hidden/a.md")
    assert not may_write(policy, home / "a.md")
    assert may_add(policy, elsewhere)
    assert not may_add(policy, home / "work")


def test_a_name_no_file_can_have(home: Path) -> None:
    for path in ("a\0b.md", "\ud800.md"):
        assert not may_write(WritePolicy.default(), path)
    assert not may_add(WritePolicy.default(), "a\0b")


def test_which_directories_may_become_collections(home: Path) -> None:
    policy = WritePolicy.default()
    (home / "docs").mkdir()
    for path in (home / "docs", home / "work", home.parent / "temp/notes", "."):
        assert may_add(policy, path), path
    for path in ("/", home, home.parent / "temp", home.parent, "/etc", "/usr/share", "/proc/self"):
        assert not may_add(policy, path), path
    for path in (home / ".ssh", home / "docs/.obsidian", home / ".config/qmd/x"):
        assert not may_add(policy, path), path


def test_not_even_a_root_opens_the_disk_or_the_system() -> None:
    policy = WritePolicy.explicit(["/"])
    for path in ("/", "/etc", "/etc/ssl", "/usr/share/doc", "/proc", "/var"):
        assert not may_add(policy, path), path
    assert may_add(WritePolicy.explicit(["/var/data"]), "/var/data/notes")


def test_a_collection_that_is_all_of_home_opens_nothing_hidden(home: Path) -> None:
    for directory in (home, home.parent):
        policy = WritePolicy.default([directory])
        assert may_write(policy, home / "a.md")
        assert not may_write(policy, home / ".ssh/a.md")


def test_a_name_that_is_no_utf8_is_refused_in_words_that_can_be_told(home: Path) -> None:
    for path in ("a\udcff.md", "\ud800.md"):
        with pytest.raises(OutsideRootsError) as caught:
            WritePolicy.default().resolve(path)
        str(caught.value).encode()


def test_paths_that_lead_around_the_roots_are_judged_by_where_they_lead(home: Path) -> None:
    policy = WritePolicy.default()
    for path in (
        "/proc/self/root/etc/a.md",
        "//etc/a.md",
        "~/../../../../../../etc/a.md",
        f"{home}/./work/../.ssh/a.md",
        f"{home}/work//..//.ssh/a.md",
        "/",
        "~",
        "~root/../etc/a.md",
    ):
        assert not may_write(policy, path), path
    for path in (f"{home}//a.md", f"{home}/./a.md", "/proc/self/cwd/a.md", "~a.md", "a .md "):
        assert may_write(policy, path), path


def test_a_working_directory_that_is_gone_is_no_root(home: Path) -> None:
    (home / "gone").mkdir()
    os.chdir(home / "gone")
    (home / "gone").rmdir()
    policy = WritePolicy.default()
    assert may_write(policy, home / "a.md")
    assert not may_write(policy, "a.md")


def test_on_windows_names_that_mean_something_else_are_refused() -> None:
    for name in ("C:/x/NUL.md", "C:/x/con", "C:/x/a.txt:b.md", "C:/x./a.md", "C:/x/a.md ", "com1"):
        assert not is_plain_on_windows(PureWindowsPath(name)), name
    for name in ("C:/x/a.md", "C:/x/.hidden/a..md", "//server/share/a b.md", "C:/nullify.md"):
        assert is_plain_on_windows(PureWindowsPath(name)), name
