"""What ``qmd doctor`` says of drift, of the keeper and of the limits of watching."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.health import doctor
from qmd.values import Check
from tests.support.child import REPOSITORY
from tests.support.embedder import HashEmbedder
from tests.support.live import kept, needs_events


def checks(kb: KnowledgeBase, name: str) -> list[Check]:
    return [check for check in kb.doctor() if check.name == name]


def test_drift_is_counted_without_reading_or_changing_anything(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(5):
        (root / f"{number}.md").write_text(f"# Note {number}\n")
    (root / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        (before,) = checks(kb, "drift notes")
        assert before.status == "ok" and "5 files" in before.message
        (root / "0.md").write_text("# Longer than before\n")
        (root / "1.md").unlink()
        (root / "new.md").write_text("# New\n")
        (root / "newer.md").write_text("# Newer\n")
        for _ in range(2):
            (drift,) = checks(kb, "drift notes")
            assert "2 new, 1 changed, 1 gone" in drift.message
            assert (drift.status, drift.remedy) == ("warning", "qmd index -c notes")
        kb.index()
        (after,) = checks(kb, "drift notes")
        assert after.status == "ok"


def test_the_keeper_is_named(tmp_path: Path) -> None:
    with kept(tmp_path, {"a.md": "# A\n"}) as live:
        live.write("b.md", "# B\n")  # its record is written with the next look around
        live.settles_as("a.md", "b.md")
        (keeper,) = checks(live.kb, "keeper")
        assert "keeps the index" in keeper.message
        live.keeper.stop()
        (keeper,) = checks(live.kb, "keeper")
        assert keeper.message.startswith("No process keeps the index")


def test_nobody_is_told_to_make_the_vectors_that_a_process_makes(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.md").write_text("# Note\n")
    database, settings = tmp_path / "kb.sqlite", Settings(embedder=HashEmbedder())
    with KnowledgeBase.open(database, settings, create=True) as kb:
        kb.add_collection(root)
        kb.index_before_keeping()
        (made,) = checks(kb, "vectors")
    with KnowledgeBase.open(database, settings) as kb:
        (waits,) = checks(kb, "vectors")
    sentence = "1 document waits for vectors."
    in_background = f"{sentence} A process makes them in the background."
    assert (made.status, made.message, made.remedy) == ("ok", in_background, None)
    assert (waits.status, waits.message, waits.remedy) == ("warning", sentence, "qmd embed")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a limit")
def test_a_limit_that_is_near_is_told_with_the_command_that_raises_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "notes"
    for number in range(9):
        (root / str(number)).mkdir(parents=True)
    (root / "node_modules/deep").mkdir(parents=True)
    limit = tmp_path / "limit"
    monkeypatch.setattr(doctor, "LIMIT", limit)
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        limit.write_text("20\n")
        (check,) = checks(kb, "file events")
        assert (check.status, check.message[:10]) == ("ok", "10 folders")
        limit.write_text("19\n")
        (check,) = checks(kb, "file events")
        assert check.status == "warning"
        assert "fs.inotify.max_user_watches=" in (check.remedy or "")


FEW_WATCHES = """
import sys, threading
from pathlib import Path
from qmd import KnowledgeBase, Settings
root = Path(sys.argv[2])
with KnowledgeBase.open(sys.argv[1], create=True) as kb:
    kb.add_collection(root, name="notes")
    synced, found = threading.Event(), threading.Event()
    def heed(event):
        if event.kind == "synced":
            synced.set()
        if event.kind == "added" and event.path == "5/new.md":
            found.set()
    kb.events.subscribe(heed)
    kb.keep(embed=False, poll_s=0.1)
    assert synced.wait(30)
    before = kb.freshness()
    if sys.argv[3] == "later":
        assert before.watch == "native", before
        for number in range(10, 20):
            (root / str(number)).mkdir()
    (root / "5/new.md").write_text("# New")
    assert found.wait(30)
    (root / "5/new.md").unlink()
    for _ in range(300):
        fresh = kb.freshness()
        if fresh.watch == "polling":
            break
        threading.Event().wait(0.1)
    assert fresh.watch == "polling", fresh
    (notice,) = fresh.notices
    assert "limit" in notice and "notes" in notice, notice
print("done")
"""


@needs_events
@pytest.mark.parametrize(("limit", "when"), [(4, "at once"), (14, "later")])
def test_where_the_kernel_has_no_more_watches_the_keeper_polls_and_says_so(
    tmp_path: Path, limit: int, when: str
) -> None:
    unshare = shutil.which("unshare")
    setting = "/proc/sys/user/max_inotify_watches"
    alone = [str(unshare), "--user", "--map-root-user", "sh", "-c"]
    if unshare is None or subprocess.run([*alone, f"echo 9 > {setting}"], check=False).returncode:
        pytest.skip("no user namespaces here")
    root = tmp_path / "notes"
    for number in range(10):
        (root / str(number)).mkdir(parents=True)
    done = subprocess.run(
        [
            *alone,
            f'echo {limit} > {setting} && exec "$@"',
            *(
                "sh",
                sys.executable,
                "-c",
                FEW_WATCHES,
                str(tmp_path / "kb.sqlite"),
                str(root),
                when,
            ),
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.stdout.strip() == "done", done.stderr
