"""Cordons of nodes that others write meanwhile: kubelets do all the time, people now and then."""

import time
from contextlib import nullcontext

import pytest

from jobtree.api import Refusal
from jobtree.api.kinds.base import ANNOTATION_CORDONED
from jobtree.cluster.live.cluster import LiveCluster
from jobtree.cluster.protocol import Ref, Write
from tests.kube.access import guarded
from tests.kube.bench.kube import Kube, Object
from tests.kube.live import api

CORDON = {"metadata": {"annotations": {ANNOTATION_CORDONED: "2026-01-01T00:00:00Z"}}, "spec": {"unschedulable": True}}
UNCORDON = {"metadata": {"annotations": {ANNOTATION_CORDONED: None}}, "spec": {"unschedulable": None}}
HEARTBEAT = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]}}
BY_HAND = {"spec": {"unschedulable": True}}
TAKEN_OVER = {"metadata": {"annotations": {ANNOTATION_CORDONED: None}}}


@pytest.mark.parametrize(
    ("before", "meanwhile", "patch", "after"),
    [
        ({}, HEARTBEAT, CORDON, (True, True)),
        (CORDON, HEARTBEAT, UNCORDON, (False, False)),
        ({}, BY_HAND, CORDON, None),
        (CORDON, TAKEN_OVER, UNCORDON, None),
    ],
    ids=["a kubelet reports", "a kubelet reports again", "a person cordons it", "a person keeps it cordoned"],
)
def test_what_a_kubelet_says_stops_no_cordon_and_what_a_person_does_stays(
    thin_kube: Kube, before: Object, meanwhile: Object, patch: Object, after: tuple[bool, bool] | None
) -> None:
    (name,) = thin_kube.nodes(1)
    if before:
        thin_kube.patch("v1", "Node", "", name, before)
    with guarded(thin_kube) as guard:
        cluster = LiveCluster(api(thin_kube, token=guard.planner), int(time.time()))
        revision = cluster.read().revision
        thin_kube.patch("v1", "Node", "", name, meanwhile, subresource="status" if "status" in meanwhile else "")
        stands = seen(thin_kube, name)

        told = pytest.raises(Refusal, match="changed by somebody else") if after is None else nullcontext()
        with told:
            cluster.write([Write("patch", Ref("Node", "", name), patch)], revision)

    assert seen(thin_kube, name) == (after or stands)


def seen(kube: Kube, name: str) -> tuple[bool, bool]:
    """Whether a node is cordoned, and whether Jobtree says that it was itself."""
    node = kube.get("v1", "Node", "", name)
    annotations = node["metadata"].get("annotations", {})
    return bool(node["spec"].get("unschedulable")), ANNOTATION_CORDONED in annotations
