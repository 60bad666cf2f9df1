"""A value on the wire and back, by the facts of its annotations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import pytest

from qmd import Hit, SearchReply
from qmd.operations.texts import MCP, REST
from qmd.tools.schemas import output_schema, reply_model
from qmd.values.facts import Describe, Inline, Name, NotSent, OmitDefault, Range
from qmd.values.wire import from_wire, to_wire

HIT = Hit("#abc123", "notes/a/b.md", "B", 0.85, None, "1: x", 1, 0.5, "exact")


@dataclass(frozen=True, slots=True)
class Place:
    path: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """A value with one field of each kind."""

    kind: Literal["small", "large"]
    weight: Annotated[float, Range(0, 1), Describe("How heavy")]
    place: Annotated[Place, Inline()]
    all_parts: Annotated[tuple[Place, ...], Name("every_part")]
    secret: Annotated[str, NotSent()]
    note: Annotated[str | None, OmitDefault()] = None


@dataclass(frozen=True, slots=True)
class Parcel:
    """A value that sends properties too, and of the place only its line."""

    SENT: ClassVar[tuple[str, ...]] = ("label", "place", "weight")

    weight: int
    place: Annotated[Place, Inline("line")]

    @property
    def label(self) -> Annotated[str, Name("sticker"), Describe("What is written on it")]:
        return f"{self.weight} kg"


@dataclass(frozen=True, slots=True)
class Misspelt:
    place: Annotated[Place, Inline("street")]


SAMPLE = Sample("small", 0.5, Place("a", 3), (Place("b"),), "hush")


def test_a_value_is_sent_field_by_field() -> None:
    assert to_wire(SAMPLE) == {
        "kind": "small",
        "weight": 0.5,
        "path": "a",
        "line": 3,
        "every_part": [{"path": "b", "line": None}],
    }
    fields = list(Hit.__dataclass_fields__)
    assert list(to_wire(HIT)) == fields[: fields.index("anchor")]  # the rest only if it says more


def test_a_class_lists_what_it_sends_and_a_holder_which_fields_of_a_value() -> None:
    assert to_wire(Parcel(2, Place("a", 3))) == {"sticker": "2 kg", "line": 3, "weight": 2}
    schema = reply_model(Parcel).model_json_schema(mode="serialization")
    assert list(schema["properties"]) == ["sticker", "line", "weight"]
    assert schema["properties"]["sticker"]["description"] == "What is written on it"
    assert schema["required"] == ["sticker", "line", "weight"]


def test_a_field_that_a_value_lacks_is_an_error_when_the_reply_is_described() -> None:
    with pytest.raises(AttributeError, match="street"):
        reply_model(Misspelt)


def test_what_is_left_out_by_default_is_sent_when_it_is_set() -> None:
    assert to_wire(replace(SAMPLE, note="n"))["note"] == "n"


def test_names_are_in_the_case_of_the_face() -> None:
    assert "everyPart" in to_wire(SAMPLE, MCP.field)
    assert "every_part" in to_wire(SAMPLE, REST.field)


def test_what_was_sent_is_read_back() -> None:
    assert from_wire(Sample, to_wire(SAMPLE), secret="hush") == SAMPLE
    hits = (HIT, replace(HIT, explain={"bm25": 1}))
    reply = SearchReply("x", hits, "nothing", degraded="no vectors", needs_embedding=3)
    assert from_wire(SearchReply, to_wire(reply), query="x") == reply


def test_names_of_a_later_version_are_passed_over() -> None:
    assert from_wire(Hit, {**to_wire(HIT), "novelty": 1}) == HIT


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "medium"},
        {"weight": "heavy"},
        {"every_part": {}},
        {"every_part": [1]},
        {"path": None},
        {"line": "3"},
        {"note": 5},
    ],
)
def test_a_part_of_another_type_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        from_wire(Sample, {**to_wire(SAMPLE), **wrong}, secret="hush")


@pytest.mark.parametrize("sent", [None, [], "text", {}])
def test_something_else_is_refused(sent: object) -> None:
    with pytest.raises(ValueError):
        from_wire(Hit, sent)


def test_a_tool_describes_types_and_names_alone() -> None:
    assert output_schema(Sample, MCP, is_new=bool) == {
        "type": "object",
        "properties": {
            "kind": {"enum": ["small", "large"]},
            "weight": {"type": "number"},
            "path": {"type": "string"},
            "line": {"type": ["integer", "null"]},
            "everyPart": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "line": {"type": ["integer", "null"]},
                    },
                    "required": ["path", "line"],
                },
            },
            "isNew": {"type": "boolean"},
            "note": {"type": "string"},
        },
        "required": ["kind", "weight", "path", "line", "everyPart", "isNew"],
    }


def test_rest_describes_what_the_facts_say() -> None:
    schema = reply_model(Sample).model_json_schema(mode="serialization")
    assert schema["description"] == "A value with one field of each kind."
    assert schema["additionalProperties"] is False
    weight = {key: each for key, each in schema["properties"]["weight"].items() if key != "title"}
    assert weight == {"type": "number", "minimum": 0, "maximum": 1, "description": "How heavy"}
    assert schema["properties"]["note"]["default"] == ""
