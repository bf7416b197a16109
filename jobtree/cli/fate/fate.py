"""What becomes of a run: when and where it starts on whose budget, or what it lacks and why.

The block that people read has one fact per line, and a line only where it applies:

    earliestStart: 2025-11-01T14:05:00Z on domain=B
    intendedSlice: domain=B (nodes b01-b08)
    payingEnvelopes: rai-sys/h100 (64)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from exporters.plans.nodelist import by_names, compress, natural
from exporters.plans.summary import payer
from jobtree.api import Lease, Policy, Run, Time
from jobtree.api.kinds.run import IndexRun
from jobtree.api.values.counted import counted
from jobtree.cli.common import lookup
from jobtree.cli.fate import promised
from jobtree.world.naming.domains import Domain, domain_names

if TYPE_CHECKING:
    from jobtree.cli.fate.promised import Promised
    from jobtree.world.plan import Plan, Wait
    from jobtree.world.reading.intake import Intake

NOBODY: Final = "nobody"


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """GPUs in one domain."""

    domain: str
    nodes: list[str]

    def __str__(self) -> str:
        return f"domain={self.domain} (nodes {compress(self.nodes)})"


class Short(msgspec.Struct, frozen=True):
    """One bound that is in the way, and by how much."""

    rule: str
    subject: str
    amount: int
    unit: str

    def __str__(self) -> str:
        many = self.unit if self.unit == "GiB" else ""
        return f"{counted(self.amount, self.unit, many)} of {self.subject} ({self.rule})"


class Fate(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What ``plan RUN -o json`` prints. Times in RFC 3339, GPUs whole."""

    run: str
    phase: str
    running_since: Time | None = None
    ended: Time | None = None
    earliest_start: Time | None = None
    intended_slice: list[Place] = []
    paying_envelopes: dict[str, int] = {}
    deficit_gpus: int = msgspec.field(default=0, name="deficitGPUs")
    reason: str = ""
    message: str = ""
    shorts: list[Short] = []
    never: bool = False
    undated: str = ""
    reservation: str = ""
    eta: Time | None = None
    promised: list[str] = []
    history: list[str] = []

    def lines(self) -> list[str]:
        """The block."""
        found: list[str] = []
        domains = ",".join(place.domain for place in self.intended_slice)
        where = f" on domain={domains}" if domains else ""
        slices = ", ".join(str(place) for place in self.intended_slice)
        if self.running_since is not None:
            found.append(f"runningSince: {self.running_since}{where}")
            found += [f"slice: {slices}"] if slices else []
        if self.earliest_start is not None:
            found.append(f"earliestStart: {self.earliest_start}{where}")
            found += [f"intendedSlice: {slices}"] if slices else []
        if self.paying_envelopes:
            payers = ", ".join(f"{who} ({gpus})" for who, gpus in self.paying_envelopes.items())
            found.append(f"payingEnvelopes: {payers}")
        if self.eta is not None:
            found.append(f"eta: {self.eta} (an estimate: no slot is held yet)")
        if gpus := self.paying_envelopes.get(NOBODY):
            found.append(f"unfunded: {gpus} of {counted(sum(self.paying_envelopes.values()), 'GPU')}")
        if self.deficit_gpus:
            found.append(f"deficit: {counted(self.deficit_gpus, 'GPU')}{self._scope()}")
        found += self.promised
        if self.ended is not None:
            found.append(f"ended: {self.ended}")
        if self.reason or self.message:
            found.append(f"reason: {': '.join(part for part in (self.reason, self.message) if part)}")
        if self.undated:
            found.append(f"earliestStart: none: {self.undated}")
        if self.shorts:
            found.append(f"short: {', '.join(str(short) for short in self.shorts)}")
        return found or [f"phase: {self.phase}"]

    def _scope(self) -> str:
        places = [short.subject for short in self.shorts if short.rule == "capacity"]
        return f" in {places[0]}" if places and places[0].startswith("domain=") else ""


def after(run: Run, plan: Plan) -> Run:
    """The run as the plan leaves it."""
    update = next((each for each in plan.runs if (each.namespace, each.name) == (run.namespace, run.name)), None)
    return run if update is None else msgspec.structs.replace(run, status=update.status)


def of(run: Run, intake: Intake, plan: Plan) -> Fate:
    """The fate of a run under a plan made from ``intake``."""
    key = (run.namespace, run.name)
    name = f"{run.namespace}/{run.name}"
    closed = {(closure.namespace, closure.name) for closure in plan.closures}
    is_mine = lookup.holders(intake, key)
    held = [
        lease
        for lease in intake.leases
        if not lease.status.closed and is_mine(lease.run_key) and (lease.namespace, lease.name) not in closed
    ]
    opened = [lease for lease in plan.leases if is_mine(lease.run_key)]
    then = after(run, plan)
    phase = lookup.phase(then)
    if opened and not held:
        return Fate(
            run=name,
            phase=phase,
            earliest_start=Time(plan.at),
            intended_slice=_places(intake, opened),
            paying_envelopes=_payers(opened, plan),
        )
    if phase == "Running":
        unpaid = lookup.unpaid_words(then)
        return Fate(
            run=name,
            phase=phase,
            running_since=then.status.started or _since(held),
            intended_slice=_places(intake, [*held, *opened]),
            paying_envelopes=_payers([*held, *opened], plan),
            reason="" if unpaid is None else unpaid.reason,
            message="" if unpaid is None else unpaid.message,
        )
    wait = next((each for each in plan.waits if (each.namespace, each.name) == key), None)
    if wait is not None:
        return _waiting(name, phase, wait, intake, promised.of(key, then.status, intake, plan))
    said = lookup.speaker(then)
    reason, message = (said.reason, said.message) if said else ("", "")
    if isinstance(run, IndexRun) and phase == "Pending" and not said:
        reason, message = "ArrayLimit", f"Lower indices of {run.of} wait before it."
    return Fate(run=name, phase=phase, ended=then.status.ended, reason=reason, message=message)


def _waiting(name: str, phase: str, wait: Wait, intake: Intake, found: Promised | None) -> Fate:
    shorts = [Short(each.rule, each.subject, each.amount, each.unit) for each in wait.shorts]
    return Fate(
        run=name,
        phase=phase,
        deficit_gpus=wait.deficit_gpus,
        reason=wait.reason,
        message=wait.message,
        shorts=shorts,
        never=wait.never,
        undated=wait.undated,
        reservation=found.name if found else "",
        earliest_start=found.start if found and found.name else None,
        intended_slice=_places_of(intake, found.nodes) if found else [],
        eta=found.start if found and not found.name else None,
        promised=[*promised.lines(found)] if found else [],
        history=[*found.history] if found else [],
    )


def _since(leases: Iterable[Lease]) -> Time | None:
    return min((lease.spec.interval.start for lease in leases), default=None)


def _payers(leases: Iterable[Lease], plan: Plan) -> dict[str, int]:
    """GPUs by who pays for them once the plan is carried out: nobody for what is unfunded, whoever its payer is."""
    turned = {(each.namespace, each.name): each.funding_class for each in plan.segments}  # in the order of time
    gpus = Counter[str]()
    for lease in leases:
        now = turned.get((lease.namespace, lease.name))
        is_unfunded = lookup.is_unfunded(lease) if now is None else now == lookup.UNFUNDED
        gpus[NOBODY if is_unfunded else payer(lease)] += len(lease.spec.slice.nodes)
    return {who: gpus[who] for who in sorted(gpus, key=natural)}


def losing(intake: Intake, plan: Plan) -> list[str]:
    """A line for each run that a plan leaves unfunded, and for how many GPUs, from which class and payer."""
    turned = {(each.namespace, each.name): each.funding_class for each in plan.segments}
    ended = {(closure.namespace, closure.name) for closure in plan.closures}
    gpus = Counter[tuple[tuple[str, str], str, str, str]]()
    for lease in intake.leases:
        key = (lease.namespace, lease.name)
        before = f" {told}" if (told := lookup.told_class(lease)) else ""
        falls = turned.get(key) == lookup.UNFUNDED and not lookup.is_unfunded(lease)
        if falls and key not in ended and not lease.status.closed and lease.spec.slice.role == "Active":
            gpus[lease.run_key, lease.spec.run_owner, before, payer(lease)] += len(lease.spec.slice.nodes)
    return [
        f"run/{run[0]}/{run[1]} of {owner}: {counted(number, 'GPU')}{before} from {paid}, then unfunded"
        for (run, owner, before, paid), number in sorted(gpus.items(), key=lambda each: by_names(each[0][0]))
    ]


def _places(intake: Intake, leases: Iterable[Lease]) -> list[Place]:
    return _places_of(intake, {lease.spec.node for lease in leases})


def _places_of(intake: Intake, names: Collection[str]) -> list[Place]:
    domains: dict[str, list[str]] = {}
    for node, domain in names_of_domains(intake).items():
        if node in names:
            domains.setdefault(domain, []).append(node)
    return [Place(domain, sorted(domains[domain], key=natural)) for domain in sorted(domains, key=natural)]


def names_of_domains(intake: Intake) -> dict[str, str]:
    """The domain of each node as people call it."""
    labels = (intake.policy or Policy()).spec.topology.labels
    domains = {}
    for node in intake.nodes:
        said, own = node.metadata.labels, node.metadata.labels.get(labels.domain, "")
        region, cluster = said.get(labels.region, ""), said.get(labels.cluster, "")
        domains[node.metadata.name] = Domain(region, cluster, own or node.metadata.name, not own)
    names = domain_names(domains.values())
    return {node: names[domain] for node, domain in domains.items()}
