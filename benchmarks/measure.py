"""What the benchmarks share: timing of child processes, tables, and records of the runs."""

from __future__ import annotations

import ctypes
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

RUNS = Path(__file__).parent / "runs"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process, with all its children, used. CPU is user + system time."""

    wall_s: float
    cpu_s: float
    rss_mb: float  # the largest resident set, 10^6 bytes
    stdout: str


#: Runs a command and writes what it took. A program in between, because Linux counts as the largest
#: set of a new process that of the one that started it, and a benchmark may be larger than qmd.
STARTER = """
import os, resource, sys, time
start = time.perf_counter()
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status = os.waitpid(child, 0)
wall = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = used.ru_utime + used.ru_stime
os.write(int(sys.argv[1]), f"{status} {wall} {cpu} {used.ru_maxrss}".encode())
"""


def run(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Cost:
    """
    Run a command to its end and measure it.

    Raises:
        SystemExit: It failed; what it wrote to stderr is shown.
    """
    adopt_orphans()
    words = [str(part) for part in command]
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryFile() as used,
    ):
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", STARTER, str(used.fileno()), *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, **(env or {})},
            pass_fds=[used.fileno()],
            check=False,
        )
        for file in (out, err, used):
            file.seek(0)
        status, *figures = used.read().split() or [b"-1"]
        if int(status):
            sys.exit(f"{' '.join(words)}\n{err.read().decode(errors='replace')}")
        wall, cpu, largest = map(float, figures)
        unit = 1 if sys.platform == "darwin" else 1024
        return Cost(
            wall,
            cpu + orphans_cpu_s(),
            largest * unit / 1e6,
            out.read().decode(errors="replace"),
        )


def adopt_orphans() -> None:
    """
    On Linux, become the parent of processes whose own parent ends first.

    `qmd index` leaves its worker process to end by itself, so its CPU time would count nowhere.
    """
    if sys.platform == "linux":
        set_child_subreaper = 36  # PR_SET_CHILD_SUBREAPER, prctl(2)
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def orphans_cpu_s() -> float:
    """Wait for all adopted processes to end; returns their CPU time in seconds."""
    cpu_s = 0.0
    while True:
        try:
            _, _, usage = os.wait3(0)
        except ChildProcessError:
            return cpu_s
        cpu_s += usage.ru_utime + usage.ru_stime


def median(costs: Sequence[Cost], field: str) -> float:
    return statistics.median(getattr(cost, field) for cost in costs)


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def qmd(database: Path, *arguments: str | Path) -> list[str | Path]:
    """The installed command of this Python, on a database of its own."""
    return [Path(sys.executable).with_name("qmd"), "--db", database, *arguments]


def machine() -> dict[str, str | int | None]:
    """Machine, date and versions: a figure without them says little."""
    from qmd.store.sqlite.library import library

    processor = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processor,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": library(),
        "qmd": version("qmd-python"),
    }


@dataclass(frozen=True, slots=True)
class Row:
    """
    One line of a table: our figure beside its reference, of the same run.

    ``target`` is the largest ratio (ours / reference) that we promised, None without promise.
    """

    what: str
    ours: float
    reference: float | None
    unit: str
    against: str
    target: float | None = None
    count: str = ""

    def with_target(self, target: float | None) -> Row:
        return replace(self, target=target)


def table(rows: Sequence[Row]) -> str:
    """A Markdown table of them."""
    lines = [
        "| what | qmd | reference | | ratio | target | results |",
        "|---|---:|---:|---|---:|---:|---|",
    ]
    for row in rows:
        reference = "" if row.reference is None else f"{_number(row.reference)} {row.unit}"
        ratio = "" if row.reference is None else f"{row.ours / row.reference:.2f}"
        target = "" if row.target is None else f"≤ {row.target:g}"
        if row.target is not None and row.reference is not None:
            target += "" if row.ours <= row.target * row.reference else " missed"
        lines.append(
            f"| {row.what} | {_number(row.ours)} {row.unit} | {reference} | {row.against}"
            f" | {ratio} | {target} | {row.count} |"
        )
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def report(name: str, rows: Sequence[Row], raw: object, notes: Sequence[str] = ()) -> None:
    """Print a table with the machine below it, and keep all raw figures in ``runs/``."""
    facts = machine()
    print(f"\n{table(rows)}\n")
    for note in notes:
        print(note)
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    RUNS.mkdir(exist_ok=True)
    day = str(facts["date"])[:10]
    number = 1 + len(list(RUNS.glob(f"{day}-{name}-*.json")))
    target = RUNS / f"{day}-{name}-{number}.json"
    record = {
        "machine": facts,
        "command": " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *_arguments()]),
        "notes": list(notes),
        "table": [
            {field: getattr(row, field) for field in Row.__dataclass_fields__} for row in rows
        ],
        "raw": raw,
    }
    target.write_text(json.dumps(record, indent=1, ensure_ascii=False, default=_plain) + "\n")
    print(f"raw figures: benchmarks/runs/{target.name}")


def _arguments() -> list[str]:
    """Of the command line; a directory of this machine means nothing elsewhere."""
    return [
        argument
        for before, argument in zip(sys.argv, sys.argv[1:], strict=False)
        if "--work" not in (before, argument)
    ]


def _plain(value: object) -> object:
    if isinstance(value, Cost):
        return [round(value.wall_s, 3), round(value.cpu_s, 3), round(value.rss_mb, 1)]
    raise TypeError(type(value).__name__)
