"""The endpoints that take the folders of other machines, for ``qmd server push``."""

from __future__ import annotations

import base64
import binascii

from qmd.errors import InputError
from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, RestEndpoint
from qmd.values.pushes import Push, PushedFiles, PushReport, SentFile, SentPart


def _pushed_files(call: Call) -> PushedFiles:
    return call.kb.pushed_files(call.path["name"], after=call.arguments.after)


def _push(call: Call) -> PushReport:
    arguments: models.PushArguments = call.arguments
    push = Push(
        arguments.owner,
        arguments.pattern,
        tuple(SentFile(**file.model_dump()) for file in arguments.files),
        tuple(SentPart(each.sha256, each.offset, _bytes(each)) for each in arguments.parts),
        tuple(arguments.deleted),
    )
    return call.kb.push(call.path["name"], push)


def _bytes(part: models.SentPartArguments) -> bytes:
    try:
        return base64.b64decode(part.content, validate=True)
    except (binascii.Error, ValueError):
        raise InputError(
            "The content of a part is no Base64.", hint="Encode its bytes in Base64."
        ) from None


#: The hash of "abc".
_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
        method="GET",
        path="/push/{name}",
        name="pushed_files",
        group="push",
        summary="What the server has of a pushed folder",
        description="Files in the order of their paths. 403 unless the server has --push-folder.",
        query=models.PushedFilesArguments,
        reply=PushedFiles,
        run=_pushed_files,
        errors=(403, 409),
        lane="bulk",
    ),
    RestEndpoint(
        method="POST",
        path="/push/{name}",
        name="push",
        group="push",
        summary="One step of a push",
        description="Stores the parts, then the files that are complete, deletes, and indexes."
        " needed lists content of which the server lacks parts: send these, and the files again.",
        body=models.PushArguments,
        reply=PushReport,
        run=_push,
        errors=(403, 409),
        lane="write",
        examples=(
            {
                "owner": "alice",
                "files": [{"path": "a.md", "bytes": 3, "mtime_ns": 1, "sha256": _ABC}],
            },
        ),
    ),
)
