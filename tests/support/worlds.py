"""Worlds of the cases: a few lines that say what is there, then cycles, then what became of it.

    world = World().domain("A", nodes=2).budget("org:a", 8).run("r", 4, limit="2h")
    cycle = world.cycle("+1h")
    assert cycle.running == ["r"]

Conventions are those of the cases: T0 is 2026-01-01T00:00:00Z, a node has 8 GPUs of H100-80GB in region us-west,
cluster c1, domain d1; an envelope is of that flavor, anywhere; a Run is of org:a, in namespace default, with no groups.
Runs are created in the order named, a second apart, just before the cycle that sees them first. Times are told from T0
(`+15m`, `-24h`) or in full. Every object takes its remaining fields as a merge patch (`spec={...}`, `metadata={...}`),
None removing a field, so nothing that a state file may say is out of reach.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from exporters.lake.lake import Lake, plan_path
from exporters.plans import planjson
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import Plan, Wait
from jobtree.world.tables.snapshot import Snapshot, take
from tests.support import documents as doc
from tests.support import golden, invariants
from tests.support.commands import Output, jobtree, kubectl_runs
from tests.support.documents import Document
from tests.support.times import T0, moment, rfc3339, unix

Fields = Mapping[str, Any]
ORIGIN: Final = "5a" * 32
"""Of every world's chain of secrets (spec §6): a test process hashes it once, and draws the same lots as any other."""


@dataclass(frozen=True)
class LeaseRow:
    """One lease, as a test wants to compare it."""

    run: str
    group: int
    slots: tuple[str, ...]
    role: str
    payer: str | None
    start: str
    reason: str
    ended: str | None
    closure: str | None

    @property
    def open(self) -> bool:
        return self.closure is None

    @property
    def nodes(self) -> set[str]:
        return {slot.partition("#")[0] for slot in self.slots}

    @property
    def gpus(self) -> int:
        return len(self.slots)


class State:
    """The objects of a state file at one moment."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = list(documents)

    def all(self, kind: str) -> list[Document]:
        """Every object of a kind, in the file's order."""
        return [document for document in self.documents if document["kind"] == kind]

    def get(self, kind: str, name: str) -> Document:
        """The one object of that kind and name."""
        (found,) = (document for document in self.all(kind) if document["metadata"]["name"] == name)
        return found

    def status(self, run: str) -> Document:
        """A Run's status."""
        return dict(self.get("Run", run).get("status", {}))

    def condition(self, run: str, kind: str) -> Document:
        """One condition of a Run."""
        (found,) = (each for each in self.status(run)["conditions"] if each["type"] == kind)
        return dict(found)

    def funding(self, run: str) -> Document:
        """A Run's GPUs by class, zeros left out: ``{"owned": 2, "shared": 4}``."""
        funding = self.status(run).get("funding") or {}
        names = {"ownedGPUs": "owned", "sharedGPUs": "shared", "borrowedGPUs": "borrowed", "unfundedGPUs": "unfunded"}
        found = {names[key]: value for key, value in funding.items() if key in names and value}
        return {**found, **({"lenders": funding["lenders"]} if funding.get("lenders") else {})}

    @cached_property
    def phases(self) -> dict[str, str]:
        """Phase of every Run by name; "" where it has none yet."""
        return {run["metadata"]["name"]: run.get("status", {}).get("phase", "") for run in self.all("Run")}

    @property
    def running(self) -> list[str]:
        """Names of the Runs that are Running, sorted."""
        return sorted(name for name, phase in self.phases.items() if phase == "Running")

    @property
    def waiting(self) -> list[str]:
        """Names of the Runs that hold nothing and are not done, sorted."""
        return sorted(name for name, phase in self.phases.items() if phase in {"Pending", "Waiting"})

    def leases(self, run: str | None = None, *, open: bool | None = None) -> list[LeaseRow]:  # noqa: A002 the word for it
        """Leases (of one run; only the open or the closed ones), by run, group, role, first slot and start."""
        rows = [_row(lease) for lease in self.all("Lease")]
        chosen = [row for row in rows if run in {None, row.run} and open in {None, row.open}]
        return sorted(chosen, key=lambda row: (row.run, row.group, row.role, row.slots, row.start))

    def segments(self, run: str) -> list[list[tuple[str, str, str | None]]]:
        """The ledger of each lease of a run, in the order of `leases`: (class, from, to)."""
        found = [(_row(lease), lease) for lease in self.all("Lease") if _row(lease).run == run]
        found.sort(key=lambda pair: (pair[0].group, pair[0].role, pair[0].slots, pair[0].start))
        return [
            [(each["class"], each["from"], each.get("to")) for each in lease.get("status", {}).get("funding", [])]
            for _, lease in found
        ]


class Cycle(State):
    """The state after one cycle, and what the cycle said."""

    def __init__(self, documents: Sequence[Document], output: Output, plan: Plan, plan_bytes: bytes) -> None:
        super().__init__(documents)
        self.output = output
        self.plan = plan
        self.plan_bytes = plan_bytes

    @property
    def waits(self) -> dict[str, Wait]:
        """Why each run waits, by its name."""
        return {wait.name: wait for wait in self.plan.waits}

    def shorts(self, run: str) -> list[tuple[str, str, int, str]]:
        """What a waiting run is short of: (rule, subject, amount, unit), largest first."""
        return [(short.rule, short.subject, short.amount, short.unit) for short in self.waits[run].shorts]

    @property
    def started(self) -> list[str]:
        """Runs for which this plan opens leases, sorted."""
        return sorted({lease.spec.run_ref.run_name for lease in self.plan.leases})

    @property
    def warnings(self) -> dict[str, list[str]]:
        """The plan's warnings by object."""
        found: dict[str, list[str]] = {}
        for warning in self.plan.warnings:
            found.setdefault(warning.object, []).append(warning.message)
        return found


class World:
    """A state file in the making; see the module. ``written``: what it is written as, where not by a command."""

    def __init__(self, path: Path | None = None, written: Callable[[Iterable[Document]], str] = doc.as_json) -> None:
        if path is None:
            folder = Path(tempfile.mkdtemp(prefix="jobtree-world-"))
            self._cleanup = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            path = folder / "cluster.yaml"
        self.path = path
        self.lake = path.parent / "lake"
        self._written = written
        self._new: list[Document] = []

    # --- what is there

    def add(self, *documents: Document | str) -> Self:
        """Objects as they are, or YAML text with any number of them."""
        for document in documents:
            self._new += doc.load(document) if isinstance(document, str) else [document]
        return self

    def node(
        self, name: str, gpus: int = 8, *, domain: str | None = "d1", flavor: str | None = doc.FLAVOR,
        labels: Fields | None = None, spec: Fields | None = None, status: Fields | None = None,
    ) -> Self:  # fmt: skip
        """One node."""
        made = doc.node(name, gpus, domain=domain, flavor=flavor)
        return self.add(
            doc.merge(made, {"metadata": {"labels": labels or {}}, "spec": spec or {}, "status": status or {}})
        )

    def domain(self, name: str, nodes: int = 1, gpus: int | Sequence[int] = 8, **fields: Any) -> Self:
        """A domain of equal nodes, or of one node per number in ``gpus``; named a01, a02, ... for domain A."""
        sizes = [gpus] * nodes if isinstance(gpus, int) else list(gpus)
        digits = max(2, len(str(len(sizes))))
        for number, size in enumerate(sizes, start=1):
            self.node(f"{name.lower()}{number:0{digits}}", size, domain=name, **fields)
        return self

    def budget(
        self, owner: str, concurrency: int | None = None, *, name: str | None = None,
        envelopes: Sequence[Fields] | None = None, spec: Fields | None = None, metadata: Fields | None = None,
        **envelope: Any,
    ) -> Self:  # fmt: skip
        """A Budget with one envelope `gpus` (its further fields as keywords), or with ``envelopes`` as given."""
        given = [dict(each) for each in envelopes] if envelopes is not None else None
        made = doc.budget(owner, [doc.envelope(concurrency or 0, **envelope)] if given is None else given, name)
        return self.add(doc.merge(made, {"spec": spec or {}, "metadata": metadata or {}}))

    def run(
        self, name: str, gpus: int, *, by: int | None = None, pods: int | None = None, limit: str | None = None,
        owner: str = "org:a", namespace: str = "default", created: str | None = None, spec: Fields | None = None,
        metadata: Fields | None = None, status: Fields | None = None, **fields: Any,
    ) -> Self:  # fmt: skip
        """A Run; ``by`` = groupGPUs, ``pods`` = gpusPerPod, ``limit`` = timeLimit; other keywords are spec fields."""
        made = doc.run(name, gpus, owner, namespace)
        said: list[Fields] = [
            {"locality": {"groupGPUs": by}} if by else {},
            {"resources": {"gpusPerPod": pods}} if pods else {},
            {"runtime": {"timeLimit": limit}} if limit else {},
            fields,
            spec or {},
        ]
        for part in said:
            made = doc.merge(made, {"spec": part})
        stamp = {"creationTimestamp": moment(created)} if created else {}
        made = doc.merge(made, {"metadata": {**stamp, **(metadata or {})}})
        return self.add({**made, "status": dict(status)} if status else made)

    def policy(self, **spec: Any) -> Self:
        """The Policy."""
        return self.add(doc.policy(**spec))

    def foreign_pod(self, name: str, on: str, gpus: int) -> Self:
        """A running GPU pod of somebody else's."""
        return self.add(doc.foreign_pod(name, on, gpus))

    # --- changes between cycles

    def edit(self, kind: str, name: str, **patch: Any) -> Self:
        """Merge a patch into an object, as its owner would with kubectl: ``edit("Run", "r", spec={...})``."""
        return self._rewrite([
            doc.merge(each, patch) if (each["kind"], each["metadata"]["name"]) == (kind, name) else each
            for each in self.state().documents
        ])  # fmt: skip

    def delete(self, kind: str, name: str) -> Self:
        """Take an object out of the file."""
        kept = [each for each in self.state().documents if (each["kind"], each["metadata"]["name"]) != (kind, name)]
        return self._rewrite(kept)

    def shuffle(self, seed: int) -> Self:
        """The same documents in another order."""
        documents = self.state().documents
        random.Random(seed).shuffle(documents)
        return self._rewrite(documents)

    # --- what happens

    def save(self, before: str = T0) -> Path:
        """Write what was added; Runs without a creation time get one just before ``before``, a second apart."""
        runs = [each for each in self._new if each["kind"] == "Run"]
        for number, run in enumerate(runs):
            run["metadata"].setdefault("creationTimestamp", rfc3339(unix(before) - len(runs) + number))
        there = self.path.exists()
        if self._new or not there:
            self._rewrite([*(doc.read(self.path) if there else []), *self._new])
        self._new = []
        return self.path

    def state(self) -> State:
        """What the file says now."""
        return State(doc.read(self.save()))

    def snapshot(self, at: str = T0) -> Snapshot:
        """What a planner gets at ``at``."""
        return take(StateFile(self.save(at), unix(at)).read())

    def try_cycle(self, at: str = T0) -> Output:
        """``jobtree cycle`` with whatever exit code."""
        options = ("--at", moment(at), "--lake", self.lake, "--lottery-origin", ORIGIN)
        return jobtree("--state", self.save(at), "cycle", *options)

    def cycle(self, at: str = T0, *, truncated: bool = False) -> Cycle:
        """One planning cycle, which must succeed; the invariants are asserted on what it leaves.

        A plan that the deadline or a failure cut short is none, unless ``truncated`` says that it must be one.
        """
        self.save(at)
        before = doc.read(self.path)
        output = self.try_cycle(at).ok()
        after = doc.read(self.path)
        invariants.check(before, after, unix(at))
        stored = self._stored_plan(at)
        golden.planned(stored)
        cycle = Cycle(after, output, planjson.decode(stored), stored)
        assert cycle.plan.truncated == truncated, output.err
        return cycle

    def old(self) -> Cycle:
        """Starts what is there a day before T0, so that no protection covers it."""
        return self.cycle("-24h")

    def runs(self, *args: str | Path, at: str | None = None, stdin: str = "") -> Output:
        """``kubectl-runs --state F ARGS``, with ``--at`` where a time is given."""
        clock = ("--at", moment(at)) if at else ()
        return kubectl_runs("--state", self.save(at or T0), *args, *clock, stdin=stdin)

    def usage(self, budget: str, envelope: str = "gpus", at: str = T0) -> Document:
        """The usage record of an envelope, computed at ``at``."""
        printed = self.runs("budgets", "usage", "-o", "json", at=at).ok().out
        records = msgspec.json.decode(printed)
        (found,) = (each for each in records if (each["budget"], each["name"]) == (budget, envelope))
        return dict(found)

    def _rewrite(self, documents: list[Document]) -> Self:
        self.path.write_text(self._written(documents), encoding="utf-8")
        return self

    def _stored_plan(self, at: str) -> bytes:
        newest = Lake(self.lake).newest()
        path = Lake(self.lake).manifest_path(unix(at))
        return plan_path(newest if newest and newest.name.startswith(path.stem) else path).read_bytes()


def _row(lease: Document) -> LeaseRow:
    spec, status = lease["spec"], lease.get("status", {})
    paid = spec.get("paidBy")
    return LeaseRow(
        run=spec["runRef"]["name"] + (f"-{spec['runRef']['index']}" if "index" in spec["runRef"] else ""),
        group=spec["group"],
        slots=tuple(spec["slice"]["nodes"]),
        role=spec["slice"].get("role", "Active"),
        payer=f"{paid['budget']}/{paid['envelope']}" if paid else None,
        start=spec["interval"]["start"],
        reason=spec["reason"],
        ended=status.get("ended"),
        closure=status.get("closureReason"),
    )
