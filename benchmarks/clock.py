"""Wall time, CPU time and memory of this process."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec


class Span(msgspec.Struct, frozen=True):
    """A phase: seconds of wall time and of this process's CPU time, and its peak memory so far in MB."""

    wall: float
    cpu: float
    peak_mb: int


class Clock:
    """Spans by name, in the order in which they ended."""

    def __init__(self) -> None:
        self.spans: dict[str, Span] = {}

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Measure what is done inside."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        self.spans[name] = Span(round(wall, 3), round(cpu, 3), peak)
