"""
Every exception qmd raises on purpose.

::

    QmdError                          code, hint, exit_code, http_status
    ├─ InputError                     the caller's argument is wrong
    │  ├─ BlankQueryError             a text to look for in posts
    │  ├─ ConfigError                 a setting is wrong
    │  ├─ InvalidPathError            no note or folder can be at that path
    │  └─ UnreadablePostsError        kind (archive, folder, post), path, reason
    ├─ NotFoundError                  what was named does not exist
    │  ├─ ArchiveNotFoundError        directory of posts
    │  ├─ AuthorNotFoundError         author of posts
    │  ├─ PostNotFoundError           path
    │  ├─ DocumentNotFoundError       file, suggestions
    │  ├─ SectionNotFoundError        a heading or block; file, suggestions
    │  ├─ CollectionNotFoundError     name, suggestions
    │  ├─ ContextNotFoundError
    │  ├─ NoMatchError                a glob or list matched nothing
    │  ├─ ChatNotFoundError           chat
    │  ├─ NoteNotFoundError           path, suggestions
    │  └─ FolderNotFoundError         path
    ├─ AmbiguousNameError             name, candidates
    ├─ ConflictError                  the name is taken
    │  ├─ NoteExistsError             a new note would take the place of another
    │  ├─ NoLanguageModelError        no server of a language model is set
    │  ├─ EditError                   a note has no such place, or more than one
    │  └─ FileChangedError            since it was read, or somebody agreed to the write; diff
    ├─ NoteAccessError                a note or folder is there and cannot be read or written
    ├─ OutsideRootsError              a client named a path below no write root
    │  └─ SteeringFileError           an agent named a file that steers other programs
    ├─ ScopeError                     the token of a client does not open it
    ├─ WritesForbiddenError           the database or the server may only be read
    ├─ WebPageError                   a page of the web cannot, or must not, be fetched or saved
    ├─ ServerUnreachableError         the server to which a folder is pushed does not answer
    ├─ PluginError                    the operation of a plugin failed
    ├─ RemoteError                    what the running server answered; it has the server's code
    ├─ WriteDeclinedError             somebody was asked before a write, and did not say yes
    ├─ SummaryError                   a wrong argument of update_summary, or its own words
    ├─ FileAccessError                the operating system refused to write a file; os_error
    ├─ UnencodableTextError           a text that the encoding of its file lacks
    ├─ PhotoError                     a photo, or its new metadata; problem, cause, reason
    ├─ ExifToolError                  cause, reason
    ├─ ProtocolError                  number, data: MCP answers it as an error of JSON-RPC
    ├─ RequestEndedError              nobody waits for the answer any more
    ├─ StoreError                     the database
    │  ├─ DatabaseMissingError        no such file yet
    │  ├─ DatabaseUnreachableError    no connection to the server, or it was lost
    │  ├─ ServerDatabaseError         what only a database file can do
    │  ├─ DatabaseReplacedError       deleted, moved or replaced while it was open
    │  ├─ NotADatabaseError           the file is something else
    │  ├─ MigrationRequiredError      older than this program, and opened read-only
    │  ├─ SchemaTooNewError           newer than this program
    │  ├─ DatabaseBusyError           locked by another process for too long
    │  ├─ CorruptDatabaseError
    │  ├─ ReadOnlyError
    │  └─ DiskFullError
    ├─ IngestError                    one file; the scan reports it and goes on
    │  ├─ DecodeError
    │  ├─ FileTooLargeError
    │  ├─ NotAPhotoError
    │  ├─ DamagedFileError            not what its suffix says, or damaged
    │  ├─ EncryptedFileError
    │  ├─ MissingExtraError           its format needs a package that is not installed
    │  └─ UnreadableFileError
    │     └─ FileVanishedError      deleted since it was found
    └─ InferenceError                 a model or the vector index
       ├─ ModelMissingError           not on this machine; the hint says how to get it
       ├─ ModelMismatchError          the database holds vectors of another model
       ├─ VectorIndexMissingError     nothing was embedded yet
       ├─ DocumentNotEmbeddedError    one document has no vectors yet; file
       ├─ VectorsUnavailableError     sqlite-vec cannot be loaded here
       ├─ OcrUnavailableError         a package is missing, or memory is short
       ├─ NativeCallsRefusedError     the model server takes no tools; ask in blocks
       └─ TransientInferenceError     worth another try

A message says what is wrong, the hint what to do next. Faces map these and nothing else:
the command line prints ``qmd: error: MESSAGE`` and ``hint: HINT`` and exits with
``exit_code``; MCP answers ``isError`` with the message; REST answers ``http_status``, and the code
in a header.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal

from qmd.engine_text import engine_text, sentences


class QmdError(Exception):
    """
    Base of all errors; ``str(error)`` is the message for people.

    Attributes:
        code: The name of the kind in snake case, where the kind does not say another.
        message: The same, an `EngineText` if it has fields.
        hint: What to do next.
    """

    code: str = "error"
    exit_code: ClassVar[int] = 1
    http_status: int = 500

    def __init_subclass__(cls) -> None:
        # An error of a plugin has the code of its base: clients know that one.
        if cls.__module__ == __name__ and "code" not in vars(cls):
            letters = cls.__name__.removesuffix("Error")
            words = "".join(f"_{each.lower()}" if each.isupper() else each for each in letters)
            cls.code = words.removeprefix("_")

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def with_hint(self) -> str:
        """Message and hint, where there is place for one text only."""
        return sentences(self.message, self.hint)


class InputError(QmdError):
    code = "invalid_input"
    http_status = 400


class ConfigError(InputError):
    code = "invalid_config"


class BlankQueryError(InputError):
    def __init__(self) -> None:
        super().__init__("The query is blank.")


class UnreadablePostsError(InputError):
    """An archive of posts, a folder or a post in it cannot be read, for a ``reason``."""

    def __init__(
        self,
        kind: Literal["archive", "folder", "post"],
        path: str,
        reason: str,
        *,
        hint: str | None = "Check its permissions.",
    ) -> None:
        super().__init__(f"The {kind} {path} cannot be read: {reason}", hint=hint)
        self.kind = kind
        self.path = path
        self.reason = reason


class InvalidPathError(InputError):
    """No note or folder can be at that path."""


class NotFoundError(QmdError):
    http_status = 404


def _did_you_mean(names: Sequence[str]) -> str:
    return engine_text("Did you mean: {names}", names=", ".join(names)) if names else ""


class DocumentNotFoundError(NotFoundError):
    """``suggestions`` are usable paths, nearest first, at most three."""

    def __init__(self, file: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(
            engine_text("Document not found: {file}", file=file),
            hint=_did_you_mean(suggestions)
            or "No name is like it. If the file is new: qmd index. Else: qmd search, qmd ls",
        )
        self.file = file
        self.suggestions = tuple(suggestions)


class SectionNotFoundError(NotFoundError):
    """
    ``suggestions`` are the nearest headings or blocks of the document, as a name has them.

    Args:
        page: The number of a page that is there, but has no text.
    """

    def __init__(
        self, file: str, anchor: str, suggestions: Sequence[str] = (), *, page: int | None = None
    ) -> None:
        names = [f"{file}{each}" for each in suggestions]
        if page is None:
            message = engine_text(
                "There is no section {anchor} in {file}.", anchor=anchor, file=file
            )
            hint = _did_you_mean(names) or f"List its headings: qmd outline {file}"
        else:
            message = engine_text("Page {page} of {file} has no text.", page=page, file=file)
            hint = "No page of it has text."
            if names:
                hint = engine_text("The nearest with text: {names}", names=", ".join(names))
        super().__init__(message, hint=hint)
        self.file = file
        self.suggestions = tuple(suggestions)


class CollectionNotFoundError(NotFoundError):
    def __init__(self, name: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(
            engine_text("Collection not found: {name}", name=name),
            hint=_did_you_mean(suggestions)
            or "Status lists the collections; in the shell 'qmd collection list' does.",
        )
        self.name = name
        self.suggestions = tuple(suggestions)


class ContextNotFoundError(NotFoundError):
    """There is no context of that name."""


class ArchiveNotFoundError(NotFoundError):
    """There is no such directory of posts."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"No such archive of posts: {directory}",
            hint="Name its directory with --posts-dir or QMD_POSTS_DIR.",
        )
        self.directory = directory


class AuthorNotFoundError(NotFoundError):
    def __init__(self, author: str) -> None:
        super().__init__(
            f"Author not found: {author}",
            hint="The tool list_authors lists all authors; in the shell 'qmd posts authors' does.",
        )
        self.author = author


class PostNotFoundError(NotFoundError):
    def __init__(self, path: str) -> None:
        super().__init__(
            f"Post not found: {path}",
            hint="A path begins with the author. The tool list_posts shows that of each post;"
            " in the shell 'qmd posts list' does.",
        )
        self.path = path


class ChatNotFoundError(NotFoundError):
    def __init__(self, chat: str) -> None:
        super().__init__(
            engine_text("There is no conversation {chat}.", chat=chat),
            hint="GET /chats lists them all; in the shell 'qmd chat list' does.",
        )
        self.chat = chat


class NoMatchError(NotFoundError):
    """A glob or list matched nothing."""


class NoteNotFoundError(NotFoundError):
    """``path`` as it was looked for; ``suggestions`` are notes of that vault, at most three."""

    def __init__(
        self, path: str, suggestions: Sequence[str] = (), *, hint: str | None = None
    ) -> None:
        super().__init__(
            engine_text("File not found: {path}", path=path),
            hint=_did_you_mean(suggestions) or hint,
        )
        self.path = path
        self.suggestions = tuple(suggestions)


class FolderNotFoundError(NotFoundError):
    def __init__(self, path: str) -> None:
        super().__init__(engine_text("Folder not found: {path}", path=path))
        self.path = path


class AmbiguousNameError(QmdError):
    """
    ``candidates`` are the full names that the short one could mean.

    The message lists `LISTED` of them.
    """

    http_status = 400
    LISTED = 20

    def __init__(self, name: str, candidates: Sequence[str]) -> None:
        listed = ", ".join(candidates[: self.LISTED])
        others = len(candidates) - self.LISTED
        super().__init__(
            engine_text("Ambiguous name: {name} could be {listed}", name=name, listed=listed)
            + (f" and {others:,} more" if others > 0 else ""),
            hint="Give the full path or more digits of the docid.",
        )
        self.name = name
        self.candidates = tuple(candidates)


class ConflictError(QmdError):
    http_status = 409


class NoteExistsError(ConflictError):
    """A new note cannot have the path of one that is there."""

    code = ConflictError.code

    def __init__(self, path: str, *, hint: str = "Choose another name, or edit that note.") -> None:
        super().__init__(engine_text("There is a note {file} already.", file=path), hint=hint)


class NoLanguageModelError(ConflictError):
    def __init__(self) -> None:
        super().__init__(
            "No language model is set.",
            hint="Set QMD_LLM_URL to an OpenAI-compatible server, or QMD_LLM_API_KEY for DeepSeek.",
        )


class EditError(ConflictError):
    """An edit of a note was not made, because the note is not what the edit assumes."""

    code = "edit_not_made"


class FileChangedError(ConflictError):
    def __init__(
        self,
        path: str,
        *,
        since: str = "the person was asked",
        diff: str | None = None,
        text_read: str | None = None,
    ) -> None:
        """
        Args:
            diff: What has changed since, as a unified diff; None if that is not known.
            text_read: The text that the client has read; None if that is not known.
        """
        super().__init__(
            engine_text(
                "{path} has changed since {moment}; it was not written.", path=path, moment=since
            ),
            hint="Read it again, then ask for the write that is right now.",
        )
        self.diff = diff
        self.text_read = text_read


class NoteAccessError(QmdError):
    """The disk, the permissions or the write policy say no; the hint says what would help."""


class OutsideRootsError(QmdError):
    """Nothing may be written, or made a collection, at that path; the hint says what allows it."""

    code = "outside_write_roots"
    http_status = 403


class SteeringFileError(OutsideRootsError):
    """What an agent may not write at that path; ``reason`` says why, without a full stop."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is never written by an agent: {reason}.",
            hint="Choose another name, or let the person write it.",
        )
        self.path = path
        self.reason = reason


class ScopeError(QmdError):
    """The token of the client does not open this."""

    code = "out_of_scope"
    http_status = 403

    def __init__(
        self,
        message: str = "This token does not allow that.",
        *,
        hint: str = "Ask the administrator of this server.",
    ) -> None:
        super().__init__(message, hint=hint)


class WritesForbiddenError(QmdError):
    """Nothing was asked or written."""

    http_status = 403


class ServerUnreachableError(QmdError):
    """The server to which a folder is pushed does not answer, or is busy."""

    http_status = 502


class WriteDeclinedError(QmdError):
    """Whoever is asked before each write did not agree; the file is as it was."""

    http_status = 403

    def __init__(
        self,
        message: str = "The person declined this write; nothing was changed.",
        *,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)


class SummaryError(QmdError):
    """
    No summary was written: an argument is wrong; or, from the tool, any reason in its words.
    """

    code = "summary_failed"
    http_status = 400


class FileAccessError(QmdError):
    """The operating system refused to write a file, which is as it was, or to read one."""

    _ANSWERS: ClassVar[dict[int, tuple[int, str]]] = {
        errno.ENAMETOOLONG: (400, "Choose a shorter name; most disks allow 255 bytes."),
        errno.ENOSPC: (507, "Free some space, then try again."),
        errno.EDQUOT: (507, "Free some space, then try again."),
    }
    _OTHER = QmdError.http_status, "Check the disk, the path and its permissions."

    def __init__(self, path: str, os_error: OSError, *, reading: bool = False) -> None:
        reason, number = os_error.strerror or str(os_error), os_error.errno or 0
        shown = path if len(path) <= 500 else path[:500] + "…"
        message = engine_text("Failed to write {path}: {reason}.", path=shown, reason=reason)
        if reading:
            message = engine_text("Failed to read {path}: {reason}.", path=shown, reason=reason)
        self.http_status, hint = self._ANSWERS.get(number, self._OTHER)
        super().__init__(message, hint=hint)
        self.path = path
        self.os_error = os_error


@contextmanager
def file_access(file: str, *, reading: bool = False) -> Iterator[None]:
    """What the system refuses in the block is a `FileAccessError` of this file."""
    try:
        yield
    except OSError as error:
        raise FileAccessError(file, error, reading=reading) from error


class UnencodableTextError(QmdError):
    """A text cannot be appended: the encoding of its file (a Python codec) lacks a character."""

    http_status = 400

    def __init__(self, path: str, encoding: str, character: str) -> None:
        super().__init__(
            engine_text(
                "{name} is in {encoding}, which lacks {lacking}.",
                name=path,
                encoding=encoding,
                lacking=f"{character!r}",
            ),
            hint="Convert it to UTF-8 first, or replace its whole content.",
        )
        self.path = path
        self.encoding = encoding
        self.character = character


class ExifToolError(QmdError):
    """
    exiftool gave no answer, or none that is of use.

    ``cause``: "missing", "timeout", "ended" or "refused"; ``reason`` begins like a sentence
    and has no full stop.
    """

    code = "exiftool_failed"
    http_status = 503

    def __init__(self, cause: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(reason[:1].upper() + reason[1:] + ".", hint=hint)
        self.cause = cause
        self.reason = reason


PhotoProblem = Literal[
    "not_found",
    "not_readable",
    "not_writable",
    "unsupported",
    "invalid_metadata",
    "not_written",
    "not_verified",
]


class PhotoError(QmdError):
    """
    Nothing was written into a photo, which is as it was, or it could not be read.

    ``cause`` says in a word what made ``problem``, and ``reason`` in a sentence.
    """

    code = "photo_failed"
    http_status = 400

    def __init__(
        self,
        problem: PhotoProblem,
        message: str,
        *,
        cause: str = "",
        reason: str = "",
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.problem = problem
        self.cause = cause
        self.reason = reason


class ProtocolError(QmdError):
    """``number`` and ``data`` are the code and the data of the JSON-RPC error."""

    code = "protocol_error"
    http_status = 400

    def __init__(
        self,
        number: int,
        message: str,
        data: Mapping[str, object] | None = None,
        *,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.number = number
        self.data = data


class WebPageError(QmdError):
    http_status = 409


class RequestEndedError(QmdError):
    """A request's time is up, or its client has left, and its work was ended."""

    http_status = 503

    def __init__(self) -> None:
        super().__init__("The request was ended before it was done.", hint="Ask for less.")


class StoreError(QmdError):
    code = "database_error"


class DatabaseMissingError(StoreError):
    http_status = 503


class DatabaseUnreachableError(StoreError):
    """The server of the database cannot be reached, or the connection was lost."""

    http_status = 503


class ServerDatabaseError(StoreError):
    """Only a database file can do that; the hint says what does it on a database server."""

    http_status = 400


class DatabaseReplacedError(StoreError):
    """The file that was opened is not at its path any more; nothing is written to it."""

    http_status = 503


class NotADatabaseError(StoreError):
    """The file is something else."""


class MigrationRequiredError(StoreError):
    http_status = 503


class SchemaTooNewError(StoreError):
    http_status = 503


class DatabaseBusyError(StoreError):
    http_status = 503


class CorruptDatabaseError(StoreError):
    code = "database_corrupt"
    http_status = 503  # whose hint a client gets to see


class ReadOnlyError(StoreError):
    http_status = 403


class DiskFullError(StoreError):
    http_status = 507


class IngestError(QmdError):
    """One file that cannot become a document; ``reason`` is the word `qmd why` prints."""

    code = "unreadable_file"
    http_status = 400
    reason: ClassVar[str] = "unreadable"


class DecodeError(IngestError):
    code = "not_text"
    reason = "binary"


class FileTooLargeError(IngestError):
    reason = "too large"


class NotAPhotoError(IngestError):
    reason = "no photo"


class DamagedFileError(IngestError):
    """The file is not what its suffix says, or is damaged, or holds more than a file may."""

    reason = "damaged"


class EncryptedFileError(IngestError):
    reason = "encrypted"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The {name} is encrypted.", hint="Save a copy without a password, or leave it out."
        )


class MissingExtraError(IngestError):
    """A format needs a package that is not installed; the hint has the command."""

    reason = "format not installed"


class UnreadableFileError(IngestError):
    """The disk or the permissions say no."""


class FileVanishedError(UnreadableFileError):
    code = IngestError.code
    reason = "vanished"


class InferenceError(QmdError):
    """
    A model cannot do its work.

    ``quoted``: what of the message a model server wrote; it may repeat texts, so no log has it.
    """

    code = "inference_error"
    http_status = 503

    def __init__(self, message: str, *, hint: str | None = None, quoted: str = "") -> None:
        super().__init__(message, hint=hint)
        self.quoted = quoted

    @property
    def for_logs(self) -> str:
        """The message without what a server wrote."""
        return str(self).replace(self.quoted, "…") if self.quoted else str(self)


class ModelMissingError(InferenceError):
    """The model is not on this machine; the hint says how to get it."""


class ModelMismatchError(InferenceError):
    """The database holds vectors of another model."""


class VectorIndexMissingError(InferenceError):
    """``reason``: why it would not help to make them. Servers send what is ``prescribed``."""

    prescribed = "Vector index not found. Run 'qmd embed' first to create embeddings."

    def __init__(self, reason: str | None = None) -> None:
        message = "Vector index not found." if reason else self.prescribed
        super().__init__(message, hint=reason or "qmd embed")


class DocumentNotEmbeddedError(InferenceError):
    """The state of a document, not a failure: it is new or edited, or has no text."""

    http_status = 409

    def __init__(self, file: str, hint: str = "Run 'qmd embed' to make them.") -> None:
        super().__init__(engine_text("{file} has no vectors yet.", file=file), hint=hint)
        self.file = file


class VectorsUnavailableError(InferenceError):
    """sqlite-vec cannot be loaded here."""


class OcrUnavailableError(InferenceError):
    """The text in pictures cannot be read here."""


class NativeCallsRefusedError(InferenceError):
    """The server of the language model takes no tools."""


class TransientInferenceError(InferenceError):
    """``retry_after_s``: for how long whoever failed asks to be left alone, if it says."""

    code = "inference_failed"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        quoted: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint, quoted=quoted)
        self.retry_after_s = retry_after_s


class PluginError(QmdError):
    code = "plugin_failed"
    http_status = 503  # whose message a client gets to see


class RemoteError(QmdError):
    """What the server answered; ``code`` is that of its error, if it names one."""

    def __init__(self, message: str, hint: str | None, code: str) -> None:
        super().__init__(message, hint=hint)
        self.code = code or QmdError.code
