"""
What to do here instead of a command or an option that other programs have and qmd lacks.

docs/coming-from-tobi.md has those of tobi/qmd. A test runs the commands of tobi/qmd.
"""

from __future__ import annotations

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
#: Names that other programs have for what qmd's commands do.
HABITS = {
    "add": "'qmd up FOLDER' makes a folder searchable; 'qmd collection add FOLDER' does not serve.",
    "delete": "'qmd collection remove NAME' takes a folder out of the index and leaves its files;"
    " 'qmd rm NOTE' deletes a note.",
    "find": "'qmd search WORDS' searches by words, 'qmd query QUESTION' by meaning, too.",
    "install": "'qmd setup' adds qmd to AI clients, 'qmd service install' starts it at login.",
    "list": "'qmd ls' lists documents, 'qmd collection list' folders.",
    "reindex": "'qmd index' brings the index in line with the disk.",
    "start": "'qmd up FOLDER' indexes and serves; 'qmd server' only serves.",
    "stop": "Ctrl-C ends 'qmd up'; 'qmd mcp stop' ends the server of 'qmd mcp --http --daemon'.",
    "sync": "'qmd index' brings the index in line with the disk.",
    "version": "'qmd --version' prints it.",
}
HABITS["remove"] = HABITS["delete"]
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
    "--timeout": "It goes on until it is done. Ctrl-C loses nothing: the next run goes on.",
}
