"""Which runs may get leases, and what a new lease must say of them (spec §1, §3.7, §7)."""

from collections import defaultdict
from collections.abc import Iterator

from jobtree.api.kinds.meta import RunRef
from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held, Run, RunKey
from jobtree.check.case.violation import Violation


def violations(case: Case) -> Iterator[Violation]:
    """Facts of new leases; state, upstreams and namespace of their runs."""
    for written, lease in zip(case.plan.leases, case.new, strict=True):
        yield from _facts(case, lease, written.spec.cycle)
        yield from _reference(case, lease, written.spec.run_ref)
    for key in sorted(case.new_by):
        run = case.run_of(key)
        if run is None:
            yield Violation.of_run("run-may-start", key, "the plan opens leases, and it is not there")
            continue
        yield from _may_hold(case, key, run)
        if key in case.starting:
            yield from upstream(case, key, run)
            yield from _namespace(case, key, run)


def clashes(case: Case) -> Iterator[Violation]:
    """New leases whose name is taken: with two of one name nothing else can be told of either."""
    known = set(case.leases)
    for lease in case.new:
        if lease.key in known:
            sentence = "a lease of this name is there already"
            yield Violation.of_lease("unique-names", lease.key, sentence)
        known.add(lease.key)


def _facts(case: Case, lease: Held, cycle: str) -> Iterator[Violation]:
    subject = f"Lease {lease.namespace}/{lease.name}"
    run = case.run_of(lease.run_key)
    if run is None:
        return
    payer_owner = case.owner_of.get(lease.budget) if lease.budget is not None else run.owner
    facts = (
        ("run uid", lease.run_uid, run.uid or lease.run_uid),
        ("run owner", lease.run_owner, run.owner),
        ("owner", lease.owner, payer_owner),
        ("flavor", lease.flavor, run.flavor),
        ("start", lease.start, case.at),
        ("cycle", cycle, case.plan.cycle),
        ("closed", lease.closed, False),
    )
    for name, given, true in facts:
        if given != true:
            yield Violation("lease-truthful", subject, f"its {name} is {given!r}, and in truth {true!r}")
    running = lease.run_key not in case.starting
    if (lease.reason == "Start") == running:
        state = "holds leases already" if running else "holds nothing yet"
        yield Violation("lease-truthful", subject, f"its reason is {lease.reason}, and its run {state}")
    if lease.reason == "Grow" and lease.active and not run.malleable:
        yield Violation("lease-truthful", subject, "its reason is Grow, and its run has a fixed width")
    if lease.reason == "Swap":
        yield from _swap(case, lease, subject)


def _reference(case: Case, lease: Held, ref: RunRef) -> Iterator[Violation]:
    """An index of an array is named by its array and its number."""
    true = case.rows.indices.get(lease.run_key, (lease.run, None))
    if case.run_of(lease.run_key) is not None and (ref.name, ref.index) != true:
        sentence = f"its runRef is {ref.name!r} and {ref.index}, and in truth {true[0]!r} and {true[1]}"
        yield Violation("lease-truthful", f"Lease {lease.namespace}/{lease.name}", sentence)


def _swap(case: Case, lease: Held, subject: str) -> Iterator[Violation]:
    """A swap lies on the slots of a spare of its group that closes for it (spec §7)."""
    freed: dict[str, set[int]] = defaultdict(set)
    for key, closure in case.closing.items():
        old = case.leases.get(key)
        if old is not None and closure.reason == "Swap" and (old.run_key, old.group) == (lease.run_key, lease.group):
            freed[old.node].update(old.ordinals)
    if not set(lease.ordinals) <= freed[lease.node]:
        yield Violation("lease-truthful", subject, "its reason is Swap, and no spare of its group closes on its slots")


def _may_hold(case: Case, key: RunKey, run: Run) -> Iterator[Violation]:
    states = {
        "has no GPUs to ask for": run.total == 0,
        "is an array, whose indices run": run.array,
        f"is {run.state}": run.state != "Active",
        "is being deleted": run.deleting,
        f"is {run.outcome} for good": run.outcome is not None,
        "may hold a Lease that cannot be read": case.may_be_unread(run),
        "is marked complete": run.completed_at is not None and run.completed_at <= case.at,
    }
    for words, holds in states.items():
        if holds:
            yield Violation.of_run("run-may-start", key, f"the plan opens leases, and it {words}")


def upstream(case: Case, key: RunKey, run: Run) -> Iterator[Violation]:
    """Every run that it follows has Completed; one that is gone can only have, and its own status then forgot why."""
    for name in run.follow:
        upstream = case.runs.get((run.namespace, name))
        done = upstream is not None and (
            upstream.outcome == "Completed" or case.phase_after(upstream.key) == "Completed"
        )
        pruned = upstream is None and (run.namespace, name) in case.completed_once
        if not done and not pruned:
            state = "not there" if upstream is None else upstream.outcome or "not Completed"
            yield Violation.of_run("follow", key, f"it starts, and {name}, which it follows, is {state}")


def _namespace(case: Case, key: RunKey, run: Run) -> Iterator[Violation]:
    """The nearest list of namespaces, from the owner upwards, has this one (spec §1 Budget ``namespaces``)."""
    level, seen = {run.owner}, {run.owner}
    while level:
        bound = {namespace for owner in level for namespace in case.namespaces.get(owner, ())}
        if bound:
            if run.namespace not in bound:
                sentence = f"{run.owner} is charged from {', '.join(sorted(bound))}, and it lives in {run.namespace}"
                yield Violation.of_run("owner-namespace", key, sentence)
            return
        level = {parent for owner in level for parent in case.kin.parents(owner)} - seen
        seen |= level
    if case.policy.tenancy.require_binding:
        sentence = f"{run.owner} is bound to no namespace, and the Policy requires a binding"
        yield Violation.of_run("owner-namespace", key, sentence)
