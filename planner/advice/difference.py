"""Two plans of two worlds side by side: what would be otherwise."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from jobtree.api.kinds.run import SPEAKS
from jobtree.world.plan import Plan
from jobtree.world.tables import values
from jobtree.world.tables.after import after
from jobtree.world.tables.rows_runs import status_in
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
    """Differences of what the other plan leaves from what the present one does.

    ``gain``: runs that hold GPUs only then, with their payers; ``lose``: only now, likewise; ``change``: in both, with
    other payers or widths: (now, then); ``classes``: in both, with more unfunded GPUs, by class: (now, then);
    ``restart``: in both alike, but what runs would end and start anew; ``told``: in none, and in another phase, for
    another reason or with another start: (now, then). ``gpus``, ``held``: of each flavor, on nodes and
    in open Active leases.
    """

    gain: dict[RunKey, Payers]
    lose: dict[RunKey, Payers]
    change: dict[RunKey, tuple[Payers, Payers]]
    classes: dict[RunKey, tuple[Classes, Classes]]
    restart: dict[RunKey, Payers]
    told: dict[RunKey, tuple[str, str]]
    gpus: dict[str, Pair]
    held: dict[str, Pair]
    stages: list[StagePair]


def difference(present: tuple[Snapshot, Plan], otherwise: tuple[Snapshot, Plan]) -> Difference:
    """Compare the plan of one world with the plan of another."""
    worlds = [after(snapshot, plan) for snapshot, plan in (present, otherwise)]
    held = [_held(world) for world in worlds]
    now, then = (_sums((each.run, each.payer, each.gpus) for each in leases) for leases in held)
    before, later = (_sums((each.run, each.class_, each.gpus) for each in leases if each.active) for leases in held)
    there = {(each.run, each.name) for each in _held(present[0])}
    said, said_then = map(_told, worlds)
    stay, stay_then = ({each.run for each in leases if (each.run, each.name) in there} for leases in held)
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
        told={
            key: (said[key], said_then[key])
            for key in sorted((said.keys() & said_then.keys()) - now.keys() - then.keys())
            if said[key] != said_then[key]
        },
        gpus=_pairs(*(_capacity(world) for world in worlds)),
        held=_pairs(*(_by_flavor((each.flavor, each.gpus) for each in leases if each.active) for leases in held)),
        stages=_stages(present[1], otherwise[1]),
    )


class _Held(NamedTuple):
    """An open lease of a world. ``class_``: by the last segment of its ledger."""

    run: RunKey
    name: str
    flavor: str
    active: bool
    gpus: int
    payer: str
    class_: str


def _held(world: Snapshot) -> list[_Held]:
    leases = world.tables["leases"]
    texts = ("namespace", "run", "name", "flavor", "role", "budget", "envelope")
    found = []
    for namespace, run, name, flavor, role, budget, envelope, ordinals, ledger, closed in zip(
        *(values.texts(leases, column) for column in texts),
        values.column(leases, "ordinals"),
        values.column(leases, "funding"),
        values.bools(leases, "closed").tolist(),
        strict=True,
    ):
        if not closed:
            class_ = ledger[-1][0] if ledger else UNFUNDED
            payer = f"{budget}/{envelope}" if budget and class_ != UNFUNDED else "nobody"
            found.append(_Held((namespace, run), name, flavor, role == "Active", len(ordinals), payer, class_))
    return found


def _told(world: Snapshot) -> dict[RunKey, str]:
    """By run its phase, the reason, and when it is to start, as its status tells it: ``Pending, BudgetShort``."""
    runs, found = world.tables["runs"], {}
    for key, text in zip(values.keys(runs), values.texts(runs, "status"), strict=True):
        status = status_in(text)
        phase = status.phase or "Pending"
        reasons = (each.reason for each in status.conditions if each.type == SPEAKS[phase])
        start = status.earliest_start or (status.eta.p50 if status.eta else None)
        found[key] = ", ".join(filter(None, (phase, next(reasons, ""), str(start or ""))))
    return found


def _sums(parts: Iterable[tuple[RunKey, str, int]]) -> dict[RunKey, dict[str, int]]:
    """GPUs that runs have of each payer, or class."""
    found: dict[RunKey, dict[str, int]] = {}
    for run, what, gpus in parts:
        of_run = found.setdefault(run, {})
        of_run[what] = of_run.get(what, 0) + gpus
    return found


def _capacity(world: Snapshot) -> dict[str, int]:
    nodes = world.tables["nodes"]
    flavors = zip(values.texts(nodes, "flavor"), values.ints(nodes, "gpus").tolist(), strict=True)
    return _by_flavor((flavor, gpus) for flavor, gpus in flavors if flavor)


def _by_flavor(parts: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for flavor, gpus in parts:
        found[flavor] = found.get(flavor, 0) + gpus
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
