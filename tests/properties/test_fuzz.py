"""The short form of ``python -m tests.fuzz``: valid inputs changed by chance never do harm."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.__main__ import problem
from tests.fuzz.mutation import mutated
from tests.fuzz.targets import Target, parser_targets, server_targets

PARSER_INPUTS, SERVER_INPUTS = 80, 25


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def server(directory: Path) -> Iterator[dict[str, Target]]:
    with server_targets(directory / "server") as targets:
        yield targets


def wrongly_taken(targets: dict[str, Target], number: int) -> list[str]:
    """pytest-randomly seeds the generator, and prints the seed."""
    chance = random.Random(random.getrandbits(64))
    return [
        f"{name}: {data!r}\n{text}"
        for name, target in targets.items()
        for data in (mutated(chance, target.seeds) for _ in range(number))
        if (text := problem(target, data)) is not None
    ]


def test_parsers_take_inputs_that_are_nearly_right(directory: Path) -> None:
    assert wrongly_taken(parser_targets(directory), PARSER_INPUTS) == []


def test_a_server_takes_bodies_that_are_nearly_right(server: dict[str, Target]) -> None:
    assert wrongly_taken(server, SERVER_INPUTS) == []


def test_an_input_that_does_harm_is_told() -> None:
    def fail(data: bytes) -> None:
        raise ValueError(len(data))

    assert "ValueError" in (problem(Target((b"",), fail), b"x") or "")


def test_the_same_seed_gives_the_same_inputs() -> None:
    seeds = (b"# A note\n", b"[[link]]")
    one, two = random.Random(7), random.Random(7)
    assert [mutated(one, seeds) for _ in range(50)] == [mutated(two, seeds) for _ in range(50)]
