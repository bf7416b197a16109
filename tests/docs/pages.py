"""The examples of the rule pages: small worlds, planned by the real cycle, with what must become of them.

A fenced block ``yaml world`` is a list of steps. A step is a method of `tests.support.worlds.World` with its arguments
(``run: {name: r, gpus: 4}``), ``complete: {run: r, at: +30m}``, or ``cycle: +1h`` with what is expected after that
cycle, each key one of `OF_A_RUN` or `_seen`:

    - run: {name: r, gpus: 4}
    - cycle: +0s
      running: [r]
      payers: {r: {org-a/gpus: 4}}
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.worlds import Cycle, World

ROOT: Final = Path(__file__).parents[2]
RULES: Final = ROOT / "docs" / "rules"
_BLOCK = re.compile(r"^```yaml world\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BUILDERS: Final = {"node", "domain", "budget", "run", "policy", "foreign_pod", "edit", "delete"}


def worlds(page: Path) -> list[list[dict[str, Any]]]:
    """The examples of a page, in its order."""
    return [yaml.load(text, yaml.CSafeLoader) for text in _BLOCK.findall(page.read_text(encoding="utf-8"))]


def play(steps: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Carry out an example. Returns (what the page says, what became of it) for each cycle."""
    world = World()
    if not any("policy" in step for step in steps):
        world.policy()
    found = []
    for step in steps:
        (what, given), *expected = step.items()
        if what == "cycle":
            cycle = world.cycle(given)
            found.append((dict(expected), {key: _seen(world, cycle, given, key, value) for key, value in expected}))
        elif what == "complete":
            world.runs("complete", given["run"], at=given["at"]).ok()
        else:
            assert what in _BUILDERS, f"a step is {', '.join(sorted(_BUILDERS))}, complete or cycle, not {what}"
            getattr(world, what)(**given)
    return found


def _payers(cycle: Cycle, run: str) -> dict[str, int]:
    """GPUs of open leases, Active and Spare, by payer."""
    found: dict[str, int] = {}
    for lease in cycle.leases(run, open=True):
        found[lease.payer or "nobody"] = found.get(lease.payer or "nobody", 0) + lease.gpus
    return found


def _groups(cycle: Cycle, run: str) -> dict[int, dict[str, int]]:
    """GPUs of open leases by group and node."""
    found: dict[int, dict[str, int]] = {}
    for lease in cycle.leases(run, open=True):
        for node in lease.nodes:
            group = found.setdefault(lease.group, {})
            group[node] = group.get(node, 0) + lease.gpus
    return found


def _spares(cycle: Cycle, run: str) -> int:
    return sum(lease.gpus for lease in cycle.leases(run, open=True) if lease.role == "Spare")


def _ends(cycle: Cycle, run: str) -> list[list[str | None]]:
    """Why and when its leases ended, each once."""
    found: list[list[str | None]] = []
    for lease in cycle.leases(run, open=False):
        end = [lease.closure, lease.ended]
        found += [] if end in found else [end]
    return found


def _usage(world: World, at: str, envelope: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    budget, _, name = envelope.partition("/")
    record = world.usage(budget, name, at)
    return {field: record.get(field, 0) for field in fields}


def _remedies(world: World, run: str, at: str) -> list[str]:
    """What `explain` says of remedies, for a cluster that needs no naming.

    `none: …` where there is none, `no remedy: …` for changes that are none.
    """
    printed = world.runs("explain", run, at=at).ok().out.replace(f" --state {world.path}", "")
    marks = {"Remedies": "", "No remedy": "none: ", "No remedies": "no remedy: "}
    found = []
    for part in printed.split("\n\n"):
        title, *lines = part.splitlines()
        mark = marks.get(title.partition(",")[0])
        found += [] if mark is None else [f"{mark}{line.strip()}" for line in lines]
    return found


OF_A_RUN: Final[dict[str, Callable[[Cycle, str], Any]]] = {
    "phases": lambda cycle, run: cycle.phases[run],
    "payers": _payers,
    "classes": lambda cycle, run: cycle.funding(run),
    "groups": _groups,
    "spares": _spares,
    "width": lambda cycle, run: cycle.status(run)["width"]["allocated"],
    "limit": lambda cycle, run: cycle.status(run)["timeLimit"],
    "says": lambda cycle, run: cycle.condition(run, "Admitted")["message"],
    "reason": lambda cycle, run: cycle.condition(run, "Admitted")["reason"],
    "ended": _ends,
    "ledger": lambda cycle, run: [list(segment) for segment in cycle.segments(run)[0]],
}
"""What an example may say of runs, by their names, beside what `_seen` knows."""


def _seen(world: World, cycle: Cycle, at: str, what: str, said: Any) -> Any:
    """What became of that of which the page says ``said``."""
    if what in {"running", "waiting"}:
        return getattr(cycle, what)
    if what == "usage":
        return {envelope: _usage(world, at, envelope, fields) for envelope, fields in said.items()}
    if what == "stages":
        return {stage.name: [stage.value, stage.bound] for stage in cycle.plan.stages if stage.name in said}
    if what == "remedies":
        return {run: _remedies(world, run, at) for run in said}
    if what == "warnings":
        return {about: cycle.warnings.get(about, []) for about in said}
    return {run: OF_A_RUN[what](cycle, run) for run in said}
