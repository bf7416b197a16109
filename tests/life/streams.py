"""Random streams of a fleet's life: nodes that fail, return, are cordoned, lose GPUs; elastic runs, standbys, arrays
and opportunistic work that come, shrink, end in every way; Budgets lowered, raised, deleted and made again in between.
"""

from typing import Any, Final

from hypothesis import strategies as st

from tests.history.play import Step
from tests.support import documents as doc
from tests.support.documents import Document, merge
from tests.support.times import T0, rfc3339, unix

START: Final = unix(T0)
NODES: Final = {f"{domain}{number}": domain for domain in ("a", "b") for number in (1, 2, 3)}
OWNERS: Final = ("org", "org:a", "org:b")
FIXED: Final = ("f0", "f1", "f2")
SPARE: Final = ("s0", "s1", "s2")
ELASTIC: Final = ("m0", "m1", "m2")
FREE: Final = ("o0", "o1")
ARRAYS: Final = ("x0",)
RUNS: Final = (*FIXED, *SPARE, *ELASTIC, *FREE, *ARRAYS)


def made(document: Document, at: int) -> Document:
    """With the metadata that a server gives at Unix second ``at``."""
    name = document["metadata"]["name"]
    return merge(document, {"metadata": {"uid": f"uid-{name}-{at}", "creationTimestamp": rfc3339(at - 1)}})


def node(name: str, at: int, gpus: int = 4) -> Document:
    """A node of 4 GPUs; made again it is another one."""
    return made(doc.node(name, gpus, domain=NODES[name]), at)


@st.composite
def budgets(draw: st.DrawFn, owner: str, at: int) -> Document:
    """A Budget of one envelope, sometimes with a cap over what its owner's runs use."""
    said: dict[str, Any] = {"scope": draw(st.sampled_from([None, None, "subtree"]))}
    if draw(st.integers(1, 4)) == 1:
        said["maxGPUHours"] = draw(st.integers(1, 40)) / 10
    else:
        said["lending"] = draw(st.sampled_from([None, {"allow": True, "maxDuration": "10m"}]))
    bounds = {key: value for key, value in said.items() if value is not None}
    uses = [{"name": "use", "maxConcurrency": draw(st.integers(4, 16))}] if draw(st.integers(1, 5)) == 1 else []
    return made(doc.budget(owner, [doc.envelope(draw(st.integers(2, 20)), **bounds)], useCaps=uses), at)


@st.composite
def runs(draw: st.DrawFn, name: str, at: int) -> Document:
    """A Run of its kind, by its name."""
    pods = draw(st.sampled_from([None, 1, 2]))
    gpus = draw(st.sampled_from([2, 4]))
    limit = draw(st.sampled_from([None, None, None, "7m", "40m"]))
    spec: dict[str, Any] = {
        "runtime": {"requeue": draw(st.booleans()), **({"timeLimit": limit} if limit else {})},
        "resources": {"gpusPerPod": pods} if pods else {},
    }
    if name in FREE:
        spec["funding"] = {"opportunistic": True}
    elif draw(st.integers(1, 3)) == 1:
        spec["funding"] = {"allowBorrow": True, "sponsors": ["org", "org:a", "org:b"]}
    if name == "f1" and draw(st.booleans()):
        how = draw(st.sampled_from(["fail", "wait"]))
        spec["follow"] = {"after": ["f0"], "onUpstreamFailure": how, "upstreamFailureGrace": "5m"}
    if name in SPARE:
        spec |= {"spares": draw(st.sampled_from([1, 2])), "locality": {"groupGPUs": gpus}}
        gpus *= draw(st.sampled_from([1, 2]))
    if name in ELASTIC or (name in FREE and draw(st.booleans())):
        spec["locality"] = {"groupGPUs": 2, "allowCrossGroupSpread": draw(st.booleans())}
        spec["spares"] = draw(st.sampled_from([0, 0, 1]))
        spec["malleable"] = {"minTotalGPUs": 2, "maxTotalGPUs": draw(st.sampled_from([4, 6, 8])), "stepGPUs": 2}
        gpus = draw(st.sampled_from([2, 4]))
    if name in ARRAYS:
        spec["array"] = {"count": draw(st.integers(2, 4)), "maxParallel": draw(st.sampled_from([1, 2, None]))}
        spec["array"] = {key: value for key, value in spec["array"].items() if value}
        gpus = 2
    owner = draw(st.sampled_from(["org:a", "org:a", "org:b", "guest" if name in FREE else "org"]))
    return made(merge(doc.run(name, gpus, owner), {"spec": spec}), at)


def silent(at: int) -> Document:
    """A patch: the kubelet has said nothing since."""
    return {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": rfc3339(at)}]}}


READY: Final[Document] = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def on_nodes(at: int) -> st.SearchStrategy[dict[str, Any]]:
    """What becomes of a node."""
    name = st.sampled_from([*NODES])
    patches = [
        silent(at - 400),
        silent(at - 60),
        READY,
        {"spec": {"unschedulable": True}},
        {"spec": {"unschedulable": None}},
        {"status": {"allocatable": {"nvidia.com/gpu": "3"}}},
        {"status": {"allocatable": {"nvidia.com/gpu": "4"}}},
        {"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}},
        {"spec": {"taints": None}},
    ]
    return st.one_of(
        name.map(lambda each: {"gone": [("Node", each)]}),
        name.map(lambda each: {"put": [node(each, at)]}),
        st.builds(lambda each, patch: {"patches": [("Node", each, patch)]}, name, st.sampled_from(patches)),
    )


def on_runs(since: int, at: int) -> st.SearchStrategy[dict[str, Any]]:
    """What becomes of a run."""
    name = st.sampled_from(RUNS)
    ended = st.integers(since, at).map(
        lambda when: {"metadata": {"annotations": {"rq.davidlangworthy.io/completed": rfc3339(when)}}}
    )
    state = st.sampled_from(["Cancelled", "Suspended", "Active"]).map(lambda word: {"spec": {"state": word}})
    wanted = st.sampled_from([2, 4, 6]).map(lambda gpus: {"spec": {"malleable": {"desiredTotalGPUs": gpus}}})
    return st.one_of(
        name.flatmap(lambda each: runs(each, at)).map(lambda each: {"put": [each]}),
        st.builds(lambda each, patch: {"patches": [("Run", each, patch)]}, name, st.one_of(ended, state)),
        st.builds(lambda each, patch: {"patches": [("Run", each, patch)]}, st.sampled_from(ELASTIC), wanted),
        name.map(lambda each: {"gone": [("Run", each)]}),
    )


def on_budgets(at: int) -> st.SearchStrategy[dict[str, Any]]:
    """What becomes of a Budget."""
    owner = st.sampled_from(OWNERS)
    return st.one_of(
        owner.flatmap(lambda each: budgets(each, at)).map(lambda each: {"put": [each]}),
        owner.map(lambda each: {"gone": [("Budget", each.replace(":", "-"))]}),
    )


@st.composite
def streams(draw: st.DrawFn) -> list[Step]:
    """Four to nine cycles."""
    policy = made(doc.policy(elasticity={"maxGrowStepsPerCycle": draw(st.sampled_from([1, 1, 2]))}), START)
    world = [policy, *(node(name, START) for name in NODES), *(draw(budgets(owner, START)) for owner in OWNERS)]
    world += [draw(runs(name, START)) for name in draw(st.sets(st.sampled_from(RUNS), min_size=4).map(sorted))]
    steps = [Step(START, put=world)]
    for _ in range(draw(st.integers(3, 8))):
        since, at = steps[-1].at, steps[-1].at + draw(st.sampled_from([1, 30, 60, 60, 300, 900]))
        change = st.one_of(on_nodes(at), on_nodes(at), on_runs(since, at), on_runs(since, at), on_budgets(at))
        done = draw(st.lists(change, max_size=4))
        parts = {key: [each for one in done for each in one.get(key, ())] for key in ("put", "patches", "gone")}
        steps.append(Step(at, **parts))
    return steps
