"""`submit`: Runs, Budgets, a Policy and, for a state file, Nodes into the cluster, all or none."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jobtree.api.kinds.core import Node
from jobtree.api.values.counted import named
from jobtree.api.values.errors import Refusal
from jobtree.cli.changing import manifests, nodes
from jobtree.cli.changing.doubts import doubts
from jobtree.cli.common import lookup, show
from jobtree.cli.common.args import Commands, Options, command, start_planner

if TYPE_CHECKING:
    from jobtree.api import KindObject
    from jobtree.cli.changing.manifests import Manifest
    from jobtree.cluster.protocol import Cluster, Write
    from jobtree.world.reading.intake import Intake


def add(commands: Commands) -> None:
    """Declares the command."""
    submit = command(
        commands,
        "submit",
        _submit,
        "submit Runs, Budgets, a Policy and, to a file, Nodes: all of them or none",
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
    nodes_too = options.state is not None  # a live cluster's come from its kubelets
    place = manifests.Place(options.namespace, cluster.namespace)
    found = manifests.read(given.filenames, place, follow=given.follow, nodes=nodes_too)
    if not found:
        kinds = (*manifests.KINDS, "Node") if nodes_too else manifests.KINDS
        raise Refusal(f"{', '.join(given.filenames)} has no object in it; allowed are {', '.join(kinds)}")
    structured = options.output in {"json", "yaml"}
    if not structured:
        start_planner()
    words = _written(options, cluster, found)
    if structured:
        from exporters.plans.plain import document

        after = _objects(cluster.read())
        shown = [
            each.value if isinstance(each.item, Node) else document(after.get(each.subject, each.item))
            for each in found
        ]
        show.data(show.listing(shown), options.output)
        return 0
    said = list(zip(found, words, strict=True))
    show.say(*nodes.said([(each.item.metadata.name, word) for each, word in said if isinstance(each.item, Node)]))
    show.say(*(f"{each.subject} {word}" for each, word in said if not isinstance(each.item, Node)))
    _next_cycle(options, [each.item for each in found if isinstance(each.item, Run)])
    return 0


def _written(options: Options, cluster: Cluster, found: Sequence[Manifest]) -> list[str]:
    """Writes all of it, warns of what is odd in it, and returns kubectl's word for each. Raises Refusal for all."""
    items = [each.item for each in found if not isinstance(each.item, Node)]
    with cluster.hold():
        intake, broken = _read(cluster, found)
        fleet = nodes.joined(intake, found)
        show.warn([*check(intake, found), *nodes.check(fleet, found)])
        if not intake.hidden:
            show.warn([*_strange_flavors(fleet, items), *doubts(fleet, items, options.time)])
        _refuse_strangers(intake, items, options.time)
        stored = _objects(intake)
        show.warn(_ended(stored, found))
        there = {node.metadata.name: node for node in intake.nodes}
        outcomes = [
            nodes.outcome(there.get(each.item.metadata.name), each, options.time)
            if isinstance(each.item, Node)
            else _replacement(each.value, each.item)
            if each.subject in broken
            else _outcome(stored.get(each.subject), each.value, each.item)
            for each in found
        ]
        cluster.write([write for _, writes in outcomes for write in writes], intake.revision)
    return [word for word, _ in outcomes]


def _ended(stored: Mapping[str, KindObject], found: Iterable[Manifest]) -> Iterator[str]:
    """Warnings of runs that are over and stay so. Raises Refusal where one of them is to be another."""
    from jobtree.api import Run
    from jobtree.api.rules.kinds import check_update

    for each in found:
        before = stored.get(each.subject)
        if isinstance(before, Run) and isinstance(each.item, Run) and lookup.over(before):
            words = f"{each.subject} {lookup.again(before)}"
            try:
                check_update(before, each.item)
            except Refusal:
                raise Refusal(words) from None
            if each.item.spec.state != "Cancelled":
                yield words


def _read(cluster: Cluster, items: Sequence[Manifest]) -> tuple[Intake, set[str]]:
    """What is there, and the subjects of what is there and cannot be used: it is replaced where it is submitted.

    Raises Refusal for a broken Policy, unless another takes its place.
    """
    from jobtree.api import Policy
    from jobtree.world.reading.intake import POLICY

    policy = next((each.subject for each in items if isinstance(each.item, Policy)), None)
    broken = set()
    try:
        intake = cluster.read()
    except Refusal as refusal:
        if policy is None or refusal.subject != policy:
            raise
        intake = cluster.read(without=POLICY)
        broken.add(policy)
    return intake, broken | {notice.subject for notice in intake.quarantined}


def check(intake: Intake, found: Sequence[Manifest]) -> list[str]:
    """Warnings. Raises Refusal where an object, or the set with what is there already, breaks a rule."""
    from jobtree.api import Budget, Run
    from jobtree.api.rules.kinds import check_node, check_object, check_set

    subjects = [each.subject for each in found]
    twice = next((subject for subject, number in Counter(subjects).items() if number > 1), None)
    if twice is not None:
        raise Refusal(f"{twice} is submitted twice; remove one of the two")
    for each in found:
        if isinstance(each.item, Node):
            check_node(each.item)
    items = [each.item for each in found if not isinstance(each.item, Node)]
    warnings = [warning for item in items for warning in check_object(item)]
    together: list[KindObject] = [item for item in items if isinstance(item, Budget | Run)]
    submitted = frozenset(subjects)
    together += [budget for budget in intake.budgets if budget.subject not in submitted]
    together += [run for run in intake.runs if run.subject not in submitted]
    check_set(together)
    return warnings


def _strange_flavors(intake: Intake, items: Sequence[KindObject]) -> list[str]:
    """Warnings for flavors that no node has: a slip of the pen would wait for ever, or pay for nothing."""
    from exporters.plans.nodelist import natural
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
    asked += [
        (item, f"spec.useCaps[{number}].flavor", use.flavor)
        for item in items
        if isinstance(item, Budget)
        for number, use in enumerate(item.spec.use_caps)
    ]
    return [
        f"{item.subject}: {field} is {flavor}, and no node has it; there are {named(there)}"
        for item, field, flavor in asked
        if flavor and flavor not in there
    ]


def _refuse_strangers(intake: Intake, items: Sequence[KindObject], at: int) -> None:
    """Raises Refusal for a Run whose namespace may not charge as its owner, by the Budgets as they will be."""
    from jobtree.api import Budget, Policy, Run
    from jobtree.world.tables.snapshot import take
    from planner.state.derive import state_of
    from policies.lifecycle import tenancy

    runs = [item for item in items if isinstance(item, Run)]
    if not runs or {"budgets", "policies"} & {*intake.hidden}:  # the planner sees to it
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
        hidden=(),  # it hangs on Budgets and the Policy alone
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
    from exporters.plans.plain import merge_patch
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
    from jobtree.cli.asking.explain import next_cycle

    intake = options.cluster().read()
    last = intake.last_cycle
    if last is not None and options.time < last:  # time never goes back: the next cycle is at the last one's at least
        options = replace(options, at=int(last))
    try:
        found = [lookup.find_run(intake, run.name, run.namespace) for run in runs]
        fates, losing = next_cycle(options, intake, found)
    except Refusal as refusal:
        show.warn([f"what the next cycle would do cannot be said: {refusal}"])
        fates, losing = [], []
    for fate in fates:
        show.say("", f"Next cycle, Run {fate.run}:", *(f"  {line}" for line in fate.lines()))
    if losing:
        show.say("", "Next cycle, runs that nobody would pay any more:", *(f"  {line}" for line in losing))
    if fates and all(fate.reason in {"NeverFits", "NoFunding"} for fate in fates):
        return  # a cycle changes nothing of that
    if options.state is None:  # a live cluster's next cycle comes by itself
        return
    at = "" if options.at is None else f" --at {Time(options.at)}"
    show.say("", f"Run it: jobtree {options.reach}cycle{at}")
