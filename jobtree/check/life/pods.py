"""What the pods of a run's present life say (spec §7, §10): those of a life that is over say nothing.

A pod is of a run that its label names and that made it, if it tells who did. It is of the run's present life where some
open Active lease of the run on its node is no younger than it; where no node tells, as of a CPU run or of a pod that is
on none yet, where the run had started.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from jobtree.check.case.rows import Held, Pod, Run, RunKey
from jobtree.check.case.unplanned import Said, Unplanned
from jobtree.check.life.failures import Failures

NO_NODE_FOR = 600
"""Seconds after which a run whose pod has no node gives up what it holds."""


def said(case: Unplanned, by_run: Mapping[RunKey, list[Pod]], failures: Failures) -> Mapping[RunKey, Said]:
    """What they say, by run; one on a node that has failed did not fail by itself."""
    return {key: _said(case, key, pods, failures.surely) for key, pods in by_run.items()}


def speaking(case: Unplanned) -> Mapping[RunKey, list[Pod]]:
    """By run, the pods of its present life."""
    by_run: dict[RunKey, list[Pod]] = {}
    for pod in case.pods:
        run = case.runs.get((pod.namespace, pod.run)) if pod.run is not None else None
        if run is not None and (pod.controller is None or pod.controller == run.uid):
            by_run.setdefault(run.key, []).append(pod)
    found = {key: list(_present(case, case.runs[key], pods)) for key, pods in by_run.items()}
    return {key: pods for key, pods in found.items() if pods}


def _active(case: Unplanned, run: Run) -> list[Held]:
    return [lease for lease in case.open_by.get(run.key, ()) if lease.active and case.is_of(lease, run)]


def _present(case: Unplanned, run: Run, pods: list[Pod]) -> Iterator[Pod]:
    """Those that are no younger than what the run holds on their node, or anywhere where none tells theirs."""
    first: dict[str | None, int] = {}
    for lease in _active(case, run):
        for node in (None, lease.node):
            first[node] = min(lease.start, first.get(node, lease.start))
    started = None if run.total else case.cpu_started(run.key)
    for pod in pods:
        since = first.get(pod.node) if run.total else started
        if since is not None and (pod.begun is None or since <= pod.begun):
            yield pod


def _said(case: Unplanned, key: RunKey, pods: list[Pod], lost: set[str]) -> Said:
    there = [pod for pod in pods if pod.node not in lost]
    failed = any(pod.phase == "Failed" and not pod.deleting and not pod.evicted for pod in there)
    stuck = any(pod.evicted or _is_stuck(pod, case.at) for pod in there)
    return Said(failed, stuck, all(pod.phase == "Succeeded" for pod in pods) and _all_there(case, key, pods))


def _is_stuck(pod: Pod, at: int) -> bool:
    return pod.stuck is not None and not pod.deleting and pod.stuck <= at - NO_NODE_FOR


def _all_there(case: Unplanned, key: RunKey, pods: list[Pod]) -> bool:
    """Whether these are as many as the run has: on each node, those on no node standing in for whichever lack."""
    run = case.runs[key]
    if not run.total:
        return len(pods) >= (run.cpu_pods or 0)
    if case.may_be_unread(run):
        return False
    parts: Counter[tuple[str, int]] = Counter()
    for lease in _active(case, run):
        parts[lease.node, lease.group] += lease.gpus
    wanted = Counter(node for (node, _), gpus in parts.items() for _ in range(0, gpus, run.pod or gpus))
    there = Counter(pod.node for pod in pods)
    lacking = wanted - Counter({node: count for node, count in there.items() if node is not None})
    return lacking.total() <= there[None]
