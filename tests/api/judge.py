"""Runs for the tests of refusals: a Run of 128 GPUs named `train`, patched."""

from typing import Any

import pytest

from jobtree.api import Refusal, decode
from jobtree.api.kinds.run import Run
from jobtree.api.rules.kinds import check_object
from tests.support import documents as doc

GPUS = "a whole number from 1 to 1000000"
DURATION = "a duration such as 10m, 12h, 1h30m or 2d"
OWNER = "a colon path such as org:ai:rai:sys of letters, digits and _.@+-, first a letter or digit"
RESOURCES = "gpuType and totalGPUs, or pods, cpuPerPod and memoryPerPod"
NO_GPUS = "nothing here: a run with pods of CPU has no GPUs"
ELASTIC = {"minTotalGPUs": 96, "maxTotalGPUs": 160, "stepGPUs": 32}


def spec(**fields: Any) -> doc.Document:
    """Fields of a spec, as a patch of a Run of 128 GPUs."""
    return {"spec": fields}


def pod(**fields: Any) -> doc.Document:
    """A template of one container, with further fields of the pod's spec."""
    return spec(template={"spec": {"containers": [{"name": "main"}], **fields}})


def limits(gpus: Any, **fields: Any) -> doc.Document:
    """A template whose one container states GPU limits."""
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return spec(template={"spec": {"containers": [container]}}, **fields)


def resources(**fields: Any) -> doc.Document:
    """Other resources than those of the Run."""
    return spec(resources={"gpuType": None, "totalGPUs": None, **fields})


def cpu_run(**fields: Any) -> doc.Document:
    """The Run with pods of CPU in place of GPUs."""
    return doc.merge(resources(pods=4, cpuPerPod="2", memoryPerPod="4Gi"), spec(**fields))


def judge(patch: doc.Document) -> Run:
    """Reads and checks the Run `train`, patched."""
    run = decode("Run", doc.merge(doc.run("train", 128), patch))
    assert isinstance(run, Run)
    check_object(run)
    return run


def refusal(patch: doc.Document) -> Refusal:
    with pytest.raises(Refusal) as caught:
        judge(patch)
    return caught.value
