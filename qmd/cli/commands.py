"""
Where each command stands, and what to do instead of names that other programs have.

`entries` is the one list of commands: help, manual page, docs/cli.md, completion and suggestions
are made from it. `TABLE` has those with a module of their own; those of operations say themselves
where they stand. Commands of a group that have no row, such as ``collection add``, stand in the
group's own module. docs/coming-from-tobi.md has the names of tobi/qmd; a test runs its commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from qmd import cli, libraries


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
    CommandEntry(_INDEX, "collection", "qmd.cli.indexing:collection"),
    CommandEntry(_INDEX, "context", "qmd.cli.indexing:context"),
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
    CommandEntry(_READ, "posts", "qmd.cli.notes:posts"),
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
    CommandEntry("db", "db", "qmd.cli.upkeep:db"),
    CommandEntry("db", "db backup", "qmd.cli.upkeep:backup", ("backup",)),
    CommandEntry("db", "db restore", "qmd.cli.upkeep:restore_db", ("restore-db",)),
    CommandEntry("db", "db rescue", "qmd.cli.upkeep:rescue", ("rescue",)),
    CommandEntry("db", "db cleanup", "", ("cleanup",)),
    CommandEntry("db", "db migrate-to", "qmd.cli.upkeep:migrate_to", ("migrate-to",)),
    CommandEntry("db", "db export", "qmd.cli.upkeep:export", ("export",)),
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


_SKILL = "integrations/README.md has a plugin with a skill; docs/mcp.md is for other agents."
_NO_HOOKS = (
    "qmd runs no commands before it indexes. 'qmd update --pull' pulls the git repositories; or"
    " write your command and 'qmd index' into one script."
)
_NO_BATCHES = "Embedding needs the same memory for any number of documents; leave it out."

#: Command of other programs → what to do instead.
_OF_OTHERS = {
    "init": "qmd needs no preparation: 'qmd up FOLDER' indexes a folder. For an index of its own,"
    " name it: 'qmd --index NAME up FOLDER'.",
    "trust": "qmd runs no commands of configuration files, so there is nothing to approve.",
    "skill": _SKILL,
    "skills": _SKILL,
}
#: Words that people type, because other programs have them → what does that here.
_SYNONYMS = {
    "add scan": "'qmd up FOLDER' makes a folder searchable, and keeps it so;"
    " 'qmd collection add FOLDER' only indexes it.",
    "find grep rg": "'qmd search WORDS' finds notes by words, 'qmd query QUESTION' by meaning, too;"
    " 'qmd get NOTE' prints one.",
    "cat read print head type": "'qmd get NOTE' prints a note.",
    "view show less more display preview": "'qmd get NOTE' prints a note, 'qmd edit NOTE' opens it"
    " in your editor; 'qmd open NOTE' shows it in the browser, 'qmd open' all notes.",
    "new create touch write": "'qmd note create PATH --content TEXT' writes a new note;"
    " 'qmd note create PATH -' takes its text from stdin.",
    "append": "'qmd note create PATH --append -' adds what stdin has to a note.",
    "delete remove del trash": "'qmd rm NOTE' deletes a note; 'qmd collection remove NAME' takes a"
    " folder out of the index and leaves its files.",
    "rename move": "'qmd mv NOTE NEW_NAME' renames a note, 'qmd collection rename' a collection.",
    "redo": "'qmd undo --redo' takes the last undo back.",
    "list dir notes files": "'qmd ls' lists documents, 'qmd collection list' folders.",
    "tree": "'qmd ls' lists documents, 'qmd tags' shows the tree of tags.",
    "exclude ignore skip hide filter": "Write the folder's name and a slash into a file .qmdignore"
    " at the top of your notes, as in .gitignore: docs/first-hour.md. 'qmd why FILE' names the rule"
    " that leaves a file out.",
    "reindex sync refresh rebuild": "'qmd index' brings the index in line with the disk.",
    "start serve run daemon": "'qmd up FOLDER' indexes and serves; 'qmd server' only serves.",
    "stop kill quit exit": "Ctrl-C ends 'qmd up'; 'qmd server stop' ends a server that runs in the"
    " background.",
    "set settings configure options": "'qmd config' lists the settings, and names the file for"
    " them.",
    "info stats about": "'qmd status' shows what is indexed.",
    "log changes diff": "'qmd history' says what tools did to your notes, 'qmd recent' what changed"
    " last; 'qmd server logs' is the log of the server.",
    "clean vacuum gc prune": "'qmd db cleanup' gives space back; it never touches your files.",
    "copy cp dump": "'qmd db backup FILE' copies the database, 'qmd db export' what only it holds.",
    "install": "'qmd setup' adds qmd to AI clients, 'qmd server service install' starts it at"
    " login.",
    "upgrade self-update": "Install the new version as you installed this one; your index and"
    " settings stay. docs/install.md has the commands.",
    "uninstall": "Use the installer that you installed qmd with. docs/first-hour.md has its"
    " command and says what else to delete; your notes stay.",
    "photo photos picture pictures images": "'qmd image' reads and writes what photos say about"
    " themselves; 'qmd collection set NAME --mask' makes them searchable: docs/first-hour.md.",
    "web ui browse browser": "'qmd open' shows the page of the running server in the browser.",
    "login": "qmd has no accounts. 'qmd server token create NAME' makes a token for a client.",
}
#: Name of a command that qmd lacks → what to do instead.
INSTEAD_OF = _OF_OTHERS | {
    word: text for words, text in _SYNONYMS.items() for word in words.split()
}
#: The same for the commands of ``qmd collection``.
INSTEAD_IN_COLLECTION = {"update-cmd": _NO_HOOKS, "set-update": _NO_HOOKS}
#: Option, of whatever command → what to do instead.
INSTEAD_OF_OPTION = {
    "--chunk-strategy": "Texts are always cut along their headings; leave it out.",
    "--max-batch-mb": _NO_BATCHES,
    "--max-docs-per-batch": _NO_BATCHES,
    "--no-gpu": "Models run on the processor anyway; leave it out.",
    "--progress": "Progress is shown on a terminal anyway; leave it out.",
    "--refresh": "A damaged model is made or downloaded again by itself; leave it out.",
    "--skill": _SKILL,
    "--token": "Other users see arguments; put the token of the server into QMD_PUSH_TOKEN.",
    "--color": "FORCE_COLOR=1 in front of the command turns colours on, NO_COLOR=1 off.",
    "--verbose": "Commands say what matters anyway; 'qmd server logs' has the log of the server,"
    " and --explain says how a score came about.",
    "--quiet": "Progress is shown on a terminal alone; '2>/dev/null' leaves out remarks, too.",
    "--timeout": "It goes on until it is done. Ctrl-C loses nothing: the next run goes on.",
}


def nearest(name: str, names: Iterable[str], *, most: int = 1, cutoff: float) -> list[str]:
    """The names that are spelled most like one; ``cutoff`` 0 to 1: how much alike they must be."""
    return libraries.difflib.get_close_matches(name, list(names), most, cutoff)
