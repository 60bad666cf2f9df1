"""
Writes docs/rest.md from the description of the REST face, and from replies to its examples.

Run ``.venv-tests/bin/python docs/generate_rest.py`` after changing an endpoint; a test fails when
it is stale.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

from qmd import KnowledgeBase
from qmd.operations.error_meanings import MEANINGS
from qmd.server import openapi
from qmd.server.app import exception_handlers
from qmd.server.rest import rest_routes

DOCUMENT = Path(__file__).with_name("rest.md")
EXAMPLE = Path(__file__).with_name("example")

INTRODUCTION = """\
# REST

<!-- generated: docs/generate_rest.py -->

`qmd server` answers HTTP requests on port 18765 of this machine: JSON in, JSON out.
[server.md](server.md) says how to start and protect the server. `GET /openapi.json` describes every
field for programs, and `GET /` shows a person what is running. For types of
TypeScript: `npx openapi-typescript --default-non-nullable=false URL`; without this option each
argument with a default is a required one.

- A body is a JSON object with `Content-Type: application/json` and at most 4 MiB; otherwise the
  answer is 415 or 413. An unknown name is refused, with a list of the valid names. For an optional
  argument, `null` and a blank string count as absent (but a blank `if_docid` is refused).
- A text may have at most 16,384 characters and a list 100 items. A query may have 120,000
  characters, a list of names 200,000, the text of a context 10,000. If a value is too long, the
  answer is 400 and names the limit.
- `/embed` takes 1,000 texts of at most 32,000 characters each and 1,000,000 in all (413). Between
  the texts of a large request, other requests get their turn.
- Without a token, the server answers programs of the user who started it; on Linux, all others get
  403. With a token, it answers requests that send `Authorization: Bearer TOKEN` (others get 401).
  It also answers its own pages in a browser that was let in by the link of `qmd open`
  (`POST /open` creates the link).
- Every error is `{"detail": "…", "status_code": N}`, also for unknown routes and methods. A browser
  that requests a page gets the same text as a page. The header `Qmd-Error` has the code of an error
  that the engine names ([Errors](#errors)): programs decide by it, people read `detail`.
- Requests that change the index (`add`, `PUT`, `DELETE`, `/index`, `/update`) wait in one queue and
  never delay a search; with `--read-only` they get 403. `/collections/add` takes the absolute path
  of a directory below a write root: below the collections, the working directory, your home
  directory or the temporary directory, but in the last two nothing hidden.
- Eight reads run at once; of these, two may be `/multi_get`, which may read many documents.
- A read may take 30 seconds, an embedding 5 minutes, a change 10 minutes; then the work ends and
  the answer is 503. The work also ends when the client closes its connection, except that a write
  in progress is finished.
- If no hit seems to answer a query, `notice` is a sentence that says so
  ([search.md](search.md#scores)).
- `freshness` says how far the index is behind the disk and, if there are any, in `problems` what is
  wrong; `degraded` says which part of a search was not possible because a model is missing.
- `GET /events` is a stream of server-sent events: `added`, `updated`, `moved`, `removed` (of a
  document), `indexing`, `embedding` (progress), `synced`, `problem`. The event `missed` means that
  the client read too slowly and should request the whole state again.
"""

#: Run in this order against docs/example; the replies are shown.
EXAMPLES = (
    """curl localhost:18765/collections/add -H 'Content-Type: application/json' \\
  -d '{"name": "notes", "path": "/home/me/notes"}'""",
    """curl localhost:18765/contexts/add -H 'Content-Type: application/json' \\
  -d '{"path": "/home/me/notes", "text": "my notes"}'""",
    """curl localhost:18765/search -H 'Content-Type: application/json' \\
  -d '{"query": "sourdough starter", "limit": 1}'""",
    """curl localhost:18765/get -H 'Content-Type: application/json' \\
  -d '{"file": "notes/bread.md:3", "line_numbers": true}'""",
    "curl localhost:18765/collections/notes",
    "curl 'localhost:18765/documents?prefix=notes&limit=1'",
    "curl -X DELETE localhost:18765/contexts/%2Fhome%2Fme%2Fnotes",
    "curl localhost:18765/collections/nots",
)

_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


def document() -> str:
    """The whole of docs/rest.md."""
    described = openapi.document()
    parts = [INTRODUCTION, "\n## Endpoints\n"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if operation["tags"] != ["server"] or path in {"/health", "/events"}:
                parts.append(_endpoint(method.upper(), path, operation, described))
    parts.append(_errors())
    parts.append("\n## A session\n\nAs curl printed it, with line breaks added:\n")
    parts += [f"\n```console\n$ {command}\n{reply}\n```\n" for command, reply in session()]
    return "".join(parts)


def _endpoint(
    method: str, path: str, operation: Mapping[str, Any], described: Mapping[str, Any]
) -> str:
    schemas: Mapping[str, Any] = described["components"]["schemas"]
    about = f"{operation['summary']}. {operation['description']}".rstrip()
    lines = [f"\n### {method} {path}\n", f"{about}\n"]
    rows = [
        _row(each["name"], each["schema"], each.get("description", ""), required=each["required"])
        for each in operation.get("parameters", ())
        if each["in"] == "query"
    ]
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/json"]
        schema = schemas[content["schema"]["$ref"].rpartition("/")[2]]
        rows += [
            _row(name, each, each.get("description", ""), required=name in schema["required"])
            if "required" in schema
            else _row(name, each, each.get("description", ""), required=False)
            for name, each in schema["properties"].items()
        ]
    if rows:
        lines += ["| argument | type | default | |\n|---|---|---|---|", *rows, ""]
    (media,) = operation["responses"]["200"]["content"].items()
    kind, content = media
    if "$ref" in content["schema"]:
        schema = schemas[content["schema"]["$ref"].rpartition("/")[2]]
        required = schema.get("required", ())
        names = [
            f"`{name}`" + ("" if name in required else " (when there is one)")
            for name in schema["properties"]
        ]
        lines.append(f"Answers {', '.join(names)}.")
    else:
        lines.append(f"Answers `{kind}`.")
    listed = [_status(*each) for each in operation["responses"].items() if each[0] != "200"]
    lines.append(f"Errors: {', '.join(listed)}.\n")
    return "\n".join(lines)


def _status(status: str, response: Mapping[str, Any]) -> str:
    """A status, and the codes of the errors that the endpoint declares for it."""
    codes = response.get("headers", {}).get(openapi.CODE_HEADER, {}).get("schema", {})
    listed = ", ".join(f"`{code}`" for code in codes.get("examples", ()))
    return f"{status} ({listed})" if listed else status


def _errors() -> str:
    """A table of the errors whose codes clients get."""
    lines = [
        "\n## Errors\n",
        "The header `Qmd-Error` has one of these codes. An endpoint lists its own, beside those",
        "that any may send: `invalid_input`, `out_of_scope`, those of 503 and 507, and, if it",
        "writes, `outside_write_roots`, `read_only` and `writes_forbidden`. An error",
        "without a code is one of HTTP, such as 405, or one whose cause only the log has (500).\n",
        "| code | status | when | what to do |\n|---|---|---|---|",
    ]
    listed = sorted(MEANINGS.items(), key=lambda each: (each[0].http_status, each[0].code))
    lines += [
        f"| `{error.code}` | {error.http_status} | {meaning.when} | {meaning.remedy} |"
        for error, meaning in listed
    ]
    return "\n".join([*lines, ""])


def _row(name: str, schema: Mapping[str, Any], text: str, *, required: bool) -> str:
    kind = schema.get("type", "date")
    if isinstance(kind, list):
        kind = " or ".join(each for each in kind if each != "null")
    if required:
        default = "required"
    else:
        default = "" if "default" not in schema else f"`{json.dumps(schema['default'])}`"
    shown = text.replace("|", "\\|")
    return f"| `{name}` | {kind} | {default} | {shown} |"


# --- the examples --------------------------------------------------------------------


def session() -> list[tuple[str, str]]:
    """Each example with its reply, as they come from a server in this process."""
    found: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        notes = Path(scratch).resolve() / "notes"
        shutil.copytree(EXAMPLE, notes)
        with KnowledgeBase.open(Path(scratch) / "index.sqlite", create=True) as kb:
            app = Starlette(routes=rest_routes(kb), exception_handlers=exception_handlers())
            with TestClient(app, base_url="http://localhost:18765") as client:
                for command in EXAMPLES:
                    reply = ask(
                        client,
                        command.replace("/home/me/notes", str(notes)).replace(
                            "%2Fhome%2Fme%2Fnotes", str(notes).replace("/", "%2F")
                        ),
                    )
                    found.append((command, shown(reply, str(notes))))
    return found


def ask(client: TestClient, command: str) -> Any:
    """Send what the curl command would send; the reply as JSON."""
    method, url, data, headers = "GET", "", None, {}
    words = iter(shlex.split(command.replace("\\\n", " "))[1:])
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            method, data = "POST", next(words)
        else:
            url = f"http://{word}"
    return client.request(method, url, content=data, headers=headers).json()


def shown(reply: Any, notes: str) -> str:
    text = json.dumps(reply, ensure_ascii=False, indent=1)
    return _TIME.sub("2026-03-01T09:00:00.000Z", text.replace(notes, "/home/me/notes"))


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
