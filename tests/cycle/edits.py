"""What an owner or an operator may edit in the Budgets and the Policy of a running cluster, field by field."""

from typing import Any, Final

from hypothesis import strategies as st

from tests.cycle import hands
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.drawing import Draw
from tests.support.times import moment

OWNERS: Final = ("org", "org:a", "org:b", "org:a:x", "lab", "club", "nobody:else")
TIMES: Final = (None, *(moment(each) for each in ("-300d", "-4h", "-90m", "-1h", "-1s", "+0s", "+5m", "+300d")))
HOURS: Final = (None, 0, 1, 9, 40, 10**6)
GPUS: Final = (1, 2, 4, 7, 100)
ACL: Final[tuple[list[str], ...]] = ([], ["*"], ["club"], ["cl*"], ["org:*"], ["nobody"])
ENVELOPE: Final[dict[str, tuple[Any, ...]]] = {
    "name": ("other",),
    "flavor": ("A100", "V100"),
    "selector": ({"region": "us-east"}, {"fabric.domain": "A"}, {"fabric.domain": "B"}, {"none": "*"}, {"none": "x"}),
    "concurrency": GPUS,
    "maxGPUHours": HOURS,
    "maxCredits": HOURS,
    "start": TIMES,
    "end": TIMES,
    "scope": ("own", "subtree"),
    "sharing": ("family", "none", None),
    "preActivation": ({"allowAdmission": True}, {"allowReservations": False}),
    "perRun": ({"maxGPUs": 1}, {"maxTime": "1h"}, {"defaultTime": "3h"}, None),
    "lending": (
        None,
        {"allow": False},
        *({"allow": True, "to": to, "maxConcurrency": most} for to in ACL for most in (None, 1, 3)),
        *({"allow": True, "maxDuration": span, "maxGPUHours": hours} for span in ("1s", "30d") for hours in (None, 1)),
    ),
    "speed": (3,),
}
"""Fields of an envelope, with what it may say there; None takes it out, and an unknown one breaks the Budget."""
BUDGET: Final[dict[str, tuple[Any, ...]]] = {
    "owner": OWNERS,
    "parents": (None, [], ["org"], ["lab"], ["org:b"], ["club"]),
    "namespaces": (None, [], ["default"], ["elsewhere"]),
    "aggregateCaps": (
        None,
        *([{"name": name, "envelopes": ["gpus"], **bound}] for name in ("all", "both") for bound in (
            {"maxConcurrency": 1}, {"maxConcurrency": 100}, {"maxGPUHours": 2}, {"maxCredits": 1}, {"flavor": "A100"},
        )),
    ),
    "envelopes": ([],),
    "colour": ("red",),
}  # fmt: skip
"""The same of a Budget beside its envelopes."""
POLICY: Final[dict[str, tuple[Any, ...]]] = {
    "creditRates": (None, {}, {doc.FLAVOR: 2.25}, {"A100": 7}, {doc.FLAVOR: 1, "A100": 3}),
    "spares": (None, {"discount": 0}, {"discount": 1}, {"discount": 0.333}),
    "accountingPeriod": (None, "1s", "1h", "30d"),
    "age": ({"unit": "1h"}, {"unit": "1s", "cap": "0s"}),
    "funding": ({"crossLocation": "allow"}, {"pastWindow": "refuse"}),
    "tenancy": ({"requireBinding": True},),
    "mode": ("noCuts", "observe"),
    "maintenance": ([{"selector": {"fabric.domain": "A"}, "start": moment("-1h"), "end": moment("+9h")}],),
    "topology": ({"labels": {"flavor": "none"}}, {"labels": {"domain": "none"}}),
}
"""The same of the Policy."""


@st.composite
def edited(draw: Draw, most: int = 2) -> hands.Case:
    """The cluster after up to ``most`` edits of Budgets or the Policy, each of one field, or a Budget deleted."""
    return hands.edited(draw, most, _edit)


def _edit(draw: Draw, documents: list[Document]) -> str:
    each = draw(st.sampled_from([each for each in documents if each["kind"] in ("Budget", "Policy")]))
    name, spec = f"{each['kind']} {each['metadata']['name']}", each["spec"]
    if each["kind"] == "Policy":
        return f"{name}.{hands.set_one(draw, spec, POLICY)}"
    way: str = draw(st.sampled_from(["envelope"] * 6 + ["budget", "budget", "delete"]))
    if way == "delete":
        documents.remove(each)
        return f"{name} deleted"
    if way == "budget" or not spec["envelopes"]:
        return f"{name}.{hands.set_one(draw, spec, BUDGET)}"
    return f"{name}.{hands.set_one(draw, draw(st.sampled_from(spec['envelopes'])), ENVELOPE)}"
