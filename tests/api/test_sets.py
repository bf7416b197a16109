# ruff: noqa: N802 -- test names are case ids
"""Rules over several objects: unique names, and cycles of follow, parent and parents, spelled out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api import Budget, KindObject, OwnerPath, Refusal, decode
from jobtree.api.rules.kinds import check_set, set_problems
from jobtree.api.rules.together import find_circles, parents_of_owners
from tests.support import documents as doc

Edges = dict[str, set[str]]


def read(*documents: doc.Document) -> list[KindObject]:
    found = [decode(document["kind"], document) for document in documents]
    return [item for item in found if isinstance(item, KindObject)]


def runs(**after: list[str]) -> list[KindObject]:
    """Runs by name, with what each follows."""
    return read(
        *(
            doc.merge(doc.run(name, 8), {"spec": {"follow": {"after": ups} if ups else None}})
            for name, ups in after.items()
        )
    )


def budget(owner: str, parents: list[str] | None = None, name: str | None = None) -> doc.Document:
    said = {} if parents is None else {"parents": parents}
    return doc.budget(owner, [doc.envelope(8)], name, **said)


def problems(items: list[KindObject]) -> list[str]:
    return [str(problem) for problem in set_problems(items)]


def test_l8_a_follow_cycle_is_spelled_out() -> None:
    items = runs(a=["b"], b=["a"], c=["b"], d=["b"], e=["c", "d"])
    with pytest.raises(Refusal) as caught:
        check_set(items)
    assert str(caught.value) == (
        "Run default/a: spec.follow.after makes a cycle: a → b → a; allowed is follow without a cycle"
    )
    assert caught.value.members == ("Run default/a", "Run default/b")
    assert problems(items) == [str(caught.value)]


def test_a_parent_cycle_is_spelled_out() -> None:
    items = read(
        *(doc.merge(doc.run(name, 8), {"spec": {"parent": up}}) for name, up in (("b", "c"), ("c", "d"), ("d", "b")))
    )
    assert problems(items) == [
        "Run default/b: spec.parent makes a cycle: b → c → d → b; allowed is parent without a cycle"
    ]


def test_a_tree_whose_root_waits_for_its_children_is_no_cycle() -> None:
    root = doc.merge(doc.run("root", 8), {"spec": {"follow": {"after": ["leaf"]}}})
    assert problems(read(root, doc.merge(doc.run("leaf", 8), {"spec": {"parent": "root"}}))) == []


def test_a_budget_parents_cycle_is_spelled_out() -> None:
    items = read(
        budget("org:b", ["org:c"]), budget("org:c", ["org:d"]), budget("org:d", ["org:b"]), budget("org:e", ["org:b"])
    )
    assert problems(items) == [
        "Budget org-b: spec.parents makes a cycle: org:b → org:c → org:d → org:b; allowed is parents without a cycle"
    ]
    assert set_problems(items)[0].members == ("Budget org-b", "Budget org-c", "Budget org-d")


def test_a_parent_below_its_child_by_name_is_a_cycle() -> None:
    assert problems(read(budget("org:a", ["org:a:x"]), budget("org:a:x"))) == [
        "Budget org-a: spec.parents makes a cycle: org:a → org:a:x → org:a; allowed is parents without a cycle"
    ]
    assert problems(read(budget("org:a", ["org:a:x"]), budget("org:a:x", []))) == []


def test_names_are_unique_within_kind_and_namespace() -> None:
    other = doc.run("a", 8, namespace="team")
    assert problems(read(doc.run("a", 8), other, doc.run("a", 4), budget("org:a", name="a"))) == [
        "Run default/a: there are 2 of them; allowed is each kind, namespace and name once"
    ]


def test_follow_stays_within_a_namespace() -> None:
    here = doc.merge(doc.run("a", 8), {"spec": {"follow": {"after": ["b"]}}})
    there = doc.merge(doc.run("b", 8, namespace="team"), {"spec": {"follow": {"after": ["a"]}}})
    assert problems(read(here, there)) == []


def test_parents_of_owners() -> None:
    said = [
        ("org", None), ("org:a", None), ("org:a:x:y", None), ("org:b", []), ("org:c", ["org:a", "team:z:q"]),
        ("team:z", None),
    ]  # fmt: skip
    items = read(*(budget(owner, up) for owner, up in said), budget("org:c", ["org:b"], "second"))
    found = [item for item in items if isinstance(item, Budget)]
    expected = {
        "org": (),
        "org:a": ("org",),
        "org:a:x:y": ("org:a",),
        "org:b": (),
        "org:c": ("org:a", "team:z:q", "org:b"),
        "team:z": (),
        "team:z:q": ("team:z",),
    }
    assert parents_of_owners(found) == {OwnerPath(owner): tuple(map(OwnerPath, up)) for owner, up in expected.items()}
    assert parents_of_owners(reversed(found)) == parents_of_owners(found)


edges = st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdef"), max_size=3), max_size=6)


def reaches(graph: Edges, start: str) -> set[str]:
    """Everything that can be reached from a node by at least one edge."""
    found: set[str] = set()
    edge = set(graph.get(start, ()))
    while edge:
        found |= edge
        edge = {target for node in edge for target in graph.get(node, ())} - found
    return found


def plain(graph: Edges) -> dict[str, tuple[str, ...]]:
    return {node: tuple(targets) for node, targets in graph.items()}


@given(edges)
def test_circles_are_what_leads_back_to_itself_each_with_its_shortest_cycle(graph: Edges) -> None:
    back = {node: reaches(graph, node) for node in graph}
    wanted = {
        tuple(sorted(other for other in back[node] if other in graph and node in back[other]))
        for node in graph
        if node in back[node]
    }
    found = find_circles(plain(graph))

    assert [tuple(circle.members) for circle in found] == sorted(wanted)
    for cycle, members in found:
        assert all(after in graph[before] for before, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        assert cycle[0] == min(members)
        assert len(set(cycle)) == len(cycle)


@given(edges, st.randoms(use_true_random=False))
def test_circles_do_not_depend_on_the_order(graph: Edges, random: object) -> None:
    shuffled = list(graph.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert find_circles(plain(dict(shuffled))) == find_circles(plain(graph))


def test_a_long_chain_is_read_without_recursion() -> None:
    chain = {f"r{number:05}": [f"r{number + 1:05}"] for number in range(20_000)}
    assert find_circles(chain) == []
    assert len(find_circles({**chain, "r20000": ["r00000"]})[0].cycle) == 20_001


def test_V4_of_circles_that_meet_the_shortest_is_spelled_and_all_are_counted() -> None:
    ring = {f"r{number}": [f"r{(number + 1) % 9}", f"r{(number + 4) % 9}"] for number in range(9)}
    (problem,) = set_problems(runs(**ring))

    assert problem.problem == (
        "spec.follow.after makes a cycle: r0 → r1 → r5 → r0, one of several in which 9 runs lie; "
        "allowed is follow without a cycle"
    )
    assert len(problem.members) == 9


def chain(length: int) -> list[KindObject]:
    """Runs r00000, r00001, ..., each the parent of the next."""
    names = [f"r{number:05}" for number in range(length)]
    ups = [None, *names[:-1]]
    return read(*(doc.merge(doc.run(name, 1), {"spec": {"parent": up}}) for name, up in zip(names, ups, strict=True)))


@pytest.mark.parametrize(("length", "said"), [(64, None), (65, "1 run lies"), (3000, "2936 runs lie")])
def test_V3_no_run_lies_deeper_than_64_in_its_tree(length: int, said: str | None) -> None:
    found = set_problems(chain(length))

    assert [len(problem.members) for problem in found] == ([] if said is None else [length - 64])
    if said:
        assert str(found[0]).startswith(
            f"Run default/r00064: spec.parent: {said} deeper than 64 in the tree of default/r00000: r00064"
        )
        assert len(str(found[0])) < 300


@pytest.mark.parametrize("relation", ["parent", "follow"])
def test_V4_a_circle_of_3000_runs_is_one_problem_of_few_names(relation: str) -> None:
    names = [f"r{number:05}" for number in range(3000)]
    made = [{"parent": up} if relation == "parent" else {"follow": {"after": [up]}} for up in (names[-1], *names[:-1])]
    items = read(*(doc.merge(doc.run(name, 1), {"spec": spec}) for name, spec in zip(names, made, strict=True)))
    (problem,) = set_problems(items)

    assert len(problem.members) == 3000
    assert problem.problem.count(" → ") == 11
    assert "2990 more" in problem.problem
