"""In which order workers take tests: each begins with its share of the slow ones; all end together, on quick ones.

xdist's `worksteal` gives each worker an equal part of the list, and who is done takes from the end of another's part.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

Test = TypeVar("Test")


def slow_first(tests: Sequence[Test], is_slow: Callable[[Test], bool], workers: int) -> list[Test]:
    """The tests, otherwise in the order that they are given in; ``workers`` take equal parts of them."""
    slow = [test for test in tests if is_slow(test)]
    quick = iter([test for test in tests if not is_slow(test)])
    found: list[Test] = []
    for worker in range(workers):
        share, end = slow[worker::workers], (worker + 1) * len(tests) // workers
        found += share
        found += [test for _, test in zip(range(end - len(found)), quick, strict=False)]
    return found
