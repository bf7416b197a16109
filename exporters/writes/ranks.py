"""What the pods of a run may read of its present width and ranks: a ConfigMap, mounted into each of them.

Only runs that are malleable or have spares have one: of all others neither changes as long as they live. It is written
with every change of the run's pods (growth, a shrink, a swap, a new life), before the new ones are made; kubelets bring
it into the pods that run. Their environment says how it was when each of them began.

    width        GPUs of the run
    pods         its pods, as WORLD_SIZE counts them
    hostfile     a line for each pod by rank, as MPI, DeepSpeed and Horovod read it: HOST slots=GPUS
    ranks.json   [{"rank", "host", "group", "node", "gpus"} ...], ranks from 0 without a gap
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from exporters.writes.podspec import Member, Object, changes, host, owner, service_name
from jobtree.api import LABEL_RUN
from jobtree.api.kinds.run import Run
from jobtree.cluster.protocol import Ref, Write

LONGEST: Final = 400_000
"""Bytes of each list in it, so that the object stays below the server's 1 MiB: lists longer than that are empty."""


def ranks(run: Run, members: Iterable[Member]) -> list[Write]:
    """The write for a run whose pods are these, in any order; none where it has no such ConfigMap."""
    ordered = sorted(members)
    if not ordered or not changes(run):
        return []
    listed = [
        {"rank": rank, "host": host(run, each.rank), "group": each.group, "node": each.node, "gpus": each.gpus}
        for rank, each in enumerate(ordered)
    ]
    data = {
        "width": str(sum(each.gpus for each in ordered)),
        "pods": str(len(ordered)),
        "hostfile": _within("".join(" slots=".join((str(each["host"]), f"{each['gpus']}\n")) for each in listed)),
        "ranks.json": _within(msgspec.json.encode(listed).decode()),
    }
    metadata: Object = {"labels": {LABEL_RUN: run.name}, "ownerReferences": [owner(run)]}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return [Write("merge", Ref("ConfigMap", run.namespace, service_name(run.name)), body)]


def _within(text: str) -> str:
    return text if len(text) <= LONGEST else ""
