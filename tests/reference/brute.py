"""Brute force for tiny worlds: every choice of starts, domains, nodes and payers, one by one (spec §2 – §4).

It shares the facts and rules of a world with the model and none of its algebra: what the model says in rows is tried
out here. At most about four runs on three nodes.
"""

from collections.abc import Iterator
from itertools import product

from tests.reference.facts import Key, Node, Run, World, gang_of
from tests.reference.model import below
from tests.reference.rules import SPONSOR, Cap, Payment, caps, is_shut, looks_at, milli, payers, pays_on, time_left
from tests.reference.standing import OLD_LOAN, Part, honoured, level_of, parts_of, room_of, spent_of

Choice = tuple[Run, bool, tuple[int, ...]]
"""A run that starts: funded or not, with these groups."""
Load = tuple[int, ...]
"""Free GPUs, pods, milli-CPUs and bytes of every node, one after the other."""
Demand = tuple[tuple[int, bool, str, int], ...]
"""(index of the choice, Active?, node, GPUs), sorted: what is to be paid."""


def optimum(world: World) -> dict[str, int]:
    """Best values of the stages, as `Reference.optimum` gives them."""
    order: list[str] = [stage for stage in world.policy.stages if stage in ("starts", "opportunistic")]
    options = [list(_options(world, run)) for run in world.waiting]
    choices = [choice for choice in map(_starts, product(*options)) if _ties(world, choice)]
    first = order.index("starts") + 1
    best: tuple[int, ...] | None = None
    for choice in sorted(choices, key=lambda each: _score(order, each), reverse=True):
        score = _score(order, choice)
        if best is not None and score[:first] < best[:first]:
            break
        found = _cheapest(world, choice)
        if found is not None:
            overdraw, cost = found
            best = max(best or (), (*score[:first], -overdraw, *score[first:], -cost))
    assert best is not None, "spec §4: the empty plan is always feasible"
    names = [*order[:first], "overdraw", *order[first:], "payers"]
    return {name: abs(value) for name, value in zip(names, best, strict=True)}


def _options(world: World, run: Run) -> Iterator[Choice | None]:
    yield None
    for groups in run.widths:
        yield run, True, groups
        if run.row["opportunistic"] and "opportunistic" in world.policy.stages:
            yield run, False, groups


def _starts(options: tuple[Choice | None, ...]) -> list[Choice]:
    return [option for option in options if option is not None]


def _score(order: list[str], choice: list[Choice]) -> tuple[int, ...]:
    values = {"starts": 0, "opportunistic": 0}
    for run, funded, groups in choice:
        values["starts" if funded else "opportunistic"] += run.weight * sum(groups)
    return tuple(values[stage] for stage in order)


def _ties(world: World, choice: list[Choice]) -> bool:
    """Co-start gangs and quotas of trees."""
    starting = {run.key: sum(groups) for run, _, groups in choice}
    for run in world.waiting:
        gang = [other for other in gang_of(run, world.waiting) if other.key in starting]
        if run.row["gang"] and run.key in starting and len(gang) < run.row["gang_size"]:
            return False
    return all(_within_quota(world, root, starting) for root in world.runs.values())


def _within_quota(world: World, root: Run, starting: dict[Key, int]) -> bool:
    members = below(world, root.key)
    new = {key: gpus for key, gpus in starting.items() if key in members}
    held = [lease for lease in world.leases if lease.run in members and lease.active]
    period = int(world.policy.accounting_period)
    now = sum(lease.gpus for lease in held if lease.until is None)
    used = sum(lease.gpus * ((lease.until or world.at) - lease.start) for lease in held)
    for lease in held:
        limit = world.runs[lease.run].limit
        if lease.until is None:
            used += lease.gpus * min(period, period if limit is None else lease.start + limit - world.at)
    ahead = sum(gpus * min(period, world.runs[key].limit or period) for key, gpus in new.items())
    gpus, seconds = root.row["quota_gpus"], root.row["quota_gpu_milliseconds"]
    return not new or (
        (gpus is None or now + sum(new.values()) <= gpus) and (seconds is None or used + ahead <= seconds / 1000)
    )


def _cheapest(world: World, choice: list[Choice]) -> tuple[int, int] | None:
    """Least (overdraw, Σ milli-GPUs × rank) over all placements; None where none can be placed and paid."""
    money = _Money(world)
    costs = [money.least(choice, demand) for demand in sorted(_placements(world, choice))]
    return min((cost for cost in costs if cost is not None), default=None)


def _placements(world: World, choice: list[Choice]) -> set[Demand]:
    """All that could have to be paid, group by group, node by node."""
    nodes = list(world.nodes.values())
    states: set[tuple[Load, Demand]] = {
        (tuple(x for n in nodes for x in (n.gpus, max(0, n.pods), max(0, n.cpu), max(0, n.memory))), ())
    }
    for index, (run, _, groups) in enumerate(choice):
        domains = sorted({node.domain for node in nodes})
        options = (
            [(d,) * len(groups) for d in domains] if not run.row["spread"] else product(domains, repeat=len(groups))
        )
        after: set[tuple[Load, Demand]] = set()
        for option in options:
            mine = states
            for domain, size in zip(option, groups, strict=True):
                for active, gpus in ((True, size), (False, run.spare_gpus)):
                    mine = {
                        found
                        for load, demand in mine
                        for found in _put(nodes, domain, (index, run, active), gpus // run.pod, load, demand)
                    }
            after |= mine
        states = after
    return {demand for _, demand in states}


def _put(
    nodes: list[Node], domain: tuple[str, str, str], what: tuple[int, Run, bool], pods: int, load: Load, demand: Demand
) -> Iterator[tuple[Load, Demand]]:
    """Every way to put pods of one group and role on the nodes of a domain."""
    index, run, active = what
    if not pods:
        yield load, demand
        return
    here = [i for i, node in enumerate(nodes) if node.domain == domain and run.may_use(node)]
    for counts in product(*(range(min(pods, load[4 * i] // run.pod) + 1) for i in here)):
        if sum(counts) != pods:
            continue
        left = list(load)
        paid = {entry[:3]: entry[3] for entry in demand}
        for i, count in zip(here, counts, strict=True):
            bodies = (count if run.row["pod"] else min(count, 1)) if active else 0
            uses = (count * run.pod, bodies, bodies * run.row["pod_cpu_milli"], bodies * run.row["pod_memory"])
            for offset, use in enumerate(uses):
                left[4 * i + offset] -= use
            if count:
                key = (index, active, nodes[i].name)
                paid[key] = paid.get(key, 0) + count * run.pod
        if min(left) >= 0:
            yield tuple(left), tuple(sorted((*key, gpus) for key, gpus in paid.items()))


class _Money:
    """The caps of a world, and the claims on them that run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.book: list[Cap] = [cap for cap in caps(world) if cap.ahead or cap.limit < 1000 * _gpus(world)]
        self.book += [_paid_by(world, key) for key, each in world.envelopes.items() if each.row["scope"] == "subtree"]
        self.spent = spent_of(world, self.book)
        self.parts: list[Part] = parts_of(world, self.book, self.spent)
        self.before = honoured(self.parts, self.book, self.spent, [])
        names = {key: "/".join(key) for key in world.envelopes}
        subtree = {key for key, each in world.envelopes.items() if each.row["scope"] == "subtree"}
        own = {key: f"{'paid by' if key in subtree else 'GPUs of'} {name}" for key, name in names.items()}
        self.limits = {own[key]: 1000 * each.row["concurrency"] for key, each in world.envelopes.items()}
        self.held = dict.fromkeys(own.values(), 0)
        for part, paid in zip(self.parts, self.before, strict=True):
            self.held[own[part.payer]] += part.milli if paid else 0
        self.levels = range(OLD_LOAN + 1)

    def least(self, choice: list[Choice], demand: Demand) -> tuple[int, int] | None:
        """Every GPU of a funded start is paid by one envelope; state by state, cheapest first.

        A state: what starts take per level and cap, and what is left of their own limits.
        """
        world, empty = self.world, (0,) * (len(self.levels) * len(self.book))
        states: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {(empty, _own_limits(world, choice)): 0}
        for index, active, name, gpus in demand:
            run, funded, _ = choice[index]
            for _ in range(gpus if funded else 0):
                after: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
                for (taken, own), cost in states.items():
                    for key, rank in payers(world, run).items():
                        envelope = world.envelopes[key]
                        node, left = world.nodes[name], time_left(run, envelope)
                        if not pays_on(world, envelope, node) or is_shut(world, run, envelope, node):
                            continue
                        paid = Payment(run.owner, rank == SPONSOR, envelope, node, active, left)
                        uses = _own_uses(world, choice, index, paid, rank)
                        rest = tuple(has - use for has, use in zip(own, uses, strict=True))
                        state = self._taken(taken, paid, level_of(rank)), rest
                        more = cost + rank * milli(world, active=active)
                        if (
                            min(rest, default=0) >= 0
                            and self._thinkable(state[0])
                            and more < after.get(state, more + 1)
                        ):
                            after[state] = more
                states = after
        found = [
            (overdraw, cost) for (taken, _), cost in states.items() if (overdraw := self._overdraw(taken)) is not None
        ]
        return min(found, default=None)

    def _taken(self, taken: tuple[int, ...], paid: Payment, level: int) -> tuple[int, ...]:
        more = list(taken)
        for i, cap in enumerate(self.book):
            more[level * len(self.book) + i] += cap.weigh(paid)
        return tuple(more)

    def _thinkable(self, taken: tuple[int, ...]) -> bool:
        """Would it hold if nothing ran?"""
        each = len(self.book)
        return all(
            self.spent[i] + sum(taken[i::each]) <= cap.limit or not sum(taken[i::each])
            for i, cap in enumerate(self.book)
        )

    def _overdraw(self, taken: tuple[int, ...]) -> int | None:
        """Stage 4 of these starts; None where they are not admissible (spec §3.8)."""
        each = len(self.book)
        new = [(level, list(taken[level * each : (level + 1) * each])) for level in self.levels]
        for i, cap in enumerate(self.book):
            farthest = max((level for level, takes in new if takes[i]), default=None)
            if farthest is None:
                continue
            rooms = room_of(self.parts, self.before, i, cap, self.spent[i], self.world.changed)
            if sum(takes[i] for _, takes in new) > rooms[farthest]:
                return None
        after = honoured(self.parts, self.book, self.spent, new)
        for i, cap in enumerate(self.book):
            mine = sum(takes[i] for _, takes in new)
            held = sum(part.takes[i] for part, stays in zip(self.parts, after, strict=True) if stays)
            if mine and not cap.ahead and self.spent[i] + held + mine > cap.limit:
                return None  # the pass leaves one of them unfunded
        was_and_stays = zip(self.parts, self.before, after, strict=True)
        if any(was and not stays and part.is_firm(self.world.changed) for part, was, stays in was_and_stays):
            return None
        over = (
            max(0, sum(takes[i] for _, takes in new) + self.held[cap.name] - self.limits[cap.name])
            for i, cap in enumerate(self.book)
            if cap.name in self.held
        )
        return int(sum(over))


def _paid_by(world: World, key: Key) -> Cap:
    """What an envelope pays itself, as a cap that never binds."""

    def now(paid: Payment) -> int:
        return milli(world, active=paid.active) if paid.envelope.key == key else 0

    return Cap(f"paid by {'/'.join(key)}", 1 << 60, now, False, lambda *_: 0, False, lambda _: 0)


def _gpus(world: World) -> int:
    """All that run, and all that may start: a cap on as many is never full, and need not be looked at."""
    running = sum(lease.gpus for lease in world.leases if lease.until is None)
    asked = sum(sum(run.widths[-1]) + run.spare_gpus * len(run.widths[-1]) for run in world.waiting)
    return running + min(asked, sum(node.gpus for node in world.nodes.values()))


def _own_limits(world: World, choice: list[Choice]) -> tuple[int, ...]:
    """Per start: milli-GPUs at each envelope and use cap (``perRun``), and Active GPUs that it may borrow."""
    most = [each.row["per_run_gpus"] for each in world.envelopes.values()]
    most += [use.row["per_run_gpus"] for use in world.uses]
    each_run = [1 << 40 if gpus is None else 1000 * gpus for gpus in most]
    return tuple(
        limit
        for run, _, _ in choice
        for limit in (*each_run, 1 << 40 if run.row["max_borrow"] is None else run.row["max_borrow"])
    )


def _own_uses(world: World, choice: list[Choice], index: int, paid: Payment, rank: int) -> list[int]:
    """The same of one payment; where nothing bounds it nothing is counted."""
    found = []
    for other, (run, _, _) in enumerate(choice):
        found += [
            milli(world, active=paid.active)
            if other == index and key == paid.envelope.key and each.row["per_run_gpus"] is not None
            else 0
            for key, each in world.envelopes.items()
        ]
        found += [
            milli(world, active=paid.active)
            if other == index
            and use.row["per_run_gpus"] is not None
            and looks_at(world, use, run.owner)
            and use.matches(paid.node)
            else 0
            for use in world.uses
        ]
        lent = other == index and rank == SPONSOR and paid.active
        found.append(1 if lent and run.row["max_borrow"] is not None else 0)
    return found
