"""The snapshot's rows as plain records: one field per column that the checker needs, named as in ``world.schema``.

Lists are tuples, a null is None. Units are those of the schema: times in Unix seconds, durations in seconds, whole
GPUs, memory in bytes, CPUs in thousandths (``…_milli``), GPU-hours in milli-GPU-seconds (``…_gpu_milliseconds``),
credits and rates in thousandths.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from jobtree.check.case.named import EnvelopeKey
from jobtree.world.tables.rows import reservation_status

RunKey = tuple[str, str]
"""(namespace, name) of a Run; the name of an array's index is ``NAME-INDEX``."""
LeaseKey = tuple[str, str]
"""(namespace, name) of a Lease."""
Labels = tuple[tuple[str, str], ...]
"""(key, value) each; in a selector the value ``*`` is any value or none."""
LedgerEntry = tuple[str, int, int | None, int | None]
"""(class, from, to, millicredits per GPU-hour): Unix seconds, to None while it is open; the rate None where none was
recorded."""


class Node(NamedTuple):
    """A row of ``nodes``. ``gpus``, ``cpu_milli``, ``memory``, ``max_pods``: allocatable, None where it does not say;
    ``not_ready_since``: Unix second; ``taints``: (key, value, effect) each.
    """

    name: str
    uid: str | None
    region: str | None
    cluster: str | None
    domain: str | None
    flavor: str | None
    gpus: int
    cpu_milli: int | None
    memory: int | None
    max_pods: int | None
    unschedulable: bool
    ready: bool
    not_ready_since: int | None
    out_of_service: bool
    deleting: bool
    labels: Labels
    taints: tuple[tuple[str, str | None, str], ...]

    @property
    def place(self) -> tuple[str, ...]:
        """The domain (spec §2): region, cluster and label; without the label the node alone."""
        if self.domain is None:
            return ("node", self.name)
        return ("domain", self.region or "", self.cluster or "", self.domain)


class Pod(NamedTuple):
    """A row of ``pods``. ``node``: None while unbound; ``run``: whose it says it is, None for a foreign one;
    ``controller``: uid of what made it, None where it does not say; ``begun``, ``stuck``: Unix seconds; ``gpus``,
    ``cpu_milli``, ``memory``: requested.
    """

    namespace: str
    name: str
    node: str | None
    run: str | None
    controller: str | None
    begun: int | None
    phase: str | None
    deleting: bool
    stuck: int | None
    evicted: bool
    said: str | None
    gpus: int
    cpu_milli: int | None
    memory: int | None

    @property
    def ended(self) -> bool:
        """Whether it holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")


class Run(NamedTuple):
    """A row of ``runs``.

    GPUs: ``total`` (0 for a CPU run), ``pod`` of one pod (0: a pod is what lies on a node), ``cpu_pods`` that a
    CPU run asks for, ``group`` (0: not given),
    ``min_total``, ``max_total``, ``step`` and ``desired`` (None for a fixed run), ``spares`` per group, ``max_borrow``,
    ``quota_gpus``. Seconds: ``time_limit``, ``enforced_limit``. Unix seconds: ``created``, ``completed_at``.
    ``tolerations``: (key, operator, value, effect) each; ``status``: the whole of it as JSON.
    """

    namespace: str
    name: str
    uid: str | None
    created: int | None
    owner: str
    state: str
    deleting: bool
    flavor: str | None
    total: int
    pod: int
    cpu_pods: int | None
    group: int
    spread: bool
    selector: Labels
    tolerations: tuple[tuple[str | None, str | None, str | None, str | None], ...]
    pod_cpu_milli: int | None
    pod_memory: int | None
    time_limit: int | None
    requeue: bool
    min_total: int | None
    max_total: int | None
    step: int | None
    desired: int | None
    spares: int
    allow_borrow: bool
    max_borrow: int | None
    sponsors: tuple[str, ...]
    opportunistic: bool
    follow: tuple[str, ...]
    on_upstream_failure: str | None
    upstream_grace: int | None
    parent: str | None
    quota_gpus: int | None
    quota_gpu_milliseconds: int | None
    gang: str | None
    gang_size: int | None
    array: bool
    outcome: str | None
    outcome_reason: str | None
    completed_at: int | None
    enforced_limit: int | None
    status: str | None

    @property
    def key(self) -> RunKey:
        """(namespace, name)."""
        return self.namespace, self.name

    @property
    def malleable(self) -> bool:
        """Whether its width may change."""
        return self.min_total is not None

    @property
    def least(self) -> int:
        """Active GPUs of its least width."""
        return self.total if self.min_total is None else self.min_total


class Array(NamedTuple):
    """A row of ``arrays``. ``completed``, ``failed``: how many indices its status says; ``shown``: rows of ``runs``."""

    namespace: str
    name: str
    size: int
    max_parallel: int | None
    completed: int
    failed: int
    shown: tuple[int, ...]

    @property
    def key(self) -> RunKey:
        """(namespace, name)."""
        return self.namespace, self.name

    @property
    def members(self) -> list[RunKey]:
        """The indices that are rows of ``runs``."""
        return [(self.namespace, f"{self.name}-{index}") for index in self.shown]


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A row of ``leases``, or a lease of the plan in the same form.

    ``ordinals``: its GPUs, by their number on the ``node``; ``start``, ``ended``: Unix seconds; ``funding``: its
    ledger, oldest entry first; ``budget``, ``envelope``: None where it started unfunded.

    What follows from its columns and is asked again and again is worked out once. ``run_key``: the run that holds it;
    ``payer``: the envelope that pays, None where it started unfunded; ``active``: not a spare; ``gpus``: that it holds.
    """

    namespace: str
    name: str
    run: str
    run_uid: str
    owner: str
    run_owner: str
    flavor: str
    group: int
    node: str
    node_uid: str | None
    ordinals: tuple[int, ...]
    role: str
    start: int
    budget: str | None
    envelope: str | None
    reason: str
    closed: bool
    ended: int | None
    closure_reason: str | None
    funding: tuple[LedgerEntry, ...]
    key: LeaseKey = field(init=False)
    run_key: RunKey = field(init=False)
    payer: EnvelopeKey | None = field(init=False)
    active: bool = field(init=False)
    gpus: int = field(init=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        payer = None
        if self.budget is not None and self.envelope is not None:
            payer = EnvelopeKey(self.budget, self.envelope, self.owner, self.flavor)
        set_(self, "key", (self.namespace, self.name))
        set_(self, "run_key", (self.namespace, self.run))
        set_(self, "payer", payer)
        set_(self, "active", self.role == "Active")
        set_(self, "gpus", len(self.ordinals))

    @property
    def slots(self) -> list[tuple[str, int]]:
        """(node, ordinal) of each of its GPUs."""
        return [(self.node, ordinal) for ordinal in self.ordinals]

    @property
    def recorded_rate(self) -> int:
        """Its credit rate as the ledger has it, in millicredits per GPU-hour."""
        return (self.funding[-1][3] or 0) if self.funding else 0

    @property
    def recorded_class(self) -> str:
        """Its class as the ledger has it."""
        return self.funding[-1][0] if self.funding else "unfunded"


class Reservation(NamedTuple):
    """A row of ``reservations``. ``first_start``: as first promised, ``start`` and ``nodes``: as they stand, Unix
    seconds and names; ``status``: the whole one, in JSON.
    """

    namespace: str
    name: str
    uid: str
    run: str
    first_start: int
    start: int
    nodes: tuple[str, ...]
    state: str
    status: str

    @property
    def run_key(self) -> RunKey:
        """The run that it is promised to."""
        return self.namespace, self.run

    @property
    def stands(self) -> bool:
        """Whether it is still to be kept."""
        return reservation_status(self.status).stands


class Quarantined(NamedTuple):
    """A row of ``quarantine``."""

    kind: str
    namespace: str | None
    name: str


class Unread(NamedTuple):
    """A row of ``unread``: a Lease that cannot be read. ``runs``: whose it may be; ``slots``: (node, ordinal)."""

    namespace: str
    name: str
    runs: tuple[str, ...]
    slots: tuple[tuple[str, int], ...]


def has_labels(node: Node, selector: Labels) -> bool:
    """Whether a node has every label that a selector asks for; the value ``*`` is any value or none (spec §1)."""
    labels = dict(node.labels)
    return all(value == "*" or labels.get(key) == value for key, value in selector)


def by_run(leases: Iterable[Held]) -> dict[RunKey, list[Held]]:
    """Leases by the run that holds them, in their order."""
    found: dict[RunKey, list[Held]] = defaultdict(list)
    for lease in leases:
        found[lease.run_key].append(lease)
    return dict(found)
