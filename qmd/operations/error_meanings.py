"""What the errors that clients get to know mean to them: when there is one, and what to do then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from qmd import errors
from qmd.errors import QmdError


class Meaning(NamedTuple):
    when: str
    remedy: str


#: docs/rest.md and OpenAPI say these of the codes; every error of an operation is here.
MEANINGS: Mapping[type[QmdError], Meaning] = {
    errors.InputError: Meaning(
        "An argument is wrong, or one is missing.", "Send what the message says is expected."
    ),
    errors.PluginError: Meaning(
        "The operation of an installed plugin failed.",
        "Report it to the authors of its package.",
    ),
    errors.ConfigError: Meaning(
        "A setting is wrong.", "Correct the setting that the message names."
    ),
    errors.BlankQueryError: Meaning("The text to look for is blank.", "Send one with words."),
    errors.InvalidPathError: Meaning(
        "No note or folder can be at that path.", "Send a path inside of a collection."
    ),
    errors.NotFoundError: Meaning(
        "What was named does not exist.",
        "Send one of the names in the message, or list what there is.",
    ),
    errors.DocumentNotFoundError: Meaning(
        "No document has that name.", "Send one of the suggested names, or search for it."
    ),
    errors.SectionNotFoundError: Meaning(
        "The document has no such heading or block.",
        "Send one of the suggested ones, or ask for its outline.",
    ),
    errors.CollectionNotFoundError: Meaning(
        "There is no such collection.", "Send one of those that status lists."
    ),
    errors.ContextNotFoundError: Meaning(
        "That path has no context.", "Send one of those that are listed."
    ),
    errors.ChatNotFoundError: Meaning(
        "There is no such conversation.", "Send the id of one that is listed."
    ),
    errors.NoMatchError: Meaning(
        "No document matches the pattern, or none of the names.",
        "Send another pattern, or one of the suggested names.",
    ),
    errors.NoteNotFoundError: Meaning(
        "No note is at that path.", "Send one of the suggested paths, or list the folder."
    ),
    errors.FolderNotFoundError: Meaning("No folder is at that path.", "List the folder above it."),
    errors.AmbiguousNameError: Meaning(
        "Several documents have that name.", "Send the full path, or more digits of the docid."
    ),
    errors.ConflictError: Meaning(
        "It does not fit things as they are now: a name is taken, say.",
        "Look at what is there, then decide.",
    ),
    errors.NoLanguageModelError: Meaning(
        "The server knows no language model.", "Set one; the hint names the settings."
    ),
    errors.EditError: Meaning(
        "The note has no such place, or more than one.",
        "Read the note again, and name the place exactly.",
    ),
    errors.FileChangedError: Meaning(
        "The file has changed since it was read.",
        "Read it again, then send the change that is right now.",
    ),
    errors.OutsideRootsError: Meaning(
        "Nothing may be written at that path.",
        "Choose a path in a collection, or allow it with --write-root.",
    ),
    errors.SteeringFileError: Meaning(
        "An agent may not write that file, which steers other programs.",
        "Choose another name, or let a person write it.",
    ),
    errors.ScopeError: Meaning(
        "The token does not open this.", "Ask the administrator of the server."
    ),
    errors.WritesForbiddenError: Meaning(
        "The database or the server may only be read.", "Ask a server that writes."
    ),
    errors.WriteDeclinedError: Meaning(
        "A person was asked before the write, and did not agree.", "Leave the file as it is."
    ),
    errors.WebPageError: Meaning(
        "The page cannot be fetched or saved, or its site forbids it.",
        "The message says why; save the page in a browser, and send the file with the shell.",
    ),
    errors.UnencodableTextError: Meaning(
        "The encoding of the file lacks a character of the text.",
        "Convert the file to UTF-8 first.",
    ),
    errors.RequestEndedError: Meaning("The time was up before it was done.", "Ask for less."),
    errors.DatabaseMissingError: Meaning("There is no index yet.", "Index a folder first."),
    errors.DatabaseUnreachableError: Meaning(
        "The database server does not answer.", "Try again in a while."
    ),
    errors.ServerDatabaseError: Meaning(
        "Only a database file can do that.", "The hint says what does it here."
    ),
    errors.DatabaseReplacedError: Meaning(
        "The database file was deleted, moved or replaced.",
        "Ask again: what is at its path now is opened. If nothing is, put it or a backup there.",
    ),
    errors.MigrationRequiredError: Meaning(
        "The database is of an earlier version, and may only be read.", "Open it once for writing."
    ),
    errors.SchemaTooNewError: Meaning(
        "A newer version has migrated the database.",
        "Upgrade the server, or start it again if it was upgraded.",
    ),
    errors.DatabaseBusyError: Meaning(
        "Another program has locked the database for too long.", "Try again in a moment."
    ),
    errors.CorruptDatabaseError: Meaning(
        "The database is damaged.", "The hint names what mends it."
    ),
    errors.ReadOnlyError: Meaning(
        "The database cannot be written.", "Check the permissions of its file."
    ),
    errors.DiskFullError: Meaning("The disk is full.", "Free some space, then try again."),
    errors.InferenceError: Meaning(
        "A model cannot do its work.", "Search by words: search needs no model."
    ),
    errors.ModelMissingError: Meaning(
        "The model is not on the machine of the server.", "The hint says how to get it."
    ),
    errors.ModelMismatchError: Meaning(
        "The vectors are those of another model.", "Embed the documents anew."
    ),
    errors.VectorIndexMissingError: Meaning(
        "There are no vectors yet.", "Embed the documents first, or search by words."
    ),
    errors.DocumentNotEmbeddedError: Meaning("The document has no vectors yet.", "Embed it first."),
    errors.VectorsUnavailableError: Meaning(
        "Vectors cannot be read on the machine of the server.", "Search by words."
    ),
    errors.TransientInferenceError: Meaning(
        "The model failed this time.", "Try again in a moment."
    ),
    errors.FileAccessError: Meaning(
        "The operating system refused to write a file.",
        "Check the disk, the path and its permissions.",
    ),
}
