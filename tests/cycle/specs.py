"""What a hand may make of the spec of a Lease, which is a fact: any field edited, the lease deleted or doubled."""

import copy
from typing import Any, Final

from hypothesis import strategies as st

from tests.cycle import hands
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.drawing import Draw

OWNERS: Final = ("org", "org:a", "org:b", "lab", "club", "nobody")
PAYERS: Final = (
    None,
    *({"budget": budget, "envelope": name} for budget in ("org", "org-a", "lab", "x") for name in ("gpus", "x")),
)
SLOTS: Final[tuple[list[str], ...]] = (
    ["a01#0"], ["a01#7"], ["a02#0", "a02#1"], ["b01#0"], ["a01#99"], ["gone#0"], ["a01#0", "a01#0"], ["a01#0", "a02#0"],
    ["a01#0", "a01#1", "a01#2", "a01#3"], [],
)  # fmt: skip
SPEC: Final[dict[str, tuple[Any, ...]]] = {
    "owner": OWNERS,
    "runRef": tuple({"name": name} for name in ("own", "wide", "done", "free", "idle", "small", "far", "nobody")),
    "runUid": ("", "other"),
    "runOwner": OWNERS,
    "flavor": ("A100", doc.FLAVOR, 7),
    "group": (0, 1, 7, "0"),
    "reason": ("Start", "Grow", "Swap", "Bogus"),
    "cycle": ("", "other"),
    "paidBy": PAYERS,
}
"""Fields of a spec, with what a hand may say there; None takes it out."""


@st.composite
def edited(draw: Draw, most: int = 2) -> hands.Case:
    """The cluster after up to ``most`` edits of Leases."""
    return hands.edited(draw, most, _edit)


def _edit(draw: Draw, documents: list[Document]) -> str:
    each = draw(st.sampled_from([each for each in documents if each["kind"] == "Lease"]))
    spec, name = each["spec"], each["metadata"]["name"]
    way: str = draw(st.sampled_from(["delete", "double", "slots", "start", "role", *["field"] * 6]))
    if way == "delete":
        documents.remove(each)
    elif way == "double":
        other = copy.deepcopy(each)
        other["metadata"]["name"] = f"{name}-again-{len(documents)}"
        documents.append(other)
    elif way == "slots":
        spec["slice"]["nodes"] = list(draw(st.sampled_from(SLOTS)))
        way = f"slots {spec['slice']['nodes']}"
    elif way == "start":
        spec["interval"]["start"] = draw(st.sampled_from(hands.TIMES))
        way = f"start {spec['interval']['start']}"
    elif way == "role":
        spec["slice"]["role"] = "Spare" if spec["slice"].get("role", "Active") == "Active" else "Active"
    else:
        way = hands.set_one(draw, spec, SPEC)
    return f"{name}: {way}"
