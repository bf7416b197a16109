"""A small world with something of everything that reports show."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from exporters.lake.lake import Lake
from exporters.plans import planjson
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import Plan, Prices, Solver, Wait
from jobtree.world.tables.snapshot import Snapshot, take
from reports.query import Asked, Report, made
from tests.support import documents as doc
from tests.support.documents import API, Document
from tests.support.times import T0, moment, rfc3339, unix

AT = unix(T0)
RUNS = (("r", 4, "org:a"), ("gone", 4, "org:a"), ("poor", 2, "org:a:x"))


def make(
    root: Path | str, report: str, since: int | None = None, until: int | None = None, settings: Mapping[str, str] = {}
) -> Report:
    """A report over [since, until), Unix seconds."""
    return made(root, report, Asked(since, until, settings))


def lease(
    name: str,
    run: str,
    slots: list[str],
    payer: str | None,
    *segments: tuple[str, str, str | None],
    role: str = "Active",
    owner: str = "",
    payer_owner: str = "",
    rate: float | None = None,
    reason: str = "Completed",
) -> Document:
    """A lease of a run with this ledger: (class, from, to); closed where the last segment has an end."""
    owner = owner or next(owner for name, _, owner in RUNS if name == run)
    rates = {} if rate is None else {"rate": rate}
    funding: list[dict[str, Any]] = [
        {"class": kind, "from": moment(since), **({"to": moment(until)} if until else {}), **rates}
        for kind, since, until in segments
    ]
    last = segments[-1][2]
    start = funding[0]["from"]
    status: Document = {"closed": last is not None, "funding": funding}
    if last is not None:
        status |= {"ended": moment(last), "closureReason": reason}
    paid = {"paidBy": {"budget": payer.partition("/")[0], "envelope": payer.partition("/")[2]}} if payer else {}
    return {
        "apiVersion": API,
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": start},
        "spec": {
            "owner": payer_owner or owner,
            "runRef": {"name": run},
            "runUid": run,
            "runOwner": owner,
            "flavor": "H100-80GB",
            "group": 0,
            "slice": {"nodes": slots, "role": role},
            "interval": {"start": start},
            "reason": "Start",
            **paid,
        },
        "status": status,
    }


def mixed() -> list[Document]:
    """Two domains; a run with a spare, one that has ended, one whose money ran out, a foreign pod, a cordon."""
    hours = {h: f"2025-12-31T{h:02d}:00:00Z" for h in range(24)}
    return [
        doc.policy(spares={"discount": 0.25}),
        doc.node("a01", domain="A"),
        doc.node("a02", domain="A"),
        doc.merge(doc.node("b01", 4, domain=None), {"spec": {"unschedulable": True}}),
        doc.foreign_pod("burnin", on="a02", gpus=3),
        doc.budget("org:a", [doc.envelope(8)]),
        doc.budget("org:a:x", [doc.envelope(4, start=hours[20])]),
        *(doc.run(name, gpus, owner) for name, gpus, owner in RUNS),
        lease("r-0", "r", [f"a01#{i}" for i in range(4)], "org-a/gpus", ("owned", hours[22], None)),
        lease("r-1", "r", ["a01#4"], "org-a/gpus", ("owned", hours[22], None), role="Spare"),
        lease("gone-0", "gone", [f"a02#{i}" for i in range(4)], "org-a/gpus", ("owned", hours[10], hours[11])),
        lease(
            "poor-0",
            "poor",
            ["b01#0", "b01#1"],
            "org-a-x/gpus",
            ("owned", hours[18], hours[21]),
            ("unfunded", hours[21], None),
        ),
        lease("free-0", "poor", ["a02#0"], None, ("unfunded", hours[23], None)),
    ]


def snapshot(path: Path, documents: list[Document] | None = None, at: int = AT) -> Snapshot:
    """What a cycle at ``at`` sees of these documents, or of `mixed`, written to ``path``."""
    path.write_text(doc.dump(mixed() if documents is None else documents), encoding="utf-8")
    return take(StateFile(path, at).read())


def record(
    lake: Path,
    when: str,
    documents: list[Document],
    waits: Sequence[Wait] = (),
    prices: Prices | None = None,
    **said: Any,
) -> Path:
    """A cycle's record in a lake, as if its plan had changed nothing but what is ``said``; returns its manifest."""
    at = unix(when)
    lake.mkdir(parents=True, exist_ok=True)
    found = snapshot(lake.parent / "state.yaml", documents, at)
    Lake(lake).write_tables(found)
    plan = Plan(
        jobtree="0",
        at=at,
        cycle=rfc3339(at),
        snapshot=found.digest,
        policy=found.policy_digest,
        solver=Solver(name="", version="", options={}),
        waits=list(waits),
        prices=prices,
        **said,
    )
    return Lake(lake).write_cycle(found, plan, planjson.encode(plan))
