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
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Final

import msgspec

from cronjobs.frames import Frame
from jobtree.api import Refusal

if TYPE_CHECKING:
    from cronjobs.wire import Request
    from jobtree.world.plan import Plan
    from jobtree.world.snapshot import Snapshot

START_TIMEOUT: Final = 60
"""Seconds that a planner process may take to start before it counts as broken."""
GRACE: Final = 60
"""Seconds beyond the deadline that the first incumbent is waited for, and that the plan of a found one may take to be
written down: a cycle without any plan helps nobody."""


@dataclass
class _Answer:
    """What a process said: a plan, or its last incumbent (``final`` where it ended its search), and any trouble."""

    plan: bytes = b""
    incumbent: bytes = b""
    final: bool = False
    trouble: str = ""


class Planner:
    """A planner process, kept warm between plans and replaced where it had to be killed."""

    def __init__(self, command: tuple[str, ...] = (sys.executable, "-m", "cronjobs.worker")) -> None:
        """``command``: what starts the process; the number of its socket is appended."""
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._listens = False

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

    def plan(self, snapshot: Snapshot, at: int, *, deadline: float, grace: float = GRACE) -> Plan:
        """The planner's final plan, or the best one after ``deadline`` seconds, marked truncated.

        Raises Refusal where there is no plan at all: the process failed, or had none even ``grace`` seconds later.
        """
        from cronjobs import wire  # loads Arrow, which is not to delay the start of the process

        self.start()
        request = wire.Request.of(snapshot, at)
        found = self._ask(request, deadline, grace)
        if found.plan:
            return wire.unpack_plan(found.plan)
        if not found.incumbent:
            raise Refusal(found.trouble or f"the planner had no plan {deadline + grace:g} s after it began")
        finished = self._ask(msgspec.structs.replace(request, incumbent=found.incumbent), 0, grace)
        if finished.plan:
            return _truncated(wire.unpack_plan(finished.plan), found.trouble)
        raise Refusal(finished.trouble or f"the planner did not write down its best plan within {grace:g} s")

    def _ask(self, request: Request, deadline: float, grace: float) -> _Answer:
        """What the process answers in time; it is ended unless that is a plan."""
        answer = _Answer()
        self.start()
        try:
            connection = self._listening()
            connection.send_bytes(msgspec.msgpack.encode(request))
            end = time.monotonic() + deadline
            while connection.poll(max(0.0, end + self._more(answer, grace) - time.monotonic())):
                frame = connection.recv_bytes()
                kind, body = frame[:1], frame[1:]
                if kind == Frame.INCUMBENT:
                    answer.incumbent = body
                elif kind == Frame.FOUND:
                    answer.final = True
                elif kind == Frame.PLAN:
                    answer.plan = body
                    return answer
                else:
                    answer.trouble = f"the planner failed: {body.decode()}"
                    break
        except (EOFError, ConnectionError):
            answer.trouble = f"the planner's process {self._death()}"
        self.close()
        return answer

    @staticmethod
    def _more(answer: _Answer, grace: float) -> float:
        """Seconds beyond the deadline: for the first incumbent, and for the plan of the final one."""
        return 0.0 if answer.incumbent and not answer.final else grace

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._connection = self._process = None
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
