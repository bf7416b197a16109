"""A whole cycle in a process of its own, as operators run it: ``python -m benchmarks.cycles.cycle STATE AT [PLANNER]``.

Runs ``jobtree cycle`` on STATE (which it changes) with its planner process, and prints `Used` as its last line.
PLANNER: another one, ``hang``, which hands out its first plan and then never answers again, or ``undated``.
"""

import resource
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec


class Usage(msgspec.Struct, frozen=True):
    """CPU seconds and peak memory of a process."""

    cpu: float
    peak_mb: int


class Used(msgspec.Struct, frozen=True):
    """``parent``: the command; ``child``: its planner process."""

    parent: Usage
    child: Usage


def main() -> None:
    """Entry point of the process."""
    state, at, *other = sys.argv[1:]
    code = _with(other[0], Path(state), int(at)) if other else _command(state, int(at))
    if code:
        sys.exit(code)
    used = Used(_usage(resource.RUSAGE_SELF), _usage(resource.RUSAGE_CHILDREN))
    sys.stdout.flush()
    sys.stdout.buffer.write(msgspec.json.encode(used) + b"\n")


def _command(state: str, at: int) -> int:
    from cronjobs.deadline import planner
    from jobtree.cli.operator import main as jobtree

    time = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    code = jobtree(["--state", state, "cycle", "--at", time])
    planner().close()  # its usage counts once it has ended
    return code


def _with(other: str, state: Path, at: int) -> int:
    from cronjobs.cycle import run_cycle
    from cronjobs.deadline import Planner
    from exporters.lake.lake import Lake, beside
    from jobtree.cluster.statefile import StateFile

    planner = Planner((sys.executable, "-m", f"benchmarks.cycles.{other}"))
    planner.start()
    run_cycle(StateFile(state, at), at, Lake(beside(state)), planner)
    planner.close()
    return 0


def _usage(who: int) -> Usage:
    used = resource.getrusage(who)
    return Usage(round(used.ru_utime + used.ru_stime, 2), used.ru_maxrss // 1024)


if __name__ == "__main__":
    main()
