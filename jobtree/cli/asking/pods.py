"""`pods RUN` and `logs RUN`: what a run's pods are and say."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from jobtree.api.values.errors import Refusal
from jobtree.cli.common import args, lookup, show
from jobtree.cli.common.args import Commands, Options, command

if TYPE_CHECKING:
    from jobtree.api import Run
    from jobtree.api.kinds.core import Pod
    from jobtree.cluster.protocol import Cluster
    from jobtree.world.reading.intake import Intake

_TELLING = {("PodScheduled", "False"), ("DisruptionTarget", "True")}
"""Conditions, with their status, whose words say why a pod does not run."""
_HEADS = ("RANK", "GROUP", "POD", "NODE", "PHASE", "SINCE", "SAID")


def add(commands: Commands) -> None:
    """Declares the commands."""
    pods = command(commands, "pods", _pods, "list the pods of a run", example="kubectl runs pods train-32")
    pods.add_argument("run", metavar="RUN")
    logs = command(
        commands, "logs", _logs, "print what a run's pods have written (live clusters only)",
        example="kubectl runs logs train-32 --rank 0 --follow",
        takes=tuple(name for name in args.GLOBAL if name not in {"output", "at"}),
    )  # fmt: skip
    logs.add_argument("run", metavar="RUN")
    logs.add_argument("--rank", type=int, metavar="N", help="only this rank (default: all, named in each line)")
    logs.add_argument("-f", "--follow", action="store_true", help="go on as they write; needs --rank")


def _pods(options: Options, given: argparse.Namespace) -> int:
    cluster = options.cluster()
    run, found = _of(options.intake(cluster), given.run, options.namespace)
    if options.output in {"json", "yaml"}:
        records = [dict(zip((head.lower() for head in _HEADS), row, strict=True)) for row in _rows(found, options.time)]
        show.data(records, options.output)
        return 0
    if not found:
        show.say(f"No pods of {run.subject}.{_why_none(cluster)}")
        return 0
    from exporters.plans.summary import table

    show.say(*table(_HEADS, _rows(found, options.time)))
    return 0


def _why_none(cluster: Cluster) -> str:
    return "" if cluster.runs_pods else " A state file needs none: what starts runs."


def _logs(options: Options, given: argparse.Namespace) -> int:
    if given.follow and given.rank is None:
        raise args.UsageError("--follow needs --rank N: the lines of several pods would come in any order")
    cluster = options.cluster()
    run, found = _of(cluster.read(), given.run, options.namespace)
    chosen = [(rank, pod) for rank, pod in found if given.rank in {None, rank}]
    if not found:
        raise Refusal(f"{run.subject} has no pods, so no logs.{_why_none(cluster)}")
    if not chosen:
        there = ", ".join(str(rank) for rank, _ in found)
        which = "" if given.rank is None else f" of rank {given.rank}"
        raise Refusal(f"{run.subject} has no pod{which}; its ranks are {there}")
    for rank, pod in chosen:
        head = f"[{rank}] " if len(found) > 1 and given.rank is None else ""
        namespace = pod.metadata.namespace or "default"
        for line in cluster.logs(namespace, pod.metadata.name, follow=given.follow):
            show.say(head + line.decode(errors="replace"))
            sys.stdout.flush()
    return 0


def _of(intake: Intake, name: str, namespace: str | None) -> tuple[Run, list[tuple[int, Pod]]]:
    """A run, and its own pods with their ranks (-1 where one says none), those of its present life last."""
    from exporters.writes.pods import rank_of
    from jobtree.api import LABEL_RUN
    from jobtree.world.tables.given import is_own
    from jobtree.world.tables.rows import controller

    run = lookup.find_run(intake, name, namespace)
    near = [pod for pod in intake.pods if (pod.metadata.namespace or "default") == run.namespace]
    is_mine = lookup.holders(intake, (run.namespace, run.name))
    named = [pod for pod in near if is_mine((run.namespace, pod.metadata.labels.get(LABEL_RUN, "")))]
    own = [pod for pod in named if is_own(controller(pod) or "", run.metadata.uid)]
    return run, sorted(((rank_of(pod), pod) for pod in own), key=lambda each: (each[0], each[1].metadata.name))


def _rows(found: list[tuple[int, Pod]], at: int) -> list[tuple[str, ...]]:
    from exporters.writes.podspec import LABEL_GROUP

    rows: list[tuple[str, ...]] = []
    for rank, pod in found:
        since = pod.status.start_time or pod.metadata.creation_timestamp
        told = (each for each in pod.status.conditions if (each.type, each.status) in _TELLING)
        said = next((each.message or each.reason for each in told), "")
        phase = "Terminating" if pod.metadata.deletion_timestamp is not None else pod.status.phase
        age = "-" if since is None else show.age(max(0, at - since))
        group = pod.metadata.labels.get(LABEL_GROUP, "-")
        name, node = pod.metadata.name, pod.spec.node_name or "-"
        rows.append((str(rank) if rank >= 0 else "-", group, name, node, phase, age, said))
    return rows
