"""What a Run is refused for by the rules between its fields: the whole sentence."""

import pytest

from tests.api.judge import (
    ELASTIC,
    NO_GPUS,
    RESOURCES,
    cpu_run,
    judge,
    limits,
    pod,
    refusal,
    resources,
    spec,
)
from tests.support import documents as doc

STEPWISE = {"minTotalGPUs": 1, "maxTotalGPUs": 16_385, "stepGPUs": 1}

LABEL_VALUE = "a text of at most 63 letters, digits and -_. (* for any)"


def test_a_run_may_have_as_many_groups_as_a_large_fleet_has_nodes() -> None:
    judge(spec(resources={"totalGPUs": 16_384}, locality={"groupGPUs": 1}))
    judge(spec(resources={"totalGPUs": 16_384}, malleable={**STEPWISE, "maxTotalGPUs": 16_384}))


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        (
            spec(malleable={**ELASTIC, "minTotalGPUs": 160}),
            "spec.malleable.minTotalGPUs is 160; allowed is at most spec.resources.totalGPUs, 128",
        ),
        (
            spec(malleable={**ELASTIC, "maxTotalGPUs": 96}),
            "spec.malleable.maxTotalGPUs is 96; allowed is at least spec.resources.totalGPUs, 128",
        ),
        (
            spec(resources={"totalGPUs": 1_000_000}, locality={"groupGPUs": 60}),
            "spec.locality.groupGPUs is 60; allowed is at least 62: a run has at most 16384 groups",
        ),
        (
            spec(resources={"totalGPUs": 16_385}, malleable=STEPWISE, locality={"groupGPUs": 1}),
            "spec.locality.groupGPUs is 1; allowed is at least 2: a run has at most 16384 groups",
        ),
        (
            spec(resources={"totalGPUs": 16_385}, malleable=STEPWISE),
            (
                "spec.malleable.stepGPUs is 1; allowed is at least 2: each step is a group, "
                "and a run has at most 16384 groups"
            ),
        ),
        (
            spec(malleable={**ELASTIC, "minTotalGPUs": 100}),
            (
                "spec.resources.totalGPUs is 128; "
                "allowed is minTotalGPUs, 100, plus a multiple of stepGPUs, 32: 100 or 132"
            ),
        ),
        (
            spec(malleable={**ELASTIC, "maxTotalGPUs": 150}),
            (
                "spec.malleable.maxTotalGPUs is 150; "
                "allowed is minTotalGPUs, 96, plus a multiple of stepGPUs, 32: 128 or 160"
            ),
        ),
        (
            spec(malleable={**ELASTIC, "desiredTotalGPUs": 130}),
            (
                "spec.malleable.desiredTotalGPUs is 130; "
                "allowed is minTotalGPUs, 96, plus a multiple of stepGPUs, 32: 128 or 160"
            ),
        ),
        (
            spec(malleable={**ELASTIC, "desiredTotalGPUs": 64}),
            "spec.malleable.desiredTotalGPUs is 64; allowed is 96 to 160, the run's min and max",
        ),
        (
            spec(malleable=ELASTIC, locality={"groupGPUs": 64}),
            "spec.malleable.minTotalGPUs is 96; allowed is a multiple of spec.locality.groupGPUs, 64",
        ),
        (
            spec(malleable={**ELASTIC, "stepGPUs": 16}, locality={"groupGPUs": 32}),
            "spec.malleable.stepGPUs is 16; allowed is a multiple of spec.locality.groupGPUs, 32",
        ),
        (
            spec(resources={"gpusPerPod": 3}, locality={"groupGPUs": 8}),
            "spec.resources.gpusPerPod is 3; allowed is a divisor of every group, here of 8 GPUs",
        ),
        (
            spec(resources={"gpusPerPod": 8, "totalGPUs": 20}, locality={"groupGPUs": 16}),
            "spec.resources.gpusPerPod is 8; allowed is a divisor of every group, here of 16 and 4 GPUs",
        ),
        (
            spec(resources={"gpusPerPod": 48}),
            "spec.resources.gpusPerPod is 48; allowed is a divisor of every group, here of 128 GPUs",
        ),
        (
            spec(resources={"gpusPerPod": 64}, malleable=ELASTIC),
            "spec.resources.gpusPerPod is 64; allowed is a divisor of every group, here of 96 and 32 GPUs",
        ),
        (
            spec(spares=1, sparesPerGroup=2),
            "spec.sparesPerGroup is 2; allowed is what spec.spares says, 1, or only one",
        ),
        (
            spec(spares=0, sparesPerGroup=2),
            "spec.sparesPerGroup is 2; allowed is what spec.spares says, 0, or only one",
        ),
        (
            spec(follow={"after": ["prep", "train"]}),
            'spec.follow.after[1] is "train"; allowed is another Run: nothing follows itself',
        ),
        (
            spec(follow={"after": ["prep", "prep"]}),
            'spec.follow.after[1] is "prep"; allowed is each Run once, and it is listed twice',
        ),
        (
            spec(follow={"after": []}),
            (
                "spec.follow.after is an empty list; "
                "allowed is a list of 1 to 256 entries, "
                "each a name of at most 63 lower-case letters, digits and -, such as train-32"
            ),
        ),
        (
            spec(follow={"after": [f"r{n}" for n in range(257)]}),
            (
                "spec.follow.after is a list of 257 entries; "
                "allowed is a list of 1 to 256 entries, "
                "each a name of at most 63 lower-case letters, digits and -, such as train-32"
            ),
        ),
        (spec(parent="train"), 'spec.parent is "train"; allowed is another Run: nothing is its own parent'),
        (
            spec(locality={"selector": {"region": 1}}),
            f"spec.locality.selector.region is 1; allowed is {LABEL_VALUE} (in quotes)",
        ),
        (spec(array={}), "spec.array.count is missing; allowed is either count or indices"),
        (
            spec(array={"count": 2, "indices": [1]}),
            "spec.array.indices is a list of 1 entry; allowed is either count or indices, not both",
        ),
        (
            spec(array={"indices": [1, 2, 1]}),
            "spec.array.indices[2] is 1; allowed is each index once, and it is listed twice",
        ),
        (
            spec(array={"count": 2}, gang={"name": "g", "size": 2}),
            'spec.gang.name is "g"; allowed is nothing beside an array: each index of an array starts alone',
        ),
        (resources(pods=4), f"spec.resources.cpuPerPod is missing; allowed is {RESOURCES}"),
        (resources(), f"spec.resources.pods is missing; allowed is {RESOURCES}"),
        (
            resources(pods=4, cpuPerPod="0", memoryPerPod="1Gi"),
            "spec.resources.cpuPerPod is 0; allowed is a quantity above 0",
        ),
        (
            resources(pods=4, cpuPerPod="two", memoryPerPod="1Gi"),
            'spec.resources.cpuPerPod is "two"; allowed is a quantity such as 4, 500m or 2Gi',
        ),
        (
            resources(pods=4, cpuPerPod="1e30", memoryPerPod="1Gi"),
            'spec.resources.cpuPerPod is "1e30"; allowed is at most 1000000000',
        ),
        (
            resources(pods=4, cpuPerPod="1", memoryPerPod="2Pi"),
            'spec.resources.memoryPerPod is "2Pi"; allowed is at most 1Pi',
        ),
        (
            spec(resources={"pods": 4}),
            "spec.resources.pods is 4; allowed is nothing here: a run of GPUs says that in its template",
        ),
        (cpu_run(malleable=ELASTIC), f"spec.malleable.minTotalGPUs is 96; allowed is {NO_GPUS}"),
        (cpu_run(spares=1), f"spec.spares is 1; allowed is {NO_GPUS}"),
        (cpu_run(locality={"groupGPUs": 8}), f"spec.locality.groupGPUs is 8; allowed is {NO_GPUS}"),
        (
            pod(priorityClassName="high"),
            'spec.template.spec.priorityClassName is "high"; allowed is to leave it out: Jobtree has no priorities',
        ),
        (
            pod(schedulerName="mine"),
            'spec.template.spec.schedulerName is "mine"; allowed is to leave it out: kube-scheduler binds the pods',
        ),
        (
            pod(nodeName="n1"),
            'spec.template.spec.nodeName is "n1"; allowed is to leave it out: the plan chooses the nodes',
        ),
        (
            pod(resourceClaims=[{"name": "gpu"}]),
            (
                "spec.template.spec.resourceClaims is a list of 1 entry; "
                "allowed is to leave it out: devices that are claimed are not counted"
            ),
        ),
        (
            pod(initContainers=[{"name": "init", "resources": {"limits": {"nvidia.com/gpu": 8}}}]),
            (
                "spec.template.spec.initContainers[0].resources.limits[nvidia.com/gpu] is 8; "
                "allowed is to leave it out: the GPUs are those of the containers"
            ),
        ),
        (
            pod(containers=[]),
            "spec.template.spec.containers is an empty list; allowed is a list of at least one container",
        ),
        (spec(template={}), "spec.template.spec is null; allowed is a pod spec: a mapping with containers"),
        (
            limits("4", resources={"gpusPerPod": 8}),
            (
                "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu] is 4; "
                "allowed is spec.resources.gpusPerPod, 8"
            ),
        ),
        (
            limits(4),
            (
                "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu] is 4; "
                "allowed is to leave it out, since the run fills it in, or to set spec.resources.gpusPerPod to it"
            ),
        ),
        (
            limits("many"),
            (
                'spec.template.spec.containers[0].resources.limits[nvidia.com/gpu] is "many"; '
                "allowed is a whole number of GPUs"
            ),
        ),
        (
            doc.merge(cpu_run(), limits(1)),
            (
                "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu] is 1; "
                "allowed is no GPUs, as in a run with pods of CPU"
            ),
        ),
    ],
)
def test_fields_that_disagree_are_refused_in_one_sentence(patch: doc.Document, sentence: str) -> None:
    assert str(refusal(patch)) == f"Run default/train: {sentence}"
