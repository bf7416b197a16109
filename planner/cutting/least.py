"""The set of victims with the least harm: a small MILP over free slots and victims together (spec §6).

    q[k, n]      pods of shape k on node n          d[k, D]  groups of shape k in domain D
    lost[v]      all of a victim is cut             drop[v, g]  a group goes and the rest stays above the least width
    gone[v, g]   a group that may go goes with it   spare[v, s] a standby goes alone

    Σ_{n in D} q[k, n] = pods of a group × d[k, D]             Σ_D d[k, D] = groups of shape k
    Σ_k pod × q[k, n] ≤ free[n] + Σ slots of what goes on n    lost[v] ≤ drop[v, g] + gone[v, g] ≤ 1,  gone ≤ lost
    Σ_g GPUs × drop[v, g] ≤ surplus[v]                         drop[v, g] ≤ Σ_{n of g} pods of the start there

Where a step is several groups, Σ_g GPUs × drop[v, g] = step × steps[v], and one that helps nobody may go with one that
does. Harm is minimised kind by kind. Nodes' CPU, memory and places for pods are rows likewise, where pods have a size.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from planner.cutting.domains import Need, weighed
from planner.cutting.victims import Group, Victim
from planner.effort import USUAL, Cutting
from planner.placement.room import Room
from planner.solver.highs import Solution, options, solve
from policies.cuts.order import LOTTERY, SHRUNK, SPARES, UNFUNDED, Harm, preference
from policies.inputs.claims import LeaseKey
from policies.inputs.shapes import PodLoad
from policies.model.linear import INF, Model

HALF: Final = 0.5


class Option(NamedTuple):
    """A cut: of a whole run (``lost``), a group (``drop``) or a spare (``spare``). ``part``: which group or spare."""

    victim: int
    what: str
    part: int = 0


@dataclass
class Weighing:
    """Model of a start's needs against free slots and victims. ``columns``: of each option; ``costs``: per kind of
    harm; ``ending``: of each column, groups that go with it, as (victim, group); ``groups``: of each need and domain,
    the column of how many lie there; ``work``: columns of all models solved so far.
    """

    victims: Sequence[Victim]
    needs: Sequence[Need]
    room: Room
    limits: Cutting = USUAL.cutting
    model: Model = field(default_factory=Model)
    columns: dict[Option, int] = field(default_factory=dict)
    kinds: dict[Option, int] = field(default_factory=dict)
    costs: tuple[dict[int, float], ...] = field(default_factory=lambda: ({}, {}, {}, {}))
    freed: dict[int, dict[int, int]] = field(default_factory=dict)
    pods: dict[int, dict[int, tuple[int, PodLoad]]] = field(default_factory=dict)
    placed: dict[int, list[tuple[int, int, PodLoad]]] = field(default_factory=dict)
    ending: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    groups: dict[tuple[int, int], int] = field(default_factory=dict)
    work: int = 0

    @classmethod
    def of(
        cls, victims: Sequence[Victim], needs: Sequence[Need], room: Room, limits: Cutting = USUAL.cutting
    ) -> "Weighing":
        """Build the model; ``room``: what is free beside everything that runs."""
        weighing = cls(victims, needs, room, limits)
        nodes = weighed(victims, needs, room, limits)
        for number, victim in enumerate(victims):
            if _touches(victim, nodes):
                weighing._victim(number, victim)
        weighing._place(nodes)
        weighing._rows(nodes)
        for kind in (LOTTERY, SHRUNK, SPARES, UNFUNDED):
            weighing.model.row(("harm", kind), sorted(weighing.costs[kind].items()), -INF, INF)
        return weighing

    def _solve(self, model: Model) -> Solution:
        self.work += len(model.cost)
        return solve(model, options(0, 0.0, self.limits.nodes))

    def least(self, *, lost: Iterable[int] = (), spare_others: bool = False) -> Harm | None:
        """Minimise the harm, kind by kind; None where the start fits whatever goes.

        ``lost``: victims of which all goes in any case; ``spare_others``: and no other is drawn.
        """
        model = self._fixed(lost, spare_others=spare_others)
        first = len(model.row_lower) - 4
        found: list[int] = []
        for kind in (LOTTERY, SHRUNK, SPARES, UNFUNDED):
            costs = self.costs[kind]
            if costs or not found:
                model.maximise({column: -cost for column, cost in costs.items()})
                solution = self._solve(model)
                if solution.values is None:
                    return None
                found.append(round(-solution.objective))
            else:
                found.append(0)
            model.row_upper[first + kind] = found[-1] + HALF
        return Harm(*found)

    def most(self, harm: Harm, groups: Mapping[tuple[int, int], int], leases: Mapping[LeaseKey, int]) -> int:
        """Most GPUs whose leases end with some set of that harm: spares end with their group.

        ``groups``: GPUs that end with each, as (victim, group); ``leases``: GPUs of each, for spares that end alone.
        """
        model = self._held(self._fixed((), spare_others=False), harm)
        ends = {column: float(sum(groups.get(part, 0) for part in parts)) for column, parts in self.ending.items()}
        ends |= {
            column: float(sum(leases[key] for key in self.victims[option.victim].spares[option.part].keys))
            for option, column in self.columns.items()
            if option.what == "spare"
        }
        model.maximise(ends)
        return int(self._solve(model).bound + HALF)

    def some(self, harm: Harm) -> frozenset[Option]:
        """Some set of that harm; empty where none was found in so many nodes."""
        model = self._held(self._fixed((), spare_others=False), harm)
        model.maximise({})
        return self._read(self._solve(model)) or frozenset()

    def chosen(self, harm: Harm, lost: Iterable[int] = ()) -> frozenset[Option] | None:
        """The set of that harm in which ``lost`` are drawn and no others: those first that the order names first.

        None where there is none, or none was found in so many nodes.
        """
        model = self._held(self._fixed(lost, spare_others=True), harm)
        gentle = [option for option in self.columns if self.kinds[option] != LOTTERY]
        if len(gentle) > self.limits.walk:
            order = sorted(gentle, key=lambda option: self._rank(option, {}))
            model.maximise({self.columns[option]: -float(place) for place, option in enumerate(order)})
            return self._read(self._solve(model))
        model.maximise({})
        dropped: dict[int, int] = {}
        for kind in (UNFUNDED, SPARES, SHRUNK):
            left = [option for option in gentle if self.kinds[option] == kind]
            while left:
                option = min(left, key=lambda each: self._rank(each, dropped))
                left.remove(option)
                column = self.columns[option]
                model.lower[column] = 1.0
                if self._solve(model).values is None:
                    model.lower[column] = model.upper[column] = 0.0
                elif option.what == "drop":
                    dropped[option.victim] = dropped.get(option.victim, 0) + self._group(option).gpus
        return self._read(self._solve(model))

    def layout(self, chosen: Collection[Option], wanted: Mapping[tuple[int, int], int]) -> Counter[tuple[int, int]]:
        """Groups by need and domain, were just these cut: as many as can be where so many are ``wanted``. Empty where
        no way was found in so many nodes.
        """
        model = self._fixed((), spare_others=False)
        for option, column in self.columns.items():
            model.lower[column] = model.upper[column] = float(option in chosen)
        there: dict[int, float] = {}
        for place in sorted(wanted.keys() & self.groups.keys()):
            column = model.column(("wanted", *place), upper=float(wanted[place]))
            model.row(("wanted", *place), [(column, 1.0), (self.groups[place], -1.0)], -INF, 0.0)
            there[column] = 1.0
        model.maximise(there)
        values = self._solve(model).values
        return Counter({} if values is None else {place: round(values[c]) for place, c in self.groups.items()})

    def could_draw(self, harm: Harm, victim: int, group: int, lost: Iterable[int] = ()) -> frozenset[tuple[int, int]]:
        """Groups, as (victim, group), of some set of that harm that ``lost`` are in, whose room is used: this one first
        of all. Empty where no such set has it.
        """
        model = self._held(self._fixed(lost, spare_others=False), harm)
        model.lower[self.columns[Option(victim, "lost")]] = 1.0
        here = next(each for each in self.victims[victim].groups if each.number == group)
        used = []
        for node, asked, free in self._asked(victim, here):
            needs = model.column(("needs", node), upper=1.0, integer=True)
            most = free + sum(self.freed.get(node, {}).values()) + 1
            model.row(("needs", node), [*asked.items(), (needs, -most)], free + 1 - most, INF)
            used.append((needs, 1.0))
        if not used:
            return frozenset()
        model.row(("used",), used, 1.0, INF)
        model.maximise({})
        values = self._solve(model).values
        if values is None:
            return frozenset()
        gone = [o.victim for o, column in self.columns.items() if o.what == "lost" and values[column] > HALF]
        return frozenset(
            (number, each.number)
            for number in gone
            for each in self.victims[number].groups
            if any(
                sum(weight * values[column] for column, weight in asked.items()) > free + HALF
                for _, asked, free in self._asked(number, each)
            )
        )

    def _asked(self, victim: int, group: Group) -> Iterator[tuple[int, dict[int, float], float]]:
        """Needs of a start on a group's nodes less what others free, by column, and what is free."""
        for node, _ in group.slots:
            if node in self.placed:
                asked = {column: float(unit) for column, unit, _ in self.placed[node]}
                for column, gpus in self.freed.get(node, {}).items():
                    if all(number != victim for number, _ in self.ending.get(column, ())):  # its own go with it
                        asked[column] = float(-gpus)
                yield node, asked, float(self.room.free[node])

    def _victim(self, number: int, victim: Victim) -> None:
        whole = UNFUNDED if victim.unfunded else LOTTERY
        lost = self._option(Option(number, "lost"), whole) if victim.losable else None
        columns_of = {group.number: self._goes(number, victim, group, lost) for group in victim.groups}
        self._shrinks(number, victim)
        for place, spare in enumerate(victim.spares):
            column = self._option(Option(number, "spare", place), SPARES)
            self.costs[SPARES][column] = float(spare.gpus)
            also = columns_of.get(spare.group, [])
            self.model.row(("spare", number, place), [(c, 1.0) for c in (column, *also)], -INF, 1.0)
            for each in (column, *also):
                self._frees(each, spare.node, spare.gpus)

    def _goes(self, number: int, victim: Victim, group: Group, lost: int | None) -> list[int]:
        """The columns with which a group goes: ``drop``, and ``gone`` or, where it cannot go alone, ``lost``."""
        model, key, mine = self.model, (number, group.number), list[int]()
        if group.droppable and victim.surplus:
            kind = UNFUNDED if group.unfunded else SHRUNK
            mine.append(self._option(Option(number, "drop", group.number), kind))
            self.costs[kind][mine[0]] = float(group.gpus)
        if lost is not None:
            gone = model.column(("gone", *key), upper=1.0, integer=True) if mine else lost
            costs = self.costs[self.kinds[Option(number, "lost")]]
            costs[gone] = costs.get(gone, 0.0) + group.gpus
            if mine:
                model.row(("gone", *key), [(gone, 1.0), (lost, -1.0)], -INF, 0.0)
                model.row(("all", *key), [(mine[0], 1.0), (gone, 1.0), (lost, -1.0)], 0.0, INF)
                model.row(("once", *key), [(mine[0], 1.0), (gone, 1.0)], -INF, 1.0)
            mine.append(gone)
        for column in mine:
            self.ending.setdefault(column, []).append(key)
            for node, gpus in group.slots:
                self._frees(column, node, gpus)
                here = self.pods.setdefault(node, {})
                pods = here.get(column, (0, victim.load))[0] + victim.pods(gpus)
                here[column] = pods, PodLoad(pods * victim.load.cpu_milli, pods * victim.load.memory)
        return mine

    def _shrinks(self, number: int, victim: Victim) -> None:
        """Bound what a victim that stays gives up, by whole steps where these are several groups."""
        options = ((Option(number, "drop", group.number), group) for group in victim.groups)
        drops = [(self.columns[option], float(group.gpus)) for option, group in options if option in self.columns]
        if drops:
            self.model.row(("surplus", number), drops, -INF, float(victim.surplus))
        if drops and _shares_steps(victim):
            steps = self.model.column(("steps", number), upper=float(victim.surplus // victim.step), integer=True)
            self.model.row(("steps", number), [*drops, (steps, -float(victim.step))], 0.0, 0.0)

    def _frees(self, column: int, node: int, gpus: int) -> None:
        here = self.freed.setdefault(node, {})
        here[column] = here.get(column, 0) + gpus

    def _option(self, option: Option, kind: int) -> int:
        self.columns[option] = self.model.column((option.what, *option), upper=1.0, integer=True)
        self.kinds[option] = kind
        return self.columns[option]

    def _place(self, nodes: Mapping[int, int]) -> None:
        model = self.model
        sites = self.room.fleet.site.tolist()
        for number, (shape, count, wanted, load) in enumerate(self.needs):
            unit = shape.pod or 1
            pods = shape.size // unit
            groups = {
                domain: model.column(("groups", number, domain), upper=float(count), integer=True)
                for domain in dict.fromkeys(nodes.values())
            }
            here: dict[int, list[tuple[int, float]]] = {domain: [(groups[domain], -float(pods))] for domain in groups}
            for node, domain in nodes.items():
                if sites[node] not in wanted:
                    continue
                column = model.column(("pods", number, node), upper=float(pods * count), integer=True)
                self.placed.setdefault(node, []).append((column, unit, load))
                here[domain].append((column, 1.0))
            self.groups |= {(number, domain): column for domain, column in groups.items()}
            for domain, terms in here.items():
                model.row(("pods", number, domain), terms, 0.0, 0.0)
            model.row(("all", number), [(column, 1.0) for column in groups.values()], float(count), float(count))

    def _rows(self, nodes: Mapping[int, int]) -> None:
        model, room = self.model, self.room
        sized = all(need.shape.pod for need in self.needs)
        for node in nodes:
            placed, freed, pods = self.placed[node], self.freed.get(node, {}), self.pods.get(node, {})
            terms = [(column, float(unit)) for column, unit, _ in placed]
            terms += [(column, -float(gpus)) for column, gpus in freed.items()]
            model.row(("slots", node), terms, -INF, float(room.free[node]))
            if not sized:
                continue
            lefts = (("places", room.pods[node]), ("cpu", room.cpu[node]), ("memory", room.memory[node]))
            for place, (name, left) in enumerate(lefts):
                asked = [(column, (1, *load)[place]) for column, _, load in placed]
                scale = max(each for _, each in asked)
                if scale and left < scale * (room.free[node] + sum(freed.values())):
                    terms = [(column, each / scale) for column, each in asked if each]
                    given = ((column, (count, *load)[place]) for column, (count, load) in pods.items())
                    terms += [(column, -most / scale) for column, most in given if most]
                    model.row((name, node), terms, -INF, max(0, left) / scale)
        for option, column in self.columns.items():
            if option.what == "drop" and not _shares_steps(self.victims[option.victim]):
                there = [node for node, _ in self._group(option).slots if node in self.placed]
                used = [(c, float(unit)) for node in there for c, unit, _ in self.placed[node]]
                model.row(("helps", *option), [*used, (column, -1.0)], 0.0, INF)

    def _fixed(self, lost: Iterable[int], *, spare_others: bool) -> Model:
        """The model to be bounded further, with these victims lost."""
        model = self.model.copy()
        gone = {*lost}
        for option, column in self.columns.items():
            if option.what == "lost" and option.victim in gone:
                model.lower[column] = 1.0
            elif option.what == "lost" and spare_others and self.kinds[option] == LOTTERY:
                model.upper[column] = 0.0
        return model

    def _held(self, model: Model, harm: Harm) -> Model:
        first = len(self.model.row_lower) - 4
        for kind, gpus in enumerate(harm):
            model.row_upper[first + kind] = gpus + HALF
        return model

    def size(self, option: Option) -> int:
        """GPUs of a group or of a spare."""
        victim = self.victims[option.victim]
        return victim.spares[option.part].gpus if option.what == "spare" else self._group(option).gpus

    def _group(self, option: Option) -> Group:
        return next(each for each in self.victims[option.victim].groups if each.number == option.part)

    def _rank(self, option: Option, dropped: Mapping[int, int]) -> tuple[int, int, str, int]:
        """Place of an option among equals; of one run's groups the highest first."""
        victim = self.victims[option.victim]
        surplus = victim.surplus - dropped.get(option.victim, 0)
        return *preference(surplus, victim.start, victim.uid), -option.part

    def _read(self, solution: Solution) -> frozenset[Option] | None:
        values = solution.values
        return None if values is None else frozenset(o for o, column in self.columns.items() if values[column] > HALF)


def _shares_steps(victim: Victim) -> bool:
    """Is a step of its width more than one of its groups?"""
    return any(group.gpus < victim.step for group in victim.groups if group.droppable)


def _touches(victim: Victim, nodes: Mapping[int, int]) -> bool:
    return any(node in nodes for node, _ in victim.slots())
