"""How long runs last that state no limit, learned from those whose leases closed (spec §5).

    q(run, served) = nearest rank of the quantile among the durations, longer than ``served``, of runs alike

Alike are runs of its owner and of as many GPUs up to the next power of two; with fewer than `ENOUGH` runs of its owner;
then all. The leases are those of the snapshot, which has closed ones for Policy ``retention.leases``, so a
plan that is replayed learns the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from jobtree.world.tables import values as col
from jobtree.world.tables.snapshot import Snapshot
from policies.inputs.runs import RunRow

ENOUGH: Final = 5
"""Fewest durations that anything is learned from."""
_TOLD: Final = frozenset({"Completed", "Failed", "TimeLimit"})
"""Ends that tell how long a run lasts; what was cut, suspended or lost its node would have lasted longer."""


class Lasted(NamedTuple):
    """A run that ended: ``gpus``: Active; ``seconds``: from its first lease to its last."""

    owner: str
    gpus: int
    seconds: int


@dataclass(frozen=True)
class Durations:
    """``alike``: sorted seconds by owner and size, by owner, and of all."""

    alike: dict[tuple[str | int, ...], list[int]]

    @classmethod
    def of(cls, ended: Iterable[Lasted]) -> "Durations":
        """Learn from runs that ended."""
        found: dict[tuple[str | int, ...], list[int]] = {}
        for owner, gpus, seconds in ended:
            for key in _keys(owner, gpus):
                found.setdefault(key, []).append(seconds)
        return cls({key: sorted(each) for key, each in found.items()})

    def quantile(self, run: RunRow, tenths: int, served: int = 0) -> int | None:
        """Seconds that a run which has ``served`` so many lasts in so many cases of ten; None where too few tell."""
        for key in _keys(run.owner, run.total):
            longer = [seconds for seconds in self.alike.get(key, ()) if seconds > served]
            if len(longer) >= ENOUGH:
                return longer[-(-len(longer) * tenths // 10) - 1]
        return None


def _keys(owner: str, gpus: int) -> tuple[tuple[str | int, ...], ...]:
    return (owner, (gpus - 1).bit_length()), (owner,), ()


def ended(world: Snapshot) -> list[Lasted]:
    """Runs of a snapshot whose leases all closed, as far as their ends tell how long they last."""
    table = world.tables["leases"]
    keys = zip(col.texts(table, "namespace"), col.texts(table, "run"), col.texts(table, "run_uid"), strict=True)
    rows = zip(
        keys,
        col.texts(table, "run_owner"),
        col.texts(table, "role"),
        col.column(table, "ordinals"),
        col.optional_ints(table, "start"),
        col.optional_ints(table, "ended"),
        col.texts(table, "closure_reason"),
        strict=True,
    )
    spans: dict[tuple[str, ...], list[tuple[str, int, int, int]]] = {}
    others: set[tuple[str, ...]] = set()
    for key, owner, role, ordinals, start, end, reason in rows:
        if start is None or end is None or reason not in _TOLD:
            others.add(key)
        else:
            spans.setdefault(key, []).append((owner, len(ordinals) if role == "Active" else 0, start, end))
    return [
        Lasted(mine[0][0], max(1, sum(gpus for _, gpus, *_ in mine)), max(m[3] for m in mine) - min(m[2] for m in mine))
        for key, mine in sorted(spans.items())
        if key not in others
    ]
