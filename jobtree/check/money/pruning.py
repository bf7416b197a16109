"""Leases that go, and what the balances grow by (spec §3.6): nothing is ever refunded.

Charges are compared as steps: by how many milli-GPUs what is paid for goes up or down at which second.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held
from jobtree.check.case.violation import Violation
from jobtree.check.money.ledger import weighed

Title = tuple[object, ...]
_RECORD: Final = ("ConfigMap", "jobtree-system", "jobtree-balances")
"""The balances; further parts have a number after the name."""


def violations(case: Case) -> Iterator[Violation]:
    """Each lease that goes for itself, then what they were charged together."""
    names = [(each.namespace, each.name) for each in case.plan.pruned]
    for name, times in Counter(names).items():
        if times > 1:
            yield Violation.of_lease("unique-names", name, f"the plan prunes it {times} times")
    for broken in sorted(filter(_is_record, case.quarantined)) if names else ():
        yield Violation("prune-due", " ".join([broken[0], "/".join(broken[1:])]), "leases go, and it cannot be read")
    for name in names:
        lease = case.leases.get(name)
        why = "is not there" if lease is None else _needed(case, lease)
        if why:
            yield Violation.of_lease("prune-due", name, f"it goes, and it {why}")
    yield from _sums(case, [lease for name in names if (lease := case.leases.get(name)) is not None])


def _is_record(found: tuple[str, str, str]) -> bool:
    name, _, number = found[2].rpartition("-")
    return found == _RECORD or ((*found[:2], name) == _RECORD and number.isdecimal())


def _needed(case: Case, lease: Held) -> str:
    """Why it may not go."""
    kept_until = case.at - int(case.policy.retention.leases)
    if not lease.closed or lease.ended is None:
        return "is open"
    if lease.ended > kept_until:
        return f"ended at {lease.ended}, after {kept_until}: its retention is not over"
    run = case.run_of(lease.run_key)
    line = case.line(lease.run_key) if run is not None and case.is_of(lease, run) else []
    if any(above.quota_gpu_milliseconds is not None for above in line):
        return "counts in the quota of a tree of runs"
    followers = (run for run in case.runs.values() if run.namespace == lease.namespace and lease.run in run.follow)
    if any(run.outcome is None for run in followers):
        return "tells a run that follows it how it ended"
    return ""


def _sums(case: Case, leases: list[Held]) -> Iterator[Violation]:
    expected: dict[Title, Counter[int]] = defaultdict(Counter)
    for lease in leases:
        for title, milli, since, until in _charges(case, lease):
            expected[title].update({since: milli})
            expected[title].update({until: -milli})
    given: dict[Title, Counter[int]] = defaultdict(Counter)
    for account in case.plan.settled:
        fields = msgspec.structs.asdict(account)
        spans, place = fields.pop("spans"), fields.pop("place")
        for since, until, milli in spans:
            given[*fields.values(), _labels(place)].update({since: milli})
            given[*fields.values(), _labels(place)].update({until: -milli})
    for title in sorted({*expected, *given}, key=str):
        told, true = _steps(given[title]), _steps(expected[title])
        if told != true:
            sentence = f"it grows by the steps {told}, and the leases that go were charged {true}"
            yield Violation("balances-whole", f"Envelope {title[0]}/{title[1]}", sentence)


def _charges(case: Case, lease: Held) -> Iterator[tuple[Title, int, int, int]]:
    """(title, milli-GPUs, from, to) of its funded seconds."""
    payer = lease.payer
    if payer is None or lease.ended is None:
        return
    node = case.nodes.get(lease.node)
    selectors = [*(each.selector for each in case.envelopes.values()), *(cap.selector for cap in case.use_caps)]
    asked = {key for selector in selectors for key, _ in selector}
    labels = None if node is None else dict(node.labels)
    place = None if labels is None else tuple(sorted((key, labels.get(key)) for key in asked))
    funded = [entry for entry in lease.funding if entry[0] != "unfunded"]
    for name, since, until, rate in funded:
        lent = funded[0][0] == "borrowed"
        whose = (payer.budget, payer.envelope, payer.owner, lease.run_owner, lease.flavor, name, lease.role)
        for milli, low, high in weighed(case, lease, since, lease.ended if until is None else until):
            if low < high:
                yield (*whose, lent, rate or 0, place), milli, low, high


def _labels(place: str) -> tuple[tuple[str, str | None], ...] | None:
    return tuple(sorted(msgspec.json.decode(place).items())) if place else None


def _steps(turns: Mapping[int, int]) -> list[tuple[int, int]]:
    return sorted((at, milli) for at, milli in turns.items() if milli)
