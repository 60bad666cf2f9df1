"""Which tests coverage need not count."""

from __future__ import annotations

from tests.support import repeated


def test_a_test_is_left_out_if_two_that_stay_take_its_branches() -> None:
    taken: dict[str, set[object]] = {
        "dear": {1, 2},
        "cheap": {1, 2, 3},
        "dearer": {1},
        "twin": {1, 2, 4},
        "other twin": {4},
        "nearly free": {1},
    }
    costs = {"dearer": 3, "dear": 2, "cheap": 1, "nearly free": 0.01, "not counted": 1}
    assert repeated.repeated(taken, costs) == ["dear", "dearer"]


def test_each_name_is_that_of_a_test() -> None:
    for name in repeated.names():
        file, *_, function = name.split("::")
        text = (repeated.ROOT / file).read_text(encoding="utf-8")
        assert f"def {function}(" in text or function == "runTest", name
