"""The plan as one readable MILP, rule by rule as the spec has them, without any aggregation (spec §2, §3, §4).

One binary per run and width; every group in one domain; every pod on one node; every GPU of a start paid by one
envelope. Stages 3, 4 (overdraw), 6 and 7 are solved one after the other, each held while the next is solved. Slow and
plain: it is what the planner's answers are held against, and shares no code with planner or policies.
"""

from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import pulp

from tests.reference.facts import Key, Node, Run, World, gang_of
from tests.reference.rules import SPONSOR, Cap, Payment, caps, is_shut, looks_at, milli, payers, pays_on, time_left
from tests.reference.standing import Part, honoured, level_of, parts_of, room_of, spent_of

pulp.set_v4_migration_warnings(False)  # version 4 is shut out: it needs a newer Python than this project

Expression = Any
"""A pulp variable or linear expression."""


@dataclass
class Way:
    """One way for a run to start: funded, or unfunded by its own choice (spec §3.7).

    ``at``: per width, 1 if it starts so wide; ``on``: GPUs by (role is Active, node); ``pods``: by node; ``pays``:
    (one GPU of it, rank of the payer, GPUs).
    """

    run: Run
    funded: bool
    at: list[Expression]
    on: dict[tuple[bool, str], list[Expression]] = field(default_factory=dict)
    pods: dict[str, list[Expression]] = field(default_factory=dict)
    pays: list[tuple[Payment, int, Expression]] = field(default_factory=list)

    @property
    def starts(self) -> Expression:
        """1 if it starts at all."""
        return pulp.lpSum(self.at)

    @property
    def active(self) -> Expression:
        """Active GPUs."""
        return pulp.lpSum(sum(groups) * at for groups, at in zip(self.run.widths, self.at, strict=True))


class _Paid(NamedTuple):
    """A payment: what one GPU of it is, where it stands in the pass, and GPUs."""

    one: Payment
    level: int
    gpus: Expression


class Reference:
    """The model of a world; ``optimum`` solves it."""

    def __init__(self, world: World, *, passes: bool = True) -> None:
        """``passes``: the pass over all claims with the starts in it has the last word (§3.8)."""
        self.world, self.passes = world, passes
        self.problem = pulp.LpProblem("plan", pulp.LpMaximize)
        self._names = count()
        fills = "opportunistic" in world.policy.stages
        self.ways = [self._way(run, funded=True) for run in world.waiting]
        self.ways += [self._way(run, funded=False) for run in world.waiting if run.row["opportunistic"] and fills]
        self.overdraw: Expression = 0
        self._nodes()
        self._funding()
        self._runs()

    def optimum(self) -> dict[str, int]:
        """Best values of starts, overdraw, opportunistic and payers, each under the optimum of those before it.

        Spec §4: (3) Σ over started runs of Active GPUs × weight; (4) least overdraw; (6) the same as 3 for
        unfunded starts; (7) least Σ milli-GPUs × rank of the payer. Policy may reorder 3 and 6, and drop 6; 4 comes
        right after 3.
        """
        values: dict[str, int] = {}
        for stage in self.world.policy.stages:
            if stage in ("starts", "opportunistic"):
                mine = [way for way in self.ways if way.funded == (stage == "starts")]
                values[stage] = self._solve(pulp.lpSum(way.run.weight * way.active for way in mine))
            if stage == "starts":
                values["overdraw"] = -self._solve(-1000 * self.overdraw)
        paid = [(payment, rank, gpus) for way in self.ways for payment, rank, gpus in way.pays]
        values["payers"] = -self._solve(
            pulp.lpSum(-rank * milli(self.world, active=payment.active) * gpus for payment, rank, gpus in paid)
        )
        return values

    def _solve(self, objective: Expression) -> int:
        """Maximise and hold."""
        self.problem.setObjective(objective)
        solver = pulp.HiGHS(msg=False, gapRel=0, threads=1, presolve="off")  # as planner.solver.highs has it, and why
        status = self.problem.solve(solver)
        assert pulp.LpStatus[status] == "Optimal", "spec §4: the empty plan is always feasible"
        best = round(pulp.value(objective) or 0)
        self.problem.addConstraint(objective >= best - 0.5)
        return best

    def _integer(self, most: int | None = None) -> Expression:
        return pulp.LpVariable(f"x{next(self._names)}", 0, most, pulp.LpInteger)

    def _binary(self) -> Expression:
        return self._integer(1)

    def _add(self, constraint: Expression) -> None:
        if not isinstance(constraint, bool):  # an empty sum compares to a plain truth
            self.problem.addConstraint(constraint)

    # --- spec §2 Lowering

    def _way(self, run: Run, *, funded: bool) -> Way:
        """Groups in domains, pods on nodes, for whatever width is chosen; no width = it does not start."""
        way = Way(run, funded, [self._binary() for _ in run.widths])
        self._add(way.starts <= 1)
        domains = sorted({node.domain for node in self.world.nodes.values()})
        together = {domain: self._binary() for domain in domains}
        for group, size in enumerate(run.widths[-1]):
            # "width = min … totalGPUs": a group is there from the first width that has it on
            there = pulp.lpSum(at for groups, at in zip(run.widths, way.at, strict=True) if len(groups) > group)
            lies = {domain: self._binary() for domain in domains}
            # "each group lies in one domain"
            self._add(pulp.lpSum(lies.values()) == there)
            for domain in domains:
                nodes = [node for node in self.world.nodes.values() if node.domain == domain]
                active = [self._pods(way, node, True) for node in nodes]
                spare = [self._pods(way, node, False) for node in nodes]
                # "every pod is that size and lies on one node"; "spares lie in their group's domain"
                self._add(run.pod * pulp.lpSum(active) == size * lies[domain])
                self._add(run.pod * pulp.lpSum(spare) == run.spare_gpus * lies[domain])
                self._load(way, nodes, active)
                # with `allowCrossGroupSpread: false` "all groups in one domain"
                if not run.row["spread"]:
                    self._add(lies[domain] <= together[domain])
        self._add(pulp.lpSum(together.values()) <= 1)
        return way

    def _pods(self, way: Way, node: Node, active: bool) -> Expression:
        """Pods of one group and role on a node (single GPUs where pods have no size): none where it may not be."""
        most = node.gpus // way.run.pod if way.run.may_use(node) else 0
        pods = self._integer(most)
        way.on.setdefault((active, node.name), []).append(way.run.pod * pods)
        return pods

    # --- spec §2 Capacity

    def _load(self, way: Way, nodes: list[Node], active: list[Expression]) -> None:
        """Per Active pod "CPU, memory and pod count of a node", for §7 "a spare is held slots, without a pod".

        "Without `gpusPerPod` a pod is one (group, node) chunk".
        """
        for node, there in zip(nodes, active, strict=True):
            pods = there
            if not way.run.row["pod"]:
                pods = self._binary()
                self._add(there <= node.gpus * pods)
            way.pods.setdefault(node.name, []).append(pods)

    def _nodes(self) -> None:
        """Spares hold slots too: "a slot holds at most one open Active lease"; loads fit what a node has."""
        for node in self.world.nodes.values():
            gpus = [gpus for way in self.ways for role in (True, False) for gpus in way.on.get((role, node.name), [])]
            self._add(pulp.lpSum(gpus) <= node.gpus)
            pods = [(way.run.row, n) for way in self.ways for n in way.pods.get(node.name, [])]
            self._add(pulp.lpSum(n for _, n in pods) <= max(0, node.pods))
            self._add(pulp.lpSum(row["pod_cpu_milli"] * n for row, n in pods) <= max(0, node.cpu))
            gib = 1 << 30
            self._add(pulp.lpSum(row["pod_memory"] / gib * n for row, n in pods) <= max(0, node.memory) / gib)

    # --- spec §3 Funding

    def _funding(self) -> None:
        """Payment of every (run, role, place) by every envelope that may; a place: nodes that no payer tells apart."""
        world = self.world
        places: dict[tuple[object, ...], list[Node]] = {}
        for node in world.nodes.values():
            seen = [(pays_on(world, each, node), each.matches(node)) for each in world.envelopes.values()]
            seen += [(use.matches(node), True) for use in world.uses]
            places.setdefault((node.flavor, *seen), []).append(node)
        for way in self.ways:
            if way.funded:
                for nodes in places.values():
                    for active in (True, False):
                        self._paid(way, nodes, active)
        self._caps([_Paid(each, level_of(rank), gpus) for way in self.ways for each, rank, gpus in way.pays])
        for way in self.ways:
            self._limits_of_run(way)

    def _caps(self, payments: list[_Paid]) -> None:
        """§3.4 "concurrency, hours, credits, aggregates, subtree scopes, lending caps, use caps"; look-ahead; §3.8."""
        book = caps(self.world)
        spent = spent_of(self.world, book)
        parts = parts_of(self.world, book, spent)
        before = honoured(parts, book, spent, [])
        stays = [self._binary() if part.can else 0 for part in parts]
        for number, cap in enumerate(book):
            self._room(cap, room_of(parts, before, number, cap, spent[number], self.world.changed), payments)
            if self.passes and not cap.ahead:  # "the pass with the starts in it binds too"
                new = pulp.lpSum(cap.weigh(paid.one) / 1000 * paid.gpus for paid in payments)
                held = pulp.lpSum(part.takes[number] / 1000 * stay for part, stay in zip(parts, stays, strict=True))
                self._add(new + held <= (cap.limit - spent[number]) / 1000)
        if self.passes:
            for part, was, stay in zip(parts, before, stays, strict=True):
                if was and part.is_firm(self.world.changed):
                    self._add(stay >= 1)
            self._pass(parts, stays, payments)
        self._overdraw(parts, before, payments)

    def _room(self, cap: Cap, rooms: list[int], payments: list[_Paid]) -> None:
        """§3.8 "with K the farthest level among the starts that touch it": where one stands so far or farther, all that
        start have so much room.
        """
        scale = 3_600_000 if cap.ahead else 1000
        new = pulp.lpSum(cap.weigh(paid.one) / scale * paid.gpus for paid in payments)
        most = max(0, *rooms) / scale
        for level, room in enumerate(rooms):
            far = [paid for paid in payments if paid.level >= level and cap.weigh(paid.one)]
            if far:
                some = self._binary()
                self._add(pulp.lpSum(cap.weigh(paid.one) / scale * paid.gpus for paid in far) <= most * some)
                self._add(new <= most - (most - max(0, room) / scale) * some)

    def _overdraw(self, parts: list[Part], before: list[bool], payments: list[_Paid]) -> None:
        """§3.8 "Σ over envelopes of the milli-GPUs by which what it pays itself, the starts and what was funded without
        them, exceeds its `concurrency`", in GPUs.
        """
        for key, envelope in self.world.envelopes.items():
            over = pulp.LpVariable(f"over{next(self._names)}", 0)
            mine = [paid for paid in payments if paid.one.envelope.key == key]
            new = pulp.lpSum(milli(self.world, active=paid.one.active) / 1000 * paid.gpus for paid in mine)
            held = sum(part.milli for part, was in zip(parts, before, strict=True) if was and part.payer == key)
            self._add(new + held / 1000 - over <= envelope.row["concurrency"])
            self.overdraw += over

    def _pass(self, parts: list[Part], stays: list[Expression], payments: list[_Paid]) -> None:
        """§3.5 "a claim is funded iff every cap it touches still holds with it": not, only if one would not hold."""
        book = caps(self.world)
        spent = spent_of(self.world, book)
        for i, part in enumerate(parts):
            if not part.can:
                continue
            reasons = []
            for number, cap in enumerate(book):
                if part.takes[number] and not cap.ahead:
                    first = [paid for paid in payments if part.comes_after(paid.level)]
                    before = pulp.lpSum(cap.weigh(paid.one) / 1000 * paid.gpus for paid in first)
                    before += pulp.lpSum(parts[j].takes[number] / 1000 * stays[j] for j in range(i))
                    full = self._binary()
                    most = cap.limit - spent[number] - part.takes[number]
                    self._add(before >= (most + 1) / 1000 * full)
                    reasons.append(full)
            if part.follows:
                self._add(stays[i] <= stays[i - 1])
                reasons.append(1 - stays[i - 1])
            self._add(1 - stays[i] <= pulp.lpSum(reasons))

    def _paid(self, way: Way, nodes: list[Node], active: bool) -> None:
        """§3 "Each leased GPU is paid by exactly one envelope"; §3.7 "no run starts partly unfunded"."""
        columns = []
        for key, rank in payers(self.world, way.run).items():
            envelope = self.world.envelopes[key]
            if pays_on(self.world, envelope, nodes[0]) and not is_shut(self.world, way.run, envelope, nodes[0]):
                left = time_left(way.run, envelope)
                columns.append(self._integer())
                one = Payment(way.run.owner, rank == SPONSOR, envelope, nodes[0], active, left)
                way.pays.append((one, rank, columns[-1]))
        gpus = [each for node in nodes for each in way.on.get((active, node.name), [])]
        self._add(pulp.lpSum(columns) == pulp.lpSum(gpus))

    def _limits_of_run(self, way: Way) -> None:
        """§3.4 "`perRun`" of envelopes and use caps, "`maxBorrowGPUs`" (Active; a spare × discount at perRun)."""
        for key in sorted({paid.envelope.key for paid, _, _ in way.pays}):
            most = self.world.envelopes[key].row["per_run_gpus"]
            mine = [(paid, gpus) for paid, _, gpus in way.pays if paid.envelope.key == key]
            if most is not None:
                self._add(pulp.lpSum(milli(self.world, active=p.active) * gpus for p, gpus in mine) <= 1000 * most)
        for use in self.world.uses:
            most = use.row["per_run_gpus"]
            if most is not None and looks_at(self.world, use, way.run.owner):
                there = [(paid, gpus) for paid, _, gpus in way.pays if use.matches(paid.node)]
                self._add(pulp.lpSum(milli(self.world, active=p.active) * gpus for p, gpus in there) <= 1000 * most)
        most = way.run.row["max_borrow"]
        if most is not None:
            self._add(pulp.lpSum(gpus for paid, rank, gpus in way.pays if rank == SPONSOR and paid.active) <= most)

    # --- spec §4 Hard constraints: trees, co-start gangs

    def _runs(self) -> None:
        by_run: dict[Key, list[Way]] = {}
        for way in self.ways:
            by_run.setdefault(way.run.key, []).append(way)
        for run in self.world.waiting:
            starts = pulp.lpSum(way.starts for way in by_run[run.key])
            self._add(starts <= 1)
            # §1 gang "these Runs start in the same cycle or not at all"
            if run.row["gang"]:
                gang = [way.starts for other in gang_of(run, self.world.waiting) for way in by_run[other.key]]
                self._add(pulp.lpSum(gang) >= run.row["gang_size"] * starts)
        for root in self.world.runs.values():
            self._quota(root, [way for key in below(self.world, root.key) for way in by_run.get(key, [])])

    def _quota(self, root: Run, ways: list[Way]) -> None:
        """§1 `quota` "bounds this run and everything below it"; §3.4 "Active GPUs; quota funded or not", ahead by P."""
        world, members = self.world, below(self.world, root.key)
        period = int(world.policy.accounting_period)
        held = [lease for lease in world.leases if lease.run in members and lease.active]
        if root.row["quota_gpus"] is not None:
            now = sum(lease.gpus for lease in held if lease.until is None)
            self._add(pulp.lpSum(way.active for way in ways) <= max(0, root.row["quota_gpus"] - now))
        if root.row["quota_gpu_milliseconds"] is not None:
            past = sum(lease.gpus * ((lease.until or world.at) - lease.start) for lease in held)
            for lease in held:
                limit = world.runs[lease.run].limit
                if lease.until is None:
                    past += lease.gpus * min(period, period if limit is None else lease.start + limit - world.at)
            ahead = [
                (min(period, period if way.run.limit is None else way.run.limit) / 3600, way.active) for way in ways
            ]
            left = max(0, root.row["quota_gpu_milliseconds"] / 1000 - past) / 3600
            self._add(pulp.lpSum(hours * active for hours, active in ahead) <= left)


def below(world: World, root: Key) -> set[Key]:
    """A run and everything below it in the tree (spec §1 `parent`, within a namespace)."""
    children = [run.key for run in world.runs.values() if run.row["parent"] and (run.key[0], run.row["parent"]) == root]
    return {root}.union(*(below(world, child) for child in children))
