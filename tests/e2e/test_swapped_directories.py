"""
A process swaps a directory for a link out of the vault and back, again and again, while tools
read and write there: nothing outside ever changes, and nothing of it is ever told.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import QmdError
from qmd.operations import notes as notes_texts
from qmd.values import PhotoChange
from tests.support import writes
from tests.support.live import WAIT_S
from tests.support.photos import make

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is Linux's")

SWAPS = 20_000  # an even number: the folder is back in the end
#: Both names change hands in one step. It stops by itself, also when the test is killed.
SWAPPER = f"""
import ctypes, os, sys
AT_FDCWD, RENAME_EXCHANGE = -100, 2
one, other = (os.fsencode(path) for path in sys.argv[1:])
exchange = ctypes.CDLL(None, use_errno=True).renameat2
for _ in range({SWAPS}):
    if exchange(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), "they cannot be exchanged")
"""
ROUNDS = 60
"""At least so many, and on until the swapper has ended."""


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    for folder, word in (("vault/author/motions", "ours"), ("outside/motions", "quagga")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "note.md").write_text(f"# Note\n\n{word} zebra\n")
    (tmp_path / "outside/note.md").write_text("# Note\n\nquagga zebra\n")
    (tmp_path / "outside/quagga plan.md").write_text("# Plan\n\nquagga zebra\n")
    (tmp_path / "vault/author/note.md").write_text("# Note\n\nours zebra\n")
    return tmp_path / "vault"


def snapshot(directory: Path) -> dict[str, tuple[bytes | None, int]]:
    return {
        str(each.relative_to(directory)): (
            each.read_bytes() if each.is_file() else None,
            each.stat().st_mtime_ns,
        )
        for each in (directory, *directory.rglob("*"))
    }


@contextmanager
def swapping(vault: Path) -> Iterator[Callable[[], bool]]:
    """Gives whether it still goes on."""
    outside = vault.parent / "outside"
    before = snapshot(outside)
    (vault / ".link").symlink_to(outside)
    paths = [str(vault / "author"), str(vault / ".link")]
    process = subprocess.Popen([sys.executable, "-c", SWAPPER, *paths])
    try:
        yield lambda: process.poll() is None
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait()
    assert snapshot(outside) == before


def run(vault: Path, *actions: Callable[[], object]) -> list[str]:
    """All that the actions say, errors included, while directories are swapped."""
    told = []
    done = 0
    with swapping(vault) as goes_on:
        while goes_on() or done < ROUNDS:
            done += 1
            for action in actions:
                try:
                    told.append(str(action()))
                except QmdError as error:
                    told.append(error.with_hint)
                except OSError as error:
                    told.append(str(error))
    return told


def test_notes(vault: Path) -> None:
    """The usual write roots: what is outside of the vault is below one of them, too."""
    with KnowledgeBase.open(vault.parent / "kb.sqlite", Settings(vault=vault), create=True) as kb:
        notes = kb.notes
        told = run(
            vault,
            lambda: notes.read("author/note").text,
            lambda: notes.read("plan"),
            lambda: notes_texts.listing(notes.list_folder("author")),
            lambda: notes.create("author/note", "ours again\n"),
            lambda: notes.create("author/motions/note", "ours\n", mode="append"),
            lambda: notes.create("author/new/note", "ours\n"),
        )
        assert "ours again\n" in told  # it was not refused all the time
        assert any("overwritten" in each for each in told)
    assert not [each for each in told if "quagga" in each]


def test_files_and_earlier_contents(vault: Path) -> None:
    file = vault / "author/note.md"
    with KnowledgeBase.open(
        vault.parent / "kb.sqlite", Settings(write_roots=[vault]), create=True
    ) as kb:
        writes.write(kb.files, file, b"first", tool="test")
        writes.write(kb.files, file, b"second", tool="test")
        told = run(
            vault,
            lambda: writes.append(kb.files, file, lambda old: b"ours", tool="test"),
            lambda: kb.summary.update("ours", str(vault / "author/motions/sum.md")),
            lambda: kb.revisions.restore(file),
        )
        assert any("Restored" in each for each in told)
    assert not [each for each in told if "quagga" in each]


@pytest.mark.skipif(shutil.which("exiftool") is None, reason="exiftool writes into photos")
def test_photos(vault: Path) -> None:
    photo = make(vault / "author/photo.jpg")
    with KnowledgeBase.open(
        vault.parent / "kb.sqlite", Settings(write_roots=[vault]), create=True
    ) as kb:
        photos = kb.images
        photos.write(make(vault / "photo.jpg"), PhotoChange(description="quagga"))
        (vault / "photo.jpg").rename(vault.parent / "outside/photo.jpg")
        numbers = count()
        told = run(
            vault, lambda: photos.write(photo, PhotoChange(tags=(f"number {next(numbers)}",)))
        )
        assert any("changed=True" in each for each in told)
        assert photos.show(photo).tags[0].startswith("number")
        assert photos.show(photo).description is None
    assert {each.name for each in photo.parent.iterdir()} == {"motions", "note.md", "photo.jpg"}


def test_the_index_and_the_posts(vault: Path) -> None:
    with KnowledgeBase.open(
        vault.parent / "kb.sqlite", Settings(posts_dir=vault), create=True
    ) as kb:
        kb.add_collection(vault, name="vault")
        posts = kb.posts

        def found() -> list[str]:
            return [hit.file for hit in kb.search("quagga").hits]

        told = run(
            vault,
            kb.index,
            kb.status,
            found,
            lambda: posts.read("author/motions/note.md").text,
            lambda: posts.posts("author"),
            lambda: posts.search("quagga").hits,
            lambda: [each.file for each in kb.documents("vault")],
        )
        assert any("ours zebra" in each for each in told)
        told = [each.replace("'quagga'", "") for each in told]  # the query itself
        kb.index()
        assert found() == []
        assert kb.count_documents("vault") == 2
    assert not [each for each in told if "quagga" in each]
