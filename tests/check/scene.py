"""Scenes for the checker: a small world and a hand-made plan for it, of which every part can be spoilt.

A scene holds what a planner decides (leases, closures, segments). What follows from it (statuses, waits, the value of
the stages, digests) is filled in by `Scene.plan`, so that a spoilt decision breaks its own rule and no other; `plan`'s
outcome can be spoilt too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from jobtree.api import Duration, OwnerPath, Time, decode
from jobtree.api.lease import Interval, Lease, LeaseSpec, LeaseStatus, Slice
from jobtree.api.lease import Segment as Entry
from jobtree.api.meta import Condition, EnvelopeRef, ObjectMeta, RunRef
from jobtree.api.run import RUN_CONDITIONS, Run, RunFunding, RunStatus, Width
from jobtree.check import Violation, check
from jobtree.world.intake import Intake, Notice
from jobtree.world.plan import Closure, Plan, RunUpdate, Segment, Solver, Stage, Wait
from jobtree.world.snapshot import Snapshot, take
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment, unix

T0 = unix("+0s")
FLAVOR = doc.FLAVOR


def ago(span: str) -> int:
    """Unix seconds before T0: ``ago("2h")``."""
    return unix(f"-{span}")


@dataclass
class Scene:
    """See the module. ``old``: leases of the snapshot; ``new``: of the plan; ``last``: changes of the finished plan."""

    documents: list[Document] = field(default_factory=list)
    old: list[Lease] = field(default_factory=list)
    new: list[Lease] = field(default_factory=list)
    closures: list[Closure] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    quarantined: list[Notice] = field(default_factory=list)
    last: list[Callable[[Plan], Plan]] = field(default_factory=list)
    at: int = T0

    # --- the world

    def add(self, *documents: Document) -> Self:
        self.documents += documents
        return self

    def domain(self, name: str, *gpus: int, **patch: Any) -> Self:
        """Nodes a01, a02, ... of domain A."""
        for number, size in enumerate(gpus, start=1):
            self.add(doc.merge(doc.node(f"{name.lower()}{number:02}", size, domain=name), patch))
        return self

    def budget(self, owner: str, *envelopes: Document, name: str | None = None, **spec: Any) -> Self:
        """A Budget created two days ago."""
        made = doc.budget(owner, list(envelopes), name, **spec)
        return self.add(doc.merge(made, {"metadata": {"uid": f"uid-{owner}", "creationTimestamp": moment("-48h")}}))

    def run(self, name: str, gpus: int, owner: str = "org:a", created: str = "-1h", **spec: Any) -> Self:
        made = doc.merge(doc.run(name, gpus, owner), {"spec": spec})
        return self.add(doc.merge(made, {"metadata": {"uid": f"uid-{name}", "creationTimestamp": moment(created)}}))

    def edit(self, kind: str, name: str, patch: Mapping[str, Any]) -> Self:
        """A merge patch for one object."""
        assert any((each["kind"], each["metadata"]["name"]) == (kind, name) for each in self.documents)
        self.documents = [
            doc.merge(each, patch) if (each["kind"], each["metadata"]["name"]) == (kind, name) else each
            for each in self.documents
        ]
        return self

    def envelope(self, budget: str, patch: Mapping[str, Any], index: int = 0) -> Self:
        """A merge patch for one envelope of a Budget."""
        found = next(each for each in self.documents if (each["kind"], each["metadata"]["name"]) == ("Budget", budget))
        envelopes = list(found["spec"]["envelopes"])
        envelopes[index] = doc.merge(envelopes[index], patch)
        return self.edit("Budget", budget, {"spec": {"envelopes": envelopes}})

    def remove(self, kind: str, name: str) -> Self:
        self.documents = [each for each in self.documents if (each["kind"], each["metadata"]["name"]) != (kind, name)]
        return self

    def policy(self, **spec: Any) -> Self:
        return self.remove("Policy", "default").add(doc.policy(**spec))

    def quarantine(self, kind: str, name: str) -> Self:
        """Set an object aside, as reading it would."""
        self.quarantined.append(Notice(kind, "", name, "it is broken"))
        return self.remove(kind, name)

    # --- leases

    def holds(self, run: str, slots: str, start: int | None = None, **said: Any) -> Self:
        """An open lease of the snapshot (an hour old), see `lease`."""
        self.old.append(self.lease(run, slots, start=ago("1h") if start is None else start, **said))
        return self

    def starts(self, run: str, slots: str, **said: Any) -> Self:
        """A lease of the plan, see `lease`."""
        self.new.append(self.lease(run, slots, **said))
        return self

    def lease(
        self,
        run: str,
        slots: str,
        *,
        payer: str | None = "org-a/gpus",
        funding: str = "owned",
        group: int = 0,
        role: Any = "Active",
        start: int | None = None,
        reason: Any = "Start",
        name: str | None = None,
        ended: int | None = None,
        closure: Any = None,
        entries: Iterable[Entry] | None = None,
    ) -> Lease:
        """A lease on slots like ``a01#0-3``, paid by ``budget/envelope``, of class ``funding`` since its start."""
        owner = self._get("Run", run)["spec"]["owner"]
        begun = Time(self.at if start is None else start)
        budget, _, envelope = (payer or "").partition("/")
        payer_owner = self._get("Budget", budget)["spec"]["owner"] if payer else owner
        span = Entry(class_=funding if payer else "unfunded", from_=begun, to=None if ended is None else Time(ended))  # type: ignore[arg-type]
        count = sum(each.spec.run_ref.name == run for each in (*self.old, *self.new))
        return Lease(
            metadata=ObjectMeta(name=name or f"{run}-{count}", namespace="default"),
            spec=LeaseSpec(
                owner=OwnerPath(payer_owner),
                run_ref=RunRef(name=run, namespace="default"),
                run_uid=f"uid-{run}",
                run_owner=OwnerPath(owner),
                flavor=FLAVOR,
                group=group,
                slice=Slice(nodes=slots_of(slots), role=role),
                interval=Interval(start=begun),
                reason=reason,
                cycle="c1" if start is None else "c0",
                paid_by=EnvelopeRef(budget=budget, envelope=envelope) if payer else None,
            ),
            status=LeaseStatus(
                closed=ended is not None,
                ended=None if ended is None else Time(ended),
                closure_reason=closure,
                funding=(span,) if entries is None else tuple(entries),
            ),
        )

    @staticmethod
    def entry(funding: Any, since: int, until: int | None = None, rate: float | None = None) -> Entry:
        """One span of a lease's ledger."""
        return Entry(class_=funding, from_=Time(since), to=None if until is None else Time(until), rate=rate)

    def respec(self, index: int, **changes: Any) -> Self:
        """Other facts in one lease of the plan."""
        lease = self.new[index]
        self.new[index] = msgspec.structs.replace(lease, spec=msgspec.structs.replace(lease.spec, **changes))
        return self

    def move(self, index: int, slots: str) -> Self:
        """Other slots for one lease of the plan."""
        return self.respec(index, slice=Slice(nodes=slots_of(slots), role=self.new[index].spec.slice.role))

    def relabel(self, index: int, **changes: Any) -> Self:
        """Another status in one lease of the plan."""
        lease = self.new[index]
        self.new[index] = msgspec.structs.replace(lease, status=msgspec.structs.replace(lease.status, **changes))
        return self

    def closes(self, lease: str, reason: str, ended: int | None = None) -> Self:
        ending = self.at if ended is None else ended
        self.closures.append(Closure(namespace="default", name=lease, ended=ending, reason=reason))
        return self

    def turns(self, lease: str, funding: Any, since: int | None = None, rate_milli: int | None = None) -> Self:
        """A segment of the plan."""
        begun = self.at if since is None else since
        self.segments.append(
            Segment(namespace="default", name=lease, funding_class=funding, since=begun, rate_milli=rate_milli)
        )
        return self

    def then(self, change: Callable[[Plan], Plan]) -> Self:
        """A change of the finished plan."""
        self.last.append(change)
        return self

    # --- what follows

    def snapshot(self) -> Snapshot:
        def all_of(kind: str) -> tuple[Any, ...]:
            mine = [each for each in self.documents if each["kind"] == kind]
            mine.sort(key=lambda each: (each["metadata"].get("namespace", ""), each["metadata"]["name"]))
            return tuple(decode(kind, msgspec.json.encode(each)) for each in mine)

        policies = all_of("Policy")
        return take(
            Intake(
                revision="scene",
                nodes=all_of("Node"),
                pods=all_of("Pod"),
                budgets=all_of("Budget"),
                runs=all_of("Run"),
                leases=tuple(sorted(self.old, key=lambda lease: lease.name)),
                policy=policies[0] if policies else None,
                quarantined=tuple(self.quarantined),
            )
        )

    def plan(self, snapshot: Snapshot) -> Plan:
        """The plan that carries out the scene's decisions, with everything that follows from them."""
        runs = {
            each["metadata"]["name"]: decode("Run", msgspec.json.encode(each))
            for each in self.documents
            if each["kind"] == "Run"
        }
        updates = [
            RunUpdate(namespace="default", name=name, status=self._status(name, run))  # type: ignore[arg-type]
            for name, run in sorted(runs.items())
        ]
        plan = Plan(
            jobtree="0",
            at=self.at,
            cycle="c1",
            snapshot=snapshot.digest,
            policy=snapshot.policy_digest,
            solver=Solver(name="hand", version="0", options={}),
            stages=[self._demand(runs)],  # type: ignore[arg-type]
            closures=sorted(self.closures, key=lambda each: each.name),
            segments=sorted(self.segments, key=lambda each: each.name),
            leases=sorted(self.new, key=lambda each: each.name),
            runs=updates,
            waits=[
                Wait(namespace="default", name=each.name, reason="NoRoom", message="It waits.")
                for each in updates
                if each.status.phase == "Pending" and runs[each.name].spec.state == "Active"  # type: ignore[union-attr]
            ],
        )
        for change in self.last:
            plan = change(plan)
        return plan

    def check(self) -> list[Violation]:
        snapshot = self.snapshot()
        return check(snapshot, self.plan(snapshot))

    def _get(self, kind: str, name: str) -> Document:
        return next(each for each in self.documents if (each["kind"], each["metadata"]["name"]) == (kind, name))

    def _after(self, run: str) -> list[Lease]:
        closing = {closure.name for closure in self.closures}
        kept = [lease for lease in self.old if not lease.status.closed and lease.name not in closing]
        return [lease for lease in (*kept, *self.new) if lease.spec.run_ref.name == run]

    def _payer_owner(self, lease: Lease) -> str:
        assert lease.spec.paid_by is not None
        return str(self._get("Budget", lease.spec.paid_by.budget)["spec"]["owner"])

    def _class(self, lease: Lease) -> str:
        appended = [each.funding_class for each in self.segments if each.name == lease.name]
        return (appended or [entry.class_ for entry in lease.status.funding] or ["unfunded"])[-1]

    def _status(self, name: str, run: Run) -> RunStatus:
        after = [lease for lease in self._after(name) if lease.spec.slice.role == "Active"]
        reasons = {
            closure.reason for closure in self.closures for lease in self.old
            if lease.name == closure.name and lease.spec.run_ref.name == name
        }  # fmt: skip
        phase = self._phase(run, after, reasons)
        held = sum(len(lease.spec.slice.nodes) for lease in after)
        gpus = Counter[str]()
        for lease in after:
            gpus[self._class(lease)] += len(lease.spec.slice.nodes)
        lenders = {self._payer_owner(lease) for lease in after if self._class(lease) == "borrowed"}
        fresh = bool(self.new) and any(lease in self.new for lease in after)
        running = phase == "Running"
        true = {phase, *(["Admitted", "Scheduled"] if running else []), *(["Blocked"] if phase == "Waiting" else [])}
        return RunStatus(
            phase=phase,
            conditions=tuple(
                Condition(type=each, status="True" if each in true else "False", reason="Scene")
                for each in RUN_CONDITIONS
            ),
            width=Width(
                min=run.spec.min_gpus,
                max=run.spec.max_gpus,
                desired=run.spec.desired_gpus,
                allocated=held,
                pending=max(0, run.spec.desired_gpus - held),
            ),
            funding=RunFunding(
                owned_gpus=gpus["owned"],
                shared_gpus=gpus["shared"],
                borrowed_gpus=gpus["borrowed"],
                unfunded_gpus=gpus["unfunded"],
                lenders=tuple(sorted(lenders)),
            ),
            started=Time(min(lease.spec.interval.start for lease in after)) if running and after else None,
            time_limit=self._limit(run, after) if fresh else run.status.time_limit or run.spec.runtime.time_limit,
        )

    @staticmethod
    def _phase(run: Run, after: list[Lease], reasons: set[str]) -> Any:
        if run.status.phase in ("Completed", "Failed"):
            return run.status.phase
        if after or (run.spec.resources.is_cpu and run.status.phase == "Running"):
            return "Running"
        if reasons & {"TimeLimit", "Cancelled", "Failed"}:
            return "Failed"
        if reasons & {"NodeFailure", "ReclaimUnfunded"} and not run.spec.requeues:
            return "Failed"
        return "Completed" if "Completed" in reasons else "Pending"

    def _limit(self, run: Run, after: list[Lease]) -> Any:
        if run.spec.runtime.time_limit is not None:
            return run.spec.runtime.time_limit
        defaults = []
        for lease in after:
            paid = lease.spec.paid_by
            for budget in self.documents:
                if paid is not None and (budget["kind"], budget["metadata"]["name"]) == ("Budget", paid.budget):
                    texts = [each.get("perRun", {}).get("defaultTime") for each in budget["spec"]["envelopes"]]
                    defaults += [Duration.parse(text) for text in texts if text is not None]
        return min(defaults, default=None)

    def _demand(self, runs: Mapping[str, Run]) -> Stage:
        """Active GPUs × (a day + the age up to three days), of paid starts."""
        value = 0
        for name, run in runs.items():
            mine = [lease for lease in self.new if lease.spec.run_ref.name == name and lease.spec.reason == "Start"]
            if any(lease.spec.paid_by is not None for lease in mine):
                gpus = sum(len(lease.spec.slice.nodes) for lease in mine if lease.spec.slice.role == "Active")
                assert run.metadata.creation_timestamp is not None
                value += gpus * (86_400 + min(self.at - run.metadata.creation_timestamp, 3 * 86_400))
        return Stage(name="starts", unit="GPU-seconds", sense="max", value=value, bound=value)


def slots_of(text: str) -> tuple[str, ...]:
    """``a01#0-2,5`` → ``a01#0 a01#1 a01#2 a01#5``; anything else stays as it is, split at blanks."""
    if " " in text or "#" not in text:
        return tuple(text.split())
    node, _, ranges = text.partition("#")
    found: list[str] = []
    for each in ranges.split(","):
        first, _, last = each.partition("-")
        found += [f"{node}#{ordinal}" for ordinal in range(int(first), int(last or first) + 1)]
    return tuple(found)


def names(violations: Iterable[Violation]) -> set[str]:
    """The rules that are broken."""
    return {violation.invariant for violation in violations}
