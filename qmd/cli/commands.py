"""
Where each command stands, and what to do instead of names that other programs have.

`entries` is the one list of commands: help, manual page, docs/cli.md, completion and suggestions
are made from it. `TABLE` has those with a module of their own; those of operations say themselves
where they stand. Commands of a group that have no row, such as ``collection add``, stand in the
group's own module. docs/coming-from-tobi.md has the names of tobi/qmd; a test runs its commands.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from qmd import cli


class CommandEntry(NamedTuple):
    """
    One command.

    Attributes:
        section: Its section of ``qmd help --all``; a group's name for what stands in that group.
        name: Its full name; ``db backup`` is ``backup`` in the group ``db``.
        target: ``module:attribute`` of a command or an operation, imported when it is called; "" if
            an operation that has its place in this list is the command.
        others: Names at the top level that mean the same and that no help lists: earlier ones, and
            those of other programs.
    """

    section: str
    name: str
    target: str
    others: tuple[str, ...] = ()


#: The commands that ``qmd --help`` describes, in its order.
FIRST = (
    *("up", "search", "query", "get", "ls", "edit", "note", "links", "tags"),
    *("undo", "status", "setup"),
)
_INDEX, _READ, _ASK, _WRITE, _CARE = "Index", "Search and read", "Ask", "Write", "Look after it"
TABLE = (
    CommandEntry(_INDEX, "up", "qmd.cli.up:up"),
    CommandEntry(_INDEX, "collection", "qmd.cli.collections:collection"),
    CommandEntry(_INDEX, "context", "qmd.cli.collections:context"),
    CommandEntry(_INDEX, "index", "qmd.cli.indexing:index"),
    CommandEntry(_INDEX, "update", "qmd.cli.indexing:update"),
    CommandEntry(_INDEX, "embed", "qmd.cli.indexing:embed"),
    CommandEntry(_INDEX, "ocr", "qmd.cli.indexing:ocr"),
    CommandEntry(_INDEX, "watch", "qmd.cli.indexing:watch"),
    CommandEntry(_READ, "search", "qmd.operations.searches:search"),
    CommandEntry(_READ, "vsearch", "qmd.operations.searches:vsearch", ("vector-search",)),
    CommandEntry(_READ, "query", "qmd.operations.searches:query", ("deep-search",)),
    CommandEntry(_READ, "get", "qmd.operations.reading:get"),
    CommandEntry(_READ, "multi-get", "qmd.operations.reading:multi_get", ("multi_get",)),
    CommandEntry(_READ, "ls", "qmd.operations.reading:documents"),
    CommandEntry(_READ, "edit", "qmd.cli.open:edit"),
    CommandEntry(_READ, "posts", "qmd.cli.posts:posts"),
    CommandEntry(_READ, "open", "qmd.cli.open:open_"),
    CommandEntry("links", "links", "qmd.cli.read:links"),
    CommandEntry(_ASK, "ask", "qmd.cli.ask:ask"),
    CommandEntry(_ASK, "chat", "qmd.cli.chat:chat"),
    CommandEntry(_WRITE, "note", "qmd.cli.notes:note_"),
    CommandEntry(_WRITE, "summary", "qmd.cli.notes:summary"),
    CommandEntry(_WRITE, "image", "qmd.cli.images:image"),
    CommandEntry(_WRITE, "undo", "qmd.cli.history:undo"),
    CommandEntry(_WRITE, "history", "qmd.cli.history:history"),
    CommandEntry(_WRITE, "restore", "qmd.cli.history:restore"),
    CommandEntry(_CARE, "status", "qmd.operations.reading:status"),
    CommandEntry(_CARE, "why", "qmd.operations.indexing:why"),
    CommandEntry(_CARE, "doctor", "qmd.cli.upkeep:doctor"),
    CommandEntry(_CARE, "config", "qmd.cli.upkeep:config"),
    CommandEntry(_CARE, "plugins", "qmd.operations.upkeep:plugins"),
    CommandEntry(_CARE, "models", "qmd.cli.models:models"),
    CommandEntry(_CARE, "import", "qmd.cli.imports:import_"),
    CommandEntry(_CARE, "bench", "qmd.cli.bench:bench"),
    CommandEntry(_CARE, "setup", "qmd.cli.clients:setup"),
    CommandEntry(_CARE, "completion", "qmd.cli.shell_completion:completion"),
    CommandEntry(_CARE, "man", "qmd.cli.man:man"),
    CommandEntry("db", "db", "qmd.cli.copies:db"),
    CommandEntry("db", "db backup", "qmd.cli.copies:backup", ("backup",)),
    CommandEntry("db", "db restore", "qmd.cli.copies:restore_db", ("restore-db",)),
    CommandEntry("db", "db rescue", "qmd.cli.copies:rescue", ("rescue",)),
    CommandEntry("db", "db cleanup", "", ("cleanup",)),
    CommandEntry("db", "db migrate-to", "qmd.cli.copies:migrate_to", ("migrate-to",)),
    CommandEntry("db", "db export", "qmd.cli.copies:export", ("export",)),
    CommandEntry("server", "server", "qmd.cli.serve:server"),
    CommandEntry("server", "server mcp", "qmd.cli.serve:mcp", ("mcp",)),
    CommandEntry("server", "server stop", "qmd.cli.daemon:stop"),
    CommandEntry("server", "server service", "qmd.cli.service:service", ("service",)),
    CommandEntry("server", "server token", "qmd.cli.serve:token", ("token",)),
    CommandEntry("server", "server audit", "", ("audit",)),
    CommandEntry("server", "server logs", "qmd.cli.daemon:logs", ("logs",)),
    CommandEntry("server", "server push", "qmd.cli.push:push", ("push",)),
)
#: Name at the top level that no help lists → full name, of the commands in `TABLE`.
ALIASES = {other: entry.name for entry in TABLE for other in entry.others} | {"pull": "models pull"}


def entries() -> tuple[CommandEntry, ...]:
    """All commands. This loads the declarations of all operations, which one command needs not."""
    names = {each.name for each in TABLE}
    return (
        *TABLE,
        *(
            CommandEntry(each.listed_in, words, "", each.other_names)
            for words, each in cli.operations.listed()
            if words not in names
        ),
    )


def other_names() -> dict[str, str]:
    """Name at the top level that no help lists → full name."""
    return ALIASES | {other: entry.name for entry in entries() for other in entry.others}


def sections() -> dict[str, list[str]]:
    """Section of the help → full names of its commands."""
    every = entries()
    titles = dict.fromkeys(entry.section for entry in every)
    return {title: [each.name for each in every if each.section == title] for title in titles}


def below(group: str) -> dict[str, Any]:
    """The arguments of a `Group` for the commands that the table has in it."""
    prefix = f"{group} "
    names = {each.name: each.target for each in TABLE if each.name.startswith(prefix)}
    lazy = {name.removeprefix(prefix): target for name, target in names.items()}
    return {"lazy": lazy, "operations": group}
