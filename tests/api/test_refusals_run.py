"""What a Run's fields are refused for, each alone: the whole sentence, with field, given and allowed."""

import pytest

from jobtree.api import Refusal, decode
from jobtree.api.kinds.run import Run
from jobtree.api.rules.kinds import check_object
from tests.api.judge import (
    DURATION,
    ELASTIC,
    GPUS,
    OWNER,
    RESOURCES,
    cpu_run,
    judge,
    limits,
    pod,
    refusal,
    spec,
)
from tests.support import documents as doc


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        (spec(resources={"totalGPUs": 0}), f"spec.resources.totalGPUs is 0; allowed is {GPUS}"),
        (spec(resources={"totalGPUs": -4}), f"spec.resources.totalGPUs is -4; allowed is {GPUS}"),
        (spec(resources={"totalGPUs": "8x"}), f'spec.resources.totalGPUs is "8x"; allowed is {GPUS}'),
        (spec(resources={"totalGPUs": 8.5}), f"spec.resources.totalGPUs is 8.5; allowed is {GPUS}"),
        (spec(resources={"totalGPUs": True}), f"spec.resources.totalGPUs is true; allowed is {GPUS}"),
        (spec(resources={"totalGPUs": 10**7}), f"spec.resources.totalGPUs is 10000000; allowed is {GPUS}"),
        (spec(resources={"totalGPUs": None}), f"spec.resources.totalGPUs is missing; allowed is {RESOURCES}"),
        (spec(resources={"gpuType": None}), f"spec.resources.gpuType is missing; allowed is {RESOURCES}"),
        (
            spec(resources={"gpuType": "H100 80GB"}),
            'spec.resources.gpuType is "H100 80GB"; allowed is a flavor such as H100-80GB, as in a node\'s label',
        ),
        (
            spec(resources={"totalGpus": 8}),
            "spec.resources.totalGpus is not a field of Run; did you mean totalGPUs?",
        ),
        (spec(totalGPUs=8), "spec.totalGPUs is not a field of Run; did you mean spec.resources.totalGPUs?"),
        (
            spec(gang={"name": "g", "members": 2}),
            "spec.gang.members is not a field of Run; allowed are name, size",
        ),
        ({"specs": {}}, "specs is not a field of Run; did you mean spec?"),
        (
            {"spec": None},
            (
                "spec is missing; allowed is a mapping with owner, resources, state, locality, runtime, "
                "malleable, spares, sparesPerGroup, funding, follow, parent, quota, gang, array, template"
            ),
        ),
        (
            {"apiVersion": "rq.davidlangworthy.io/v2"},
            'apiVersion is "rq.davidlangworthy.io/v2"; allowed is rq.davidlangworthy.io/v1',
        ),
        (spec(owner=None), "spec.owner is missing; allowed is a colon path such as org:ai:rai:sys"),
        (spec(owner=""), f'spec.owner is ""; allowed is {OWNER}'),
        (spec(owner="org:ai rai"), f'spec.owner is "org:ai rai"; allowed is {OWNER}'),
        (spec(owner="org::rai"), f'spec.owner is "org::rai"; allowed is {OWNER}'),
        (spec(owner="org:"), f'spec.owner is "org:"; allowed is {OWNER}'),
        (spec(owner=7), f"spec.owner is 7; allowed is {OWNER}"),
        (spec(state="Paused"), 'spec.state is "Paused"; allowed is one of Active, Cancelled, Suspended'),
        (spec(runtime={"checkpoint": "10 minutes"}), f'spec.runtime.checkpoint is "10 minutes"; allowed is {DURATION}'),
        (spec(runtime={"timeLimit": "-1h"}), f'spec.runtime.timeLimit is "-1h"; allowed is {DURATION}'),
        (spec(runtime={"timeLimit": 3600}), f"spec.runtime.timeLimit is 3600; allowed is {DURATION}"),
        (
            spec(runtime={"timeLimit": "99999d"}),
            'spec.runtime.timeLimit is "99999d"; allowed is a duration of at most 36525d',
        ),
        (
            spec(runtime={"timeLimit": "0s"}),
            "spec.runtime.timeLimit is 0s; allowed is a duration above 0s, or leave it out",
        ),
    ],
)
def test_a_broken_field_is_refused_in_one_sentence(patch: doc.Document, sentence: str) -> None:
    assert str(refusal(patch)) == f"Run default/train: {sentence}"


@pytest.mark.parametrize(
    ("name", "more", "sentence"),
    [
        (
            "a" * 53,
            {},
            (
                f'Run default/{"a" * 53}: metadata.name is "{"a" * 53}"; '
                "allowed is at most 52 characters for a Run, and it has 53"
            ),
        ),
        (
            "a" * 46,
            spec(array={"count": 2}),
            (
                f'Run default/{"a" * 46}: metadata.name is "{"a" * 46}"; '
                "allowed is at most 45 characters for a Run with an array, and it has 46"
            ),
        ),
        (
            "Train_1",
            {},
            (
                'Run default/Train_1: metadata.name is "Train_1"; '
                "allowed is a name of lower-case letters, digits and -, such as train-32"
            ),
        ),
        (
            "v1.2",
            {},
            (
                'Run default/v1.2: metadata.name is "v1.2"; '
                "allowed is a name of lower-case letters, digits and -, such as train-32"
            ),
        ),
        ("", {}, 'Run: metadata.name is ""; allowed is a text of 1 to 253 characters'),
    ],
)
def test_a_name_that_pods_cannot_bear_is_refused(name: str, more: doc.Document, sentence: str) -> None:
    assert str(refusal({"metadata": {"name": name}, **more})) == sentence


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"name": "a" * 52}},
        {"metadata": {"name": "a" * 45}, **spec(array={"count": 2, "maxParallel": 1})},
        spec(locality={"groupGPUs": 48}),  # the last group of a fixed run may be smaller
        spec(locality={"groupGPUs": 500}, resources={"gpusPerPod": 8}),  # then its one group is the run
        spec(malleable=ELASTIC, locality={"groupGPUs": 32}, resources={"gpusPerPod": 8}, spares=1),
        spec(malleable={**ELASTIC, "desiredTotalGPUs": 96}),
        spec(sparesPerGroup=2, spares=2),
        limits("8", resources={"gpusPerPod": 8}),
        limits(128),  # one group, one pod
        pod(priorityClassName=""),
        cpu_run(parent="root", gang={"name": "g", "size": 2}, runtime={"timeLimit": "1h"}),
        spec(quota={"maxGPUs": 0, "maxGPUHours": 1.5}),
    ],
)
def test_what_a_run_may_say(patch: doc.Document) -> None:
    assert judge(patch).status == Run(metadata=judge(patch).metadata, spec=judge(patch).spec).status


def test_a_refusal_says_field_given_and_allowed_apart() -> None:
    found = refusal(spec(resources={"totalGPUs": "8x"}))
    assert (found.subject, found.field, found.given, found.allowed, found.members) == (
        "Run default/train",
        "spec.resources.totalGPUs",
        '"8x"',
        GPUS,
        ("Run default/train",),
    )


def test_sponsors_without_leave_to_borrow_are_a_warning() -> None:
    run = decode("Run", doc.merge(doc.run("train", 8), spec(funding={"sponsors": ["org:b"]})))
    assert isinstance(run, Run)
    assert check_object(run) == [
        "Run default/train: spec.funding.sponsors has no effect without spec.funding.allowBorrow: true"
    ]
    allowed = decode("Run", doc.merge(doc.run("train", 8), spec(funding={"sponsors": ["org:b"], "allowBorrow": True})))
    assert isinstance(allowed, Run)
    assert check_object(allowed) == []


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b'{"metadata": {"name":', "Run: the document is not JSON: Input data was truncated"),
        (b"[" * 100_000, "Run: the document is nested too deeply to be read"),
        (b'{"spec": {"template": ' + b"[" * 100_000, "Run: the document is nested too deeply to be read"),
        (b"[]", "Run: the Run is an empty list; allowed is a mapping with metadata, apiVersion, spec, kind, status"),
    ],
)
def test_bytes_that_are_no_object_are_refused(raw: bytes, sentence: str) -> None:
    with pytest.raises(Refusal) as caught:
        decode("Run", raw)
    assert str(caught.value) == sentence
