"""The money's rows: Budgets and their bounds, and what was charged by what: balances, credit rates, discounts."""

from typing import NamedTuple

from jobtree.check.case.named import EnvelopeKey
from jobtree.check.case.rows import Labels, Node, has_labels


class Budget(NamedTuple):
    """A row of ``budgets``. ``namespaces``: None inherits; ``parents``: None is by longest prefix, () is a root."""

    name: str
    owner: str
    namespaces: tuple[str, ...] | None
    parents: tuple[str, ...] | None


class Envelope(NamedTuple):
    """A row of ``envelopes``, and the ``owner`` of its Budget. A limit that is None is none.

    ``concurrency``, ``per_run_gpus``, ``lending_concurrency``: GPUs at a time; ``start``, ``end``: Unix seconds;
    ``per_run_time``, ``per_run_default_time``, ``lending_duration``: seconds.
    """

    budget: str
    name: str
    flavor: str
    selector: Labels
    concurrency: int
    max_gpu_milliseconds: int | None
    max_millicredits: int | None
    start: int | None
    end: int | None
    scope: str
    sharing: str
    allow_reservations: bool
    allow_admission: bool
    per_run_gpus: int | None
    per_run_time: int | None
    per_run_default_time: int | None
    lending_allow: bool
    lending_to: tuple[str, ...] | None
    lending_concurrency: int | None
    lending_gpu_milliseconds: int | None
    lending_duration: int
    owner: str

    @property
    def key(self) -> EnvelopeKey:
        """What leases name it by."""
        return EnvelopeKey(self.budget, self.name, self.owner, self.flavor)

    def is_open(self, at: int) -> bool:
        """Whether ``at`` lies in its window [start, end)."""
        return _is_open(self.start, self.end, at)

    def pays(self, at: int) -> bool:
        """Spec §3.3: its window is open, or not yet and ``preActivation.allowAdmission``."""
        return self.is_open(at) or (self.allow_admission and self.start is not None and at < self.start)

    def is_counted_on(self, at: int, now: int) -> bool:
        """Whether a promise made now may count on it: it pays now, or its window may be waited for."""
        return self.pays(at) and (self.allow_reservations or self.pays(now))


class Aggregate(NamedTuple):
    """A row of ``aggregates``: limits, None where there is none, on ``envelopes`` of its Budget together.

    ``concurrency``: GPUs at a time.
    """

    budget: str
    name: str
    envelopes: tuple[str, ...]
    concurrency: int | None
    max_gpu_milliseconds: int | None
    max_millicredits: int | None


class UseCap(NamedTuple):
    """A row of ``use_caps`` and its Budget's ``owner``. ``flavor``: None is every one; limits as `Envelope` has."""

    budget: str
    name: str
    flavor: str | None
    selector: Labels
    scope: str
    concurrency: int | None
    max_gpu_milliseconds: int | None
    max_millicredits: int | None
    per_run_gpus: int | None
    per_run_time: int | None
    start: int | None
    end: int | None
    owner: str

    def is_open(self, at: int) -> bool:
        """Whether it binds at ``at``: that lies in its window [start, end)."""
        return _is_open(self.start, self.end, at)

    def counts(self, flavor: str, node: Node | None) -> bool:
        """Whether it counts a GPU of a flavor on a node; one that is gone counts, so that caps stay safe."""
        if self.flavor not in (None, flavor):
            return False
        return node is None or has_labels(node, self.selector)


class Account(NamedTuple):
    """A row of ``balances``: what leases of a payer that were pruned had been charged, (from, to, milli-GPUs)."""

    budget: str
    envelope: str
    owner: str
    run_owner: str
    flavor: str
    funding_class: str
    role: str
    lent: bool
    place: str | None
    rate_milli: int
    spans: tuple[tuple[int, int, int], ...]

    @property
    def payer(self) -> EnvelopeKey:
        """The envelope that paid."""
        return EnvelopeKey(self.budget, self.envelope, self.owner, self.flavor)


class Rate(NamedTuple):
    """A row of ``seen_rates``: millicredits per GPU-hour."""

    flavor: str
    rate_milli: int


class Discount(NamedTuple):
    """A row of ``seen_discounts``: thousandths of a GPU that a spare one weighs, from ``since`` on."""

    since: int | None
    milli: int


def _is_open(start: int | None, end: int | None, at: int) -> bool:
    """Whether a window [start, end) holds a second."""
    return (start is None or start <= at) and (end is None or at < end)
