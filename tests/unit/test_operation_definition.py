"""What the declaration of an operation gets wrong is named."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from qmd.operations.definition import Replied, operation


@dataclass(frozen=True)
class Hubs:
    documents: tuple[str, ...]
    total: int


def hubs(kb: object) -> Hubs:
    return Hubs((), 3)


def test_a_misspelt_attribute_is_named() -> None:
    with pytest.raises(TypeError, match=r"^Operations have no haeding, lenes: hubs$"):
        operation(haeding="Hubs", lane="bulk", lenes=None)(hubs)


def test_a_misspelt_field_of_a_text_is_named_with_its_operation() -> None:
    declared = operation(heading="Hubs: {total:,}", when_empty="None of {totals}.")(hubs)
    replied = Replied(hubs(None), {})
    assert declared.sentence(declared.heading, replied) == "Hubs: 3"
    with pytest.raises(TypeError, match="no totals, which a text of hubs names"):
        declared.sentence(declared.when_empty, replied)
