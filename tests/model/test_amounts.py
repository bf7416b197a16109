"""Weighed sums in people's unit: what a document can give is printed as given, what is between is rounded up."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobtree.api.values.scalars import HOUR
from policies.caps.cap import amount, amounts
from tests.support.effort import examples

GPU_HOUR = HOUR * 1000


@pytest.mark.parametrize(
    ("value", "scale", "words"),
    [
        (24 * GPU_HOUR - GPU_HOUR // 10_000, GPU_HOUR, "23.9999"),
        (GPU_HOUR // 10_000, GPU_HOUR, "0.0001"),
        (24 * GPU_HOUR - 1, GPU_HOUR, "24"),
        (1, GPU_HOUR, "0.001"),
        (20 * GPU_HOUR, GPU_HOUR, "20"),
        (0, 1000, "0"),
        (1500, 1000, "1.5"),
    ],
)
def test_an_amount_in_words(value: int, scale: int, words: str) -> None:
    assert amount(value, scale) == words


@examples(100)
@given(st.integers(0, 10**9))
def test_a_limit_limitin_millionths_is_printed_as_given(millionths: int) -> None:
    limit = Decimal(millionths) / 10**6
    assert Decimal(amount(int(limit * 10**7), 10**7)) == limit


@examples(100)
@given(st.integers(0, 10**12), st.sampled_from([1000, GPU_HOUR, 10**6]))
def test_an_amount_is_at_least_what_it_counts_by_less_than_a_thousandth(value: int, scale: int) -> None:
    words = amount(value, scale)
    assert words[-1].isdigit()
    assert 0 <= Fraction(words) - Fraction(value, scale) < Fraction(1, 1000)


@examples(100)
@example([1, 2790])
@given(st.lists(st.integers(0, 10**12) | st.integers(24 * GPU_HOUR - 9, 24 * GPU_HOUR), max_size=4))
def test_amounts_in_one_sentence_are_the_same_only_where_they_are(values: list[int]) -> None:
    texts = dict(zip(values, amounts(values, GPU_HOUR), strict=True))
    assert sorted(texts) == sorted(texts, key=lambda value: Decimal(texts[value]))
    assert len({*texts.values()}) == len(texts)
