"""The rules over several objects: unique names, and no cycles among Runs or among owners (spec §1)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from jobtree.api.budget import Budget
from jobtree.api.decode import KindObject
from jobtree.api.errors import Refusal
from jobtree.api.run import Run
from jobtree.api.scalars import OwnerPath

Text = TypeVar("Text", bound=str)


def set_problems(items: Iterable[KindObject]) -> list[Refusal]:
    """Every fault of the set, in a fixed order. `members` of each names the objects in it, `Run default/a`."""
    everything = list(items)
    runs = [item for item in everything if isinstance(item, Run)]
    budgets = [item for item in everything if isinstance(item, Budget)]
    return [
        *_duplicates(everything),
        *_run_cycles("spec.follow.after", "follow", {_key(run): _upstreams(run) for run in runs if run.spec.follow}),
        *_run_cycles("spec.parent", "parent", {_key(run): _parent(run) for run in runs if run.spec.parent}),
        *_budget_cycles(budgets),
    ]


def parents_of_owners(budgets: Iterable[Budget]) -> dict[OwnerPath, tuple[OwnerPath, ...]]:
    """The parents of every owner that a Budget names, as its owner or as a parent (spec §1, Budget).

    An owner's parents are those that its Budgets list, in the order of the Budgets' names; where none of them lists
    any, the longest proper prefix that itself has a Budget.
    """
    listed: dict[OwnerPath, dict[OwnerPath, None] | None] = {}
    mentioned: dict[OwnerPath, None] = {}
    for budget in sorted(budgets, key=lambda each: each.name):
        spec = budget.spec
        before = listed.get(spec.owner)
        listed[spec.owner] = before if spec.parents is None else {**(before or {}), **dict.fromkeys(spec.parents)}
        mentioned |= dict.fromkeys((spec.owner, *(spec.parents or ())))
    return {owner: parents_of(owner, listed) for owner in sorted(mentioned)}


def parents_of(owner: OwnerPath, listed: Mapping[OwnerPath, Iterable[OwnerPath] | None]) -> tuple[OwnerPath, ...]:
    """Parents of any owner; `listed` has every owner with a Budget and the parents its Budgets list, or None."""
    given = listed.get(owner)
    if given is not None:
        return tuple(given)
    return next(((prefix,) for prefix in owner.ancestors() if prefix in listed), ())


def find_cycles(edges: Mapping[Text, Sequence[Text]]) -> list[list[Text]]:
    """A cycle for every edge that closes one, each from its smallest name: `[a, b]` for a → b → a.

    Depth first over sorted names, so the answer does not depend on any order of input.
    """
    done: set[Text] = set()
    found: dict[tuple[Text, ...], None] = {}
    for root in sorted(edges):
        if root in done:
            continue
        path, depth = [root], {root: 0}
        stack = [iter(sorted(edges[root]))]
        while stack:
            target = next(stack[-1], None)
            if target is None:
                stack.pop()
                last = path.pop()
                del depth[last]
                done.add(last)
            elif target in depth:
                found[_from_smallest(path[depth[target] :])] = None
            elif target not in done and target in edges:
                depth[target] = len(path)
                path.append(target)
                stack.append(iter(sorted(edges[target])))
    return [list(cycle) for cycle in sorted(found)]


def _from_smallest(cycle: list[Text]) -> tuple[Text, ...]:
    start = cycle.index(min(cycle))
    return (*cycle[start:], *cycle[:start])


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


def _run_cycles(field: str, relation: str, edges: Mapping[str, list[str]]) -> list[Refusal]:
    problems = []
    for cycle in find_cycles(edges):
        names = [key.partition("/")[2] for key in cycle]
        spelled = " → ".join([*names, names[0]])
        members = tuple(f"Run {key}" for key in cycle)
        allowed = f"{relation} without a cycle"
        problem = f"{field} makes a cycle: {spelled}; allowed is {allowed}"
        problems.append(
            Refusal(problem, subject=members[0], field=field, given=spelled, allowed=allowed, members=members)
        )
    return problems


def _budget_cycles(budgets: list[Budget]) -> list[Refusal]:
    names: dict[str, list[str]] = defaultdict(list)
    for budget in budgets:
        names[budget.spec.owner].append(budget.name)
    problems = []
    for cycle in find_cycles(parents_of_owners(budgets)):
        spelled = " → ".join([*cycle, cycle[0]])
        members = tuple(f"Budget {name}" for owner in cycle for name in sorted(names[owner]))
        allowed = "parents without a cycle"
        problem = f"spec.parents makes a cycle: {spelled}; allowed is {allowed}"
        problems.append(
            Refusal(problem, subject=members[0], field="spec.parents", given=spelled, allowed=allowed, members=members)
        )
    return problems
