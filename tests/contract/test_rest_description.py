"""The description of the REST face is the reviewed one, and schemathesis finds no lie in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.applications import Starlette
from starlette.testclient import TestClient
from support.embedder import HashEmbedder
from support.golden import assert_golden
from support.vault import make_vault

from qmd import KnowledgeBase, Settings
from qmd.server import openapi
from qmd.server.app import build_app

DOCUMENT = json.loads(openapi.document_json())

# A stream that never ends cannot be asked this way; test_rest_events.py asks it.
OPERATIONS = {
    operation.label: operation
    for operation in (
        found.ok()
        for found in schemathesis.openapi.from_dict(deepcopy(DOCUMENT)).get_all_operations()
    )
    if operation.path not in ("/events", "/chats/{chat}/events")
}

# Random values name nothing that is there, and would only ever see the way a search fails.
KNOWN = {
    "query": "islands OR 数据库",
    "collection": "notes",
    "file": "notes/2025/plan.md",
    "pattern": "notes/**",
    "prefix": "notes/2025",
}

TIMES = [
    f"2025-11-25{time}{zone}"
    for time in ("T14:05", " 14:05:30", "T14:05:30.123", "T14:05:30.123456789")
    for zone in ("", "Z", "+08:00", "-05:30")
]

# What is right for these a description cannot tell: it depends on the disk, on several arguments
# together (generators of clients take no `anyOf`), or on how a note would be read.
BEYOND_SCHEMA = {
    "POST /collections/add",
    "POST /contexts/add",
    "POST /move_note",
    "POST /edit_note",
    "POST /undo",
    "POST /remember",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rest")


@pytest.fixture(scope="module")
def app(directory: Path) -> Iterator[Starlette]:
    """May make no folder a collection but those of this test: it could be this repository."""
    notes = make_vault(directory)
    database = directory / "index.sqlite"
    with KnowledgeBase.open(
        database, Settings(embedder=HashEmbedder(), write_roots=[directory]), create=True
    ) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        kb.embed()
        yield build_app(kb)


# To an operation that takes neither body nor query nothing wrong can be sent.
CASES = [
    pytest.param(label, mode, id=f"{label}-{mode.value}")
    for label, operation in OPERATIONS.items()
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or operation.body or operation.query
]


@pytest.mark.unmeasured
@pytest.mark.parametrize(("label", "mode"), CASES)
def test_whatever_is_asked_the_answer_is_as_described(
    label: str,
    mode: GenerationMode,
    app: Starlette,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(directory)  # where a path like "." leads
    operation = OPERATIONS[label]

    @settings(
        max_examples=settings().max_examples // 4,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), known=st.booleans())
    def ask(case: schemathesis.Case, known: bool) -> None:
        if known and mode is GenerationMode.POSITIVE:
            for values in (case.body, case.query):
                if isinstance(values, dict):
                    values.update({name: KNOWN[name] for name in KNOWN if name in values})
        excluded: list[Any] = [positive_data_acceptance] if label in BEYOND_SCHEMA else []
        response = case.call(app=app, base_url="http://localhost", allow_redirects=False)
        case.validate_response(response, excluded_checks=excluded)

    ask()


def schemas_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, dict | list):
            yield from schemas_in(child)


def test_generators_of_clients_can_read_the_description() -> None:
    """What openapi-python-client cannot read, and what Spectral calls errors."""

    for schema in schemas_in(DOCUMENT["components"]["schemas"]):
        assert schema.get("type") != "array" or "items" in schema, schema
        if "default" in schema and isinstance(schema.get("type"), str):
            assert schema["default"] is not None, schema
        if schema.get("type") == "object":
            assert "anyOf" not in schema, schema
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    for methods in DOCUMENT["paths"].values():
        assert all(set(operation["tags"]) <= tags for operation in methods.values())


def test_patterns_are_those_of_javascript_with_unicode() -> None:
    """Validators of JSON Schema compile them with the flag u, which knows no other escapes."""
    patterns = {
        each["pattern"] for each in schemas_in(DOCUMENT) if isinstance(each.get("pattern"), str)
    }
    assert len(patterns) > 10
    for pattern in patterns:
        for escaped in re.findall(r"\\(u[0-9a-f]{4}|x[0-9a-f]{2}|.)", pattern):
            assert len(escaped) > 1 or escaped in "^$\\.*+?()[]{}|/dDsSwWbBtnrvf-", pattern


@pytest.mark.parametrize("at", ["2025-11-25", *TIMES])
def test_a_time_that_the_server_takes_is_in_the_description(app: Starlette, at: str) -> None:
    request = DOCUMENT["components"]["schemas"]["CaptureRequest"]
    assert re.search(request["properties"]["at"]["pattern"], at)
    (since,) = (
        each
        for each in DOCUMENT["paths"]["/recent"]["get"]["parameters"]
        if each["name"] == "since"
    )
    assert re.search(since["schema"]["pattern"], at)
    with TestClient(app, base_url="http://localhost") as client:
        kept = client.post("/capture", json={"text": "A thought", "at": at})
        assert kept.status_code == 200, kept.text
        recent = client.get("/recent", params={"since": at})
        assert recent.status_code == 200, recent.text


def test_the_description_is_the_reviewed_one() -> None:
    assert_golden("openapi.json", DOCUMENT)
