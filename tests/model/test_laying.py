"""What construction strands finds a place: by another choice of domains, or where lighter work makes way."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from planner import Planning
from planner.placement.allot import allot
from planner.placement.draft import Draft
from planner.placement.lay import lay
from planner.placement.place import Start, choose, pieces_of, settle
from planner.placement.repair import Repair
from planner.placement.room import Room
from planner.solver.highs import options
from policies.inputs.places import Kind, kinds
from tests.reference.worlds import AT, snapshot
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment

SETTINGS = options(1, 0.0, 100)


class Laid:
    """Domains of one node each, all of one kind, and runs of one group each that are to start, in the order given."""

    def __init__(self, nodes: Sequence[int], sizes: Sequence[int], pod: int | None = None) -> None:
        created = {"metadata": {"creationTimestamp": moment("-1h")}}
        documents: list[Document] = [
            doc.node(f"n{number}", gpus, domain=f"d{number:02}") for number, gpus in enumerate(nodes)
        ]
        documents.append(doc.merge(doc.budget("org:a", [doc.envelope(1_000)]), created))
        for number, gpus in enumerate(sizes):
            pods = {"spec": {"resources": {"gpusPerPod": pod}}} if pod else {}
            documents.append(doc.merge(doc.merge(doc.run(f"r{number}", gpus), pods), created))
        planning = Planning(snapshot(documents), AT)
        self.problem = planning.problem
        self.room: Room = planning.state.room()
        self.kinds: list[Kind] = kinds(self.problem.fleet, self.room.free, frozenset())
        self.number = {int(c.run.key[1][1:]): index for index, c in enumerate(self.problem.candidates)}
        self.candidates = [self.number[number] for number in range(len(sizes))]
        starts = [Start(candidate, 0) for candidate in self.candidates]
        self.draft = Draft(starts, [piece for start in starts for piece in pieces_of(self.problem, start)])
        for piece in self.draft.pieces:
            piece.kind = 0
        self.worth = [0] * len(self.problem.candidates)
        for candidate, gpus in zip(self.candidates, sizes, strict=True):
            self.worth[candidate] = gpus

    def lay(self) -> set[int]:
        """Numbers of the runs that end without a place."""
        lost, _ = lay(self.problem, self.room, self.kinds, self.draft, self.worth, SETTINGS)
        return {number for number, candidate in self.number.items() if candidate in lost}


def test_construction_strands_what_a_choice_of_domains_does_not() -> None:
    built, laid = (Laid([11, 10], [6, 5, 5, 5]) for _ in range(2))

    assert [piece.shape.size for piece in choose(built.room, built.kinds, built.draft.pieces)] == [5]
    assert laid.lay() == set()
    assert sum(laid.room.free) == 0


def test_the_lightest_stays_away_where_its_kind_of_domain_has_no_place_for_all() -> None:
    # A third domain is of another kind: what lies there somebody else has to pay.
    laid = Laid([8, 8, 8], [5, 6, 5])
    (every,) = laid.kinds
    worth = [0] * len(laid.worth)
    for candidate, each in zip(laid.candidates, (3, 2, 1), strict=True):
        worth[candidate] = each

    kind = Kind(0, every.sites, every.domains[:2])
    lost = allot(laid.room, kind, laid.draft.pieces, worth, SETTINGS)

    assert lost == laid.draft.pieces[2:]
    assert sorted(piece.domain for piece in laid.draft.pieces[:2]) == [0, 1]


def test_light_work_moves_for_what_is_stranded() -> None:
    # A run of 4 lies in each domain of 8 already, so there is no place for one of 8 until they lie together.
    laid = Laid([8, 8], [4, 4, 8])
    light, other, heavy = laid.draft.pieces
    light.domain, other.domain = 0, 1
    assert settle(laid.room, [light, other]) == []

    repair = Repair(laid.problem, laid.room, laid.kinds, laid.draft, laid.worth)
    repair.run([heavy])

    assert repair.lost == set()
    assert light.domain == other.domain != heavy.domain
    assert sum(laid.room.free) == 0


def test_light_work_stays_away_for_what_is_worth_more() -> None:
    laid = Laid([8, 4], [3, 2, 8])
    light, lightest, heavy = laid.draft.pieces
    light.domain = lightest.domain = 0
    assert settle(laid.room, [light, lightest]) == []

    repair = Repair(laid.problem, laid.room, laid.kinds, laid.draft, laid.worth)
    repair.run([heavy])

    assert repair.lost == {lightest.candidate}
    assert (heavy.domain, light.domain, lightest.chunks) == (0, 1, [])
    assert sum(laid.room.free) == 1


def test_nothing_makes_way_for_what_is_worth_less() -> None:
    laid = Laid([8], [8, 4])
    heavy, light = laid.draft.pieces
    heavy.domain = 0
    assert settle(laid.room, [heavy]) == []

    repair = Repair(laid.problem, laid.room, laid.kinds, laid.draft, laid.worth)
    repair.run([light])

    assert repair.lost == {light.candidate}
    assert (heavy.domain, sum(chunk.count for chunk in heavy.chunks)) == (0, 8)


@given(
    nodes=st.lists(st.integers(3, 12), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=7),
    pod=st.sampled_from([None, 1]),
)
def test_slots_are_taken_once_and_by_what_stays(nodes: list[int], sizes: list[int], pod: int | None) -> None:
    laid = Laid(nodes, sizes, pod)

    lost = laid.lay()

    placed = {number for number, piece in enumerate(laid.draft.pieces) if piece.chunks}
    taken = [0] * len(nodes)
    for piece in laid.draft.pieces:
        for chunk in piece.chunks:
            taken[chunk.node] += chunk.count
    assert placed == set(range(len(sizes))) - lost
    assert sum(taken) == sum(sizes[number] for number in placed)
    assert [gpus - used for gpus, used in zip(nodes, taken, strict=True)] == laid.room.free
