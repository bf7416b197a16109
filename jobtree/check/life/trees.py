"""Trees of runs and co-start gangs (spec §1 ``parent``, ``quota``, ``gang``)."""

from collections import defaultdict
from collections.abc import Iterator

from jobtree.api.values.counted import counted
from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held, Run, RunKey
from jobtree.check.case.violation import Violation


def violations(case: Case) -> Iterator[Violation]:
    """Quotas of every tree that the plan adds to, and gangs of every run that it starts."""
    yield from _quotas(case)
    yield from _gangs(case)


def _quotas(case: Case) -> Iterator[Violation]:
    growing = {
        run.key
        for key, new in case.new_by.items()
        if any(lease.active and lease.reason != "Swap" for lease in new)  # that carries on what runs
        for run in case.line(key)
        if run.quota_gpus is not None or run.quota_gpu_milliseconds is not None
    }
    if not growing:
        return
    width: dict[RunKey, int] = defaultdict(int)
    hours: dict[RunKey, int] = defaultdict(int)
    for lease in (*case.leases.values(), *case.new):
        run = case.run_of(lease.run_key)
        if run is None or not lease.active or not case.is_of(lease, run):
            continue
        is_open = not lease.closed and lease.key not in case.closing
        charge = _used(case, lease) + (1000 * lease.gpus * _ahead(case, lease) if is_open else 0)
        for above in case.line(lease.run_key):
            width[above.key] += lease.gpus if is_open else 0
            hours[above.key] += charge
    for key in sorted(growing):
        run = case.runs[key]
        if run.quota_gpus is not None and width[key] > run.quota_gpus:
            sentence = (
                f"the runs of its tree hold {counted(width[key], 'GPU')}, more than its quota of {run.quota_gpus}"
            )
            yield Violation.of_run("tree-quota", key, sentence)
        limit = run.quota_gpu_milliseconds
        if limit is not None and hours[key] > limit:
            sentence = (
                f"its tree has used or needs ahead {hours[key]} milli-GPU-seconds, more than its quota of {limit}"
            )
            yield Violation.of_run("tree-quota", key, sentence)


def _used(case: Case, lease: Held) -> int:
    """Milli-GPU-seconds held so far, funded or not."""
    closure = case.closing.get(lease.key)
    end = lease.ended if lease.ended is not None else closure.ended if closure else case.at
    return 1000 * lease.gpus * max(0, min(case.at, end) - lease.start)


def _ahead(case: Case, lease: Held) -> int:
    left = case.time_left(lease.run_key)
    period = int(case.policy.accounting_period)
    return period if left is None else min(period, left)


def _gangs(case: Case) -> Iterator[Violation]:
    """With a member that starts, ``size`` members have started: now, before, or to their end."""
    members: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in case.runs.values():
        if run.gang:
            members[run.namespace, run.gang].append(run)
    for (namespace, name), runs in members.items():
        starting = [run for run in runs if run.key in case.starting or (run.total == 0 and case.begins(run.key))]
        done = {run.key for run in runs if "Completed" in (run.outcome, case.phase_after(run.key))}
        there = [run for run in runs if case.after(run.key) or run.key in done or _cpu_started(case, run)]
        for run in starting:
            if run.gang_size is not None and len(there) < run.gang_size:
                gang = f"{counted(run.gang_size, 'run')} of gang {name}"
                sentence = f"it starts with {len(there)} of the {gang}: all start or none"
                yield Violation.of_run("co-start", (namespace, run.name), sentence)


def _cpu_started(case: Case, run: Run) -> bool:
    return run.total == 0 and case.phase_after(run.key) in ("Running", "Completed")
