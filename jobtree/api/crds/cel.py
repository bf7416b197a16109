"""The rules that the API server itself enforces, in CEL, by kind and place (spec §1).

What must hold whoever writes and with every webhook down is here: immutability and monotone closure on the object's
root (a rule on `spec` or `status` is not asked when that whole field is removed), and the rules between fields that
CEL can say. `rules` says all of them, and says them better.
https://kubernetes.io/docs/reference/using-api/cel/
"""

from __future__ import annotations

from typing import Final, NamedTuple

from jobtree.api.kinds.base import DEFAULT_RESOURCE_NAMES, MAX_ARRAY_NAME, MAX_GROUPS, MAX_RUN_NAME
from jobtree.api.kinds.run import RunSpec
from jobtree.api.kinds.template import FORBIDDEN
from jobtree.api.values.scalars import MAX_CPU, MAX_MEMORY, Cpu, Memory


class Rule(NamedTuple):
    """One `x-kubernetes-validations` entry; `field` is where the message points, from the rule's place."""

    rule: str
    message: str
    field: str = ""


#: A place in the schema: JSON names, `[]` for a list's entries. The empty place is the object's root.
Place = tuple[str, ...]

_MAY_CHANGE: Final = "after creation only state, malleable.desiredTotalGPUs and funding.sponsors may change"
_SPEC_FIXED: Final = Rule("self.spec == oldSelf.spec", "the spec never changes", ".spec")


# Optionals (`self.spec.?x == oldSelf.spec.?x`) would be shorter, but the server cannot bound their cost and refuses.
def _same(field: str, within: str = "") -> str:
    """A field of the spec, or of one of its parts, that is there and the same in old and new, or in neither."""
    part = f"spec.{within or field}"
    whole = f"spec.{within}.{field}" if within else part
    return f"has(self.{part}) == has(oldSelf.{part}) && (!has(self.{part}) || self.{whole} == oldSelf.{whole})"


def _same_value(value: str) -> str:
    """An expression over `{0}`, an object, that has the same value in old and new."""
    return f"({value.format('self')}) == ({value.format('oldSelf')})"


def _run_changes() -> list[Rule]:
    free = {"state", "malleable", "funding", "spares", "sparesPerGroup"}
    rules = [
        Rule(_same(name), f"spec.{name} is fixed: {_MAY_CHANGE}", f".spec.{name}")
        for name in RunSpec.__struct_encode_fields__
        if name not in free
    ]
    rules += [
        Rule(_same(name, "malleable"), f"spec.malleable.{name} is fixed: {_MAY_CHANGE}", f".spec.malleable.{name}")
        for name in ("minTotalGPUs", "maxTotalGPUs", "stepGPUs")
    ]
    rules += [
        Rule(
            _same_value(
                f"has({{0}}.spec.funding) && has({{0}}.spec.funding.{name}) ? {{0}}.spec.funding.{name} : {default}"
            ),
            f"spec.funding.{name} is fixed: {_MAY_CHANGE}",
            ".spec.funding",
        )
        for name, default in (("allowBorrow", "false"), ("opportunistic", "false"), ("maxBorrowGPUs", "-1"))
    ]
    spares = "has({0}.spec.spares) ? {0}.spec.spares : has({0}.spec.sparesPerGroup) ? {0}.spec.sparesPerGroup : 0"
    return [*rules, Rule(_same_value(spares), f"spec.spares is fixed: {_MAY_CHANGE}", ".spec")]


def _positive(*fields: str) -> list[Rule]:
    """Durations that are not zero: one that is has no other digit."""
    return [
        Rule(f"!has(self.{field}) || self.{field}.matches('[1-9]')", f"{field} is a duration above 0s", f".{field}")
        for field in fields
    ]


def _named(container: str, need: str, name: str) -> tuple[str, str]:
    """Whether a container states that resource, and how many of it."""
    escaped = name.replace(".", "__dot__").replace("/", "__slash__")
    value = f"{container}.resources.{need}.{escaped}"
    return f"has({container}.resources) && has({container}.resources.{need}) && has({value})", value


def _states(need: str) -> str:
    """Whether the container `c` states any GPUs."""
    return " || ".join(f"({_named('c', need, name)[0]})" for name in DEFAULT_RESOURCE_NAMES)


def _template_gpus() -> list[Rule]:
    """The GPUs of a template, where it states any, are those of one pod, as every pod of the run has them."""
    pod = (
        "has(self.resources.pods) ? 0 : has(self.resources.gpusPerPod) ? self.resources.gpusPerPod : "
        "!has(self.locality) || !has(self.locality.groupGPUs) ? "
        "(has(self.malleable) ? (self.malleable.minTotalGPUs == self.malleable.stepGPUs ? "
        "self.malleable.stepGPUs : -1) : self.resources.totalGPUs) : "
        "has(self.malleable) || self.resources.totalGPUs % self.locality.groupGPUs == 0 ? self.locality.groupGPUs : "
        "self.resources.totalGPUs < self.locality.groupGPUs ? self.resources.totalGPUs : -1"
    )
    rules = []
    for need in ("limits", "requests"):
        counts = " + ".join(
            f"({there} ? quantity(string({value})).asInteger() : 0)"
            for there, value in (_named("c", need, name) for name in DEFAULT_RESOURCE_NAMES)
        )
        told = f"self.template.spec.containers.exists(c, {_states(need)})"
        total = f"self.template.spec.containers.map(c, {counts}).sum()"
        rules.append(
            Rule(
                f"!has(self.template) || !{told} || {total} == ({pod})",
                f"GPU {need} of a template are those of one pod: resources.gpusPerPod, or they are left out",
                ".template",
            )
        )
    return rules


_RUN: Final[dict[Place, list[Rule]]] = {
    (): [
        *_run_changes(),
        Rule(
            "!has(oldSelf.spec.state) || oldSelf.spec.state != 'Cancelled' || "
            "(has(self.spec.state) && self.spec.state == 'Cancelled')",
            "Cancelled is final",
            ".spec.state",
        ),
        Rule(
            f"!has(self.spec.array) || self.metadata.name.size() <= {MAX_ARRAY_NAME}",
            f"the name of a Run with an array has at most {MAX_ARRAY_NAME} characters",
            ".metadata.name",
        ),
        Rule(
            "!has(self.spec.follow) || !(self.metadata.name in self.spec.follow.after)",
            "nothing follows itself",
            ".spec.follow.after",
        ),
        Rule(
            "!has(self.spec.parent) || self.spec.parent != self.metadata.name",
            "nothing is its own parent",
            ".spec.parent",
        ),
    ],
    ("spec",): [
        Rule(
            "!has(self.malleable) || !has(self.resources.totalGPUs) || "
            "(self.malleable.minTotalGPUs <= self.resources.totalGPUs && "
            "self.resources.totalGPUs <= self.malleable.maxTotalGPUs)",
            "totalGPUs lies between malleable.minTotalGPUs and malleable.maxTotalGPUs",
            ".resources",
        ),
        Rule(
            "!has(self.malleable) || !has(self.resources.totalGPUs) || "
            "(self.resources.totalGPUs - self.malleable.minTotalGPUs) % self.malleable.stepGPUs == 0",
            "totalGPUs is malleable.minTotalGPUs plus a multiple of malleable.stepGPUs",
            ".resources",
        ),
        Rule(
            "!has(self.malleable) || !has(self.locality) || !has(self.locality.groupGPUs) || "
            "(self.malleable.minTotalGPUs % self.locality.groupGPUs == 0 && "
            "self.malleable.stepGPUs % self.locality.groupGPUs == 0)",
            "malleable.minTotalGPUs and malleable.stepGPUs are multiples of locality.groupGPUs",
            ".malleable",
        ),
        Rule(
            "!has(self.resources.gpusPerPod) || !has(self.resources.totalGPUs) || has(self.malleable) || "
            "(self.resources.totalGPUs % self.resources.gpusPerPod == 0 && "
            "(!has(self.locality) || !has(self.locality.groupGPUs) || "
            "self.resources.totalGPUs <= self.locality.groupGPUs || "
            "self.locality.groupGPUs % self.resources.gpusPerPod == 0))",
            "resources.gpusPerPod divides every group",
            ".resources",
        ),
        Rule(
            "!has(self.resources.gpusPerPod) || !has(self.malleable) || "
            "(has(self.locality) && has(self.locality.groupGPUs) ? "
            "self.locality.groupGPUs % self.resources.gpusPerPod == 0 : "
            "self.malleable.minTotalGPUs % self.resources.gpusPerPod == 0 && "
            "self.malleable.stepGPUs % self.resources.gpusPerPod == 0)",
            "resources.gpusPerPod divides every group",
            ".resources",
        ),
        Rule(
            "!has(self.resources.pods) || (!has(self.malleable) && !has(self.spares) && !has(self.sparesPerGroup) && "
            "!(has(self.locality) && has(self.locality.groupGPUs)))",
            "a run with pods of CPU has no malleable, spares or groupGPUs",
            ".resources",
        ),
        Rule(
            "!has(self.spares) || !has(self.sparesPerGroup) || self.spares == self.sparesPerGroup",
            "spares and sparesPerGroup are one field: state one of them",
            ".sparesPerGroup",
        ),
        Rule("!has(self.array) || !has(self.gang)", "each index of an array starts alone, so it has no gang", ".gang"),
        Rule(
            "!has(self.resources.totalGPUs) || !has(self.locality) || !has(self.locality.groupGPUs) || "
            "((has(self.malleable) ? self.malleable.maxTotalGPUs : self.resources.totalGPUs) "
            f"+ self.locality.groupGPUs - 1) / self.locality.groupGPUs <= {MAX_GROUPS}",
            f"a run has at most {MAX_GROUPS} groups",
            ".locality",
        ),
        Rule(
            "!has(self.malleable) || (has(self.locality) && has(self.locality.groupGPUs)) || "
            f"(self.malleable.maxTotalGPUs - self.malleable.minTotalGPUs) / self.malleable.stepGPUs < {MAX_GROUPS}",
            f"each step is a group, and a run has at most {MAX_GROUPS} groups",
            ".malleable",
        ),
        *_template_gpus(),
    ],
    ("spec", "runtime"): _positive("checkpoint", "expected", "timeLimit"),
    ("spec", "resources"): [
        Rule(
            "has(self.pods) ? has(self.cpuPerPod) && has(self.memoryPerPod) && !has(self.gpuType) && "
            "!has(self.totalGPUs) && !has(self.gpusPerPod) : "
            "has(self.gpuType) && has(self.totalGPUs) && !has(self.cpuPerPod) && !has(self.memoryPerPod)",
            "a run states either gpuType and totalGPUs, or pods, cpuPerPod and memoryPerPod",
        ),
        *(
            Rule(
                f"!has(self.{field}) || quantity(string(self.{field})).isGreaterThan(quantity('0')) && "
                f"!quantity(string(self.{field})).isGreaterThan(quantity('{most}'))",
                f"{field} is a quantity above 0 and at most {most}",
                f".{field}",
            )
            for field, most in (("cpuPerPod", Cpu(MAX_CPU)), ("memoryPerPod", Memory(MAX_MEMORY)))
        ),
    ],
    ("spec", "malleable"): [
        Rule("self.minTotalGPUs <= self.maxTotalGPUs", "minTotalGPUs is at most maxTotalGPUs", ".minTotalGPUs"),
        Rule(
            "(self.maxTotalGPUs - self.minTotalGPUs) % self.stepGPUs == 0",
            "maxTotalGPUs is minTotalGPUs plus a multiple of stepGPUs",
            ".maxTotalGPUs",
        ),
        Rule(
            "!has(self.desiredTotalGPUs) || (self.minTotalGPUs <= self.desiredTotalGPUs && "
            "self.desiredTotalGPUs <= self.maxTotalGPUs && "
            "(self.desiredTotalGPUs - self.minTotalGPUs) % self.stepGPUs == 0)",
            "desiredTotalGPUs is minTotalGPUs plus a multiple of stepGPUs, at most maxTotalGPUs",
            ".desiredTotalGPUs",
        ),
    ],
    ("spec", "array"): [Rule("has(self.count) != has(self.indices)", "an array states either count or indices")],
    ("spec", "template", "spec"): [
        Rule(
            f"!has(self.{field}) || size(self.{field}) == 0",
            f"{field} is left out of a template: {why}",
            f".{field}",
        )
        for field, why in FORBIDDEN.items()
    ]
    + [
        Rule(
            f"!has(self.initContainers) || !self.initContainers.exists(c, {_states(need)})",
            "init containers ask for no GPUs: they are those of the containers",
            ".initContainers",
        )
        for need in ("limits", "requests")
    ],
}

_WINDOW: Final = Rule("!has(self.start) || !has(self.end) || self.start < self.end", "end is after start", ".end")
_BUDGET: Final[dict[Place, list[Rule]]] = {
    (): [Rule("self.spec.owner == oldSelf.spec.owner", "the owner of a Budget never changes", ".spec.owner")],
    ("spec",): [
        Rule(
            "has(self.envelopes) && self.envelopes.size() > 0 || has(self.useCaps) && self.useCaps.size() > 0",
            "a Budget has an envelope at least, or a use cap",
            ".envelopes",
        ),
        Rule("!has(self.parents) || !(self.owner in self.parents)", "nothing descends from itself", ".parents"),
        Rule(
            "!has(self.aggregateCaps) || self.aggregateCaps.all(cap, cap.envelopes.all(name, "
            "has(self.envelopes) && self.envelopes.exists(envelope, envelope.name == name)))",
            "aggregateCaps name envelopes of this Budget",
            ".aggregateCaps",
        ),
        Rule(
            "!has(self.aggregateCaps) || self.aggregateCaps.all(cap, !has(cap.flavor) || !has(self.envelopes) || "
            "self.envelopes.all(envelope, !(envelope.name in cap.envelopes) || envelope.flavor == cap.flavor))",
            "envelopes of an aggregate cap with a flavor have that flavor",
            ".aggregateCaps",
        ),
    ],
    ("spec", "envelopes", "[]"): [
        _WINDOW,
        Rule(
            "!has(self.start) || !has(self.end) || !has(self.maxGPUHours) || self.maxGPUHours * 3600.0 <= "
            "double(self.concurrency) * double((self.end - self.start).getSeconds())",
            "maxGPUHours is at most concurrency × window hours",
            ".maxGPUHours",
        ),
    ],
    ("spec", "useCaps", "[]"): [
        _WINDOW,
        Rule(
            "has(self.maxConcurrency) || has(self.maxGPUHours) || has(self.maxCredits) || "
            "(has(self.perRun) && (has(self.perRun.maxGPUs) || has(self.perRun.maxTime)))",
            "a use cap bounds something",
        ),
    ],
    ("spec", "envelopes", "[]", "perRun"): _positive("maxTime", "defaultTime"),
}

_LEASE: Final[dict[Place, list[Rule]]] = {
    (): [
        _SPEC_FIXED,
        Rule(
            "!has(oldSelf.status) || !has(oldSelf.status.closed) || !oldSelf.status.closed || "
            "(has(self.status) && self.status == oldSelf.status)",
            "a closed Lease is final",
            ".status",
        ),
        Rule(
            "!has(self.status) || !has(self.status.ended) || self.status.ended >= self.spec.interval.start",
            "ended is not before spec.interval.start",
            ".status.ended",
        ),
    ],
    ("spec",): [
        Rule("has(self.paidBy) || self.owner == self.runOwner", "where nobody pays, owner is runOwner", ".owner"),
    ],
    ("spec", "slice"): [
        Rule(
            "self.nodes.all(slot, slot.startsWith(self.nodes[0].split('#')[0] + '#'))",
            "a lease never spans two nodes",
            ".nodes",
        ),
        # As an atomic list, so that even its order is part of the fact; a set would compare equal in any order.
        Rule("self.nodes.all(slot, self.nodes.exists_one(other, other == slot))", "each slot once", ".nodes"),
    ],
    ("status",): [
        Rule(
            "has(self.closed) && self.closed ? has(self.ended) && has(self.closureReason) : "
            "!has(self.ended) && !has(self.closureReason)",
            "a closed Lease has ended and closureReason, an open one neither",
        ),
    ],
}

_POLICY: Final[dict[Place, list[Rule]]] = {
    (): [Rule("self.metadata.name == 'default'", "the one Policy is named default")],
    ("spec",): [
        Rule("!has(self.stages) || 'starts' in self.stages", "the stage starts cannot be dropped", ".stages"),
        *_positive("accountingPeriod"),
    ],
    ("spec", "spares"): [
        Rule(
            "!has(self.discount) || (double(int(self.discount * 1000.0 + 0.5)) - self.discount * 1000.0 < 0.000001 && "
            "self.discount * 1000.0 - double(int(self.discount * 1000.0 + 0.5)) < 0.000001)",
            "discount has at most 3 decimals",
            ".discount",
        )
    ],
    ("spec", "reservations"): _positive("bucket"),
    ("spec", "age"): _positive("unit"),
    ("spec", "solver"): _positive("deadline"),
    ("spec", "maintenance", "[]"): [Rule("self.start < self.end", "end is after start", ".end")],
}

#: All rules by kind and place.
RULES: Final[dict[str, dict[Place, list[Rule]]]] = {
    "Run": _RUN,
    "Budget": _BUDGET,
    "Lease": _LEASE,
    "Reservation": {
        (): [_SPEC_FIXED],
        ("spec", "intendedSlice"): [
            Rule("has(self.domain) || has(self.nodes)", "a slice states its domain, its nodes or both")
        ],
    },
    "Plan": {(): [_SPEC_FIXED]},
    "Policy": _POLICY,
}

#: What `metadata.name` must be, by kind; other kinds follow Kubernetes' own rule.
NAMES: Final[dict[str, dict[str, str | int]]] = {
    "Run": {"maxLength": MAX_RUN_NAME, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
}
