"""`submit`: Runs, Budgets and a Policy into the cluster, all or none."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobtree.api.errors import Refusal
from jobtree.cli import files, lookup, show
from jobtree.cli.args import Commands, Options, command, start_planner

if TYPE_CHECKING:
    from jobtree.api import KindObject
    from jobtree.cluster.protocol import Write
    from jobtree.cluster.statefile import StateFile
    from jobtree.world.intake import Intake, Key

Manifest = tuple[dict[str, Any], "KindObject"]
"""An object as it was written, and as it was understood."""

_SUBMITTED = ("Run", "Budget", "Policy")


def add(commands: Commands) -> None:
    """Declares the command."""
    submit = command(
        commands,
        "submit",
        _submit,
        "submit Runs, Budgets and a Policy: all of them or none",
        example="kubectl runs --state cluster.yaml submit -f resnet-small.yaml",
    )
    submit.add_argument(
        "-f", "--filename", dest="filenames", action="append", required=True, metavar="FILE",
        help="YAML or JSON with any number of objects; - for stdin; may be given several times",
    )  # fmt: skip
    submit.add_argument("--follow", metavar="RUN", help="the submitted Runs wait until RUN has completed")


def _submit(options: Options, given: argparse.Namespace) -> int:
    from jobtree.api import Run

    cluster = options.cluster(create=True)
    given_objects = [each for file in given.filenames for each in manifests(file, options.namespace, given.follow)]
    items = [item for _, item in given_objects]
    if not items:
        raise Refusal(f"{', '.join(given.filenames)} has no object in it; allowed are {', '.join(_SUBMITTED)}")
    structured = options.output in {"json", "yaml"}
    if not structured:
        start_planner()
    with cluster.hold():
        intake, broken = _read(cluster, items)
        show.warn([*check(intake, items), *_strange_flavors(intake, items)])
        _refuse_strangers(intake, items, options.time)
        stored = _objects(intake)
        outcomes = [
            _replacement(value, item) if item.subject in broken else _outcome(stored.get(item.subject), value, item)
            for value, item in given_objects
        ]
        cluster.write([write for _, writes in outcomes for write in writes], intake.revision)
    if structured:
        from exporters.plain import document

        after = _objects(cluster.read())
        show.data(show.listing([document(after.get(item.subject, item)) for item in items]), options.output)
        return 0
    show.say(*(f"{item.subject} {word}" for item, (word, _) in zip(items, outcomes, strict=True)))
    _next_cycle(options, [item for item in items if isinstance(item, Run)])
    return 0


def _read(cluster: StateFile, items: Sequence[KindObject]) -> tuple[Intake, set[str]]:
    """What is there, and the subjects of what is there and cannot be used: it is replaced where it is submitted.

    Raises Refusal for a broken Policy, unless another takes its place.
    """
    from jobtree.world.intake import POLICY

    policy = next((item.subject for item in items if item.kind == "Policy"), None)
    broken = set()
    try:
        intake = cluster.read()
    except Refusal as refusal:
        if policy is None or refusal.subject != policy:
            raise
        intake = cluster.read(without=POLICY)
        broken.add(policy)
    return intake, broken | {notice.subject for notice in intake.quarantined}


def manifests(file: str, namespace: str | None, follow: str | None = None) -> list[Manifest]:
    """The objects of one file, in its order. Raises Refusal, naming the file, for what cannot be submitted."""
    from jobtree.api import API_VERSION, GROUP, decode
    from jobtree.api.core import Node, Pod
    from jobtree.api.errors import missing, wrong
    from jobtree.cluster.document import parse

    data = sys.stdin.buffer.read() if file == "-" else files.read(Path(file))
    try:
        found = []
        for document in parse(data).documents():
            kind = document.key.kind
            if kind not in _SUBMITTED:
                raise Refusal(f"{document.key} cannot be submitted; allowed are {', '.join(_SUBMITTED)}")
            value = document.value()
            if document.key.group != GROUP:
                said = value.get("apiVersion")
                refusal = wrong("apiVersion", said, API_VERSION) if said else missing("apiVersion", API_VERSION)
                raise refusal.about(str(document.key))
            value = _placed(value, document.key, namespace)
            if follow is not None and kind == "Run":
                _add_follow(value, follow)
            item = decode(kind, value)
            assert not isinstance(item, Node | Pod), "only kinds of the group are submitted"
            found.append((value, item))
    except Refusal as refusal:
        raise refusal if refusal.subject else refusal.about(file) from None
    return found


def _placed(value: dict[str, Any], key: Key, namespace: str | None) -> dict[str, Any]:
    """The object without a status (cycles write that), a Run in its namespace: its own, else ``-n``'s, else default.

    Raises Refusal where the two differ.
    """
    value.pop("status", None)
    if key.kind != "Run" or not isinstance(value.get("metadata"), dict):
        return value
    own = value["metadata"].get("namespace")
    if own and namespace and own != namespace:
        raise Refusal(f"{key} says namespace {own}, and -n says {namespace}; say one of them")
    return {**value, "metadata": {**value["metadata"], "namespace": own or namespace or "default"}}


def _add_follow(value: dict[str, Any], upstream: str) -> None:
    spec = value.get("spec")
    if isinstance(spec, dict):
        follow = spec.setdefault("follow", {})
        if isinstance(follow, dict):
            follow["after"] = [*(each for each in follow.get("after", []) if each != upstream), upstream]


def check(intake: Intake, items: Sequence[KindObject]) -> list[str]:
    """Warnings. Raises Refusal where an object, or the set with what is there already, breaks a rule."""
    from jobtree.api import Budget, Run
    from jobtree.api.rules import check_object, check_set

    subjects = [item.subject for item in items]
    twice = next((subject for subject in subjects if subjects.count(subject) > 1), None)
    if twice is not None:
        raise Refusal(f"{twice} is submitted twice; remove one of the two")
    warnings = [warning for item in items for warning in check_object(item)]
    together: list[KindObject] = [item for item in items if isinstance(item, Budget | Run)]
    together += [budget for budget in intake.budgets if budget.subject not in subjects]
    together += [run for run in intake.runs if run.subject not in subjects]
    check_set(together)
    return warnings


def _strange_flavors(intake: Intake, items: Sequence[KindObject]) -> list[str]:
    """Warnings for flavors that no node has: a slip of the pen would wait for ever, or pay for nothing."""
    from exporters.nodelist import natural
    from jobtree.api import Budget, Policy, Run

    label = (intake.policy or Policy()).spec.topology.labels.flavor
    there = sorted({flavor for node in intake.nodes if (flavor := node.metadata.labels.get(label))}, key=natural)
    if not there:
        return []
    asked: list[tuple[KindObject, str, str | None]] = [
        (item, "spec.resources.gpuType", item.spec.resources.gpu_type) for item in items if isinstance(item, Run)
    ]
    asked += [
        (item, f"spec.envelopes[{number}].flavor", envelope.flavor)
        for item in items
        if isinstance(item, Budget)
        for number, envelope in enumerate(item.spec.envelopes)
    ]
    return [
        f"{item.subject}: {field} is {flavor}, and no node has it; there are {', '.join(there)}"
        for item, field, flavor in asked
        if flavor and flavor not in there
    ]


def _refuse_strangers(intake: Intake, items: Sequence[KindObject], at: int) -> None:
    """Raises Refusal for a Run whose namespace may not charge as its owner, by the Budgets as they will be."""
    from jobtree.api import Budget, Policy, Run
    from jobtree.world.snapshot import take
    from planner.derive import state_of
    from policies import tenancy

    runs = [item for item in items if isinstance(item, Run)]
    if not runs:
        return
    budgets = {budget.name: budget for budget in intake.budgets} | {
        item.name: item for item in items if isinstance(item, Budget)
    }
    policy = next((item for item in items if isinstance(item, Policy)), intake.policy)
    after = replace(
        intake,
        nodes=(),
        pods=(),
        runs=(),
        leases=(),
        policy=policy,
        budgets=tuple(budgets[name] for name in sorted(budgets)),
    )
    money = state_of(take(after), at).money
    for run in runs:
        if refusal := tenancy.refusal(money, run.spec.owner, run.namespace):
            raise Refusal(
                f"spec.owner is {run.spec.owner}, which runs in namespace {run.namespace} may not charge: {refusal}",
                subject=run.subject,
            )


def _objects(intake: Intake) -> dict[str, KindObject]:
    """What can be submitted and is there, by subject."""
    found: list[KindObject] = [*intake.runs, *intake.budgets, *([intake.policy] if intake.policy else [])]
    return {each.subject: each for each in found}


def _outcome(before: KindObject | None, value: dict[str, Any], item: KindObject) -> tuple[str, list[Write]]:
    """kubectl's word for what happens with the object (``before``: as it is there), and the write that does it."""
    from exporters.plain import merge_patch
    from jobtree.api import encode
    from jobtree.cluster.protocol import Ref, Write

    ref = Ref(item.kind, item.namespace, item.name)
    if before is None:
        return "created", [Write("create", ref, value)]
    old, new = encode(before), encode(item)
    patch: dict[str, Any] = {}
    if spec := merge_patch(old["spec"], new["spec"]):
        patch["spec"] = spec
    for part in ("labels", "annotations"):
        said = new["metadata"].get(part, {})
        changed = {key: text for key, text in said.items() if old["metadata"].get(part, {}).get(key) != text}
        if changed:
            patch.setdefault("metadata", {})[part] = changed
    return ("configured", [Write("patch", ref, patch)]) if patch else ("unchanged", [])


def _replacement(value: dict[str, Any], item: KindObject) -> tuple[str, list[Write]]:
    from jobtree.cluster.protocol import Ref, Write

    return "replaced", [Write("replace", Ref(item.kind, item.namespace, item.name), value)]


def _next_cycle(options: Options, runs: Sequence[KindObject]) -> None:
    """What the next cycle would do with what was submitted, and the command that runs it."""
    from jobtree.api import Time
    from jobtree.cli.explain import next_cycle

    intake = options.cluster().read()
    try:
        found = [lookup.find_run(intake, run.name, run.namespace) for run in runs]
        fates = next_cycle(options, intake, found)
    except Refusal as refusal:
        show.warn([f"what the next cycle would do cannot be said: {refusal}"])
        fates = []
    for fate in fates:
        show.say("", f"Next cycle, Run {fate.run}:", *(f"  {line}" for line in fate.lines()))
    at = "" if options.at is None else f" --at {Time(options.at)}"
    show.say("", f"Run it: jobtree --state {options.state} cycle{at}")
