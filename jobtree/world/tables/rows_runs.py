"""The rows of the `runs` table (spec §1 Run, §2; columns and units: `schema`)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import pyarrow as pa

from jobtree.api import ANNOTATION_COMPLETED, ANNOTATION_ETA, Run, dec_hook, enc_hook
from jobtree.api.kinds.core import Toleration
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.kinds.run import RunSpec, RunStatus, derived_phase
from jobtree.api.values.scalars import milli_gpu_seconds
from jobtree.world.naming import needs
from jobtree.world.naming.annotations import time_or_none
from jobtree.world.tables import schema
from jobtree.world.tables.columns import table
from jobtree.world.tables.rows import maybe

Row = tuple[Any, ...]


Columns = dict[str, list[Any]]


def runs(found: Sequence[Run], policy: PolicySpec) -> pa.Table:
    """One row a Run; an array of runs is one row, and each index of it that is among them another."""
    specs = [run.spec for run in found]
    return table(
        schema.RUNS,
        {
            **_names(found),
            **_sizes(specs),
            **_pods(found, policy),
            **_times(specs),
            **_funding(specs),
            **_ties(specs),
            **_fates(found),
        },
    )


def _names(found: Sequence[Run]) -> Columns:
    return {
        "namespace": [run.namespace for run in found],
        "name": [run.name for run in found],
        "uid": [run.metadata.uid or None for run in found],
        "created": [run.metadata.creation_timestamp for run in found],
        "deleting": [run.metadata.deletion_timestamp is not None for run in found],
        "owner": [run.spec.owner for run in found],
        "state": [run.spec.state for run in found],
        "array": [run.spec.array is not None for run in found],
    }


def _sizes(specs: Sequence[RunSpec]) -> Columns:
    """GPUs, groups, widths and spares."""
    widths = [spec.malleable for spec in specs]
    return {
        "flavor": [spec.resources.gpu_type for spec in specs],
        "total": [spec.total_gpus for spec in specs],
        "pod": [spec.resources.gpus_per_pod or 0 for spec in specs],
        "cpu_pods": [spec.resources.pods or 0 for spec in specs],
        "group": [spec.locality.group_gpus or 0 for spec in specs],
        "spread": [spec.locality.allow_cross_group_spread for spec in specs],
        "min_total": [width and width.min_total_gpus for width in widths],
        "max_total": [width and width.max_total_gpus for width in widths],
        "step": [width and width.step_gpus for width in widths],
        "desired": [width and spec.desired_gpus for width, spec in zip(widths, specs, strict=True)],
        "spares": [spec.spares for spec in specs],
    }


def _pods(found: Sequence[Run], policy: PolicySpec) -> Columns:
    """What a pod asks of its node: a template's, the Policy's, or the CPU run's own."""
    specs = [run.spec for run in found]
    needs_of = [spec.resources for spec in specs]
    default = _default_pod(policy)
    templates: dict[int, Row] = {}  # indices of an array share theirs
    pods = [default if run.spec.template is None else _template_pod(run, policy, templates) for run in found]
    return {
        "selector": [_both(pod[0], spec.locality.selector) for pod, spec in zip(pods, specs, strict=True)],
        "tolerations": [pod[1] for pod in pods],
        "pod_cpu_milli": [
            pod[2] if need.cpu_per_pod is None else need.cpu_per_pod for pod, need in zip(pods, needs_of, strict=True)
        ],
        "pod_memory": [
            pod[3] if need.memory_per_pod is None else need.memory_per_pod
            for pod, need in zip(pods, needs_of, strict=True)
        ],
    }


def _times(specs: Sequence[RunSpec]) -> Columns:
    return {
        "checkpoint": [spec.runtime.checkpoint for spec in specs],
        "expected": [spec.runtime.expected for spec in specs],
        "time_limit": [spec.runtime.time_limit for spec in specs],
        "requeue": [spec.requeues for spec in specs],
    }


def _funding(specs: Sequence[RunSpec]) -> Columns:
    return {
        "allow_borrow": [spec.funding.allow_borrow for spec in specs],
        "max_borrow": [spec.funding.max_borrow_gpus for spec in specs],
        "sponsors": [spec.funding.sponsors for spec in specs],
        "opportunistic": [spec.funding.opportunistic for spec in specs],
    }


def _ties(specs: Sequence[RunSpec]) -> Columns:
    """What ties a run to others: upstream runs, its tree, its gang."""
    follows = [spec.follow for spec in specs]
    quotas = [spec.quota for spec in specs]
    return {
        "follow": [sorted(follow.after) if follow else () for follow in follows],
        "on_upstream_failure": [follow and follow.on_upstream_failure for follow in follows],
        "upstream_grace": [follow and follow.upstream_failure_grace for follow in follows],
        "parent": [spec.parent for spec in specs],
        "quota_gpus": [quota and quota.max_gpus for quota in quotas],
        "quota_gpu_milliseconds": [quota and maybe(milli_gpu_seconds, quota.max_gpu_hours) for quota in quotas],
        "gang": [spec.gang and spec.gang.name for spec in specs],
        "gang_size": [spec.gang and spec.gang.size for spec in specs],
    }


def _fates(found: Sequence[Run]) -> Columns:
    """What has been written about them: statuses and annotations."""
    outcomes = [outcome_of(run.status) for run in found]
    return {
        "outcome": [outcome for outcome, _ in outcomes],
        "outcome_reason": [reason for _, reason in outcomes],
        "completed_at": _annotated(found, ANNOTATION_COMPLETED),
        "eta": _annotated(found, ANNOTATION_ETA),
        "enforced_limit": [run.status.time_limit for run in found],
        "status": [status_json(run.status) for run in found],
    }


def _both(one: dict[str, str], other: dict[str, str]) -> list[tuple[str, str]]:
    """Everything that either asks for: where they ask for two values of one label, both stand, and nothing matches."""
    return sorted({*one.items(), *other.items()})


def _default_pod(policy: PolicySpec) -> Row:
    """Selector, tolerations, milli-CPU and bytes of the pod of a run without a template."""
    given = policy.pod_defaults
    tolerations = msgspec.convert(given.tolerations, tuple[Toleration, ...], dec_hook=dec_hook)
    return {}, _tolerations(tolerations), given.cpu or 0, given.memory or 0


def _template_pod(run: Run, policy: PolicySpec, known: dict[int, Row]) -> Row:
    """``known``: by the template's identity."""
    if id(run.spec.template) not in known:
        known[id(run.spec.template)] = _pod_of(run, policy)
    return known[id(run.spec.template)]


def _pod_of(run: Run, policy: PolicySpec) -> Row:
    spec = needs.of_template(run, policy.resource_names)
    assert spec is not None
    need = needs.of_pod(spec, policy.resource_names)
    return spec.node_selector, _tolerations(spec.tolerations), need.cpu_milli, need.memory


def _tolerations(given: Sequence[Toleration]) -> list[tuple[str, str, str, str]]:
    return sorted((each.key, each.operator, each.value, each.effect) for each in given)


def outcome_of(status: RunStatus) -> tuple[str | None, str | None]:
    """Completed or Failed with its reason, as the conditions say, and the phase only where one is not there."""
    told = {condition.type: condition for condition in status.conditions}
    phase = derived_phase(status.phase, {kind: condition.status == "True" for kind, condition in told.items()})
    if phase not in ("Failed", "Completed"):
        return None, None
    return phase, told[phase].reason or None if phase in told else None


def _annotated(found: Sequence[Run], annotation: str) -> list[int | None]:
    """What an annotation says; of an array nothing, whose indices are told of one by one."""
    return [None if run.spec.array else maybe(time_or_none, run.metadata.annotations.get(annotation)) for run in found]


NO_STATUS: Final = RunStatus()
"""Of a run that no cycle has looked at yet."""
_STATUS: Final = msgspec.json.Decoder(RunStatus, dec_hook=dec_hook)


def status_json(status: RunStatus) -> str | None:
    """The status as canonical JSON; None where it says nothing."""
    if status == NO_STATUS:
        return None
    return msgspec.json.encode(status, enc_hook=enc_hook, order="sorted").decode()


@lru_cache(maxsize=1 << 14)  # a cycle asks several times for the same, and the next one mostly for the same again
def status_in(text: str) -> RunStatus:
    """Decode what `status_json` made a text of; of an empty one `NO_STATUS`."""
    return _STATUS.decode(text) if text else NO_STATUS
