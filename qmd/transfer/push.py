"""
Sends a folder of this machine to the server of a team, once or on each change.

As rsync does, files of equal size and time count as equal. Of the others the hash is sent first,
and the content only if the server lacks it. Each step is stored and indexed before the next one is
sent, so a push that is interrupted goes on where it was.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from qmd import errors
from qmd.ingest.keep.watch import ChangedPaths, WatchFactory
from qmd.ingest.read_file import read_file
from qmd.ingest.rules import Rules
from qmd.ingest.scan import ScannedFile, ScanSkip, scan
from qmd.system import http_client
from qmd.system.http_client import ProxyError
from qmd.values import Collection, Progress, ProgressCallback, transfer
from qmd.values.wire import from_wire, to_wire

#: Seconds that the server may take for one step: it indexes what it stores.
TIMEOUT_S = 300.0
MAX_REPLY_BYTES = 64 << 20
#: The most files of one folder on a server; a list that goes on is no list of files.
MAX_SERVER_FILES = 2_000_000
ValueT = TypeVar("ValueT")


class PushServer:
    """
    A qmd server that takes folders.

    Args:
        url: Its address, as 'qmd server' prints it; perhaps with a path, behind a proxy.
        token: What proves who pushes; None for a server without tokens.
        allow_plain_http: Send the token unencrypted to another machine.

    Raises:
        InputError: ``url`` is no address.
        ConfigError: The token would be sent unencrypted.
    """

    def __init__(self, url: str, token: str | None, *, allow_plain_http: bool = False) -> None:
        parts = _checked(url)
        if token and parts.scheme == "http" and not allow_plain_http:
            _require_this_machine(parts.hostname or "")
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def files(self, name: str) -> dict[str, transfer.PushedFile]:
        """What the server has of a folder, by path. Raises as `push`."""
        files: dict[str, transfer.PushedFile] = {}
        after = ""
        while True:
            address = f"/push/{quote(name)}?after={quote(after, safe='', errors='replace')}"
            page = self._value(transfer.PushedFiles, self._ask(address))
            files |= {file.path: file for file in page.files}
            if not page.more or not page.files:
                return files
            last = page.files[-1].path
            if last.split("/") <= after.split("/") or len(files) > MAX_SERVER_FILES:
                raise self._is_no_server("its list of files does not end")
            after = last

    def push(self, name: str, push: transfer.Push) -> transfer.PushReport:
        """
        Send one step of a push.

        Raises:
            ServerUnreachableError: There is no answer. The step may be sent again.
            WritesForbiddenError: The server takes no folders, or not this one from this token.
            ConflictError, InputError: As the server says.
        """
        parts = [
            {**to_wire(part), "content": base64.b64encode(part.content).decode("ascii")}
            for part in push.parts
        ]
        body = {**to_wire(push), "parts": parts}
        return self._value(transfer.PushReport, self._ask(f"/push/{quote(name)}", body))

    def _value(self, value_type: type[ValueT], reply: dict[str, Any]) -> ValueT:
        try:
            return from_wire(value_type, reply)
        except ValueError:  # its message may repeat all of the reply
            raise self._is_no_server(f"its reply is no {value_type.__name__}") from None

    def _is_no_server(self, reason: str) -> errors.QmdError:
        return errors.QmdError(
            f"What answers at {self.url} is no qmd server: {reason}.",
            hint="Give the address that 'qmd server' prints.",
        )

    def _ask(self, path: str, body: object = None) -> dict[str, Any]:
        headers = self._headers | ({} if body is None else {"Content-Type": "application/json"})
        try:
            with http_client.request(
                self.url + path,
                limit=http_client.TimeLimit(TIMEOUT_S, TIMEOUT_S),
                body=None if body is None else http_client.json_body(body),
                headers=headers,
            ) as reply:
                status, data = reply.status, reply.read(MAX_REPLY_BYTES)
        except (http_client.HttpError, ProxyError) as error:
            raise errors.ServerUnreachableError(
                f"The server {self.url} does not answer: {error}",
                hint="Is it running, and is the address right? What was sent before is stored.",
            ) from error
        return self._checked_reply(status, data)

    def _checked_reply(self, status: int, data: bytes) -> dict[str, Any]:
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict):
            raise self._is_no_server(f"status {status}")
        if status == 200:
            return reply
        message, _, hint = str(reply.get("detail", f"status {status}"))[:2000].partition("\n")
        raise _error_for(status)(f"The server says: {message}", hint=_hint(status, hint.strip()))


def _error_for(status: int) -> type[errors.QmdError]:
    return {
        400: errors.InputError,
        401: errors.ConfigError,
        403: errors.WritesForbiddenError,
        409: errors.ConflictError,
        413: errors.InputError,
        429: errors.ServerUnreachableError,
        502: errors.ServerUnreachableError,
        503: errors.ServerUnreachableError,
        504: errors.ServerUnreachableError,
    }.get(status, errors.QmdError)


def _hint(status: int, hint: str) -> str:
    """What to do here. The hint of a 401 is for people on the machine of the server."""
    if status == 401:
        return (
            "Put a token of that server into QMD_PUSH_TOKEN; its administrator makes one:"
            " qmd server token create NAME --push COLLECTION"
        )
    if status == 404:
        return "Is the address right, and the server of version 1.5 or newer?"
    return hint or "See the log of the server."


def _checked(url: str) -> Any:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or parts.username or parts.password:
        raise errors.InputError(
            f"Not the address of a server: {url[:200]}",
            hint="Give it as https://qmd.example.org or http://127.0.0.1:18765.",
        )
    return parts


def _require_this_machine(host: str) -> None:
    """Raises ConfigError if a host is another machine."""
    try:
        is_here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost" or host.endswith(".localhost")
    if not is_here:
        raise errors.ConfigError(
            f"The token would be sent to {host} unencrypted.",
            hint="Use https://, or --allow-plain-http in a network that you trust.",
        )


#: Files of one step. The server indexes them at once, and the next step waits for that.
BATCH_FILES = 500
#: Bytes of one part. A request has at most twice as many bytes, and a server takes 4 MB of Base64.
PART_BYTES = 1 << 20
#: Seconds after which all folders are compared again, whatever the system has reported.
COMPARE_S = 600.0
#: The shortest and the longest pause before an unreachable server is asked again, in seconds.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


@dataclass(slots=True)
class PushSummary:
    """
    What a push has done.

    Attributes:
        sent_bytes: The bytes of content that were sent.
        refused: Files that cannot be read or that the server does not take, with the reason.
        waiting: Files that changed while they were sent; the next push sends them.
    """

    collection: str
    stored: int = 0
    unchanged: int = 0
    deleted: int = 0
    sent_bytes: int = 0
    refused: list[transfer.RefusedFile] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)


class FolderPush:
    """
    Pushes one folder, as often as `run` is called.

    What the server has is asked once; later runs know it from what was sent.
    """

    def __init__(self, server: PushServer, folder: Collection, *, checksum: bool = False) -> None:
        """
        Args:
            folder: A folder of this machine, with the rules that say which files are pushed.
            checksum: Compare the content of all files, not their size and time.
        """
        self._server = server
        self.folder = folder
        self._checksum = checksum
        self._remote: dict[str, transfer.PushedFile] | None = None

    def run(self, progress: ProgressCallback = lambda tick: None) -> PushSummary:
        """
        Make the server's copy equal to the folder.

        Raises:
            NotFoundError, InputError: The folder cannot be read, or is empty and the copy is not.
            ServerUnreachableError and others: As `PushServer.push`.
        """
        summary = PushSummary(self.folder.name)
        local, unreadable = self._scan(summary)
        if self._remote is None:
            self._remote = self._server.files(self.folder.name)
        remote = self._remote
        gone = self._gone(remote, local, unreadable)
        changed = [file for file in local.values() if self._is_new(file, remote.get(file.path))]
        summary.unchanged = len(local) - len(changed)
        moves = _Moves(remote[path] for path in gone)
        for start in range(0, len(changed), BATCH_FILES):
            progress(Progress("push", start, len(changed), changed[start].path))
            self._send(changed[start : start + BATCH_FILES], moves, summary)
        left = [path for path in gone if path in remote]
        for start in range(0, len(left), transfer.MAX_FILES):
            self._step(summary, (), (), left[start : start + transfer.MAX_FILES])
        progress(Progress("push", len(changed), len(changed)))
        self._checksum = False  # the next run of a watch compares what has changed since
        return summary

    def _gone(
        self,
        remote: Mapping[str, transfer.PushedFile],
        local: Mapping[str, ScannedFile],
        unreadable: Sequence[str],
    ) -> list[str]:
        """What the server has and the folder has not. Raises InputError for an empty folder."""
        below = tuple(f"{folder}/" for folder in unreadable)
        gone = [path for path in remote if path not in local and not path.startswith(below)]
        if gone and not local:
            raise errors.InputError(
                f"{self.folder.path} has no files, but the server has {len(gone):,} of it.",
                hint="Is its disk mounted? To delete them, remove the collection on the server.",
            )
        return gone

    def forget(self) -> None:
        """Ask the server again at the next run: a step may have been lost on the way."""
        self._remote = None

    def _scan(self, summary: PushSummary) -> tuple[dict[str, ScannedFile], list[str]]:
        """The files to push by path, and the directories that cannot be read."""
        folder = self.folder
        rules = Rules(Path(folder.path), folder.pattern, folder.ignore)
        local: dict[str, ScannedFile] = {}
        unreadable: list[str] = []
        for item in scan(Path(folder.path), rules):
            if isinstance(item, ScanSkip) and item.reason == "symlink inside the collection":
                continue  # the file that it leads to is pushed under its own name
            if not isinstance(item, ScannedFile):
                summary.refused.append(transfer.RefusedFile(item.path, item.detail or item.reason))
                if item.is_directory:
                    unreadable.append(item.path)
            else:
                local[item.path] = item
        return local, unreadable

    def _is_new(self, file: ScannedFile, remote: transfer.PushedFile | None) -> bool:
        if remote is None or self._checksum:
            return True
        return (file.state.bytes, file.state.mtime_ns) != (remote.bytes, remote.mtime_ns)

    # -- sending -----------------------------------------------------------------------

    def _send(self, batch: Sequence[ScannedFile], moves: _Moves, summary: PushSummary) -> None:
        """Send the hashes of a batch, then the content that the server lacks."""
        files: dict[str, transfer.SentFile] = {}
        for file in batch:
            data = self._read(file, summary)
            if data is not None:
                digest = hashlib.sha256(data).hexdigest()
                old = moves.take(file)
                files[file.path] = transfer.SentFile(
                    file.path, len(data), file.state.mtime_ns, digest, old
                )
        if not files:
            return
        moved_from = [file.moved_from for file in files.values() if file.moved_from is not None]
        report = self._step(summary, files.values(), (), moved_from)
        needed = {each.sha256: each for each in report.needed}
        lacking = [file for file in files.values() if file.sha256 in needed]
        self._send_content({file.path: file for file in batch}, lacking, needed, summary)

    def _send_content(
        self,
        scanned: Mapping[str, ScannedFile],
        lacking: Sequence[transfer.SentFile],
        needed: dict[str, transfer.NeededContent],
        summary: PushSummary,
    ) -> None:
        """Send the content that the server lacks, and with it the files that it completes."""
        parts: list[transfer.SentPart] = []
        complete: list[transfer.SentFile] = []
        for sent in lacking:
            content = needed.pop(sent.sha256, None)
            for part in self._parts(scanned[sent.path], sent, content, summary):
                if (
                    parts
                    and sum(len(each.content) for each in parts) + len(part.content)
                    > 2 * PART_BYTES
                ):
                    self._step(summary, complete, parts)
                    parts, complete = [], []
                parts.append(part)
            complete.append(sent)
        if complete:
            self._step(summary, complete, parts)

    def _parts(
        self,
        scanned: ScannedFile,
        file: transfer.SentFile,
        content: transfer.NeededContent | None,
        summary: PushSummary,
    ) -> Iterator[transfer.SentPart]:
        """The content that the server lacks; none if another file of the batch has the same."""
        data = None if content is None else self._read(scanned, summary)
        if data is None or content is None:
            return
        for offset in range(content.offset, len(data), PART_BYTES):
            yield transfer.SentPart(file.sha256, offset, data[offset : offset + PART_BYTES])

    def _read(self, file: ScannedFile, summary: PushSummary) -> bytes | None:
        """The bytes of a file; None if it cannot be read or is gone."""
        try:
            return read_file(Path(self.folder.path), file.path, max_bytes=transfer.MAX_FILE_BYTES)[
                0
            ]
        except errors.UnreadableFileError as error:
            summary.refused.append(transfer.RefusedFile(file.path, str(error)))
        return None

    def _step(
        self,
        summary: PushSummary,
        files: Iterable[transfer.SentFile],
        parts: Sequence[transfer.SentPart],
        deleted: Sequence[str] = (),
    ) -> transfer.PushReport:
        """Send one step, and remember what the server has after it."""
        assert self._remote is not None
        sent = tuple(files)
        push = transfer.Push(
            self.folder.owner, self.folder.pattern, sent, tuple(parts), tuple(deleted)
        )
        report = self._server.push(self.folder.name, push)
        lacking = {each.sha256 for each in report.needed}
        refused = {each.path for each in report.refused}
        for file in sent:
            if file.sha256 not in lacking and file.path not in refused:
                self._remote[file.path] = transfer.PushedFile(file.path, file.bytes, file.mtime_ns)
            elif parts and file.path not in refused:
                summary.waiting.append(file.path)
        for path in deleted:
            self._remote.pop(path, None)
        summary.stored += report.stored
        summary.unchanged += report.unchanged
        summary.deleted += report.deleted
        summary.refused += report.refused
        summary.sent_bytes += sum(len(part.content) for part in parts)
        return report


class _Moves:
    """Files that are gone, one of which a new file of the same size and time may have been."""

    def __init__(self, gone: Iterable[transfer.PushedFile]) -> None:
        self._paths: dict[tuple[int, int], list[str]] = {}
        for file in gone:
            self._paths.setdefault((file.bytes, file.mtime_ns), []).append(file.path)

    def take(self, file: ScannedFile) -> str | None:
        """The path at which the file was before; None if there is none."""
        paths = self._paths.get((file.state.bytes, file.state.mtime_ns))
        if not paths:
            return None
        same_name = [path for path in paths if Path(path).name == Path(file.path).name]
        path = (same_name or paths)[0]
        paths.remove(path)
        return path


def follow(
    pushes: Sequence[FolderPush],
    notice: Callable[[str], None],
    *,
    changes: ChangedPaths | None = None,
) -> Iterator[PushSummary]:
    """
    Push folders as they change; yields what each push has done. It does not end by itself.

    Args:
        pushes: What has been pushed once.
        notice: Called with a sentence on each difficulty, such as a server that does not answer.
        changes: What gathers the changes; `ChangedPaths.wake` makes it compare all folders.

    Raises:
        NotFoundError, InputError: A folder cannot be read or watched.
        WritesForbiddenError, ConflictError: The server does not take a folder any more.
    """
    changes = changes or ChangedPaths()
    factory = WatchFactory(changes)
    try:
        for number, push in enumerate(pushes):
            _, reason = factory.start(replace(push.folder, id=number))
            if reason is not None:
                notice(reason)
        due = set(range(len(pushes)))  # they may have changed before the watches began
        pause_s = FIRST_PAUSE_S
        while True:
            for number in sorted(due):
                push = pushes[number]
                try:
                    yield push.run()
                except errors.ServerUnreachableError as error:
                    push.forget()
                    problem = str(error).rstrip(".")
                    notice(f"{problem}. It is tried again in {pause_s:.0f} s.")
                    break
                due.discard(number)
                pause_s = FIRST_PAUSE_S
            changed = changes.take(pause_s if due else COMPARE_S)
            if due:
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                due |= changed.keys()
            else:
                due = set(changed) or set(range(len(pushes)))
    finally:
        factory.close()
