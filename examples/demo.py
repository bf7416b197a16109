"""One planning cycle on real jobs, explained: ``make demo``.

Copies a piece of Microsoft's Philly cluster into ``demo-output/``, runs ``jobtree cycle`` on it, and tells from what
the cycle wrote who starts where on whose budget, who waits and why, and how good the plan provably is. Two more
cycles, a minute apart, show that an unchanged world comes to rest. Exits 1 when anything is not as it should be.
"""

import contextlib
import io
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from exporters.lake.lake import beside, read_plan, read_snapshot
from exporters.plans import planjson, summary
from exporters.plans.nodelist import compress
from jobtree.api import Lease, Time
from jobtree.cli import operator
from jobtree.cli.common import lookup
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import Plan, Wait
from jobtree.world.reading.intake import Intake
from jobtree.world.tables.snapshot import take
from reports.fleet.picture import draw_fleet
from reports.fleet.slots import DomainSlots, fleet_slots
from reports.query import newest_manifest, query

HERE = Path(__file__).parent
OUTPUT = HERE.parent / "demo-output"
NOW = 1508436000  # 2017-10-19T18:00:00Z, the world's own time
SHOWN = 12
BIN = ".venv/bin/"

Key = tuple[str, str]


class DemoError(Exception):
    """Something is not as it should be."""


def main(output: Path = OUTPUT, console: Console | None = None) -> int:
    """Run the demo in ``output``, which is made anew. Returns the exit code."""
    out = console or Console(highlight=False)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    state = output / "cluster.yaml"
    shutil.copy(HERE / "philly.yaml", state)
    try:
        tell(out, state)
    except DemoError as error:
        out.print(f"[bold red]The demo failed:[/] {escape(str(error))}")
        return 1
    return 0


def tell(out: Console, state: Path) -> None:
    """The whole story, its headline first."""
    lake = beside(state)
    before = StateFile(state, NOW).read()
    sizes = {(r.namespace, r.name): r.spec.resources.total_gpus or 0 for r in before.runs}

    with out.status("Planning an evening of a real cluster …"):
        said, seconds = cycle(state, NOW)
    first = newest_manifest(lake)
    plan = planjson.decode(read_plan(first))
    if plan.truncated:
        raise DemoError("the plan was cut off: see the warning above")
    tell_headline(out, before, plan, sizes)
    out.print(said)
    tell_starts(out, plan)
    tell_waits(out, plan, sizes)
    tell_proof(out, plan, seconds)

    heading(out, "A minute later, and another one")
    said, _ = cycle(state, NOW + 60)
    out.print(said)
    out.print("What the first cycle recalled may serve others from the next one on, and who waits is told so.")
    after = StateFile(state, NOW).read()
    said, _ = cycle(state, NOW + 120)
    out.print(said)
    again = planjson.decode(read_plan(newest_manifest(lake)))
    check_nothing_changed(after, StateFile(state, NOW).read(), again)
    out.print(
        "Nothing has changed, so nothing was changed: no lease (who holds which GPU, and who pays), no run, no Budget."
    )

    tell_usage(out, before, query(lake, "usage"))
    tell_left(out, state, first, plan, NOW + 120)


def tell_headline(out: Console, before: Intake, plan: Plan, sizes: dict[Key, int]) -> None:
    """Free GPUs before and after, who starts, who waits and why, and what one more GPU would be worth."""
    tables = take(before).tables
    then, now = _free(fleet_slots(tables)), _free(fleet_slots(tables, plan))
    starts, waits = started(plan), plan.waits
    most = max(starts, key=lambda key: gpus_of(starts[key]), default=("", ""))
    total = sum(len(node.slots) for domain in fleet_slots(tables) for node in domain.nodes)
    out.print(
        f"\n[bold]{then} of {total} GPUs were free. One cycle (a look, a plan, its writes) later {now} are.[/]\n"
        f"{len(starts)} of {len(starts) + len(waits)} waiting runs (jobs that start with all their GPUs or not at all) "
        f"start; the largest is {'/'.join(most)} with {gpus_of(starts.get(most, []))} GPUs. "
        f"{len(waits)} go on waiting, {_reasons(waits)}."
    )
    if plan.prices is not None and plan.prices.bounds:
        price = plan.prices.bounds[0]
        more, worth = price.milli_gpus / 1000, price.value / plan.prices.weight
        what = WORDS_OF_BOUNDS.get(price.rule, price.rule)
        out.print(
            f"One {price.unit} more is worth most at {what} {price.subjects[0]}: it would start {more:g} more, which "
            f"by age counts as much as {worth:.2f} of a run just submitted."
        )
    running = sum(run.status.phase == "Running" for run in before.runs)
    wanted = sum(sizes[each.namespace, each.name] for each in waits)
    out.print(
        f"\nThat is an evening of Microsoft's Philly cluster, from its published trace: {len(before.nodes)} machines, "
        f"{running} runs on them; what still waits wants {wanted} GPUs. Each team has a Budget: so many GPUs that it "
        "may use at once, its quota. What a team leaves idle its relatives in the organisation may use, until it wants "
        "it back."
    )


WORDS_OF_BOUNDS = {
    "concurrency": "the quota of",
    "subtree": "what stands above the teams,",
    "aggregate": "the joint cap",
    "use": "what may be used by all of",
    "capacity": "room on",
}


def _free(domains: Iterable[DomainSlots]) -> int:
    return sum(slot.state == "free" for domain in domains for node in domain.nodes for slot in node.slots)


def _reasons(waits: Iterable[Wait]) -> str:
    """How many wait for what, in words."""
    counts = Counter(obstacle(wait) for wait in waits)
    words = {"money": "for quota alone", "room": "for room alone", "money and room": "for quota and room"}
    return ", ".join(f"{number} {words.get(what, what)}" for what, number in counts.most_common())


def tell_left(out: Console, state: Path, manifest: Path, plan: Plan, last: int) -> None:
    """The picture, and the files to go on with; ``last``: of the last cycle, before which nothing can be planned."""
    snapshot, _ = read_snapshot(manifest)
    pictures = [state.with_name("fleet.svg"), state.with_name("fleet.png")]
    draw_fleet(fleet_slots(snapshot.tables, plan), pictures, title=f"The fleet after the cycle of {Time(NOW)}")
    heading(out, "What it left")
    for path, words in (
        (pictures[0], "the picture: who holds which GPU (and fleet.png)"),
        (state, "the cluster's state, to try commands on"),
        (manifest, "the cycle's manifest; its tables, as Parquet, are beside it in the lake"),
    ):
        out.print(f"{shown(path)}  [dim]{words}[/]", soft_wrap=True)
    out.print(
        f"\nNext: [bold]{BIN}kubectl-runs --state {shown(state)} --at {Time(last)} state --all[/]", soft_wrap=True
    )


def cycle(state: Path, at: int) -> tuple[str, float]:
    """``jobtree cycle``, as an operator types it: the command with what it prints, and the seconds that it took."""
    argv = ["--state", str(state), "cycle", "--at", str(Time(at))]
    said, warned = io.StringIO(), io.StringIO()
    began = time.perf_counter()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(warned):
        code = operator.main(argv)
    seconds = time.perf_counter() - began
    if code != 0:
        raise DemoError(f"jobtree cycle ended with exit code {code}: {warned.getvalue().strip()}")
    typed = f"\n[bold]$ jobtree --state {shown(state)} cycle --at {Time(at)}[/]\n"
    return typed + escape(warned.getvalue() + said.getvalue()).rstrip(), seconds


def tell_starts(out: Console, plan: Plan) -> None:
    """Who starts, where, and who pays."""
    runs = started(plan)
    heading(out, f"{len(runs)} runs start")
    if not runs:
        raise DemoError("no run starts, though there are free GPUs and money")
    out.print(
        "[dim]where: machines, m22-m23 are m22 and m23; paid by: whose quota counts them, several where one is short[/]"
    )
    table = columns("run", ">GPUs", "where", "paid by")
    ranked = sorted(runs.items(), key=lambda item: (-gpus_of(item[1]), item[0]))
    for (namespace, name), leases in ranked[:SHOWN]:
        paid = Counter[str]()
        for lease in leases:
            ref = lease.spec.paid_by
            paid[f"{ref.budget}/{ref.envelope}" if ref else "nobody (opportunistic)"] += len(lease.spec.slice.nodes)
        payers = ", ".join(who if len(paid) == 1 else f"{who} ({n})" for who, n in sorted(paid.items()))
        table.add_row(f"{namespace}/{name}", str(gpus_of(leases)), compress(x.spec.node for x in leases), payers)
    out.print(table)
    if rest := ranked[SHOWN:]:
        out.print(f"[dim]and {len(rest)} more on {sum(gpus_of(x) for _, x in rest)} GPUs[/]")


def tell_waits(out: Console, plan: Plan, sizes: dict[Key, int]) -> None:
    """Who waits, by what stands in the way, the most GPUs first."""
    heading(out, f"{len(plan.waits)} runs wait")
    groups: dict[str, list[Wait]] = defaultdict(list)
    for wait in plan.waits:
        groups[obstacle(wait)].append(wait)

    def gpus(waits: Iterable[Wait]) -> int:
        return sum(sizes[w.namespace, w.name] for w in waits)

    out.print("[dim]money: their team's quota and what its family leaves idle are in use; room: the GPUs are[/]")
    table = columns(">runs", ">GPUs", "for", "the largest of them")
    for what, waits in sorted(groups.items(), key=lambda item: (-gpus(item[1]), item[0])):
        example = max(waits, key=lambda w: (sizes[w.namespace, w.name], w.name))
        words = f"{example.namespace}/{example.name}: {example.message}"
        table.add_row(str(len(waits)), str(gpus(waits)), what, words)
    out.print(table)


def obstacle(wait: Wait) -> str:
    """Money, room or both; otherwise the reason's own name."""
    rules = {short.rule for short in wait.shorts}
    names = ["money"] * bool(rules - {"capacity"}) + ["room"] * ("capacity" in rules)
    return " and ".join(names) or wait.reason


STAGES = {
    "starts": "work started, older runs weighing more: the more the better",
    "overdraw": "quota taken back that relatives used, for nearer starts",
    "opportunistic": "work started that nobody pays for, by its own choice",
    "payers": "how far the payers are from the runs' owners",
    "domains": "fast networks that the runs spread over",
    "holes": "free GPUs kept together, for large runs to come",
}


def tell_proof(out: Console, plan: Plan, seconds: float) -> None:
    """What the plan reaches, and what no plan can beat."""
    heading(out, "How good the plan is")
    out.print(
        "[dim]A plan is made in stages, each as good as it gets without spoiling those before; the gap is proven.[/]"
    )
    table = columns("stage", ">reached", ">no plan can beat", ">gap", "what it counts")
    for stage in plan.stages:
        bound, gap = (f"{stage.bound:,}", summary.gap(stage, share=".3%", number=",")) if stage.proven else ("", "")
        table.add_row(stage.name, f"{stage.value:,}", bound, gap, f"{STAGES.get(stage.name, '')} ({stage.unit})")
    out.print(table)
    out.print(
        f"Read, planned, checked by the independent checker, written and recorded in {seconds:.1f} s; solver "
        f"{plan.solver.name} {plan.solver.version}."
    )


def check_nothing_changed(before: object, after: object, plan: Plan) -> None:
    """Raises DemoError where the last cycle did anything but record itself."""
    for name in ("nodes", "budgets", "runs", "leases"):
        if getattr(before, name) != getattr(after, name):
            raise DemoError(f"the last cycle changed {name}, though nothing had happened")
    if plan.leases or plan.closures or plan.segments:
        raise DemoError("the last cycle planned changes, though nothing had happened")


def tell_usage(out: Console, before: Intake, after: pd.DataFrame) -> None:
    """What each Budget uses, by DuckDB over the Parquet of the cycles; ``before``: the world before the first."""
    heading(out, "GPUs that the Budgets pay for (DuckDB over the Parquet just written)")
    out.print(
        "[dim]envelope: a pool of a Budget; own: by its team's runs; family: by relatives'; GPU-hours: charged[/]"
    )
    classes = ["owned_gpus", "shared_gpus", "borrowed_gpus"]
    used = Counter[str]()
    for lease in before.leases:
        payer = lease.spec.paid_by
        if payer is not None and not lease.status.closed and not lookup.is_unfunded(lease):
            used[f"{payer.budget}/{payer.envelope}"] += lookup.active_gpus([lease])
    table = columns("envelope", ">quota", ">before", ">now", ">own", ">family", ">GPU-hours")
    rows = [{**row, "now": sum(row[c] for c in classes)} for row in after.to_dict("records")]
    for row in sorted(rows, key=lambda row: (-row["now"], row["budget"])):
        where = f"{row['budget']}/{row['envelope']}"
        figures = (row["concurrency"], used[where], row["now"], row["owned_gpus"], row["shared_gpus"])
        table.add_row(where, *(str(n) for n in figures), f"{row['gpu_hours']:,.1f}")
        if row["now"] > row["concurrency"]:
            raise DemoError(f"{where} pays for {row['now']} GPUs, {row['concurrency']} are allowed")
    out.print(table)


def started(plan: Plan) -> dict[Key, list[Lease]]:
    """Leases of the runs that the plan starts, by (namespace, name)."""
    runs: dict[Key, list[Lease]] = defaultdict(list)
    for lease in plan.leases:
        if lease.spec.reason == "Start":
            runs[lease.namespace, lease.spec.run_ref.run_name].append(lease)
    return runs


def gpus_of(leases: Iterable[Lease]) -> int:
    """Active GPUs of these leases."""
    return sum(len(x.spec.slice.nodes) for x in leases if x.spec.slice.role == "Active")


def columns(*names: str) -> Table:
    """A plain table; a name that begins with > is a column of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in names:
        table.add_column(name.removeprefix(">"), justify="right" if name[0] == ">" else "left", overflow="fold")
    return table


def heading(out: Console, words: str) -> None:
    """A heading with a line of space above."""
    out.print(f"\n[bold cyan]{words}[/]")


def shown(path: Path) -> str:
    """The path as one types it: from the current folder where it lies below."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


if __name__ == "__main__":
    sys.exit(main())
