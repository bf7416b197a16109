"""Indices of an array of runs: their names, as runs of their own, and what the array's status says of them (spec §1).

An array is one Run object. Its status lists indices of which the same is to be said together, as ranges; what is over
keeps its phase and reason alone, what runs its start and limit, what waits its words and date. One that is not listed
waits, and no cycle has looked at it yet.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec

from jobtree.api import ANNOTATION_COMPLETED, ANNOTATION_ETA, Run, Time
from jobtree.api.kinds.base import ANNOTATION_CANCELLED_INDICES, ANNOTATION_COMPLETED_INDICES
from jobtree.api.kinds.meta import Condition
from jobtree.api.kinds.run import OVER, RUN_CONDITIONS, SPEAKS, UNPAID, IndexRun, IndexStatus, RunStatus

RunKey = tuple[str, str]


def ranges(indices: Iterable[int]) -> str:
    """``0-37,40``: indices in order, those in a row as a range."""
    spans: list[list[int]] = []
    for index in sorted(indices):
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def read_ranges(text: str) -> Iterator[int]:
    """The indices in such a text. Raises ValueError for anything else."""
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        yield from range(int(first), int(last if dash else first) + 1)


def index_name(array: str, index: int) -> str:
    """Name of an index: `NAME-INDEX`."""
    return f"{array}-{index}"


def split(name: str) -> tuple[str, int] | None:
    """Array and index of a name that may be an index's."""
    array, dash, index = name.rpartition("-")
    is_index = bool(dash) and index.isascii() and index.isdecimal() and (index == "0" or index[0] != "0")
    return (array, int(index)) if is_index else None


def array_of(runs: Mapping[RunKey, Run], key: RunKey) -> tuple[Run, int] | None:
    """The array and index that a name stands for; None where it is none's."""
    found = split(key[1])
    array = None if found is None else runs.get((key[0], found[0]))
    if found is None or array is None or array.spec.array is None or not array.spec.array.has(found[1]):
        return None
    return array, found[1]


def known(run: Run) -> dict[int, IndexStatus]:
    """Words of an array's status, by index; of indices that it has."""
    return {index: each for each in run.status.indices for index in _listed(each.indices)}


@lru_cache(maxsize=4096)
def _listed(text: str) -> tuple[int, ...]:
    """The indices that a status lists; none where a hand made it unreadable: they wait then."""
    try:
        return tuple(read_ranges(text))
    except ValueError:
        return ()


def completed(run: Run) -> dict[int, Time]:
    """Indices that are marked complete, and since when. Raises ValueError where the annotation cannot be read."""
    parts = (part.partition("=") for part in run.metadata.annotations.get(ANNOTATION_COMPLETED_INDICES, "").split())
    return {index: Time.parse(time) for time, _, indices in parts for index in read_ranges(indices)}


def marks(found: Mapping[int, Time]) -> str:
    """The annotation that marks these indices complete."""
    at: dict[Time, list[int]] = {}
    for index, time in found.items():
        at.setdefault(time, []).append(index)
    return " ".join(f"{time}={ranges(at[time])}" for time in sorted(at))


def cancelled(run: Run) -> set[int]:
    """Indices that are cancelled. Raises ValueError likewise."""
    return {*read_ranges(run.metadata.annotations.get(ANNOTATION_CANCELLED_INDICES, ""))}


class Members:
    """The indices of an array, each as a run: the array is above it in its tree, and keeps the quota."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._said = known(run)
        self._marked, self._cancelled = _or_nothing(run)
        own = (ANNOTATION_COMPLETED, ANNOTATION_ETA)
        self._annotations = {name: text for name, text in run.metadata.annotations.items() if name not in own}
        self._spec = msgspec.structs.replace(run.spec, array=None, quota=None, parent=run.name)
        self._ended = msgspec.structs.replace(self._spec, state="Cancelled")

    def of(self, index: int) -> IndexRun:
        """One of them."""
        when, run = self._marked.get(index), self._run
        annotations = self._annotations if when is None else {**self._annotations, ANNOTATION_COMPLETED: str(when)}
        metadata = msgspec.structs.replace(
            run.metadata, name=index_name(run.name, index), annotations=annotations, finalizers=()
        )
        spec = self._ended if index in self._cancelled else self._spec
        status = full(self._said[index]) if index in self._said else RunStatus()
        return IndexRun(metadata=metadata, spec=spec, status=status, of=run.name, index=index)


class Runs:
    """Runs by (namespace, name), an index of an array by its own name as well."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.there = {(run.namespace, run.name): run for run in runs}
        self._members: dict[RunKey, Members] = {}

    def get(self, key: RunKey) -> Run | None:
        """The run of that name; None where there is none."""
        if key in self.there:
            return self.there[key]
        found = array_of(self.there, key)
        if found is None:
            return None
        array = key[0], found[0].name
        if array not in self._members:
            self._members[array] = Members(found[0])
        return self._members[array].of(found[1])


def _or_nothing(run: Run) -> tuple[dict[int, Time], set[int]]:
    """What annotations say; nothing where they cannot be read, which `annotations.odd` says."""
    try:
        marked = completed(run)
    except ValueError:
        marked = {}
    try:
        return marked, cancelled(run)
    except ValueError:
        return marked, set()


def brief(status: RunStatus) -> IndexStatus:
    """Short form of an index's status, as its array keeps it."""
    phase = status.phase or "Pending"
    said = next((each for each in status.conditions if each.type == SPEAKS[phase]), None)
    reason = said.reason if said is not None else ""
    if phase in OVER:
        return IndexStatus(indices="", phase=phase, reason=reason)
    if phase == "Running":
        return IndexStatus(
            indices="",
            phase=phase,
            reason=reason,
            message=said.message if said is not None and reason in UNPAID else "",
            started=status.started,
            time_limit=status.time_limit,
        )
    return IndexStatus(
        indices="",
        phase=phase,
        reason=reason,
        message=said.message if said is not None else "",
        reservation=status.reservation,
        earliest_start=status.earliest_start,
        eta=status.eta,
    )


@lru_cache(maxsize=4096)
def full(said: IndexStatus) -> RunStatus:
    """The status of a run that says as much: ``brief(full(x)) == x``, but for the indices."""
    condition = Condition(
        type=SPEAKS[said.phase],
        status="False" if said.phase == "Pending" else "True",
        reason=said.reason,
        message=said.message,
    )
    return RunStatus(
        phase=said.phase,
        conditions=(condition,),
        started=said.started,
        time_limit=said.time_limit,
        reservation=said.reservation,
        earliest_start=said.earliest_start,
        eta=said.eta,
    )


def whole(status: RunStatus) -> RunStatus:
    """A status of an index that waits with all conditions: its array's keeps the one that speaks."""
    there = {each.type: each for each in status.conditions}
    conditions = (there.get(kind) or Condition(type=kind, status="False") for kind in RUN_CONDITIONS)
    return msgspec.structs.replace(status, conditions=tuple(conditions))


def is_new(status: RunStatus, before: RunStatus, *, is_index: bool) -> bool:
    """Does a status say something new? Of an index only what its array's status keeps counts."""
    return status != before and not (is_index and brief(status) == brief(before))


def folded(run: Run, updates: Mapping[int, RunStatus]) -> tuple[IndexStatus, ...]:
    """The list in an array's status once these indices have new statuses."""
    said = known(run) | {index: brief(status) for index, status in updates.items()}
    alike: dict[IndexStatus, list[int]] = {}
    for index in sorted(said):
        alike.setdefault(msgspec.structs.replace(said[index], indices=""), []).append(index)
    return tuple(msgspec.structs.replace(each, indices=ranges(found)) for each, found in alike.items())
