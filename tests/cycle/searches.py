"""Searches that go wrong in every way: ``python -m tests.cycle.searches WAY FD`` is a real planner process."""

import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import msgspec

from cronjobs import worker
from jobtree.world.plan import Plan, Solver
from jobtree.world.tables.snapshot import Snapshot
from planner import Planning as Real
from planner.search.incumbent import Incumbent

SOLVER = Solver(name="", version="", options={})


def plan(number: int, at: int = 0) -> Plan:
    """The plan of the n-th incumbent of a search."""
    return Plan(jobtree="0.1.0", at=at, cycle=f"plan-{number}", snapshot="", policy="", solver=SOLVER)


def incumbent(number: int) -> Incumbent:
    """The n-th incumbent of a search."""
    return Incumbent(starts=[(number, 0)], chunks=[], payments=[], stages=[], solver=SOLVER)


def _hang() -> None:
    for _ in itertools.count():
        signal.pause()


def _finishes() -> Iterator[Incumbent]:
    yield incumbent(1)
    yield incumbent(2)


def _hangs_at_once() -> Iterator[Incumbent]:
    _hang()
    yield incumbent(1)


def _hangs_later() -> Iterator[Incumbent]:
    yield incumbent(1)
    _hang()


def _nap(seconds: float = 0.4) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.sigwait({signal.SIGALRM})


def _is_slow() -> Iterator[Incumbent]:
    _nap()
    yield incumbent(1)
    _hang()


def _dies_at_once() -> Iterator[Incumbent]:
    yield from ()
    os._exit(3)


def _is_killed_later() -> Iterator[Incumbent]:
    yield incumbent(1)
    os.kill(os.getpid(), signal.SIGKILL)


def _raises() -> Iterator[Incumbent]:
    yield from ()
    raise ValueError("no such\ncolumn")


def _has_nothing() -> Iterator[Incumbent]:
    return iter(())


SEARCHES = {
    "finishes": _finishes,
    "hangs-at-once": _hangs_at_once,
    "hangs-later": _hangs_later,
    "is-slow": _is_slow,
    "dies-at-once": _dies_at_once,
    "is-killed-later": _is_killed_later,
    "raises": _raises,
    "has-nothing": _has_nothing,
    "is-slow-to-write": _finishes,
    "never-writes": _hangs_later,
    "cannot-write": _hangs_later,
}


def _cannot_write() -> None:
    raise ValueError("no words")


BEFORE_WRITING: dict[str, Callable[[], None]] = {
    "is-slow-to-write": partial(_nap, 2),
    "never-writes": _hang,
    "cannot-write": _cannot_write,
}


@dataclass
class Planning:
    """A search that goes one of the ways."""

    way: str
    at: int

    def incumbents(self) -> Iterator[Incumbent]:
        """What it finds."""
        return SEARCHES[self.way]()

    def finish(self, found: Incumbent) -> Plan:
        """What it makes of it."""
        BEFORE_WRITING.get(self.way, lambda: None)()
        ((number, _),) = found.starts
        return plan(number, self.at)


class Interrupted(Real):
    """The real planner, whose solver never comes back after the greedy incumbent."""

    def incumbents(self) -> Iterator[Incumbent]:
        """The first one alone."""
        yield next(super().incumbents())
        _hang()


class Lying(Real):
    """The real planner, whose incumbents after the greedy one come out as plans without their leases."""

    def incumbents(self) -> Iterator[Incumbent]:
        """The greedy one, and it again as a lie."""
        first = next(super().incumbents())
        yield first
        yield msgspec.structs.replace(first, solver=msgspec.structs.replace(first.solver, name="liar"))

    def finish(self, found: Incumbent) -> Plan:
        """The plan, or half of it."""
        made = super().finish(found)
        return msgspec.structs.replace(made, leases=[]) if found.solver.name == "liar" else made


def begin(way: str) -> Callable[[Snapshot, int], worker.Planning]:
    """What the process does with a request."""
    real: dict[str, Callable[[Snapshot, int], worker.Planning]] = {
        "real": Real,
        "interrupted": Interrupted,
        "lying": Lying,
    }
    return real.get(way, lambda _snapshot, at: Planning(way, at))


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    worker.main(begin(sys.argv[1]))
