"""CustomResourceDefinitions of the six kinds, made from their structs."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import yaml

from jobtree.api.crds.cel import NAMES, RULES, Place, Rule
from jobtree.api.crds.schema import Schema, schema
from jobtree.api.kinds.base import GROUP, VERSION, WHOLE_VERSION
from jobtree.api.rules.decode import KINDS
from jobtree.api.values.allowed import type_of


class Column(NamedTuple):
    """A column of `kubectl get`; `wide` ones come with `-o wide`."""

    name: str
    type: str
    path: str
    wide: bool = False


class Resource(NamedTuple):
    """What the API server calls a kind, and what `kubectl get` prints of it."""

    plural: str
    short: str
    columns: tuple[Column, ...]


RESOURCES: Final[dict[str, Resource]] = {
    "Budget": Resource(
        "budgets",
        "bud",
        (
            Column("Owner", "string", ".spec.owner"),
            Column("GPUs", "string", ".spec.envelopes[*].concurrency"),
            Column("Headroom", "string", ".status.envelopes[*].headroomGPUs"),
            Column("Healthy", "string", '.status.conditions[?(@.type=="Healthy")].status'),
            Column("Envelopes", "string", ".spec.envelopes[*].name", wide=True),
            Column("UseCaps", "string", ".spec.useCaps[*].name", wide=True),
            Column("Capped", "string", ".spec.useCaps[*].maxConcurrency", wide=True),
            Column("CapHeadroom", "string", ".status.useCaps[*].headroomGPUs", wide=True),
        ),
    ),
    "Run": Resource(
        "runs",
        "jr",
        (
            Column("Owner", "string", ".spec.owner"),
            Column("Flavor", "string", ".spec.resources.gpuType"),
            Column("GPUs", "integer", ".spec.resources.totalGPUs"),
            Column("Phase", "string", ".status.phase"),
            Column("Width", "integer", ".status.width.allocated"),
            Column("Start", "string", ".status.earliestStart"),
            Column("ETA", "string", ".status.eta.p50"),
            Column("Reason", "string", '.status.conditions[?(@.type=="Admitted")].reason', wide=True),
            Column("Deficit", "integer", ".status.deficitGPUs", wide=True),
        ),
    ),
    "Reservation": Resource(
        "reservations",
        "rsv",
        (
            Column("Run", "string", ".spec.runRef.name"),
            Column("State", "string", ".status.state"),
            Column("Start", "string", ".status.earliestStart"),
            Column("Deficit", "integer", ".status.forecast.deficitGPUs"),
            Column("Confidence", "string", ".status.forecast.confidence", wide=True),
            Column("Reason", "string", ".status.reason", wide=True),
        ),
    ),
    "Lease": Resource(
        "gpuleases",
        "gl",
        (
            Column("Run", "string", ".spec.runRef.name"),
            Column("Group", "integer", ".spec.group"),
            Column("Role", "string", ".spec.slice.role"),
            Column("Budget", "string", ".spec.paidBy.budget"),
            Column("Envelope", "string", ".spec.paidBy.envelope"),
            Column("Start", "string", ".spec.interval.start"),
            Column("Ended", "string", ".status.ended"),
            Column("Reason", "string", ".status.closureReason"),
            Column("Slots", "string", ".spec.slice.nodes", wide=True),
        ),
    ),
    "Plan": Resource(
        "plans",
        "pl",
        (
            Column("At", "string", ".spec.at"),
            Column("Phase", "string", ".status.phase"),
            Column("Started", "integer", ".status.counts.started"),
            Column("Waiting", "integer", ".status.counts.waiting"),
            Column("Closed", "integer", ".status.counts.leasesClosed"),
            Column("Truncated", "boolean", ".status.truncated"),
        ),
    ),
    "Policy": Resource("policies", "jtp", (Column("Mode", "string", ".spec.mode"),)),
}
WHOLE: Final = frozenset({"Lease"})
"""Kinds that are served with their status as a part of the object too: those of which a cycle creates thousands, and
that nobody but a planner may write."""
_AGE: Final = Column("Age", "date", ".metadata.creationTimestamp")


def generate() -> dict[str, str]:
    """All definitions as YAML, by file name; the same text every time."""
    return {
        f"{RESOURCES[kind].plural}.yaml": yaml.dump(
            definition(kind), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110
        )
        for kind in sorted(RESOURCES)
    }


def definition(kind: str) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    resource = RESOURCES[kind]
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": resource.plural,
        "singular": resource.plural.removesuffix("ies") + "y"
        if kind == "Policy"
        else resource.plural.removesuffix("s"),
        "shortNames": [resource.short],
        "categories": ["jobtree"],
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in (*resource.columns, _AGE)],
        "schema": {"openAPIV3Schema": object_schema(kind)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}", "labels": {"app.kubernetes.io/part-of": "jobtree"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if KINDS[kind].NAMESPACED else "Cluster",
            "names": names,
            "versions": [version, *([_whole(version)] if kind in WHOLE else [])],
        },
    }


def _whole(version: dict[str, Any]) -> dict[str, Any]:
    """The same, but that a create takes the status too."""
    rest = {key: value for key, value in version.items() if key != "subresources"}
    return {**rest, "name": WHOLE_VERSION, "storage": False}


def object_schema(kind: str) -> Schema:
    """The whole object's schema, with its CEL rules in their places."""
    found = schema(type_of(KINDS[kind]))
    parts = found.pop("properties")
    name: Schema = {"properties": {"name": {"type": "string", **NAMES[kind]}}} if kind in NAMES else {}
    found |= {
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", **name},
            "spec": parts["spec"],
            "status": parts["status"],
        },
    }
    for place, rules in RULES[kind].items():
        _at(found, place)["x-kubernetes-validations"] = [_validation(rule) for rule in rules]
    return found


def _at(found: Schema, place: Place) -> Schema:
    for part in place:
        found = found["items"] if part == "[]" else found["properties"][part]
    return found


def _validation(rule: Rule) -> dict[str, str]:
    entry = {"rule": rule.rule, "message": rule.message}
    return {**entry, "fieldPath": rule.field} if rule.field else entry


def _column(column: Column) -> dict[str, Any]:
    entry = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return {**entry, "priority": 1} if column.wide else entry


class _Dumper(yaml.CSafeDumper):
    """Writes every value out in full: an API server's client reads no anchors it did not ask for."""

    def ignore_aliases(self, data: object) -> bool:
        return True
