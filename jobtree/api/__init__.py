"""The vocabulary: the six kinds of `rq.davidlangworthy.io/v1`, and the only place of field names."""

from jobtree.api.kinds.base import (
    ANNOTATION_COMPLETED,
    ANNOTATION_ETA,
    API_VERSION,
    GROUP,
    LABEL_CYCLE,
    LABEL_RUN,
    MAX_ARRAY_NAME,
    MAX_RUN_NAME,
    VERSION,
)
from jobtree.api.kinds.budget import Budget
from jobtree.api.kinds.lease import Lease
from jobtree.api.kinds.meta import ObjectMeta, RunRef
from jobtree.api.kinds.plan import Plan
from jobtree.api.kinds.policy import Policy
from jobtree.api.kinds.reservation import Reservation
from jobtree.api.kinds.run import Run
from jobtree.api.rules.decode import KINDS, KindObject, decode, encode
from jobtree.api.values.errors import Refusal
from jobtree.api.values.scalars import Duration, OwnerPath, Time, dec_hook, enc_hook

__all__ = [
    "ANNOTATION_COMPLETED",
    "ANNOTATION_ETA",
    "API_VERSION",
    "GROUP",
    "KINDS",
    "LABEL_CYCLE",
    "LABEL_RUN",
    "MAX_ARRAY_NAME",
    "MAX_RUN_NAME",
    "VERSION",
    "Budget",
    "Duration",
    "KindObject",
    "Lease",
    "ObjectMeta",
    "OwnerPath",
    "Plan",
    "Policy",
    "Refusal",
    "Reservation",
    "Run",
    "RunRef",
    "Time",
    "dec_hook",
    "decode",
    "enc_hook",
    "encode",
]
