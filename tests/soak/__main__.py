"""
A long run by hand: flat memory and descriptors, no error, and at the end the index of the files.

    python -m tests.soak                 20 minutes
    python -m tests.soak --minutes 2     a quick try

Two servers share one database. A person edits, creates, renames and deletes notes; eight clients
search, read and append over REST and MCP; new text is embedded in the background. The server
that keeps the index is killed with SIGKILL now and then in the first 60 % of the time; in the
rest memory and descriptors must be flat. Then everything is stopped and the index compared with
a new one of the same files: documents, full text, links, vectors. The exit code is 1 if anything
is wrong. Everything is seeded; Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qmd import KnowledgeBase
from qmd.settings import BackendSettings, Settings
from tests.soak.load import Client, Editor, fill
from tests.soak.processes import EmbeddingServer, Server, leader
from tests.support.dump import assert_sound, dump, vector_rows
from tests.support.http_server import request

MODEL = "openai:hash"
CLIENTS = 8
SAMPLE_S = 2.0
#: What may be added between the second and the last third of a process's time. Allocators and
#: caches breathe; a leak of a kilobyte a request shows as more after some 20,000 of them.
NOISE_MB, NOISE_SHARE, NOISE_DESCRIPTORS = 16.0, 0.10, 8
#: For the index to catch up at the end.
SETTLE_S = 180


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="A long run.")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--notes", type=int, default=600)
    parser.add_argument("--edits", type=float, default=3.0, help="a second")
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--model", default=MODEL, help=f"default: {MODEL}, hashes over HTTP")
    parser.add_argument("--keep", action="store_true", help="leave the directory")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="qmd-soak-"))
    try:
        report = Run(root, options).run()
    finally:
        if not options.keep:
            shutil.rmtree(root, ignore_errors=True)
    print(json.dumps(report, ensure_ascii=False, indent=2))
    for problem in report["problems"]:
        print(f"PROBLEM: {problem}", file=sys.stderr)
    return 1 if report["problems"] else 0


class Run:
    def __init__(self, root: Path, options: argparse.Namespace) -> None:
        self._options = options
        self._root = root
        self._folder = root / "notes"
        self._database = root / "index.sqlite"
        self._embedding = EmbeddingServer()
        home = root / "home"
        home.mkdir()
        model = {"QMD_MODEL": options.model, "QMD_EMBED_URL": self._embedding.url}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("QMD_", "XDG_"))}
        cache = (
            {}
            if options.model == MODEL
            else {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))}
        )
        self._environment = kept | {"HOME": str(home), "PYTHONUNBUFFERED": "1"} | model | cache
        self._servers = [
            Server(self._database, self._environment, root / f"server-{n}.log") for n in range(2)
        ]
        self._stop = threading.Event()
        self._editing_over = threading.Event()
        self._kills: list[str] = []
        self.problems: list[str] = []

    def run(self) -> dict[str, Any]:
        options, began = self._options, time.monotonic()
        rng = random.Random(options.seed)
        fill(self._folder, options.notes, rng)
        (self._folder / "inbox").mkdir()
        with self._open(self._database) as kb:
            kb.add_collection(self._folder, name="notes")
            kb.index()
            kb.embed()
        for server in self._servers:
            server.start()
        editor = Editor(self._folder, options.seed, options.edits, self._editing_over)
        clients = [self._client(number) for number in range(CLIENTS)]
        for thread in (editor, *clients):
            thread.start()
        self._watch(time.monotonic(), options.minutes * 60)
        self._editing_over.set()
        self._stop.set()
        for thread in (editor, *clients):
            thread.join(90)
            if thread.is_alive():
                self.problems.append(f"{thread.name} does not end")
        for client in clients:
            client.leave()
        self._settle()
        self._check_processes()
        self._check_clients(clients)
        for server in self._servers:
            code = server.stop()
            if code != 0:
                self.problems.append(f"a server ended with {code}")
        compared = self._compare()
        self._embedding.close()
        return {
            "minutes": round((time.monotonic() - began) / 60, 1),
            "options": vars(options),
            "edits": dict(editor.done),
            "kills": self._kills,
            "requests": dict(sum((client.answered for client in clients), Counter[str]())),
            "slowest_s": _slowest(clients),
            "cut_off_by_kills": sum(client.cut_off for client in clients),
            "acknowledged_appends": sum(len(client.written) for client in clients),
            "processes": [life.summary() for server in self._servers for life in server.lives],
            "compared": compared,
            "problems": self.problems,
        }

    def _open(self, database: Path) -> KnowledgeBase:
        settings = BackendSettings(embed_url=self._embedding.url)
        return KnowledgeBase.open(
            database, Settings(model=self._options.model, backends=settings), create=True
        )

    def _client(self, number: int) -> Client:
        server = self._servers[number % len(self._servers)]
        return Client(
            number,
            self._options.seed * 100 + number,
            lambda: server.url,
            lambda _: server.was_killed(),
            self._stop,
        )

    # -- while it runs -----------------------------------------------------------------

    def _watch(self, began: float, seconds: float) -> None:
        kills = self._options.kills
        at_s = [0.6 * seconds * (number + 1) / (kills + 1) for number in range(kills)]
        while (now_s := time.monotonic() - began) < seconds:
            for server in self._servers:
                server.sample(now_s)
            if at_s and now_s >= at_s[0]:
                at_s.pop(0)
                self._kill_leader()
            time.sleep(SAMPLE_S)

    def _kill_leader(self) -> None:
        holder = leader(self._database)
        killed = next((each for each in self._servers if each.pid == holder), None)
        if killed is None:
            self.problems.append(f"neither server keeps the index, but {holder}")
            return
        others = [each for each in self._servers if each is not killed]
        killed.kill()
        took_s = _wait(lambda: leader(self._database) in [each.pid for each in others], 30)
        if took_s is None:
            self.problems.append("no other server took over within 30 s")
        else:
            self._kills.append(f"taken over after {took_s:.1f} s")
        killed.restart()

    def _settle(self) -> None:
        """Until both servers say that nothing waits."""

        def is_settled() -> bool:
            for server in self._servers:
                fresh = request(server.url, "GET", "/status").json()["freshness"]
                if fresh["files_pending"] or fresh["embeddings_pending"] or fresh["indexing"]:
                    return False
            return True

        time.sleep(2)  # the last events are on their way
        if _wait(is_settled, SETTLE_S) is None:
            self.problems.append(f"the index has not caught up within {SETTLE_S} s")

    # -- afterwards --------------------------------------------------------------------

    def _check_processes(self) -> None:
        for number, server in enumerate(self._servers):
            life = server.lives[-1]
            figures = life.summary()
            if "rss_mb_last" not in figures:
                self.problems.append(f"server {number} was sampled {len(life.samples)} times only")
                continue
            grown_mb = figures["rss_mb_last"] - figures["rss_mb_middle"]
            if grown_mb > max(NOISE_MB, NOISE_SHARE * figures["rss_mb_middle"]):
                self.problems.append(f"server {number} has grown by {grown_mb:.0f} MB")
            more = figures["descriptors_last"] - figures["descriptors_middle"]
            if more > NOISE_DESCRIPTORS:
                self.problems.append(f"server {number} holds {more} descriptors more")
            log = (self._root / f"server-{number}.log").read_text(errors="replace")
            bad = [line for line in log.splitlines() if "Traceback" in line or " ERROR" in line]
            self.problems += [f"log of server {number}: {line}" for line in bad[:5]]

    def _check_clients(self, clients: Sequence[Client]) -> None:
        for client in clients:
            self.problems += [f"{client.name}: {error}" for error in client.errors[:10]]
            if len(client.errors) > 10:
                self.problems.append(f"{client.name}: {len(client.errors) - 10} more errors")
            note = self._folder / client.note.partition("/")[2]
            lines = note.read_text(encoding="utf-8").splitlines() if note.exists() else []
            counted = Counter(lines)
            missing = [line for line in client.written if counted[line] != 1]
            if missing:
                self.problems.append(f"{client.name}: {len(missing)} acknowledged lines missing")
            strange = counted.keys() - set(client.written) - set(client.unsure)
            if strange:
                self.problems.append(f"{client.name}: {len(strange)} torn or strange lines")

    def _compare(self) -> Mapping[str, int]:
        """The index with a new one of the same files."""
        new = self._root / "fresh.sqlite"
        with self._open(new) as kb:
            kb.add_collection(self._folder, name="notes")
            kb.index()
            kb.embed()
        for database in (self._database, new):
            assert_sound(database)
        kept, fresh = dump(self._database), dump(new)
        kept["vectors"], fresh["vectors"] = vector_rows(self._database), vector_rows(new)
        for table in fresh:
            ours, theirs = set(map(repr, kept[table])), set(map(repr, fresh[table]))
            if kept[table] != fresh[table]:
                self.problems.append(
                    f"{table} differ: {len(ours - theirs)} rows only in the kept index,"
                    f" {len(theirs - ours)} only in the new one, such as"
                    f" {next(iter(ours ^ theirs), 'none: in number')[:200]}"
                )
        return {table: len(rows) for table, rows in fresh.items()}


def _wait(condition: Any, seconds: float) -> float | None:
    """After how many seconds it was so; None if it never was."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if condition():
            return time.monotonic() - began
        time.sleep(0.05)
    return None


def _slowest(clients: Sequence[Client]) -> dict[str, float]:
    names = sorted({name for client in clients for name in client.slowest_s})
    return {
        name: round(max(client.slowest_s.get(name, 0.0) for client in clients), 2) for name in names
    }


if __name__ == "__main__":
    sys.exit(main())
