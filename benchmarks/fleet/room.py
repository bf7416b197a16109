"""Where: nodes of 8 GPUs in domains of 32, domains in clusters, clusters in regions (spec §2)."""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

GPUS_PER_NODE = 8
NODES_PER_DOMAIN = 32
REGIONS = ("us-west", "us-east", "eu-north", "ap-south")
FLAVORS = (("H100-80GB", 0.55), ("A100-80GB", 0.30), ("L40S-48GB", 0.15))

Place = tuple[str, str]
"""(region, cluster)."""


@dataclass(frozen=True, slots=True)
class Seat:
    """GPUs of one node held by one group of a run: ordinals ``first`` .. ``first + gpus - 1``."""

    domain: "Domain"
    node: int
    first: int
    gpus: int
    group: int
    spare: bool


@dataclass(eq=False)
class Domain:
    """Nodes behind one fast fabric, all of one flavor; ``by_free[f]`` lists those with ``f`` GPUs free."""

    name: str
    region: str
    cluster: str
    flavor: str
    nodes: list[str]
    by_free: list[list[int]] = field(init=False)
    free: int = field(init=False)

    def __post_init__(self) -> None:
        self.by_free = [[] for _ in range(GPUS_PER_NODE)] + [list(range(len(self.nodes)))]
        self.free = GPUS_PER_NODE * len(self.nodes)

    @property
    def place(self) -> Place:
        """Region and cluster."""
        return self.region, self.cluster

    def seat(self, group: int, gpus: int, pod: int, spares: int) -> list[Seat] | None:
        """Seats for a group and its standbys, on the fullest nodes that take them; None, and no trace, if there is no
        room. ``pod`` 0: chunks of any size, as few as may be."""
        if self.free < gpus + spares:
            return None
        seats: list[Seat] = []
        for spare, wanted in ((False, gpus), (True, spares)):
            left = wanted
            while left:
                size = 1 if spare else pod or min(left, GPUS_PER_NODE)
                free = next((f for f in range(size, GPUS_PER_NODE + 1) if self.by_free[f]), None)
                if free is None:
                    if pod and not spare:
                        self.leave(seats)
                        return None
                    size = free = max(f for f in range(GPUS_PER_NODE + 1) if self.by_free[f])
                seats.append(self._take(self.by_free[free][0], free, size, group, spare))
                left -= size
        return seats

    def _take(self, node: int, free: int, gpus: int, group: int, spare: bool) -> Seat:
        self.by_free[free].remove(node)
        insort(self.by_free[free - gpus], node)
        self.free -= gpus
        return Seat(self, node, GPUS_PER_NODE - free, gpus, group, spare)

    def leave(self, seats: list[Seat]) -> None:
        """Give up the seats just taken, the last first. Only before anybody else sits down."""
        for seat in reversed(seats):
            free = GPUS_PER_NODE - seat.first - seat.gpus
            self.by_free[free].remove(seat.node)
            insort(self.by_free[free + seat.gpus], seat.node)
            self.free += seat.gpus


def build_domains(gpus: int, flavors: Sequence[tuple[str, float]] = FLAVORS) -> list[Domain]:
    """Domains for ``gpus`` GPUs (rounded up to whole nodes): up to 8 clusters, two in a region, each with its share of
    every flavor (small fleets: of the first two)."""
    nodes = -(-gpus // GPUS_PER_NODE)
    count = -(-nodes // NODES_PER_DOMAIN)
    clusters = 8 if count > 60 else 4 if count >= 16 else max(1, count // 2)
    flavors = flavors if count >= 6 else flavors[:2]
    given = {(c, flavor): 0 for c in range(clusters) for flavor, _ in flavors}
    domains = []
    for i in range(count):
        cluster, turn = i % clusters, i // clusters + 1
        flavor = max(flavors, key=lambda f: f[1] * turn - given[cluster, f[0]])[0]
        given[cluster, flavor] += 1
        region = REGIONS[cluster // 2]
        first = i * NODES_PER_DOMAIN
        names = [f"n{k:05d}" for k in range(first, min(first + NODES_PER_DOMAIN, nodes))]
        domains.append(Domain(f"d{i:03d}", region, f"{region}-{1 + cluster % 2}", flavor, names))
    return domains
