"""The deadline, enforced from outside the solver: a planner process, and a parent that takes the best plan in time.

A solver that ignores its own time limit, hangs or crashes must not take the cycle with it. So the planner runs in a
child that hands out incumbents; when time is up the child is killed and the best plan so far is used, marked
``truncated``.
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
from functools import cache
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Final

import msgspec

from cronjobs.frames import Frame
from jobtree.api import Refusal

if TYPE_CHECKING:
    from jobtree.world.plan import Plan
    from jobtree.world.snapshot import Snapshot

START_TIMEOUT: Final = 60
"""Seconds that a planner process may take to start before it counts as broken."""
FIRST_PLAN_GRACE: Final = 60
"""Seconds beyond the deadline that the first incumbent is waited for: a cycle without any plan helps nobody."""


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

    def plan(self, snapshot: Snapshot, at: int, *, deadline: float, grace: float = FIRST_PLAN_GRACE) -> Plan:
        """The planner's final plan, or the best one after ``deadline`` seconds, marked truncated.

        Raises Refusal where there is no plan at all: the process failed, or had none even ``grace`` seconds later.
        """
        from cronjobs import wire  # loads Arrow, which is not to delay the start of the process

        self.start()
        best: bytes | None = None
        trouble = ""
        try:
            connection = self._listening()
            connection.send_bytes(wire.pack_request(snapshot, at))
            end = time.monotonic() + deadline
            while connection.poll(max(0.0, end + (grace if best is None else 0.0) - time.monotonic())):
                frame = connection.recv_bytes()
                kind, body = frame[:1], frame[1:]
                if kind == Frame.INCUMBENT:
                    best = body
                elif kind == Frame.DONE and best is not None:
                    return wire.unpack_plan(best)
                else:
                    trouble = f"the planner failed: {body.decode() or 'it made no plan'}"
                    break
        except (EOFError, ConnectionError):
            trouble = f"the planner's process {self._death()}"
        self.close()
        if best is None:
            raise Refusal(trouble or f"the planner had no plan {deadline + grace:g} s after it began")
        return _truncated(wire.unpack_plan(best), trouble)

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
