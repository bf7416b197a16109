"""A cycle that was begun and not ended is completed before the next one begins: rolled forward, never planned again.

The lake's record of a cycle is there, marked planned, before anything of it is written to the cluster. So where a
process was killed, or a disk was full, that record, its plan's bytes and the cluster as it is now say what is still
missing (spec §8).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from exporters.lake.forward import Name, Possible, possible
from exporters.lake.lake import Lake, policy_of, read_manifest, read_plan, read_table
from exporters.lake.manifest import Manifest, PlanName, digest_in
from exporters.plans import planjson
from exporters.writes.writes import writes_for
from jobtree.api import Refusal, Time
from jobtree.api.values.counted import counted
from jobtree.world.memory import seen
from jobtree.world.memory.cycles import moment_of
from jobtree.world.plan import Plan
from jobtree.world.tables import values
from jobtree.world.tables.snapshot import take

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from jobtree.api import Plan as PlanObject
    from jobtree.cluster.protocol import Cluster
    from jobtree.world.reading.intake import Intake


class Completed(NamedTuple):
    """Whether anything was written to the cluster, and what is to be said of the lake."""

    wrote: bool
    notices: list[str]


class _Record(NamedTuple):
    """The newest record of a lake."""

    path: Path
    manifest: Manifest

    @property
    def name(self) -> PlanName:
        """The Plan object that it is of."""
        return PlanName(self.path.stem.lower(), self.manifest.plan)


def complete(cluster: Cluster, intake: Intake, lake: Lake, at: int) -> Completed:
    """Completes the lake's newest cycle where it was begun on this cluster's newest Plan and not ended.

    One that was made on another is set aside. Raises Refusal where the cluster or the lake cannot be written, and where
    it is of a later second than ``at``.
    """
    lake.sweep()
    path = lake.newest()
    if path is None:
        return Completed(False, [])
    try:
        record = _Record(path, read_manifest(path))
    except Refusal as refusal:
        return Completed(False, [f"{refusal}; reports leave this cycle out"])
    newest, own = seen.newest(intake.plans), PlanName.newest(intake.plans)
    if record.manifest.phase != "planned":
        return Completed(False, list(_strange(record, newest)))
    if own not in {record.name, record.manifest.on}:
        return _set_aside(lake, record, "it was begun on another history of this cluster")
    if record.manifest.at > at:
        raise Refusal(
            f"the cycle of {record.manifest.at} was begun and is to be completed, and this one is for {Time(at)}; "
            "time only goes forward: say a later --at",
            subject=str(path),
        )
    if newest is not None and own == record.name and newest.status.phase == "Applied":
        lake.finish(path, "applied")
        return Completed(False, [f"the cycle of {record.manifest.at} had been carried out; its record says so now"])
    try:
        encoded = read_plan(path, record.manifest)
        plan = planjson.decode(encoded)
        mode = policy_of(record.manifest, path).mode
    except Refusal as refusal:
        return _set_aside(lake, record, f"its plan cannot be read ({refusal})")
    if mode == "observe" and own == record.name:
        lake.finish(path, "observed")
        return Completed(False, [])
    return _roll_forward(cluster, lake, record, plan, encoded)


def _strange(record: _Record, newest: PlanObject | None) -> Iterator[str]:
    """What is to be said of a lake whose newest record is not of the cluster's newest Plan."""
    manifest = record.manifest
    if newest is None or manifest.phase == "aside":
        return
    if manifest.phase == "unchanged" and manifest.on == PlanName(newest.name, digest_in(newest)):
        return
    there, here = moment_of(record.path.stem), moment_of(newest.name)
    if there is None or here is None or record.name == PlanName(newest.name, digest_in(newest)):
        return
    if there < here:
        yield (
            f"the lake ends with the cycle of {record.manifest.at}, and the last one of this cluster was at "
            f"{newest.spec.at}: reports know nothing of the cycles in between"
        )
    else:
        yield (
            f"the lake has a cycle of {record.manifest.at} that this cluster knows nothing of, whose last one was at "
            f"{newest.spec.at}: both histories stay in the lake, and reports count both"
        )


def _set_aside(lake: Lake, record: _Record, why: str) -> Completed:
    lake.finish(record.path, "aside")
    return Completed(False, [f"{record.path}: {why}, so it is set aside: nothing of it is carried out"])


def _roll_forward(cluster: Cluster, lake: Lake, record: _Record, plan: Plan, encoded: bytes) -> Completed:
    """Writes what is missing. What the cluster refuses is left out too, with its reason."""
    refused: dict[str, str] = {}
    policy, uids, money = policy_of(record.manifest, record.path), _uids(lake, record), _money(lake, record)
    with _at(cluster, plan.at):
        while True:
            intake = cluster.read()
            found = possible(intake, take(intake), plan, uids, refused)
            writes = writes_for(intake, found.plan, encoded, policy, money, pods=cluster.runs_pods)
            writes = [write for write in writes if str(write.ref) not in refused]
            try:
                cluster.write(writes, intake.revision)
            except Refusal as refusal:
                if refusal.subject not in {str(write.ref) for write in writes if write.ref.kind != "Plan"}:
                    raise
                refused[refusal.subject] = refusal.problem
            else:
                break
    lake.finish(record.path, "observed" if policy.mode == "observe" else "applied", found.left_out)
    return Completed(True, list(_said(plan, found, len(writes))))


def _said(plan: Plan, found: Possible, writes: int) -> Iterator[str]:
    how = f"it is completed now, as it was planned: {counted(writes, 'write')}"
    yield f"the cycle of {Time(plan.at)} was begun and not ended; {how}"
    for left in found.left_out:
        yield f"{left.object}: the plan of {Time(plan.at)} is left out where it speaks of it: {left.message}"


@contextmanager
def _at(cluster: Cluster, at: int) -> Iterator[None]:
    """Within, the cluster is read and written as at that time: objects are first seen when the plan saw them."""
    before, cluster.at = cluster.at, Time(at)
    try:
        yield
    finally:
        cluster.at = before


def _uids(lake: Lake, record: _Record) -> Mapping[Name, str] | None:
    """Of the Runs that the plan was made for; None where their table cannot be read."""
    try:
        table = read_table(lake.table_path("runs", record.manifest.tables.get("runs", "")), "runs")
    except Refusal:
        return None
    return dict(zip(values.keys(table), values.texts(table, "uid"), strict=True))


def _money(lake: Lake, record: _Record) -> Mapping[str, str] | None:
    """What the cycle saw of the money; None where it cannot be read: then it is that of now."""
    try:
        return lake.read_seen(record.manifest.seen)
    except Refusal:
        return None
