"""Room for promises: nothing that the plan leaves takes what is promised (spec §5, held slices).

At each promised start, on the nodes of promises that hold then and share some, directly or by others between them,

    Σ GPUs promised  ≤  Σ GPUs of the nodes − what lasts until then − pods that are nobody's

where a lease lasts unless its run has a limit, an estimate or a reported end by then, or may be cut for one of these
promises. Whether it may is judged when it is made (`jobtree.check.time.cutting`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from jobtree.api.values.counted import counted
from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held, RunKey
from jobtree.check.case.violation import Violation
from jobtree.check.time.promises import Promise, after
from jobtree.world.tables import values

NEVER: Final = 1 << 60


def violations(case: Case) -> Iterator[Violation]:
    """At every promised start there is room on the intended nodes for all that is promised there then."""
    standing = [each for each in after(case) if each.stands and each.start > case.at]
    if not standing:
        return
    ends, others = _Ends(case), case.without_lease
    leases: dict[str, list[Held]] = {}
    for lease in (*case.held, *case.new):
        if lease.active:
            leases.setdefault(lease.node, []).append(lease)
    for start in sorted({each.start for each in standing}):
        holding = [each for each in standing if each.start <= start < ends.of_promise(each)]
        for mine in _sharing(holding):
            nodes = {node for each in mine for node in each.nodes if node in case.nodes}
            cut = {run for each in mine for run in _cut_for(each)}
            taken = sum(
                lease.gpus
                for node in nodes
                for lease in leases.get(node, ())
                if "/".join(lease.run_key) not in cut and ends.of(lease.run_key) > start
            )
            room = sum(max(0, case.nodes[node].gpus - others.get(node, 0)) for node in nodes) - taken
            asked = sum(run.least for each in mine if (run := case.run_of(each.run)) is not None)
            if asked > room:
                who = ", ".join(sorted("/".join(each.run) for each in mine))
                sentence = (
                    f"{counted(asked, 'GPU')} promised at {start} on {counted(len(nodes), 'node')} with room for {room}"
                )
                yield Violation("promise-held", f"Run {who}", sentence)


def _cut_for(promise: Promise) -> set[str]:
    """Runs that may be cut for it, as namespace/name."""
    forecast = promise.status.forecast
    return set() if forecast is None else {each.run for each in forecast.conflict_set}


def _sharing(promises: Sequence[Promise]) -> list[list[Promise]]:
    """Those that have nodes in common, with others between them or without."""
    found: list[tuple[set[str], list[Promise]]] = []
    for promise in promises:
        nodes, mine, apart = {*promise.nodes}, [promise], []
        for group in found:
            if nodes.isdisjoint(group[0]):
                apart.append(group)
            else:
                nodes, mine = nodes | group[0], mine + group[1]
        found = [*apart, (nodes, mine)]
    return [mine for _, mine in found]


class _Ends:
    """When runs end by all that is known, in Unix seconds."""

    def __init__(self, case: Case) -> None:
        self.case = case
        table = case.snapshot.tables["runs"]
        told = zip(values.optional_ints(table, "eta"), values.optional_ints(table, "expected"), strict=True)
        self.told = dict(zip(values.keys(table), told, strict=True))
        self.found: dict[RunKey, int] = {}

    def of(self, key: RunKey) -> int:
        """Of a run that holds leases."""
        if key not in self.found:
            at, left = self.case.at, self.case.time_left(key)
            started = at if key in self.case.starting else self.case.started(key)
            eta, expected = self.told.get(key, (None, None))
            guess = eta if eta is not None else None if expected is None else (started or at) + expected
            known = [at + left] if left is not None else []
            known += [guess] if guess is not None and guess > at else []
            self.found[key] = min(known, default=NEVER)
        return self.found[key]

    def of_promise(self, promise: Promise) -> int:
        """Of a promised run, started as promised."""
        run = self.case.run_of(promise.run)
        limit = None if run is None else run.time_limit or self.told.get(promise.run, (None, None))[1]
        return NEVER if limit is None else promise.start + limit
