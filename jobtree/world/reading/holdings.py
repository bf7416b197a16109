"""Open leases that contradict one another or the objects that they name, where a hand has edited either (spec §1, §2).

Each is read as it stands, and only named here:

    payer    the Budget of that name has another owner, or its envelope of that name another flavor: the payer is gone,
             and nobody pays (`jobtree.world.naming.named`)
    stranger its payer is no relative's, lends nothing to the run's owner, and never lent it: it counts as borrowed
    run      the Run that it names has another owner or flavor than it says, or no group of that number
    slots    another lease of its role holds one of its slots too: both count, until somebody deletes one
    width    a Run holds more GPUs than its greatest width
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from jobtree.api import Budget, Lease, Run
from jobtree.api.kinds.lease import Role
from jobtree.api.values.counted import counted
from jobtree.world.kept import kept
from jobtree.world.naming import arrays
from jobtree.world.naming.kinship import Family, family_of
from jobtree.world.naming.named import GONE_PAYER, PayerName, payer_of


@kept
def odd(
    leases: tuple[Lease, ...], budgets: tuple[Budget, ...], runs: tuple[Run, ...]
) -> tuple[tuple[Lease | Run, str], ...]:
    """Objects of which that is so, each with a sentence. ``leases``: all that are there, in order."""
    return tuple(_odd(leases, budgets, runs))


def _odd(leases: Iterable[Lease], budgets: Iterable[Budget], runs: Iterable[Run]) -> Iterator[tuple[Lease | Run, str]]:
    opened = [lease for lease in leases if not lease.status.closed]
    by_name = {budget.name: budget for budget in budgets}
    names = (
        PayerName(budget.name, each.name, budget.spec.owner, each.flavor)
        for budget in by_name.values()
        for each in budget.spec.envelopes
    )
    index = {name: i for i, name in enumerate(names)}
    family = family_of(
        ((budget.spec.owner, budget.spec.parents) for budget in by_name.values()),
        {name.owner for name in index},
    )
    known = arrays.Runs(runs)
    runs_by_key = {key: run for key in {lease.run_key for lease in opened} if (run := known.get(key)) is not None}
    for lease in opened:
        payer = _payer(lease, by_name, index) or _stranger(lease, by_name, family)
        for words in (payer, _run(lease, runs_by_key.get(lease.run_key))):
            if words:
                yield lease, words
    yield from _slots(opened)
    yield from _widths(opened, runs_by_key)


def _payer(lease: Lease, budgets: Mapping[str, Budget], index: Mapping[PayerName, int]) -> str:
    spec, paid = lease.spec, lease.spec.paid_by
    budget = None if paid is None else budgets.get(paid.budget)
    if paid is None or budget is None:
        return ""
    if payer_of(index, paid.budget, paid.envelope, spec.owner, spec.flavor) != GONE_PAYER:
        return ""
    if budget.spec.owner != spec.owner:
        now = f"Budget {paid.budget} is of {budget.spec.owner} now"
        return f"its payer {paid.budget}/{paid.envelope} of {spec.owner} is not there, {now}: nobody pays for it"
    flavor = next((each.flavor for each in budget.spec.envelopes if each.name == paid.envelope), None)
    if flavor is None:
        return ""  # deleted, as a whole Budget may be
    now = f"that envelope is for {flavor} now"
    return f"its payer {paid.budget}/{paid.envelope} for {spec.flavor} is not there, {now}: nobody pays for it"


def _stranger(lease: Lease, budgets: Mapping[str, Budget], family: Family) -> str:
    """A loan goes on when its lender lends no more, so one that has been lent is none."""
    spec, paid = lease.spec, lease.spec.paid_by
    if paid is None or spec.owner == spec.run_owner or family.rank(spec.run_owner, spec.owner) is not None:
        return ""
    begun = next((each.class_ for each in lease.status.funding if each.class_ != "unfunded"), "unfunded")
    budget = budgets.get(paid.budget)
    there = () if budget is None or budget.spec.owner != spec.owner else budget.spec.envelopes
    payer = next((each for each in there if (each.name, each.flavor) == (paid.envelope, spec.flavor)), None)
    if payer is None or begun == "borrowed":
        return ""
    if payer.lending.allow and payer.lending.admits(spec.run_owner):
        return ""
    words = f"its payer {paid.budget}/{paid.envelope} of {spec.owner}, no relative of {spec.run_owner}"
    return f"{words}, lends nothing to it: it counts as borrowed all the same"


def _run(lease: Lease, run: Run | None) -> str:
    spec = lease.spec
    if run is None or (spec.run_uid and run.metadata.uid and spec.run_uid != run.metadata.uid):
        return ""  # of an earlier Run of that name: it closes
    if run.spec.owner != spec.run_owner:
        return f"its runOwner is {spec.run_owner}, and Run {run.name} is of {run.spec.owner}: both stand as they are"
    asked = run.spec.resources.gpu_type
    if asked != spec.flavor:
        return f"its flavor is {spec.flavor}, and Run {run.name} asks for {asked or 'no GPUs'}: both stand as they are"
    groups = _groups(run)
    if spec.group >= groups:
        words = f"its group is {spec.group}, and Run {run.name} has {counted(groups, 'group')}, numbered from 0"
        return f"{words}: both stand as they are"
    return ""


def _groups(run: Run) -> int:
    """How many it has at its greatest width (spec §2)."""
    by, width = run.spec.locality.group_gpus, run.spec.malleable
    if by:
        return -(-(run.spec.total_gpus if width is None else width.max_total_gpus) // by)
    return 1 if width is None else 1 + (width.max_total_gpus - width.min_total_gpus) // width.step_gpus


def _slots(opened: list[Lease]) -> Iterator[tuple[Lease, str]]:
    """Of leases that share a slot, all but the first in order."""
    for role in get_args(Role):
        mine = [lease for lease in opened if lease.spec.slice.role == role]
        if len({slot for lease in mine for slot in lease.spec.slice.nodes}) < sum(
            len(x.spec.slice.nodes) for x in mine
        ):
            yield from _sharing(mine)


def _sharing(leases: list[Lease]) -> Iterator[tuple[Lease, str]]:
    holders: dict[str, Lease] = {}
    for lease in leases:
        before = [(slot, holders.setdefault(slot, lease)) for slot in lease.spec.slice.nodes]
        slot, other = next(((slot, other) for slot, other in before if other is not lease), ("", lease))
        if slot:
            words = f"its slot {slot} is held by Lease {other.namespace}/{other.name} too: both count"
            yield lease, f"{words}; delete the one that is wrong"


def _widths(opened: list[Lease], runs: Mapping[tuple[str, str], Run]) -> Iterator[tuple[Run, str]]:
    held: dict[tuple[str, str], int] = defaultdict(int)
    for lease in opened:
        if lease.spec.slice.role == "Active":
            held[lease.run_key] += len(lease.spec.slice.nodes)
    for key, gpus in held.items():
        run = runs.get(key)
        if run is not None:
            width = run.spec.malleable
            most = run.spec.total_gpus if width is None else width.max_total_gpus
            if gpus > most:
                yield run, f"it holds {counted(gpus, 'GPU')}, more than its {most}: a Lease of it is one too many"
