"""Histories: worlds whose money changes while work runs, cycle by cycle, and what the product makes of them.

A history is documents, and steps: a time, and what people did since the cycle before. It is played in this process, on
the text of a state file in memory, by the product's own reading, planning, checking and writing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from exporters.plans import planjson
from exporters.writes.writes import writes_for
from jobtree.api import Time
from jobtree.check import check
from jobtree.cluster import document, edits
from jobtree.cluster.document import StateText
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake, intake, is_read, key_of
from jobtree.world.tables.snapshot import Snapshot, take
from planner.planning import Planning
from tests.support.documents import Document, merge


@dataclass(frozen=True)
class Step:
    """A cycle at Unix second ``at``. Before it ``put`` are written whole (Runs that are there stay), ``patches`` merged
    (kind, name, patch) and ``gone`` deleted (kind, name); what is not there is passed over.
    """

    at: int
    put: Sequence[Document] = ()
    patches: Sequence[tuple[str, str, Mapping[str, Any]]] = ()
    gone: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Played:
    """What a cycle saw, decided and left."""

    at: int
    before: list[Document]
    snapshot: Snapshot
    plan: Plan
    after: list[Document]


class Quick(Snapshot):
    """A snapshot that spares itself the digests, which take a third of the time here and decide nothing."""

    digest = "not asked for"
    policy_digest = "not asked for"


@dataclass
class Cluster:
    """A state file that is only in memory."""

    text: StateText = field(default_factory=lambda: document.parse(b"", json=True))

    def documents(self) -> list[Document]:
        """All objects."""
        return [each.value() for each in self.text.documents()]

    def read(self) -> Intake:
        """What a cycle reads."""
        return intake([(each.key, bytes(each.raw)) for each in self.text.documents() if is_read(each.key)], "memory")

    def change(self, step: Step) -> None:
        """What people did."""
        documents = {(each["kind"], each["metadata"]["name"]): each for each in self.documents()}
        for each in step.put:
            key = each["kind"], each["metadata"]["name"]
            if each["kind"] != "Run" or key not in documents:
                documents[key] = each
        for kind, name, patch in step.patches:
            if (kind, name) in documents:
                documents[kind, name] = merge(documents[kind, name], patch)
        for key in step.gone:
            documents.pop(key, None)
        self.text = StateText([], json=True)
        for each in documents.values():
            self.text.append(each)

    def cycle(self, at: int) -> Played:
        """One cycle. The search is not what is asked for, so its first incumbent will do; the checker passes it."""
        before = self.documents()
        read = self.read()
        taken = take(read)
        snapshot = Quick(taken.tables, taken.policy, taken.since)
        planning = Planning(snapshot, at)
        plan = planning.finish(next(planning.incumbents()))
        broken = [str(violation) for violation in check(snapshot, plan)]
        assert not broken, "\n".join(broken)
        edits.apply(self.text, writes_for(read, plan, planjson.encode(plan)), Time(at))
        return Played(at, before, snapshot, plan, self.documents())


def play(steps: Sequence[Step]) -> list[Played]:
    """All cycles of a history."""
    cluster = Cluster()
    found = []
    for step in steps:
        cluster.change(step)
        found.append(cluster.cycle(step.at))
    return found


def snapshot_of(documents: Sequence[Document]) -> Snapshot:
    """The snapshot of objects."""
    found = []
    for each in documents:
        metadata = each["metadata"]
        key = key_of(each["apiVersion"], each["kind"], metadata.get("namespace", ""), metadata["name"])
        found.append((key, msgspec.json.encode(each)))
    return take(intake(found, "memory"))
