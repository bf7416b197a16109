"""One second under one set of Budgets: all that caps, the order of claims and charges are worked out from.

The present one is the `Case`; others lie between the last cycle and this one (`between`).
"""

from collections.abc import Mapping

from jobtree.check.case.accounts import Account, Aggregate, Budget, Envelope, UseCap
from jobtree.check.case.kin import Kin
from jobtree.check.case.named import EnvelopeKey
from jobtree.check.case.rows import Held, LeaseKey, Node, Run, RunKey, has_labels
from jobtree.check.case.tables import Rows
from jobtree.world.plan import Closure, Segment


class Moment:
    """``known_as``: envelopes by (budget, name); ``leases``: all that are there, ``balances``: of pruned ones;
    ``held``: open ones; ``new``: those that a plan creates then. ``discount``: what a spare GPU weighs, in
    thousandths, and ``discounts`` what it did before.

    ``rates``: millicredits per GPU-hour by flavor; ``sites``: see `Rows.sites`.
    """

    def __init__(
        self,
        at: int,
        rows: Rows,
        budgets: list[Budget],
        envelopes: list[Envelope],
        aggregates: list[Aggregate],
        use_caps: list[UseCap],
    ) -> None:
        self.at = at
        self.nodes: Mapping[str, Node] = rows.node
        self.runs: Mapping[RunKey, Run] = rows.run
        self.quarantined = {(each.kind, each.namespace or "", each.name) for each in rows.quarantine}
        self.owner_of = {budget.name: budget.owner for budget in budgets}
        self.kin = Kin(budgets, {envelope.owner for envelope in envelopes})
        self.households = Kin(budgets)
        self.envelopes = {envelope.key: envelope for envelope in envelopes}
        self.known_as = {(envelope.budget, envelope.name): envelope.key for envelope in envelopes}
        self.aggregates = aggregates
        self.use_caps = use_caps
        self.discount = 1000
        self.discounts = rows.seen.discounts
        self.rates: Mapping[str, int] = {}
        self.leases: Mapping[LeaseKey, Held] = rows.lease
        self.balances: list[Account] = rows.balances
        self.held: list[Held] = []
        self.new: list[Held] = []
        self.closing: Mapping[LeaseKey, Closure] = {}
        self.appended: Mapping[LeaseKey, list[Segment]] = {}
        self.sites = rows.sites(envelopes, use_caps)
        self._matches: dict[tuple[EnvelopeKey, int], bool] = {}

    def milli(self, lease: Held) -> int:
        """What a lease weighs against a cap (spec §3.4): 1000 per Active GPU, 1000 × discount per spare one."""
        return lease.gpus * (1000 if lease.active else self.discount)

    def rate(self, flavor: str) -> int:
        """Millicredits per GPU-hour of a flavor; 0 where the Policy gives no rate."""
        return self.rates.get(flavor, 0)

    def is_frozen(self, lease: Held) -> bool:
        """Whether a quarantined Budget pays: what it pays stays as it was (spec §2)."""
        return lease.payer not in self.envelopes and ("Budget", "", lease.budget or "") in self.quarantined

    def stays_paid(self, lease: Held) -> bool:
        """Whether a payer that is not there pays for an open lease all the same in this second."""
        return self.is_frozen(lease) and self.recorded(lease) != "unfunded"

    def recorded(self, lease: Held) -> str:
        """The class of a lease up to this second, with what the plan adds to its ledger before."""
        told = [each.funding_class for each in self.appended.get(lease.key, ()) if each.since < self.at]
        return told[-1] if told else lease.recorded_class

    def is_charged(self, lease: Held) -> bool:
        """Whether a lease that holds its quota is charged for this second: one that ended already is not."""
        closure = self.closing.get(lease.key)
        return closure is None or self.at < closure.ended

    def run_of(self, key: RunKey) -> Run | None:
        """The Run that a lease names, an index of an array included."""
        return self.runs.get(key)

    def has_payer(self, run: Run, at: int) -> bool:
        """Whether an envelope of its flavor may be counted on then: its owner's, a sharing relative's or sponsor's."""
        return any(
            each.flavor == run.flavor
            and each.is_counted_on(at, self.at)
            and (
                each.owner == run.owner
                or (each.sharing != "none" and self.kin.rank(run.owner, each.owner) is not None)
                or (run.allow_borrow and each.owner in run.sponsors and each.lending_allow)
            )
            for each in self.envelopes.values()
        )

    def looks_at(self, cap: UseCap, owner: str) -> bool:
        """Whether a use cap looks at runs of an owner: its own, or with ``scope: subtree`` those of whoever is below.

        Below an owner that has no envelope are those that descend from it by their paths as if it had one.
        """
        if cap.scope == "own" or owner == cap.owner:
            return owner == cap.owner
        return any(cap.owner in kin.line(owner) for kin in (self.kin, self.households))

    def matches(self, envelope: Envelope, node: str) -> bool:
        """Whether an envelope's flavor and selector match a node; one that is gone counts, so that caps stay safe."""
        site = self.sites.get(node)
        if site is None:
            return True
        key = (envelope.key, site)
        if key not in self._matches:
            known = self.nodes[node]
            self._matches[key] = known.flavor == envelope.flavor and has_labels(known, envelope.selector)
        return self._matches[key]
