"""
Several versions of qmd on the same documents, in turns: did anything get slower or larger?

    python benchmarks/versions.py DOCUMENTS FIXTURE 1.0.0=PYTHON 1.1.0=PYTHON [--rounds 3]

Each PYTHON is the interpreter of an environment with that version. The documents are copied;
the fixture is one of `qmd bench`, its questions are what is searched for. The vectors are
pseudorandom, so that no model takes part in the figures. The last column is the last version
divided by the one before it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Cost, median, run

WORDS = ("release", "configuration", "database", "index", "python")
PROBE = Path(__file__).with_name("versions_probe.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("documents", type=Path)
    parser.add_argument("fixture", type=Path)
    parser.add_argument("versions", nargs="+", metavar="NAME=PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    versions = dict(version.split("=", 1) for version in arguments.versions)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        shutil.copytree(arguments.documents, work / "documents")
        figures: dict[str, dict[str, list[float]]] = {name: {} for name in versions}
        for _ in range(arguments.rounds):
            for name, python in versions.items():
                measure_version(Path(python), work, arguments.fixture, figures[name])
    print(table(figures))


def measure_version(
    python: Path, work: Path, fixture: Path, figures: dict[str, list[float]]
) -> None:
    """Add one round's figures of one version."""
    database = work / "index.sqlite"
    for file in work.glob("index.sqlite*"):
        file.unlink()

    def note(what: str, value: float) -> None:
        figures.setdefault(what, []).append(value)

    def qmd(*arguments: str | Path) -> Cost:
        return run([python, "-m", "qmd", "--db", database, *arguments])

    qmd("collection", "add", work / "documents", "--name", "docs", "--no-index")
    cost = qmd("index", "--no-embed")
    note("index, CPU s", cost.cpu_s)
    note("index, peak RSS MB", cost.rss_mb)
    note("database, MB", sum(file.stat().st_size for file in work.glob("index.sqlite*")) / 1e6)
    cost = qmd("index", "--no-embed")
    note("re-index, CPU s", cost.cpu_s)
    searches = [qmd("search", word) for word in WORDS]
    note("`qmd search`, CPU ms", median(searches, "cpu_s") * 1000)
    done = subprocess.run(
        [python, PROBE, database, fixture], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    for what, value in json.loads(done.stdout).items():
        note(what, value)
    edited = sorted((work / "documents").rglob("*.md"))[::10]
    for file in edited:
        with file.open("a", encoding="utf-8") as note_file:
            note_file.write("\nOne more line.\n")
    note("a tenth was edited, CPU s", qmd("index", "--no-embed").cpu_s)
    for file in edited:
        file.rename(file.with_name(f"moved-{file.name}"))
    note("a tenth was moved, CPU s", qmd("index", "--no-embed").cpu_s)
    for file in edited:
        file.with_name(f"moved-{file.name}").rename(file)  # for the next version


def table(figures: dict[str, dict[str, list[float]]]) -> str:
    """A Markdown table: a row a figure, a column a version, the least of all rounds."""
    names = list(figures)
    lines = [
        f"| what | {' | '.join(names)} | {names[-1]} / {names[-2]} |",
        "|---|" + "---:|" * (len(names) + 1),
    ]
    for what in figures[names[-1]]:
        values = [min(figures[name].get(what, [float("nan")])) for name in names]
        cells = " | ".join(f"{value:.4g}" for value in values)
        lines.append(f"| {what} | {cells} | {values[-1] / values[-2]:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
