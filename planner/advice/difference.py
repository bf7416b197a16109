"""Two plans of two worlds side by side: what would be otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobtree.world.plan import Plan
from jobtree.world.tables import values
from jobtree.world.tables.after import after
from jobtree.world.tables.snapshot import Snapshot
from policies.inputs.claims import UNFUNDED, RunKey

Payers = dict[str, int]
"""``budget/envelope`` → Active and Spare GPUs; ``nobody`` where nobody pays, whoever the payer is."""
Classes = dict[str, int]
"""Class (owned, shared, borrowed, unfunded) → Active GPUs."""


@dataclass(frozen=True)
class Pair:
    """Something that is counted, in the present world and in the other one."""

    present: int
    otherwise: int


@dataclass(frozen=True)
class StagePair:
    """A stage's value in both plans; None where a plan has no such stage."""

    name: str
    unit: str
    present: int | None
    otherwise: int | None


@dataclass(frozen=True)
class Difference:
    """What the other plan leaves otherwise than the present one.

    ``gain``: runs that hold GPUs only then, with their payers; ``lose``: only now, likewise; ``change``: in both, with
    other payers or widths: (now, then); ``classes``: in both, with more unfunded GPUs, by class: (now, then);
    ``restart``: in both alike, but what runs would end and start anew. ``gpus``, ``held``: of each flavor, on nodes and
    in open Active leases.
    """

    gain: dict[RunKey, Payers]
    lose: dict[RunKey, Payers]
    change: dict[RunKey, tuple[Payers, Payers]]
    classes: dict[RunKey, tuple[Classes, Classes]]
    restart: dict[RunKey, Payers]
    gpus: dict[str, Pair]
    held: dict[str, Pair]
    stages: list[StagePair]


def difference(present: tuple[Snapshot, Plan], otherwise: tuple[Snapshot, Plan]) -> Difference:
    """Compare the plan of one world with the plan of another."""
    worlds = [after(snapshot, plan) for snapshot, plan in (present, otherwise)]
    now, then = (_payers(world) for world in worlds)
    before, later = (_classes(world) for world in worlds)
    open_now = _open(present[0])
    stay, stay_then = (_runs_of(open_now & _open(world)) for world in worlds)
    return Difference(
        gain={key: then[key] for key in sorted(then.keys() - now.keys())},
        lose={key: now[key] for key in sorted(now.keys() - then.keys())},
        change={key: (now[key], then[key]) for key in sorted(now.keys() & then.keys()) if now[key] != then[key]},
        classes={
            key: (before[key], later[key])
            for key in sorted(before.keys() & later.keys())
            if later[key].get(UNFUNDED, 0) > before[key].get(UNFUNDED, 0)
        },
        restart={key: then[key] for key in sorted(stay - stay_then) if now[key] == then.get(key)},
        gpus=_pairs(*(_capacity(world) for world in worlds)),
        held=_pairs(*(_held(world) for world in worlds)),
        stages=_stages(present[1], otherwise[1]),
    )


def _payers(world: Snapshot) -> dict[RunKey, Payers]:
    """What each run's open leases cost whom."""
    leases = world.tables["leases"]
    found: dict[RunKey, Payers] = {}
    for namespace, run, budget, envelope, ordinals, ledger, closed in zip(
        values.texts(leases, "namespace"),
        values.texts(leases, "run"),
        values.texts(leases, "budget"),
        values.texts(leases, "envelope"),
        values.column(leases, "ordinals"),
        values.column(leases, "funding"),
        values.bools(leases, "closed").tolist(),
        strict=True,
    ):
        if not closed:
            payers = found.setdefault((namespace, run), {})
            payer = f"{budget}/{envelope}" if budget and _class(ledger) != UNFUNDED else "nobody"
            payers[payer] = payers.get(payer, 0) + len(ordinals)
    return found


def _classes(world: Snapshot) -> dict[RunKey, Classes]:
    """Active GPUs that each run holds, by class."""
    leases = world.tables["leases"]
    found: dict[RunKey, Classes] = {}
    for namespace, run, role, ordinals, ledger, closed in zip(
        values.texts(leases, "namespace"),
        values.texts(leases, "run"),
        values.texts(leases, "role"),
        values.column(leases, "ordinals"),
        values.column(leases, "funding"),
        values.bools(leases, "closed").tolist(),
        strict=True,
    ):
        if not closed and role == "Active":
            classes = found.setdefault((namespace, run), {})
            classes[_class(ledger)] = classes.get(_class(ledger), 0) + len(ordinals)
    return found


def _class(ledger: Sequence[tuple[str, ...]]) -> str:
    """The class of a ledger's last segment."""
    return ledger[-1][0] if ledger else UNFUNDED


def _open(world: Snapshot) -> set[tuple[str, str, str]]:
    """(namespace, run, lease) of open leases."""
    leases = world.tables["leases"]
    named = zip(*(values.texts(leases, column) for column in ("namespace", "run", "name")), strict=True)
    return {
        (namespace, run, name)
        for (namespace, run, name), closed in zip(named, values.bools(leases, "closed").tolist(), strict=True)
        if not closed
    }


def _runs_of(leases: set[tuple[str, str, str]]) -> set[RunKey]:
    return {(namespace, run) for namespace, run, _ in leases}


def _capacity(world: Snapshot) -> dict[str, int]:
    nodes = world.tables["nodes"]
    found: dict[str, int] = {}
    for flavor, gpus in zip(values.texts(nodes, "flavor"), values.ints(nodes, "gpus").tolist(), strict=True):
        if flavor:
            found[flavor] = found.get(flavor, 0) + gpus
    return found


def _held(world: Snapshot) -> dict[str, int]:
    leases = world.tables["leases"]
    found: dict[str, int] = {}
    for flavor, role, ordinals, closed in zip(
        values.texts(leases, "flavor"),
        values.texts(leases, "role"),
        values.column(leases, "ordinals"),
        values.bools(leases, "closed").tolist(),
        strict=True,
    ):
        if not closed and role == "Active":
            found[flavor] = found.get(flavor, 0) + len(ordinals)
    return found


def _pairs(now: Mapping[str, int], then: Mapping[str, int]) -> dict[str, Pair]:
    return {name: Pair(now.get(name, 0), then.get(name, 0)) for name in sorted({*now, *then})}


def _stages(now: Plan, then: Plan) -> list[StagePair]:
    """Stages in the order of the present plan, then those that only the other one has."""
    first, second = ({stage.name: stage for stage in plan.stages} for plan in (now, then))
    known = {**second, **first}
    order = [*first, *(name for name in second if name not in first)]
    return [
        StagePair(
            name,
            known[name].unit,
            first[name].value if name in first else None,
            second[name].value if name in second else None,
        )
        for name in order
    ]
