"""What `submit` accepts and warns of: names and times that lead nowhere as things stand."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from jobtree.api.scalars import OwnerPath, Time
from jobtree.world import needs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobtree.api import Budget, KindObject, Run
    from jobtree.world.intake import Intake

ANY: Final = "*"
LIKE: Final = 0.9
"""How alike two owners are if one may be a slip of the pen for the other, where the first may be meant too."""


def doubts(intake: Intake, items: Sequence[KindObject], at: int) -> list[str]:
    """Warnings for submitted ``items``. ``intake``: what is there, with the Nodes that are submitted."""
    from jobtree.api import Budget, Policy, Run

    policy = (intake.policy or Policy()).spec
    label = policy.topology.labels.flavor
    fleet = [node.metadata.labels for node in intake.nodes]
    runs = {(run.namespace, run.name) for run in intake.runs}
    runs |= {(item.namespace, item.name) for item in items if isinstance(item, Run)}
    owners = {str(budget.spec.owner) for budget in (*intake.budgets, *items) if isinstance(budget, Budget)}
    found = []
    strange: dict[str, list[str]] = {}
    for item in items:
        if isinstance(item, Run):
            flavor = item.spec.resources.gpu_type
            pod = needs.of_template(item, policy.resource_names)
            asked = {**(pod.node_selector if pod else {}), **item.spec.locality.selector}
            owner = str(item.spec.owner)
            if owner not in strange:
                strange[owner] = list(_owner(owner, owners))
            of_owner = [] if item.spec.funding.opportunistic else strange[owner]
            said = [*_upstreams(item, runs), *of_owner, *_nowhere(asked, flavor, fleet, label)]
        elif isinstance(item, Budget):
            said = [*_windows(item, at), *_selectors(item, fleet, label)]
        else:
            said = []
        found += [f"{item.subject}: {words}" for words in said]
    return found


def _upstreams(run: Run, runs: Collection[tuple[str, str]]) -> Iterator[str]:
    if run.spec.follow is None:
        return
    there = {name for namespace, name in runs if namespace == run.namespace and name != run.name}
    for name in run.spec.follow.after:
        if name not in there:
            yield (
                f"spec.follow.after names {name}, and there is no such run in namespace {run.namespace}: "
                f"it waits until there is one{_near(name, there)}"
            )


def _owner(owner: str, owners: Collection[str]) -> Iterator[str]:
    """An owner without a Budget: what its ancestors' pay for may be meant, unless the name is nearly another's."""
    if owner in owners:
        return
    above = [each for each in OwnerPath(owner).ancestors() if each in owners]
    near = _near(owner, owners, LIKE if above else 0.5)
    if near or not above:
        pays = f"only {above[0]} and its family may pay for it" if above else "nobody pays for it as things stand"
        yield f"spec.owner {owner} has no Budget: {pays}{near}"


def _nowhere(
    selector: Mapping[str, str], flavor: str | None, fleet: Sequence[Mapping[str, str]], label: str, field: str = ""
) -> Iterator[str]:
    """A selector that no node of the flavor matches, where there are nodes of that flavor."""
    asked = {key: value for key, value in selector.items() if value != ANY}
    if not asked:
        return
    there = [labels for labels in fleet if flavor is None or labels.get(label) == flavor]
    if not there or any(asked.items() <= labels.items() for labels in there):
        return
    said = ", ".join(f"{key}={value}" for key, value in sorted(asked.items()))
    yield f"{field or 'its selector'} {said} matches no node{f' of flavor {flavor}' if flavor else ''}"


def _selectors(budget: Budget, fleet: Sequence[Mapping[str, str]], label: str) -> Iterator[str]:
    for envelope in budget.spec.envelopes:
        field = f"spec.envelopes[{envelope.name}].selector"
        yield from _nowhere(envelope.selector, envelope.flavor, fleet, label, field)
    for use in budget.spec.use_caps:
        yield from _nowhere(use.selector or {}, use.flavor, fleet, label, f"spec.useCaps[{use.name}].selector")


def _windows(budget: Budget, at: int) -> Iterator[str]:
    for envelope in budget.spec.envelopes:
        if envelope.end is not None and envelope.end <= at:
            yield f"the window of spec.envelopes[{envelope.name}] was over at {Time(envelope.end)}: it pays for nothing"
    for use in budget.spec.use_caps:
        if use.end is not None and use.end <= at:
            yield f"the window of spec.useCaps[{use.name}] was over at {Time(use.end)}: it bounds nothing"


def _near(name: str, names: Collection[str], cutoff: float = 0.5) -> str:
    found = difflib.get_close_matches(name, sorted(names), n=1, cutoff=cutoff)
    return f"; did you mean {found[0]}?" if found else ""
