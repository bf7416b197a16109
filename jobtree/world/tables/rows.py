"""The rows of each table of the snapshot, from typed objects (spec §2; columns and units: `schema`)."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa

from jobtree.api import LABEL_CYCLE, LABEL_RUN, Budget, Lease, Reservation, Time
from jobtree.api.kinds.budget import Envelope
from jobtree.api.kinds.core import Node, Pod, PodCondition
from jobtree.api.kinds.lease import Segment
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.kinds.reservation import ReservationStatus
from jobtree.api.values.scalars import dec_hook, enc_hook, milli, milli_gpu_seconds
from jobtree.world.memory.balances import Account
from jobtree.world.memory.lottery import Chain
from jobtree.world.memory.seen import Discount, World
from jobtree.world.naming import needs
from jobtree.world.naming.annotations import time_or_none
from jobtree.world.reading.intake import Notice
from jobtree.world.reading.unread import UnreadLease
from jobtree.world.tables import schema, values
from jobtree.world.tables.columns import table
from jobtree.world.tables.records import read

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
"""The taint by which an operator declares a node dead."""

T = TypeVar("T")
Amount = int | float


def maybe(function: Callable[[T], Any], value: T | None) -> Any:
    """``function(value)``, or None where there is no value."""
    return None if value is None else function(value)


def nodes(found: Sequence[Node], policy: PolicySpec) -> pa.Table:
    """One row a node; what its labels mean is the Policy's `topology.labels`."""
    labels = [node.metadata.labels for node in found]
    names = policy.topology.labels
    offers = [needs.of_node(node, policy.resource_names) for node in found]
    ready = [_ready(node) for node in found]
    return table(
        schema.NODES,
        {
            "name": [node.metadata.name for node in found],
            "uid": [node.metadata.uid or None for node in found],
            "region": [each.get(names.region) for each in labels],
            "cluster": [each.get(names.cluster) for each in labels],
            "domain": [each.get(names.domain) for each in labels],
            "rack": [each.get(names.rack) for each in labels],
            "flavor": [each.get(names.flavor) or None for each in labels],
            "gpus": [offer.gpus for offer in offers],
            "cpu_milli": [offer.cpu_milli for offer in offers],
            "memory": [offer.memory for offer in offers],
            "max_pods": [offer.max_pods for offer in offers],
            "unschedulable": [node.spec.unschedulable for node in found],
            "ready": [is_ready for is_ready, _ in ready],
            "not_ready_since": [since for _, since in ready],
            "out_of_service": [any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints or ()) for node in found],
            "deleting": [node.metadata.deletion_timestamp is not None for node in found],
            "labels": labels,
            "taints": [
                sorted((taint.key, taint.value, taint.effect) for taint in node.spec.taints or ()) for node in found
            ],
        },
    )


def _ready(node: Node) -> tuple[bool, int | None]:
    """Whether a node is Ready, and since when it is not. One written by hand without any conditions is Ready."""
    condition = node.ready
    if condition is None:
        return not node.status.conditions, None
    return condition.status == "True", None if condition.status == "True" else condition.last_transition_time


def pods(found: Sequence[Pod], policy: PolicySpec) -> pa.Table:
    """One row a pod that holds something, or that tells how its run fares."""
    kept = [pod for pod in found if LABEL_RUN in pod.metadata.labels or pod.status.phase not in ("Succeeded", "Failed")]
    asked = [needs.of_pod(pod.spec, policy.resource_names) for pod in kept]
    return table(
        schema.PODS,
        {
            "namespace": [pod.metadata.namespace or "default" for pod in kept],
            "name": [pod.metadata.name for pod in kept],
            "node": [pod.spec.node_name or None for pod in kept],
            "run": [pod.metadata.labels.get(LABEL_RUN) for pod in kept],
            "controller": [controller(pod) for pod in kept],
            "begun": [_begun(pod) for pod in kept],
            "phase": [pod.status.phase for pod in kept],
            "deleting": [pod.metadata.deletion_timestamp is not None for pod in kept],
            "stuck": [maybe(lambda each: each.last_transition_time, _stuck(pod)) for pod in kept],
            "evicted": [_evicted(pod) is not None for pod in kept],
            "said": [maybe(lambda each: each.message or each.reason, _stuck(pod) or _evicted(pod)) for pod in kept],
            "gpus": [need.gpus for need in asked],
            "cpu_milli": [need.cpu_milli for need in asked],
            "memory": [need.memory for need in asked],
        },
    )


def _begun(pod: Pod) -> Time | None:
    """When its life began: that of the lease which it was made for, where a cycle made it, so that the clocks of
    kubelets do not matter; else when it started, or was created.
    """
    told = _moment(pod.metadata.labels.get(LABEL_CYCLE, ""))
    return told or pod.status.start_time or pod.metadata.creation_timestamp


@lru_cache(maxsize=4096)  # the pods of one cycle have one
def _moment(cycle: str) -> Time | None:
    told = "{}-{}-{}T{}:{}:{}Z".format(*(cycle[a:b] for a, b in ((0, 4), (4, 6), (6, 8), (9, 11), (11, 13), (13, 15))))
    return time_or_none(told)


def _stuck(pod: Pod) -> PodCondition | None:
    """That a run's pod finds no node. Of others nobody asks, and what is said of them changes all the time."""
    bound = pod.spec.node_name or LABEL_RUN not in pod.metadata.labels
    return None if bound else _condition(pod, "PodScheduled", "False")


def _evicted(pod: Pod) -> PodCondition | None:
    own = LABEL_RUN in pod.metadata.labels and pod.status.phase != "Succeeded"
    return _condition(pod, "DisruptionTarget", "True") if own else None


def _condition(pod: Pod, kind: str, status: str) -> PodCondition | None:
    return next((each for each in pod.status.conditions if (each.type, each.status) == (kind, status)), None)


def controller(pod: Pod) -> str | None:
    """The uid of the object that its controller reference names."""
    return next((each.uid for each in pod.metadata.owner_references if each.controller), None)


def budgets(found: Sequence[Budget]) -> pa.Table:
    """One row a Budget."""
    return table(
        schema.BUDGETS,
        {
            "name": [budget.name for budget in found],
            "uid": [budget.metadata.uid or None for budget in found],
            "created": [budget.metadata.creation_timestamp for budget in found],
            "owner": [budget.spec.owner for budget in found],
            "namespaces": [sorted(budget.spec.namespaces) or None for budget in found],
            "parents": [maybe(sorted, budget.spec.parents) for budget in found],
        },
    )


def envelopes(found: Sequence[Budget]) -> pa.Table:
    """One row an envelope."""
    pairs = [
        (budget.name, envelope)
        for budget in found
        for envelope in sorted(budget.spec.envelopes, key=lambda envelope: envelope.name)
    ]
    each: list[Envelope] = [envelope for _, envelope in pairs]
    limits = [envelope.per_run for envelope in each]
    return table(
        schema.ENVELOPES,
        {
            "budget": [budget for budget, _ in pairs],
            "name": [envelope.name for envelope in each],
            "flavor": [envelope.flavor for envelope in each],
            "selector": [envelope.selector for envelope in each],
            "concurrency": [envelope.concurrency for envelope in each],
            "max_gpu_milliseconds": [maybe(milli_gpu_seconds, envelope.max_gpu_hours) for envelope in each],
            "max_millicredits": [maybe(milli, envelope.max_credits) for envelope in each],
            "start": [envelope.start for envelope in each],
            "end": [envelope.end for envelope in each],
            "scope": [envelope.scope for envelope in each],
            "sharing": [envelope.effective_sharing for envelope in each],
            "allow_reservations": [envelope.pre_activation.allow_reservations for envelope in each],
            "allow_admission": [envelope.pre_activation.allow_admission for envelope in each],
            "per_run_gpus": [maybe(lambda limit: limit.max_gpus, limit) for limit in limits],
            "per_run_time": [maybe(lambda limit: limit.max_time, limit) for limit in limits],
            "per_run_default_time": [maybe(lambda limit: limit.default_time, limit) for limit in limits],
            "lending_allow": [envelope.lending.allow for envelope in each],
            "lending_to": [sorted(envelope.lending.to) for envelope in each],
            "lending_concurrency": [envelope.lending.max_concurrency for envelope in each],
            "lending_gpu_milliseconds": [maybe(milli_gpu_seconds, envelope.lending.max_gpu_hours) for envelope in each],
            "lending_duration": [envelope.lending.max_duration for envelope in each],
        },
    )


def aggregates(found: Sequence[Budget]) -> pa.Table:
    """One row an aggregate cap."""
    pairs = [(budget.name, cap) for budget in found for cap in sorted(budget.spec.aggregate_caps, key=lambda c: c.name)]
    caps = [cap for _, cap in pairs]
    return table(
        schema.AGGREGATES,
        {
            "budget": [budget for budget, _ in pairs],
            "name": [cap.name for cap in caps],
            "flavor": [cap.flavor for cap in caps],
            "envelopes": [sorted(cap.envelopes) for cap in caps],
            "concurrency": [cap.max_concurrency for cap in caps],
            "max_gpu_milliseconds": [maybe(milli_gpu_seconds, cap.max_gpu_hours) for cap in caps],
            "max_millicredits": [maybe(milli, cap.max_credits) for cap in caps],
        },
    )


def use_caps(found: Sequence[Budget]) -> pa.Table:
    """One row a use cap."""
    pairs = [(budget.name, cap) for budget in found for cap in sorted(budget.spec.use_caps, key=lambda c: c.name)]
    caps = [cap for _, cap in pairs]
    limits = [cap.per_run for cap in caps]
    return table(
        schema.USE_CAPS,
        {
            "budget": [budget for budget, _ in pairs],
            "name": [cap.name for cap in caps],
            "flavor": [cap.flavor for cap in caps],
            "selector": [cap.selector or {} for cap in caps],
            "scope": [cap.scope for cap in caps],
            "concurrency": [cap.max_concurrency for cap in caps],
            "max_gpu_milliseconds": [maybe(milli_gpu_seconds, cap.max_gpu_hours) for cap in caps],
            "max_millicredits": [maybe(milli, cap.max_credits) for cap in caps],
            "per_run_gpus": [maybe(lambda limit: limit.max_gpus, limit) for limit in limits],
            "per_run_time": [maybe(lambda limit: limit.max_time, limit) for limit in limits],
            "start": [cap.start for cap in caps],
            "end": [cap.end for cap in caps],
        },
    )


def leases(found: Sequence[Lease]) -> pa.Table:
    """One row a lease, open or closed; ``run`` is the name that people see (`NAME-INDEX` for an array's index)."""
    specs = [lease.spec for lease in found]
    states = [lease.status for lease in found]
    return table(
        schema.LEASES,
        {
            "namespace": [lease.namespace for lease in found],
            "name": [lease.name for lease in found],
            "run": [spec.run_ref.run_name for spec in specs],
            "run_uid": [spec.run_uid for spec in specs],
            "owner": [spec.owner for spec in specs],
            "run_owner": [spec.run_owner for spec in specs],
            "flavor": [spec.flavor for spec in specs],
            "group": [spec.group for spec in specs],
            "node": [spec.node for spec in specs],
            "node_uid": [spec.slice.node_uid or None for spec in specs],
            "ordinals": [sorted(spec.ordinals) for spec in specs],
            "role": [spec.slice.role for spec in specs],
            "start": [spec.interval.start for spec in specs],
            "budget": [spec.paid_by and spec.paid_by.budget for spec in specs],
            "envelope": [spec.paid_by and spec.paid_by.envelope for spec in specs],
            "reason": [spec.reason for spec in specs],
            "closed": [status.closed for status in states],
            "ended": [status.ended for status in states],
            "closure_reason": [status.closure_reason for status in states],
            "funding": [[_segment(segment) for segment in status.funding] for status in states],
        },
    )


def reservations(found: Sequence[Reservation]) -> pa.Table:
    """One row a Reservation; what its status does not say is as first promised."""
    slices = [each.status.intended_slice or each.spec.intended_slice for each in found]
    return table(
        schema.RESERVATIONS,
        {
            "namespace": [each.namespace for each in found],
            "name": [each.name for each in found],
            "uid": [each.metadata.uid for each in found],
            "run": [each.spec.run_ref.run_name for each in found],
            "first_start": [each.spec.earliest_start for each in found],
            "start": [each.status.earliest_start or each.spec.earliest_start for each in found],
            "nodes": [where.nodes for where in slices],
            "state": [each.status.state for each in found],
            "status": [msgspec.json.encode(each.status, enc_hook=enc_hook, order="sorted").decode() for each in found],
        },
    )


def reservation_status(text: str) -> ReservationStatus:
    """The status in the table's text."""
    return msgspec.json.decode(text, type=ReservationStatus, dec_hook=dec_hook)


def _segment(segment: Segment) -> tuple[str, int, int | None, int | None]:
    return segment.class_, segment.from_, segment.to, maybe(milli, segment.rate)


def seen_rates(rates: Mapping[str, int]) -> pa.Table:
    """One row a flavor with a credit rate."""
    flavors = sorted(rates)
    return table(schema.SEEN_RATES, {"flavor": flavors, "rate_milli": [rates[flavor] for flavor in flavors]})


def seen_discounts(found: Sequence[Discount]) -> pa.Table:
    """One row a discount of spares."""
    return table(
        schema.SEEN_DISCOUNTS, {"since": [each.since for each in found], "milli": [each.milli for each in found]}
    )


def seen_world(found: World | None) -> pa.Table:
    """One row where the last cycle told what it was given."""
    told = [] if found is None else [found]
    return table(
        schema.SEEN_WORLD, {"given": [each.given for each in told], "changed": [each.changed for each in told]}
    )


def lottery(chain: Chain | None) -> pa.Table:
    """One row where the chain of secrets is in place of another one."""
    return table(schema.LOTTERY, {"opens": [] if chain is None or chain.opens is None else [chain.opens]})


def balances(found: Sequence[Account]) -> pa.Table:
    """One row an account."""
    columns = {name: [getattr(account, name) for account in found] for name in schema.BALANCES.names}
    return table(schema.BALANCES, columns | {"place": [place or None for place in columns["place"]]})


def accounts(balances: pa.Table) -> list[Account]:
    """The accounts of such a table."""
    return read(balances, Account)


def unread(found: Sequence[UnreadLease]) -> pa.Table:
    """One row a Lease that cannot be read and may be open."""
    columns = {name: [getattr(lease, name) for lease in found] for name in schema.UNREAD.names}
    return table(schema.UNREAD, columns)


def notices(found: Sequence[Notice]) -> pa.Table:
    """One row a sentence about an object."""
    return table(
        schema.QUARANTINE,
        {name: [getattr(notice, name) for notice in found] for name in ("kind", "namespace", "name", "message")}
        | {"told_by": [notice.told_by or None for notice in found]},
    )


def set_aside(notices: pa.Table, kind: str) -> list[tuple[str, str]]:
    """(namespace, name) of the objects of a kind that notices are about."""
    rows = zip(*(values.texts(notices, name) for name in ("kind", "namespace", "name")), strict=True)
    return [(namespace, name) for of, namespace, name in rows if of == kind]
