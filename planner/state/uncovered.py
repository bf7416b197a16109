"""Use of nodes by pods without a lease (spec §2)."""

from collections.abc import Iterable, Mapping

from jobtree.world.plan import Closure
from planner.placement.room import Foreign
from policies.inputs import pods
from policies.inputs.claims import LeaseRow, RunKey
from policies.inputs.shapes import PodLoad
from policies.inputs.unread import Unread


def foreign(
    found: Iterable[pods.PodRow],
    serving: Mapping[RunKey, list[pods.PodRow]],
    held: Mapping[RunKey, list[LeaseRow]],
    unread: Unread,
) -> dict[str, Foreign]:
    """Use per node by pods without a lease (spec §2: they use up capacity).

    Those are foreign pods, pods of lives that are over or end now, and GPUs of a run's own pods beyond what its leases
    on that node cover (``held``: those that stay open); and slots of Leases that cannot be read. Where a Run or a Lease
    cannot be read, nobody knows its life.
    """
    used: dict[str, Foreign] = {}
    covered: dict[tuple[RunKey, str], int] = {}
    unsure = {(key, lease.node) for key in unread.runs for lease in held.get(key, ())}
    for key in {*serving, *unread.runs}:
        for lease in held.get(key, ()):
            covered[key, lease.node] = covered.get((key, lease.node), 0) + (lease.gpus if lease.active else 0)
    for run_key, (node, _) in unread.covering():
        covered[run_key, node] = covered.get((run_key, node), 0) + 1
        unsure.add((run_key, node))
    for node, ordinal in (slot for each in unread.leases for slot in each.slots):
        used.setdefault(node, Foreign()).slots.add(ordinal)
    ours = {id(pod) for mine in serving.values() for pod in mine}
    for pod in found:
        if not pod.node or pod.phase in pods.ENDED:
            continue
        other = used.setdefault(pod.node, Foreign())
        there = (pod.run_key, pod.node)
        if id(pod) in ours or there in unsure:
            left = covered.get(there, 0)
            covered[there] = max(0, left - pod.gpus)
            other.gpus += max(0, pod.gpus - left)
            other.own += max(0, pod.gpus - left)
        else:
            other.gpus += pod.gpus
            other.cpu_milli += pod.cpu_milli
            other.memory += pod.memory
            other.pods += 1
            if pod.run and (pod.deleting or not pod.controller):
                other.own += pod.gpus
            if pod.deleting and pod.run:
                other.ending.append((pod.gpus, PodLoad(pod.cpu_milli, pod.memory)))
    return used


def covering(
    staying: Mapping[RunKey, list[LeaseRow]],
    held: Mapping[RunKey, list[LeaseRow]],
    closures: Iterable[Closure],
    swaps: Iterable[LeaseRow],
) -> Mapping[RunKey, list[LeaseRow]]:
    """Leases that cover what pods use: those that stay, and those that end on slots of swaps, which wait for them."""
    slots: dict[str, set[int]] = {}
    for swap in swaps:
        slots.setdefault(swap.node, set()).update(swap.ordinals)
    if not slots:
        return staying
    ending = {(closure.namespace, closure.name) for closure in closures}
    found = {key: list(leases) for key, leases in staying.items()}
    for lease in (lease for mine in held.values() for lease in mine if lease.active and lease.key in ending):
        if slots.get(lease.node, set()) & set(lease.ordinals):
            found.setdefault(lease.run_key, []).append(lease)
    return found
