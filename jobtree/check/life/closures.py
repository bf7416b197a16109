"""What ends, when and why, and what must end (spec §1 Lease, §6, §7, §9)."""

from collections import Counter
from collections.abc import Iterator

from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held, RunKey
from jobtree.check.case.unplanned import Said, Unplanned
from jobtree.check.case.violation import Violation
from jobtree.check.life.failures import Failures, Outliving
from jobtree.check.life.reasons import is_justified, limit_end, own_shrink, settled
from jobtree.world.plan import Closure

CUTS = ("ReclaimUnfunded", "Shrink", "DropSpare", "Lottery")


def violations(case: Case, failures: Failures) -> Iterator[Violation]:
    """Each closure for itself, then what stays open and must not."""
    for (namespace, name), times in Counter((each.namespace, each.name) for each in case.plan.closures).items():
        if times > 1:
            yield Violation.of_lease("closed-monotone", (namespace, name), f"the plan closes it {times} times")
    outliving = Outliving(case, failures)
    for closure in case.plan.closures:
        yield from _closure(outliving, closure)
    for key, leases in case.held_by.items():
        ended = case.told.over[key]
        for lease in leases:
            word = "is gone" if case.is_gone(lease) else ended
            if word:
                sentence = f"it stays open, and its run {word}"
                yield Violation.of_lease("terminal-holds-nothing", lease.key, sentence)


def _closure(outliving: Outliving, closure: Closure) -> Iterator[Violation]:
    case = outliving.case
    subject = f"Lease {closure.namespace}/{closure.name}"
    lease = case.leases.get((closure.namespace, closure.name))
    if lease is None or lease.closed:
        state = "is closed already" if lease else "is not there"
        yield Violation("closed-monotone", subject, f"the plan closes it, and it {state}")
        return
    expected = _end(case, lease, closure.reason)
    latest = max(case.at, lease.start)  # one that begins in future ends as it begins
    wanted = None if expected is None else max(expected, lease.start)
    if not lease.start <= closure.ended <= latest or (wanted is not None and closure.ended != wanted):
        sentence = f"it would end at {closure.ended}, and {closure.reason} ends it at {wanted or latest}"
        yield Violation("closed-has-end-and-reason", subject, sentence)
    cut = bool(closure.made_room_for) and closure.reason in CUTS  # `jobtree.check.time.cutting` has them
    if not cut and not is_justified(outliving, lease, closure.reason):
        sentence = f"its closure {closure.reason or '(no reason)'} is not borne out by the snapshot and the plan"
        yield Violation("closure-justified", subject, sentence)
    if case.policy.mode == "noCuts" and closure.reason in CUTS and not own_shrink(case, lease):
        yield Violation("no-cuts", subject, f"it is cut ({closure.reason}), and the Policy's mode is noCuts")


def _end(case: Case, lease: Held, reason: str) -> int | None:
    """The second at which a closure ends its lease; None where the snapshot does not tell."""
    run = case.run_of(lease.run_key)
    if reason == "TimeLimit":
        return limit_end(case, lease.run_key)
    if reason == "Completed" and run is not None and run.completed_at is not None:
        return max(run.completed_at, settled(case, lease.run_key))
    return None if reason in ("Completed", "Failed") else case.at


def over(case: Unplanned, key: RunKey, said: Said | None) -> str:
    """Why what a run holds must not stay open; empty where it may."""
    run = case.run_of(key)
    if run is None:
        return ""
    if run.outcome is not None or run.state != "Active":
        return f"is {run.outcome or run.state}"
    if run.deleting:
        return "is being deleted"
    if run.completed_at is not None and run.completed_at <= case.at:
        return "is marked complete"
    if said is not None and said.succeeded:
        return "has only pods that succeeded"
    if said is not None and said.failed:
        return "has a pod that failed"
    if said is not None and said.stuck:
        return "has a pod that was evicted, or finds no node"
    ends = limit_end(case, key)
    return f"reached its time limit at {ends}" if ends is not None and ends <= case.at else ""
