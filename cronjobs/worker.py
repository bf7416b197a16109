"""The planner's process: reads requests, streams incumbents, and is killed from outside when its time is up.

Run as ``python -m cronjobs.worker FD``, FD being one end of a socket pair. Frames are bytes, the first of which says
what they are (`frames.Frame`). The process keeps no state between requests, so a warm one answers as a fresh one does.
"""

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Final, Protocol

import msgspec

from cronjobs import wire
from cronjobs.frames import Frame
from exporters.plans import planjson
from jobtree.world.collector import collector_paused
from jobtree.world.plan import Plan
from jobtree.world.tables.snapshot import Snapshot
from planner.search.incumbent import Incumbent

_PR_SET_PDEATHSIG: Final = 1


class Planning(Protocol):
    """What plans one cycle; see `planner.Planning`."""

    def incumbents(self) -> Iterator[Incumbent]:
        """Better and better ones; the last is final."""

    def finish(self, incumbent: Incumbent) -> Plan:
        """The whole plan of one."""


Begin = Callable[[Snapshot, int], Planning]
"""Begins the planning of a snapshot at a Unix second."""


def serve(connection: Connection, begin: Begin) -> None:
    """Answers requests until the other end is closed."""
    connection.send_bytes(Frame.READY)
    while True:
        try:
            request = connection.recv_bytes()
        except EOFError:
            return
        with collector_paused():  # at each of its turns it would walk over the whole snapshot
            for frame in _answer(request, begin):
                connection.send_bytes(frame)


def _answer(data: bytes, begin: Begin) -> Iterator[bytes]:
    try:
        request = msgspec.msgpack.decode(data, type=wire.Request)
        planning = begin(request.snapshot, request.at)
        best = request.incumbent
        if not best:
            for incumbent in planning.incumbents():
                best = msgspec.msgpack.encode(incumbent)
                yield Frame.INCUMBENT + best
            if best:
                yield Frame.FOUND
        plan = planning.finish(msgspec.msgpack.decode(best, type=Incumbent)) if best else None
    except Exception as error:  # noqa: BLE001  whatever it is, the parent must hear of it
        yield Frame.ERROR + _where(error).encode()
    else:
        yield Frame.PLAN + planjson.encode(plan) if plan else Frame.ERROR + b"it made no plan"


def _where(error: Exception) -> str:
    """One line: what was raised and in which line of ours."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__} in {os.path.basename(last.filename)}:{last.lineno}: {text}"


def _end_with_parent() -> None:
    """A killed cycle must not leave a planner behind that computes for nobody."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(begin: Begin) -> None:
    """Entry point of the process; its last argument is the number of its socket."""
    _end_with_parent()
    try:
        serve(Connection(int(sys.argv[-1])), begin)
    except OSError:
        return  # the socket is closed at the other end: the parent is gone, and with it whoever wanted the plan


if __name__ == "__main__":
    import planner

    main(planner.Planning)
