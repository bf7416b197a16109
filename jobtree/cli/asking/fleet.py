"""`fleet`: every GPU once, by what has it, and the largest group that would fit now."""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from jobtree.api.kinds.base import json_name
from jobtree.api.values.counted import named
from jobtree.api.values.errors import Refusal
from jobtree.cli.common import show
from jobtree.cli.common.args import Commands, Options, command

if TYPE_CHECKING:
    from jobtree.world.reading.intake import Intake

_TITLES = {"largestGroup": "LARGEST GROUP", "leftOut": "LEFT OUT"}
_ALL = "*"


def add(commands: Commands) -> None:
    """Declares the command."""
    fleet = command(
        commands,
        "fleet",
        _fleet,
        "count the GPUs: leased, spare, foreign, cordoned, failed, free",
        example="kubectl runs --state cluster.yaml fleet --domain",
    )
    fleet.add_argument(
        "--flavor", nargs="?", const=_ALL, metavar="FLAVOR", help="a row per flavor; or only this flavor"
    )
    fleet.add_argument(
        "--domain", nargs="?", const=_ALL, metavar="DOMAIN", help="a row per domain; or only this domain"
    )
    fleet.add_argument("--nodes", action="store_true", help="a row per node")


@dataclass
class Gpus:
    """GPUs of some nodes, each counted once: who holds it comes before the state of its node.

    ``left_out``: on nodes without a flavor, which no cycle plans with; ``cordoned``: on nodes that take nothing new for
    now (cordoned, NotReady, going); ``failed``: on nodes out of service, or NotReady for longer than Policy's
    `failure.notReadyAfter`.
    """

    total: int = 0
    leased: int = 0
    spare: int = 0
    foreign: int = 0
    cordoned: int = 0
    failed: int = 0
    left_out: int = 0
    free: int = 0

    def add(self, other: Gpus) -> None:
        """Adds the counts of another set of nodes."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def record(self) -> dict[str, int]:
        """The counts as `-o json` names them."""
        return {json_name(field.name): getattr(self, field.name) for field in fields(self)}


def _fleet(options: Options, given: argparse.Namespace) -> int:
    from exporters.plans.nodelist import compress, natural
    from jobtree.api import Policy

    intake = options.intake()
    show.set_aside(intake)
    rows = _rows(intake, options.time)
    if given.domain is not None:
        given.domain = given.domain.removeprefix("domain=")  # as `plan RUN` prints it
    for title, wanted in (("flavor", given.flavor), ("domain", given.domain)):
        known = sorted({row[title] for row in rows}, key=natural)
        if wanted not in {None, _ALL, *known}:
            raise Refusal(f"there is no {title} {wanted}; allowed are {named(known)}")
    rows = [
        row
        for row in rows
        if given.flavor in {None, _ALL, row["flavor"]} and given.domain in {None, _ALL, row["domain"]}
    ]
    by = (
        ["flavor"] + (["domain"] if given.domain is not None or given.nodes else []) + (["node"] if given.nodes else [])
    )
    records = _grouped(rows, by)
    if options.output in {"json", "yaml"}:
        show.data(records, options.output)
        return 0
    from exporters.plans.summary import table

    if not any(record["leftOut"] for record in records):
        records = [{key: value for key, value in record.items() if key != "leftOut"} for record in records]
    header = tuple(_TITLES.get(key, key.upper()) for key in records[0]) if records else ()
    lines = table(header, [[str(value) for value in record.values()] for record in records]) if records else []
    there = "" if rows or options.state is None else f" Add some: `kubectl runs {options.reach}submit -f FILE`"
    show.say(*lines or [f"No nodes found.{there if not intake.nodes else ''}"])
    if left_out := [row["node"] for row in rows if row["flavor"] == "-" and row["gpus"].total]:
        label = (intake.policy or Policy()).spec.topology.labels.flavor
        show.say("", f"left out: no {label} label: {compress(left_out)}")
    return 0


def _rows(intake: Intake, at: int) -> list[dict[str, Any]]:
    """Per node: flavor, domain, node, Gpus."""
    from jobtree.cli.fate.fate import names_of_domains
    from jobtree.world.tables import values as col
    from jobtree.world.tables.snapshot import take
    from planner.state.derive import state_of

    snapshot = take(intake)
    state_now = state_of(snapshot, at)
    nodes, fleet = snapshot.tables["nodes"], state_now.fleet
    patience = int(snapshot.policy.spec.failure.not_ready_after)
    since = col.optional_ints(nodes, "not_ready_since")
    out_of_service = col.bools(nodes, "out_of_service")
    held, foreign = _held(intake), state_now.foreign
    domains = names_of_domains(intake)
    rows = []
    for i, name in enumerate(fleet.names):
        total = int(fleet.gpus[i])
        active, spare = held.get(name, (0, 0))
        others = min(foreign[name].gpus if name in foreign else 0, max(0, total - active - spare))
        gpus = Gpus(total=total, leased=active, spare=spare, foreign=others)
        rest = max(0, total - active - spare - others)
        last_ready = since[i]
        gone = last_ready is not None and at - last_ready > patience
        state = "failed" if gone or out_of_service[i] else "free" if fleet.takes_work[i] else "cordoned"
        setattr(gpus, state if fleet.flavor[i] else "left_out", rest)
        if not total and not fleet.flavor[i]:
            continue  # a node without GPUs is none of the fleet
        rows.append({"flavor": fleet.flavor[i] or "-", "domain": domains[name], "node": name, "gpus": gpus})
    return rows


def _held(intake: Intake) -> dict[str, tuple[int, int]]:
    """Slots per node that open leases hold: (with an Active one, with a Spare one only)."""
    slots: dict[str, dict[str, set[int]]] = defaultdict(lambda: {"Active": set(), "Spare": set()})
    for lease in intake.leases:
        if not lease.status.closed:
            slots[lease.spec.node][lease.spec.slice.role].update(lease.spec.ordinals)
    return {node: (len(by["Active"]), len(by["Spare"] - by["Active"])) for node, by in slots.items()}


def _grouped(rows: list[dict[str, Any]], by: list[str]) -> list[dict[str, Any]]:
    """Sums of the rows by some columns; ``largestGroup``: the most free GPUs in one domain."""
    from exporters.plans.nodelist import natural

    sums: dict[tuple[str, ...], Gpus] = defaultdict(Gpus)
    free: dict[tuple[str, ...], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        key = tuple(row[column] for column in by)
        sums[key].add(row["gpus"])
        free[key][row["domain"]] += row["gpus"].free
    return [
        {**dict(zip(by, key, strict=True)), **sums[key].record(), "largestGroup": max(free[key].values())}
        for key in sorted(sums, key=lambda key: [natural(part) for part in key])
    ]
