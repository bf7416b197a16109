"""The six conditions of a Run (spec §1 Run.status): what each says, and whether that is new."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from jobtree.api.kinds.meta import Condition
from jobtree.api.kinds.run import CPU_RUN, RUN_CONDITIONS, UNPAID, Phase, phase_of
from jobtree.api.values.counted import counted
from jobtree.api.values.scalars import Duration, Time
from jobtree.world.plan import Wait
from planner.reasons.explain import sentence
from policies.inputs.claims import UNFUNDED, RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle import unweighed
from policies.lifecycle.arrays import Count
from policies.lifecycle.endings import Ending

ORDER: Final = RUN_CONDITIONS
CLASSES: Final = ("owned", "shared", "borrowed", UNFUNDED)


class Said(NamedTuple):
    """A condition without its times."""

    holds: bool
    reason: str
    message: str


Saying = tuple[Said, ...]
"""What the conditions say, in ORDER."""


@lru_cache(maxsize=4096)
def phase(saying: Saying) -> Phase:
    """The phase that follows from them."""
    return phase_of({kind for kind, said in zip(ORDER, saying, strict=True) if said.holds})


def conditions(saying: Saying, before: Sequence[Condition], at: int) -> tuple[Condition, ...]:
    """Conditions that say so; one that said the same ``before`` stays as it is, with the time of its last change."""
    if tuple(old.type for old in before) == ORDER:
        return tuple(_condition(*each, at) for each in zip(ORDER, saying, before, strict=True))
    old = {condition.type: condition for condition in reversed(before)}
    return tuple(_condition(kind, said, old.get(kind), at) for kind, said in zip(ORDER, saying, strict=True))


def _condition(kind: str, said: Said, old: Condition | None, at: int) -> Condition:
    status: Literal["True", "False"] = "True" if said.holds else "False"
    same = old is not None and old.status == status
    since = old.last_transition_time if old is not None and same else None
    if old is not None and since is not None and old.reason == said.reason and old.message == said.message:
        return old
    return Condition(
        type=kind,
        status=status,
        reason=said.reason,
        message=said.message,
        last_transition_time=Time(at) if since is None else since,
        observed_generation=old.observed_generation if old is not None else 0,
    )


@lru_cache(maxsize=4096)
def _rest(limit: int | None) -> Saying:
    """Completed, Failed and Blocked of what has not ended."""
    stated = "No time limit." if limit is None else f"Time limit {Duration(limit)}."
    return (
        Said(False, "NotFinished", stated),
        Said(False, "NoFailure", "0 pods failed."),
        Said(False, "NothingToWaitFor", "0 upstream runs outstanding."),
    )


@lru_cache(maxsize=4096)
def running(
    by_class: tuple[tuple[str, int], ...], groups: int, nodes: int, limit: int | None, unpaid: str = ""
) -> Saying:
    """Conditions of a run that holds GPUs: so many by class, in so many groups on so many nodes.

    ``unpaid``: sentences on those that are unfunded.
    """
    held = dict(by_class)
    width = sum(held.values())
    gpus = counted(width, "GPU")
    classes = ", ".join([f"{held[name]} {name}" for name in CLASSES if name in held])
    unfunded = held.get(UNFUNDED, 0)
    reason = UNPAID[unfunded < width] if unfunded else "Funded"
    return (
        Said(True, reason, " ".join(filter(None, (f"{gpus}: {classes}.", unpaid)))),
        Said(True, "Placed", f"{gpus} in {counted(groups, 'group')} on {counted(nodes, 'node')}."),
        Said(True, "PodsRunning", f"{width} of {counted(width, 'GPU')} running."),
        *_rest(limit),
    )


def on_cpu(run: RunRow) -> Saying:
    """Conditions of a CPU run that has started."""
    pods = counted(run.cpu_pods or 0, "pod")
    return (
        Said(True, CPU_RUN, f"{pods} without GPUs: nobody is charged."),
        Said(True, "Placed", f"{pods} left to kube-scheduler."),
        Said(True, "PodsRunning", f"{pods} running."),
        *_rest(run.time_limit),
    )


def pending(run: RunRow, wait: Wait | None, blocked: Mapping[RunKey, tuple[str, str]]) -> Saying:
    """Conditions of a run that holds nothing. ``blocked``: runs that are not even weighed, with (reason, words)."""
    if run.key in blocked:
        reason, words = blocked[run.key]
        return _pending(run.total, run.time_limit, reason, sentence(words))
    if wait is not None:
        return _pending(run.total, run.time_limit, wait.reason, wait.message)
    if run.deleting:
        words = "Being deleted: it holds nothing and waits for nothing."
        return _pending(run.total, run.time_limit, "Deleting", words)
    words = "Suspended by its owner: it holds nothing and waits for nothing."
    return _pending(run.total, run.time_limit, "Suspended", words)


@lru_cache(maxsize=4096)
def _pending(gpus: int, limit: int | None, reason: str, message: str) -> Saying:
    total = counted(gpus, "GPU")
    completed, failed, free = _rest(limit)
    return (
        Said(False, reason, message),
        Said(False, "NotAdmitted", f"0 of {total} placed."),
        Said(False, "NotStarted", f"0 of {total} running."),
        completed,
        failed,
        Said(True, reason, message) if reason == unweighed.UPSTREAM else free,
    )


def array_running(count: Count) -> Saying:
    """Conditions of an array some of whose indices run."""
    said = count.sentence()
    return (
        Said(True, "IndicesRunning", said),
        Said(True, "IndicesPlaced", said),
        Said(True, "IndicesRunning", said),
        *_of_indices(count),
        _rest(None)[2],
    )


def array_waiting(count: Count, first: Saying, run: RunRow) -> Saying:
    """Conditions of an array none of whose indices runs; ``first``: what is said of the first that waits, ``run``."""
    why = first[0]
    said = f"{count.sentence()} Index {run.index}: {why.message}"
    blocked = Said(True, why.reason, said) if first[5].holds else first[5]
    return (
        Said(False, why.reason, said),
        Said(False, "NotAdmitted", "0 indices placed."),
        Said(False, "NotStarted", "0 indices running."),
        *_of_indices(count),
        blocked,
    )


def _of_indices(count: Count) -> Saying:
    """Completed and Failed of an array that goes on."""
    return (
        Said(False, "NotFinished", f"{count.completed} of {count.all} indices completed."),
        Said(
            False, "NoFailure" if not count.failed else "SomeFailed", f"{count.failed} of {count.all} indices failed."
        ),
    )


def ended(run: RunRow, ending: Ending) -> Saying:
    """Conditions of a run that is over."""
    no = Said(False, ending.reason, ending.message)
    completed, failed, free = _rest(run.time_limit)
    over = Said(True, ending.reason, ending.message)
    if ending.outcome == "Completed":
        return no, no, no, over, failed, free
    return no, no, no, completed, over, free
