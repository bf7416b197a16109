"""The independent checker: every plan, again, in exact integers, by nobody's code but its own (spec §4, §9).

It reads the snapshot and the plan, derives kin, caps, classes and shapes anew, and says what is broken. A plan with a
violation is not written. What a snapshot already shows is the cluster's to repair: the plan answers for what it adds,
ends or states. `before` is what needs no plan; `record` holds the plan's own words and figures to what was found.
"""

from typing import Final

from jobtree.check import record
from jobtree.check.before import Before
from jobtree.check.case.case import Case
from jobtree.check.case.claims import Claims
from jobtree.check.case.violation import Violation
from jobtree.check.life import arrays, closures, eligibility, failures, fates, shape, slots, starts, statuses, trees
from jobtree.check.life.failures import Failures
from jobtree.check.money import ahead, between, funded, ledger, payers, pruning, usage
from jobtree.check.money.classes import Present
from jobtree.check.money.ledger import Ledger
from jobtree.check.money.recall import Recall
from jobtree.check.time import cutting, dates, held, promises
from jobtree.world.collector import collector_paused
from jobtree.world.plan import Plan
from jobtree.world.tables.snapshot import Snapshot

__all__ = ["INVARIANTS", "Before", "Violation", "check"]

INVARIANTS: Final[dict[str, str]] = {
    # slots and nodes
    "slot-exclusive": "A slot has one open Active lease; an open Spare one beside it only if that is unfunded.",
    "slot-exists": "A new lease's slots are GPUs of nodes that are there.",
    "slot-free": "Leases and pods without a lease fit the GPUs of every node that gets new leases.",
    "one-node": "A lease lies on one node.",
    "node-flavor": "A run lies on nodes of its flavor.",
    "node-selector": "A run lies on nodes that its selector and its template's nodeSelector match.",
    "node-taint": "A run lies on nodes whose taints it tolerates.",
    "node-open": "Cordoned, NotReady, out-of-service and leaving nodes take nothing new.",
    "node-load": "The pods of new leases fit the CPU, memory and pod count of their nodes.",
    "maintenance": "Nothing starts on a node that is, or before its sure end will be, in maintenance.",
    # gangs
    "gang-complete": "Every group of a run that holds anything is whole.",
    "group-in-domain": "A group lies in one domain, its spares with it.",
    "groups-together": "With allowCrossGroupSpread false all groups lie in one domain.",
    "pod-on-one-node": "Every pod of gpusPerPod GPUs lies on one node.",
    "spares-complete": "A start has its spares; no group has more, and none has parts of a standby pod.",
    "running-has-width": "A run that runs holds at least its least width; one that holds nothing does not run.",
    "width-on-step": "A malleable run has a width of min plus whole steps, and grows no faster than allowed.",
    "co-start": "The runs of a gang start in one cycle or not at all.",
    # payers
    "payer-exists": "A paying envelope is there and not quarantined.",
    "payer-flavor": "An envelope pays for its own flavor.",
    "payer-kin": "A payer is family, or a sponsor that the run lists and may borrow from.",
    "payer-sharing": "An envelope with sharing none pays for its owner only.",
    "payer-lending": "A sponsor's envelope lends, and its list of borrowers names the run's owner.",
    "payer-place": "An envelope pays on nodes that its selector matches.",
    "payer-window": "An envelope pays in its window, or before it where it admits early.",
    "per-run-gpus": "No run takes more of an envelope than perRun.maxGPUs.",
    "per-run-time": "An envelope with perRun.maxTime pays for runs that surely end by then.",
    "use-run-gpus": "No run takes more where a use cap counts than its perRun.maxGPUs.",
    "use-run-time": "A use cap with perRun.maxTime admits runs that surely end by then.",
    "borrow-limit": "Sponsors pay at most maxBorrowGPUs Active GPUs of a run.",
    "array-parallel": "No more indices of an array run at once than its maxParallel.",
    "array-agrees": "An array runs while an index does, and ends as its indices ended when all have.",
    "tree-quota": "A tree of runs stays within its quota, funded or not.",
    "funded-start": "A run starts funded, or wholly unfunded by its own choice.",
    # caps
    "no-overdraft-envelope": "No new claim takes an envelope beyond its concurrency.",
    "no-overdraft-subtree": "No new claim takes a subtree beyond its concurrency.",
    "no-overdraft-aggregate": "No new claim takes an aggregate cap beyond its concurrency.",
    "no-overdraft-lending": "No new loan takes an envelope beyond its lending cap.",
    "no-overdraft-use-cap": "No new claim takes the runs of an owner beyond a use cap's concurrency.",
    "no-overdraft-hours": "Nothing is charged to hours that are gone, in any second since the last cycle.",
    "no-overdraft-credits": "Nothing is charged to credits that are gone, in any second since the last cycle.",
    "look-ahead-hours": "Hours that are left cover every funded claim of a period ahead.",
    "look-ahead-credits": "Credits that are left cover every funded claim of a period ahead.",
    "recall-justified": "Starts fit under each cap with all claims funded there but farther ones that may be recalled.",
    # classes and ledger
    "class-derived": "Ledgers have at every second the class that the order of claims gives.",
    "segments-append-only": "Segments are appended to open leases, each after the last, after the last cycle, and new.",
    "charges-are-ledger": "Charges in a Budget's usage are the integral of the ledger.",
    "prune-due": "Only leases go that closed before the retention, and whose figures nobody still asks for.",
    "balances-whole": "Balances grow by just what the leases that go were charged.",
    "usage-agrees": "A Budget's usage has the GPUs, commitments, headroom and health that leases and caps give.",
    # life
    "unique-names": "No lease has the name of another; nothing is decided twice.",
    "lease-truthful": "A new lease states its run, payer, flavor, start, cycle and reason as they are.",
    "run-may-start": "Only live runs in state Active get leases, whose own can all be read.",
    "follow": "A run starts after every run that it follows has Completed.",
    "owner-namespace": "A run's namespace may charge as its owner.",
    "closed-monotone": "The plan closes leases that are there and open, each once.",
    "closed-has-end-and-reason": "A closure ends its lease when its reason says: after its start, not in future.",
    "closure-justified": "Snapshot and plan bear out the reason of every closure.",
    "cut-justified": "A cut is for a promise that is due and starts where it lies, and takes what its kind may take.",
    "draws-recompute": "Seeds, words and picks are those of the secret and the pools; only who may be drawn is there.",
    "no-cuts": "In mode noCuts nothing is taken from running work.",
    "node-failure": "What lies on a failed node closes.",
    "terminal-holds-nothing": "Every lease left open has a live run that may hold it.",
    "outcome-follows": "Completed and Failed are final, and follow from how the run's leases ended.",
    # promises
    "promise-truthful": "A new promise is of a run that waits, for a time to come, on nodes that are there; and who may"
    " be cut for one still runs then.",
    "promise-payable": "At the time of a promise that is made or moved, some envelope that may pay for it pays.",
    "promise-kept": "A promised time moves later only with a recorded cause, and what was recorded stays.",
    "promise-held": "At a promised start the intended nodes have room for all that is promised there.",
    "promise-state": "A promise's state follows from its run, final ones stay, and no run has two that stand.",
    # statuses
    "conditions-present": "Every Run has its six conditions, each once.",
    "phase-derived": "The phase is the one that the conditions give.",
    "classes-partition-width": "A run's GPUs by class are those of its leases, and add up to its width.",
    "status-agrees": "A run's width, start, limit and lenders are those of its leases.",
    # the plan
    "plan-names-snapshot": "The plan names its snapshot and Policy, and when the world last changed.",
    "plan-sorted": "The plan's lists are in order.",
    "stage-value": "A stage's value is what the plan's leases give.",
    "stage-bound": "A stage's bound is on the right side of its value.",
    "wait-or-start": "Every run that may start does, or is told why it waits; never both.",
    "wait-words": "A wait has a reason, a sentence, and positive shortages, largest first.",
}
"""Every rule that the checker knows, with what it means; the names of spec §9 where it has one."""


def check(snapshot: Snapshot, plan: Plan, known: Before | None = None) -> list[Violation]:
    """All violations of a plan for a snapshot, sorted and each once; empty for a plan that may be written.

    ``known``: what of the check needs no plan, where it has been done; of another snapshot or second it is done anew.
    """
    with collector_paused():
        before = known if known is not None and known.is_of(snapshot, plan.at) else Before.of(snapshot, plan.at)
        return sorted(_violations(Case(before.told, plan), before))


def _violations(case: Case, before: Before) -> set[Violation]:
    clashes = {*starts.clashes(case)}
    if clashes:
        return clashes
    caps = before.caps
    entered = Ledger(case, caps, before.entered)
    claims = Claims(case, caps)
    present = Present(claims, entered)
    recalls = Recall(claims, entered, present, case.changed)
    failed = Failures(case)
    return {
        *slots.violations(case, present),
        *eligibility.violations(case),
        *shape.violations(case),
        *payers.violations(case, caps),
        *trees.violations(case),
        *arrays.violations(case),
        *funded.violations(case, present),
        *ahead.violations(case, caps, entered, present, recalls.before),
        *ledger.violations(case),
        *between.violations(case, entered),
        *starts.violations(case),
        *closures.violations(case, failed),
        *cutting.violations(case),
        *failures.violations(case, failed),
        *fates.violations(case),
        *statuses.violations(case, present),
        *promises.violations(case),
        *held.violations(case),
        *dates.violations(case),
        *pruning.violations(case),
        *usage.violations(case, caps, entered, present),
        *recalls.violations(),
        *record.violations(case, claims, recalls),
    }
