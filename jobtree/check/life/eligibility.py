"""Which nodes a new lease may lie on (spec §2): flavor, labels, taints, state, maintenance; CPU, memory and pods."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held, Node, Run, RunKey, has_labels
from jobtree.check.case.violation import Violation


def violations(case: Case) -> Iterator[Violation]:
    """Every node of every run that gets leases, then the load of every such node."""
    for key in sorted(case.new_by):
        run = case.run_of(key)
        if run is None:
            continue
        for name in sorted({lease.node for lease in case.new_by[key]}):
            node = case.nodes.get(name)
            if node is not None:
                yield from refusals(case, key, run, node)
    yield from _load(case)


def refusals(case: Case, key: RunKey, run: Run, node: Node) -> Iterator[Violation]:
    """Why nothing new of a run may lie on a node."""
    subject = f"Run {'/'.join(key)}"
    if node.flavor != run.flavor:
        sentence = f"node {node.name} has flavor {node.flavor or 'none'}, and the run asks for {run.flavor}"
        yield Violation("node-flavor", subject, sentence)
    if not has_labels(node, run.selector):
        wanted = ", ".join(f"{label}={value}" for label, value in run.selector)
        yield Violation("node-selector", subject, f"node {node.name} does not match its selector {wanted}")
    for taint in node.taints:
        if taint[2] in ("NoSchedule", "NoExecute") and not _tolerated(run, *taint):
            sentence = f"it does not tolerate the taint {taint[0]}={taint[1] or ''}:{taint[2]} of node {node.name}"
            yield Violation("node-taint", subject, sentence)
    states = {
        "cordoned": node.unschedulable,
        "NotReady": not node.ready,
        "out of service": node.out_of_service,
        "being deleted": node.deleting,
    }
    closed = [word for word, holds in states.items() if holds]
    if closed:
        yield Violation("node-open", subject, f"node {node.name} takes nothing new: it is {' and '.join(closed)}")
    yield from _maintained(case, key, node)


def _maintained(case: Case, key: RunKey, node: Node) -> Iterator[Violation]:
    """A node has no capacity in maintenance, so what starts there must surely end before."""
    left = case.time_left(key)
    for each in case.policy.maintenance:
        meets = case.at < each.end and (left is None or case.at + left > each.start)
        if meets and has_labels(node, tuple(sorted(each.selector.items()))):
            sentence = f"node {node.name} is in maintenance from {each.start} to {each.end}"
            yield Violation.of_run("maintenance", key, sentence)


def _tolerated(run: Run, key: str, value: str | None, effect: str) -> bool:
    """The rule of Kubernetes: an operator Exists without key tolerates all, no effect means every effect."""
    for its_key, operator, its_value, its_effect in run.tolerations:
        if its_effect and its_effect != effect:
            continue
        if operator == "Exists" and (not its_key or its_key == key):
            return True
        if operator != "Exists" and its_key == key and (its_value or "") == (value or ""):
            return True
    return False


class _Use(NamedTuple):
    """What pods take of a node beside GPUs."""

    pods: int
    cpu_milli: int
    memory: int


def _load(case: Case) -> Iterator[Violation]:
    """Pods of leases and pods without one fit the node; what the plan does not add to is not its fault."""
    fresh = {lease.node for lease in case.new if lease.node in case.nodes}
    added = _leased(case, case.new, fresh)
    there = _leased(case, case.held, fresh)
    covered = {(lease.namespace, lease.run, lease.node) for lease in (*case.held, *case.new) if lease.active}
    for pod in case.pods:
        mine = pod.run is not None and (pod.namespace, pod.run, pod.node) in covered
        if pod.node is not None and pod.node in fresh and not pod.ended and not mine:
            there[pod.node].append(_Use(1, pod.cpu_milli or 0, pod.memory or 0))
    for name in sorted(fresh):
        node = case.nodes[name]
        offered = (node.max_pods, node.cpu_milli, node.memory)
        for index, word in enumerate(("pods", "milli-CPUs", "bytes of memory")):
            new = sum(use[index] for use in added[name])
            used = new + sum(use[index] for use in there[name])
            limit = offered[index]
            if new and limit is not None and used > limit:
                yield Violation("node-load", f"Node {name}", f"its pods would take {used} {word} of {limit}")


def _leased(case: Case, leases: Iterable[Held], nodes: set[str]) -> dict[str, list[_Use]]:
    """The pods of Active leases: of ``gpusPerPod``, however they are paid, or one per group and node."""
    chunks: dict[tuple[RunKey, int, str], int] = defaultdict(int)
    for lease in leases:
        if lease.active and lease.node in nodes:
            chunks[lease.run_key, lease.group, lease.node] += lease.gpus
    found: dict[str, list[_Use]] = defaultdict(list)
    for (key, _, node), gpus in chunks.items():
        run = case.run_of(key)
        if run is not None:
            count = -(-gpus // run.pod) if run.pod else 1
            found[node].append(_Use(count, count * (run.pod_cpu_milli or 0), count * (run.pod_memory or 0)))
    return found
