"""Runs as the planner sees them: what each asks for, and what it weighs (spec §1 Run, §4 stage 3)."""

from typing import Final

import msgspec
import pyarrow as pa

from jobtree.api.kinds.meta import RunRef
from jobtree.api.kinds.policy import Maintenance, PolicySpec
from jobtree.api.kinds.run import Eta, derived_phase
from jobtree.api.values.scalars import Time, dec_hook
from jobtree.world.tables import values as col
from jobtree.world.tables.records import read
from jobtree.world.tables.rows_arrays import indices_of
from policies.inputs.claims import RunKey
from policies.inputs.fleet import Access, Selector, Toleration
from policies.inputs.maintenance import in_the_way, is_own
from policies.inputs.shapes import Lowered, PodLoad, lower


class ToldCondition(msgspec.Struct):
    """Condition as it is told."""

    type: str = ""
    status: str = ""


class Told(msgspec.Struct):
    """Stored status of a run, as far as it says where the run stands."""

    phase: str | None = None
    started: Time | None = None
    conditions: tuple[ToldCondition, ...] = ()
    eta: Eta | None = None
    follow_deadline: Time | None = msgspec.field(default=None, name="followDeadline")

    @property
    def derived(self) -> str:
        """The phase that follows from its conditions (spec §1)."""
        return derived_phase(self.phase, {each.type: each.status == "True" for each in self.conditions})


FOREVER: Final = 1 << 40
"""Seconds that a run without a time limit may last once it runs."""
_TOLD = msgspec.json.Decoder(Told, dec_hook=dec_hook)


class RunRow(msgspec.Struct, frozen=True, gc=False):
    """One run: a row of the table. GPUs are whole, times Unix seconds, durations seconds; None = not stated."""

    namespace: str
    name: str
    uid: str
    created: int
    owner: str
    state: str
    deleting: bool
    flavor: str
    total: int
    pod: int
    cpu_pods: int | None
    group: int
    spread: bool
    selector: Selector
    tolerations: tuple[Toleration, ...]
    pod_cpu_milli: int
    pod_memory: int
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
    on_upstream_failure: str
    upstream_grace: int | None
    parent: str
    quota_gpus: int | None
    quota_gpu_milliseconds: int | None
    gang: str
    gang_size: int
    array: bool
    outcome: str
    outcome_reason: str
    completed_at: int | None
    enforced_limit: int | None
    status: str
    started: int | None
    """Since when it runs, as its status says; None where it does not."""
    array_of: str = ""
    """The array that it is an index of; empty where it is none."""
    index: int | None = None

    @property
    def key(self) -> RunKey:
        """(namespace, name)."""
        return self.namespace, self.name

    @property
    def ref(self) -> RunRef:
        """Name that other objects have for it: an index by its array's name and its number."""
        return RunRef(name=self.array_of or self.name, namespace=self.namespace, index=self.index)

    def access(self, windows: tuple[Maintenance, ...], at: int) -> Access:
        """Demand on nodes if it starts at ``at`` (Unix seconds)."""
        met = in_the_way(windows, at, self.time_limit)
        shuns = tuple(selector for selector in met if not is_own(selector, self.key))
        return Access(self.flavor, self.selector, self.tolerations, shuns)

    @property
    def is_cpu(self) -> bool:
        """A CPU run: no lease, no payer; kube-scheduler places it."""
        return self.total == 0

    @property
    def load(self) -> PodLoad:
        """Load of each of its pods beside GPUs."""
        return PodLoad(self.pod_cpu_milli, self.pod_memory)

    def pods_of(self, gpus: int) -> int:
        """Pods of so many Active GPUs of one group on a node."""
        return -(-gpus // self.pod) if self.pod else 1

    @property
    def told(self) -> Told:
        """Status as it is told."""
        return _told(self.status)

    @property
    def malleable(self) -> bool:
        """May its width change?"""
        return self.min_total is not None

    @property
    def has_quota(self) -> bool:
        """Does it bound itself and what is below it in its tree?"""
        return self.quota_gpus is not None or self.quota_gpu_milliseconds is not None

    @property
    def width_min(self) -> int:
        """The least width at which it runs."""
        return self.total if self.min_total is None else self.min_total

    @property
    def slots_min(self) -> int:
        """Slots that it has at that width, standbys included."""
        return self.width_min + self.lowered().spare_gpus

    @property
    def unit(self) -> int:
        """GPUs of a pod; 1 where pods have no size."""
        return self.pod or 1

    @property
    def limit(self) -> int | None:
        """The time limit that is enforced, in seconds from the start."""
        return self.time_limit if self.time_limit is not None else self.enforced_limit

    def waiting(self) -> "RunRow":
        """The run without the limit that was enforced on it: that is fixed anew at each start."""
        return self if self.enforced_limit is None else msgspec.structs.replace(self, enforced_limit=None)

    def running(self) -> "RunRow":
        """The run once it runs: its limit is fixed, and if it has none, nobody who pays from now on gives it one."""
        return self if self.limit is not None else msgspec.structs.replace(self, enforced_limit=FOREVER)

    @property
    def spare_gpus(self) -> int:
        """GPUs of the spares at its full width."""
        lowered = self.lowered()
        return len(lowered.groups(lowered.steps)) * lowered.spares * self.unit

    def lowered(self) -> Lowered:
        """Groups and pods of it."""
        return lower(self.total, self.width_min, self.step or 0, self.group, self.pod, self.spares, self.spread)

    def weight(self, policy: PolicySpec, at: int) -> int:
        """Weight of a started GPU: ``age.unit + min(age, age.cap)`` in seconds (spec §4, stage 3)."""
        age = min(max(0, at - self.created), int(policy.age.cap))
        return int(policy.age.unit) + age


def read_runs(runs: pa.Table, arrays: pa.Table) -> list[RunRow]:
    """All runs in (namespace, name) order; ``arrays``: says which of them are indices."""
    of = indices_of(arrays)
    places = [of.get(key, ("", None)) for key in col.keys(runs)]
    return read(
        runs,
        RunRow,
        started=[_started(_told(status)) for status in col.texts(runs, "status")],
        array_of=[name for name, _ in places],
        index=[index for _, index in places],
    )


def _told(status: str) -> Told:
    return _TOLD.decode(status) if status else Told()


def _started(told: Told) -> int | None:
    return told.started if told.derived == "Running" else None
