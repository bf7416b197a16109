"""Ways to spoil a scene: what is changed, and the names of the rules that the checker then finds broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from jobtree.api import OwnerPath
from jobtree.api.kinds.budget import AggregateUsage, BudgetStatus, EnvelopeUsage
from jobtree.api.kinds.lease import Slice
from jobtree.api.kinds.meta import Condition, EnvelopeRef
from jobtree.api.kinds.run import RUN_CONDITIONS
from jobtree.world.memory.balances import Account
from jobtree.world.plan import BudgetUpdate, Plan, Pruned, RunUpdate, Short
from tests.check.scene import Scene, ago, names, slots_of
from tests.check.scenes import SCENES
from tests.support.documents import Document, envelope, foreign_pod
from tests.support.times import moment


class Spoil(NamedTuple):
    """``change`` spoils the scene of that name; ``broken``: exactly the rules that are broken then, by blanks."""

    scene: str
    name: str
    change: Callable[[Scene], object]
    broken: str

    def found(self) -> set[str]:
        """The rules that the checker finds broken."""
        scene = SCENES[self.scene]()
        self.change(scene)
        return names(scene.check())

    @property
    def wanted(self) -> set[str]:
        """The rules that are broken."""
        return set(self.broken.split())

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def payer(text: str) -> EnvelopeRef:
    """``budget/envelope``."""
    budget, _, name = text.partition("/")
    return EnvelopeRef(budget=budget, envelope=name)


def slots(*texts: str) -> Slice:
    """A slice of any slots: ``slots("a01#0-2", "a02#0")``."""
    return Slice(nodes=tuple(slot for text in texts for slot in slots_of(text)))


def unpaid(scene: Scene, index: int) -> Scene:
    """Nobody pays for that lease of the plan."""
    scene.respec(index, paid_by=None, owner=OwnerPath("org:a"))
    return scene.relabel(index, funding=(Scene.entry("unfunded", scene.at),))


def taint(effect: str, key: str = "team", value: str = "b") -> Document:
    """A patch that taints a node."""
    return {"spec": {"taints": [{"key": key, "value": value, "effect": effect}]}}


def template(**spec: Any) -> Document:
    """A patch that gives a Run a template."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "main"}], **spec}}}}


def requests(**amounts: str) -> Document:
    """A patch that gives a Run a template whose pod asks for that much."""
    return template(containers=[{"name": "main", "resources": {"requests": amounts}}])


def limit(span: str | None) -> Document:
    """A patch that gives a Run another time limit."""
    return {"spec": {"runtime": {"timeLimit": span}}}


def own_pod(run: str, node: str, gpus: int, phase: str = "Running", begun: str = "") -> Document:
    """A pod of one of our runs, begun then (as from `moment`), where that is told."""
    pod = foreign_pod(f"{run}-pod", node, gpus)
    pod["metadata"] |= {"namespace": "default", "labels": {"rq.davidlangworthy.io/run": run}}
    pod["status"] = {"phase": phase, **({"startTime": moment(begun)} if begun else {})}
    return pod


def controlled(uid: str) -> Document:
    """A patch by which the object of that uid controls another one."""
    return {"metadata": {"ownerReferences": [{"kind": "Run", "name": "r", "uid": uid, "controller": True}]}}


def finishing(change: Callable[[Plan], Plan]) -> Callable[[Scene], object]:
    """A scene's plan is finished with this change."""
    return lambda scene: scene.then(change)


def plan(**changes: Any) -> Callable[[Plan], Plan]:
    """Other fields of the plan."""
    return lambda plan: msgspec.structs.replace(plan, **changes)


def each(field: str, **changes: Any) -> Callable[[Plan], Plan]:
    """Other fields in every record of one of the plan's lists."""
    return lambda plan: msgspec.structs.replace(
        plan, **{field: [msgspec.structs.replace(record, **changes) for record in getattr(plan, field)]}
    )


def twice(field: str) -> Callable[[Plan], Plan]:
    """The first record of one of the plan's lists stands in it twice."""
    return lambda plan: msgspec.structs.replace(plan, **{field: [getattr(plan, field)[0], *getattr(plan, field)]})


def backwards(field: str) -> Callable[[Plan], Plan]:
    """One of the plan's lists in the opposite order."""
    return lambda plan: msgspec.structs.replace(plan, **{field: getattr(plan, field)[::-1]})


def without(field: str, name: str) -> Callable[[Plan], Plan]:
    """One of the plan's lists without the record of that name."""
    return lambda plan: msgspec.structs.replace(
        plan, **{field: [record for record in getattr(plan, field) if record.name != name]}
    )


def status(run: str, **changes: Any) -> Callable[[Plan], Plan]:
    """Other fields in the new status of one run."""

    def change(plan: Plan) -> Plan:
        runs = [
            RunUpdate(
                namespace=old.namespace,
                name=old.name,
                status=msgspec.structs.replace(old.status, **changes) if old.name == run else old.status,
            )
            for old in plan.runs
        ]
        return msgspec.structs.replace(plan, runs=runs)

    return change


def part(field: str, run: str, **changes: Any) -> Callable[[Plan], Plan]:
    """Other numbers in the width or funding of one run's new status."""

    def change(plan: Plan) -> Plan:
        (old,) = (getattr(update.status, field) for update in plan.runs if update.name == run)
        return status(run, **{field: msgspec.structs.replace(old, **changes)})(plan)

    return change


def conditions(run: str, *true: str, drop: str = "", again: str = "") -> Callable[[Plan], Plan]:
    """Only these conditions of a run are true; one may be missing, one there twice."""
    kinds = [kind for kind in (*RUN_CONDITIONS, again) if kind and kind != drop]
    return status(
        run, conditions=tuple(Condition(type=kind, status="True" if kind in true else "False") for kind in kinds)
    )


#: Patches of a Run: marked complete a minute ago; failed for good.
COMPLETED: Final = {"metadata": {"annotations": {"rq.davidlangworthy.io/completed": moment("-1m")}}}


def failed(reason: str) -> Document:
    """A patch that makes a Run Failed for that reason."""
    return {"status": {"phase": "Failed", "conditions": [{"type": "Failed", "status": "True", "reason": reason}]}}


FAILED: Final = failed("TimeLimit")


def silent(span: str) -> Document:
    """A patch that makes a node NotReady since ``-6m`` or so."""
    ready = {"type": "Ready", "status": "Unknown", "lastTransitionTime": moment(span)}
    return {"status": {"conditions": [ready]}}


def reopened(scene: Scene, lease: str) -> Scene:
    """The plan forgets to close that lease."""
    scene.closures = [closure for closure in scene.closures if closure.name != lease]
    return scene


def reclosed(scene: Scene, lease: str, reason: str, ended: int | None = None) -> Scene:
    """The plan closes that lease in another way."""
    return reopened(scene, lease).closes(lease, reason, ended)


def relative_that_lends(scene: Scene) -> Scene:
    """The lender of the scene of loans becomes the parent of both borrowers; it shares nothing and lends."""
    scene.edit("Budget", "org-l", {"spec": {"owner": "team"}}).envelope("org-l", {"sharing": "none"})
    scene.edit("Budget", "team-a", {"spec": {"parents": ["team"]}})
    for run in ("r", "o"):
        scene.edit("Run", run, {"spec": {"funding": {"sponsors": ["team"]}}})
    return scene.was("o-0", owner=OwnerPath("team")).respec(1, owner=OwnerPath("team"))


def more(field: str, record: object) -> Callable[[Plan], Plan]:
    """One of the plan's lists with one more record at its end."""
    return lambda plan: msgspec.structs.replace(plan, **{field: [*getattr(plan, field), record]})


def stage(value: int = 0, bound: int = 0) -> Callable[[Plan], Plan]:
    """The first stage with that much more value and bound."""

    def change(plan: Plan) -> Plan:
        first = plan.stages[0]
        moved = msgspec.structs.replace(first, value=first.value + value, bound=first.bound + bound)
        return msgspec.structs.replace(plan, stages=[moved, *plan.stages[1:]])

    return change


def shorts(*amounts: int) -> list[Short]:
    """Shortages of room of so many GPUs."""
    return [Short(rule="capacity", subject="A", amount=amount, unit="GPU") for amount in amounts]


def usage(aggregate: int | None = None, **changes: Any) -> Callable[[Plan], Plan]:
    """The usage of org-a in the scene of hours (46 GPU-hours consumed; 4 GPUs of v and 2 of r), changed.

    ``aggregate``: the headroom of its aggregate cap.
    """
    true: dict[str, Any] = {
        "owned_gpus": 6, "headroom_gpus": 2, "gpu_seconds_consumed": 46 * 3600, "gpu_hours_consumed": 46,
        "gpu_hours_committed": 54, "headroom_gpu_hours": 0,
    }  # fmt: skip
    capped = true | {"headroom_gpu_hours": None, "headroom_gpus": aggregate}
    caps = () if aggregate is None else (AggregateUsage(name="all", **capped),)
    return healthy(caps, **(true | changes))


def healthy(caps: tuple[AggregateUsage, ...] = (), **figures: Any) -> Callable[[Plan], Plan]:
    """The status of org-a: healthy, with these figures of its envelope."""
    fine = Condition(type="Healthy", status="True", reason="WithinCaps")
    envelopes = (EnvelopeUsage(name="gpus", **figures),)
    told = BudgetStatus(envelopes=envelopes, aggregate_caps=caps, conditions=(fine,))
    return plan(budgets=[BudgetUpdate(name="org-a", status=told)])


def sick(change: Callable[[Plan], Plan]) -> Callable[[Plan], Plan]:
    """The same status of org-a, which says that it is overcommitted."""

    def spoil(given: Plan) -> Plan:
        done = change(given)
        sad = Condition(type="Healthy", status="False", reason="Overcommitted", message="999 GPUs are unfunded")
        (update,) = done.budgets
        status = msgspec.structs.replace(update.status, conditions=(sad,))
        return msgspec.structs.replace(done, budgets=[BudgetUpdate(name=update.name, status=status)])

    return spoil


def capped(scene: Scene) -> Scene:
    """An aggregate cap of 99 GPUs over the envelope of org-a, which has 8."""
    return scene.edit("Budget", "org-a", {"spec": {"aggregateCaps": [CAP]}})


CAP: Final = {"name": "all", "envelopes": ["gpus"], "maxConcurrency": 99}
DONE: Final = Account(
    budget="org-a", envelope="gpus", owner="org:a", run_owner="org:a", flavor="H100-80GB", funding_class="owned",
    role="Active", spans=((ago("11h"), ago("30m"), 4000),), place='{"region":"us-west"}',
)  # fmt: skip
"""What done-0 in the scene of hours was charged."""


def below(parent: str) -> Document:
    """A patch that puts a Run below another one in its tree."""
    return {"spec": {"parent": parent}}


def follows(scene: Scene, *upstreams: str, **follow: Any) -> Scene:
    """x follows runs."""
    return scene.run("x", 1, follow={"after": [*upstreams], **follow})


def past(scene: Scene) -> Scene:
    """A run completed before the last cycle, and is gone."""
    scene.run("past", 1, created="-12h").had("past", "a03#0", ago("11h"), ago("10h"), name="past-0")
    return scene.remove("Run", "past")


def going(scene: Scene) -> Scene:
    """What is suspended is being deleted."""
    scene.edit("Run", "suspended", {"metadata": {"deletionTimestamp": moment("-1m")}})
    return reclosed(scene, "suspended-0", "RunDeleted")


def failing(scene: Scene) -> Scene:
    """x fails."""
    scene.then(conditions("x", "Failed")).then(status("x", phase="Failed")).then(without("waits", "x"))
    return scene


def pruned(scene: Scene, *names: str, retention: str = "20m", **changes: Any) -> Scene:
    """Leases go, kept for ``retention``, and balances grow by what done-0 was charged, changed."""
    settled = [msgspec.structs.replace(DONE, **changes)] if changes.get("spans", DONE.spans) else []
    gone = [Pruned(namespace="default", name=name) for name in names]
    return scene.policy(retention={"leases": retention}).then(plan(pruned=gone, settled=settled))


def growing(**changes: Any) -> Callable[[Scene], object]:
    """done-0 goes, and balances grow by something else than what it was charged."""
    return lambda scene: pruned(scene, "done-0", **changes)


def unreadable(scene: Scene) -> Scene:
    """In the scene of caps a Budget below org:a that cannot be read pays for a GPU."""
    scene.budget("org:a:z", envelope(1)).run("z", 1, owner="org:a:z", created="-3h")
    return scene.holds("z", "a02#5", payer="org-a-z/gpus").quarantine("Budget", "org-a-z")


def spent_below(scene: Scene, hours: int) -> Scene:
    """In the scene of hours org bounds its subtree, in which a Budget had spent 6 hours that is gone."""
    scene.budget("org", envelope(8, scope="subtree", maxGPUHours=hours)).budget("org:b", envelope(2))
    scene.run("x", 2, owner="org:b", created="-9h").had("x", "a02#4-5", ago("8h"), ago("5h"), payer="org-b/gpus")
    return scene.remove("Run", "x").remove("Budget", "org-b")


def used(scene: Scene, owner: str = "org:a:x", **cap: Any) -> Scene:
    """A Budget of this owner with nothing but a use cap."""
    return scene.budget(owner, name=f"{owner.replace(':', '-')}-use", useCaps=[{"name": "use", **cap}])
