"""From the documents around the cycles of a history to the facts that the reference lives through.

Documents only: what people wrote in Budgets and Policy, and of leases who holds what, who pays, from when to when. What
the product says of classes and charges is not read here.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.history.play import Played
from tests.history.reference import Aggregate, Envelope, History, Key, Law, Lease, Use
from tests.support.documents import FLAVOR, Document
from tests.support.times import seconds, unix

LIMIT = "TimeLimit"


def history(cycles: Sequence[Played]) -> History:
    """What the reference needs to know of all cycles."""
    laws = {cycle.at: law(cycle.before) for cycle in cycles}
    closed: dict[str, int] = {}
    for cycle in cycles:
        for lease in kind(cycle.after, "Lease"):
            if lease["status"].get("closed"):
                closed.setdefault(lease["metadata"]["name"], cycle.at)
    regions = {
        node["metadata"]["name"]: node["metadata"]["labels"]["region"] for node in kind(cycles[-1].before, "Node")
    }
    malleable = {
        run["metadata"]["name"] for cycle in cycles for run in kind(cycle.before, "Run") if "malleable" in run["spec"]
    }
    return History(laws, [_lease(each, closed, regions, malleable) for each in leases(cycles)])


def leases(cycles: Sequence[Played]) -> list[Document]:
    """Every lease in its last form, those that were pruned too."""
    found = {each["metadata"]["name"]: each for cycle in cycles for each in kind(cycle.after, "Lease")}
    return [found[name] for name in sorted(found)]


def kind(documents: Sequence[Document], name: str) -> list[Document]:
    """Documents of a kind."""
    return [each for each in documents if each["kind"] == name]


def _lease(document: Document, closed: Mapping[str, int], regions: Mapping[str, str], malleable: set[str]) -> Lease:
    spec, status, name = document["spec"], document["status"], document["metadata"]["name"]
    paid = spec.get("paidBy")
    return Lease(
        name=name,
        run=spec["runRef"]["name"],
        owner=spec["runOwner"],
        payer=(paid["budget"], paid["envelope"]) if paid else None,
        lender=spec["owner"],
        gpus=len(spec["slice"]["nodes"]),
        spare=spec["slice"]["role"] == "Spare",
        group=spec["group"],
        region=regions[spec["slice"]["nodes"][0].partition("#")[0]],
        malleable=spec["runRef"]["name"] in malleable,
        start=unix(spec["interval"]["start"]),
        ended=unix(status["ended"]) if status.get("closed") else None,
        seen=closed.get(name),
        timed=status.get("closureReason") == LIMIT,
    )


def law(documents: Sequence[Document]) -> Law:
    """Budgets and Policy. A Budget of which an envelope has no concurrency is broken."""
    budgets = {each["metadata"]["name"]: each["spec"] for each in kind(documents, "Budget")}
    broken = {name for name, spec in budgets.items() if any(not each["concurrency"] for each in spec["envelopes"])}
    whole = {name: spec for name, spec in budgets.items() if name not in broken}
    envelopes = [_envelope(name, spec["owner"], each) for name, spec in whole.items() for each in spec["envelopes"]]
    (policy,) = (each["spec"] for each in kind(documents, "Policy"))
    return Law(
        envelopes={each.key: each for each in envelopes},
        aggregates=[
            Aggregate(
                members=frozenset((name, member) for member in cap["envelopes"]),
                gpus=cap.get("maxConcurrency"),
                hours=_hours(cap.get("maxGPUHours")),
                credits=_credits(cap.get("maxCredits")),
            )
            for name, spec in whole.items()
            for cap in spec.get("aggregateCaps", [])
        ],
        uses=[
            Use(
                owner=spec["owner"],
                subtree=cap.get("scope") != "own",
                region=cap.get("selector", {}).get("region", "*"),
                gpus=cap.get("maxConcurrency"),
                hours=_hours(cap.get("maxGPUHours")),
                credits=_credits(cap.get("maxCredits")),
                start=unix(cap["start"]) if "start" in cap else None,
                end=unix(cap["end"]) if "end" in cap else None,
            )
            for spec in whole.values()
            for cap in spec.get("useCaps", [])
        ],
        holders=frozenset(spec["owner"] for spec in whole.values() if spec["envelopes"]),
        owners={spec["owner"]: frozenset(spec["parents"]) if "parents" in spec else None for spec in whole.values()},
        broken=frozenset(broken),
        rate=_milli(policy.get("creditRates", {}).get(FLAVOR, 0)),
        discount=_milli(policy.get("spares", {}).get("discount", 0.5)),
    )


def _envelope(budget: str, owner: str, said: Mapping[str, Any]) -> Envelope:
    key: Key = (budget, said["name"])
    lending = said.get("lending", {})
    spends = "maxGPUHours" in said or "maxCredits" in said
    return Envelope(
        key=key,
        owner=owner,
        region=said["selector"]["region"],
        gpus=said["concurrency"],
        hours=_hours(said.get("maxGPUHours")),
        credits=_credits(said.get("maxCredits")),
        start=unix(said["start"]) if "start" in said else None,
        end=unix(said["end"]) if "end" in said else None,
        subtree=said.get("scope") == "subtree",
        shares=said.get("sharing", "none" if spends else "family") == "family",
        early=said.get("preActivation", {}).get("allowAdmission", False),
        lent_gpus=lending.get("maxConcurrency"),
        lent_hours=_hours(lending.get("maxGPUHours")),
        loan_lasts=seconds(lending.get("maxDuration", "24h")),
    )


def _milli(number: float) -> int:
    return int(Fraction(str(number)) * 1000)


def _hours(number: float | None) -> int | None:
    """GPU-hours in milli-GPU-seconds."""
    return None if number is None else int(Fraction(str(number)) * 3600 * 1000)


def _credits(number: float | None) -> int | None:
    """Credits, to a thousandth, in milli-GPU-seconds × millicredits per GPU-hour."""
    return None if number is None else int(Fraction(str(number)) * 1000) * 3600 * 1000
