"""The endpoints that take the folders of other machines, for ``qmd server push``."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from qmd.errors import ConflictError, InputError, WritesForbiddenError
from qmd.operations.definition import operation
from qmd.server.endpoints.definition import Call
from qmd.values.facts import Describe, InSchema, Range
from qmd.values.transfer import MAX_FILES, Push, PushedFiles, PushReport, SentFile, SentPart

FAMILY = {
    "toolset": None,
    "command": None,
    "never_cut": True,
    "errors": (WritesForbiddenError, ConflictError),
}


@operation(group="push", route="GET /push/{name}", lane="bulk")
def pushed_files(
    call: Call,
    name: str,
    after: Annotated[str, Describe("The last path of the page before; none for the first")] = "",
) -> PushedFiles:
    """
    What the server has of a pushed folder.

    Files in the order of their paths. 403 unless the server has --push-folder.
    """
    return call.kb.pushed_files(name, after=after)


@dataclass(frozen=True, slots=True)
class EncodedPart:
    """A `SentPart` in a request."""

    sha256: Annotated[
        str, Describe("Of the whole file, in hex"), InSchema(pattern="^[0-9a-f]{64}$")
    ]
    content: Annotated[
        str,
        Describe("The bytes, in Base64"),
        InSchema(pattern="^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"),
    ]
    offset: Annotated[int, Range(0), Describe("Where in the file the part begins")] = 0

    def decoded(self) -> SentPart:
        try:
            content = base64.b64decode(self.content, validate=True)
        except (binascii.Error, ValueError):
            raise InputError(
                "The content of a part is no Base64.", hint="Encode its bytes in Base64."
            ) from None
        return SentPart(self.sha256, self.offset, content)


#: The hash of "abc".
_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@operation(
    group="push",
    route="POST /push/{name}",
    lane="write",
    bodies=(
        {
            "owner": "alice",
            "files": [{"path": "a.md", "bytes": 3, "mtime_ns": 1, "sha256": _ABC}],
        },
    ),
)
def push(
    call: Call,
    name: str,
    owner: Annotated[str, Describe("Whose folder it is, for people"), Field(max_length=200)],
    pattern: Annotated[str, Describe("Which files are documents")] = "**/*.md",
    files: Annotated[tuple[SentFile, ...], Field(max_length=MAX_FILES)] = (),
    parts: Annotated[tuple[EncodedPart, ...], Field(max_length=MAX_FILES)] = (),
    deleted: Annotated[
        tuple[str, ...], Describe("Paths that are gone"), Field(max_length=MAX_FILES)
    ] = (),
) -> PushReport:
    """
    One step of a push.

    Stores the parts, then the files that are complete, deletes, and indexes. needed lists content
    of which the server lacks parts: send these, and the files again.
    """
    decoded = tuple(each.decoded() for each in parts)
    return call.kb.push(name, Push(owner, pattern, files, decoded, tuple(deleted)))
