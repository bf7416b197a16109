"""What is accepted and warned of: names and times that lead nowhere as things stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from jobtree.api.values.counted import named
from jobtree.api.values.nearest import did_you_mean
from jobtree.api.values.scalars import OwnerPath, Time
from jobtree.world.naming import needs

if TYPE_CHECKING:
    from jobtree.api import Budget, KindObject, Run
    from jobtree.world.reading.intake import Intake

ANY: Final = "*"
LIKE: Final = 0.9
"""How alike two owners are if one may be a slip of the pen for the other, where the first may be meant too."""
HINTS: Final = 10
"""Names for which one that is like them is looked for: each is compared with all that there are."""


class _Hints:
    """Names that may have been meant, of the first few that are asked for."""

    def __init__(self) -> None:
        self._left = HINTS

    def of(self, name: str, names: Collection[str], cutoff: float = 0.5) -> str:
        """The end of a sentence that asks for it; may be empty."""
        self._left -= 1
        return did_you_mean(name, names, cutoff) if self._left >= 0 else ""


class _Fleet:
    """Nodes by their labels, so that a selector costs no walk over all of them. ``flavor``: that label's key."""

    def __init__(self, nodes: Iterable[Mapping[str, str]], flavor: str) -> None:
        self._labels = [dict(labels) for labels in nodes]
        self._flavor = flavor
        self._with: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place, labels in enumerate(self._labels):
            for item in labels.items():
                self._with[item].append(place)

    def has(self, flavor: str | None) -> bool:
        """Whether there are nodes of the flavor; None: any."""
        return bool(self._labels if flavor is None else self._with.get((self._flavor, flavor)))

    def matches(self, asked: Mapping[str, str], flavor: str | None) -> bool:
        """Whether a node of the flavor has these labels, of which there is one at least."""
        wanted = {*asked.items(), *({} if flavor is None else {self._flavor: flavor}).items()}
        fewest = min((self._with.get(item, []) for item in wanted), key=len)
        return any(wanted <= self._labels[place].items() for place in fewest)


def doubts(intake: Intake, items: Sequence[KindObject], at: int) -> list[str]:
    """Warnings for submitted ``items``. ``intake``: what is there, with the Nodes that are submitted."""
    from jobtree.api import Budget, Policy, Run

    policy = (intake.policy or Policy()).spec
    fleet = _Fleet((node.metadata.labels for node in intake.nodes), policy.topology.labels.flavor)
    runs: dict[str, set[str]] = defaultdict(set)
    for run in (*intake.runs, *(item for item in items if isinstance(item, Run))):
        runs[run.namespace].add(run.name)
    owners = {str(budget.spec.owner) for budget in (*intake.budgets, *items) if isinstance(budget, Budget)}
    found = []
    strange: dict[str, list[str]] = {}
    hints = _Hints()
    for item in items:
        if isinstance(item, Run):
            pod = needs.of_template(item, policy.resource_names)
            asked = {**(pod.node_selector if pod else {}), **item.spec.locality.selector}
            owner = str(item.spec.owner)
            if owner not in strange:
                strange[owner] = list(_owner(owner, owners, hints))
            of_owner = [] if item.spec.funding.opportunistic else strange[owner]
            nowhere = _nowhere(fleet, asked, item.spec.resources.gpu_type, "its selector")
            of_runs = (*_upstreams(item, runs[item.namespace], hints), *_parent(item, runs[item.namespace], hints))
            said = [*of_runs, *of_owner, *_sponsors(item, owners, hints), *nowhere]
        elif isinstance(item, Budget):
            said = [*_windows(item, at), *_selectors(item, fleet)]
        else:
            said = []
        found += [f"{item.subject}: {words}" for words in said]
    return found


def sponsor(intake: Intake, owner: str) -> Iterator[str]:
    """What is odd about a sponsor that is added to a run: it has no Budget to lend from."""
    owners = {str(budget.spec.owner) for budget in intake.budgets}
    if owner not in owners and "budgets" not in intake.hidden:
        yield f"{owner} has no Budget: it lends nothing as things stand{did_you_mean(owner, owners)}"


def _upstreams(run: Run, there: Collection[str], hints: _Hints) -> Iterator[str]:
    """``there``: the names of the runs in its namespace."""
    for name in run.spec.follow.after if run.spec.follow else ():
        if name not in there or name == run.name:
            yield (
                f"spec.follow.after names {name}, and there is no such run in namespace {run.namespace}: "
                f"it waits until there is one{hints.of(name, {*there} - {run.name})}"
            )


def _parent(run: Run, there: Collection[str], hints: _Hints) -> Iterator[str]:
    """``there``: as in `_upstreams`."""
    if run.spec.parent and run.spec.parent not in there:
        yield (
            f"spec.parent names {run.spec.parent}, and there is no such run in namespace {run.namespace}: "
            f"no quota counts it until there is one{hints.of(run.spec.parent, {*there} - {run.name})}"
        )


def _sponsors(run: Run, owners: Collection[str], hints: _Hints) -> Iterator[str]:
    """Sponsors that have no Budget to lend from, those beyond a few counted."""
    empty = [owner for owner in map(str, run.spec.funding.sponsors) if owner not in owners]
    if empty and run.spec.funding.allow_borrow:  # else none of them pays, which is said of all
        have, lend = ("has", "lends") if len(empty) == 1 else ("have", "lend")
        near = hints.of(empty[0], owners) if len(empty) == 1 else ""
        yield f"spec.funding.sponsors: {named(empty)} {have} no Budget, and {lend} nothing as things stand{near}"


def _owner(owner: str, owners: Collection[str], hints: _Hints) -> Iterator[str]:
    """An owner without a Budget: what its ancestors' pay for may be meant, unless the name is nearly another's."""
    if owner in owners:
        return
    above = [each for each in OwnerPath(owner).ancestors() if each in owners]
    near = hints.of(owner, owners, LIKE if above else 0.5)
    if near or not above:
        pays = f"only {above[0]} and its family may pay for it" if above else "nobody pays for it as things stand"
        yield f"spec.owner {owner} has no Budget: {pays}{near}"


def _nowhere(fleet: _Fleet, selector: Mapping[str, str], flavor: str | None, field: str) -> Iterator[str]:
    """A selector that no node of the flavor matches, where there are nodes of that flavor."""
    asked = {key: value for key, value in selector.items() if value != ANY}
    if asked and fleet.has(flavor) and not fleet.matches(asked, flavor):
        said = ", ".join(f"{key}={value}" for key, value in sorted(asked.items()))
        yield f"{field} {said} matches no node{f' of flavor {flavor}' if flavor else ''}"


def _selectors(budget: Budget, fleet: _Fleet) -> Iterator[str]:
    for envelope in budget.spec.envelopes:
        field = f"spec.envelopes[{envelope.name}].selector"
        yield from _nowhere(fleet, envelope.selector, envelope.flavor, field)
    for use in budget.spec.use_caps:
        yield from _nowhere(fleet, use.selector or {}, use.flavor, f"spec.useCaps[{use.name}].selector")


def _windows(budget: Budget, at: int) -> Iterator[str]:
    for envelope in budget.spec.envelopes:
        if envelope.end is not None and envelope.end <= at:
            yield f"the window of spec.envelopes[{envelope.name}] was over at {Time(envelope.end)}: it pays for nothing"
    for use in budget.spec.use_caps:
        if use.end is not None and use.end <= at:
            yield f"the window of spec.useCaps[{use.name}] was over at {Time(use.end)}: it bounds nothing"
