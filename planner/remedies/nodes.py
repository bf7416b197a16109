"""More nodes: how many more, like one that is there, would hold the run."""

from collections.abc import Iterator

from jobtree.api.values.counted import counted
from planner.advice.edits import copies
from planner.remedies.bench import Bench, largest
from planner.remedies.record import Remedy, Who


def more(bench: Bench) -> Iterator[Remedy]:
    """The fewest GPUs in more nodes of one domain, each like the largest node there that the run may use."""
    if sites := bench.state.sites_for(bench.run):
        found = [remedy for node in _models(bench, sites) if (remedy := _copies(bench, node)) is not None]
        yield from sorted(found, key=lambda remedy: remedy.cost)[:1]


def _models(bench: Bench, sites: frozenset[int]) -> list[int]:
    """The largest node of each of the largest domains."""
    fleet = bench.state.fleet
    best: dict[int, int] = {}
    total: dict[int, int] = {}
    for node, site in enumerate(fleet.site.tolist()):
        domain = int(fleet.domain[node])
        if site in sites and fleet.gpus[node]:
            total[domain] = total.get(domain, 0) + int(fleet.gpus[node])
            if domain not in best or fleet.gpus[node] > fleet.gpus[best[domain]]:
                best[domain] = node
    most = bench.state.effort.helping.domains
    return [best[domain] for domain in sorted(best, key=lambda d: (-total[d], d))[:most]]


def _copies(bench: Bench, node: int) -> Remedy | None:
    fleet = bench.state.fleet
    name, size = fleet.names[node], int(fleet.gpus[node])
    gpus = sum(shape.size for run in bench.state.pending for shape in run.lowered().pieces())  # its gang's as well
    usable = size // bench.run.pod * bench.run.pod if bench.run.pod else size
    if not usable:
        return None
    most = -(-gpus // usable)

    fresh = copies(name, most, set(fleet.names))
    if not bench.within(fresh).starts():
        return None
    count = most - largest(most - 1, lambda fewer: bench.within(fresh[: most - fewer]).starts())
    nodes = counted(count, "node")
    return Remedy(
        kind="node",
        who=Who.OPERATORS,
        gpus=count * size,
        words=f"{nodes} more like {name}, in {fleet.domain_name(int(fleet.domain[node]))}",
        edits=tuple(fresh[:count]),
    )
