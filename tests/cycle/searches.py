"""Searches that go wrong in every way: ``python -m tests.cycle.searches WAY FD`` is a real planner process."""

import itertools
import os
import signal
import sys
from collections.abc import Iterator

from cronjobs import worker
from jobtree.world.plan import Plan, Solver
from jobtree.world.snapshot import Snapshot


def plan(number: int, at: int = 0) -> Plan:
    """The n-th plan of a search."""
    solver = Solver(name="", version="", options={})
    return Plan(jobtree="0.1.0", at=at, cycle=f"plan-{number}", snapshot="", policy="", solver=solver)


def _hang() -> None:
    for _ in itertools.count():
        signal.pause()


def _finishes(_snapshot: Snapshot, at: int) -> Iterator[Plan]:
    yield plan(1, at)
    yield plan(2, at)


def _hangs_at_once(_snapshot: Snapshot, _at: int) -> Iterator[Plan]:
    _hang()
    yield plan(1)


def _hangs_later(_snapshot: Snapshot, _at: int) -> Iterator[Plan]:
    yield plan(1)
    _hang()


def _is_slow(_snapshot: Snapshot, _at: int) -> Iterator[Plan]:
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    signal.sigwait({signal.SIGALRM})
    yield plan(1)
    _hang()


def _dies_at_once(_snapshot: Snapshot, _at: int) -> Iterator[Plan]:
    yield from ()
    os._exit(3)


def _is_killed_later(_snapshot: Snapshot, _at: int) -> Iterator[Plan]:
    yield plan(1)
    os.kill(os.getpid(), signal.SIGKILL)


def _raises(_snapshot: Snapshot, _at: int) -> Iterator[Plan]:
    yield from ()
    raise ValueError("no such\ncolumn")


def _has_nothing(_snapshot: Snapshot, _at: int) -> Iterator[Plan]:
    return iter(())


WAYS = {
    "finishes": _finishes,
    "hangs-at-once": _hangs_at_once,
    "hangs-later": _hangs_later,
    "is-slow": _is_slow,
    "dies-at-once": _dies_at_once,
    "is-killed-later": _is_killed_later,
    "raises": _raises,
    "has-nothing": _has_nothing,
}

if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    worker.main(WAYS[sys.argv[1]])
