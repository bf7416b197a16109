"""Open leases that contradict the objects that they name, where a hand has edited either (spec §1 Lease, §2).

Each is read as it stands, and only named here:

    payer    the Budget of that name has another owner: the payer is gone, and nobody pays (`policies.named`)
"""

from collections.abc import Iterable, Iterator, Mapping

from jobtree.api import Budget, Lease


def odd(leases: Iterable[Lease], budgets: Iterable[Budget]) -> Iterator[tuple[Lease, str]]:
    """Open leases of which that is so, each with a sentence."""
    owners = {budget.name: budget.spec.owner for budget in budgets}
    for lease in leases:
        if not lease.status.closed and (words := _payer(lease, owners)):
            yield lease, words


def _payer(lease: Lease, owners: Mapping[str, str]) -> str:
    paid, owner = lease.spec.paid_by, lease.spec.owner
    now = owner if paid is None else owners.get(paid.budget, owner)
    if paid is None or now == owner:
        return ""
    return (
        f"its payer {paid.budget}/{paid.envelope} of {owner} is not there, Budget {paid.budget} is of {now} now:"
        " nobody pays for it"
    )
