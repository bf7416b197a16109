"""Stage 5: running malleable runs grow by steps to the width that they want, and lost standbys come back (spec §4).

    max Σ GPUs grown           each run by at most elasticity.maxGrowStepsPerCycle steps, groups whole, spares with them

Beside everything: what runs and what this cycle starts keep their room and their payers, be it recalled or not, so no
growth takes from anybody, and two runs that compete do not take turns. The steps of all runs are one problem, lowered,
solved and paid as waiting runs are; those of a run whose groups must lie together one of their own, in its domain. A
run of which something is unfunded does not grow; nor does one of which something ends in the same cycle, or of which a
hand made a group larger than it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, islice
from typing import Any

import msgspec

from jobtree.world.plan import Stage
from planner.filling.filler import demand
from planner.filling.purses import Purses
from planner.placement.draft import Draft
from planner.placement.place import Piece, Start, by_candidate
from planner.placement.room import Room
from planner.plan.asking import asking
from planner.plan.leases import new_leases
from planner.search import stages
from planner.search.objective import LAST_STAGES
from planner.state.state import State
from policies.funding.usage import Classes
from policies.inputs.claims import UNFUNDED, LeaseRow, RunKey
from policies.inputs.runs import RunRow
from policies.inputs.shapes import NO_LOAD, Shape
from policies.lifecycle.endings import limit_end, started
from policies.lifecycle.incomplete import gpus_by_group, is_whole
from policies.model.problem import Problem

STAGE = "growth"


@dataclass
class Growth:
    """``leases``: that open by it; ``grown`` and ``most``: GPUs, and what no plan can beat with these starts as they
    lie.
    """

    leases: list[LeaseRow] = field(default_factory=list)
    grown: int = 0
    most: int = 0

    def stages(self, others: Sequence[Stage], order: Sequence[str]) -> list[Stage]:
        """The stages of the plan, with this one in the Policy's ``order`` where anything might have grown."""
        if not self.most:
            return list(others)
        mine = Stage(name=STAGE, unit="GPUs", sense="max", value=self.grown, bound=self.most, proven=False)
        later = {*order[order.index(STAGE) + 1 :], *LAST_STAGES}
        before = [stage for stage in others if stage.name not in later]
        return [*before, mine, *(stage for stage in others if stage.name in later)]


def grow(state: State, classes: Classes, room: Room, purses: Purses, new: Sequence[LeaseRow], cycle: str) -> Growth:
    """Grow what may; ``room`` and ``purses`` are what starts leave, and afterwards what growth leaves of it.

    ``classes``: of open leases beside the starts; ``new``: leases of starts.
    """
    growing = _Growing(state, classes, room, purses, cycle)
    growing.begin(new)
    wide = growing.wide
    growing.steps_of([run for run in wide if run.spread])
    for run in (run for run in wide if not run.spread):
        growing.steps_of([run], together=True)
    growing.standbys()
    return growing.growth


def is_called_for(state: State) -> bool:
    """Does any run ask for more than it holds?"""
    if STAGE not in state.policy.stages:
        return False
    asking = Changing(state, state.funded.classes)
    return bool(asking.wide) or any(True for run in asking.runs for _ in lacking(state, run))


@dataclass
class Changing:
    """Runs that may change in this cycle; ``classes``: of what they hold, beside the starts."""

    state: State
    classes: Classes

    @cached_property
    def wide(self) -> list[RunRow]:
        """Those of them that are narrower than they want to be."""
        return [run for run in self.runs if run.malleable and self.steps(run)]

    @cached_property
    def runs(self) -> list[RunRow]:
        """Runs that run on as they are, whole and funded, by key."""
        state = self.state
        ending = {(closure.namespace, closure.name) for closure in state.closures}
        lost = {lease.run_key for lease in state.leases if lease.key in ending}
        swapped = {lease.run_key for lease in state.swapped}
        found = []
        for key in sorted(state.held.keys() & state.runs.keys() - (lost - swapped)):
            run, held = state.runs[key], state.held[key]
            unsure = key in state.unread.runs or state.unread.lease_of(run) is not None
            funded = all(self.classes[lease.key] != UNFUNDED and lease.envelope >= 0 for lease in held)
            if run.state == "Active" and funded and not unsure and not run.array and is_whole(run, held):
                found.append(run)
        return found

    def steps(self, run: RunRow) -> int:
        """Count the steps that a run may grow in this cycle."""
        width = sum(lease.gpus for lease in self.state.held[run.key] if lease.active)
        wanted = run.total if run.desired is None else run.desired
        most = self.state.policy.elasticity.max_grow_steps_per_cycle
        return max(0, min(most, (wanted - width) // (run.step or 1)))


def lacking(state: State, run: RunRow) -> Iterator[tuple[int, int]]:
    """(group, standbys) that a run lost."""
    if not run.spares:
        return
    standing = gpus_by_group(state.held[run.key], active=False)
    for group in sorted(standing):
        lost = run.spares - -(-standing[group] // run.unit)
        if lost > 0:
            yield group, lost


@dataclass
class _Growing(Changing):
    room: Room
    purses: Purses
    cycle: str
    growth: Growth = field(default_factory=Growth)
    numbers: dict[tuple[RunKey, int], int] = field(default_factory=dict)
    """By run and group, how many leases of this cycle there are."""

    def begin(self, new: Sequence[LeaseRow]) -> None:
        """Slots that starts take are no others'."""
        self._take_slots(new)
        for lease in self.state.swapped:
            key = lease.run_key, lease.group
            self.numbers[key] = self.numbers.get(key, 0) + 1

    def _take_slots(self, leases: Sequence[LeaseRow]) -> None:
        index = self.room.fleet.index
        taken: dict[int, set[int]] = {}
        for lease in leases:
            taken.setdefault(index[lease.node], set()).update(lease.ordinals)
        self.room.slots = [*self.room.slots]
        for node, ordinals in taken.items():
            self.room.slots[node] = [slot for slot in self.room.slots[node] if slot not in ordinals]

    def steps_of(self, runs: Sequence[RunRow], *, together: bool = False) -> None:
        """Let these grow."""
        rows = [self._row(run) for run in runs]
        if not rows:
            return
        room = self._near(rows[0]) if together else self.room
        problem = asking(self.state, self.purses, rows, room.free_by_site())
        gpus = sum(row.total for row in rows)
        if not problem.candidates:
            return
        *_, last = stages.incumbents(problem, room.copy, self.state.policy.solver, self.state.effort)
        reached = next(stage for stage in last.stages if stage.name == "starts")
        most = min(gpus, reached.bound // int(self.state.policy.age.unit))
        self.growth.most += most + (sum(row.spare_gpus for row in rows) if most else 0)
        self._open(problem, last.draft)

    def _row(self, run: RunRow) -> RunRow:
        """The steps of a run as a run that waits."""
        held, step, steps = self.state.held[run.key], run.step or 0, self.steps(run)
        lent = sum(lease.gpus for lease in held if lease.active and self.classes[lease.key] == "borrowed")
        left = None if run.max_borrow is None else max(0, run.max_borrow - lent)
        gpus = steps * step
        return self._anew(run, total=gpus, min_total=step, max_total=gpus, desired=gpus, max_borrow=left)

    def _near(self, run: RunRow) -> Room:
        """Room in the domain where a run lies; nothing where that cannot be told."""
        domains = self._domains(self.state.held[run.key])
        room = self.room.copy()
        mine = self.room.fleet.domain.tolist()
        room.free = [free if {domain} == domains else 0 for free, domain in zip(room.free, mine, strict=True)]
        return room

    def _domains(self, leases: Sequence[LeaseRow]) -> set[int]:
        fleet = self.room.fleet
        return {int(fleet.domain[fleet.index[lease.node]]) for lease in leases if lease.node in fleet.index}

    def _open(self, problem: Problem, draft: Draft) -> None:
        """Leases of what a draft starts, in the groups that its runs lack."""
        pieces = by_candidate(draft.pieces)
        for start in draft.starts:
            run, mine = problem.candidates[start.candidate].run, pieces[start.candidate]
            there = {lease.group for lease in self.state.held[run.key]}
            groups = 1 + max(group for piece in mine for group, _ in piece.groups)
            free = list(islice((number for number in count() if number not in there), groups))
            for piece in mine:
                piece.chunks = [replace(chunk, group=free[chunk.group]) for chunk in piece.chunks]
        self._keep(problem, draft)
        self.purses.trees[:] = Purses.after(problem, draft).trees

    def _keep(self, problem: Problem, draft: Draft) -> None:
        """Take room and money for good."""
        leases = new_leases(problem, self.room, draft, self.cycle, self.numbers)
        for piece in draft.pieces:
            self.room.take(piece.chunks, piece.load)
        self._take_slots(leases)
        self.purses.used[:] = Purses.after(problem, draft).used
        self.growth.leases += leases
        self.growth.grown += sum(lease.gpus for lease in leases)

    def standbys(self) -> None:
        """Give groups the standbys back that they lost."""
        for run in self.runs:
            for group, lost in lacking(self.state, run):
                unit = run.unit
                self.growth.most += min(lost * unit, self._free_near(run, group))
                for pods in range(lost, 0, -1):
                    if self._standby(run, group, pods):
                        break

    def _free_near(self, run: RunRow, group: int) -> int:
        """Free GPUs in the domain of a group."""
        domains = self._domains([lease for lease in self.state.held[run.key] if lease.group == group])
        mine = self.room.fleet.domain.tolist()
        return sum(free for free, domain in zip(self.room.free, mine, strict=True) if domain in domains)

    def _standby(self, run: RunRow, group: int, pods: int) -> bool:
        """Start standbys of a group, in its domain; False, with nothing taken, where there is no room or money."""
        domains = self._domains([lease for lease in self.state.held[run.key] if lease.group == group])
        problem = asking(self.state, self.purses, [self._row_of_standby(run)], self.room.free_by_site())
        if len(domains) != 1 or not problem.candidates:
            return False
        shape = Shape(0, run.pod, pods)
        sites = problem.type_of(0).sites
        domain = next(iter(domains))
        chunks = self.room.settle(domain, sites, [(group, shape)], NO_LOAD)
        if chunks is None:
            return False
        piece = Piece(0, shape, ((group, shape),), sites, NO_LOAD, domain=domain, chunks=chunks)
        self.room.give_back(chunks, NO_LOAD)
        paid = Purses.after(problem, Draft()).pay(problem.candidates[0], demand(problem, self.room, [piece]))
        if paid is None:
            return False
        self._keep(problem, Draft([Start(0, 0)], [piece], {0: paid}))
        return True

    def _anew(self, run: RunRow, **asked: Any) -> RunRow:
        """A run that asks for something beside what it holds, alone, for what is left of its time limit."""
        end = limit_end(started(run, self.state.held[run.key]), run.limit)
        left = None if end is None else max(1, end - self.state.at)
        alone = {"time_limit": left, "enforced_limit": None, "gang": "", "gang_size": 0, "opportunistic": False}
        return msgspec.structs.replace(run, **alone, **asked).running()

    def _row_of_standby(self, run: RunRow) -> RunRow:
        """A standby as a run that waits: loans of spares count for no limit of loans."""
        one: dict[str, Any] = {"total": run.unit, "group": 0, "spares": 0}
        return self._anew(run, **one, **dict.fromkeys(("min_total", "max_total", "step", "max_borrow")))
