"""A study: one stream under several schedulers, with what they did as Parquet in a lake.

::

    cycles/, tables/, …                       Jobtree's own cycles, as of any cluster
    simulation/SCHEDULER/jobs.parquet         what became of each job (`results.Outcome`)
    simulation/SCHEDULER/turns.parquet        the cluster after each turn (`loop.Tick`)
    simulation/jobtree/begun                  where an unfinished run goes on: the cluster and what the loop knows
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from exporters.lake import storage
from exporters.lake.lake import Lake
from jobtree.api import Refusal, Run, Time
from jobtree.api.kinds.run import OVER
from jobtree.api.values.counted import counted
from jobtree.cluster.memory import Memory
from jobtree.world.collector import collected_at_times
from jobtree.world.memory.cycles import moment_of
from jobtree.world.reading.intake import Intake
from jobtree.world.tables.snapshot import Snapshot
from simulator import results
from simulator.fleet import Rival, facts_of
from simulator.jobtree import Jobtree, needed, with_policy
from simulator.lives import Lives
from simulator.loop import Loop, Progress
from simulator.results import Outcome
from simulator.rivals import BY_LIMIT, RIVALS
from simulator.stream import Job, Key, Stream

SAVED: Final = 100
"""Turns between two times that an unfinished run is written down."""
COLLECTED: Final = 10
"""Turns between two walks over what their plans left behind in circles, which would else stay for good."""
OWN: Final = "jobtree"
SCHEDULERS: Final = (OWN, *RIVALS)

OnTurn = Callable[[int], None]


class _Begun(msgspec.Struct):
    """An unfinished run. ``stream``, ``every``: as it was begun with; ``state``: the cluster as a state file."""

    stream: str
    every: int
    state: bytes
    progress: Progress
    scheduler: dict[str, Any]
    out: list[str]
    down: list[str]


def study(
    stream: Stream,
    scheduler: str,
    lake: Lake,
    every: int,
    *,
    resume: bool = False,
    cycles: bool = True,
    saved: int = SAVED,
    on_turn: OnTurn | None = None,
) -> Outcome:
    """Simulate the stream under one scheduler and store what it did.

    ``every``: seconds between two turns at the least; ``resume``: an unfinished run of Jobtree goes on; ``cycles``:
    whether the lake keeps Jobtree's cycles; ``saved``: turns between two times that it is written down; ``on_turn``
    hears of each turn's time. Raises Refusal where base and stream do not belong together, and where Jobtree's checker
    does not pass a plan.
    """
    made_from = _digest(stream, every, stream.end)
    if scheduler != OWN:
        _refuse_other(lake, scheduler, made_from)
    base = Memory(stream.base, stream.start)
    intake = base.read()
    _know_nodes(stream, intake)
    stream = stream._replace(jobs={**stream.jobs, **_running(stream, intake)})
    if scheduler == OWN:
        with _records(lake, cycles=cycles) as records:
            progress = _own(stream, base, lake, records, every, resume=resume, saved=saved, on_turn=on_turn)
    else:
        stream = stream.by_limits() if scheduler in BY_LIMIT else stream
        facts = facts_of(intake, {job.owner for job in stream.jobs.values()})
        rival = Rival(facts, RIVALS[scheduler])
        loop = Loop(stream, rival, every, facts.gpus)
        for key, (nodes, width) in _held(intake).items():
            rival.hold(stream.jobs[key], stream.start, nodes)
            loop.begin(key, stream.jobs[key], nodes, width)
        progress = loop.run(on_turn)
    outcome = results.outcome(scheduler, stream, progress)
    for name, table in (("jobs", outcome.jobs), ("turns", outcome.turns)):
        lake.put(_place(lake, scheduler) / f"{name}.parquet", results.parquet(table, made_from))
    return outcome


def _own(
    stream: Stream,
    base: Memory,
    lake: Lake,
    records: Lake,
    every: int,
    *,
    resume: bool,
    saved: int,
    on_turn: OnTurn | None,
) -> Progress:
    there, what, begun = _place(lake, OWN) / "begun", _digest(stream), _begun(stream, lake, every, resume=resume)
    if begun is None:
        with_policy(base)
    gpus = facts_of(base.read(), ()).gpus
    cluster = base if begun is None else Memory(begun.state, begun.progress.last or stream.start)
    scheduler = Jobtree(cluster, records, needed(stream.jobs.values()))
    loop = Loop(stream, scheduler, every, gpus)
    if begun is None:
        for key, (nodes, width) in _held(cluster.read()).items():
            loop.begin(key, stream.jobs[key], nodes, width)
    else:
        _forget(records, begun.progress.last or stream.start)
        scheduler.resume(begun.scheduler)
        loop.resume(begun.progress, begun.out, begun.down)

    def save() -> None:
        found = _Begun(what, every, cluster.render(), loop.progress, scheduler.saved(), *loop.outages)
        lake.put(there, msgspec.msgpack.encode(found))

    with collected_at_times() as collect:

        def after(at: int) -> None:
            turns = len(loop.progress.ticks)
            if turns % COLLECTED == 0:
                collect()
            if turns % saved == 0:
                save()
            if on_turn is not None:
                on_turn(at)

        if begun is None:
            save()
        progress = loop.run(after)
        save()
    return progress


def _begun(stream: Stream, lake: Lake, every: int, *, resume: bool) -> _Begun | None:
    """Unfinished run of the lake, which goes on; None where a new one may begin. Raises Refusal where neither may."""
    there = _place(lake, OWN) / "begun"
    if not storage.exists(there):
        if lake.newest() is not None:
            raise Refusal("it has cycles already; name another --lake", subject=str(lake.root))
        return None
    if not resume:
        raise Refusal("it has a simulation already; name another --lake, or say --resume", subject=str(lake.root))
    begun = _read(there)
    if begun.stream != _digest(stream):
        raise Refusal(f"it was begun with another stream than {stream.name}; name another --lake", subject=str(there))
    if begun.every != every:
        raise Refusal(f"it was begun with --every {begun.every}s; say the same to resume it", subject=str(there))
    return begun


@contextmanager
def _records(lake: Lake, *, cycles: bool) -> Iterator[Lake]:
    """Lake of Jobtree's cycles: that of the study, or for as long as it takes."""
    if cycles:
        yield lake
        return
    with TemporaryDirectory(prefix="jobtree-") as folder:
        yield _Forgetful(folder, lasting=False)


class _Forgetful(Lake):
    """A lake that has the records of cycles, and none of their tables, which nobody reads."""

    def write_table(self, snapshot: Snapshot, name: str) -> None:
        """Write nothing."""


def _digest(stream: Stream, *more: object) -> str:
    """Digest of a stream: its base and lines, wherever it ends; ``more``: what else counts."""
    return hashlib.sha256(msgspec.msgpack.encode((stream.base, stream.lines, *more), enc_hook=int)).hexdigest()


def _refuse_other(lake: Lake, scheduler: str, made_from: str) -> None:
    """Raise Refusal where results of a scheduler are there that are not of this very study, and would be lost."""
    there = _place(lake, scheduler) / "jobs.parquet"
    if storage.exists(there) and results.made_from(storage.read(there)) != made_from:
        problem = f"it has results of {scheduler} for another stream, --every or --until; name another --lake"
        raise Refusal(problem, subject=str(lake.root))


def _read(path: Path) -> _Begun:
    try:
        return msgspec.msgpack.decode(storage.read(path), type=_Begun)
    except msgspec.DecodeError as error:
        raise Refusal(
            f"it is no unfinished simulation: {error}; begin anew in another --lake", subject=str(path)
        ) from None


def _forget(lake: Lake, last: int) -> None:
    """Takes the records of cycles away that came after the one from which a run goes on: they are made again."""
    for path in storage.glob(lake.root, "cycles/date=*/*.json"):
        moment = moment_of(path.stem)
        if moment is not None and moment.at > last:
            storage.remove(path)
    lake.sweep()


def _place(lake: Lake, scheduler: str) -> Path:
    return lake.root / "simulation" / scheduler


def _held(intake: Intake) -> dict[Key, tuple[dict[str, int], int]]:
    """Nodes and width of what runs as the stream begins."""
    lives = Lives()
    lives.take(intake)
    found: dict[Key, tuple[dict[str, int], int]] = {}
    for _, life in lives.active():
        nodes, width = found.get(life.run, ({}, 0))
        found[life.run] = {**nodes, life.node: nodes.get(life.node, 0) + life.gpus}, width + life.gpus
    return found


def _know_nodes(stream: Stream, intake: Intake) -> None:
    """Raises Refusal where a node of the stream is not in the base."""
    known = {node.metadata.name for node in intake.nodes}
    for line in stream.lines:
        if line.event in {"node-fail", "node-recover"} and line.node not in known:
            there = counted(len(known), "node")
            raise Refusal(f"node {line.node} of {line.event} at {line.at} is not in the base, which has {there}")


def _running(stream: Stream, intake: Intake) -> dict[Key, Job]:
    """Jobs that the base has running. Raises Refusal where the stream does not say of each how long it runs."""
    left = {(line.namespace, line.name): line.remaining for line in stream.lines if line.event == "running"}
    runs: dict[Key, Run] = {(run.namespace, run.name): run for run in intake.runs}
    held = _held(intake)
    for key, run in runs.items():
        if key in stream.jobs:
            raise Refusal(f"{run.subject} is in the base, and submitted too")
        if (key in held) != (key in left) or (key not in held and run.status.phase not in OVER):
            what = "runs in the base, and no line says how long" if key in held else "does not run in the base"
            raise Refusal(f"{run.subject} {what}; a running run has a line 'running', and one that waits is submitted")
    found = {}
    for key, seconds in left.items():
        if key not in runs:
            raise Refusal(f"Run {'/'.join(key)} is said to run, and is not in the base")
        found[key] = Job(runs[key], int(runs[key].metadata.creation_timestamp or Time(stream.start)), seconds)
    return found
