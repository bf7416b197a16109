"""Python's garbage collector: it walks over all objects there are, to find those that refer to one another in circles.

A snapshot is hundreds of thousands of objects, and has no circles: each walk is in vain, and takes a sizeable part of a
cycle.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """For work that makes hundreds of thousands of objects and no circles of them: each walk would be in vain.

    So would be the one that is due once it is over: what is there by then counts as old.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.unfreeze()
            gc.enable()


@contextmanager
def collected_at_times() -> Iterator[Callable[[], object]]:
    """For long work that makes circles: a walk, whenever the caller asks, over what has been made since it began."""
    with collector_paused():
        gc.freeze()
        yield gc.collect


def forget_circles() -> None:
    """Walk never again over what is there now, be it by the collector or at Python's end: it goes with the process."""
    gc.freeze()
