"""The deadline, enforced from outside the solver: a planner process, and a parent that takes the best plan in time.

A solver that ignores its own time limit, hangs or crashes must not take the cycle with it. So the planner runs in a
child that hands out incumbents; when time is up the child is killed, and a fresh one makes the plan of the best of
them, marked ``truncated``.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Final

import msgspec

from cronjobs.frames import Frame
from jobtree.api import Refusal

if TYPE_CHECKING:
    from cronjobs.news import OnNews
    from cronjobs.wire import Request
    from jobtree.world.plan import Plan
    from jobtree.world.tables.snapshot import Snapshot

START_TIMEOUT: Final = 60
"""Seconds that a planner process may take to start before it counts as broken."""
GRACE: Final = 180
"""Seconds beyond the deadline that the first incumbent is waited for, and that the plan of a found one may take to be
written down, with the dates of thousands that wait where a machine is busy: a cycle without any plan helps nobody."""


KEPT: Final = 6
"""Incumbents beside the first and the best one that are kept, should the checker not pass the plan of the best."""


class _Short(msgspec.Struct, frozen=True):
    """What an incumbent starts, where, who pays, and by which solver, as it came: the rest are its certificates."""

    starts: msgspec.Raw
    chunks: msgspec.Raw
    payments: msgspec.Raw
    solver: msgspec.Raw

    @classmethod
    def of(cls, incumbent: bytes) -> tuple[bytes, ...]:
        """To be compared."""
        return tuple(bytes(part) for part in msgspec.structs.astuple(msgspec.msgpack.decode(incumbent, type=cls)))


@dataclass
class _Search:
    """A plan that was asked for, and what the process said: the plan, or its last incumbent, and any trouble.

    ``earlier``: those of other plans before it, the first and the last of them; ``found``: how many plans it has found.
    ``final``: that incumbent ended the search;
    ``over``: nothing more is to come; ``on_news``: hears of incumbents.
    """

    request: Request
    deadline: float
    grace: float
    on_news: OnNews
    asked: float = 0.0
    found: int = 0
    plan: bytes = b""
    incumbent: bytes = b""
    earlier: list[bytes] = field(default_factory=list)
    final: bool = False
    over: bool = False
    trouble: str = ""

    def left(self) -> float:
        """Seconds that it may still take; beyond the deadline for the first incumbent and the plan of the final one."""
        more = 0.0 if self.incumbent and not self.final else self.grace
        return max(0.0, self.asked + self.deadline + more - time.monotonic())

    def supersede(self, incumbent: bytes) -> None:
        """A better one has come, or the same plan with better bounds."""
        if not self.incumbent or _Short.of(self.incumbent) != _Short.of(incumbent):
            if self.incumbent:
                self.earlier = [*self.earlier[:1], *self.earlier[1:][-KEPT:], self.incumbent]
            self.found += 1
        self.incumbent = incumbent

    def fail(self, trouble: str) -> None:
        """Nothing more will come, and this is why."""
        self.over, self.trouble = True, trouble


class Planner:
    """A planner process, kept warm between plans and replaced where it had to be killed."""

    def __init__(self, command: tuple[str, ...] = (sys.executable, "-m", "cronjobs.worker")) -> None:
        """``command``: what starts the process; the number of its socket is appended."""
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._listens = False
        self._search: _Search | None = None
        self._answered: _Search | None = None

    @property
    def pid(self) -> int | None:
        """The process, None while there is none."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Starts the process and returns at once, so that its imports overlap with what the caller does next."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair()
        with theirs, _interrupt_held_back():
            self._process = subprocess.Popen(
                [*self._command, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # One thread: the plan must not depend on how a library splits its sums.
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,  # Ctrl-C is for the parent, which then ends this one
            )
        self._connection = Connection(ours.detach())

    def plan(
        self, snapshot: Snapshot, at: int, *, deadline: float, grace: float = GRACE, on_news: OnNews | None = None
    ) -> Plan:
        """`ask` and `answer` in one."""
        self.ask(snapshot, at, deadline=deadline, grace=grace, on_news=on_news)
        return self.answer()

    def ask(
        self, snapshot: Snapshot, at: int, *, deadline: float, grace: float = GRACE, on_news: OnNews | None = None
    ) -> None:
        """Has the process begin; the caller may do other work, and should `listen` now and then, before the `answer`.

        ``on_news``: called with a few words on each incumbent as it comes. Raises Refusal where the process does not
        start.
        """
        from cronjobs import wire  # loads Arrow, which is not to delay the start of the process

        self._begin(wire.Request.of(snapshot, at), deadline, grace, on_news or _nobody)

    def listen(self) -> None:
        """Takes what the process has said, without waiting: it cannot go on while much of that is unheard."""
        while self._hear(0.0):
            pass

    def answer(self) -> Plan:
        """The final plan asked for, or the best one at the deadline, marked truncated.

        Raises Refusal where there is no plan at all: the process failed, or had none even ``grace`` seconds later.
        """
        from cronjobs import news
        from exporters.plans import planjson

        found = self._answered = self._await()
        if found.plan:
            return planjson.decode(found.plan)
        if not found.incumbent:
            late = f"the planner had no plan {found.deadline + found.grace:g} s after it began"
            raise Refusal(found.trouble or late)
        found.on_news(news.LATE)
        return _truncated(self._finished(found, found.incumbent), found.trouble)

    def earlier(self, trouble: str) -> Iterator[Plan]:
        """Plans of the incumbents before the one that was answered last, the best first, marked truncated.

        For whoever cannot use the answer: ``trouble`` says why, which the plans then warn of. One that cannot be
        written down is passed over.
        """
        answered = self._answered
        assert answered is not None, "a plan was answered"
        for incumbent in reversed(answered.earlier):
            with suppress(Refusal):
                yield _truncated(self._finished(answered, incumbent), trouble)

    def _finished(self, found: _Search, incumbent: bytes) -> Plan:
        """The plan of an incumbent, written down by a fresh process. Raises Refusal where it cannot be."""
        from exporters.plans import planjson

        self._begin(msgspec.structs.replace(found.request, incumbent=incumbent), 0, found.grace, _nobody)
        finished = self._await()
        if finished.plan:
            return planjson.decode(finished.plan)
        late = f"the planner did not write down its best plan within {found.grace:g} s, so nothing is written"
        late += "; run it again"
        raise Refusal(finished.trouble or late)

    def _begin(self, request: Request, deadline: float, grace: float, on_news: OnNews) -> None:
        if self._search is not None:
            self.close()  # nobody wants that answer any more, and it is not to be taken for the new one
        self.start()
        search = _Search(request, deadline, grace, on_news)
        try:
            self._listening().send_bytes(msgspec.msgpack.encode(request))
        except (EOFError, ConnectionError):
            search.fail(f"the planner's process {self._death()}")
        search.asked = time.monotonic()
        self._search = search

    def _await(self) -> _Search:
        """What the process has said when its time is up; it is ended unless that is a plan."""
        search = self._asked()
        while self._hear(search.left()):
            pass
        self._search = None
        if not search.plan:
            self.close()
        return search

    def _hear(self, wait: float) -> bool:
        """Takes one frame, waiting so many seconds for it; False where none came or none is to come any more."""
        from cronjobs import news

        search, connection = self._asked(), self._connection
        assert connection is not None, "the process was started for it"
        if search.over:
            return False
        try:
            if not connection.poll(wait):
                return False
            frame = connection.recv_bytes()
        except (EOFError, ConnectionError):
            search.fail(f"the planner's process {self._death()}")
            return False
        kind, body = frame[:1], frame[1:]
        if kind == Frame.INCUMBENT:
            first = not search.incumbent
            search.supersede(body)
            search.on_news(news.FIRST if first else news.found(body, search.found))
        elif kind == Frame.FOUND:
            search.final = True
            search.on_news(news.WRITING)
        elif kind == Frame.PLAN:
            search.plan, search.over = body, True
        else:
            search.fail(f"the planner failed: {body.decode()}")
        return not search.over

    def _asked(self) -> _Search:
        assert self._search is not None, "a plan was asked for"
        return self._search

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._connection = self._process = self._search = None
        self._listens = False

    def _listening(self) -> Connection:
        """The connection, once the process has said that it listens."""
        assert self._connection is not None, "the process was started"
        if not self._listens:
            if not self._connection.poll(START_TIMEOUT):
                raise Refusal(f"the planner's process did not start within {START_TIMEOUT} s")
            self._listens = self._connection.recv_bytes() == Frame.READY
        return self._connection

    def _death(self) -> str:
        assert self._process is not None, "the process was started"
        code = self._process.wait(timeout=START_TIMEOUT)
        return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _nobody(_words: str) -> None:
    """Hears no news."""


@contextmanager
def _interrupt_held_back() -> Iterator[None]:
    """A process started within never sees SIGINT, not even while it imports; here it is delivered at the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _truncated(plan: Plan, trouble: str | None) -> Plan:
    from jobtree.world.plan import PlanWarning

    warnings = [PlanWarning(object=f"Plan {plan.cycle}", message=f"{trouble}; the best plan so far is used")]
    return msgspec.structs.replace(plan, truncated=True, warnings=plan.warnings + (warnings if trouble else []))


@cache
def planner() -> Planner:
    """The planner process of this program: started when first asked for, ended at exit."""
    shared = Planner()
    atexit.register(shared.close)
    return shared
