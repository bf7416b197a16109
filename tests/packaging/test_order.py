"""Workers begin with the slow tests and end together."""

import pytest

from tests.support.order import slow_first


@pytest.mark.parametrize(
    ("tests", "workers", "order"),
    [
        ("aBcDefGh", 1, "BDGacefh"),
        ("aBcDefGh", 2, "BGacDefh"),
        ("aBcdefg", 2, "Bacdefg"),
        ("ABCDe", 2, "ACBDe"),
        ("ABC", 2, "ACB"),
        ("", 2, ""),
    ],
)
def test_each_worker_begins_with_its_share_of_the_slow_ones(tests: str, workers: int, order: str) -> None:
    assert "".join(slow_first(tests, str.isupper, workers)) == order
