"""What to do instead of names that other programs have, and which names are like a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SKILL = "integrations/README.md has a plugin with a skill; docs/mcp.md is for other agents."
_NO_HOOKS = (
    "qmd runs no commands before it indexes. 'qmd update --pull' pulls the git repositories; or"
    " write your command and 'qmd index' into one script."
)
_NO_BATCHES = "Embedding needs the same memory for any number of documents; leave it out."

#: Command of other programs → what to do instead.
_COMMANDS = {
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
COMMANDS = _COMMANDS | {word: text for words, text in _SYNONYMS.items() for word in words.split()}
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


def nearest(name: str, names: Iterable[str], *, most: int = 1, cutoff: float) -> list[str]:
    """The names that are spelled most like one; ``cutoff`` 0 to 1: how much alike they must be."""
    return difflib.get_close_matches(name, list(names), most, cutoff)
