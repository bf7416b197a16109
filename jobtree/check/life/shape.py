"""Groups, pods, spares and widths of every run whose leases the plan touches (spec §2 Lowering, §9 gang-complete).

    with groupGPUs        groups of that size, the last of a fixed run may be smaller
    without               a fixed run is one group; a malleable one a group of min, and one of step for each step above

Each group lies in one domain with its spares; with ``gpusPerPod`` every pod lies on one node.
"""

from collections import defaultdict
from collections.abc import Iterator

from jobtree.api.values.counted import counted
from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held, Run, RunKey
from jobtree.check.case.unplanned import Unplanned
from jobtree.check.case.violation import Violation


def violations(case: Case) -> Iterator[Violation]:
    """Runs that the plan touches and that hold something afterwards are whole; no run is left that lacks something.

    One that gets nothing new and was of no shape before is the cluster's to repair.
    """
    for key in case.touched:
        run = case.run_of(key)
        leases = case.after(key)
        if run is not None and run.total and leases:
            found = [*_shape(case, key, run, leases)]
            if found and (key in case.new_by or not any(_shape(case, key, run, case.open_by[key]))):
                yield from found
    for key, leases in case.held_by.items():
        if key not in case.new_by and case.told.lacking[key]:
            sentence = f"it would run on with {counted(width(leases), 'GPU')}, and lacks others of its width or groups"
            yield Violation.of_run("running-has-width", key, sentence)


def _shape(case: Case, key: RunKey, run: Run, leases: list[Held]) -> Iterator[Violation]:
    yield from _width(case, key, run, leases)
    yield from _groups(case, key, run, leases)
    yield from _spares(case, key, run, leases)
    yield from _domains(case, key, run, leases)
    yield from _pods(key, run, leases)


def lacks(case: Unplanned, key: RunKey) -> bool:
    """Whether what a run holds before the plan is less than its least width, or than groups of which it holds some.

    Nothing is known where a Lease that may be its own, by its name, cannot be read, or the Run itself.
    """
    run = case.run_of(key)
    if run is None or not run.total:
        return False
    held: dict[int, int] = defaultdict(int)
    for lease in case.open_by.get(key, ()):
        if case.is_of(lease, run):
            held[lease.group] += lease.gpus if lease.active else 0
    less = sum(held.values()) < run.least or any(held[group] < group_size(run, group) for group in held)
    return bool(held) and less and not case.may_be_unread(run)


def width(leases: list[Held]) -> int:
    """Active GPUs."""
    return sum(lease.gpus for lease in leases if lease.active)


def _width(case: Case, key: RunKey, run: Run, leases: list[Held]) -> Iterator[Violation]:
    held = width(leases)
    if run.min_total is None:
        if held != run.total:
            yield Violation.of_run(
                "running-has-width", key, f"it would run on {counted(held, 'GPU')}; its width is {run.total}"
            )
        return
    least, most = run.min_total, run.max_total or run.min_total
    if not least <= held <= most:
        yield Violation.of_run(
            "running-has-width", key, f"it would run on {counted(held, 'GPU')}; its widths are {least} to {most}"
        )
    if run.step and (held - least) % run.step:
        yield Violation.of_run(
            "width-on-step", key, f"a width of {held} is no whole number of steps of {run.step} above {least}"
        )
    if key in case.starting and held > run.total:
        yield Violation.of_run(
            "width-on-step", key, f"it starts on {counted(held, 'GPU')}, more than its totalGPUs of {run.total}"
        )
    grown = width([lease for lease in case.new_by.get(key, ()) if lease.reason == "Grow"])
    if grown:
        steps = -(-grown // (run.step or 1))
        allowed = _most_steps(case, key)
        if held > (run.desired or most) or steps > allowed:
            words = f"it grows by {counted(grown, 'GPU')} to {held}"
            sentence = f"{words}, wanting {run.desired}, {counted(allowed, 'step')} a cycle at most"
            yield Violation.of_run("width-on-step", key, sentence)


def _most_steps(case: Case, key: RunKey) -> int:
    """Steps by which a run may grow now: none where the Policy leaves growth out, something of it is unfunded, or
    something of it ends in this very plan for which no swap comes.
    """
    ending = any(lease.key in case.closing for lease in case.open_by.get(key, ()))
    swapped = any(lease.reason == "Swap" for lease in case.new_by.get(key, ()))
    unfunded = any(case.is_unfunded(lease) for lease in case.held_by.get(key, ()))
    if "growth" not in case.policy.stages or unfunded or (ending and not swapped):
        return 0
    return case.policy.elasticity.max_grow_steps_per_cycle


def group_size(run: Run, group: int) -> int:
    """Active GPUs of one group of a run; 0 where the run has no such group at any width."""
    if run.group:
        most = run.max_total or run.total
        return max(0, min(run.group, most - group * run.group))
    if run.min_total is None:
        return run.total if group == 0 else 0
    if group == 0:
        return run.min_total
    steps = ((run.max_total or run.min_total) - run.min_total) // (run.step or 1)
    return run.step or 0 if group <= steps else 0


def _groups(case: Case, key: RunKey, run: Run, leases: list[Held]) -> Iterator[Violation]:
    sizes: dict[int, int] = defaultdict(int)
    for lease in leases:
        if lease.active:
            sizes[lease.group] += lease.gpus
    for group in sorted(sizes):
        wanted = group_size(run, group)
        if sizes[group] != wanted:
            yield Violation.of_run(
                "gang-complete", key, f"its group {group} would have {counted(sizes[group], 'GPU')} of {wanted}"
            )
    if key in case.starting and sorted(sizes) != list(range(len(sizes))):
        yield Violation.of_run(
            "gang-complete", key, f"it starts with groups {sorted(sizes)}, which are not numbered from 0"
        )
    if not run.group and 0 not in sizes:
        yield Violation.of_run("gang-complete", key, "its group 0, the least width, is missing")


def _spares(case: Case, key: RunKey, run: Run, leases: list[Held]) -> Iterator[Violation]:
    """A start has all spares of its groups; a running run may have lost some, never whole pods' parts."""
    unit = run.pod or 1
    held: dict[int, int] = defaultdict(int)
    for lease in leases:
        held[lease.group] += 0 if lease.active else lease.gpus
    for group in sorted(held):
        wanted = run.spares * unit
        short = key in case.starting and held[group] != wanted
        if short or held[group] > wanted or held[group] % unit:
            yield Violation.of_run(
                "spares-complete", key, f"its group {group} would have {counted(held[group], 'spare GPU')} of {wanted}"
            )


def _domains(case: Case, key: RunKey, run: Run, leases: list[Held]) -> Iterator[Violation]:
    """Where a lease is new, its group's whole place counts; nodes that are gone have none."""
    places: dict[int, set[tuple[str, ...]]] = defaultdict(set)
    for lease in leases:
        if lease.node in case.nodes:
            places[lease.group].add(case.nodes[lease.node].place)
    for group in sorted({lease.group for lease in case.new_by.get(key, ())}):
        if len(places[group]) > 1:
            names = ", ".join("/".join(place) for place in sorted(places[group]))
            yield Violation.of_run(
                "group-in-domain",
                key,
                f"its group {group} would lie in {counted(len(places[group]), 'domain')}: {names}",
            )
    together = {place for group in places.values() for place in group}
    if not run.spread and len(together) > 1 and key in case.new_by:
        sentence = f"its groups would lie in {counted(len(together), 'domain')}, and allowCrossGroupSpread is false"
        yield Violation.of_run("groups-together", key, sentence)


def _pods(key: RunKey, run: Run, leases: list[Held]) -> Iterator[Violation]:
    if not run.pod:
        return
    chunks: dict[tuple[int, str, str], int] = defaultdict(int)
    for lease in leases:
        chunks[lease.group, lease.node, lease.role] += lease.gpus
    for (group, node, role), gpus in sorted(chunks.items()):
        if gpus % run.pod:
            sentence = (
                f"group {group} would have {counted(gpus, f'{role} GPU')} on node {node}, no whole pods of {run.pod}"
            )
            yield Violation.of_run("pod-on-one-node", key, sentence)
