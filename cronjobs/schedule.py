"""When the cycles of one command happen."""

import time
from collections.abc import Iterator


def times(at: int | None, every: int | None, span: int | None) -> Iterator[int]:
    """Unix seconds of the cycles: one, or one each ``every`` seconds for ``span`` seconds.

    With a start ``at`` the times are computed and nothing waits, as suits a state file, whose time is an input.
    Without, they are the clock's: each is yielded when it has come, and a cycle that took longer than ``every`` is
    followed at once by the next.
    """
    count = 1 if every is None or span is None else span // every + 1
    if at is not None:
        yield from (at + number * (every or 0) for number in range(count))
        return
    begun = time.monotonic()
    for number in range(count):
        wait = begun + number * (every or 0) - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        yield int(time.time())
