"""The invariants of spec §9 that a state file shows, asserted after every cycle of every test.

Written on plain documents and on purpose without any code of Jobtree's: a second pair of eyes beside the checker.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from tests.support import money
from tests.support.times import unix

Document = dict[str, Any]
TERMINAL = {"Completed", "Failed"}


def check(before: Sequence[Document], after: Sequence[Document], at: int) -> None:
    """Assert them all. ``before`` and ``after``: the objects around a cycle at Unix second ``at``."""
    world = _World(before, after, at)
    broken = [f"{rule.__name__.strip('_').replace('_', '-')}: {what}" for rule in RULES for what in rule(world)]
    assert not broken, "\n".join(broken)


class _World:
    def __init__(self, before: Sequence[Document], after: Sequence[Document], at: int) -> None:
        self.at = at
        self.documents = after
        self.earlier = before
        self.runs = {_key(each): each for each in after if each["kind"] == "Run"}
        self.nodes = {each["metadata"]["name"]: each for each in after if each["kind"] == "Node"}
        self.leases = {_key(each): each for each in after if each["kind"] == "Lease"}
        self.before = {_key(each): each for each in before if each["kind"] == "Lease"}
        self.open = {key: each for key, each in self.leases.items() if not each.get("status", {}).get("closed")}

    def open_of(self, run: tuple[str, str], role: str = "Active") -> list[Document]:
        return [
            lease
            for (namespace, _), lease in self.open.items()
            if (namespace, _run_name(lease)) == run and lease["spec"]["slice"].get("role", "Active") == role
        ]

    def singles(self) -> Iterator[tuple[tuple[str, str], Document]]:
        """Runs that are not arrays."""
        return ((key, run) for key, run in self.runs.items() if "array" not in run["spec"])


def _slot_exclusive(world: _World) -> Iterator[str]:
    held: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (_, name), lease in world.open.items():
        for slot in lease["spec"]["slice"]["nodes"]:
            held[slot, lease["spec"]["slice"].get("role", "Active")].append(name)
    for (slot, role), names in held.items():
        if len(names) > 1:
            yield f"{slot} is held by {len(names)} open {role} leases: {names}"


def _lease_immutable(world: _World) -> Iterator[str]:
    for key, old in world.before.items():
        new = world.leases.get(key)
        if new is not None and new["spec"] != old["spec"]:
            yield f"the spec of lease {key} changed"


def _closed_monotone(world: _World) -> Iterator[str]:
    for key, old in world.before.items():
        new = world.leases.get(key)
        if old.get("status", {}).get("closed") and new is not None and new["status"] != old["status"]:
            yield f"the status of closed lease {key} changed"
        if new is None and not old.get("status", {}).get("closed"):
            yield f"open lease {key} is gone"


def _closed_has_end_and_reason(world: _World) -> Iterator[str]:
    for key, lease in world.leases.items():
        status = lease.get("status", {})
        given = [field for field in ("ended", "closureReason") if status.get(field)]
        if status.get("closed") and (len(given) < 2 or unix(status["ended"]) > world.at):
            yield f"lease {key} is closed with {status}"
        if not status.get("closed") and given:
            yield f"lease {key} is open and has {given}"


def _terminal_holds_nothing(world: _World) -> Iterator[str]:
    for (namespace, name), lease in world.open.items():
        run = world.runs.get((namespace, lease["spec"]["runRef"]["name"]))
        if run is None:
            yield f"open lease {name} has no run"
        elif "array" not in run["spec"] and run["status"]["phase"] != "Running":
            yield f"{run['status']['phase']} run {run['metadata']['name']} holds {name}"


def _running_has_width(world: _World) -> Iterator[str]:
    for key, run in world.singles():
        if run.get("status", {}).get("phase") != "Running" or "totalGPUs" not in run["spec"]["resources"]:
            continue
        held = sum(len(lease["spec"]["slice"]["nodes"]) for lease in world.open_of(key))
        malleable = run["spec"].get("malleable")
        total = run["spec"]["resources"]["totalGPUs"]
        low, high = (malleable["minTotalGPUs"], malleable["maxTotalGPUs"]) if malleable else (total, total)
        if not low <= held <= high:
            yield f"run {key} runs on {held} GPUs, not {low} to {high}"
        if run["status"]["width"]["allocated"] != held:
            yield f"run {key} holds {held} GPUs and says {run['status']['width']['allocated']}"


def _classes_partition_width(world: _World) -> Iterator[str]:
    for key, run in world.singles():
        funding = run.get("status", {}).get("funding")
        if not funding:
            continue
        held = sum(len(lease["spec"]["slice"]["nodes"]) for lease in world.open_of(key))
        classes = sum(funding.get(field, 0) for field in ("ownedGPUs", "sharedGPUs", "borrowedGPUs", "unfundedGPUs"))
        if classes != held:
            yield f"run {key} holds {held} GPUs and accounts for {classes}"


def _one_node_one_payer(world: _World) -> Iterator[str]:
    owners = money.owners(world.documents)
    for key, lease in world.leases.items():
        nodes = {slot.rpartition("#")[0] for slot in lease["spec"]["slice"]["nodes"]}
        if len(nodes) != 1:
            yield f"lease {key} spans {sorted(nodes)}"
        paid = lease["spec"].get("paidBy")
        payer = owners.get(paid["budget"]) if paid else None
        funding = lease["status"].get("funding", []) if key in world.open else []
        if payer is not None and payer != lease["spec"]["owner"] and _is_funded(funding):
            yield f"lease {key} is of {lease['spec']['owner']} and paid by {payer}"


def _is_funded(segments: Sequence[Document]) -> bool:
    return bool(segments) and segments[-1]["class"] != "unfunded"


def _slots_exist(world: _World) -> Iterator[str]:
    fresh = {key: lease for key, lease in world.leases.items() if key not in world.before}
    for key, lease in fresh.items():
        for slot in lease["spec"]["slice"]["nodes"]:
            name, _, ordinal = slot.rpartition("#")
            if name not in world.nodes or int(ordinal) >= _gpus(world.nodes[name]):
                yield f"new lease {key} has slot {slot}, which is not there"


def _group_in_domain(world: _World) -> Iterator[str]:
    domains: dict[tuple[str, str, int], set[tuple[str | None, ...]]] = defaultdict(set)
    for (namespace, _), lease in world.open.items():
        node = world.nodes.get(lease["spec"]["slice"]["nodes"][0].rpartition("#")[0])
        if node is not None:
            domains[namespace, _run_name(lease), lease["spec"]["group"]].add(_domain(node))
    for group, found in domains.items():
        if len(found) > 1:
            yield f"group {group} lies in {len(found)} domains"


def _gang_complete(world: _World) -> Iterator[str]:
    for key, run in world.singles():
        size = run["spec"].get("locality", {}).get("groupGPUs")
        if not size or run.get("status", {}).get("phase") != "Running":
            continue
        held = Counter[int]()
        for lease in world.open_of(key):
            held[lease["spec"]["group"]] += len(lease["spec"]["slice"]["nodes"])
        last = max(held, default=0)
        short = {group: gpus for group, gpus in held.items() if gpus != size and group != last}
        gaps = sorted(held) != list(range(len(held))) and "malleable" not in run["spec"]  # these lose any group
        if short or gaps:
            yield f"run {key} by {size} has groups {dict(sorted(held.items()))}"


def _no_overdraft(world: _World) -> Iterator[str]:
    """Every cap in every second; and charges are the ledger's integral."""
    yield from money.violations(world.earlier, world.documents, world.at)


def _segments_append_only(world: _World) -> Iterator[str]:
    for key, lease in world.leases.items():
        segments = lease.get("status", {}).get("funding", [])
        ends = [each.get("to") for each in segments[:-1]] != [each["from"] for each in segments[1:]]
        repeated = any(a["class"] == b["class"] and a.get("rate") == b.get("rate") for a, b in pairwise(segments))
        if ends or repeated or (segments and segments[0]["from"] != lease["spec"]["interval"]["start"]):
            yield f"the ledger of lease {key} has gaps or repeats: {segments}"
        old = world.before.get(key, {}).get("status", {}).get("funding", [])
        kept = [{**each, "to": None} for each in segments[: len(old)]]
        if old[:-1] != segments[: max(0, len(old) - 1)] or kept[-1:] != [{**each, "to": None} for each in old[-1:]]:
            yield f"the ledger of lease {key} was rewritten: {old} -> {segments}"


def _phase_derived(world: _World) -> Iterator[str]:
    for key, run in world.runs.items():
        status = run.get("status")
        if not status or "array" in run["spec"]:
            continue
        true = {each["type"] for each in status["conditions"] if each["status"] == "True"}
        all_there = {each["type"] for each in status["conditions"]}
        if all_there != {"Admitted", "Scheduled", "Running", "Completed", "Failed", "Blocked"}:
            yield f"run {key} has conditions {sorted(all_there)}"
        blocked = "Blocked" in true and "Admitted" not in true
        derived = next(
            (phase for phase in ("Failed", "Completed", "Running") if phase in true),
            "Waiting" if blocked else "Pending",
        )
        if status["phase"] != derived:
            yield f"run {key} is {status['phase']} with {sorted(true)}"


def _unique_names(world: _World) -> Iterator[str]:
    names = Counter((each["kind"], *_key(each)) for each in world.documents)
    for name, count in names.items():
        if count > 1:
            yield f"{name} is there {count} times"


RULES: tuple[Callable[[_World], Iterator[str]], ...] = (
    _slot_exclusive, _lease_immutable, _closed_monotone, _closed_has_end_and_reason, _terminal_holds_nothing,
    _running_has_width, _classes_partition_width, _one_node_one_payer, _slots_exist, _group_in_domain, _gang_complete,
    _no_overdraft, _segments_append_only, _phase_derived, _unique_names,
)  # fmt: skip


def _key(document: Document) -> tuple[str, str]:
    namespaced = document["kind"] in {"Run", "Lease", "Reservation"}
    return document["metadata"].get("namespace", "default" if namespaced else ""), document["metadata"]["name"]


def _run_name(lease: Document) -> str:
    reference = lease["spec"]["runRef"]
    return f"{reference['name']}-{reference['index']}" if "index" in reference else str(reference["name"])


def _gpus(node: Document) -> int:
    return int(node["status"]["allocatable"].get("nvidia.com/gpu", 0))


def _domain(node: Document) -> tuple[str | None, ...]:
    labels = node["metadata"].get("labels", {})
    place = tuple(labels.get(key) for key in ("region", "cluster", "fabric.domain"))
    return place if place[2] is not None else ("", "", node["metadata"]["name"])
