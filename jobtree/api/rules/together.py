"""The rules over several objects: unique names, no cycles among Runs or among owners, no deep trees (spec §1)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from jobtree.api.kinds.base import MAX_DEPTH
from jobtree.api.kinds.budget import Budget
from jobtree.api.kinds.run import Run
from jobtree.api.rules.decode import KindObject
from jobtree.api.values.counted import counted, named
from jobtree.api.values.errors import Refusal
from jobtree.api.values.scalars import OwnerPath

Text = TypeVar("Text", bound=str)


def set_problems(items: Iterable[KindObject]) -> list[Refusal]:
    """Every fault of the set, in a fixed order. `members` of each names the objects in it, `Run default/a`."""
    everything = list(items)
    runs = [item for item in everything if isinstance(item, Run)]
    budgets = [item for item in everything if isinstance(item, Budget)]
    return [
        *_duplicates(everything),
        *_index_names(runs),
        *_run_cycles("spec.follow.after", "follow", {_key(run): _upstreams(run) for run in runs if run.spec.follow}),
        *_run_cycles("spec.parent", "parent", {_key(run): _parent(run) for run in runs if run.spec.parent}),
        *_deep_trees(runs),
        *_budget_cycles(budgets),
    ]


def parents_of_owners(budgets: Iterable[Budget]) -> dict[OwnerPath, tuple[OwnerPath, ...]]:
    """The parents of every owner that a Budget names, as its owner or as a parent (spec §1, Budget).

    An owner's parents are those that its Budgets list, in the order of the Budgets' names; where none of them lists
    any, the longest proper prefix that itself has a Budget with an envelope.
    """
    listed: dict[OwnerPath, dict[OwnerPath, None] | None] = {}
    mentioned: dict[OwnerPath, None] = {}
    holders = set()
    for budget in sorted(budgets, key=lambda each: each.name):
        spec = budget.spec
        before = listed.get(spec.owner)
        listed[spec.owner] = before if spec.parents is None else {**(before or {}), **dict.fromkeys(spec.parents)}
        mentioned |= dict.fromkeys((spec.owner, *(spec.parents or ())))
        if spec.envelopes:
            holders.add(spec.owner)
    return {owner: _parents_of(owner, listed.get(owner), holders) for owner in sorted(mentioned)}


def _parents_of(owner: OwnerPath, listed: Iterable[OwnerPath] | None, holders: set[OwnerPath]) -> tuple[OwnerPath, ...]:
    """Parents of any owner. ``listed``: those that its Budgets list, or None; ``holders``: owners with an envelope."""
    if listed is not None:
        return tuple(listed)
    return next(((prefix,) for prefix in owner.ancestors() if prefix in holders), ())


class Circle(NamedTuple, Generic[Text]):
    """What leads back to itself: every member to every other; ``cycle``: the shortest one from the smallest."""

    cycle: list[Text]
    members: list[Text]


def find_circles(edges: Mapping[Text, Sequence[Text]]) -> list[Circle[Text]]:
    """The strongly connected parts in which there is a cycle, in order; in time linear in the edges, but for sorting.

    R. Tarjan, Depth-first search and linear graph algorithms, SIAM J. Comput. 1 (1972).
    """
    number: dict[Text, int] = {}
    low: dict[Text, int] = {}
    path: list[Text] = []  # those whose part is not complete yet
    waiting: set[Text] = set()
    found = []
    for root in sorted(edges):
        stack = [(root, iter(edges[root]))] if root not in number else []
        while stack:
            node, targets = stack[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                path.append(node)
                waiting.add(node)
            target = next(targets, None)
            if target is None:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[node])
                if low[node] == number[node]:
                    part = _taken(path, node)
                    waiting.difference_update(part)
                    if len(part) > 1 or node in edges[node]:
                        found.append(Circle(_shortest(edges, min(part), set(part)), sorted(part)))
            elif target in waiting:
                low[node] = min(low[node], number[target])
            elif target not in number and target in edges:
                stack.append((target, iter(edges[target])))
    return sorted(found)


def _taken(path: list[Text], first: Text) -> list[Text]:
    """Takes the end of a path off it, from ``first`` on."""
    part = [path.pop()]
    while part[-1] != first:
        part.append(path.pop())
    return part


def _shortest(edges: Mapping[Text, Sequence[Text]], start: Text, part: set[Text]) -> list[Text]:
    """The shortest way from ``start`` back to it within its part: breadth first, over sorted names."""
    came: dict[Text, Text] = {}
    edge = [start]
    while start not in came:
        before, edge = edge, []
        for node in before:
            for target in sorted(edges[node]):
                if target in part and target not in came:
                    came[target] = node
                    edge.append(target)
    way = [came[start]]
    while way[-1] != start:
        way.append(came[way[-1]])
    return way[::-1]


def _key(run: Run) -> str:
    return f"{run.namespace}/{run.name}"


def _upstreams(run: Run) -> list[str]:
    return [f"{run.namespace}/{name}" for name in run.spec.follow.after] if run.spec.follow else []


def _parent(run: Run) -> list[str]:
    return [f"{run.namespace}/{run.spec.parent}"] if run.spec.parent else []


def _duplicates(items: list[KindObject]) -> list[Refusal]:
    subjects = [item.subject for item in items]
    if len(set(subjects)) == len(subjects):
        return []
    allowed = "each kind, namespace and name once"
    return [
        Refusal(f"there are {count} of them; allowed is {allowed}", subject=name, given=str(count), allowed=allowed)
        for name, count in sorted(Counter(subjects).items())
        if count > 1
    ]


def _index_names(runs: list[Run]) -> list[Refusal]:
    """Runs called as an index of an array is: whichever of the two is the younger."""
    arrays = {_key(run): run for run in runs if run.spec.array is not None}
    problems = []
    for run in runs if arrays else ():
        stem, dash, number = run.name.rpartition("-")
        array = arrays.get(f"{run.namespace}/{stem}") if dash and number.isascii() and number.isdecimal() else None
        is_plain = number == "0" or not number.startswith("0")
        if array is None or array.spec.array is None or not is_plain or not array.spec.array.has(int(number)):
            continue
        if _age(run) < _age(array):
            refused, field, given = array, "spec.array", f"index {number} is called {run.name}"
            problem, allowed = (
                f"{given}, and there is a Run of that name",
                "an array whose indices have names of their own",
            )
        else:
            refused, field, given = run, "metadata.name", run.name
            problem, allowed = f"{given} is index {number} of the array {array.name}", "a name that is no index's"
        subject = refused.subject
        said = f"{field}: {problem}; allowed is {allowed}"
        problems.append(Refusal(said, subject=subject, field=field, given=given, allowed=allowed, members=(subject,)))
    return problems


def _age(run: Run) -> tuple[bool, int, bool]:
    """Sorts the older first; one that has not been made yet is the youngest, and an array older than its like."""
    created = run.metadata.creation_timestamp
    return created is None, int(created or 0), run.spec.array is None


def _run_cycles(field: str, relation: str, edges: Mapping[str, list[str]]) -> list[Refusal]:
    problems = []
    for circle in find_circles(edges):
        names = [key.partition("/")[2] for key in circle.cycle]
        spelled = _spelled(names, len(circle.members), "runs")
        members = tuple(f"Run {key}" for key in circle.members)
        allowed = f"{relation} without a cycle"
        problem = f"{field} makes a cycle: {spelled}; allowed is {allowed}"
        problems.append(
            Refusal(problem, subject=members[0], field=field, given=spelled, allowed=allowed, members=members)
        )
    return problems


def _spelled(cycle: Sequence[str], members: int, noun: str) -> str:
    """A cycle in words, and how many lie in it and in others that meet it."""
    more = f", one of several in which {members} {noun} lie" if members > len(cycle) else ""
    return f"{named(cycle, ' → ')} → {cycle[0]}{more}"


def _deep_trees(runs: list[Run]) -> list[Refusal]:
    """One for each tree that is too deep, about all of its runs that are; trees below a cycle are not looked at."""
    parents = {_key(run): _parent(run) for run in runs}
    places: dict[str, tuple[str, int]] = {}
    deep: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for key in parents:
        path = [key]
        while path[-1] not in places and (up := parents[path[-1]]) and up[0] in parents and len(path) <= len(parents):
            path.append(up[0])
        root, depth = places.get(path[-1], (path[-1], 1))
        if len(path) > len(parents) or not root:
            root = ""  # it leads into a cycle
        for number, each in enumerate(reversed(path)):
            places.setdefault(each, (root, depth + number))
    for key, (root, depth) in places.items():
        if root and depth > MAX_DEPTH:
            deep[root].append((depth, key))
    problems = []
    for root, found in sorted(deep.items()):
        keys = [key for _, key in sorted(found)]
        names = named([key.partition("/")[2] for key in keys])
        allowed = f"a tree in which no run lies deeper than {MAX_DEPTH}"
        given = f"{counted(len(keys), 'run lies', 'runs lie')} deeper than {MAX_DEPTH} in the tree of {root}: {names}"
        members = tuple(f"Run {key}" for key in keys)
        problem = f"spec.parent: {given}; allowed is {allowed}"
        problems.append(
            Refusal(problem, subject=members[0], field="spec.parent", given=given, allowed=allowed, members=members)
        )
    return problems


def _budget_cycles(budgets: list[Budget]) -> list[Refusal]:
    names: dict[str, list[str]] = defaultdict(list)
    for budget in budgets:
        names[budget.spec.owner].append(budget.name)
    problems = []
    for circle in find_circles(parents_of_owners(budgets)):
        spelled = _spelled(circle.cycle, len(circle.members), "owners")
        members = tuple(f"Budget {name}" for owner in circle.members for name in sorted(names[owner]))
        allowed = "parents without a cycle"
        problem = f"spec.parents makes a cycle: {spelled}; allowed is {allowed}"
        problems.append(
            Refusal(problem, subject=members[0], field="spec.parents", given=spelled, allowed=allowed, members=members)
        )
    return problems
