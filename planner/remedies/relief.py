"""The smallest relief that lets a run start: the planner's own model of that run, with bounds that give way at a price.

The master of the run alone (with its gang) has a row for every rule and, since it is one run, a seat for every pod on
every node. The run is made to start, and *lifts* are added to rows:

    Σ weight × payments         ≤ left + rise                                     a cap, a quota, a limit on single runs
    Σ GPUs of seats on a node   ≤ free + freed + Σ GPUs there of runs that end + GPUs put back to work

    min Σ price × lift,     at most one lift where a single change is to do

Rises are whole GPUs, GPU-hours or credits; a rise on time costs the GPUs that it provides for one accounting period. A
run that ends costs the GPUs that it holds, and gives back what it has of nodes and caps.
"""

from collections.abc import Iterable

from planner.placement.room import Foreign, Room
from planner.remedies.bench import Bench
from planner.remedies.lifts import Lift, Lifts
from planner.solver.highs import options, solve
from policies.inputs.places import kinds
from policies.model.linear import INF
from policies.model.master import Master, build
from policies.model.seats import Seating


class Relief:
    """The model of one run, or of some that start together. Each question allows some kinds of lifts, solved anew."""

    def __init__(self, bench: Bench) -> None:
        problem = bench.state.lowered(bench.state.waiting(), rises=True)
        room = bench.state.room()
        nodes = _seatings(bench, room)
        empty = Room(bench.state.fleet)
        for seating in nodes:
            empty.free[seating.node] = seating.free
        split = frozenset(seating.domain for seating in nodes)
        self._settings = options(bench.state.policy.solver.seed, 0.0, bench.state.effort.helping.nodes)
        self._master = build(problem, kinds(problem.fleet, empty.free, split), empty.capacity, seatings=nodes)
        self._hopeless = not _start(self._master, bench)
        self._lifts = Lifts(bench, self._master, room, nodes)

    def least(self, *allowed: str, one: bool = False) -> dict[Lift, int]:
        """The cheapest lifts of the ``allowed`` kinds, with their numbers; empty where none are needed or none do."""
        if self._hopeless:
            return {}
        self._lifts.allow(allowed, one=one)
        found = solve(self._master.model, self._settings)
        return {} if found.values is None else self._lifts.read(found.values)


def _start(master: Master, bench: Bench) -> bool:
    """All that waits on the bench starts, each in one way or another; False where the model has none."""
    starts = master.starts.start
    for run in bench.state.pending:
        ways = [starts[c] for c in master.problem.ways.get(run.key, ()) if c in starts]
        if not ways:
            return False
        master.model.row(("starts", *run.key), [(column, 1.0) for column in ways], 1.0, INF)
    return True


def _seatings(bench: Bench, room: Room) -> list[Seating]:
    """Nodes as they could be had: all but what foreign pods hold free, those out of work back; CPU as it is now."""
    state, fleet = bench.state, bench.state.fleet
    sites = frozenset[int]().union(*(kind.sites for kind in state.problem().types))
    found = []
    for node, name in enumerate(fleet.names):
        foreign = state.foreign.get(name, Foreign())
        free = int(fleet.gpus[node]) - foreign.gpus - len(foreign.slots)
        if free > 0 and int(fleet.site[node]) in sites:
            load = room.cpu[node], room.memory[node], room.pods[node]
            found.append(Seating(node, int(fleet.site[node]), int(fleet.domain[node]), free, *load))
    most = state.effort.helping.seats
    return found if len(found) <= most else _nearest(found, room, most)


def _nearest(nodes: Iterable[Seating], room: Room, most: int) -> list[Seating]:
    """Whole domains, most slots free or out of work first, ``most`` nodes or the first domain."""
    domains: dict[int, list[Seating]] = {}
    for seating in nodes:
        domains.setdefault(seating.domain, []).append(seating)
    chosen: list[Seating] = []
    for domain in sorted(domains, key=lambda d: (-sum(len(room.slots[s.node]) for s in domains[d]), d)):
        if chosen and len(chosen) + len(domains[domain]) > most:
            break
        chosen += domains[domain]
    return sorted(chosen, key=lambda seating: seating.node)
