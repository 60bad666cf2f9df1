"""
Where each command stands, and what to do instead of names that other programs have.

`places` is the one list of commands: help, manual page, docs/cli.md, completion and suggestions are
made from it. `TABLE` has those with a module of their own; those of operations say themselves where
they stand. Commands of a group that is no row's place, such as ``collection add``, stand in the
group's own module. docs/coming-from-tobi.md has the names of tobi/qmd; a test runs its commands.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Place(NamedTuple):
    """
    One command.

    Attributes:
        section: Its section of ``qmd help --all``; a group's name for what stands in that group.
        name: Its full name; ``db backup`` is ``backup`` in the group ``db``.
        target: ``module:attribute``, imported when the command is called.
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
    Place(_INDEX, "context", "qmd.cli.contexts:context"),
    Place(_INDEX, "index", "qmd.cli.indexing:index"),
    Place(_INDEX, "update", "qmd.cli.indexing:update"),
    Place(_INDEX, "embed", "qmd.cli.indexing:embed"),
    Place(_INDEX, "watch", "qmd.cli.watch:watch"),
    Place(_READ, "search", "qmd.cli.search:search"),
    Place(_READ, "vsearch", "qmd.cli.search:vsearch", ("vector-search",)),
    Place(_READ, "query", "qmd.cli.search:query", ("deep-search",)),
    Place(_READ, "get", "qmd.cli.read:get"),
    Place(_READ, "multi-get", "qmd.cli.read:multi_get", ("multi_get",)),
    Place(_READ, "ls", "qmd.cli.read:ls"),
    Place(_READ, "edit", "qmd.cli.edit:edit"),
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
    Place(_CARE, "status", "qmd.cli.upkeep:status"),
    Place(_CARE, "why", "qmd.cli.upkeep:why"),
    Place(_CARE, "doctor", "qmd.cli.upkeep:doctor"),
    Place(_CARE, "config", "qmd.cli.settings:config"),
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
    Place("db", "db cleanup", "qmd.cli.upkeep:cleanup", ("cleanup",)),
    Place("db", "db migrate-to", "qmd.cli.copies:migrate_to", ("migrate-to",)),
    Place("db", "db export", "qmd.cli.copies:export", ("export",)),
    Place("server", "server", "qmd.cli.serve:server"),
    Place("server", "server mcp", "qmd.cli.serve:mcp", ("mcp",)),
    Place("server", "server stop", "qmd.cli.daemon:stop"),
    Place("server", "server service", "qmd.cli.service:service", ("service",)),
    Place("server", "server token", "qmd.cli.tokens:token", ("token",)),
    Place("server", "server audit", "qmd.cli.tokens:audit", ("audit",)),
    Place("server", "server logs", "qmd.cli.logs:logs", ("logs",)),
    Place("server", "server push", "qmd.cli.push:push", ("push",)),
)
#: Name at the top level that no help lists → full name, of the commands in `TABLE`.
ALIASES = {other: place.name for place in TABLE for other in place.others} | {"pull": "models pull"}


def places() -> tuple[Place, ...]:
    """All commands. This loads the declarations of all operations, which one command needs not."""
    from qmd.operations import every_operation

    return (
        *TABLE,
        *(
            Place(each.section, each.words, "", each.other_names)
            for each in every_operation()
            if each.words is not None and each.section
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
    return {"lazy": {name.removeprefix(prefix): target for name, target in names.items()}}


_SKILL = "integrations/README.md has a plugin with a skill; docs/mcp.md is for other agents."
_NO_HOOKS = (
    "qmd runs no commands before it indexes. 'qmd update --pull' pulls the git repositories; or"
    " write your command and 'qmd index' into one script."
)
_NO_BATCHES = "Embedding needs the same memory for any number of documents; leave it out."

#: Command → what to do instead.
COMMANDS = {
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
    " in your editor; 'qmd open' shows the page with all notes in the browser.",
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
HABITS = {word: text for words, text in _SYNONYMS.items() for word in words.split()}
#: The same for the commands of ``qmd collection``.
COLLECTION_COMMANDS = {"update-cmd": _NO_HOOKS, "set-update": _NO_HOOKS}
#: Option, of whatever command → what to do instead.
OPTIONS = {
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
