"""`state` and `leases`: what is there, straight from the cluster's objects."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, get_args

from jobtree.api.kinds.run import OVER, Phase
from jobtree.api.values.counted import counted, named
from jobtree.api.values.errors import Refusal
from jobtree.api.values.nearest import did_you_mean
from jobtree.api.values.scalars import DAY, Time
from jobtree.cli.common import lookup, owners, show
from jobtree.cli.common.args import Commands, Options, command, everywhere
from jobtree.world.naming import arrays

if TYPE_CHECKING:
    from jobtree.api import Lease, Run
    from jobtree.world.reading.intake import Intake

KEPT: Final = DAY
"""Seconds for which `state` lists a run that has ended."""
_SLURM = {"Pending": "PD", "Waiting": "PD", "Running": "R", "Completed": "CD", "Failed": "F"}
_SLURM_FAILURES = {"Cancelled": "CA", "TimeLimit": "TO"}


def add(commands: Commands) -> None:
    """Declares the commands."""
    state = command(
        commands, "state", _state, "list runs", example="kubectl runs --state cluster.yaml state --all -o wide"
    )
    which = state.add_mutually_exclusive_group()
    which.add_argument(
        "--all", "-A", "--all-namespaces", action="store_true",
        help="in every namespace, and those that ended over a day ago",
    )  # fmt: skip
    which.add_argument("--owner", metavar="OWNER", help=f"in every namespace, of {owners.HELP}")
    state.add_argument(
        "--phase", action="append", choices=get_args(Phase), metavar="PHASE",
        help=f"only those that are {', '.join(get_args(Phase))}, however long ago; may be given several times",
    )  # fmt: skip
    leases = command(
        commands,
        "leases",
        _leases,
        "list leases: who used which GPUs, who paid, from when to when",
        example="kubectl runs --state cluster.yaml leases --owner org:ai",
    )
    which = leases.add_mutually_exclusive_group()
    which.add_argument(
        "run", nargs="?", metavar="RUN|SLOTS",
        help="only of this run, or on slots as `a20#0-7` in every namespace (default: of all runs in the namespace)",
    )  # fmt: skip
    everywhere(which)
    leases.add_argument(
        "--owner", metavar="OWNER", help=f"in every namespace, where the run or the payer is of {owners.HELP}"
    )
    leases.add_argument("--envelope", metavar="BUDGET/ENVELOPE", help="in every namespace, that this envelope pays")


def slurm_code(run: Run) -> str:
    """Slurm's word for the run's phase: PD, R, CD, F, CA or TO."""
    said = lookup.speaker(run)
    reason = said.reason if said else ""
    return _SLURM_FAILURES.get(reason, "F") if lookup.phase(run) == "Failed" else _SLURM[lookup.phase(run)]


def _state(options: Options, given: argparse.Namespace) -> int:
    from exporters.plans.nodelist import by_names, compress
    from exporters.plans.plain import document
    from exporters.plans.summary import table

    intake = options.intake()
    show.set_aside(intake)
    everywhere = given.all or given.owner is not None
    is_meant = owners.meant(intake, given.owner)
    runs = [
        run
        for run in intake.runs
        if (everywhere or run.namespace == (options.namespace or intake.namespace))
        and is_meant(run.spec.owner)
        and (given.phase is None or lookup.phase(run) in given.phase)
    ]
    whole = given.all or given.phase is not None
    listed = runs if whole else [run for run in runs if not _is_long_over(run, options.time)]
    if hidden := len(runs) - len(listed):
        show.complain(f"{counted(hidden, 'run')} that ended over a day ago left out: --all or --phase lists them")
    runs = listed
    runs.sort(key=lambda run: by_names((run.namespace, run.name)))
    if options.output in {"json", "yaml"}:
        show.data(show.listing([document(run) for run in runs]), options.output)
        return 0
    held = lookup.open_leases(intake.leases, lookup.objects(intake))
    rows = []
    for run in runs:
        leases = held.get((run.namespace, run.name), [])
        said = lookup.speaker(run)
        nodes = compress(lease.spec.node for lease in leases)
        code = [slurm_code(run)] if options.output == "wide" else []
        place = [run.namespace] if everywhere else []
        rows.append(
            (*place, run.name, run.spec.owner, run.spec.resources.gpu_type or "cpu", lookup.phase(run), *code,
             _width(run, leases), _age(run, options.time), nodes or "-",
             lookup.underway(run, leases) or _indices(run) or _unfunded(leases) or (said and said.reason) or "-",
             _eta(run))
        )  # fmt: skip
    code = ["ST"] if options.output == "wide" else []
    place = ["NAMESPACE"] if everywhere else []
    header = (*place, "NAME", "OWNER", "FLAVOR", "PHASE", *code, "WIDTH", "AGE", "NODES", "REASON", "ETA")
    show.say(*(table(header, rows) if rows else [_none(options, given, intake)]))
    return 0


def _is_long_over(run: Run, at: int) -> bool:
    ended = run.status.ended
    return lookup.phase(run) in OVER and ended is not None and at - ended > KEPT


def _none(options: Options, given: argparse.Namespace, intake: Intake) -> str:
    """What to say where no run is listed, and where there are some."""
    kind = f"{' or '.join(given.phase)} runs" if given.phase else "runs"
    if given.owner is not None:
        return f"No {kind} of {given.owner}."
    here = options.namespace or intake.namespace
    if not given.all and (others := elsewhere(here, (run.namespace for run in intake.runs), "--all or -n")):
        return f"No {kind}: {others}"
    found = f"No {kind} found{'' if given.all else f' in namespace {here}'}."
    return found if intake.runs else f"{found} Submit one: `kubectl runs {options.reach}submit -f FILE`"


def elsewhere(here: str, places: Iterable[str], ask: str) -> str:
    """Where else there are some, and how to ask for them; empty where there are none."""
    from exporters.plans.nodelist import natural

    others = Counter(place for place in places if place != here)
    spaces = counted(len(others), "other namespace")
    names = named(sorted(others, key=natural))
    return f"none in {here}; {others.total()} in {spaces}: {ask} ({names})" if others else ""


def _width(run: Run, leases: list[Lease]) -> str:
    if run.spec.resources.is_cpu:
        return "-"
    return f"{lookup.active_gpus(leases)}/{lookup.wanted(run)}"


def _indices(run: Run) -> str:
    """How far an array has come: ``3 running, 4 completed, 1 failed of 10``; empty for other runs."""
    if run.spec.array is None:
        return ""
    counts = Counter(each.phase for each in arrays.known(run).values())
    said = [f"{counts[phase]} {phase.lower()}" for phase in ("Running", "Completed", "Failed")]
    why = lookup.speaker(run)
    waits = f" ({why.reason})" if why is not None and lookup.phase(run) in {"Pending", "Waiting"} else ""
    return f"{', '.join(said)} of {run.spec.array.size}{waits}"


def _unfunded(leases: list[Lease]) -> str:
    """``unfunded``, or how many of its GPUs are; empty where somebody pays for all."""
    gpus, held = lookup.unfunded_gpus(leases), lookup.active_gpus(leases)
    return "" if not gpus else "unfunded" if gpus == held else f"{gpus} of {held} unfunded"


def _age(run: Run, at: int) -> str:
    created = run.metadata.creation_timestamp
    return "-" if created is None else show.age(at - created)


def _eta(run: Run) -> str:
    estimate = run.status.eta.p50 if run.status.eta else None
    when = run.status.earliest_start or estimate
    return "-" if when is None else str(when)


def _leases(options: Options, given: argparse.Namespace) -> int:
    from exporters.plans.plain import document
    from exporters.plans.summary import payer

    intake = options.intake()
    show.set_aside(intake)
    leases = list(intake.leases)
    here = options.namespace or intake.namespace
    on_slots = given.run is not None and "#" in given.run
    spread = given.all or on_slots or (given.run is None and bool(given.owner or given.envelope))
    if on_slots:
        is_there = _on_slots(intake, given.run)
        leases = [lease for lease in leases if is_there(lease)]
    elif given.run is not None:
        is_holder = lookup.holders(intake, lookup.find_holder(intake, given.run, options.namespace))
        leases = [lease for lease in leases if is_holder(lease.run_key)]
    elif not spread:
        leases = [lease for lease in leases if lease.namespace == here]
    if given.owner is not None:
        is_meant = owners.meant(intake, given.owner)
        leases = [lease for lease in leases if is_meant(lease.spec.owner) or is_meant(lease.spec.run_owner)]
    if given.envelope is not None:
        known = {f"{budget.name}/{envelope.name}" for budget in intake.budgets for envelope in budget.spec.envelopes}
        known |= {payer(lease) for lease in leases if lease.spec.paid_by is not None}
        if given.envelope not in known:
            raise Refusal(f"there is no envelope {given.envelope}{_envelopes(given.envelope, known)}")
        leases = [lease for lease in leases if payer(lease) == given.envelope]
    leases = in_order(leases)
    if options.output in {"json", "yaml"}:
        show.data(show.listing([document(lease) for lease in leases]), options.output)
        return 0
    others = "" if spread or given.run else elsewhere(here, (lease.namespace for lease in intake.leases), "-A or -n")
    none = f"No leases: {others}" if others else "No leases found."
    show.say(*(lease_table(leases, everywhere=spread) if leases else [none]))
    return 0


def _on_slots(intake: Intake, text: str) -> Callable[[Lease], bool]:
    """Whether a lease has one of the slots, ``a20#3`` or ``a20#0-7``. Raises Refusal for a text that is no slots."""
    from exporters.plans.nodelist import expand
    from jobtree.api.kinds.base import MAX_NODE_GPUS

    node, _, ordinals = text.partition("#")
    wanted = {int(each) for each in expand(ordinals, {str(number) for number in range(MAX_NODE_GPUS)})}
    if not wanted:
        raise Refusal(f"{text} is no slot; allowed is such as a20#0-7")
    known = {each.metadata.name for each in intake.nodes} | {lease.spec.node for lease in intake.leases}
    if node not in known:
        raise Refusal(f"there is no node {node}{did_you_mean(node, known)}")
    return lambda lease: lease.spec.node == node and not wanted.isdisjoint(lease.spec.ordinals)


def in_order(leases: Iterable[Lease]) -> list[Lease]:
    """By run, then as they came; those of one moment by group, role and slots, numbers as numbers."""
    from exporters.plans.nodelist import by_names

    return sorted(
        leases,
        key=lambda lease: (
            by_names(lease.run_key),
            lease.spec.interval.start,
            lease.spec.group,
            lease.spec.slice.role,
            by_names([lease.spec.node]),
            lease.spec.ordinals,
            lease.name,
        ),
    )


def lease_table(leases: Iterable[Lease], *, everywhere: bool = False) -> list[str]:
    """Leases as a table; with their namespace where they may be of any."""
    from exporters.plans.summary import payer, table

    header = (
        *(["NAMESPACE"] if everywhere else []),
        "RUN",
        "GROUP",
        "ROLE",
        "NODES",
        "PAYER",
        "START",
        "END",
        "REASON",
    )
    rows = [
        (*([lease.namespace] if everywhere else []), lease.spec.run_ref.run_name, str(lease.spec.group),
         lease.spec.slice.role, slots(lease),
         f"{payer(lease)} (unfunded)" if lookup.is_unfunded(lease) else payer(lease),
         str(lease.spec.interval.start), _time(lease.status.ended), lease.status.closure_reason or lease.spec.reason)
        for lease in leases
    ]  # fmt: skip
    return table(header, rows)


def _envelopes(name: str, known: set[str]) -> str:
    """The one that was probably meant, else those that there are."""
    from exporters.plans.nodelist import natural

    there = f"; there are {named(sorted(known, key=natural))}" if known else ": no Budget has one"
    return did_you_mean(name, known) or there


def _time(when: Time | None) -> str:
    return "-" if when is None else str(when)


def slots(lease: Lease) -> str:
    """The GPUs of a lease: ``b01#0-3,6``."""
    from exporters.plans.nodelist import compress

    return f"{lease.spec.node}#{compress(str(ordinal) for ordinal in lease.spec.ordinals)}"
