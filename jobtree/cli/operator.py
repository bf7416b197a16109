"""`jobtree`: the operators' command line (spec §10)."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobtree.api.values.counted import counted
from jobtree.api.values.errors import Refusal
from jobtree.cli import migrate, service, simulate
from jobtree.cli.asking import report
from jobtree.cli.common import args, files, jump, lakes, progress, show
from jobtree.cli.common.args import Commands, Options, command, start_planner

if TYPE_CHECKING:
    from jobtree.world.plan import Plan

EXAMPLE = "jobtree --state cluster.yaml"
_TAKES: Final = ("state", "context", "at")
"""Its global options: it prints sentences, and knows no namespace."""
_COUNTED: Final = ("nodes", "budgets", "envelopes", "runs", "leases", "reservations")
"""Tables of a snapshot that people know."""


@cache
def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top, commands = args.program("jobtree", "Plan a GPU fleet.", takes=_TAKES)
    for add in (
        _add_cycle,
        _add_snapshot,
        _add_plan,
        _add_apply,
        _add_replay,
        _add_crds,
        report.add,
        simulate.add,
        migrate.add,
        _add_compact,
        service.add,
    ):
        add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return args.run(parser(), argv)


def _add_cycle(commands: Commands) -> None:
    example = f"{EXAMPLE} cycle --at 2026-01-01T00:00:00Z"
    cycle = command(commands, "cycle", _cycle, "run planning cycles", takes=_TAKES, example=example)
    cycle.add_argument("--every", type=args.span, metavar="SPAN", help="a cycle each SPAN, such as 10s")
    cycle.add_argument("--for", dest="span", type=args.span, metavar="SPAN", help="for so long, such as 50s")
    cycle.add_argument("--yes", action="store_true", help="do not ask before a cycle that jumps far and ends runs")
    cycle.add_argument(
        "--lottery-origin", dest="origin", type=_origin, metavar="HEX",
        help="32 bytes that a new chain of the lottery begins with (default: random)",
    )  # fmt: skip
    _add_lake(cycle)


def _add_snapshot(commands: Commands) -> None:
    summary = "write a snapshot into the lake, plan nothing"
    _add_lake(command(commands, "snapshot", _snapshot, summary, takes=_TAKES, example=f"{EXAMPLE} snapshot"))


def _add_plan(commands: Commands) -> None:
    summary = "plan and write nothing to the cluster"
    plan = command(commands, "plan", _plan, summary, takes=_TAKES, example=f"{EXAMPLE} plan --out p.yaml")
    plan.add_argument("--out", type=Path, metavar="FILE", help="write the plan file here (default: print its summary)")
    plan.add_argument(
        "--write-model", dest="model", type=_model_file, metavar="FILE",
        help="write the master model here for another solver: .mps or .lp, also with .gz",
    )  # fmt: skip


def _add_apply(commands: Commands) -> None:
    example = f"{EXAMPLE} apply p.yaml"
    apply = command(commands, "apply", _apply, "carry out a plan file", takes=("state", "context"), example=example)
    _add_lake(apply)
    apply.add_argument("file", type=Path, metavar="FILE", help="made by `jobtree plan --out FILE`")


def _add_replay(commands: Commands) -> None:
    summary = "plan a stored snapshot again and compare with the stored plan, byte for byte"
    example = "jobtree replay cluster.yaml.lake/cycles/date=2026-01-01/20260101T000000Z.json"
    replay = command(commands, "replay", _replay, summary, takes=(), example=example)
    replay.add_argument("manifest", metavar="MANIFEST", help="the cycle's manifest in the lake")


def _add_crds(commands: Commands) -> None:
    summary = "print the CustomResourceDefinitions"
    crds = command(commands, "crds", _crds, summary, takes=(), example="jobtree crds --out crds")
    crds.add_argument("--out", type=Path, metavar="DIR", help="one file per kind in this folder")


def _add_compact(commands: Commands) -> None:
    summary = "pack the days of a lake that are over into a few files each"
    _add_lake(command(commands, "compact", _compact, summary, takes=("state",), example=f"{EXAMPLE} compact"))


def _add_lake(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lake", metavar="DIR", help=args.LAKE)


def _cycle(options: Options, given: argparse.Namespace) -> int:
    if (given.every is None) != (given.span is None):
        raise args.UsageError("--every and --for go together: `--every 10s --for 50s` is a cycle each 10 s, for 50 s")
    planner = start_planner()
    from cronjobs.cycle import run_cycle
    from cronjobs.schedule import times
    from exporters.plans.summary import headline, turns
    from jobtree.api import Time
    from jobtree.world.collector import collector_paused, forget_circles

    cluster = options.cluster(planning=True)  # first: who names no cluster need not hear of lakes
    lake = lakes.named(options, given.lake)
    with collector_paused():  # to the end: it would begin with a walk over all that a cycle leaves behind
        if options.at is None and options.state is not None:
            jump.agree(cluster.read(), int(cluster.at), yes=given.yes)
        for at in times(options.at, given.every, given.span):
            cluster.at = Time(at)
            with cluster.hold(), progress.shown() as on_phase:
                result = run_cycle(cluster, at, lake, planner, on_phase=on_phase, origin=given.origin)
            show.warn(result.notices)
            if result.plan is None:
                show.say(f"Nothing has changed since the plan for {Time(at)}: nothing is written")
                continue
            _warn(result.plan)
            show.warn(f"{each.subject}: {each.message}" for each in cluster.left_out)
            show.say(f"{headline(result.plan)}; {counted(result.writes, 'write')}", *turns(result.plan))
        forget_circles()
    return 0


def _snapshot(options: Options, given: argparse.Namespace) -> int:
    from jobtree.world.tables.snapshot import take

    cluster = options.cluster()
    lake = lakes.named(options, given.lake)
    snapshot = take(cluster.read())
    lake.refuse_stranger()
    lake.write_tables(snapshot)
    rows = ((snapshot.tables[name].num_rows, name[:-1]) for name in _COUNTED)
    show.say(f"Snapshot {snapshot.digest}: {', '.join(counted(*each) for each in rows if each[0]) or 'nothing'}")
    return 0


def _plan(options: Options, given: argparse.Namespace) -> int:
    planner = start_planner()
    from cronjobs.cycle import dry_run
    from exporters.plans import planfile, summary

    with progress.shown() as on_phase:
        on_phase("read")
        intake = options.cluster().read()
        plan = dry_run(intake, options.time, planner, on_phase=on_phase)
    _warn(plan)
    if given.model is not None:
        from exporters.plans import modelfile
        from jobtree.world.tables.snapshot import take

        files.write(given.model, modelfile.of_plan(take(intake, plan.at), plan, given.model.name))
    if given.out is None:
        show.say(*summary.lines(plan))
        return 0
    from exporters.plans import worldprint
    from jobtree.world.tables.snapshot import take

    files.write_text(given.out, planfile.dump(plan, worldprint.prints(take(intake, plan.at))))
    show.say(f"{summary.headline(plan)}; carry it out: `jobtree {options.reach}apply {given.out}`")
    return 0


def _origin(text: str) -> str:
    """argparse type: 32 bytes in hex."""
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise argparse.ArgumentTypeError(f"{text} is no secret; allowed are 64 digits 0-9 and a-f")
    return text


def _model_file(text: str) -> Path:
    """argparse type: a name that says the format of a model file."""
    if not text.endswith((".mps", ".lp", ".mps.gz", ".lp.gz")):
        raise argparse.ArgumentTypeError(
            f"{text} does not say its format; allowed are names in .mps or .lp, also with .gz"
        )
    return Path(text)


def _apply(options: Options, given: argparse.Namespace) -> int:
    from cronjobs.cycle import apply_plan
    from exporters.plans import planfile, summary

    text = files.read_text(given.file)
    try:
        plan, made_from = planfile.load_both(text)
    except Refusal as refusal:
        raise refusal.about(str(given.file)) from None
    cluster = options.cluster(at=plan.at, planning=True)
    with cluster.hold(), progress.shown() as on_phase:
        result = apply_plan(cluster, plan, lakes.named(options, given.lake), made_from, on_phase=on_phase)
    show.warn(result.notices)
    show.say(f"{summary.headline(plan)}; {counted(result.writes, 'write')}", *summary.turns(plan))
    return 0


def _replay(_options: Options, given: argparse.Namespace) -> int:
    planner = start_planner()
    from cronjobs.replay import replay
    from exporters.lake.lake import read_manifest
    from exporters.lake.manifest import UNDONE

    manifest = _manifest(given.manifest)
    with progress.shown() as on_phase:
        on_phase("plan")
        plan = replay(manifest, planner, on_news=lambda words: on_phase(f"plan: {words}"))
    show.say(f"Plan {plan.cycle} is the same again, byte for byte")
    phase = read_manifest(manifest).phase
    if phase in UNDONE:
        show.say(f"The cycle is {phase}: {UNDONE[phase]}")
    return 0


def _manifest(given: str) -> Path:
    """The manifest of that name. Raises Refusal where it is another file, with what a replay takes."""
    from exporters.lake.lake import Lake, beside, read_manifest
    from exporters.lake.storage import glob, place

    path = place(given)
    try:
        read_manifest(path)
    except Refusal as refusal:
        if "cycles" in path.parts:  # it is one, and broken
            raise
        near = (Lake(each).newest() for each in (path, beside(path)) if glob(each, "cycles/*"))
        newest = next(near, None)
        example = newest or "FILE.lake/cycles/date=2026-01-01/20260101T000000Z.json"
        raise Refusal(f"{refusal}; a replay takes the manifest of a cycle in a lake, such as {example}") from None
    return path


def _crds(_options: Options, given: argparse.Namespace) -> int:
    from jobtree.api.crds.crds import generate

    if given.out is None:
        show.write("---\n".join(generate().values()))
        return 0
    for name, text in generate().items():
        files.write_text(given.out / name, text)
        show.say(str(given.out / name))
    return 0


def _compact(options: Options, given: argparse.Namespace) -> int:
    lakes.compact(lakes.there(options, given.lake))
    return 0


def _warn(plan: Plan) -> None:
    from exporters.plans.summary import warnings

    show.warn(warnings(plan))
