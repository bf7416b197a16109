"""Reports of pods: which speak for a run, and what they say (spec §7, §10).

    own       a Pod with the run's label and no controller reference, or one to this run's uid; others are foreign
    serves    it lies on a node where the run holds an open Active lease, and begun when that lease had begun; a run
              without GPUs has no lease: there, as of a pod on no node yet, the run's own start tells
    all pods  those that the run has by its leases: of ``gpusPerPod`` GPUs each, else one for each group on each node;
              of a CPU run as many as it asks for

A pod of a life that is over decides nothing, and no lease of now covers the GPUs that it still uses.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from jobtree.world.tables.given import is_own
from jobtree.world.tables.records import read
from policies.inputs.claims import LeaseRow, RunKey
from policies.inputs.runs import RunRow

ENDED = frozenset({"Succeeded", "Failed"})
"""Phases in which a pod holds nothing any more."""


UNSCHEDULABLE = 600
"""Seconds without a node after which a pod's run gives up its leases (spec §8)."""


class PodRow(msgspec.Struct, frozen=True, gc=False):
    """A pod as the snapshot has it. ``run``: empty where it names none; ``begun``: Unix second, None = not known."""

    namespace: str
    node: str
    run: str
    controller: str
    begun: int | None
    phase: str
    deleting: bool
    stuck: int | None
    evicted: bool
    said: str
    gpus: int
    cpu_milli: int
    memory: int

    @property
    def run_key(self) -> RunKey:
        """The run that its label names."""
        return self.namespace, self.run


class Report(NamedTuple):
    """Report of a run's pods. ``failed``: how many did; ``pods``: how many it has; ``succeeded``: all of these did.

    ``evicted``: pods that something took off their nodes; ``stuck``: since when one has found none, None where all
    have; ``said``: why, in others' words. A pod that is deleted by a hand says nothing: another takes its place.
    """

    failed: int
    pods: int
    succeeded: bool
    evicted: int = 0
    stuck: int | None = None
    said: str = ""


class Life(NamedTuple):
    """Life of a run now. ``begun``: its start; ``since``: by node, that of its leases there; ``pods``: on each node.

    A CPU run has no leases, and its pods are on whatever node, which is called ``""``.
    """

    begun: int
    since: Mapping[str, int]
    pods: Mapping[str, int]

    def is_served_by(self, pod: PodRow) -> bool:
        """Is a pod, which is the run's own, of this life?"""
        since = self.since.get(pod.node) if pod.node and self.since else self.begun
        return since is not None and (pod.begun is None or since <= pod.begun)

    def report(self, pods: Sequence[PodRow], *, whole: bool) -> Report:
        """Report what its pods say; ``whole``: nothing else may be the run's, so all of them can be counted."""
        done: dict[str, int] = {}
        for pod in pods:
            if pod.phase == "Succeeded":
                node = pod.node if pod.node in self.pods else ""
                done[node] = done.get(node, 0) + 1
        missing = sum(max(0, count - done.get(node, 0)) for node, count in self.pods.items() if node)
        missing = max(0, missing + self.pods.get("", 0) - done.get("", 0))
        failed = sum(pod.phase == "Failed" and not pod.deleting and not pod.evicted for pod in pods)
        evicted = [pod for pod in pods if pod.evicted]
        stuck = [(pod.stuck, pod.said) for pod in pods if pod.stuck is not None and not pod.deleting]
        since, said = min(stuck, default=(None, ""))
        succeeded = bool(pods) and sum(done.values()) == len(pods) and not missing and whole
        count = max(len(pods), sum(self.pods.values()))
        return Report(failed, count, succeeded, len(evicted), since, evicted[0].said if evicted else said)


def read_pods(pods: pa.Table) -> list[PodRow]:
    """Every pod of the snapshot, in (namespace, name) order."""
    return read(pods, PodRow)


def life_of(run: RunRow, leases: Iterable[LeaseRow]) -> Life | None:
    """A run's life by its open leases, or by its status where it needs none; None while it has none."""
    if run.is_cpu:
        return None if run.started is None else Life(run.started, {}, {"": run.cpu_pods or 0})
    since: dict[str, int] = {}
    gpus: dict[tuple[str, int], int] = {}
    for lease in leases:
        if lease.active:
            since[lease.node] = min(lease.start, since.get(lease.node, lease.start))
            gpus[lease.node, lease.group] = gpus.get((lease.node, lease.group), 0) + lease.gpus
    if not since:
        return None
    pods: dict[str, int] = {}
    for (node, _), held in gpus.items():
        pods[node] = pods.get(node, 0) + run.pods_of(held)
    return Life(min(since.values()), since, pods)


def serving(
    pods: Iterable[PodRow], runs: Mapping[RunKey, RunRow], held: Mapping[RunKey, list[LeaseRow]]
) -> tuple[dict[RunKey, Life], dict[RunKey, list[PodRow]]]:
    """Lives of the runs that have own pods, and by run the pods that serve them. ``held``: open leases by run."""
    lives: dict[RunKey, Life] = {}
    found: dict[RunKey, list[PodRow]] = {}
    for pod in pods:
        run = runs.get(pod.run_key) if pod.run else None
        if run is None or not is_own(pod.controller, run.uid):
            continue
        if run.key not in lives and (life := life_of(run, held.get(run.key, ()))) is not None:
            lives[run.key] = life
        if run.key in lives and lives[run.key].is_served_by(pod):
            found.setdefault(run.key, []).append(pod)
    return lives, found
