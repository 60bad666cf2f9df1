"""The index follows the disk: real files, real events."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.ingest.keep.watch import MOST_PATHS
from tests.support.dump import Dump, assert_sound, dump
from tests.support.live import Kept, Told, kept, needs_events, put, until

NATIVE = pytest.param("native", marks=needs_events)


@pytest.fixture(params=[NATIVE, "polling"])
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    files = {"a.md": "# Alpha\n\nsourdough\n", "sub/b.md": "# Beta\n\nrye\n"}
    with kept(tmp_path, files, polling=request.param == "polling") as live:
        assert live.kb.freshness().watch == request.param
        yield live


@pytest.fixture(params=[NATIVE])
def native(tmp_path: Path) -> Iterator[Kept]:
    with kept(tmp_path, {"a.md": "# Alpha\n\nsourdough\n"}) as live:
        yield live


def same_as_a_fresh_index(live: Kept, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.sqlite"
    with KnowledgeBase.open(fresh, create=True) as other:
        other.add_collection(live.root, name="notes")
        other.index()
    wanted = dump(fresh)
    found: Dump = {}

    def same() -> bool:
        """Sooner or later: a file that was read while it was written is read once more."""
        found.update(dump(live.kb.path))
        # Of collections, there are counts of what is left out.
        return all(found[table] == wanted[table] for table in wanted if table != "collections")

    until(same, "as a fresh index")
    assert_sound(live.kb.path)


def test_what_was_there_is_indexed_at_the_start(live: Kept) -> None:
    assert live.files() == ["a.md", "sub/b.md"]
    assert [event.file for event in live.told.of("added")] == ["notes/a.md", "notes/sub/b.md"]


def test_made_changed_and_deleted_files_are_followed(live: Kept, tmp_path: Path) -> None:
    live.write("new.md", "# New\n\nfocaccia\n")
    live.finds("focaccia", "new.md")
    live.write("new.md", "# New\n\nciabatta\n")
    live.finds("ciabatta", "new.md")
    live.finds("focaccia")
    (live.root / "new.md").unlink()
    live.settles_as("a.md", "sub/b.md")
    same_as_a_fresh_index(live, tmp_path)


def test_a_renamed_file_keeps_its_id(live: Kept) -> None:
    number = live.ids()["a.md"]
    (live.root / "a.md").rename(live.root / "sub/z.md")
    live.told.wait_for(lambda: live.told.of("moved"))
    assert live.files() == ["sub/b.md", "sub/z.md"]
    assert live.ids()["sub/z.md"] == number
    (moved,) = live.told.of("moved")
    assert (moved.file, moved.previous) == ("notes/sub/z.md", "a.md")


def test_a_moved_folder_keeps_the_ids_of_all_in_it(live: Kept) -> None:
    for number in range(5):
        put(live.root / f"deep/er/{number}.md", f"# Note {number}\n")
    live.told.wait_for(lambda: len(live.files()) == 7)
    before = live.ids()
    (live.root / "deep").rename(live.root / "shallow")
    moved = [f"shallow/er/{number}.md" for number in range(5)]
    live.settles_as("a.md", *moved, "sub/b.md")
    after = live.ids()
    assert [after[f"shallow/er/{n}.md"] for n in range(5)] == [
        before[f"deep/er/{n}.md"] for n in range(5)
    ]
    live.write("shallow/er/late.md", "# Late\n\nbagel\n")
    live.finds("bagel", "shallow/er/late.md")


def test_folders_that_come_and_go_are_followed(live: Kept, tmp_path: Path) -> None:
    outside = tmp_path / "outside/in/side"
    outside.mkdir(parents=True)
    (outside / "x.md").write_text("# X\n\nbrioche\n")
    outside.parent.parent.rename(live.root / "came")
    live.finds("brioche", "came/in/side/x.md")
    live.write("came/in/side/y.md", "# Y\n\nbaguette\n")
    live.finds("baguette", "came/in/side/y.md")
    (live.root / "came").rename(tmp_path / "gone")
    live.settles_as("a.md", "sub/b.md")
    shutil.rmtree(live.root / "sub")
    live.settles_as("a.md")


def test_a_file_saved_by_temporary_file_and_rename_is_the_same_document(live: Kept) -> None:
    number = live.ids()["a.md"]
    for text in ("croissant", "pretzel"):
        temporary = live.write(".a.md.tmp", f"# Alpha\n\n{text}\n")
        temporary.replace(live.root / "a.md")
        live.finds(text, "a.md")
    assert live.ids()["a.md"] == number
    assert not live.told.of("removed", "moved")


def test_an_edit_that_leaves_size_and_time_as_they_were_is_seen(native: Kept) -> None:
    path = native.root / "a.md"
    status = path.stat()
    path.write_text("# Alpha\n\nflatbread\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    native.finds("flatbread", "a.md")


@pytest.mark.unmeasured
def test_a_burst_of_hundreds_of_files_is_indexed_whole(live: Kept, tmp_path: Path) -> None:
    for number in range(300):
        live.write(f"burst/{number % 7}/{number}.md", f"# Burst {number}\n\nword{number}\n")
    live.told.wait_for(lambda: len(live.files()) == 302)
    shutil.rmtree(live.root / "burst")
    live.settles_as("a.md", "sub/b.md")
    same_as_a_fresh_index(live, tmp_path)


def test_an_ignore_file_takes_documents_out_and_gives_them_back(live: Kept) -> None:
    live.write(".gitignore", "sub/\n")
    live.settles_as("a.md")
    live.write("sub/c.md", "# C\n")
    (live.root / ".gitignore").unlink()
    live.settles_as("a.md", "sub/b.md", "sub/c.md")
    live.write("sub/c.md", "# C\n\nmuffin\n")
    live.finds("muffin", "sub/c.md")


def test_a_large_checkout_that_gives_a_folder_back_leaves_it_watched(
    native: Kept, tmp_path: Path
) -> None:
    """Of so many changes in one burst nobody remembers that an ignore file was among them."""
    native.write(".gitignore", "sub/\n")
    native.write("sub/c.md", "# C\n")
    native.write("d.md", "# D\n")
    native.settles_as("a.md", "d.md")
    checkout = [tmp_path / f"{number}.md" for number in range(MOST_PATHS + 1)]
    for file in checkout:
        file.touch()
    (native.root / ".gitignore").unlink()
    for file in checkout:
        file.rename(native.root / file.name)
    native.told.wait_for(lambda: len(native.files()) == MOST_PATHS + 4)
    native.write("sub/c.md", "# C\n\nmuffin\n")
    native.finds("muffin", "sub/c.md")


def watched_directories() -> int:
    """How many directories the kernel watches for this process."""
    count = 0
    for descriptor in Path("/proc/self/fdinfo").iterdir():
        with suppress(FileNotFoundError):  # closed just now
            count += descriptor.read_text().count("inotify wd:")
    return count


def test_hidden_and_dependency_folders_are_not_even_watched(native: Kept) -> None:
    for name in (".git/objects", "node_modules/x"):
        native.write(f"{name}/a.md", "# No\n")
    native.write("yes/b.md", "# Yes\n")
    native.settles_as("a.md", "yes/b.md")
    native.kb.close()
    with KnowledgeBase.open(native.kb.path) as kb:
        told = Told(kb)
        kb.keep(embed=False)
        told.wait_for(lambda: told.of("synced"))
        assert watched_directories() == 2


def git(root: Path, *args: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    subprocess.run(["git", *identity, *args], cwd=root, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_checkout_of_another_branch_is_followed(live: Kept, tmp_path: Path) -> None:
    git(live.root, "init", "-q", "-b", "one")
    git(live.root, "add", ".")
    git(live.root, "commit", "-q", "-m", "one")
    git(live.root, "checkout", "-q", "-b", "two")
    shutil.rmtree(live.root / "sub")
    for number in range(60):
        live.write(f"two/{number}.md", f"# Two {number}\n")
    live.write("a.md", "# Alpha\n\nstollen\n")
    git(live.root, "add", "-A")
    git(live.root, "commit", "-q", "-m", "two")
    live.told.wait_for(lambda: len(live.files()) == 61)
    git(live.root, "checkout", "-q", "one")
    live.settles_as("a.md", "sub/b.md")
    live.finds("sourdough", "a.md")
    git(live.root, "checkout", "-q", "two")
    live.told.wait_for(lambda: len(live.files()) == 61)
    live.finds("stollen", "a.md")
    same_as_a_fresh_index(live, tmp_path)


def test_a_root_that_vanishes_keeps_its_documents_and_is_watched_when_it_is_back(
    live: Kept, tmp_path: Path
) -> None:
    live.root.rename(tmp_path / "away")
    live.told.wait_for(lambda: live.told.of("problem"))
    assert live.kb.freshness().notices
    assert live.files() == ["a.md", "sub/b.md"]
    (tmp_path / "away/c.md").write_text("# C\n")
    (tmp_path / "away").rename(live.root)
    live.settles_as("a.md", "c.md", "sub/b.md")
    live.write("d.md", "# D\n\nsimit\n")
    live.finds("simit", "d.md")
    until(lambda: not live.kb.freshness().notices)


def test_collections_that_come_go_and_change_names_are_followed(
    native: Kept, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.md").write_text("# X\n\npita\n")
    with KnowledgeBase.open(native.kb.path) as another:
        another.add_collection(other)
        native.told.wait_for(lambda: native.kb.search("pita").hits)
        another.rename_collection("other", "renamed")
        put(other / "y.md", "# Y\n\nnaan\n")
        native.told.wait_for(lambda: native.told.of("added")[-1].path == "y.md")
        assert native.kb.search("naan").hits[0].file == "renamed/y.md"
        another.remove_collection("renamed")
    marks = len(native.told.events)
    (other / "z.md").write_text("# Z\n")
    native.write("last.md", "# Last\n")
    native.told.wait_for(lambda: native.told.of("added", since=marks))
    assert native.files() == ["a.md", "last.md"]
    assert {event.collection for event in native.told.of("added", since=marks)} == {"notes"}


def test_nothing_is_left_running_or_open_after_the_end(tmp_path: Path) -> None:
    def descriptors() -> int:
        folder = Path("/proc/self/fd")
        return len(list(folder.iterdir())) if folder.is_dir() else 0

    with kept(tmp_path / "0", {"a.md": "# A\n"}, embed=True):  # imports open files of their own
        pass
    threads, opened = set(threading.enumerate()), descriptors()
    for number in range(1, 6):
        with kept(tmp_path / str(number), {"a.md": "# A\n"}, embed=True) as live:
            live.write("b.md", "# B\n")
            live.settles_as("a.md", "b.md")
            live.keeper.stop()
            live.keeper.stop()
    # What an earlier test has left behind may end meanwhile.
    assert set(threading.enumerate()) <= threads
    assert descriptors() <= opened


@pytest.mark.parametrize("polling", [False, True])
def test_a_folder_that_is_gone_at_the_start_is_told_in_the_words_of_an_index_run(
    tmp_path: Path, polling: bool
) -> None:
    notes = tmp_path / "notes"
    put(notes / "a.md", "# A\n")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        notes.rename(tmp_path / "away")
        kb.keep(embed=False, polling=polling, poll_s=0.1)
        until(lambda: kb.freshness().notices)
        (notice,) = kb.freshness().notices
        assert notice.startswith(f"notes: The folder {notes} does not exist. Is its disk mounted?")


def test_new_text_gets_its_vectors_in_the_background(tmp_path: Path) -> None:
    with kept(tmp_path, {"a.md": "# Alpha\n\nsourdough\n"}, embed=True) as live:
        live.told.wait_for(lambda: live.kb.freshness().embeddings_pending == 0)
        live.write("b.md", "# Beta\n\nrye bread with caraway\n")
        live.told.wait_for(
            lambda: (
                [hit.file for hit in live.kb.vsearch("rye bread with caraway").hits]
                == ["notes/b.md"]
            )
        )
        assert live.kb.freshness().notices == ()


def test_freshness_tells_the_keeper_and_the_time_of_the_last_sync(native: Kept) -> None:
    first = native.kb.freshness()
    assert (first.leader, first.watch, first.files_pending) == (True, "native", 0)
    put(native.root / "b.md", "# B\n")  # written in two steps it could be synced twice
    native.settles_as("a.md", "b.md")
    native.told.wait_for(lambda: len(native.told.of("synced")) > 1)
    later = native.kb.freshness()
    assert later.last_sync is not None and first.last_sync is not None
    assert later.last_sync > first.last_sync
    with KnowledgeBase.open(native.kb.path, read_only=True) as reader:
        until(lambda: reader.freshness().last_sync == later.last_sync)
        assert (reader.freshness().leader, reader.freshness().watch) == (False, "native")
    native.keeper.stop()
    assert native.kb.freshness().watch == "off"
