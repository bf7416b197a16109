"""Results as Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from benchmarks import machine

PLANS: Final = (
    "Gaps are of the objective, GPUs × (one day + age up to three days), to its proven bound: what no plan can beat. "
    "Greedy is the planner's first incumbent: runs in order of age, aware of money and room."
)
TIMES: Final = (
    "The cycle's phases in one process, the planner with it. `command` is `jobtree cycle` as an operator runs it, with "
    "Python's start and the planner's own process, under the Policy's deadline (45 s by default)."
)


def markdown(result: dict[str, Any]) -> str:
    """The whole page: what it was measured on, what the worlds hold, times, and how good the plans are."""
    worlds = result["worlds"]
    spans = list(worlds[0]["cycle"]["spans"])
    parts = [
        f"# A planning cycle, {result['date']}",
        f"Measured on {machine.sentence(result['machine'])}. Worlds are `python -m benchmarks`' own.",
        "## Worlds and plans",
        PLANS,
        _table(
            ["GPUs", "running", "pending runs", "pending GPUs", "started runs", "started GPUs", "greedy GPUs",
             "gap to the bound", "greedy's gap", "checker"],
            (_quality(w["cycle"]) for w in worlds),
        ),
        "## Seconds of wall time (CPU)",
        TIMES,
        _table(
            ["GPUs", *spans, "sum", "command", "peak MB"],
            (_times(w, spans) for w in worlds),
        ),
        "## Stages",
        _table(
            ["GPUs", "stage", "value", "bound", "gap", "unit"],
            (_stage(w["cycle"]["gpus"], s) for w in worlds for s in w["cycle"]["stages"]),
        ),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _stage(gpus: int, stage: dict[str, Any]) -> list[str]:
    """A stage's row; one without a proof states its value only."""
    value, bound = stage["value"], stage["bound"]
    proof = [f"{bound:,}", f"{abs(bound - value) / max(1, abs(bound)):.4%}"] if stage.get("proven", True) else ["", ""]
    return [f"{gpus:,}", stage["name"], f"{value:,}", *proof, stage["unit"]]


def _quality(cycle: dict[str, Any]) -> list[str]:
    bound = next((s["bound"] for s in cycle["stages"] if s["value"] == cycle["weighted"]), None)

    def to_bound(value: int) -> str:
        return f"{(bound - value) / max(1, bound):.3%}" if bound is not None else "-"

    verdict = "passed" if cycle["violations"] == 0 else f"{cycle['violations']} violations"
    numbers = ("gpus", "running_gpus", "pending_runs", "pending_gpus", "started_runs", "started_gpus", "greedy_gpus")
    weighted = [to_bound(cycle["weighted"]), to_bound(cycle["greedy_weighted"])]
    return [*(f"{cycle[name]:,}" for name in numbers), *weighted, verdict]


def _times(world: dict[str, Any], spans: Sequence[str]) -> list[str]:
    found = world["cycle"]["spans"]
    whole = {kind: sum(span[kind] for span in found.values()) for kind in ("wall", "cpu")}
    command = world["command"]
    peak = max([command["peakMB"], *(span["peak_mb"] for span in found.values())])
    cells = [found[name] for name in spans]
    times = [f"{span['wall']:.2f} ({span['cpu']:.2f})" for span in [*cells, whole, command]]
    times[-1] += ", cut short" if command["truncated"] else ""
    return [f"{world['cycle']['gpus']:,}", *times, str(peak)]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---:"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
