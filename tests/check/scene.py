"""Scenes for the checker: a small world and a hand-made plan for it, of which every part can be spoilt.

A scene holds what a planner decides (leases, closures, segments). What follows (statuses, waits, the value of the
stages, digests) is filled in by `outcome.plan_of`, so that a spoilt decision breaks its own rule and no other; the
finished plan can be spoilt too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from jobtree.api import OwnerPath, Time, decode
from jobtree.api.kinds.lease import Interval, Lease, LeaseSpec, LeaseStatus, Slice
from jobtree.api.kinds.lease import Segment as Entry
from jobtree.api.kinds.meta import EnvelopeRef, ObjectMeta, RunRef
from jobtree.check import Violation, check
from jobtree.world.memory.cycles import Moment
from jobtree.world.plan import Closure, Plan, Segment
from jobtree.world.reading.intake import Intake, Notice
from jobtree.world.reading.unread import UnreadLease
from jobtree.world.tables.snapshot import Snapshot, take
from tests.check.outcome import plan_of
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment, unix
from tests.support.unchanged import unchanged

T0 = unix("+0s")
FLAVOR = doc.FLAVOR


def ago(span: str) -> int:
    """Unix seconds before T0: ``ago("2h")``."""
    return unix(f"-{span}")


@dataclass
class Scene:
    """See the module. ``old``: leases of the snapshot; ``new``: of the plan; ``last``: changes of the finished plan.

    ``changed``: since when the world has been what it is, as the last cycle told; None: it did not tell.
    """

    documents: list[Document] = field(default_factory=list)
    old: list[Lease] = field(default_factory=list)
    new: list[Lease] = field(default_factory=list)
    closures: list[Closure] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    quarantined: list[Notice] = field(default_factory=list)
    unread: list[UnreadLease] = field(default_factory=list)
    last: list[Callable[[Plan], Plan]] = field(default_factory=list)
    at: int = T0
    changed: int | None = None

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
        """A Run with a uid; other keywords are fields of its spec."""
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
        return self.set_aside(kind, "default" if kind == "Run" else "", name).remove(kind, name)

    def set_aside(self, kind: str, namespace: str, name: str) -> Self:
        """A notice that an object is broken."""
        self.quarantined.append(Notice(kind, namespace, name, "it is broken"))
        return self

    def unreadable(self, lease: str, runs: Sequence[str] = (), *slots: tuple[str, int]) -> Self:
        """A Lease that cannot be read: the runs whose it may be, and the slots that can."""
        self.unread.append(UnreadLease("default", lease, tuple(runs), slots))
        return self.set_aside("Lease", "default", lease)

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
        array, index = self._place(run)
        owner = self.get("Run", array)["spec"]["owner"]
        begun = Time(self.at if start is None else start)
        budget, _, envelope = (payer or "").partition("/")
        payer_owner = self.get("Budget", budget)["spec"]["owner"] if payer else owner
        span = Entry(class_=funding if payer else "unfunded", from_=begun, to=None if ended is None else Time(ended))  # type: ignore[arg-type]
        count = sum(each.spec.run_ref.run_name == run for each in (*self.old, *self.new))
        return Lease(
            metadata=ObjectMeta(name=name or f"{run}-{count}", namespace="default"),
            spec=LeaseSpec(
                owner=OwnerPath(payer_owner),
                run_ref=RunRef(name=array, namespace="default", index=index),
                run_uid=f"uid-{array}",
                run_owner=OwnerPath(owner),
                flavor=FLAVOR,
                group=group,
                slice=Slice(nodes=slots_of(slots), role=role),
                interval=Interval(start=begun),
                reason=reason,
                cycle=Moment(self.at).name if start is None else "c0",
                paid_by=EnvelopeRef(budget=budget, envelope=envelope) if payer else None,
            ),
            status=LeaseStatus(
                closed=ended is not None,
                ended=None if ended is None else Time(ended),
                closure_reason=closure,
                funding=(span,) if entries is None else tuple(entries),
            ),
        )

    def _place(self, run: str) -> tuple[str, int | None]:
        """The Run that this is the name of, and the index where it is an array's."""
        if any((each["kind"], each["metadata"]["name"]) == ("Run", run) for each in self.documents):
            return run, None
        array, _, index = run.rpartition("-")
        return array, int(index)

    @staticmethod
    def entry(funding: Any, since: int, until: int | None = None, rate: float | None = None) -> Entry:
        """One span of a lease's ledger."""
        return Entry(class_=funding, from_=Time(since), to=None if until is None else Time(until), rate=rate)

    def rename(self, index: int, name: str) -> Self:
        """Another name for one lease of the plan."""
        lease = self.new[index]
        self.new[index] = msgspec.structs.replace(lease, metadata=msgspec.structs.replace(lease.metadata, name=name))
        return self

    def respec(self, index: int, **changes: Any) -> Self:
        """Other facts in one lease of the plan."""
        lease = self.new[index]
        self.new[index] = msgspec.structs.replace(lease, spec=msgspec.structs.replace(lease.spec, **changes))
        return self

    def was(self, lease: str, **changes: Any) -> Self:
        """Other facts in that lease of the snapshot."""
        self.old = [
            msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, **changes))
            if each.name == lease
            else each
            for each in self.old
        ]
        return self

    def move(self, index: int, slots: str) -> Self:
        """Other slots for one lease of the plan."""
        return self.respec(index, slice=Slice(nodes=slots_of(slots), role=self.new[index].spec.slice.role))

    def relabel(self, index: int, **changes: Any) -> Self:
        """Another status in one lease of the plan."""
        lease = self.new[index]
        self.new[index] = msgspec.structs.replace(lease, status=msgspec.structs.replace(lease.status, **changes))
        return self

    def on(self, lease: str, uid: str) -> Self:
        """A lease of the snapshot or the plan says that this was its node's uid."""
        for each in (self.old, self.new):
            for place, found in enumerate(each):
                if found.name == lease:
                    where = msgspec.structs.replace(found.spec.slice, node_uid=uid)
                    each[place] = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, slice=where))
        return self

    def drop(self, *indices: int) -> Self:
        """The plan without those of its leases; without any number, without all of them."""
        self.new = [lease for index, lease in enumerate(self.new) if indices and index not in indices]
        return self

    def unturned(self) -> Self:
        """The plan without its segments."""
        self.segments.clear()
        return self

    def had(self, run: str, slots: str, start: int, ended: int, **said: Any) -> Self:
        """A lease of the snapshot that is closed (Completed), see `lease`."""
        self.old.append(self.lease(run, slots, start=start, ended=ended, closure="Completed", **said))
        return self

    def unheld(self, lease: str) -> Self:
        """The snapshot without that lease."""
        self.old = [each for each in self.old if each.name != lease]
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

    def since(self, changed: int) -> Self:
        """The world has been the same since then."""
        self.changed = changed
        return self

    def snapshot(self) -> Snapshot:
        def all_of(kind: str) -> tuple[Any, ...]:
            mine = [each for each in self.documents if each["kind"] == kind]
            mine.sort(key=lambda each: (each["metadata"].get("namespace", ""), each["metadata"]["name"]))
            return tuple(decode(kind, msgspec.json.encode(each)) for each in mine)

        policies = all_of("Policy")
        found = take(
            Intake(
                revision="scene",
                nodes=all_of("Node"),
                pods=all_of("Pod"),
                budgets=all_of("Budget"),
                runs=all_of("Run"),
                reservations=all_of("Reservation"),
                leases=tuple(sorted(self.old, key=lambda lease: lease.name)),
                policy=policies[0] if policies else None,
                quarantined=tuple(self.quarantined),
                unread=tuple(self.unread),
            )
        )
        return unchanged(found, self.at, self.changed)

    def check(self) -> list[Violation]:
        snapshot = self.snapshot()
        return check(snapshot, plan_of(self, snapshot))

    def get(self, kind: str, name: str) -> Document:
        """One object's document."""
        return next(each for each in self.documents if (each["kind"], each["metadata"]["name"]) == (kind, name))

    def after(self, run: str) -> list[Lease]:
        """What a run holds once the plan is carried out."""
        closing = {closure.name for closure in self.closures}
        kept = [lease for lease in self.old if not lease.status.closed and lease.name not in closing]
        return [lease for lease in (*kept, *self.new) if lease.run_key[1] == run]


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
