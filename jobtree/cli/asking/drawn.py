"""What Leases and Runs say of a draw beside what its Plan says: every field that both state (spec §6)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from jobtree.api import Policy, Time
from jobtree.api.values.counted import counted
from jobtree.check.time.lottery import Step
from jobtree.world.tables.snapshot import digest_of

if TYPE_CHECKING:
    from jobtree.api import Lease, Plan
    from jobtree.api.kinds.plan import Draw
    from jobtree.world.reading.intake import Intake

_MADE: Final = re.compile(r".*-\d{8}t\d{6}z(-\d+)?-g\d+-\d+")
"""Names that cycles give: RUN-CYCLE-gGROUP-NUMBER. Leases that people wrote may be called otherwise."""


def told(plan: Plan, lease: Lease, intake: Intake) -> Iterator[Step]:
    """Is what a Lease drawn in the Plan says of the draw what the Plan says?"""
    lottery, status, proof = plan.status.lottery, lease.status, lease.status.proof
    if lottery is None:
        yield Step(f"Plan that drew Lease {lease.name}", plan.name, "one that drew nothing")
        return
    if proof is None or status.cause is None:
        what = "proof" if proof is None else "cause"
        yield Step(f"{what} of Lease {lease.name}", "nothing", f"a pick of Plan {plan.name}")
        return
    yield Step(f"reason of Lease {lease.name}", str(status.closure_reason if status.closed else "open"), "Lottery")
    yield Step(f"end of Lease {lease.name}", str(status.ended), str(Time(plan.spec.at)))
    yield Step(f"Plan in the proof of Lease {lease.name}", proof.plan, plan.name)
    yield Step(f"Plan in the cause of Lease {lease.name}", status.cause.plan, plan.name)
    yield Step(f"Reservation in the cause of Lease {lease.name}", status.cause.reservation, proof.reservation)
    yield Step(f"position of Lease {lease.name}", str(proof.position), str(lottery.position))
    yield Step(f"secret of Lease {lease.name}", proof.secret, lottery.secret)
    draw = next((each for each in lottery.draws if each.reservation == proof.reservation), None)
    picks = () if draw is None else draw.picks
    pick = picks[proof.draw] if 0 <= proof.draw < len(picks) else ""
    run, _, group = pick.rpartition("#")
    what = f"run that pick {proof.draw} of {proof.reservation} took"
    yield Step(what, "/".join(lease.run_key), run or (f"no run: {pick!r}" if pick else "no pick of the Plan"))
    yield from _itself(lease, intake)
    if str(lease.spec.group) != group and (kept := _kept(lease, intake)):
        yield Step(f"group of Lease {lease.name}", str(lease.spec.group), f"{group}: its run kept Lease {kept}")


def _itself(lease: Lease, intake: Intake) -> Iterator[Step]:
    """Is what a Lease says twice, or others say too, the same?"""
    spec = lease.spec
    for notice in (*intake.warnings, *intake.quarantined):
        if (notice.kind, notice.namespace, notice.name) == ("Lease", lease.namespace, lease.name):
            yield Step(f"what Lease {lease.name} says", notice.message, "what no field of it contradicts")
    if spec.run_ref.namespace:
        yield Step(f"namespace of the Run of Lease {lease.name}", spec.run_ref.namespace, lease.namespace)
    if _MADE.fullmatch(lease.name):
        head = f"{spec.run_ref.run_name}-{spec.cycle.lower()}-g{spec.group}-"
        name = lease.name if lease.name.startswith(head) else f"{head}…"
        yield Step(f"run, cycle and group in the name of Lease {lease.name}", lease.name, name)
    opened = next((plan for plan in intake.plans if plan.name == spec.cycle.lower()), None)
    if opened is not None and spec.reason != "Swap":
        yield Step(f"start of Lease {lease.name}", str(spec.interval.start), str(Time(opened.spec.at)))
    run = next((run for run in intake.runs if (run.namespace, run.name) == lease.run_key), None)
    if run is not None and (run.metadata.creation_timestamp or 0) <= spec.interval.start:
        yield Step(f"UID of the Run of Lease {lease.name}", spec.run_uid, run.metadata.uid)


def _kept(lease: Lease, intake: Intake) -> str:
    """An Active lease that its run held on to: then no more than the groups that were picked closed."""
    for each in intake.leases:
        mine = each.run_key == lease.run_key and each.spec.run_uid == lease.spec.run_uid
        began = each.spec.interval.start < (lease.status.ended or 0)
        after = not each.status.closed or (each.status.ended or 0) > (lease.status.ended or 0)
        if mine and began and after and each.spec.slice.role == "Active":
            return each.name
    return ""


def pooled(plan: Plan, draw: Draw, intake: Intake, now: int) -> Iterator[Step]:
    """Was each token of a draw's pools a group that ran, of that owner?

    Leases may be pruned once retention is over: where the Policy was edited since, nothing tells which are.
    """
    at = plan.spec.at
    owners: dict[str, str] = {}
    for lease in intake.leases:
        if lease.spec.interval.start <= at and (lease.status.ended is None or lease.status.ended >= at):
            owners[f"{'/'.join(lease.run_key)}#{lease.spec.group}"] = str(lease.spec.run_owner)
    policy = intake.policy or Policy()
    since = {each.spec.policy for each in intake.plans if each.spec.at > at}
    kept = int(policy.spec.retention.leases) if since <= {digest_of(policy)} else 0
    for number, pool in enumerate(draw.pools):
        what = f"pool {number} of {draw.reservation}"
        said = {token: str(each.owner) for each in pool for token in each.tokens}
        known = {token: owner for token, owner in said.items() if token in owners or now < at + kept}
        wrong = (token for token, owner in known.items() if owners.get(token) != owner)
        if (token := next(wrong, None)) is not None:
            yield Step(f"owner of {token} in {what}", said[token], owners.get(token, "nobody: it has no Lease"))
        elif known:
            total = counted(len(known), "group that ran, of its owner", "groups that ran, each of its owner")
            yield Step(what, total, total)
