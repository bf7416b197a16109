"""The pods that open leases want, and the writes that make it so on a live cluster (spec §7, §8).

Nothing is remembered: each cycle compares the pods that the leases open after it want with those that are there. A pod
that is missing is made, one whose lease is closed is deleted. A pod is one chunk of a group on a node, or
``gpusPerPod`` of it; its *life* is the cycle that opened the lease, and stands in its name, so a pod of a life that is
over is another.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from exporters.plans.nodelist import natural
from exporters.writes.announced import announced, notices
from exporters.writes.podspec import ANNOTATION_NODE, LABEL_GROUP, LABEL_RANK, Member, manifest, service, service_name
from exporters.writes.ranks import ranks
from jobtree.api import LABEL_CYCLE, LABEL_RUN, Lease
from jobtree.api.kinds.core import Pod
from jobtree.api.kinds.lease import FINALIZER
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.kinds.run import IndexRun, Run, RunStatus
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.naming import arrays
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake
from jobtree.world.tables.rows import controller
from policies.inputs.pods import ENDED

RunKey = tuple[str, str]


@dataclass
class PodWrites:
    """What a plan means for pods, by its place in the order of spec §8."""

    before: list[Write] = field(default_factory=list)  # finalizers of Runs that begin to hold something, pods that go
    made: list[Write] = field(default_factory=list)  # once their leases are there
    after: list[Write] = field(default_factory=list)  # finalizers of Runs that hold nothing any more, cuts to come


class _Place(NamedTuple):
    """Where one pod is to be: all that tells it from its neighbours but the rank."""

    group: int
    node: str
    gpus: int
    cycle: str


def pod_writes(intake: Intake, plan: Plan, policy: PolicySpec) -> PodWrites:
    """The writes that give the leases open after ``plan`` their pods, and no others."""
    closed = {(each.namespace, each.name) for each in plan.closures}
    leases = {(each.namespace, each.name): each for each in (*plan.leases, *intake.leases)}
    held: dict[RunKey, list[Lease]] = defaultdict(list)
    for name, lease in leases.items():
        if not lease.status.closed and name not in closed:
            held[lease.run_key].append(lease)
    statuses = {(each.namespace, each.name): each.status for each in plan.runs}
    there, cuts = _own_pods(intake), announced(intake, plan)
    writes, services, told = PodWrites(), list[Write](), list[Write]()
    known = arrays.Runs(intake.runs)
    names = {*held, *there, *statuses} - known.there.keys()
    indices = [each for name in sorted(names) if isinstance(each := known.get(name), IndexRun)]
    holding = {(each.namespace, each.of) for each in indices if held[each.namespace, each.name]}
    for run in intake.runs:
        key = (run.namespace, run.name)
        _finalizer(run, bool(held[key]) or key in holding, writes)
    for run in [*(run for run in intake.runs if run.spec.array is None), *indices]:
        key = (run.namespace, run.name)
        wanted = _places(run, held[key], statuses.get(key, run.status))
        present = there.pop(key, [])
        writes.after += notices(present, cuts.get(key, {}))
        if Counter(map(_spot, wanted)) == Counter(map(_stand, present)):
            continue  # each where one is wanted
        wanted.sort(key=lambda place: (place.group, natural(place.node)))
        kept, gone = _matched(wanted, present)
        writes.before += [_delete(pod) for pod in gone]
        members = _members(wanted, kept)
        there_too = (Member(rank_of(pod), place.group, place.node, place.gpus, place.cycle) for place, pod in kept)
        told += ranks(run, [*members, *there_too])
        if members:
            total = len(wanted)
            services.append(Write("create", Ref("Service", run.namespace, service_name(run.name)), service(run)))
            status = statuses.get(key, run.status)
            writes.made += [_create(run, status, member, total, policy) for member in members]
    writes.made[:0] = [*services, *told]
    writes.before += [_delete(pod) for left in there.values() for pod in left if pod.status.phase not in ENDED]
    writes.before.sort(key=lambda each: each.verb == "delete")  # neighbours of one kind are written side by side
    writes.after.sort(key=lambda each: each.ref.kind == "Pod")
    return writes


def _own_pods(intake: Intake) -> dict[RunKey, list[Pod]]:
    runs = arrays.Runs(intake.runs)
    found: dict[RunKey, list[Pod]] = defaultdict(list)
    for pod in intake.pods:
        key = (pod.metadata.namespace or "default", pod.metadata.labels.get(LABEL_RUN, ""))
        # One without uid only stands for pods that the server refused (`jobtree.cluster.live.refused`). Deleted is only
        # what names the run as its controller: of one that names nobody, its label may be a hand's.
        if pod.metadata.uid and (run := runs.get(key)) is not None and controller(pod) == run.metadata.uid:
            found[key].append(pod)
    return found


def _places(run: Run, leases: Iterable[Lease], status: RunStatus) -> list[_Place]:
    """The pods that a run is to have, in no order."""
    if run.spec.resources.is_cpu:
        running = status.phase == "Running"
        return [_Place(0, "", 0, "") for _ in range(run.spec.resources.pods or 0)] if running else []
    slots: dict[tuple[int, str], int] = defaultdict(int)
    cycles: dict[tuple[int, str], str] = {}
    for lease in leases:
        if lease.spec.slice.role == "Active":
            place = (lease.spec.group, lease.spec.node)
            slots[place] += len(lease.spec.slice.nodes)
            cycles[place] = min(cycles.get(place, lease.spec.cycle), lease.spec.cycle)
    size = run.spec.resources.gpus_per_pod
    found = []
    for (group, node), gpus in slots.items():
        found += [_Place(group, node, size or gpus, cycles[group, node])] * (gpus // size if size else 1)
    return found


def _spot(place: _Place) -> tuple[int, str, str]:
    """What tells where a pod stands: group, life and node."""
    return place.group, place.cycle, place.node


def _stand(pod: Pod) -> tuple[int, str, str]:
    """The same of a pod that is there."""
    return _number(pod, LABEL_GROUP, 0), pod.metadata.labels.get(LABEL_CYCLE, ""), _pinned(pod)


def _matched(wanted: list[_Place], present: list[Pod]) -> tuple[list[tuple[_Place, Pod]], list[Pod]]:
    """Which pods stand where one is wanted, and those that are to go: of lives that are over, or more than wanted.

    A pod that is over stays where its life goes on: that it succeeded is to be seen.
    """
    left: dict[tuple[int, str, str], list[_Place]] = defaultdict(list)
    for each in wanted:
        left[_spot(each)].append(each)
    kept: list[tuple[_Place, Pod]] = []
    gone: list[Pod] = []
    for pod in sorted(present, key=lambda pod: natural(pod.metadata.name)):
        group, cycle, node = _stand(pod)
        places = left.get((group, cycle, node)) or left.get((group, cycle, ""))
        if places:
            kept.append((places.pop(0), pod))
        elif pod.status.phase not in ENDED or wanted:
            gone.append(pod)
    return kept, [pod for pod in gone if pod.metadata.deletion_timestamp is None]


def _pinned(pod: Pod) -> str:
    """The node that a pod was made for."""
    return pod.spec.node_name or pod.metadata.annotations.get(ANNOTATION_NODE, "")


def _members(wanted: list[_Place], kept: list[tuple[_Place, Pod]]) -> list[Member]:
    """The pods that are missing, each with a rank that nobody has: what is there keeps its own.

    Of its group's ranks where one is left. Where groups before it went, or a group came back in more pods than it had,
    another's: the first that no pod has.
    """
    first: dict[int, int] = {}
    for rank, place in enumerate(wanted):
        first.setdefault(place.group, rank)
    count = Counter(place.group for place in wanted)
    taken = {rank_of(pod) for _, pod in kept}
    free = {g: deque(r for r in range(first[g], first[g] + count[g]) if r not in taken) for g in first}
    missing = list((Counter(wanted) - Counter(place for place, _ in kept)).elements())
    own = [free[place.group].popleft() if free[place.group] else None for place in missing]
    left = iter(sorted(set(range(len(wanted))) - taken - set(own)))
    numbered = [(next(left) if rank is None else rank, place) for rank, place in zip(own, missing, strict=True)]
    return [Member(rank, place.group, place.node, place.gpus, place.cycle) for rank, place in numbered]


def _finalizer(run: Run, holds: bool, writes: PodWrites) -> None:
    """A Run cannot go while leases of it are open: they are closed first (spec §7)."""
    ref, there = Ref("Run", run.namespace, run.name), run.metadata.finalizers
    if holds and FINALIZER not in there and run.metadata.deletion_timestamp is None:
        writes.before.append(Write("patch", ref, {"metadata": {"finalizers": [*there, FINALIZER]}}))
    if not holds and FINALIZER in there:
        left = [each for each in there if each != FINALIZER]
        writes.after.append(Write("patch", ref, {"metadata": {"finalizers": left}}))


def _create(run: Run, status: RunStatus, member: Member, total: int, policy: PolicySpec) -> Write:
    body = manifest(run, status, member, total, policy)
    return Write("create", Ref("Pod", run.namespace, body["metadata"]["name"]), body)


def _delete(pod: Pod) -> Write:
    return Write("delete", Ref("Pod", pod.metadata.namespace or "default", pod.metadata.name))


def rank_of(pod: Pod) -> int:
    """A pod's rank, -1 where it says none."""
    return _number(pod, LABEL_RANK, -1)


def _number(pod: Pod, label: str, otherwise: int) -> int:
    """What a label says; anybody may write something else into it."""
    text = pod.metadata.labels.get(label, "")
    return int(text) if text.isascii() and text.isdigit() else otherwise
