"""Who may pay for a new lease, where, when, and how much of one run (spec §3.1–§3.4).

What one payment does to caps is in ``classes`` and ``ahead``; here it is each payment by itself, and each run's own
limits.
"""

from collections import defaultdict
from collections.abc import Iterator

from jobtree.api.values.counted import counted
from jobtree.check.case.accounts import Envelope, UseCap
from jobtree.check.case.caps import Caps
from jobtree.check.case.case import Case
from jobtree.check.case.named import EnvelopeKey, label
from jobtree.check.case.rows import Held, Run, RunKey
from jobtree.check.case.violation import Violation
from jobtree.check.time.cutting import may_start_unfunded


def violations(case: Case, caps: Caps) -> Iterator[Violation]:
    """Every payer of every new lease, and what each run takes of each payer and of sponsors together."""
    for lease in case.new:
        run = case.run_of(lease.run_key)
        if run is None or lease.payer is None:
            continue
        envelope = case.envelopes.get(lease.payer)
        if envelope is None:
            yield _missing(case, lease, lease.payer)
        if envelope is None or _is_paid_on(case, lease):
            continue
        yield from _who(caps, lease, run, envelope)
        yield from _where(case, lease, envelope)
        yield from _when(case, lease, envelope)
        yield from _use_time(case, caps, lease)
    for key in sorted(case.new_by):
        run = case.run_of(key)
        if run is not None:
            yield from _per_run(case, key)
            yield from _use_run(case, caps, key, run)
            yield from _borrowed(case, caps, key, run)
            yield from _unfunded(case, key, run)


def _is_paid_on(case: Case, lease: Held) -> bool:
    """Is it what a swap left of a standby, paid on as that was? No edit of its payer takes that from it."""
    ended = (old for old in case.open_by.get(lease.run_key, ()) if old.key in case.closing and not old.active)
    before = {slot for old in ended if (old.payer, old.group) == (lease.payer, lease.group) for slot in old.slots}
    return lease.reason == "Swap" and not lease.active and before.issuperset(lease.slots)


def _of(lease: Held, invariant: str, message: str) -> Violation:
    return Violation.of_lease(invariant, lease.key, message)


def _missing(case: Case, lease: Held, payer: EnvelopeKey) -> Violation:
    """Nobody there is the payer that a lease names: one of its name may be for another flavor."""
    like = case.known_as.get((payer.budget, payer.envelope))
    other = None if like is None else case.envelopes[like]
    if other is not None and other.owner == lease.owner:
        return _of(lease, "payer-flavor", f"{label(payer)} is for {other.flavor} and pays for {lease.flavor}")
    return _of(lease, "payer-exists", f"{lease.owner} has no envelope {label(payer)} that could pay")


def _who(caps: Caps, lease: Held, run: Run, envelope: Envelope) -> Iterator[Violation]:
    owner = envelope.owner
    name = f"{label(envelope.key)} of {owner}"
    if owner == run.owner:
        return
    if not caps.is_loan(lease):
        if envelope.sharing == "none":
            yield _of(lease, "payer-sharing", f"{name} has sharing none and pays for {run.owner}")
        return
    if not run.allow_borrow or owner not in run.sponsors:
        wanting = "does not allow borrowing" if not run.allow_borrow else f"lists {', '.join(run.sponsors) or 'nobody'}"
        yield _of(lease, "payer-kin", f"{name} is no relative of {run.owner}, and the run {wanting}")
    if not envelope.lending_allow:
        yield _of(lease, "payer-lending", f"{name} does not lend, and pays for {run.owner}")
    elif not _listed(run.owner, envelope.lending_to or ()):
        allowed = ", ".join(envelope.lending_to or ())
        yield _of(lease, "payer-lending", f"{name} lends to {allowed}, which does not match {run.owner}")


def _listed(owner: str, patterns: tuple[str, ...]) -> bool:
    """Nobody listed is anyone; a trailing ``*`` is a prefix (spec §3.1)."""
    return not patterns or any(
        owner.startswith(pattern.removesuffix("*")) if pattern.endswith("*") else owner == pattern
        for pattern in patterns
    )


def _where(case: Case, lease: Held, envelope: Envelope) -> Iterator[Violation]:
    name = label(envelope.key)
    if case.policy.funding.cross_location == "deny" and not case.matches(envelope, lease.node):
        selector = ", ".join(f"{key}={value}" for key, value in envelope.selector)
        yield _of(lease, "payer-place", f"{name} pays where {selector}, which node {lease.node} does not match")


def _when(case: Case, lease: Held, envelope: Envelope) -> Iterator[Violation]:
    name = label(envelope.key)
    limit = case.limit(lease.run_key)
    if not envelope.pays(case.at):
        sentence = f"the window of {name} is [{envelope.start}, {envelope.end}), and it is {case.at}"
        yield _of(lease, "payer-window", sentence)
    past_end = envelope.end is not None and (limit is None or case.at + limit > envelope.end)
    if case.policy.funding.past_window == "refuse" and past_end:
        sentence = f"the run may last past the end of {name} at {envelope.end}, and the Policy refuses that"
        yield _of(lease, "payer-window", sentence)
    if envelope.per_run_time is not None and (limit is None or limit > envelope.per_run_time):
        given = "no time limit" if limit is None else f"a limit of {limit} s"
        yield _of(lease, "per-run-time", f"{name} pays for at most {envelope.per_run_time} s; the run has {given}")


def _per_run(case: Case, key: RunKey) -> Iterator[Violation]:
    taken: dict[EnvelopeKey, int] = defaultdict(int)
    for lease in case.after(key):
        if lease.payer is not None:
            taken[lease.payer] += case.milli(lease)
    fresh = (lease for lease in case.new_by[key] if not _is_paid_on(case, lease))
    for payer in sorted({lease.payer for lease in fresh if lease.payer is not None}):
        envelope = case.envelopes.get(payer)
        most = None if envelope is None or envelope.per_run_gpus is None else 1000 * envelope.per_run_gpus
        if most is not None and taken[payer] > most:
            sentence = f"it takes {taken[payer]} milli-GPUs of {label(payer)}, which gives one run {most}"
            yield Violation.of_run("per-run-gpus", key, sentence)


def _looking(case: Case, caps: Caps, owner: str) -> list[UseCap]:
    """Use caps that bind runs of an owner now."""
    return [cap for place in caps.uses_of(owner) if (cap := case.use_caps[place]).is_open(case.at)]


def _use_time(case: Case, caps: Caps, lease: Held) -> Iterator[Violation]:
    limit = case.limit(lease.run_key)
    for cap in _looking(case, caps, lease.run_owner):
        most = cap.per_run_time
        if (
            most is not None
            and cap.counts(lease.flavor, case.nodes.get(lease.node))
            and (limit is None or limit > most)
        ):
            given = "no time limit" if limit is None else f"a limit of {limit} s"
            sentence = f"use cap {cap.budget}/{cap.name} admits runs of at most {most} s; the run has {given}"
            yield _of(lease, "use-run-time", sentence)


def _use_run(case: Case, caps: Caps, key: RunKey, run: Run) -> Iterator[Violation]:
    for cap in _looking(case, caps, run.owner):
        if cap.per_run_gpus is None:
            continue
        mine = [each for each in case.after(key) if each.payer and cap.counts(each.flavor, case.nodes.get(each.node))]
        taken, fresh = sum(map(case.milli, mine)), {x.key for x in case.new_by[key] if not _is_paid_on(case, x)}
        if taken > 1000 * cap.per_run_gpus and any(lease.key in fresh for lease in mine):
            most = 1000 * cap.per_run_gpus
            sentence = f"it takes {taken} milli-GPUs where use cap {cap.budget}/{cap.name} gives one run {most}"
            yield Violation.of_run("use-run-gpus", key, sentence)


def _borrowed(case: Case, caps: Caps, key: RunKey, run: Run) -> Iterator[Violation]:
    loans = sum(lease.gpus for lease in case.after(key) if lease.active and caps.is_loan(lease))
    fresh = any(lease.active and caps.is_loan(lease) for lease in case.new_by[key])
    if fresh and run.max_borrow is not None and loans > run.max_borrow:
        sentence = f"it borrows {counted(loans, 'GPU')}, more than its maxBorrowGPUs of {run.max_borrow}"
        yield Violation.of_run("borrow-limit", key, sentence)


def _unfunded(case: Case, key: RunKey, run: Run) -> Iterator[Violation]:
    """No run starts partly unfunded, and only an opportunistic or a promised one wholly (spec §3.7)."""
    fresh = [lease for lease in case.new_by[key] if lease.reason != "Swap"]
    unpaid = sum(lease.gpus for lease in fresh if lease.payer is None)
    if not unpaid:
        return
    paid = f"{unpaid} of its new GPUs {'is' if unpaid == 1 else 'are'} paid by nobody"
    if not run.opportunistic and not may_start_unfunded(case, key):
        sentence = f"{paid}, and it is not opportunistic"
        yield Violation.of_run("funded-start", key, sentence)
    elif any(lease.payer is not None for lease in fresh):
        sentence = f"{paid} and the others are paid: a start is one or the other"
        yield Violation.of_run("funded-start", key, sentence)
