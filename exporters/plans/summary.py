"""A plan in words: who starts where on whose budget, who waits and why, what ends, and the proof."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from exporters.plans.nodelist import by_names, compress, natural
from jobtree.api import Lease, Time
from jobtree.api.kinds.run import CPU_RUN
from jobtree.api.values.counted import counted, gpus_of
from jobtree.api.values.escaped import escaped
from jobtree.world.plan import Plan, Stage


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns padded to their widest cell, three spaces apart, as kubectl prints them; no trailing blanks."""
    lines = [tuple(header), *(tuple(map(escaped, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


PRICES: Final = 3
"""Most prices that a summary names."""


def headline(plan: Plan) -> str:
    """One sentence with the numbers that matter."""
    parts = [_starting(plan), *_growing(plan), counted(len(plan.waits), "waits", "wait")]
    if plan.closures:
        parts.append(counted(len(plan.closures), "lease ends", "leases end"))
    if plan.pruned:
        parts.append(counted(len(plan.pruned), "closed lease goes", "closed leases go"))
    for paid, one, many in ((False, "loses a payer", "lose a payer"), (True, "is paid again", "are paid again")):
        if turned := len({(turn.namespace, turn.name) for turn in plan.turns if turn.paid == paid}):
            parts.append(counted(turned, f"run {one}", f"runs {many}"))
    cut = "; cut short before its proof" if plan.truncated else ""
    return f"Plan {plan.cycle} for {Time(plan.at)}: {', '.join(parts)}{cut}"


def _starting(plan: Plan) -> str:
    """``9 runs start (8 indices of 1 array, 1 CPU run)``."""
    started = {lease.run_key: lease.spec.run_ref for lease in plan.leases if lease.spec.reason == "Start"}
    arrays = Counter((key[0], ref.name) for key, ref in started.items() if ref.index is not None)
    on_cpu = len(_on_cpu(plan))
    of = [
        f"{counted(arrays.total(), 'index', 'indices')} of {counted(len(arrays), 'array')}" if arrays else "",
        counted(on_cpu, "CPU run") if on_cpu else "",
    ]
    said = ", ".join(filter(None, of))
    return counted(len(started) + on_cpu, "run starts", "runs start") + (f" ({said})" if said else "")


def _growing(plan: Plan) -> list[str]:
    """``1 run grows by 8 GPUs``, where any does."""
    grown = [lease for lease in plan.leases if lease.spec.reason == "Grow"]
    gpus = Counter[str]()
    for lease in grown:
        gpus[lease.spec.slice.role] += len(lease.spec.slice.nodes)
    runs = counted(len({lease.run_key for lease in grown}), "run grows", "runs grow")
    return [f"{runs} by {gpus_of(gpus['Active'], gpus['Spare'])}"] if grown else []


def _on_cpu(plan: Plan) -> list[tuple[str, str]]:
    """Runs that start without GPUs, which have no leases: their statuses say so."""
    return [
        (each.namespace, each.name)
        for each in plan.runs
        if each.status.started == plan.at and any(said.reason == CPU_RUN for said in each.status.conditions)
    ]


def lines(plan: Plan) -> list[str]:
    """The whole summary, line by line; a part only where there is something to say."""
    parts = [
        ("Starts", _starts(plan)),
        ("Waits", table(("RUN", "REASON", "WHY"), _waits(plan)) if plan.waits else []),
        ("Payers", turns(plan)),
        ("Ends", table(("REASON", "LEASES"), _ends(plan)) if plan.closures else []),
        ("Prices", _prices(plan)),
        ("Proof", table(("STAGE", "VALUE", "BOUND", "GAP", "UNIT"), _proof(plan)) if plan.stages else []),
        ("Warnings", warnings(plan)),
    ]
    text = [headline(plan)]
    for title, body in parts:
        if body:
            text += ["", title, *(f"  {line}" for line in body)]
    return [escaped(line) for line in text]


def turns(plan: Plan) -> list[str]:
    """A sentence for each run that loses a payer or gets one back."""
    return [f"Run {turn.namespace}/{turn.name}: {turn.message}" for turn in plan.turns]


def warnings(plan: Plan) -> list[str]:
    """A sentence each, by object."""
    return [f"{each.object}: {each.message}" for each in sorted(plan.warnings, key=lambda each: natural(each.object))]


def payer(lease: Lease) -> str:
    """``budget/envelope``, or ``-`` where nobody pays."""
    paid = lease.spec.paid_by
    return f"{paid.budget}/{paid.envelope}" if paid else "-"


def gap(stage: Stage, *, share: str = ".4%", number: str = "d") -> str:
    """How far a stage is from its bound: a share of it, or where that is more than the whole bound, which may be 0, a
    number in the stage's unit: ``1576 above``. ``share``, ``number``: formats of the two.
    """
    if stage.gap <= 1:
        return f"{stage.gap:{share}}"
    return f"{abs(stage.value - stage.bound):{number}} {'above' if stage.value > stage.bound else 'below'}"


def _starts(plan: Plan) -> list[str]:
    by_run: dict[tuple[str, str], list[Lease]] = defaultdict(list)
    for lease in plan.leases:
        by_run[lease.run_key].append(lease)
    found = dict.fromkeys(_on_cpu(plan), ("Start", "0", "-", "-"))
    for key, leases in by_run.items():
        gpus = Counter[str]()
        payers = Counter[str]()
        for lease in leases:
            gpus[lease.spec.slice.role] += len(lease.spec.slice.nodes)
            payers[payer(lease)] += len(lease.spec.slice.nodes)
        width = str(gpus["Active"]) + (f"+{gpus['Spare']}" if gpus["Spare"] else "")
        nodes = compress(lease.spec.node for lease in leases)
        paid = ", ".join(f"{who} ({payers[who]})" for who in sorted(payers, key=natural))
        found[key] = (leases[0].spec.reason, width, nodes, paid)
    rows = [("/".join(key), *found[key]) for key in sorted(found, key=by_names)]
    return table(("RUN", "REASON", "GPUS", "NODES", "PAYER (GPUS)"), rows) if rows else []


def _waits(plan: Plan) -> list[tuple[str, str, str]]:
    waits = sorted(plan.waits, key=lambda wait: by_names((wait.namespace, wait.name)))
    return [(f"{wait.namespace}/{wait.name}", wait.reason, wait.message) for wait in waits]


def _prices(plan: Plan) -> list[str]:
    """What one more of the dearest bounds would be worth; nothing where no bound has a price."""
    if plan.prices is None or not plan.prices.bounds:
        return []
    rows = []
    for price in plan.prices.bounds[:PRICES]:
        more = len(price.subjects) - 1
        subject = price.subjects[0] + (f" (and {more} alike)" if more else "")
        worth = price.value / plan.prices.weight
        rows.append((f"one {price.unit}", price.rule, subject, f"{price.milli_gpus / 1000:.2f}", f"{worth:.2f}"))
    return table(("MORE", "RULE", "WHERE", "STARTS GPUS", "WORTH"), rows)


def _ends(plan: Plan) -> list[tuple[str, str]]:
    return [(reason, str(count)) for reason, count in sorted(Counter(each.reason for each in plan.closures).items())]


def _proof(plan: Plan) -> list[tuple[str, str, str, str, str]]:
    rows = []
    for stage in plan.stages:
        bound, distance = (str(stage.bound), gap(stage)) if stage.proven else ("-", "-")
        rows.append((stage.name, str(stage.value), bound, distance, stage.unit))
    return rows
