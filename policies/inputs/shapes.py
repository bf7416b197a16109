"""Groups, pods, spares and widths (spec §2 Lowering).

    groups = ⌈width / groupGPUs⌉, the last group of a fixed run may be smaller
    without groupGPUs: a fixed run is one group, a malleable one a group of min and one of step for each step above
    widths of a malleable run: min + k × step, up to totalGPUs at its start

Each group lies in one domain, with its spares; each pod on one node. With ``allowCrossGroupSpread: false`` all groups
of the run lie in one domain: for room they are one piece.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple


class Shape(NamedTuple):
    """Piece that must lie in one domain: ``gpus`` Active in pods of ``pod`` (0: any), and ``spares`` standbys."""

    gpus: int
    pod: int
    spares: int

    @property
    def unit(self) -> int:
        """GPUs of a pod; 1 where pods have no size."""
        return self.pod or 1

    @property
    def spare_gpus(self) -> int:
        """GPUs of its standbys, each of which is one pod."""
        return self.spares * self.unit

    @property
    def size(self) -> int:
        """GPUs in all."""
        return self.gpus + self.spare_gpus

    @property
    def pods(self) -> int:
        """Pods in all, where pods have a size."""
        return self.size // self.pod if self.pod else 0


class PodLoad(NamedTuple):
    """Load of one pod on its node beside GPUs: milli-CPUs and bytes."""

    cpu_milli: int = 0
    memory: int = 0


NO_LOAD: Final = PodLoad()


@dataclass(frozen=True)
class Lowered:
    """``base``: sizes of the groups that it starts with; ``step``: of those that each step adds, ``steps`` at most."""

    base: tuple[int, ...]
    step: tuple[int, ...]
    steps: int
    pod: int
    spares: int
    together: bool

    @property
    def spare_gpus(self) -> int:
        """Spare GPUs of the base."""
        return sum(shape.spare_gpus for shape in self.pieces())

    def pieces(self) -> list[Shape]:
        """Shapes that the base asks of domains: one per group, or one for all where they must lie together."""
        return self._shapes(self.base)

    def step_pieces(self) -> list[Shape]:
        """Shapes that one step asks of domains."""
        return self._shapes(self.step)

    def _shapes(self, groups: tuple[int, ...]) -> list[Shape]:
        if self.together and groups:
            return [Shape(sum(groups), self.pod, self.spares * len(groups))]
        return [Shape(gpus, self.pod, self.spares) for gpus in groups]

    def largest(self, steps: int) -> int:
        """GPUs of its largest piece at ``steps`` steps above the base, spares included."""
        groups = self.groups(steps)
        return self._shapes(groups if self.together else (max(groups),))[0].size

    def groups(self, steps: int) -> tuple[int, ...]:
        """Sizes of all groups at ``steps`` steps above the base."""
        return self.base + self.step * steps


@lru_cache(maxsize=4096)
def lower(total: int, least: int, step: int, group: int, pod: int, spares: int, spread: bool) -> Lowered:
    """Lower a run: ``least`` < ``total`` only for malleable runs, which then have a ``step``."""
    base = _cut(least, group)
    steps = (total - least) // step if step else 0
    return Lowered(base, _cut(step, group) if steps else (), steps, pod, spares, not spread)


def _cut(width: int, group: int) -> tuple[int, ...]:
    if not group or group >= width:
        return (width,)
    full, rest = divmod(width, group)
    return (group,) * full + ((rest,) if rest else ())
