"""The servers of a long run: started, watched, killed now and then, started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

from qmd.ingest.keep.freshness import lock_file
from tests.support.embedder import HashEmbedder
from tests.support.http_server import request

START_S = 60
#: After a kill, connections to that server may break for so long.
GRACE_S = 30


@dataclass(frozen=True)
class Sample:
    at_s: float
    rss_mb: float
    descriptors: int
    threads: int


@dataclass
class Life:
    """One process from its start to its end."""

    pid: int
    samples: list[Sample] = field(default_factory=list)

    def thirds(self) -> tuple[list[Sample], list[Sample]]:
        """The second and the last third of its time: the first is for warming up."""
        size = len(self.samples) // 3
        return self.samples[size : 2 * size], self.samples[2 * size :]

    def summary(self) -> Mapping[str, float | int]:
        if len(self.samples) < 6:
            return {"samples": len(self.samples)}
        middle, last = self.thirds()
        return {
            "seconds": round(self.samples[-1].at_s - self.samples[0].at_s),
            "rss_mb_middle": round(median(each.rss_mb for each in middle), 1),
            "rss_mb_last": round(median(each.rss_mb for each in last), 1),
            "rss_mb_most": round(max(each.rss_mb for each in self.samples), 1),
            "descriptors_middle": max(each.descriptors for each in middle),
            "descriptors_last": max(each.descriptors for each in last),
            "threads_last": max(each.threads for each in last),
        }


class Server:
    """``qmd server`` on one port, whichever process it is just now."""

    def __init__(self, database: Path, environment: Mapping[str, str], log: Path) -> None:
        self._database = database
        self._environment = dict(environment)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._killed_at = -GRACE_S
        self.url = ""
        self.lives: list[Life] = []

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, port: int = 0) -> None:
        command = [sys.executable, "-m", "qmd", "--db", str(self._database), "server"]
        command += ["--transport", "http", "--port", str(port), "--toolset", "qmd,notes"]
        begin = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.lives.append(Life(self.pid))
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            text = self._log.read_bytes()[begin:].decode(errors="replace")
            place = text.find("http://127.0.0.1:")
            if place >= 0:
                self.url = text[place:].split()[0].rstrip("/.,")
                try:
                    if request(self.url, "GET", "/health").status == 200:
                        return
                except OSError:
                    pass
            time.sleep(0.1)
        raise RuntimeError(f"the server has not started: {self._log.read_text()[-2000:]}")

    def kill(self) -> None:
        """Without a warning, as a machine dies; the same port is taken again."""
        assert self._process is not None
        self._killed_at = time.monotonic()
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        self.start(int(self.url.rpartition(":")[2]))

    def was_killed(self) -> bool:
        return time.monotonic() - self._killed_at < GRACE_S

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(START_S)

    def sample(self, at_s: float) -> None:
        process = Path(f"/proc/{self.pid}")
        try:
            status = dict(
                line.split(":", 1) for line in (process / "status").read_text().splitlines()
            )
            descriptors = len(list((process / "fd").iterdir()))
        except (OSError, ValueError):  # it was killed just now
            return
        if "VmRSS" in status:
            rss_mb = int(status["VmRSS"].split()[0]) / 1024
            self.lives[-1].samples.append(Sample(at_s, rss_mb, descriptors, int(status["Threads"])))


def leader(database: Path) -> int | None:
    """The process that holds the lock of the keeper; None if none does."""
    inode = lock_file(database).stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if "->" not in fields and fields[5].endswith(f":{inode}"):
            return int(fields[4])
    return None


class EmbeddingServer:
    """An OpenAI-compatible server of vectors that are made of hashes: no model, little time."""

    def __init__(self) -> None:
        embedder = HashEmbedder()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                vectors = embedder.embed_passages(asked["input"])
                rows = [{"index": n, "embedding": row.tolist()} for n, row in enumerate(vectors)]
                body = json.dumps({"data": rows}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
