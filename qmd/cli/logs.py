"""``qmd server logs`` prints the log of the servers."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import click

from qmd.cli.command import command
from qmd.cli.session import session
from qmd.cli.terminal import escape_json, note, one_line, paint, use_color, write
from qmd.system import clock
from qmd.system.log_file import LogReader, files_of_log, log_file

LEVELS = ("info", "warning", "error")
_STYLES = {"warning": "warning", "error": "error", "critical": "error"}
_SHOWN = {"time", "level", "logger", "message", "pid", "database", "trace"}
_PAUSE_S = 0.25


@command(
    "logs",
    examples=(
        "qmd server logs -f",
        "qmd server logs -n 1000 --level warning",
        "qmd server logs --json",
    ),
)
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0),
    default=50,
    show_default=True,
    metavar="N",
    help="The last N entries.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on with new entries, until Ctrl-C.")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="Only entries of this level or above.",
)
@click.option("--all", "all_databases", is_flag=True, help="Those of all databases.")
@click.option("--path", "only_path", is_flag=True, help="Print the name of the file, and no more.")
@click.option("--json", "as_json", is_flag=True, help="Print each entry as a line of JSON.")
def logs(
    lines: int, follow: bool, level: str, all_databases: bool, only_path: bool, as_json: bool
) -> None:  # fmt: skip
    """
    Print what the servers of this database have logged.

    'qmd up', 'qmd server' and 'qmd mcp' write when they start and stop, warnings and errors; with
    --access-log also each request. No entry has the text of a query or a note, or a token.
    """
    path = log_file()
    if only_path:
        write(f"{one_line(str(path))}\n")
        return
    database = None if all_databases else str(session().settings.db)
    view = _View(database, LEVELS.index(level), as_json)
    session().interrupted = "The log goes on."
    last = deque[str](maxlen=min(lines, sys.maxsize))
    reader = LogReader(path)
    for each in files_of_log(path)[:-1]:
        last.extend(view.texts(LogReader(each).lines()))
    last.extend(view.texts(reader.lines()))
    for text in last:
        write(text)
    if not last and not follow:
        where = "of this database (all: --all)" if database and path.exists() else f"at {path}"
        note(f"No entry {where}.")
    while follow:
        sys.stdout.flush()
        time.sleep(_PAUSE_S)
        for text in view.texts(reader.lines()):
            write(text)


class _View:
    """
    Which entries are printed, and how.

    Args:
        database: Only those of this one; None for all.
        level: The position in `LEVELS` of the lowest level.
    """

    def __init__(self, database: str | None, level: int, as_json: bool) -> None:
        self._database = database
        self._level = level
        self._as_json = as_json
        self._color = use_color(sys.stdout)

    def texts(self, lines: Iterator[str]) -> Iterator[str]:
        """The entries to print; a line that is no entry is left out."""
        for line in lines:
            entry = _entry(line)
            if entry is None or not self._is_shown(entry):
                continue
            if self._as_json:
                yield escape_json(json.dumps(entry, ensure_ascii=False)) + "\n"
            else:
                yield self._text(entry)

    def _is_shown(self, entry: dict[str, Any]) -> bool:
        level = str(entry["level"])
        position = LEVELS.index(level) if level in LEVELS else len(LEVELS)
        return position >= self._level and self._database in (None, entry.get("database"))

    def _text(self, entry: dict[str, Any]) -> str:
        level = str(entry["level"])
        style = _STYLES.get(level)
        marked = level if style is None else paint(level, style, self._color)
        time_and_pid = paint(f"{_local(entry['time'])} {entry.get('pid', '')}", "dim", self._color)
        fields = "".join(f" {name}={value}" for name, value in entry.items() if name not in _SHOWN)
        text = f"{time_and_pid} {marked} {one_line(str(entry['message']) + fields)}\n"
        trace = entry.get("trace")
        if isinstance(trace, list):
            text += "".join(f"    {one_line(str(each))}\n" for each in trace)
        return text


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    has_all = isinstance(entry, dict) and {"time", "level", "message"} <= entry.keys()
    return entry if has_all else None


def _local(at: object) -> str:
    try:
        return clock.parse(str(at)).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return one_line(str(at))
