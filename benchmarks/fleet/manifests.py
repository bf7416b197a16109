"""Every object of a fleet as an API server prints it, one per line of a JSON List."""

import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from benchmarks.fleet.job import Job
from benchmarks.fleet.money import Budget, Envelope, Payment
from benchmarks.fleet.recipe import DAY, Ages, Recipe
from benchmarks.fleet.room import GPUS_PER_NODE, NODES_PER_DOMAIN, Domain
from benchmarks.fleet.runs import World

GROUP = "rq.davidlangworthy.io/v1"


def stamp(seconds: int) -> str:
    """RFC 3339, UTC, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: int) -> str:
    """A duration in minutes, rounded up."""
    return f"{-(-seconds // 60)}m"


def write(world: World, path: Path) -> None:
    """Write the world as a state file."""
    with path.open("wb") as file:
        file.write(b'{"apiVersion":"v1","items":[\n')
        for i, item in enumerate(manifests(world)):
            file.write((b",\n" if i else b"") + orjson.dumps(item, option=orjson.OPT_SORT_KEYS))
        file.write(b'\n],"kind":"List","metadata":{"resourceVersion":""}}\n')


def manifests(world: World) -> Iterator[dict[str, Any]]:
    """The Policy where it is not the default, Nodes, Budgets, Runs, Leases."""
    yield from _policy(world.recipe, world.at)
    for i, domain in enumerate(world.domains):
        yield from _nodes(domain, NODES_PER_DOMAIN * i, world.at)
    for budget in world.treasury.budgets.values():
        yield _budget(budget, world.at)
    jobs = sorted(world.running + world.pending, key=lambda j: (j.budget.name, j.name))
    for job in jobs:
        yield _run(job)
    for job in jobs:
        yield from _leases(job)


def _meta(kind: str, name: str, created: int, namespace: str = "") -> dict[str, Any]:
    uid = uuid.uuid5(uuid.NAMESPACE_URL, f"{kind}/{namespace}/{name}")
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "uid": str(uid), "creationTimestamp": stamp(created), "generation": 1}


def _nodes(domain: Domain, first: int, at: int) -> Iterator[dict[str, Any]]:
    amounts = {"cpu": "192", "memory": "2Ti", "nvidia.com/gpu": str(GPUS_PER_NODE), "pods": "110"}
    for i, name in enumerate(domain.nodes):
        labels = {
            "region": domain.region,
            "cluster": domain.cluster,
            "fabric.domain": domain.name,
            "rack": f"{domain.name}-r{i // 8}",
            "gpu.flavor": domain.flavor,
        }
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastHeartbeatTime": stamp(at - (first + i) % 60),
            "lastTransitionTime": stamp(at - 200 * DAY),
        }
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {**_meta("Node", name, at - 200 * DAY), "labels": labels},
            "spec": {},
            "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
        }


def _policy(recipe: Recipe, at: int) -> Iterator[dict[str, Any]]:
    spec: dict[str, Any] = {}
    if (recipe.ages.unit, recipe.ages.cap) != (Ages().unit, Ages().cap):
        spec["age"] = {"unit": f"{recipe.ages.unit}s", "cap": f"{recipe.ages.cap}s"}
    if recipe.deadline is not None:
        spec["solver"] = {"deadline": f"{recipe.deadline}s"}
    if recipe.held is not None:
        spec["reservations"] = {"maxHeld": recipe.held}
    if spec:
        yield _object("Policy", _meta("Policy", "default", at - 200 * DAY), spec)


def _budget(budget: Budget, at: int) -> dict[str, Any]:
    spec: dict[str, Any] = {"owner": budget.owner, "namespaces": [budget.name]}
    spec["envelopes"] = [_envelope(e) for e in budget.envelopes]
    if budget.aggregates:
        spec["aggregateCaps"] = budget.aggregates
    return _object("Budget", _meta("Budget", budget.name, at - 120 * DAY), spec)


def _envelope(e: Envelope) -> dict[str, Any]:
    optional = {
        "maxGPUHours": e.hours,
        "start": e.start and stamp(e.start),
        "end": e.end and stamp(e.end),
        "scope": "subtree" if e.subtree else None,
        "sharing": "none" if not e.shared else "family" if e.hours else None,  # hours are shared only where it says so
        "lending": e.lending,
    }
    must = {"name": e.name, "flavor": e.flavor, "selector": e.selector, "concurrency": e.concurrency}
    return must | {key: value for key, value in optional.items() if value is not None}


def _run(job: Job) -> dict[str, Any]:
    resources: dict[str, Any] = {"gpuType": job.flavor, "totalGPUs": job.gpus}
    if job.pod:
        resources["gpusPerPod"] = job.pod
    locality: dict[str, Any] = {"groupGPUs": job.group} if job.group else {}
    if not job.spread:
        locality["allowCrossGroupSpread"] = False
    optional = {
        "locality": locality,
        "malleable": job.malleable,
        "spares": job.spares,
        "funding": job.funding,
        "follow": {"after": job.after} if job.after else None,
    }
    spec = {
        "owner": job.budget.owner,
        "resources": resources,
        "runtime": {key: span(value) for key, value in job.runtime.items()},
        **{key: value for key, value in optional.items() if value},
    }
    run = _object("Run", _meta("Run", job.name, job.created, job.budget.name), spec)
    if job.started is not None:
        run["status"] = _status(job, job.started)
    return run


def _status(job: Job, since: int) -> dict[str, Any]:
    facts = (
        ("Admitted", "True", "Funded", f"{job.width} GPUs are funded."),
        ("Scheduled", "True", "Placed", f"{job.width} GPUs are placed."),
        ("Running", "True", "PodsRunning", f"{job.width} of {job.width} GPUs running."),
        ("Completed", "False", "NotFinished", f"Time limit {span(job.runtime['timeLimit'])}."),
        ("Failed", "False", "NoFailure", "0 pods failed."),
        ("Blocked", "False", "NothingToWaitFor", "0 upstream runs outstanding."),
    )
    low, high = (job.malleable or {}).get("minTotalGPUs", job.gpus), (job.malleable or {}).get("maxTotalGPUs", job.gpus)
    desired = (job.malleable or {}).get("desiredTotalGPUs", high)
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": status, "reason": reason, "message": words, "lastTransitionTime": stamp(since)}
            for kind, status, reason, words in facts
        ],
        "width": {"min": low, "max": high, "desired": desired, "allocated": job.width},
    }


def _leases(job: Job) -> Iterator[dict[str, Any]]:
    """One lease per group, node, role and payer."""
    if job.started is None:
        return
    run = _meta("Run", job.name, job.created, job.budget.name)
    purses = {False: _purse((p, p.active) for p in job.bill), True: _purse((p, p.spares) for p in job.bill)}
    for n, (seat, payment, first, gpus) in enumerate(_slices(job, purses)):
        payer = payment.envelope
        budget = payer.owner.removeprefix("org:").replace(":", "-")
        funding = "owned" if payer.owner == job.budget.owner else "borrowed" if payment.loan else "shared"
        node = seat.domain.nodes[seat.node]
        spec = {
            "owner": payer.owner,
            "runRef": {"namespace": job.budget.name, "name": job.name},
            "runUid": run["uid"],
            "runOwner": job.budget.owner,
            "flavor": job.flavor,
            "group": seat.group,
            "slice": {
                "nodes": [f"{node}#{ordinal}" for ordinal in range(first, first + gpus)],
                "role": "Spare" if seat.spare else "Active",
            },
            "interval": {"start": stamp(job.started)},
            "paidBy": {"budget": budget, "envelope": payer.name},
            "reason": "Start",
            "cycle": datetime.fromtimestamp(job.started, UTC).strftime("%Y%m%dT%H%M%SZ"),
        }
        lease = _object("Lease", _meta("Lease", f"{job.name}-{n}", job.started, job.budget.name), spec)
        segment = {"class": funding, "from": stamp(job.started)}
        yield lease | {"status": {"closed": False, "funding": [segment]}}


def _purse(shares: Iterable[tuple[Payment, int]]) -> list[list[Any]]:
    return [[payment, gpus] for payment, gpus in shares if gpus]


def _slices(job: Job, purses: dict[bool, list[list[Any]]]) -> Iterator[tuple[Any, Payment, int, int]]:
    """(seat, payer, first ordinal, GPUs): every seat cut where its payer changes."""
    for seat in job.seats:
        first, left = seat.first, seat.gpus
        while left:
            purse = purses[seat.spare]
            gpus = min(left, purse[0][1])
            yield seat, purse[0][0], first, gpus
            purse[0][1] -= gpus
            if not purse[0][1]:
                purse.pop(0)
            first, left = first + gpus, left - gpus


def _object(kind: str, meta: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": GROUP, "kind": kind, "metadata": meta, "spec": spec}
