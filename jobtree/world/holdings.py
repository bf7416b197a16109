"""Open leases that contradict the objects that they name, where a hand has edited either (spec §1 Lease, §2).

Each is read as it stands, and only named here:

    payer    the Budget of that name has another owner, or its envelope of that name another flavor: the payer is gone,
             and nobody pays (`policies.named`)
"""

from collections.abc import Iterable, Iterator, Mapping

from jobtree.api import Budget, Lease


def odd(leases: Iterable[Lease], budgets: Iterable[Budget]) -> Iterator[tuple[Lease, str]]:
    """Open leases of which that is so, each with a sentence."""
    by_name = {budget.name: budget for budget in budgets}
    for lease in leases:
        if not lease.status.closed and (words := _payer(lease, by_name)):
            yield lease, words


def _payer(lease: Lease, budgets: Mapping[str, Budget]) -> str:
    spec, paid = lease.spec, lease.spec.paid_by
    budget = None if paid is None else budgets.get(paid.budget)
    if paid is None or budget is None:
        return ""
    if budget.spec.owner != spec.owner:
        now = f"Budget {paid.budget} is of {budget.spec.owner} now"
        return f"its payer {paid.budget}/{paid.envelope} of {spec.owner} is not there, {now}: nobody pays for it"
    flavor = next((each.flavor for each in budget.spec.envelopes if each.name == paid.envelope), spec.flavor)
    if flavor != spec.flavor:
        now = f"that envelope is for {flavor} now"
        return f"its payer {paid.budget}/{paid.envelope} for {spec.flavor} is not there, {now}: nobody pays for it"
    return ""
