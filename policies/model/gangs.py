"""Gangs of runs that start together (spec §1 Run.gang).

Of the runs of that name in a namespace ``size`` or more start in one cycle, or none; what has started counts:

Σ start(rⱼ) over a gang ≥ (size − started − members without GPUs) × start(rᵢ)        each member rᵢ of it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jobtree.api.values.counted import counted
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle.endings import Ending
from policies.model.linear import INF, Model

NAMED: Final = 3
"""How many of a gang's members are named that keep it from starting."""

GangKey = tuple[str, str]
"""(namespace, name)."""


@dataclass(frozen=True)
class Gang:
    """Runs that start together: of the ``members``, which ask for GPUs, ``least`` or more, or none.

    ``cpu``: members without GPUs; nothing keeps them from starting but the others, with which they start.
    """

    members: tuple[RunKey, ...]
    least: int
    cpu: tuple[RunKey, ...]

    def __iter__(self) -> Iterator[RunKey]:
        """Over the members that ask for GPUs."""
        return iter(self.members)

    def __len__(self) -> int:
        """Members that ask for GPUs."""
        return len(self.members)

    @property
    def ties(self) -> bool:
        """Does one keep another waiting? Where one more is enough, each of those with GPUs starts as if alone."""
        return self.least > 1


@dataclass(frozen=True, slots=True)
class Away:
    """Reason why a member does not count; ``again``: what would let it, empty where it never will."""

    why: str
    again: str


def gangs(
    pending: Iterable[RunRow], started: Iterable[RunRow], away: Callable[[], Mapping[GangKey, Mapping[str, Away]]]
) -> tuple[list[Gang], dict[RunKey, str]]:
    """Gangs that can be complete with what is ``pending``, and for members of the others why they wait.

    ``started``: runs that run or have completed. Where they and the members without GPUs are ``size``, nothing ties
    the rest. Members that state different sizes are bound by the largest. ``away``: the members that are neither, by
    gang and name; asked for once, where a gang lacks some.
    """
    there = Counter((run.namespace, run.gang) for run in started)
    by_name: dict[GangKey, list[RunRow]] = {}
    for run in pending:
        if run.gang:
            by_name.setdefault((run.namespace, run.gang), []).append(run)
    whole: list[Gang] = []
    short: dict[GangKey, tuple[int, int]] = {}
    for (namespace, name), runs in sorted(by_name.items()):
        size = max(run.gang_size for run in runs)
        members = tuple(sorted(run.key for run in runs if not run.is_cpu))
        cpu = tuple(sorted(run.key for run in runs if run.is_cpu))
        least = size - there[namespace, name] - len(cpu)
        if least > len(members):
            short[namespace, name] = size, least - len(members)
        elif least > 0:
            whole.append(Gang(members, least, cpu))
    missed = away() if short else {}
    words = {key: _incomplete(key[1], *lacks, missed.get(key, {})) for key, lacks in short.items()}
    return whole, {run.key: words[key] for key in short for run in by_name[key]}


def _incomplete(gang: str, size: int, missing: int, away: Mapping[str, Away]) -> str:
    """Say what a gang lacks, which members are why, and what would complete it."""
    back = [each.again for _, each in sorted(away.items()) if each.again][:missing]
    new = missing - len(back)
    steps = [*back[:NAMED], *(["and so on with the others that are there"] if len(back) > NAMED else [])]
    steps += [f"submit {counted(new, 'more run')} with gang {gang}"] if new else []
    why = [f"run {name} {each.why}" for name, each in sorted(away.items())]
    more = [f"{len(why) - NAMED} more do not count either"] if len(why) > NAMED else []
    named = ", ".join([*why[:NAMED], *more]) or f"{missing} {'is' if missing == 1 else 'are'} not there"
    return f"gang {gang} has {size - missing} of its {counted(size, 'run')}: {named}; {', '.join(steps)}"


def away(run: RunRow, ending: Ending | None, blocked: str) -> Away:
    """Say why a member, neither ready nor started, does not count. ``blocked``: why it is not even weighed."""
    outcome, reason = (ending.outcome, ending.reason) if ending else (run.outcome, run.outcome_reason)
    if outcome:
        return Away("was cancelled" if reason == "Cancelled" else "has failed", "")
    if run.deleting:
        return Away("is being deleted", "")
    if run.state == "Suspended":
        return Away("is suspended", f"resume run {run.name}")
    return Away(f"waits itself ({blocked})", f"see what lets run {run.name} start")


def tied(gangs: Iterable[Gang], started: Collection[RunKey]) -> frozenset[RunKey]:
    """Members that others keep waiting: of gangs of which nothing has ``started``. What starts unties the rest."""
    return frozenset(key for gang in gangs if gang.ties and not any(key in started for key in gang) for key in gang)


def too_few_left(gangs: Iterable[Gang], started: Collection[RunKey], lost: Collection[RunKey]) -> frozenset[RunKey]:
    """Members of gangs of which some are ``lost`` and too few of what has ``started`` are left."""
    hit = (gang for gang in gangs if any(key in lost for key in gang))
    few = (gang for gang in hit if sum(key in started and key not in lost for key in gang) < gang.least)
    return frozenset(key for gang in few for key in gang)


def held_back(gangs: Iterable[Gang], started: Collection[RunKey]) -> dict[RunKey, str]:
    """Members without GPUs whose gang does not start, and why they wait."""
    return {
        key: f"{len(gang)} of its gang's runs wait for GPUs, and {gang.least} have to start with it"
        for gang in gangs
        if not any(member in started for member in gang)
        for key in gang.cpu
    }


def rows(model: Model, gangs: Iterable[Gang], starts: Mapping[RunKey, Sequence[int]]) -> None:
    """Let enough of a gang start or none; ``starts``: run → its columns, funded or not, that are 1 where it starts."""
    for gang in gangs:
        sums = [starts.get(key, ()) for key in gang]
        if gang.least == len(gang):  # all or none: each starts with the first
            for key, other in zip(gang.members[1:], sums[1:], strict=True):
                model.row(("gang", *key), [*((c, 1.0) for c in sums[0]), *((c, -1.0) for c in other)], 0.0, 0.0)
            continue
        for key, mine in zip(gang, sums, strict=True):
            together = {c: 1.0 for other in sums for c in other} | dict.fromkeys(mine, 1.0 - gang.least)
            model.row(("gang", *key), list(together.items()), 0.0, INF)
