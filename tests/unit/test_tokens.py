"""The estimate of tokens: close to real tokenizers, and the sum of its lines."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.errors import InputError
from qmd.values.text import MIN_TOKENS, check_max_tokens, estimate_tokens, fitting_items

ENGLISH = (
    "When you connect to a database with the connection pool, each client waits until a "
    "connection is free. The pool closes connections that nobody has used for ten minutes, and "
    "opens new ones when the load grows. You can change both limits in the configuration file; "
    "restart the server afterwards, because it reads the file only once.\n"
)
CHINESE = (
    "备份数据库之前，请先停止写入。备份完成以后，检查文件的大小和校验和，然后把副本保存到另一台服务器上。"
    "如果需要恢复，先新建一个空的数据库，再导入备份文件，最后运行检查命令，确认所有记录都完整无缺。\n"
)
LINES = st.lists(st.text(st.characters(exclude_characters="\n\r")), max_size=5)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # Counted with the tokenizers of GPT-4o, Qwen 3, DeepSeek V3, Gemma 3, Llama 3, built-in.
        pytest.param(ENGLISH, (64, 64, 64, 65, 64, 76), id="English"),
        pytest.param(CHINESE, (65, 61, 56, 59, 62, 69), id="Chinese"),
    ],
)
def test_the_estimate_is_near_the_counts_of_real_tokenizers(
    text: str, tokens: tuple[int, ...]
) -> None:
    middle = math.sqrt(min(tokens) * max(tokens))
    assert estimate_tokens(text) == pytest.approx(middle, rel=0.15)


@given(LINES)
def test_the_estimate_of_a_text_is_the_sum_of_its_lines(lines: list[str]) -> None:
    lines = [f"{line}\n" for line in lines]
    assert estimate_tokens("".join(lines)) == pytest.approx(sum(map(estimate_tokens, lines)))


@given(st.text(), st.text())
def test_a_longer_text_has_no_fewer_tokens(one: str, other: str) -> None:
    assert estimate_tokens(f"{one}\n{other}") >= max(estimate_tokens(one), estimate_tokens(other))


def test_as_many_items_fit_as_their_sum_allows() -> None:
    assert fitting_items(["a", "bb", "ccc"], len, 0) == ([], 0)
    assert fitting_items(["a", "bb", "ccc"], len, 4) == (["a", "bb"], 1)
    assert fitting_items(["a", "bb", "ccc"], len, 100) == (["a", "bb", "ccc"], 94)


def test_no_item_is_read_behind_the_budget() -> None:
    def items() -> Iterator[str]:
        yield "a"
        yield "bbbbb"
        raise AssertionError("the budget was used up")

    assert fitting_items(items(), len, 2) == (["a"], 1)


def test_a_budget_too_small_for_an_answer_is_refused() -> None:
    check_max_tokens(None)
    check_max_tokens(MIN_TOKENS)
    with pytest.raises(InputError, match=f"at least {MIN_TOKENS} tokens, not 299"):
        check_max_tokens(MIN_TOKENS - 1)
