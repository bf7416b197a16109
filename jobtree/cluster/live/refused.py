"""Pods that the server does not take: put down on their Run, so that the next cycle reads that they found no place.

A quota or a template that the server does not like keeps the pods of one run away, while its leases are open. The Run
gets an annotation with the time and the server's words; reading makes of it a pod without a node since then, which is
treated as any other (spec §8: after 10 minutes its run gives up its leases and says why).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from jobtree.api import API_VERSION, GROUP, LABEL_RUN, Time
from jobtree.api.kinds.run import Run
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.reading.intake import Key, Notice

ANNOTATION: Final = f"{GROUP}/pods-refused"


class _Record(msgspec.Struct):
    since: str
    said: str


class _Meta(msgspec.Struct):
    name: str
    uid: str
    namespace: str = ""
    annotations: dict[str, str] = {}


class _Run(msgspec.Struct):
    metadata: _Meta


def stand_ins(objects: Iterable[tuple[Key, bytes | msgspec.Raw]]) -> Iterator[tuple[Key, bytes]]:
    """A pod without uid and node for each Run on which is put down that its pods were refused."""
    for key, raw in objects:
        if key.kind != "Run" or ANNOTATION.encode() not in bytes(raw):
            continue
        meta = msgspec.json.decode(raw, type=_Run).metadata
        try:
            record = msgspec.json.decode(meta.annotations.get(ANNOTATION, ""), type=_Record)
            since = str(Time.parse(record.since))
        except (msgspec.DecodeError, ValueError):  # a hand wrote it
            continue
        owner = {"apiVersion": API_VERSION, "kind": "Run", "name": meta.name, "uid": meta.uid, "controller": True}
        condition = {"type": "PodScheduled", "status": "False", "reason": "Refused", "message": record.said}
        pod = {
            "metadata": {
                "name": f"{meta.name}-refused", "namespace": meta.namespace, "creationTimestamp": since,
                "labels": {LABEL_RUN: meta.name}, "ownerReferences": [owner],
            },
            "status": {"phase": "Pending", "conditions": [{**condition, "lastTransitionTime": since}]},
        }  # fmt: skip
        yield Key("", "Pod", meta.namespace, f"{meta.name}-refused"), msgspec.json.encode(pod)


def records(runs: Iterable[Run], writes: Sequence[Write], left_out: Sequence[Notice], at: Time) -> Iterator[Write]:
    """What is to be put down on Runs after a cycle's ``writes``, or to be taken off."""
    refused = {(each.kind, each.namespace, each.name): each.message for each in left_out}
    said: dict[tuple[str, str], str] = {}
    for write in writes:
        labels = write.body.get("metadata", {}).get("labels", {})
        message = refused.get((write.ref.kind, write.ref.namespace, write.ref.name))
        if message is not None and LABEL_RUN in labels:
            said.setdefault((write.ref.namespace, labels[LABEL_RUN]), message)
    for run in runs:
        there, message = run.metadata.annotations.get(ANNOTATION), said.get((run.namespace, run.name))
        if (there is None) == (message is None):
            continue
        text = None if message is None else msgspec.json.encode(_Record(str(at), message[:1000])).decode()
        yield Write("patch", Ref("Run", run.namespace, run.name), {"metadata": {"annotations": {ANNOTATION: text}}})
