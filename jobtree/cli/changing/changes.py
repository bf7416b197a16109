"""What the options of `whatif` change, on the snapshot's tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from exporters.plans.nodelist import compress, expand, natural
from jobtree.api.kinds.run import IndexRun, Run
from jobtree.api.values.counted import counted, named
from jobtree.api.values.errors import Refusal
from jobtree.cli.changing import doubts
from jobtree.cli.common import args, lookup, show
from jobtree.cli.common.args import Options, UsageError

if TYPE_CHECKING:
    from jobtree.world.reading.intake import Intake
    from planner.advice.edits import Edit

Maker = Callable[["Intake", Options, str], "tuple[str, list[Edit]]"]
"""What an option with its value changes: in words, and on the tables."""


def _split(option: str, text: str) -> tuple[str, int]:
    """``NAME=N``. Raises UsageError for anything else."""
    name, _, number = text.partition("=")
    try:
        return name, args.count(number)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"argument --{option}: {text!r} is to be {OPTIONS[option][0]}: {error}") from None


def _run(intake: Intake, options: Options, text: str) -> Run:
    """A run, or one index of an array. Raises Refusal for an array, whose indices are other rows than its own."""
    run = lookup.find_run(intake, text, options.namespace)
    if run.spec.array is not None and not isinstance(run, IndexRun):
        raise Refusal(f"{run.subject} is an array, and only one index at a time can be otherwise: {run.name}-INDEX")
    return run


def _cap(intake: Intake, _options: Options, text: str) -> tuple[str, list[Edit]]:
    from planner.advice.edits import Cell

    if "/" not in text:
        raise UsageError(f"argument --cap: {text!r} is without an envelope or cap; {_such(intake)}")
    name, gpus = _split("cap", text)
    budget, _, part = name.partition("/")
    found = next((each for each in intake.budgets if each.name == budget), None)
    if found is None:
        raise Refusal(f"there is no Budget {budget}; there are {_list(each.name for each in intake.budgets)}")
    parts = {each.name: "envelopes" for each in found.spec.envelopes}
    parts |= {each.name: "aggregates" for each in found.spec.aggregate_caps if each.name not in parts}
    parts |= {each.name: "use_caps" for each in found.spec.use_caps if each.name not in parts}
    if part not in parts:
        raise Refusal(f"Budget {budget} has no envelope, aggregate cap or use cap {part}; there are {_list(parts)}")
    return f"{name} has {counted(gpus, 'GPU')}", [Cell(parts[part], (budget, part), "concurrency", gpus)]


def _such(intake: Intake) -> str:
    """How --cap is written, with a name that is there where there is one."""
    there = ((each.name, part.name, part.concurrency) for each in intake.budgets for part in each.spec.envelopes)
    budget, part, gpus = next(there, ("rai-sys", "west", None))
    return f"allowed is {OPTIONS['cap'][0]}, such as {budget}/{part}={gpus or 8}"


def _width(intake: Intake, options: Options, text: str) -> tuple[str, list[Edit]]:
    from jobtree.api.rules.kinds import check_object
    from planner.advice.edits import Cell

    name, gpus = _split("width", text)
    run = _run(intake, options, name)
    if lookup.open_leases(intake.leases).get((run.namespace, run.name)):
        raise Refusal(f"{run.subject} holds its GPUs already; only of a run that waits the width can be asked")
    key, spec, change = (run.namespace, run.name), run.spec, msgspec.structs.replace
    total = gpus if spec.malleable is None else max(gpus, spec.total_gpus)
    changed = change(spec, resources=change(spec.resources, total_gpus=total))
    edits: list[Edit] = [Cell("runs", key, "total", total)]
    if spec.malleable is not None:
        changed = change(changed, malleable=change(spec.malleable, min_total_gpus=gpus))
        edits.append(Cell("runs", key, "min_total", gpus))
    check_object(change(run, spec=changed))
    return f"{run.subject} asks for {'at least ' if spec.malleable else ''}{counted(gpus, 'GPU')}", edits


def _state(state: str) -> Maker:
    def maker(intake: Intake, options: Options, text: str) -> tuple[str, list[Edit]]:
        from planner.advice.edits import Cell

        run = _run(intake, options, text)
        return f"{run.subject} is {state.lower()}", [Cell("runs", (run.namespace, run.name), "state", state)]

    return maker


def _sponsor(intake: Intake, options: Options, text: str) -> tuple[str, list[Edit]]:
    from planner.advice.edits import Cell

    name, _, owner = text.partition("=")
    run = _run(intake, options, name)
    if not owner:
        raise UsageError(f"argument --sponsor: {text!r} is to be RUN=OWNER")
    show.warn(f"--sponsor {text}: {words}" for words in doubts.sponsor(intake, owner))
    listed = [*(str(each) for each in run.spec.funding.sponsors if str(each) != owner), owner]
    key = (run.namespace, run.name)
    edits: list[Edit] = [Cell("runs", key, "sponsors", listed), Cell("runs", key, "allow_borrow", True)]
    return f"{run.subject} may borrow from {owner}", edits


def _add_nodes(intake: Intake, _options: Options, text: str) -> tuple[str, list[Edit]]:
    from planner.advice.edits import copies

    name, count = _split("add-nodes", text)
    there = {node.metadata.name for node in intake.nodes}
    words = f"there {'is' if count == 1 else 'are'} {counted(count, 'node')} more like {name}"
    return words, [*copies(name, count, there)]


def _remove_node(intake: Intake, _options: Options, text: str) -> tuple[str, list[Edit]]:
    from planner.advice.edits import Drop

    return _said(found := _nodes(intake, text), "gone"), [Drop(name) for name in found]


def _cordoned(cordoned: bool, word: str) -> Maker:
    def maker(intake: Intake, _options: Options, text: str) -> tuple[str, list[Edit]]:
        from planner.advice.edits import Cell

        return _said(found := _nodes(intake, text), word), [
            Cell("nodes", (name,), "unschedulable", cordoned) for name in found
        ]

    return maker


def _nodes(intake: Intake, text: str) -> list[str]:
    """Nodes as commands print them, `b01-b04,c02`; one that is not there is refused where it is looked up."""
    return expand(text, {node.metadata.name for node in intake.nodes}) or [text]


def _said(nodes: list[str], word: str) -> str:
    return f"node {nodes[0]} is {word}" if len(nodes) == 1 else f"nodes {compress(nodes)} are {word}"


def _list(names: Iterable[str]) -> str:
    return named(sorted(names, key=natural)) or "none"


OPTIONS: Final[dict[str, tuple[str, str, Maker]]] = {
    "cap": ("BUDGET/NAME=N", "an envelope, aggregate cap or use cap of N GPUs", _cap),
    "width": ("RUN=N", "a waiting run of N GPUs (of N at least, where it is malleable)", _width),
    "cancel": ("RUN", "a run that is cancelled", _state("Cancelled")),
    "suspend": ("RUN", "a run that is suspended", _state("Suspended")),
    "sponsor": ("RUN=OWNER", "a run that may borrow from OWNER too", _sponsor),
    "add-nodes": ("NODE=N", "N more nodes like NODE", _add_nodes),
    "remove-node": ("NODE", "a node that is gone", _remove_node),
    "cordon": ("NODE", "a node that takes nothing new", _cordoned(True, "cordoned")),
    "uncordon": ("NODE", "a node that takes work again", _cordoned(False, "uncordoned")),
}
"""By name: what its value looks like, what it says, and what it changes."""
