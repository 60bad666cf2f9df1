"""
To a client with a scope, nothing outside its collections exists.

Two knowledge bases have the same open collections; one has a closed collection as well. Whatever a
client with a scope asks, by any face, both answer the same, and no answer names what is closed.
All requests are derived: from the protocols of the store, the endpoints, the tools and the routes.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import re
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, get_type_hints
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.routing import Route

import qmd.server.page
from qmd import KnowledgeBase, Settings
from qmd.errors import ProtocolError, QmdError, ScopeError, ServerDatabaseError
from qmd.kb.scoped import ScopedKnowledgeBase
from qmd.operations import texts
from qmd.server.app import build_app
from qmd.server.endpoints import ENDPOINTS
from qmd.server.endpoints.definition import RestEndpoint
from qmd.server.page import page_routes
from qmd.server.page.site import Site
from qmd.server.security import Security
from qmd.store.full_text import Combined, Phrase
from qmd.store.reader import MODULES, Reader
from qmd.store.sql.documents import Order
from qmd.store.sql.filters import Selection
from qmd.store.sql.models import StoredModel, WaitingChunk
from qmd.store.sql.properties import ObservationFilter, TaskFilter
from qmd.tools.arguments import input_schema
from qmd.tools.definition import Tool
from qmd.tools.toolsets import ALONE, select
from qmd.values import Collection, DocumentAnchor
from qmd.values.documents import NewFact
from qmd.values.location import ServerDatabase
from qmd.values.properties import PropertyCondition, parse_filter
from qmd.values.transfer import KeptChange, KeptRevision
from tests.support.embedder import HashEmbedder
from tests.support.postgres import PostgresServer
from tests.support.rest import client_of

T = TypeVar("T")

OPEN = {
    "work/plan.md": "---\nstatus: draft\ntags: [shared]\n---\n# Plan\n\nThe rocket is ready."
    " See [[todo]], [[zebra]] and [[nowhere]].\n",
    "work/todo.md": "# To do\n\n- [ ] fuel for the rocket\n\n#shared #work/open\n",
    "inbox/in.md": "# Inbox\n\nA letter about the rocket.\n",
}
CLOSED = {
    "closedroom/zebra.md": "---\nstatus: hushvalue\nhushkey: 7\naliases: [hushalias]\n"
    "tags: [shared, hushtag]\ndescription: hushdescription\n---\n# Zebraword\n\n"
    "The xylophonic zeppelin and the rocket. See [[plan]], [[hushlink]].\n\n## Hushheading\n",
    "closedroom/deep/other.md": "# Hushother\n\n" + "A rocket and a letter. " * 40,
    "closedroom/plan.md": "# Plan\n\nAnother plan of the zebraword.\n",
}
#: None of these may stand in any answer that was not asked with it.
SECRETS = ("closedroom", "zebraword", "xylophonic", "hush", "zeppelin", "closedfolder")
#: What a client tries.
TRIED = (
    "closedroom",
    "closedroom/zebra.md",
    "zebra",
    "zebrawort",
    "xylophonic",
    "xylofonic",
    "hushtag",
    "hushkey:7",
    "hushalias",
    "rocket",
    "work/plan.md",
)
#: What a client tries with each endpoint, tool and page.
FEW = ("closedroom", "closedroom/zebra.md", "zebrawort", "hushkey:7", "rocket", "work/plan.md")


@dataclass(frozen=True)
class Place:
    """A knowledge base, the part of it that a client sees, and the client's token."""

    root: Path
    kb: KnowledgeBase
    part: ScopedKnowledgeBase
    token: str
    client: httpx.Client

    def plain(self, answer: object) -> str:
        """An answer without what differs between two runs: places, times and random values."""
        text = answer if isinstance(answer, str) else repr(answer)
        text = text.replace(str(self.kb.location), "DATABASE").replace(str(self.root), "ROOT")
        text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?", "TIME", text)
        text = re.sub(r"[0-9a-f]{32}\.[0-9a-f]{64}", "FORM", text)
        text = re.sub(r"\d+(\.\d+)? ?m?s\b|\d+ calls?\b", "SPAN", text)
        text = re.sub(r"just now|\d+ (minute|hour)s? ago", "AGO", text)
        text = re.sub(r"\d\d:\d\d:\d\d", "TIME", re.sub(r"(\.\d{8})\d+", r"\1", text))
        text = re.sub(r"<rect [^>]*>|(rest|page|mcp)-[0-9a-f]{8}", "OWN", text)
        # Two calls that end at the same time are listed in any order.
        text = re.sub(r"<td><code>\w+</code></td>", "CALL", text)
        text = re.sub(
            r'<td>(ok|\d+ hits?|<span class="bad-text">error</span>)</td>', "RESULT", text
        )
        return re.sub(r"0x[0-9a-f]+", "ADDRESS", text)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name.replace("closedroom/", "closedfolder/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(1_700_000_000_000_000_000,) * 2)


def make(root: Path, stack: ExitStack, location: Path | ServerDatabase, *, closed: bool) -> Place:
    write(root, OPEN)
    # No note can have this name: what is tried writes nothing, and so both places stay alike.
    settings = Settings(embedder=HashEmbedder(), inbox="inbox/a:b")
    kb = stack.enter_context(KnowledgeBase.open(location, settings, create=True))
    for name in ("work", "inbox"):
        kb.add_collection(root / name, name=name)
    kb.index()
    kb.add_context("qmd://work", "what we work on")
    if closed:
        write(root, CLOSED)
        kb.add_collection(root / "closedfolder", name="closedroom")
        kb.index()
        kb.add_context("qmd://closedroom", "hushcontext")
        kb.edit_note("closedroom/zebra.md", lambda text: text + "\nhushedit\n")
    kb.embed()
    created = kb.create_token("narrow", read=["work"], write=["inbox"])
    scope = kb.scope_of_token(created.token)
    assert scope is not None
    app = build_app(kb, security=Security(token="admin"))
    client = stack.enter_context(client_of(app))
    client.headers["authorization"] = f"Bearer {created.token}"
    return Place(root, kb, ScopedKnowledgeBase(kb, scope), created.token, client)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def places(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Place, Place]]:
    """Without and with the closed collection, in each engine."""
    with ExitStack() as stack:
        both = []
        for name in ("open", "both"):
            root = tmp_path_factory.mktemp(name)
            location: Path | ServerDatabase = root / "index.sqlite"
            if request.param == "postgres":
                server: PostgresServer = request.getfixturevalue("postgres_server")
                location = server.migrated()
            both.append(make(root, stack, location, closed=name == "both"))
        yield both[0], both[1]


#: With PostgreSQL every night: above the store is the same code, and tools are called with both.
mostly_sqlite = pytest.mark.parametrize(
    "places", ["sqlite", pytest.param("postgres", marks=pytest.mark.nightly)], indirect=True
)


def few(places: tuple[Place, Place]) -> tuple[str, ...]:
    """What a client tries; with PostgreSQL two of it, see above."""
    return FEW if isinstance(places[0].kb.location, Path) else ("closedroom/zebra.md", "rocket")


def told(answer: str, asked: str) -> list[str]:
    """The secrets that an answer tells, besides those that were asked with."""
    low = answer.lower()
    return [secret for secret in SECRETS if secret in low and secret not in asked.lower()]


def compare(places: tuple[Place, Place], asked: str, ask: Callable[[Place], object]) -> None:
    """Both places answer the same, and the answer tells no secret."""
    without, with_closed = (place.plain(ask(place)) for place in places)
    assert told(with_closed, asked) == [], (asked, with_closed[:2000])
    assert with_closed == without, asked


# --- the store ---------------------------------------------------------------------


def argument(kind: Any, name: str, text: str, reader: Reader) -> Any:
    """A value for a parameter of a method of the store, by its type and name."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    shown = str(kind)
    if name in ("progress", "version_of"):
        return None
    if "Selection" in shown:
        return reader.all_documents
    if "Expression" in shown or "Phrase" in shown:
        return Phrase("rocket")
    if kind is Collection:
        return reader.collections.all()[0]
    if kind is Order:
        return Order("title")
    if kind is PropertyCondition:
        return parse_filter("task:open")[0]
    if kind is TaskFilter:
        return TaskFilter(("open",), [text])
    if kind is ObservationFilter:
        return ObservationFilter(None, text)
    if kind is WaitingChunk:
        return WaitingChunk(1, b"", "9999", 1)  # before all documents
    if "StoredModel" in shown:
        return reader.models.active()
    if "NDArray" in shown or kind is Any:
        return np.full(384, 384**-0.5, np.float32)
    if origin is typing.Literal:
        return args[0]
    if kind is int:
        return 4 if name.endswith("id") or name == "number" else 50  # 4 is a closed document
    if kind is bool:
        return False
    if kind is str:
        return text
    if kind is bytes:
        return b"12345678"
    if kind is float:
        return 1.0
    inner = [each for each in args if each is not type(None) and each is not Ellipsis]
    if origin is not None and type(None) in args:
        return argument(inner[0], name, text, reader)
    if origin is not None and inner:
        if inner[0] is int:
            return list(range(1, 60))
        return [argument(inner[0], name, text, reader)]
    raise LookupError(f"{name}: {kind}")


#: What modules of the store import for type checkers only.
NAMES = {
    "np": np,
    "NDArray": NDArray,
    "Phrase": Phrase,
    "Combined": Combined,
    "DocumentAnchor": DocumentAnchor,
    "KeptChange": KeptChange,
    "KeptRevision": KeptRevision,
    "Selection": Selection,
    "StoredModel": StoredModel,
}


def capabilities() -> list[tuple[str, str]]:
    return [
        (name, each)
        for name in Reader.__annotations__
        for each in vars(capability_class(name))
        if not each.startswith("_")
    ]


def capability_class(name: str) -> type:
    """What a type checker takes for the attribute of a reader."""
    place = name if name == "full_text" else f"sql.{MODULES.get(name, name)}"
    module = importlib.import_module(f"qmd.store.{place}")
    kind: type = getattr(module, Reader.__annotations__[name])
    return kind


#: What belongs to no collection.
UNLIKE = {("full_text", "frequencies")}


@pytest.mark.parametrize(("capability", "method"), capabilities())
def test_no_method_of_the_store_tells_of_closed_collections(
    places: tuple[Place, Place], capability: str, method: str, tmp_path: Path
) -> None:
    if (capability, method) == ("upkeep", "copy_to"):
        pytest.skip("a copy is for the administrator, see below")
    function = getattr(capability_class(capability), method)
    if isinstance(function, property):
        function = function.fget
    hints, parameters = dict[str, Any](), list[inspect.Parameter]()
    if callable(function):
        module = vars(sys.modules[function.__module__])
        # Some modules mean the abstract class of this name, others import ours for checks alone.
        hints = get_type_hints(function, {"Collection": Collection, **module, **NAMES})
        parameters = list(inspect.signature(function).parameters.values())[1:]

    def arguments(reader: Reader, text: str) -> dict[str, Any]:
        return {
            each.name: argument(hints[each.name], each.name, text, reader) for each in parameters
        }

    with places[0].part._store.reading() as reader:
        takes_text = "zebrawort" in repr(arguments(reader, "zebrawort"))
    for tried in (*TRIED, "ROOT/closedfolder/zebra.md") if takes_text else TRIED[:1]:

        def ask(place: Place, tried: str = tried) -> object:
            with place.part._store.reading() as reader:
                values = arguments(reader, tried.replace("ROOT", str(place.root)))
                try:
                    answer = getattr(getattr(reader, capability), method)
                    answer = answer(**values) if callable(answer) else answer
                    return list(answer) if isinstance(answer, Iterator) else answer
                except QmdError as error:
                    return error.with_hint
                except (TypeError, AssertionError, LookupError, StopIteration) as error:
                    return type(error)  # for an id that does not exist

        if (capability, method) in UNLIKE:
            assert told(places[1].plain(ask(places[1])), tried) == []
        else:
            compare(places, tried, ask)


# --- the library and the faces -----------------------------------------------------


#: Public methods and properties of the knowledge base that are for the administrator alone.
CLOSED_METHODS = """
    add_collection add_context audit backup backup_older change_collection cleanup copy_to
    count_unread_pictures create_token describe_photo doctor embed embed_texts
    embed_texts_with_tokens export follow images import_conversations import_export
    import_folders include_collection index index_before_keeping is_valid_scope keep models ocr
    open overlap_notice photo_metadata plan_import plugins posts preview_collection
    record_import remove_collection remove_context rename_collection rescue restore
    restore_removed revoke_token scope_of_token summary takes_pushes tokens unpack_notes update
    why_none
"""


def test_what_is_not_open_to_every_client_is_refused(places: tuple[Place, Place]) -> None:
    """A new method of the knowledge base is refused until somebody opens it."""
    refused = set()
    for name in filter(lambda name: not name.startswith("_"), dir(KnowledgeBase)):
        try:
            getattr(places[1].part, name)
        except ScopeError:
            refused.add(name)
        except ServerDatabaseError:
            assert name == "path"  # it is open, and this database has none
    assert refused == set(CLOSED_METHODS.split()), (
        "mark a new method with @open_to_scopes if all it reads comes from self._store and all it"
        " writes passes self._writer; one for the administrator stands in CLOSED_METHODS"
    )


def test_no_open_method_uses_a_closed_one(places: tuple[Place, Place]) -> None:
    """A face would answer 403 to every client if one of these needed a method that is not open."""
    part = places[1].part
    for method in ("status", "overview", "freshness", "collections", "contexts", "count_warned"):
        getattr(part, method)()


def test_the_whole_store_cannot_be_written(places: tuple[Place, Place]) -> None:
    store = places[1].part._store
    with pytest.raises(ScopeError):
        store.write(lambda writer: writer.collections.remove("work"))
    with pytest.raises(ScopeError):
        store.write(lambda writer: writer.documents.count())


def test_a_token_opens_its_collections_over_http(places: tuple[Place, Place]) -> None:
    # Both places are called alike: a page lists the latest calls, and another test compares it.
    for place, documents in zip(places, (3, 6), strict=True):
        client = place.client
        hits = client.post("/search", json={"query": "rocket"}).json()["results"]
        assert {each["file"] for each in hits} == {"work/plan.md", "work/todo.md", "inbox/in.md"}
        assert client.get("/status").json()["total_documents"] == 3
        admin = {"authorization": "Bearer admin"}
        assert client.get("/status", headers=admin).json()["total_documents"] == documents


def test_what_a_client_remembers_is_its_own(tmp_path: Path) -> None:
    with ExitStack() as stack:
        place = make(tmp_path, stack, tmp_path / "index.sqlite", closed=True)
        place.kb.remember(NewFact("The zeppelin is xylophonic", "Zebraword"))
        noted = place.client.post("/remember", json={"about": "Zebraword", "fact": "A rocket"})
        assert noted.json()["file"] == "inbox/memory/Zebraword.md"
        assert "others" not in noted.json()
        recalled = place.client.get("/recall", params={"about": "Zebraword"}).json()
        assert [each["text"] for each in recalled["facts"]] == ["A rocket"]
        assert place.part.recall("xylophonic").facts == ()
        for about in ("Plan", "work/plan.md"):
            refused = place.client.post("/remember", json={"about": about, "fact": "A rocket"})
            assert refused.status_code == 403, refused.text
        writers = {each.actor for each in place.kb.audit() if each.action == "remember"}
        assert writers == {"narrow", ""}


@pytest.mark.parametrize("token", ["qmd_wrong", "qmd_", "other"])
def test_another_token_is_refused(places: tuple[Place, Place], token: str) -> None:
    for place in places:
        answer = place.client.get("/status", headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == 401
        assert "not valid" in answer.json()["detail"]
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def value_of(schema: dict[str, Any], text: str) -> Any:
    """A value for an argument by its JSON schema: ``text`` wherever a text may stand."""
    schema = next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    kind = schema.get("type", "string")
    if kind == "array":
        return [value_of(schema.get("items", {}), text)]
    if kind == "object":
        return {}
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 1), min(20, schema.get("maximum", 20)))
    return False if kind == "boolean" else text


def arguments_of(schema: dict[str, Any], text: str) -> Iterator[dict[str, Any]]:
    """The required arguments; then each other text in addition to them."""
    properties = schema.get("properties", {})
    required = {name: value_of(properties[name], text) for name in schema.get("required", ())}
    yield required
    for name, each in properties.items():
        value = value_of(each, text)
        if name not in required and text in (value, *(value if isinstance(value, list) else ())):
            yield {**required, name: value}


def without_repeats(requests: list[T]) -> list[T]:
    """Where a text has no place in what is asked, all texts make the same request."""
    return list({repr(each): each for each in requests}.values())


#: It writes whatever it is called with; see `test_what_a_client_remembers_is_its_own`.
REMEMBER = "remember"


@mostly_sqlite
@pytest.mark.parametrize(
    "endpoint",
    [each for each in ENDPOINTS if each.operation.path != f"/{REMEMBER}"],
    ids=lambda endpoint: endpoint.name,
)
def test_no_endpoint_tells_of_closed_collections(
    places: tuple[Place, Place], endpoint: RestEndpoint
) -> None:
    schemas = [input_schema(each) for each in (endpoint.query, endpoint.body) if each]
    requests = [
        (re.sub(r"\{\w+\}", quote(text), endpoint.operation.path), query, body)
        for text in few(places)
        for query in arguments_of(schemas[0], text)
        for body in (arguments_of(schemas[-1], text) if endpoint.body else (None,))
    ]
    for path, query, body in without_repeats(requests):

        def ask(place: Place, path: str = path, query: Any = query, body: Any = body) -> str:
            answer = place.client.request(endpoint.operation.method, path, params=query, json=body)
            assert answer.status_code < 500, answer.text
            return f"{answer.status_code} {answer.text}"

        compare(places, f"{path} {query} {body}", ask)


@pytest.mark.parametrize(
    "tool",
    [
        *{tool.name: tool for tool in select().tools if tool.name != REMEMBER}.values(),
        *select(sorted(ALONE)).tools,
    ],
    ids=lambda tool: f"{tool.name}",
)
def test_no_tool_tells_of_closed_collections(places: tuple[Place, Place], tool: Tool[Any]) -> None:
    schema = tool.input_schema()
    calls = [
        arguments
        for text in (*few(places), "ROOT/closedfolder/zebra.md")
        for arguments in arguments_of(schema, text)
        # The two places have other paths, whose words a search would compare.
        if not ("ROOT" in text and "query" in arguments)
    ]
    for arguments in without_repeats(calls):

        def ask(place: Place, arguments: Any = arguments) -> str:
            own = json.loads(json.dumps(arguments).replace("ROOT", str(place.root)))
            try:
                reply = tool.call(place.part, own, texts.MCP)
            except ProtocolError as error:
                return str(error)
            return f"{reply}"

        compare(places, json.dumps(arguments), ask)


@functools.cache
def query_names() -> list[str]:
    """The parameters that views of the page read from addresses and forms."""
    folder = Path(qmd.server.page.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    return sorted(set(re.findall(r"(?:query_params|form)[\w.()]*\.get\(\s*\"(\w+)\"", source)))


def pages() -> list[Route]:
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        kb = stack.enter_context(KnowledgeBase.open(f"{folder}/index.sqlite", create=True))
        routes = [each for each in page_routes(Site(kb)) if isinstance(each, Route)]
        return [each for each in routes if "GET" in (each.methods or ())]


@mostly_sqlite
@pytest.mark.parametrize("page", pages(), ids=lambda route: route.path)
def test_no_page_tells_of_closed_collections(places: tuple[Place, Place], page: Route) -> None:
    if page.path.endswith("/events"):
        pytest.skip("a stream of a conversation, of which there is none")
    requests = [
        (re.sub(r"\{[\w:]+\}", quote(text), page.path), parameters)
        for text in few(places)
        for parameters in ({}, {name: text for name in query_names() if name != "lang"})
    ]
    for path, parameters in without_repeats(requests):

        def ask(place: Place, path: str = path, parameters: Any = parameters) -> str:
            answer = place.client.get(path, params=parameters, follow_redirects=False)
            assert answer.status_code < 500, answer.text
            if answer.headers.get("content-type", "").startswith("text/"):
                # The charts draw how often and how fast the client has asked.
                shown = answer.text if "charts" not in path else told(answer.text, "")
                return f"{answer.status_code} {shown}"
            return str(answer.status_code)

        compare(places, f"{path} {parameters}", ask)
