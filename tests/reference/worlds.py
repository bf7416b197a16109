"""Nasty random worlds: small enough for the reference model, with every rule of spec §2 – §4 that can bind.

A world is a list of documents, as a state file has them, read without a file. Its *kind* says what is odd about it:

    payers   owners that compete for shared quota, sponsors, subtrees, aggregates, use caps, limits of single runs
    room     fragments, pods and groups off the divisibility chain, taints, CPU, spares, mixed domains
    time     hours and credits with look-ahead, windows, time limits, switches of the Policy
    ties     gangs, trees with quotas, opportunistic runs, stages in another order
    running  an earlier cycle's leases, under Budgets that were edited since
    recall   an earlier cycle's leases on a family's little money, which nearer relatives may want back
    all      all of it
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

import planner
from exporters.plans import plain
from jobtree.world.reading.intake import intake, key_of
from jobtree.world.tables.snapshot import Snapshot, take
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.drawing import Draw
from tests.support.times import T0, moment, unix
from tests.support.unchanged import unchanged

AT: Final = unix(T0)
KINDS: Final = ("payers", "room", "time", "ties", "running", "recall", "all")
OWNERS: Final = ("org:a", "org:a:x", "org:a:y", "org:a:x:u", "org:b", "org:c")
"""Two lenders and a family of four with all ranks but grandchildren's cousins, where `_descent` says nothing else."""
UNKNOWN: Final = "org:z"
"""An owner without a Budget."""
FAMILY: Final = OWNERS[:4]
LENDERS: Final = ("org:b", "org:c")


@dataclass(frozen=True)
class World:
    """``earlier``: documents of a cycle an hour ago whose leases still run; None where nothing runs.

    ``since``: since when the world has been what it is at `AT`, Unix seconds; None: no cycle has told.
    """

    documents: list[Document]
    earlier: list[Document] | None = None
    since: int | None = None

    def snapshot(self) -> Snapshot:
        """What the planner gets."""
        return unchanged(snapshot(self.current()), AT, self.since)

    def current(self) -> list[Document]:
        """The documents, with what the earlier cycle has left."""
        return self.documents if self.earlier is None else _carried(self.earlier, self.documents)

    def permuted(self, order: list[int]) -> "World":
        """The same documents in another order (``order``: one sort key per document)."""
        ranked = sorted(zip(order, range(len(self.documents)), strict=True))
        return replace(self, documents=[self.documents[index] for _, index in ranked])


def snapshot(documents: list[Document]) -> Snapshot:
    """The snapshot of documents, without a file."""
    objects = [
        (
            key_of(each["apiVersion"], each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]),
            msgspec.json.encode(each),
        )
        for each in documents
    ]
    return take(intake(objects, "test"))


def _carried(earlier: list[Document], documents: list[Document]) -> list[Document]:
    """``documents`` with what a cycle over ``earlier``, an hour ago, has left of runs."""
    plan = planner.plan(snapshot(earlier), AT - 3600)
    status = {update.name: plain.status(update.status) for update in plan.runs}
    leases = [plain.document(lease) for lease in plan.leases]
    return [
        {**each, "status": status[each["metadata"]["name"]]}
        if each["kind"] == "Run" and each["metadata"]["name"] in status
        else each
        for each in documents
    ] + leases


@st.composite
def worlds(draw: Draw, kind: str, *, tiny: bool = False) -> World:
    """A world of one of KINDS; a ``tiny`` one has at most three runs of few GPUs on two nodes."""
    odd = {name: kind in (name, "all") for name in KINDS} | {"tiny": tiny}
    odd["running"] = odd["running"] or odd["recall"]
    fleet = _fleet(draw, odd)
    budgets = _budgets(draw, odd)
    runs: list[Document] = []
    for number in range(draw(st.integers(2 if odd["recall"] else 1, 3 if tiny else 5))):
        alike = bool(runs) and _chance(draw, 1, 4)
        runs.append(doc.merge(runs[-1] if alike else _run(draw, odd), _identity(draw, number)))
    if odd["ties"]:
        runs = _tied(draw, runs)
    policy = [_policy(draw, odd)]
    if not odd["running"] or not (odd["recall"] or _chance(draw, 2, 3)):
        return World([*fleet, *budgets, *runs, *policy])
    before = runs[: draw(st.integers(1, len(runs)))]
    alone = [doc.merge(each, {"spec": {"gang": None, "parent": None}}) for each in before]
    edited = [_edited(draw, each) if kind != "recall" or _chance(draw, 1, 4) else each for each in budgets]
    if _chance(draw, 1, 8):
        descent = _descent(
            draw, [owner for each in edited if (owner := each["spec"]["owner"]) and each["spec"]["envelopes"]]
        )
        edited = [doc.merge(each, {"spec": {"parents": descent.get(each["spec"]["owner"])}}) for each in edited]
    since = draw(st.sampled_from([None, None, None, AT - 3601, AT - 3600, AT - 3599]))
    return World([*fleet, *edited, *alone, *runs[len(before) :], *policy], [*fleet, *budgets, *alone, *policy], since)


def _chance(draw: Draw, part: int, of: int) -> bool:
    """True in ``part`` ``of`` cases; shrinks to False."""
    return bool(draw(st.integers(0, of - 1)) >= of - part)


def _pick(draw: Draw, *values: Any) -> Any:
    return draw(st.sampled_from(values))


def _fleet(draw: Draw, odd: dict[str, bool]) -> list[Document]:
    found: list[Document] = []
    for domain in "ABC"[: draw(st.integers(1, 2 if odd["tiny"] else 3))]:
        region = _pick(draw, "us-west", "us-west", "us-east")
        mixed = _chance(draw, 1, 4)
        for number in range(1 if odd["tiny"] and found else draw(st.integers(1, 2 if odd["tiny"] else 3))):
            size = _pick(draw, 8, 8, 4, 6, 3, 2) if odd["room"] else _pick(draw, 8, 4)
            size = min(size, 4) if odd["tiny"] else size
            made = doc.node(f"{domain.lower()}{number}", size, domain=domain)
            labels = {"region": region, "tier": _pick(draw, "x", "y") if mixed else "x"}
            taints = [{"key": "t", "effect": "NoSchedule"}] if odd["room"] and _chance(draw, 1, 8) else []
            cpu = str(_pick(draw, 128, 128, 16)) if odd["room"] else "128"
            patch = {
                "metadata": {"labels": labels},
                "spec": {"taints": taints},
                "status": {"allocatable": {"cpu": cpu}},
            }
            found.append(doc.merge(made, patch))
    if odd["room"] and _chance(draw, 1, 3):
        found.append(doc.foreign_pod("foreign", found[0]["metadata"]["name"], draw(st.integers(1, 2))))
    return found


def _budgets(draw: Draw, odd: dict[str, bool]) -> list[Document]:
    owners = [owner for owner in OWNERS if not _chance(draw, 1, 6 if odd["recall"] else 3)] or [OWNERS[0]]
    descent = _descent(draw, owners) if (odd["payers"] or odd["running"]) and _chance(draw, 1, 3) else {}
    found = [_budget(draw, odd, owner, descent.get(owner)) for owner in owners]
    if (odd["payers"] or odd["time"] or odd["running"]) and _chance(draw, 1, 3):
        bounded: list[str] = draw(st.lists(st.sampled_from(FAMILY), min_size=1, max_size=2, unique=True))
        found += [_bounding(draw, odd, owner) for owner in bounded]
    return found


def _bounding(draw: Draw, odd: dict[str, bool], owner: str) -> Document:
    """A Budget that has nothing but a use cap, of an owner that may have no other."""
    cap: Document = {"name": "use", "scope": _pick(draw, "subtree", "subtree", "own")}
    cap |= _pick(draw, {}, {}, {"flavor": doc.FLAVOR}, {"selector": {"region": "us-west"}}, {"selector": {"tier": "x"}})
    each: Document = {"maxGPUs": draw(st.integers(1, 8))} if _chance(draw, 1, 3) else {}
    if odd["time"]:
        cap |= {"maxGPUHours": draw(st.integers(2, 200))} if _chance(draw, 1, 3) else {}
        cap |= {"maxCredits": draw(st.integers(2, 200))} if _chance(draw, 1, 5) else {}
        cap |= _pick(draw, {}, {}, {}, {"end": moment("+2h")}, {"start": moment("+2h")}, {"end": moment("-2h")})
        each |= {"maxTime": "1h"} if _chance(draw, 1, 4) else {}
    if each:
        cap["perRun"] = each
    if cap.keys() <= {"name", "scope", "flavor", "selector", "start", "end"} or _chance(draw, 2, 3):
        cap["maxConcurrency"] = draw(st.integers(0, 8 if odd["tiny"] or odd["recall"] else 16))
    made = doc.merge(doc.budget(owner, []), {"metadata": {"name": f"{owner.replace(':', '-')}-use"}})
    made = doc.merge(made, {"spec": {"useCaps": [cap]}})
    return doc.merge(made, {"metadata": {"uid": f"uid-use-{owner}", "creationTimestamp": moment("-9d")}})


def _descent(draw: Draw, owners: list[str]) -> dict[str, list[str]]:
    """``parents`` of some owners: none, one or two of those before them in some order, which rules out cycles."""
    order: list[str] = draw(st.permutations(owners))
    found = {}
    for place, owner in enumerate(order):
        by_name = max((other for other in owners if owner.startswith(f"{other}:")), key=len, default=None)
        if by_name in order[place:] or _chance(draw, 1, 2):
            above = st.sampled_from([*order[:place], UNKNOWN])
            found[owner] = draw(st.lists(above, max_size=2, unique=True))
    return found


def _budget(draw: Draw, odd: dict[str, bool], owner: str, parents: list[str] | None) -> Document:
    most = (4 if odd["tiny"] else 8) if odd["recall"] else 24 if odd["payers"] or odd["time"] else 40
    envelopes = [_envelope(draw, odd, owner, f"e{n}", draw(st.integers(1, most))) for n in range(_pick(draw, 1, 1, 2))]
    spec: Document = {} if parents is None else {"parents": parents}
    if len(envelopes) == 2 and odd["payers"] and _chance(draw, 1, 2):
        names = [each["name"] for each in envelopes]
        spec["aggregateCaps"] = [{"name": "both", "envelopes": names, "maxConcurrency": draw(st.integers(1, 20))}]
    made = doc.budget(owner, envelopes, **spec)
    return doc.merge(made, {"metadata": {"uid": f"uid-{owner}", "creationTimestamp": moment("-9d")}})


def _envelope(draw: Draw, odd: dict[str, bool], owner: str, name: str, gpus: int) -> Document:
    fields: Document = {"selector": _pick(draw, {"region": "*"}, {"region": "*"}, {"region": "us-west"}, {"tier": "x"})}
    if owner in LENDERS and _chance(draw, 2, 3):
        fields["lending"] = {"allow": True, "maxConcurrency": draw(st.integers(1, 8))}
    if odd["payers"] or odd["recall"]:
        fields["scope"] = "subtree" if owner in ("org:a", "org:a:x") and _chance(draw, 1, 3) else "own"
    if odd["payers"]:
        fields["sharing"] = _pick(draw, "family", "family", "none")
        if _chance(draw, 1, 4):
            fields["perRun"] = {"maxGPUs": draw(st.integers(1, 8))}
    if odd["time"]:
        fields |= _timed(draw)
    return doc.envelope(gpus, name, **fields)


def _timed(draw: Draw) -> Document:
    fields: Document = {}
    if _chance(draw, 1, 3):
        fields |= {"maxGPUHours": draw(st.integers(2, 200)), "sharing": _pick(draw, "family", "none")}
    if _chance(draw, 1, 5):
        fields |= {"maxCredits": draw(st.integers(2, 200))}
    window: Document = _pick(draw, {}, {}, {}, {"end": moment("+2h")}, {"start": moment("+2h")}, {"end": moment("-2h")})
    if "start" in window:
        fields["preActivation"] = {"allowAdmission": _chance(draw, 1, 2)}
    if _chance(draw, 1, 6):
        fields["perRun"] = {"maxTime": "1h"}
    return fields | window


def _identity(draw: Draw, number: int) -> Document:
    """What runs that are otherwise alike differ in."""
    age = _pick(draw, 0, 0, 5, 40, 100) * 3600 + 10 - number
    return {"metadata": {"name": f"r{number}", "uid": f"uid-{number}", "creationTimestamp": moment(f"-{age}s")}}


def _run(draw: Draw, odd: dict[str, bool]) -> Document:
    pod = _pick(draw, None, None, 1, 2, 4, 3) if odd["room"] else _pick(draw, None, None, 2, 4)
    count = _pick(draw, 1, 1, 2) if odd["tiny"] else _pick(draw, 1, 1, 2, 3)
    sizes = (1, 2, 3) if odd["tiny"] else (1, 2, 3, 4, 6, 8)
    group = pod * draw(st.integers(1, 1 if odd["tiny"] else 3)) if pod else _pick(draw, *sizes)
    total = group * count
    locality: Document = {}
    if count > 1 and _chance(draw, 3, 4):
        locality["groupGPUs"] = group
    spec: Document = {}
    if _chance(draw, 1, 3):
        malleable = _malleable(draw, pod or 1, locality.get("groupGPUs"), count)
        total = malleable["maxTotalGPUs"]
        spec["malleable"] = malleable
    if _chance(draw, 1, 4):
        locality["allowCrossGroupSpread"] = False
    if _chance(draw, 1, 4):
        locality["selector"] = _pick(draw, {"region": "us-west"}, {"tier": "x"})
    if _chance(draw, 1, 3):
        spec["spares"] = _pick(draw, 1, 1, 2)
    if odd["time"] or odd["running"]:
        limit = _pick(draw, None, "2h", "30m", "30h")
        spec |= {"runtime": {"timeLimit": limit}} if limit else {}
    owner = _pick(draw, *(FAMILY if odd["recall"] else OWNERS))
    funding = _funding(draw, odd, owner)
    template = (
        _template(draw, loaded=pod is not None or (count == 1 and "malleable" not in spec)) if odd["room"] else {}
    )
    made = doc.run("r", total, owner)
    sized = {"resources": {"gpusPerPod": pod}} if pod else {}
    return doc.merge(made, {"spec": {**spec, **sized, "locality": locality, "funding": funding, **template}})


def _malleable(draw: Draw, pod: int, group: int | None, count: int) -> Document:
    """Widths with ``groupGPUs`` in whole groups, else in whole pods."""
    unit = group or pod
    least = unit * draw(st.integers(1, count if group else 3))
    step = unit * draw(st.integers(1, 2))
    most = least + step * draw(st.integers(0, 2))
    return {"minTotalGPUs": least, "maxTotalGPUs": most, "stepGPUs": step}


def _funding(draw: Draw, odd: dict[str, bool], owner: str) -> Document:
    funding: Document = {}
    lenders = [lender for lender in LENDERS if lender != owner]
    if _chance(draw, 1, 2):
        funding = {"allowBorrow": True, "sponsors": _pick(draw, lenders, lenders[:1], lenders[::-1])}
        if _chance(draw, 1, 2):
            funding["maxBorrowGPUs"] = draw(st.integers(0, 8))
    if odd["ties"] and _chance(draw, 1, 3):
        funding["opportunistic"] = True
    return funding


def _template(draw: Draw, *, loaded: bool) -> Document:
    cpu = _pick(draw, 0, 0, 4, 9) if loaded else 0
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    tolerations = [{"key": "t", "operator": "Exists"}] if _chance(draw, 1, 3) else []
    return {"template": {"spec": {"containers": [container], "tolerations": tolerations}}} if cpu or tolerations else {}


def _tied(draw: Draw, runs: list[Document]) -> list[Document]:
    """Some runs in a gang, complete, with more than it needs, or not; some below another that has a quota."""
    if len(runs) > 1 and _chance(draw, 1, 2):
        size = draw(st.integers(2, len(runs)))
        gang = {"spec": {"gang": {"name": "g", "size": size}}}
        there = size - 1 if _chance(draw, 1, 6) else draw(st.integers(size, len(runs)))
        runs = [doc.merge(each, gang) if n < there else each for n, each in enumerate(runs)]
    if len(runs) > 1 and _chance(draw, 1, 2):
        quota = _pick(draw, {"maxGPUs": draw(st.integers(1, 24))}, {"maxGPUHours": draw(st.integers(1, 400))})
        first = draw(st.integers(1, len(runs) - 1))
        root = runs[-1]["metadata"]["name"]
        runs = [
            doc.merge(each, {"spec": {"parent": root}}) if first <= n < len(runs) - 1 else each
            for n, each in enumerate(runs)
        ]
        runs[-1] = doc.merge(runs[-1], {"spec": {"quota": quota}})
    return runs


def _policy(draw: Draw, odd: dict[str, bool]) -> Document:
    spec: Document = {}
    if odd["time"]:
        spec["accountingPeriod"] = _pick(draw, "24h", "2h")
        spec["creditRates"] = {doc.FLAVOR: _pick(draw, 1, 0.5, 2.25)}
        spec["funding"] = {
            "crossLocation": _pick(draw, "deny", "deny", "allow"),
            "pastWindow": _pick(draw, "allow", "refuse"),
        }
    if odd["payers"] or odd["room"]:
        spec["spares"] = {"discount": _pick(draw, 0.5, 0.5, 0.333, 1, 0)}
    if odd["ties"]:
        stages = (["starts", "growth", "opportunistic"], ["opportunistic", "growth", "starts"], ["starts"])
        spec["stages"] = _pick(draw, *stages)
    return doc.policy(**spec)


def _edited(draw: Draw, budget: Document) -> Document:
    """The Budget with other caps: lower ones leave running work unfunded, or are overdrawn."""
    envelopes = [
        {**each, "concurrency": draw(st.integers(1, 24))} if _chance(draw, 1, 3) else each
        for each in budget["spec"]["envelopes"]
    ]
    envelopes = [
        {**each, **{cap: draw(st.integers(1, 24)) for cap in ("maxGPUHours", "maxCredits") if cap in each}}
        if _chance(draw, 1, 3)
        else each
        for each in envelopes
    ]
    uses = [
        {**each, "maxConcurrency": draw(st.integers(0, 8))} if _chance(draw, 1, 3) else each
        for each in budget["spec"].get("useCaps", ())
    ]
    return doc.merge(budget, {"spec": {"envelopes": envelopes, **({"useCaps": uses} if uses else {})}})
