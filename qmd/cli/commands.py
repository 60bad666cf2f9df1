"""
Where each command stands, and what to do instead of names that other programs have.

`places` is the one list of commands: help, manual page, docs/cli.md, completion and suggestions are
made from it. `TABLE` has those with a module of their own; those of operations say themselves where
they stand. Commands of a group that is no row's place, such as ``collection add``, stand in the
group's own module. docs/coming-from-tobi.md has the names of tobi/qmd; a test runs its commands.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from qmd import cli


class Place(NamedTuple):
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
    Place(_INDEX, "up", "qmd.cli.up:up"),
    Place(_INDEX, "collection", "qmd.cli.collections:collection"),
    Place(_INDEX, "context", "qmd.cli.collections:context"),
    Place(_INDEX, "index", "qmd.cli.indexing:index"),
    Place(_INDEX, "update", "qmd.cli.indexing:update"),
    Place(_INDEX, "embed", "qmd.cli.indexing:embed"),
    Place(_INDEX, "watch", "qmd.cli.indexing:watch"),
    Place(_READ, "search", "qmd.operations.searches:search"),
    Place(_READ, "vsearch", "qmd.operations.searches:vsearch", ("vector-search",)),
    Place(_READ, "query", "qmd.operations.searches:query", ("deep-search",)),
    Place(_READ, "get", "qmd.operations.reading:get"),
    Place(_READ, "multi-get", "qmd.operations.reading:multi_get", ("multi_get",)),
    Place(_READ, "ls", "qmd.operations.reading:documents"),
    Place(_READ, "edit", "qmd.cli.open:edit"),
    Place(_READ, "posts", "qmd.cli.posts:posts"),
    Place(_READ, "open", "qmd.cli.open:open_"),
    Place("links", "links", "qmd.cli.read:links"),
    Place(_ASK, "ask", "qmd.cli.ask:ask"),
    Place(_ASK, "chat", "qmd.cli.chat:chat"),
    Place(_WRITE, "note", "qmd.cli.notes:note_"),
    Place(_WRITE, "summary", "qmd.cli.notes:summary"),
    Place(_WRITE, "image", "qmd.cli.images:image"),
    Place(_WRITE, "undo", "qmd.cli.history:undo"),
    Place(_WRITE, "history", "qmd.cli.history:history"),
    Place(_WRITE, "restore", "qmd.cli.history:restore"),
    Place(_CARE, "status", "qmd.operations.reading:status"),
    Place(_CARE, "why", "qmd.operations.indexing:why"),
    Place(_CARE, "doctor", "qmd.cli.upkeep:doctor"),
    Place(_CARE, "config", "qmd.cli.upkeep:config"),
    Place(_CARE, "models", "qmd.cli.models:models"),
    Place(_CARE, "import", "qmd.cli.imports:import_"),
    Place(_CARE, "bench", "qmd.cli.bench:bench"),
    Place(_CARE, "setup", "qmd.cli.clients:setup"),
    Place(_CARE, "completion", "qmd.cli.shell_completion:completion"),
    Place(_CARE, "man", "qmd.cli.man:man"),
    Place("db", "db", "qmd.cli.copies:db"),
    Place("db", "db backup", "qmd.cli.copies:backup", ("backup",)),
    Place("db", "db restore", "qmd.cli.copies:restore_db", ("restore-db",)),
    Place("db", "db rescue", "qmd.cli.copies:rescue", ("rescue",)),
    Place("db", "db cleanup", "", ("cleanup",)),
    Place("db", "db migrate-to", "qmd.cli.copies:migrate_to", ("migrate-to",)),
    Place("db", "db export", "qmd.cli.copies:export", ("export",)),
    Place("server", "server", "qmd.cli.serve:server"),
    Place("server", "server mcp", "qmd.cli.serve:mcp", ("mcp",)),
    Place("server", "server stop", "qmd.cli.daemon:stop"),
    Place("server", "server service", "qmd.cli.service:service", ("service",)),
    Place("server", "server token", "qmd.cli.serve:token", ("token",)),
    Place("server", "server audit", "", ("audit",)),
    Place("server", "server logs", "qmd.cli.daemon:logs", ("logs",)),
    Place("server", "server push", "qmd.cli.push:push", ("push",)),
)
#: Name at the top level that no help lists → full name, of the commands in `TABLE`.
ALIASES = {other: place.name for place in TABLE for other in place.others} | {"pull": "models pull"}


def places() -> tuple[Place, ...]:
    """All commands. This loads the declarations of all operations, which one command needs not."""
    names = {each.name for each in TABLE}
    return (
        *TABLE,
        *(
            Place(each.listed_in, words, "", each.other_names)
            for words, each in cli.operations.listed()
            if words not in names
        ),
    )


def other_names() -> dict[str, str]:
    """Name at the top level that no help lists → full name."""
    return ALIASES | {other: place.name for place in places() for other in place.others}


def sections() -> dict[str, list[str]]:
    """Section of the help → full names of its commands."""
    every = places()
    titles = dict.fromkeys(place.section for place in every)
    return {title: [each.name for each in every if each.section == title] for title in titles}


def below(group: str) -> dict[str, Any]:
    """The arguments of a `Group` for the commands that the table has in it."""
    prefix = f"{group} "
    names = {each.name: each.target for each in TABLE if each.name.startswith(prefix)}
    lazy = {name.removeprefix(prefix): target for name, target in names.items()}
    return {"lazy": lazy, "operations": group}
