"""What runs hold from turn to turn, by the plans that were carried out, and what must hold of that (spec §9).

The checker passes each plan by the snapshot that it was made from. Here the plans are added up: what one opens and
another closes. A slot has one open lease of a role, a name one lease, a lease one end, a run that has come to its end
none, and no envelope pays more than its concurrency. What breaks that ends the simulation.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobtree.api import Lease, Refusal
from jobtree.api.kinds.run import OVER
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake
from simulator.stream import Key

Payer = tuple[str, str]
"""Budget and envelope."""


class Life(NamedTuple):
    """An open lease; ``payer``: None where nobody pays."""

    run: Key
    node: str
    slots: tuple[str, ...]
    active: bool
    payer: Payer | None
    funded: bool

    @property
    def gpus(self) -> int:
        """GPUs that it holds."""
        return len(self.slots)


class Lives:
    """Open leases by name; see the module. ``bounds``: concurrency by payer, of those that have one."""

    def __init__(self, bounds: Mapping[Payer, int] | None = None) -> None:
        self.open: dict[Key, Life] = {}
        self._bounds = bounds or {}
        self._closed: set[Key] = set()
        self._slots: dict[tuple[str, bool], Key] = {}

    def take(self, intake: Intake) -> None:
        """Take the leases that the cluster has."""
        for lease in intake.leases:
            if lease.status.closed:
                self._closed.add((lease.namespace, lease.name))
            else:
                self._open(lease)

    def follow(self, plan: Plan) -> set[Key]:
        """Brings it up to date; returns the runs whose GPUs are others than before. Raises Refusal where the plan and
        those before it break what must hold.
        """
        changed = [self._close((each.namespace, each.name)) for each in plan.closures]
        for segment in plan.segments:
            name = segment.namespace, segment.name
            if name in self.open:
                self.open[name] = self.open[name]._replace(funded=segment.funding_class != "unfunded")
        changed += [self._open(lease) for lease in plan.leases]
        self._assert_over(plan)
        self._assert_paid()
        return {run for run in changed if run is not None}

    def of(self, runs: Iterable[Key]) -> dict[Key, tuple[frozenset[str], int]]:
        """Nodes and width of each of these runs; both empty of one that holds nothing."""
        nodes: dict[Key, set[str]] = {run: set() for run in runs}
        widths = dict.fromkeys(nodes, 0)
        for life in self.open.values():
            if life.active and life.run in nodes:
                nodes[life.run].add(life.node)
                widths[life.run] += life.gpus
        return {run: (frozenset(nodes[run]), widths[run]) for run in nodes}

    def active(self) -> Iterable[tuple[Key, Life]]:
        """Leases of what works, by name."""
        return ((name, life) for name, life in self.open.items() if life.active)

    def overdraft(self) -> dict[Payer, int]:
        """Funded GPUs that work, beyond the concurrency of their payer, where there are some."""
        paid: dict[Payer, int] = {}
        for life in self.open.values():
            if life.active and life.payer is not None and life.funded:
                paid[life.payer] = paid.get(life.payer, 0) + life.gpus
        return {payer: gpus - self._bounds[payer] for payer, gpus in paid.items()
                if gpus > self._bounds.get(payer, gpus)}  # fmt: skip

    def _open(self, lease: Lease) -> Key | None:
        """The run whose GPUs are more now; None of a spare."""
        name, spec = (lease.namespace, lease.name), lease.spec
        active = spec.slice.role == "Active"
        payer = None if spec.paid_by is None else (spec.paid_by.budget, spec.paid_by.envelope)
        funded = bool(lease.status.funding) and lease.status.funding[-1].class_ != "unfunded"
        node = spec.slice.nodes[0].rpartition("#")[0]
        life = Life((lease.namespace, spec.run_ref.run_name), node, tuple(spec.slice.nodes), active, payer, funded)
        if name in self.open or name in self._closed:
            raise Refusal("a lease of that name was opened before", subject=_said(name))
        for slot in life.slots:
            other = self._slots.setdefault((slot, active), name)
            if other != name:
                raise Refusal(f"slot {slot} is held by {_said(other)} too", subject=_said(name))
        self.open[name] = life
        return life.run if active else None

    def _close(self, name: Key) -> Key | None:
        """The run whose GPUs are fewer now; None of a spare."""
        life = self.open.pop(name, None)
        if life is None:
            before = "was closed before" if name in self._closed else "was never opened"
            raise Refusal(f"it is closed, and {before}", subject=_said(name))
        self._closed.add(name)
        for slot in life.slots:
            del self._slots[slot, life.active]
        return life.run if life.active else None

    def _assert_over(self, plan: Plan) -> None:
        over = {(each.namespace, each.name) for each in plan.runs if each.status.phase in OVER}
        for name, life in self.open.items() if over else ():
            if life.run in over:
                raise Refusal(f"its run {'/'.join(life.run)} has come to its end", subject=_said(name))

    def _assert_paid(self) -> None:
        for (budget, envelope), gpus in sorted(self.overdraft().items()):
            bound = self._bounds[budget, envelope]
            raise Refusal(f"it pays for {bound + gpus} GPUs, and may for {bound}", subject=f"{budget}/{envelope}")


def _said(name: Key) -> str:
    return f"Lease {'/'.join(name)}"
