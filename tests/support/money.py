"""Money as a state file shows it: what every cap was charged and carried, second by second (spec §3.4, §3.6, §9).

On plain documents, without any code of Jobtree's. What envelopes that are not there paid counts in the subtrees above.
Budgets are those that a cycle left word of (ConfigMap
`jobtree-budgets`): those between two cycles as the first of them saw them. Only at the seconds at which a class changes
can more be carried than before, and what is charged only grows, so these seconds and the last one are enough.
Milli-GPUs, milli-GPU-seconds, and for credits these times millicredits per GPU-hour.
"""

import base64
import contextlib
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.support.times import unix

Document = dict[str, Any]
Payer = tuple[str, str, str, str]
"""(Budget, envelope, owner, flavor)."""
Span = tuple[int, int, int, int]
"""(from, to, milli-GPUs, millicredits per GPU-hour)."""


@dataclass(frozen=True)
class Payment:
    """What a lease, or an account of pruned ones, was paid. ``labels``: of its node, None where nobody knows."""

    payer: Payer
    owner: str
    run_owner: str
    flavor: str
    labels: Document | None
    lent: bool
    spans: list[Span]

    def width(self, at: int) -> int:
        """Milli-GPUs in a second."""
        return sum(milli for since, until, milli, _ in self.spans if since <= at < until)

    def charge(self, since: int | None, rated: bool) -> int:
        """From ``since`` on."""
        low = since or 0
        return sum(
            milli * max(0, until - max(begin, low)) * (rate if rated else 1) for begin, until, milli, rate in self.spans
        )


@dataclass(frozen=True)
class Cap:
    """A limit on what ``counts``, charges from ``since`` of a payment on. ``measure``: GPUs, hours or credits."""

    name: str
    measure: str
    limit: int
    counts: Callable[[Payment], bool]
    since: Callable[[Payment], int | None]


class Law:
    """Budgets, rates and discounts that a cycle saw."""

    def __init__(self, data: dict[str, str]) -> None:
        packed = data.get("budgets.zlib")
        text = data["budgets"] if packed is None else zlib.decompress(base64.b64decode(packed)).decode()
        policy = json.loads(data["policy"])
        self.budgets: dict[str, Any] = json.loads(text)
        self.discounts = [
            (unix(each["since"]) if "since" in each else 0, each["milli"]) for each in policy["discounts"]
        ]
        self.everyone = {spec["owner"] for spec in self.budgets.values()}
        self.owners = {spec["owner"] for spec in self.budgets.values() if spec.get("envelopes")}
        self.envelopes = {
            (name, each["name"], spec["owner"], each["flavor"]): each
            for name, spec in self.budgets.items()
            for each in spec.get("envelopes", ())
        }
        self._named: dict[str, set[str]] = {}
        for spec in self.budgets.values():
            if "parents" in spec:
                self._named.setdefault(spec["owner"], set()).update(spec["parents"])

    def line(self, owner: str, by_path: set[str] | None = None) -> set[str]:
        """An owner and all above it. ``by_path``: owners of whom others descend by path, those with an envelope."""
        holders = self.owners if by_path is None else by_path
        found, todo = {owner}, [owner]
        while todo:
            one = todo.pop()
            parts = one.split(":")
            prefixes = (":".join(parts[:length]) for length in range(len(parts) - 1, 0, -1))
            nearest = next((prefix for prefix in prefixes if prefix in holders), None)
            above = self._named.get(one, set() if nearest is None else {nearest}) - found
            found |= above
            todo += above
        return found

    def is_loan(self, payment: Payment) -> bool:
        """A stranger pays, or a relative that does not share and lent from the start."""
        if payment.payer not in self.envelopes:
            return False
        owner, borrower = payment.owner, payment.run_owner
        if not self.line(owner) & self.line(borrower):
            return True
        envelope = self.envelopes[payment.payer]
        spends = "maxGPUHours" in envelope or "maxCredits" in envelope
        shares = envelope.get("sharing", "none" if spends else "family") == "family"
        return owner != borrower and not shares and payment.lent

    def caps(self, at: int) -> Iterator[Cap]:
        """All of them, with the windows that are open in a second."""
        for key, envelope in self.envelopes.items():
            start, end = (unix(envelope[name]) if name in envelope else None for name in ("start", "end"))
            opened = (start is None or start <= at) and (end is None or at < end)
            counts = self._subtree(key, envelope) if envelope.get("scope") == "subtree" and opened else _own(key)
            own = {"GPUs": envelope["concurrency"], **_amounts(envelope)}
            yield from _caps("/".join(key[:2]), own, counts, lambda _, start=start: start)
            lending = envelope.get("lending", {})
            lent = {"GPUs": lending.get("maxConcurrency"), "hours": lending.get("maxGPUHours")}
            yield from _caps(f"loans of {'/'.join(key[:2])}", lent, self._loans(key), lambda _, start=start: start)
        for name, spec in self.budgets.items():
            for cap in spec.get("aggregateCaps", ()):
                members = {key for key in self.envelopes if key[0] == name and key[1] in cap["envelopes"]}
                limits = {"GPUs": cap.get("maxConcurrency"), **_amounts(cap)}
                yield from _caps(f"{name}/{cap['name']}", limits, lambda p, m=members: p.payer in m, self.start)

            for use in spec.get("useCaps", ()):
                start, end = (unix(use[edge]) if edge in use else None for edge in ("start", "end"))
                opened = (start is None or start <= at) and (end is None or at < end)
                whole = {"GPUs": use.get("maxConcurrency"), **_amounts(use)} if opened else {}
                label = f"use of {name}/{use['name']}"
                yield from _caps(label, whole, self.use(spec["owner"], use), lambda _, start=start: start)

    def use(self, owner: str, use: Document) -> Callable[[Payment], bool]:
        """Which payments a use cap of an owner counts, whoever makes them."""

        def counts(payment: Payment) -> bool:
            above = (self.line(payment.run_owner, by_path) for by_path in (self.owners, self.everyone))
            below = use.get("scope") != "own" and any(owner in line for line in above)
            alike = use.get("flavor", payment.flavor) == payment.flavor
            looked = payment.run_owner == owner or below
            return looked and alike and _matches(use.get("selector", {}), payment.labels)

        return counts

    def start(self, payment: Payment) -> int | None:
        """Of the payer's window."""
        text = self.envelopes[payment.payer].get("start")
        return None if text is None else unix(text)

    def _loans(self, key: Payer) -> Callable[[Payment], bool]:
        return lambda payment: payment.payer == key and self.is_loan(payment)

    def _subtree(self, key: Payer, envelope: Document) -> Callable[[Payment], bool]:
        owner = key[2]

        def counts(payment: Payment) -> bool:
            below = payment.owner != owner and owner in self.line(payment.owner)
            alike = envelope["flavor"] == payment.flavor
            return payment.payer == key or (below and alike and _matches(envelope["selector"], payment.labels))

        return counts


def _own(key: Payer) -> Callable[[Payment], bool]:
    return lambda payment: payment.payer == key


def _matches(selector: Document, labels: Document | None) -> bool:
    return labels is None or all(value == "*" or labels.get(key, value) == value for key, value in selector.items())


def _amounts(said: Document) -> Document:
    return {"hours": said.get("maxGPUHours"), "credits": said.get("maxCredits")}


def _caps(name: str, limits: Document, counts: Any, since: Any) -> Iterator[Cap]:
    units = {"GPUs": 1000, "hours": 3_600_000, "credits": 3_600_000_000}
    for measure, limit in limits.items():
        if limit is not None:
            whole = int(Fraction(str(limit)) * 1000) * units[measure] // 1000
            yield Cap(name, measure, whole, counts, since)


def owners(documents: Sequence[Document]) -> dict[str, str]:
    """Owner of each Budget that the last cycle could read."""
    law = _law(documents)
    return {} if law is None else {name: spec["owner"] for name, spec in law.budgets.items()}


def violations(before: Sequence[Document], after: Sequence[Document], at: int) -> Iterator[str]:
    """What is overdrawn, and usage that is not the integral of the ledger, around a cycle at Unix second ``at``."""
    last, now = _last(before), _last(after)
    law, then = _law(after), _law(before)
    if law is None or now != at:
        return
    payments = list(_payments(after, law, at))
    yield from _carried(law, at, payments)
    yield from _usage(after, law, payments, at)
    if then is not None and last is not None and last < at:
        turns = {edge for payment in payments for span in payment.spans for edge in span[:2]}
        for turn in sorted(turn for turn in turns if last < turn < at):
            yield from _carried(then, turn, payments)
        yield from _charged(then, last, at, payments)


def _carried(law: Law, at: int, payments: Sequence[Payment]) -> Iterator[str]:
    held = [(payment, width) for payment in payments if (width := payment.width(at))]
    for cap in law.caps(at):
        width = sum(milli for payment, milli in held if cap.counts(payment))
        if cap.measure == "GPUs" and width > cap.limit:
            yield f"{cap.name} carries {width} of {cap.limit} milli-GPUs at {at}"


def _charged(law: Law, last: int, at: int, payments: Sequence[Payment]) -> Iterator[str]:
    for cap in law.caps(at - 1):
        counted = [payment for payment in payments if cap.counts(payment)] if cap.measure != "GPUs" else []
        there = [payment for payment in counted if payment.payer in law.envelopes]  # others stay as they were

        def charge(payments: Sequence[Payment], second: int, cap: Cap = cap) -> int:
            return sum(_until(p, second).charge(cap.since(p), cap.measure == "credits") for p in payments)

        now, first = charge(counted, at), charge(counted, last + 1)
        if now > cap.limit and first <= cap.limit and charge(there, at) > charge(there, at - 1):
            yield f"{cap.name} was charged {now} of {cap.limit} in {cap.measure} by {at}"


def _until(payment: Payment, end: int) -> Payment:
    spans = [(since, min(until, end), milli, rate) for since, until, milli, rate in payment.spans if since < end]
    return Payment(**{**vars(payment), "spans": spans})


def _usage(after: Sequence[Document], law: Law, payments: Sequence[Payment], at: int) -> Iterator[str]:
    for document in after:
        status = document.get("status", {})
        if document["kind"] != "Budget" or "updated" not in status or unix(status["updated"]) != at:
            continue
        name = document["metadata"]["name"]
        spec = law.budgets.get(name, {})
        for use in spec.get("useCaps", ()):
            usage = next(each for each in status["useCaps"] if each["name"] == use["name"])
            counts = law.use(spec["owner"], use)
            end = min(at, unix(use["end"])) if "end" in use else at
            start = unix(use["start"]) if "start" in use else None
            true = sum(_until(each, end).charge(start, rated=False) for each in payments if counts(each))
            if Fraction(str(usage["gpuSecondsConsumed"])) * 1000 != true:
                yield f"{name}/{use['name']} says {usage['gpuSecondsConsumed']} GPU-seconds, ledgers say {true / 1000}"
        for usage in status.get("envelopes", ()):
            mine = [
                each for each in payments if each.payer[:2] == (name, usage["name"]) and each.payer in law.envelopes
            ]
            true = sum(_until(each, at).charge(law.start(each), rated=False) for each in mine)
            if Fraction(str(usage["gpuSecondsConsumed"])) * 1000 != true:
                yield f"{name}/{usage['name']} says {usage['gpuSecondsConsumed']} GPU-seconds, its ledger {true / 1000}"


def _payments(documents: Sequence[Document], law: Law, at: int) -> Iterator[Payment]:
    labels = {
        each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in documents if each["kind"] == "Node"
    }
    for lease in documents:
        paid = lease["spec"].get("paidBy") if lease["kind"] == "Lease" else None
        if paid:
            spec, node = lease["spec"], lease["spec"]["slice"]["nodes"][0].rpartition("#")[0]
            funded = [each for each in lease["status"].get("funding", []) if each["class"] != "unfunded"]
            spans = [span for each in funded for span in _spans(lease, each, law, at)]
            lent = bool(funded) and funded[0]["class"] == "borrowed"
            payer = paid["budget"], paid["envelope"], spec["owner"], spec["flavor"]
            here = None if node not in labels else _Labels(labels[node])
            yield Payment(payer, spec["owner"], spec["runOwner"], spec["flavor"], here, lent, spans)
    for each in _accounts(documents):
        place = json.loads(each["place"]) if "place" in each else None
        rate = each.get("rateMilli", 0)
        spans = [(since, until, milli, rate) for since, until, milli in each["spans"]]
        payer = each["budget"], each["envelope"], each["owner"], each["flavor"]
        yield Payment(payer, each["owner"], each["runOwner"], each["flavor"], place, each.get("lent", False), spans)


def _accounts(documents: Sequence[Document]) -> list[Document]:
    """What all parts of the balances say; nothing of one that cannot be read, as then nothing counts it."""
    found: list[Document] = []
    for each in documents:
        name, _, number = each["metadata"]["name"].partition("jobtree-balances")
        if each["kind"] == "ConfigMap" and not name and not number.strip("-0123456789"):
            with contextlib.suppress(ValueError):
                found += json.loads(each["data"]["accounts"])
    return found


class _Labels(dict[str, str]):
    """A node's labels: one that it lacks is no match."""

    def get(self, key: str, _default: Any = None) -> Any:
        return super().get(key)


def _spans(lease: Document, segment: Document, law: Law, at: int) -> Iterator[Span]:
    """A lease that is still open is paid for in the second ``at`` too."""
    since, gpus = unix(segment["from"]), len(lease["spec"]["slice"]["nodes"])
    until = unix(segment["to"]) if "to" in segment else at + 1
    rate = int(Fraction(str(segment.get("rate", 0))) * 1000)
    if lease["spec"]["slice"].get("role") != "Spare":
        yield since, until, 1000 * gpus, rate
        return
    ends = [begin for begin, _ in law.discounts[1:]] + [until]
    for (begin, milli), end in zip(law.discounts, ends, strict=True):
        if max(since, begin) < min(until, end):
            yield max(since, begin), min(until, end), milli * gpus, rate


def _data(documents: Sequence[Document], name: str) -> dict[str, str] | None:
    found = (each.get("data") for each in documents if each["kind"] == "ConfigMap" and each["metadata"]["name"] == name)
    return next(found, None)


def _law(documents: Sequence[Document]) -> Law | None:
    data = _data(documents, "jobtree-budgets")
    return None if data is None or "policy" not in data else Law(data)


def _last(documents: Sequence[Document]) -> int | None:
    """When the last cycle that was carried out was."""
    applied = (each for each in documents if each["kind"] == "Plan" and each["status"]["phase"] == "Applied")
    return max((unix(each["spec"]["at"]) for each in applied), default=None)
