"""What a write does, and what it refuses, by the rules of an API server with our CRDs (spec §1, §8, §10)."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api import LABEL_RUN, Refusal
from jobtree.cluster.edits import merge_patch
from jobtree.cluster.protocol import Ref, Write
from jobtree.cluster.statefile import StateFile
from tests.support import documents as doc
from tests.support.documents import Document

AT = 1767225600
NOW = "2026-01-01T00:00:00Z"
RUN = Ref("Run", "default", "r")
LEASE = Ref("Lease", "default", "r-0")


def lease(**status: Any) -> Document:
    return {
        "apiVersion": doc.API,
        "kind": "Lease",
        "metadata": {"name": "r-0", "namespace": "default", "uid": "u", "creationTimestamp": NOW},
        "spec": {
            "owner": "org:a",
            "runRef": {"name": "r"},
            "runUid": "u1",
            "runOwner": "org:a",
            "flavor": doc.FLAVOR,
            "group": 0,
            "slice": {"nodes": ["n1#0"]},
            "interval": {"start": NOW},
            "reason": "Start",
        },
        "status": {"funding": [{"class": "unfunded", "from": NOW}], **status},
    }


class World:
    """A state file with documents in it."""

    def __init__(self, folder: Path, *documents: Document) -> None:
        self.path = folder / "state.yaml"
        self.path.write_text(doc.dump(documents), encoding="utf-8")
        self.state = StateFile(self.path, AT)

    def write(self, *writes: Write) -> None:
        self.state.write(writes, self.state.read().revision)

    def refused(self, *writes: Write) -> str:
        before = self.path.read_bytes()
        with pytest.raises(Refusal) as refusal:
            self.write(*writes)
        assert self.path.read_bytes() == before
        return str(refusal.value)

    def get(self, kind: str, name: str) -> Document:
        (found,) = (each for each in doc.read(self.path) if (each["kind"], each["metadata"]["name"]) == (kind, name))
        return found


json_values = st.recursive(
    st.none() | st.integers(0, 3) | st.lists(st.integers(0, 1), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)


def reference_merge(target: Any, patch: Any) -> Any:
    """The pseudocode of RFC 7386, section 2."""
    if isinstance(patch, dict):
        if not isinstance(target, dict):
            target = {}
        result = dict(target)
        for name, value in patch.items():
            if value is None:
                result.pop(name, None)
            else:
                result[name] = reference_merge(result.get(name), value)
        return result
    return patch


@given(json_values, json_values)
def test_merge_patches_are_those_of_the_rfc(target: Any, patch: Any) -> None:
    wanted = reference_merge(target, patch)
    assert merge_patch(target, patch) == wanted


def test_a_status_patch_touches_the_status_only(tmp_path: Path) -> None:
    world = World(tmp_path, doc.run("r", 8))
    body = {"status": {"phase": "Pending"}, "spec": {"state": "Suspended"}}
    world.write(Write("patch", RUN, body, "status"))
    found = world.get("Run", "r")
    assert (found["status"], found["spec"].get("state")) == ({"phase": "Pending"}, None)


def test_a_patch_of_a_status_leaves_every_other_byte(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    spec = doc.run("r", 8)["spec"]
    odd = f'"spec" :{json.dumps(dict(reversed(spec.items())), indent=1)}'.replace("\n", "")
    named = f'"name":"r","namespace":"default","uid":"u","creationTimestamp":"{NOW}"'
    meta = f'"metadata":{{{named},"labels":{{"\\u0061":"b"}}}}'
    head = f'{{"kind":"List","items":[\n{{{odd},{meta},"kind":"Run","apiVersion":"{doc.API}"'
    path.write_text(head + "}\n]}\n", encoding="utf-8")
    state = StateFile(path, AT)
    state.write([Write("patch", RUN, {"status": {"phase": "Pending"}}, "status")], state.read().revision)
    assert (
        path.read_text(encoding="utf-8") == head.replace('"spec" :', '"spec":') + ',"status":{"phase":"Pending"}}\n]}\n'
    )


def test_a_broken_status_is_refused_in_the_words_of_its_kind(tmp_path: Path) -> None:
    world = World(tmp_path, doc.run("r", 8))
    assert world.refused(Write("patch", RUN, {"status": {"phase": "Gone"}}, "status")) == (
        'Run default/r: status.phase is "Gone"; allowed is one of Completed, Failed, Pending, Running, Waiting'
    )


def test_a_file_that_changed_after_it_was_read_is_read_again_before_it_is_written(tmp_path: Path) -> None:
    world = World(tmp_path, doc.run("r", 8))
    first = world.state.read()
    world.path.write_text(doc.dump([doc.run("r", 4)]), encoding="utf-8")
    second = StateFile(world.path, AT).read()
    assert first.revision != second.revision
    world.state.write([Write("patch", RUN, {"status": {"phase": "Pending"}}, "status")], second.revision)
    assert world.get("Run", "r")["spec"]["resources"]["totalGPUs"] == 4
    world.write(Write("patch", RUN, {"status": {"phase": "Running"}}, "status"))
    assert world.get("Run", "r")["status"] == {"phase": "Running"}


def test_a_status_is_patched_through_its_subresource(tmp_path: Path) -> None:
    world = World(tmp_path, doc.run("r", 8))
    with pytest.raises(ValueError, match=r"^Run default/r: a patch of the status says subresource='status'$"):
        world.write(Write("patch", RUN, {"status": {"phase": "Pending"}}))


def test_writes_build_on_each_other(tmp_path: Path) -> None:
    world = World(tmp_path, doc.run("r", 8))
    world.write(
        Write("delete", RUN),
        Write("create", RUN, doc.run("r", 4)),
        Write("patch", RUN, {"spec": {"state": "Suspended"}}),
    )
    spec = world.get("Run", "r")["spec"]
    assert (spec["resources"]["totalGPUs"], spec["state"]) == (4, "Suspended")


def test_objects_of_kubernetes_are_patched_too(tmp_path: Path) -> None:
    node = doc.merge(doc.node("n1"), {"metadata": {"uid": "u1", "creationTimestamp": NOW}})
    world = World(tmp_path, node)
    world.write(Write("patch", Ref("Node", "", "n1"), {"spec": {"unschedulable": True}}))
    assert world.get("Node", "n1") == {**node, "spec": {"unschedulable": True}}


def test_a_created_object_has_uid_time_and_namespace(tmp_path: Path) -> None:
    world = World(tmp_path)
    body = doc.merge(doc.run("r", 8), {"metadata": {"namespace": None}})
    world.write(Write("create", RUN, body))
    metadata = world.get("Run", "r")["metadata"]
    assert metadata == {
        "name": "r",
        "namespace": "default",
        "creationTimestamp": NOW,
        "uid": uid("Run/default/r/" + NOW),
    }


def uid(name: str) -> str:
    return str(uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_DNS, "rq.davidlangworthy.io"), name))


def test_creating_the_same_again_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(Write("create", LEASE, lease()))
    world.write(Write("patch", LEASE, {"status": {"closed": True, "ended": NOW, "closureReason": "Failed"}}, "status"))
    before = world.path.read_bytes()
    world.write(Write("create", LEASE, lease()))
    assert world.path.read_bytes() == before


def test_creating_another_object_of_that_name_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path, doc.run("r", 8))
    sentence = "Run default/r: another object of this name is there already; choose another name"
    assert world.refused(Write("create", RUN, doc.run("r", 4))) == sentence


def test_deleting_what_is_gone_is_no_error(tmp_path: Path) -> None:
    world = World(tmp_path, doc.merge(doc.node("n"), {"metadata": {"uid": "u1", "creationTimestamp": NOW}}))
    before = world.path.read_bytes()
    world.write(Write("delete", RUN))
    assert world.path.read_bytes() == before


def test_patching_what_is_gone_is_refused(tmp_path: Path) -> None:
    sentence = "Run default/r: it is not there any more, so it cannot be changed; run the command again"
    assert World(tmp_path).refused(Write("patch", RUN, {"spec": {}})) == sentence


def test_one_refused_write_undoes_all(tmp_path: Path) -> None:
    world = World(tmp_path, doc.run("r", 8))
    good = Write("create", Ref("Run", "default", "new"), doc.run("new", 8))
    bad = Write("patch", RUN, {"spec": {"state": "Paused"}})
    assert world.refused(good, bad) == (
        'Run default/r: spec.state is "Paused"; allowed is one of Active, Cancelled, Suspended'
    )


@pytest.mark.parametrize(
    ("writes", "sentence"),
    [
        (
            [Write("patch", RUN, {"spec": {"owner": "org:b"}})],
            (
                'Run default/r: spec.owner changed from "org:a" to "org:b"; after creation only state,'
                " malleable.desiredTotalGPUs and funding.sponsors may change"
            ),
        ),
        (
            [Write("patch", LEASE, {"spec": {"group": 1}})],
            "Lease default/r-0: spec.group changed from 0 to 1; the spec of a Lease never changes",
        ),
        (
            [Write("patch", LEASE, {"status": {"funding": []}}, "status")],
            "Lease default/r-0: status.funding[0] is missing; allowed is what it was: segments are only ever appended",
        ),
        (
            [
                Write("patch", LEASE, {"status": {"closed": True, "ended": NOW, "closureReason": "Failed"}}, "status"),
                Write("patch", LEASE, {"status": {"closed": False, "ended": None, "closureReason": None}}, "status"),
            ],
            "Lease default/r-0: status.closed changed from true to false; a closed Lease is final",
        ),
        (
            [Write("patch", RUN, {"metadata": {"name": "s"}})],
            "Run default/r: kind, namespace and name of an object never change",
        ),
        (
            [Write("create", Ref("Run", "default", "new"), doc.run("new", 0))],
            "Run default/new: spec.resources.totalGPUs is 0; allowed is a whole number from 1 to 1000000",
        ),
    ],
)
def test_what_may_not_change_is_refused(tmp_path: Path, writes: list[Write], sentence: str) -> None:
    assert World(tmp_path, doc.run("r", 8), lease()).refused(*writes) == sentence


def test_a_broken_object_may_be_mended_but_not_left_broken(tmp_path: Path) -> None:
    world = World(tmp_path, doc.run("r", 0))
    assert world.refused(Write("patch", RUN, {"metadata": {"labels": {"a": "b"}}})).startswith(
        "Run default/r: spec.resources.totalGPUs is 0"
    )
    world.write(Write("patch", RUN, {"spec": {"resources": {"totalGPUs": 4}}}))
    assert [each.spec.total_gpus for each in world.state.read().runs] == [4]


def test_a_revision_that_has_moved_on_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path, doc.run("r", 8))
    old = world.state.read().revision
    world.write(Write("create", Ref("Run", "default", "new"), doc.run("new", 8)))
    with pytest.raises(Refusal) as refusal:
        world.state.write([Write("delete", RUN)], old)
    assert str(refusal.value) == (
        f"{world.path}: it was changed by somebody else in the meantime; run the command again"
    )


def test_the_first_sight_is_told_by_reading_and_kept_by_the_next_write(tmp_path: Path) -> None:
    own = doc.merge(doc.foreign_pod("own", "n", 0), {"metadata": {"labels": {LABEL_RUN: "r"}}})
    foreign = doc.foreign_pod("foreign", "n", 1)
    world = World(tmp_path, doc.run("r", 8), doc.node("n"), doc.run("broken", 0), own, foreign)
    before = world.path.read_bytes()
    (seen,) = world.state.read().runs
    assert (seen.metadata.uid, seen.metadata.creation_timestamp) == (uid("Run/default/r/" + NOW), AT)
    assert world.path.read_bytes() == before

    world.write(Write("patch", Ref("Node", "", "n"), {"spec": {"unschedulable": True}}))
    (later,) = StateFile(world.path, AT + 3600).read().runs
    assert later.metadata == seen.metadata
    assert world.get("Node", "n")["metadata"]["uid"] == uid("Node//n/" + NOW)
    assert world.get("Pod", "own")["metadata"]["creationTimestamp"] == NOW
    assert world.get("Pod", "foreign") == foreign
    assert world.get("Run", "broken") == doc.run("broken", 0)


def test_a_creation_time_that_is_given_makes_the_uid(tmp_path: Path) -> None:
    given_time = doc.merge(doc.run("r", 8), {"metadata": {"creationTimestamp": "2025-01-01T00:00:00+01:00"}})
    given_uid = doc.merge(doc.run("s", 8), {"metadata": {"uid": "mine"}})
    first, second = World(tmp_path, given_time, given_uid).state.read().runs
    assert first.metadata.uid == uid("Run/default/r/2024-12-31T23:00:00Z")
    assert (second.metadata.uid, second.metadata.creation_timestamp) == ("mine", AT)


def test_a_lease_that_contradicts_itself_may_be_mended(tmp_path: Path) -> None:
    world = World(tmp_path, lease(closed=True))
    closed = {"closed": True, "ended": NOW, "closureReason": "Failed"}
    world.write(Write("patch", LEASE, {"status": closed}, "status"))
    assert [each.status.ended for each in world.state.read().leases] == [AT]


def test_the_spec_of_a_lease_that_contradicts_itself_never_changes_and_its_end_stays(tmp_path: Path) -> None:
    world = World(tmp_path, lease(closed=True, ended=NOW))
    moved = {"slice": {"nodes": ["n9#7"], "role": "Active"}}
    for write in (
        Write("patch", LEASE, {"spec": moved}),
        Write("patch", LEASE, {"status": {"closed": False, "ended": None}}, "status"),
    ):
        with pytest.raises(Refusal):
            world.write(write)
