"""The examples of the rule pages: small worlds, planned by the real cycle, with what must become of them.

A fenced block ``yaml world`` is a list of steps. A step is a method of `tests.support.worlds.World` with its arguments
(``run: {name: r, gpus: 4}``), ``complete: {run: r, at: +30m}``, or ``cycle: +1h`` with what is expected after that
cycle, each key one of `SEEN`:

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
    return [yaml.safe_load(text) for text in _BLOCK.findall(page.read_text(encoding="utf-8"))]


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
            found.append((dict(expected), {key: SEEN[key](world, cycle, given, value) for key, value in expected}))
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


def _usage(world: World, at: str, envelope: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    budget, _, name = envelope.partition("/")
    record = world.usage(budget, name, at)
    return {field: record.get(field, 0) for field in fields}


def _stages(cycle: Cycle, names: Mapping[str, Any]) -> dict[str, list[int]]:
    return {stage.name: [stage.value, stage.bound] for stage in cycle.plan.stages if stage.name in names}


SEEN: Final[dict[str, Callable[[World, Cycle, str, Any], Any]]] = {
    "running": lambda world, cycle, at, said: cycle.running,
    "waiting": lambda world, cycle, at, said: cycle.waiting,
    "phases": lambda world, cycle, at, said: {run: cycle.phases[run] for run in said},
    "payers": lambda world, cycle, at, said: {run: _payers(cycle, run) for run in said},
    "classes": lambda world, cycle, at, said: {run: cycle.funding(run) for run in said},
    "groups": lambda world, cycle, at, said: {run: _groups(cycle, run) for run in said},
    "spares": lambda world, cycle, at, said: {run: _spares(cycle, run) for run in said},
    "width": lambda world, cycle, at, said: {run: cycle.status(run)["width"]["allocated"] for run in said},
    "says": lambda world, cycle, at, said: {run: cycle.condition(run, "Admitted")["message"] for run in said},
    "reason": lambda world, cycle, at, said: {run: cycle.condition(run, "Admitted")["reason"] for run in said},
    "ended": lambda world, cycle, at, said: {
        run: [list(end) for end in sorted({(each.closure, each.ended) for each in cycle.leases(run, open=False)})]
        for run in said
    },
    "ledger": lambda world, cycle, at, said: {run: [list(s) for s in cycle.segments(run)[0]] for run in said},
    "limit": lambda world, cycle, at, said: {run: cycle.status(run)["timeLimit"] for run in said},
    "usage": lambda world, cycle, at, said: {e: _usage(world, at, e, fields) for e, fields in said.items()},
    "stages": lambda world, cycle, at, said: _stages(cycle, said),
    "warnings": lambda world, cycle, at, said: {each: cycle.warnings.get(each, []) for each in said},
}
"""What an example may say of a cycle, and how it is seen."""
