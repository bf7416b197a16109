"""Placement follows the master as far as it can: what lies badly costs no gang."""

from planner import Planning
from planner.placement.place import Start, choose, pieces_of, settle
from policies.inputs.places import kinds
from tests.reference.worlds import AT, snapshot
from tests.support import documents as doc
from tests.support.times import moment


def test_groups_that_leave_a_rest_lie_together() -> None:
    # A group of 8 and its spare take a node and a GPU of another: eight of them fill nine nodes, scattered over both
    # domains they would leave too few whole nodes for the pods of 8.
    nodes = [doc.node(f"{domain}{number}", domain=domain) for domain in "ab" for number in range(9)]
    created = {"metadata": {"creationTimestamp": moment("-1h")}}
    spared = {"spec": {"locality": {"groupGPUs": 8}, "spares": 1}}
    podded = {"spec": {"resources": {"gpusPerPod": 8}, "locality": {"groupGPUs": 8}}}
    runs = [doc.merge(doc.run("spared", 64), spared), doc.merge(doc.run("podded", 72), podded)]
    budget = doc.merge(doc.budget("org:a", [doc.envelope(144)]), created)
    planning = Planning(snapshot([*nodes, budget, *(doc.merge(run, created) for run in runs)]), AT)
    room = planning.state.room()
    places = kinds(planning.problem.fleet, room.free, frozenset())
    pieces = [piece for candidate in range(2) for piece in pieces_of(planning.problem, Start(candidate, 0))]
    for piece in pieces:
        piece.kind = 0

    assert choose(room, places, pieces) == []
    assert settle(room, pieces) == []
    assert sum(room.free) == 0
