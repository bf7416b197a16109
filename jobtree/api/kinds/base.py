"""What every struct of the API shares: names, strictness, and the group's constants (spec §1)."""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

GROUP: Final = "rq.davidlangworthy.io"
VERSION: Final = "v1"
API_VERSION: Final = "rq.davidlangworthy.io/v1"
#: Version of Leases, stored as `v1`, whose status is no subresource: a planner creates one with its ledger in one call.
WHOLE_VERSION: Final = "v1whole"

#: Label of a pod: the name of the run that it belongs to.
LABEL_RUN: Final = f"{GROUP}/run"
#: Label of a pod that a cycle made: the cycle that opened the lease which it serves, as `20260101T000000Z`.
LABEL_CYCLE: Final = f"{GROUP}/cycle"
#: Annotation of a run or pod: the end that the program itself reports (RFC 3339).
ANNOTATION_ETA: Final = f"{GROUP}/eta"
#: Annotation of a run: marked complete by hand (state files only).
ANNOTATION_COMPLETED: Final = f"{GROUP}/completed"
#: Annotation of a node: since when Jobtree has it cordoned because it failed (RFC 3339).
ANNOTATION_CORDONED: Final = f"{GROUP}/cordoned"
#: Annotations of a run with an array: indices that are marked complete, `TIME=0-3,7` parted by blanks (state files
#: only), and those that are cancelled, `0-3,7`.
ANNOTATION_COMPLETED_INDICES: Final = f"{GROUP}/completed-indices"
ANNOTATION_CANCELLED_INDICES: Final = f"{GROUP}/cancelled-indices"

#: Longest name of a Run, and of a Run with an array (room for `-INDEX`).
MAX_RUN_NAME: Final = 52
MAX_ARRAY_NAME: Final = 45
#: Most indices of an array.
MAX_INDICES: Final = 10_000
#: Most GPUs a single number may state; keeps every product of GPUs and seconds within int64.
MAX_GPUS: Final = 1_000_000
#: Most groups that one run may have: every one of them is placed, and told of when it cannot be.
MAX_GROUPS: Final = 16_384
#: Most runs on the way from the root of a tree of runs to any of it.
MAX_DEPTH: Final = 64
#: Most GPUs of one node: a lease's slots are NODE#0 to NODE#999.
MAX_NODE_GPUS: Final = 1000
#: Resources of a node or container that are GPUs, where the Policy names no others.
DEFAULT_RESOURCE_NAMES: Final = ("nvidia.com/gpu", "amd.com/gpu")
#: Most GPU-hours or credits a single bound may state.
MAX_AMOUNT: Final = 1_000_000_000

T = TypeVar("T")

_UPPER: Final = {"gpu": "GPU", "gpus": "GPUs"}


def json_name(attribute: str) -> str:
    """The JSON name of a Python attribute: `max_gpu_hours` -> `maxGPUHours`, `from_` -> `from`."""
    first, *rest = attribute.rstrip("_").split("_")
    return first + "".join(_UPPER.get(word, word.capitalize()) for word in rest)


class Strict(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename=json_name,
    gc=False,
):
    """A part that people write: an unknown field is an error."""


class Tolerant(msgspec.Struct, frozen=True, omit_defaults=True, rename=json_name, gc=False):
    """A part that programs write: fields of other versions are passed over."""


def shown(default: T) -> T:
    """A default that is written out too: readers of a status find the field in every object."""
    factory: T = msgspec.field(default_factory=lambda: default)
    return factory


Count = Annotated[int, Meta(ge=0, le=MAX_GPUS)]
PositiveCount = Annotated[int, Meta(ge=1, le=MAX_GPUS)]
#: How an API server merges a list: entries are unique, or are told apart by a field of theirs.
AS_SET: Final = Meta(extra_json_schema={"x-kubernetes-list-type": "set"})
BY_NAME: Final = Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
BY_TYPE: Final = Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})
#: GPU-hours or credits. Whole numbers stay integers, so that no bound is ever rounded.
Amount = Annotated[int, Meta(ge=0, le=MAX_AMOUNT)] | Annotated[float, Meta(ge=0, le=MAX_AMOUNT)]
#: A share of a whole.
Fraction = Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]
Name = Annotated[str, Meta(min_length=1, max_length=253)]
# In Python `$` is also true before a line end at the end, which a schema's is not: `schema` writes `\\Z` as `$`.
_LABEL_VALUE: Final = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z"
_DNS_LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z"
_DNS_NAME: Final = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z"
_LABEL_KEY: Final = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z"
_ASKED_VALUE: Final = r"^(\*|[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z"
#: A GPU type, as nodes are labelled with it.
Flavor = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=63,
        pattern=_LABEL_VALUE,
        extra={"allowed": "a flavor such as H100-80GB, as in a node's label"},
    ),
]
#: Name of a part within an object, such as an envelope.
PartName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=63,
        pattern=_LABEL_VALUE,
        extra={"allowed": "a name of at most 63 letters, digits and -_., such as west"},
    ),
]
#: An index of an array of runs, and how many there may be.
Index = Annotated[int, Meta(ge=0, le=999_999)]
ArraySize = Annotated[int, Meta(ge=1, le=MAX_INDICES)]
SpareCount = Annotated[int, Meta(ge=0, le=1024)]
#: Name of another object.
RefName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=_DNS_NAME,
        extra={"allowed": "a name of lower-case letters, digits, - and ., such as rai-h100"},
    ),
]
#: Name of another Run.
RunName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=63,
        pattern=_DNS_LABEL,
        extra={"allowed": "a name of at most 63 lower-case letters, digits and -, such as train-32"},
    ),
]
Namespace = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=63,
        pattern=_DNS_LABEL,
        extra={"allowed": "a namespace of at most 63 lower-case letters, digits and -, such as team-a"},
    ),
]
#: UID of an object, as servers make them.
Uid = Annotated[str, Meta(max_length=64, pattern=r"^[!-~]*\Z", extra={"allowed": "a UID"})]
#: A node's label, or a resource of it.
LabelName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=317,
        pattern=_LABEL_KEY,
        extra={"allowed": "a label's key such as gpu.flavor or nvidia.com/gpu.product"},
    ),
]
#: What a selector asks a label to be.
LabelValue = Annotated[
    str,
    Meta(
        max_length=63,
        pattern=_ASKED_VALUE,
        extra={"allowed": "a text of at most 63 letters, digits and -_. (* for any)"},
    ),
]
Labels = dict[str, str]
LabelsAsked = dict[LabelName, LabelValue]
Selector = Annotated[LabelsAsked, Meta(min_length=1, max_length=16)]
