"""``python -m benchmarks.hostile [WORLD ...]``: may one tenant's objects take the cycle from the others?

Each world has objects that a tenant could write to cost as much as they can, beside other tenants' work; its tame mate
has as many, with nothing odd about them. Prints the CPU seconds of a cycle on both, phase by phase (of all worlds
together also into `results/hostile.md`), and fails where a hostile world takes more than `MOST` times its mate. Every
world is measured in a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks import machine
from benchmarks.clock import Clock
from benchmarks.cycles.tables import table

Document = dict[str, Any]

MOST: Final = 3.0
"""Times its tame mate that a hostile world may take."""
FLOOR: Final = 1.0
"""CPU seconds that any world may take: less than that, nobody waits for it."""
PATIENCE: Final = 120
"""Seconds of wall time after which a world counts as lost."""
RESULTS: Final = Path(__file__).parent / "results" / "hostile.md"
PAGE: Final = """# Cycles on hostile worlds, {date}

Measured on {on}.

3,000 runs that one tenant wrote to cost as much as they can, beside 100 nodes and the work of ten others, and as many
tame ones (`benchmarks/hostile.py` says what each world is): CPU seconds of a cycle, of the hostile one phase by phase.

{table}
"""
AT: Final = 1_767_225_600
RUNS: Final = 3_000
NODES: Final = 100
GROUP: Final = "rq.davidlangworthy.io/v1"
FLAVOR: Final = "H100-80GB"


def _object(kind: str, name: str, spec: Document, number: int = 0) -> Document:
    created = datetime.fromtimestamp(AT - 100_000 + number, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {"name": name, "uid": f"{kind}-{name}"[:60], "creationTimestamp": created}
    return {"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": spec}


def _node(number: int, name: str = "", **labels: str) -> Document:
    made = _object("Node", name or f"n{number:05}", {})
    place = {"region": "us-west", "cluster": "c1", "fabric.domain": f"d{number // 8}", "gpu.flavor": FLAVOR, **labels}
    resources = {"nvidia.com/gpu": "8", "cpu": "128", "memory": "2048Gi", "pods": "110"}
    metadata = {**made["metadata"], "labels": place}
    return {**made, "apiVersion": "v1", "metadata": metadata, "status": {"allocatable": resources}}


def _envelope(name: str = "pool", **more: Any) -> Document:
    return {"name": name, "flavor": FLAVOR, "selector": {"region": "*"}, "concurrency": 8, **more}


def _budget(owner: str, *envelopes: Document, name: str = "", **more: Any) -> Document:
    spec = {"owner": owner, "envelopes": list(envelopes) or [_envelope()], **more}
    return _object("Budget", name or owner.replace(":", "-").lower(), spec)


def _run(number: int, owner: str = "mean", gpus: int = 1, name: str = "", **spec: Any) -> Document:
    resources = {"gpuType": FLAVOR, "totalGPUs": gpus}
    return _object("Run", name or f"r{number:05}", {"owner": owner, "resources": resources, **spec}, number)


def _others() -> Iterator[Document]:
    """Other tenants, whose work fits."""
    yield from (_node(number) for number in range(NODES))
    for tenant in range(10):
        yield _budget(f"good{tenant}", _envelope(concurrency=40))
        yield from (_run(number, f"good{tenant}", 4, f"good{tenant}-{number}") for number in range(20))


def tame(runs: int = RUNS, budgets: int = 1) -> Iterator[Document]:
    """Runs of as many owners as there are Budgets, one envelope each."""
    yield from (_budget(f"mean{number}") for number in range(budgets))
    yield from (_run(number, f"mean{number % budgets}") for number in range(runs))


def _quotas() -> Iterator[Document]:
    """Runs with a quota each, and nothing above them."""
    yield _budget("mean")
    yield from (_run(number, quota={"maxGPUs": 8, "maxGPUHours": 1000}) for number in range(RUNS))


def _small_gangs() -> Iterator[Document]:
    """Gangs of ten."""
    yield _budget("mean")
    yield from (_run(number, gang={"name": f"g{number // 10}", "size": 10}) for number in range(RUNS))


def _broad() -> Iterator[Document]:
    """Runs of as many GPUs as `_wide` asks for, in groups of a node."""
    yield _budget("mean", _envelope(concurrency=1_000_000))
    for number in range(RUNS):
        wide = number < 30
        yield _run(number, gpus=16_384 if wide else 1, locality={"groupGPUs": 8 if wide else 1})


def _siblings() -> Iterator[Document]:
    """320 owners below one."""
    yield _budget("mean")
    yield from (_budget(f"mean{number}", parents=["mean"]) for number in range(320))
    yield from (_run(number, f"mean{number % 320}") for number in range(RUNS))


def _mates(budgets: int) -> "Maker":
    return lambda: tame(budgets=budgets)


def _deep_tree() -> Iterator[Document]:
    yield _budget("mean")
    for number in range(RUNS):
        up: dict[str, Any] = {"parent": f"r{number - 1:05}"} if number else {}
        yield _run(number, quota={"maxGPUs": 8}, **up)


def _trees() -> Iterator[Document]:
    """Trees as deep as they may be, with a quota on every run."""
    yield _budget("mean")
    for number in range(RUNS):
        up: dict[str, Any] = {"parent": f"r{number - 1:05}"} if number % 64 else {}
        yield _run(number, quota={"maxGPUs": 8, "maxGPUHours": 1000}, **up)


def _follow_chain() -> Iterator[Document]:
    yield _budget("mean")
    for number in range(RUNS):
        after: dict[str, Any] = {"follow": {"after": [f"r{number - 1:05}"]}} if number else {}
        yield _run(number, **after)


def _circles() -> Iterator[Document]:
    """Runs that all follow sixteen others, round and round."""
    yield _budget("mean")
    for number in range(RUNS):
        yield _run(number, follow={"after": [f"r{(number + step) % RUNS:05}" for step in range(1, 17)]})


def _arrays() -> Iterator[Document]:
    yield _budget("mean")
    for number in range(RUNS):
        yield _run(number, array={"count": 5000} if number % 100 else {"indices": list(range(5000))})


def _sponsors() -> Iterator[Document]:
    """10,000 owners to borrow from, 200 of whom lend."""
    yield _budget("mean")
    lending = {"allow": True, "to": ["mean*"], "maxConcurrency": 1}
    yield from (_budget(f"lender{number}", _envelope(concurrency=1, lending=lending)) for number in range(200))
    for number in range(RUNS):
        listed = [f"lender{(64 * number + place) % 10_000}" for place in range(64)]
        yield _run(number, funding={"allowBorrow": True, "sponsors": listed})


def _selectors() -> Iterator[Document]:
    """5,000 selectors, no two alike: 2,000 of envelopes, 3,000 of runs."""
    for number in range(32):
        asked = ({f"key-{number}-{place}": "*", "region": "us-west"} for place in range(64))
        pools = (_envelope(f"e{place}", selector=labels) for place, labels in enumerate(asked))
        yield _budget(f"mean{number}", *pools)
    for number in range(RUNS):
        yield _run(number, f"mean{number % 32}", locality={"selector": {f"own-{number}": "x"}})


def _gangs() -> Iterator[Document]:
    """Gangs of 1,000 runs that never fit."""
    yield _budget("mean")
    yield from (_run(number, gang={"name": f"g{number // 1000}", "size": 1000}) for number in range(RUNS))


def _wide() -> Iterator[Document]:
    """Runs of as many groups as there may be."""
    yield _budget("mean", _envelope(concurrency=1_000_000))
    for number in range(RUNS):
        yield _run(number, gpus=16_384 if number < 30 else 1, locality={"groupGPUs": 1})


def _owner_paths() -> Iterator[Document]:
    """An owner 120 levels deep, a Budget on each."""
    paths = [":".join("m" * 2 for _ in range(depth)) for depth in range(1, 85)]
    yield from (_budget(path, name=f"b{depth}") for depth, path in enumerate(paths))
    yield from (_run(number, paths[number % len(paths)]) for number in range(RUNS))


def _parents() -> Iterator[Document]:
    """Layers of 16 owners, each of whom descends from all of the layer above."""
    for number in range(320):
        layer = number // 16 - 1
        ups = [f"mean{16 * layer + place}" for place in range(16)] if layer >= 0 else []
        yield _budget(f"mean{number}", parents=ups)
    yield from (_run(number, f"mean{number % 320}") for number in range(RUNS))


def _envelopes() -> Iterator[Document]:
    """One family with 2,048 envelopes, all of which may pay for each run."""
    for number in range(32):
        yield _budget(
            f"mean:m{number}", *(_envelope(f"e{place}", concurrency=1) for place in range(64)), parents=["mean"]
        )
    yield _budget("mean", _envelope(concurrency=1))
    yield from (_run(number, f"mean:m{number % 32}") for number in range(RUNS))


def _labels() -> Iterator[Document]:
    """100 nodes with 1,000 labels each, no two values alike."""
    yield _budget("mean")
    for number in range(NODES):
        labels = {f"example.com/label-{place}": f"value-{number}-{place}" for place in range(1000)}
        yield _node(number, f"labelled{number}", **labels)
    yield from (_run(number) for number in range(RUNS - NODES))


def _names() -> Iterator[Document]:
    """Names as long as they may be."""
    owner = "m" * 120
    yield _budget(owner, _envelope("e" * 63), name="b" * 253)
    for number in range(RUNS):
        yield _run(
            number, f"{owner}:{number:0120}", name=f"r{number:051}", parent="p" * 63, follow={"after": ["q" * 63]}
        )


def _broken() -> Iterator[Document]:
    """Runs that are all set aside, each with a warning."""
    yield _budget("mean")
    yield from (_run(number, resources={"gpuType": FLAVOR, "totalGPUs": -number}) for number in range(RUNS))


Maker = Callable[[], Iterator[Document]]
WORLDS: Final[dict[str, tuple[Maker, Maker]]] = {
    "deep tree": (_deep_tree, _quotas),
    "trees": (_trees, _quotas),
    "follow chain": (_follow_chain, tame),
    "circles": (_circles, tame),
    "arrays": (_arrays, tame),
    "sponsors": (_sponsors, _mates(200)),
    "selectors": (_selectors, _mates(32)),
    "gangs": (_gangs, _small_gangs),
    "wide runs": (_wide, _broad),
    "owner paths": (_owner_paths, _mates(84)),
    "parents": (_parents, _siblings),
    "envelopes": (_envelopes, _mates(2048)),
    "labels": (_labels, tame),
    "names": (_names, tame),
    "broken": (_broken, tame),
}
"""By name, what makes a world, and its mate."""


def cycle(documents: list[Document]) -> dict[str, float]:
    """CPU seconds of each phase of a cycle on these objects, in this process."""
    from exporters.plans import planjson
    from exporters.plans.planobject import record
    from exporters.writes.writes import writes_for
    from jobtree.check import check
    from jobtree.cluster.statefile import StateFile
    from jobtree.world.tables.snapshot import take
    from planner import plan as plan_of

    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": documents}))
        cluster = StateFile(path, AT)
        with clock.span("read"):
            intake = cluster.read()
        with clock.span("snapshot"):
            snapshot = take(intake, AT)
        with clock.span("plan"):
            plan = plan_of(snapshot, AT)
        with clock.span("check"):
            violations = check(snapshot, plan)
        with clock.span("write"):
            encoded = planjson.encode(plan)
            cluster.write(writes_for(intake, plan, encoded, money=record(intake, plan.at)), intake.revision)
    if violations:
        sys.exit(f"the plan breaks {len(violations)} rules: {violations[0]}")
    return {name: span.cpu for name, span in clock.spans.items()}


def measured(name: str, *, mate: bool) -> dict[str, float] | None:
    """The same in a process of its own; None where it does not end."""
    argv = [sys.executable, "-m", "benchmarks.hostile", "--one", name, *(["--mate"] if mate else [])]
    try:
        done = subprocess.run(argv, check=True, capture_output=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    except subprocess.CalledProcessError as error:
        sys.exit(f"{name}: {error.stderr.decode()[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description=__doc__)
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=", ".join(WORLDS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--mate", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        cycle([*_others()])  # so that no world pays for imports
        print(json.dumps(cycle([*_others(), *WORLDS[given.one][given.mate]()])))
        return
    rows, slow = [], []
    for name in given.worlds or WORLDS:
        hostile, mate = measured(name, mate=False), measured(name, mate=True)
        if mate is None:
            sys.exit(f"{name}: its tame mate does not end in {PATIENCE} s")
        took, usual = sum(hostile.values()) if hostile else float("inf"), sum(mate.values())
        slow += [name] if took > max(FLOOR, MOST * usual) else []
        rows.append([name, *(f"{seconds:.2f}" for seconds in (took, usual, *(hostile or {}).values()))])
        print(f"{name:13} {took:7.2f} s, its mate {usual:6.2f} s", flush=True)
    columns = table(["world", "CPU s", "its mate's", "read", "snapshot", "plan", "check", "write"], rows)
    print(columns)
    if not given.worlds:
        RESULTS.write_text(
            PAGE.format(date=f"{datetime.now(UTC):%Y-%m-%d}", on=machine.sentence(machine.describe()), table=columns)
        )
    if slow:
        sys.exit(f"more than {MOST:g} times their mates: {', '.join(slow)}")


if __name__ == "__main__":
    main()
