"""
`qmd search` and `qmd index` in their plain forms, without what reads command lines in general.

click and the declarations of all options take a third of such a search. So what people, scripts and
agents type most is read here: words, the database, ``-n``, ``-c`` and ``--json``; to index, the
database and ``--no-embed``. Everything else (another option, a value that may be wrong, help,
completion) is left to `qmd.cli.main`, which also reports errors. `tests/contract/test_cli_plain.py`
compares the two.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from qmd import cli, kb
from qmd.cli.formats import places
from qmd.cli.session import Session, running
from qmd.cli.terminal import paged, prepare_streams
from qmd.system.session import SERVES_ONLY
from qmd.values.search import MAX_LIMIT, Filters, SearchRequest

if TYPE_CHECKING:
    from qmd.values import Collection

_NAMES = {
    "--db": "db",
    "--index": "index",
    "-n": "limit",
    "--limit": "limit",
    "-c": "collection",
    "--collection": "collection",
    "--json": "json",
}
#: Where one of these is set, the command line does something else.
_VARIABLES = ("_QMD_COMPLETE", SERVES_ONLY)


def run() -> NoReturn:
    """Run the command ``qmd``, and end the process with its exit code."""
    args = sys.argv[1:]
    code = search(args)
    if code is None:
        code = index(args)
    if code is None:
        code = cli.main.main(args)
    sys.stdout.flush()
    sys.stderr.flush()
    # The database is closed and the output is written. The interpreter's own shutdown would be
    # a fifth of the time of a search.
    os._exit(code)


def search(args: Sequence[str]) -> int | None:
    """
    Run a plain search.

    Returns:
        The exit code; None for another command line, of which nothing was done.
    """
    plain = read(args)
    if plain is None:
        return None
    session, request, as_json = plain
    prepare_streams()
    try:
        with running(session), paged(session.settings.pager):
            reply, is_indexing = kb.opening.search_once(session.existing_database(), request)
            where = places(lambda: _collections(session), full_path=False)
            output = "json" if as_json else "cli"
            cli.search.print_reply(reply, output, where=where, is_indexing=is_indexing)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - what is no error of a command is raised there
        return cli.main.report(error, session, as_json=as_json)
    return 0


def index(args: list[str]) -> int | None:
    """As `search`, for a plain ``qmd index``."""
    plain = read_index(args)
    if plain is None:
        return None
    session, embed = plain
    prepare_streams()
    try:
        with running(session):
            cli.runs.index_everything((), verify=False, embed=embed, ocr=None)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - what is no error of a command is raised there
        return cli.main.report(error, session, as_json=False)
    return 0


def read_index(args: list[str]) -> tuple[Session, bool | None] | None:
    """The session, and whether to embed; None for what is not plain."""
    without_vectors = args[-1:] == ["--no-embed"]
    values, words = _split(args[:-1] if without_vectors else args)
    if words != ["index"] or len(values) > 1 or any(name in os.environ for name in _VARIABLES):
        return None
    return _session(values, "qmd index"), False if without_vectors else None


def _collections(session: Session) -> list[Collection]:
    """Where documents lie: only a terminal that shows links asks for it."""
    with session.open() as opened:
        return opened.collections()


def read(args: Sequence[str]) -> tuple[Session, SearchRequest, bool] | None:
    """The session, the request, and whether it is answered in JSON; None for what is not plain."""
    if "search" not in args or any(name in os.environ for name in _VARIABLES):
        return None
    values, words = _split(args)
    if words[:1] != ["search"] or len(words) == 1 or not all(map(_is_word, words)):
        return None
    if "db" in values and "index" in values:  # they exclude each other
        return None
    filters = Filters(tuple(values.get("collection", ())))
    limit = int(values.get("limit", ["10"])[-1])
    request = SearchRequest(" ".join(words[1:]), limit=limit, filters=filters)
    return _session(values, "qmd search"), request, "json" in values


def _session(values: dict[str, list[str]], command: str) -> Session:
    session = Session()
    session.db, session.index = (values.get(name, [None])[-1] for name in ("db", "index"))
    session.command = command
    return session


def _split(args: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """The values of each option, and the command with its words; no words if it is not plain."""
    values: dict[str, list[str]] = {}
    words: list[str] = []
    rest = iter(args)
    for arg in rest:
        name = _NAMES.get(arg)
        if name is None:
            words.append(arg)
            continue
        value = arg if name == "json" else next(rest, "")
        # Before the command, only the options of the database are known.
        is_known = bool(words) or name in ("db", "index")
        if not is_known or not _is_plain(name, value):
            return {}, []
        values.setdefault(name, []).append(value)
    return values, words


def _is_plain(name: str, value: str) -> bool:
    """Whether the value of an option is surely right."""
    if name == "limit":
        is_number = value.isascii() and value.isdecimal() and len(value) < 5
        return is_number and 1 <= int(value) <= MAX_LIMIT
    return name == "json" or _is_word(value)


def _is_word(text: str) -> bool:
    """Whether a text is no option, and begins with nothing that `QueryWord` looks at."""
    return bool(text.strip()) and text[0] not in ("-", "\ue000")
