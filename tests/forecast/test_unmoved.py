"""A promise by cuts stands as it was told until something it hangs on changes: what runs, or is promised, in reach."""

import pytest

from tests.support.documents import envelope
from tests.support.times import moment
from tests.support.worlds import World

OTHER = "other"


def world() -> World:
    """Two flavors of three nodes each, all in use by old work without ends; a gang of two nodes waits for each."""
    made = World().domain("h", 3).domain("o", 3, flavor=OTHER)
    made.budget("org:v", 64).budget("org:v", 64, name="v-other", flavor=OTHER)
    made.budget("org:w", 64).budget("org:w", 64, name="w-other", flavor=OTHER)
    for node in range(3):
        made.run(f"h{node}", 8, owner="org:v")
        made.run(f"o{node}", 8, owner="org:v", resources={"gpuType": OTHER})
    made.edit("Run", "h0", spec={"runtime": {"expected": "24h1m"}}).old()
    made.run("first", 16, by=8, owner="org:w")
    made.run("second", 16, by=8, owner="org:w", resources={"gpuType": OTHER})
    return made


def chances(made: World, promise: str) -> dict[str, float]:
    """Who may be cut for it, and how surely."""
    told = made.state().get("Reservation", promise)["status"]["forecast"]["conflictSet"]
    return {each["run"].removeprefix("default/"): each["killProbability"] for each in told}


FIRST, SECOND = "first-20260101t000000z", "second-20260101t000000z"
HALF, THIRDS = 0.5, round(2 / 3, 6)


@pytest.mark.parametrize(
    ("happens", "written"),
    [("nothing", []), ("an end elsewhere is late", []), ("another waits", []), ("a victim ends", [SECOND])],
)
def test_a_cycle_writes_those_promises_whose_facts_changed(happens: str, written: list[str]) -> None:
    made = world()
    made.cycle("+0s")
    at = {"nothing": "+30s", "an end elsewhere is late": "+2m"}.get(happens, "+1m")
    if happens == "another waits":
        made.run("third", 8, owner="org:v", created="+1m")
    elif happens == "a victim ends":
        made.runs("complete", "o1", at="+1m").ok()
    plan = made.cycle(at).plan

    assert [each.name for each in plan.promises] == written
    assert chances(made, FIRST) == {f"h{node}": THIRDS for node in range(3)}
    assert chances(made, SECOND) == ({"o0": HALF, "o2": HALF} if written else {f"o{n}": THIRDS for n in range(3)})


def test_a_promise_for_which_as_much_is_missing_elsewhere_is_told_as_it_was() -> None:
    """What is free in a is promised to the younger run, so only in b are no more than 4 GPUs missing for the older."""
    made = World().domain("a").domain("b").domain("c").budget("org:w", 64).budget("org:n", 4)
    made.run("x", 4).run("y", 4, limit="25h").run("money", 4, owner="org:n", limit="25h")
    made.run("late", 4, runtime={"expected": "24h30s"})
    for run, node in (("x", "a01"), ("y", "b01"), ("money", "c01"), ("late", "c01")):
        made.edit("Run", run, spec={"owner": "org:n" if run == "money" else "org:w"})
        made.edit("Run", run, spec={"locality": {"selector": {"fabric.domain": node[0]}}})
    made.old()
    made.edit("Node", "c01", spec={"unschedulable": True})
    made.run("older", 8, owner="org:w").run("younger", 4, owner="org:n")
    made.cycle("+0s")
    told = made.state().get("Reservation", "older-20260101t000000z")["status"]
    plan = made.cycle("+1m").plan

    assert (told["earliestStart"], told["forecast"]["scope"]) == ("2026-01-01T01:00:00Z", "domain=a")
    assert [(wait.name, wait.shorts[0].subject) for wait in plan.waits if wait.name == "older"] == [
        ("older", "domain=b")
    ]
    assert plan.promises == []


def test_of_a_gang_who_has_no_promise_is_told_the_date_by_cuts_of_who_has_one() -> None:
    """An end that is reported later would free both nodes within patience, but after what is promised."""
    made = World().domain("a", 2).budget("org:v", 16).budget("org:w", 16).policy(reservations={"maxHeld": 1})
    made.run("v1", 8, owner="org:v").run("v2", 8, owner="org:v").old()
    for name in ("first", "second"):
        made.run(name, 8, owner="org:w", gang={"name": "g", "size": 2})
    before = made.cycle("+0s")
    for name in ("v1", "v2"):
        made.edit("Run", name, metadata={"annotations": {"rq.davidlangworthy.io/eta": moment("+2h")}})
    after = made.cycle("+1m")

    date = {"p50": moment("+15m"), "p90": moment("+15m")}
    assert [before.status(name)["eta"] for name in ("first", "second")] == [date, date]
    assert [after.status(name)["eta"] for name in ("first", "second")] == [date, date]


def poor() -> World:
    """Old work on two nodes, and two runs of a node each whose owner has money for one."""
    made = World().domain("a", 2).budget("org:v", 16).budget("org:w", 8)
    made.run("v1", 8, owner="org:v").run("v2", 8, owner="org:v").old()
    return made.run("older", 8, owner="org:w").run("younger", 8, owner="org:w")


def test_the_money_of_a_promise_that_stands_is_promised_to_nobody_else() -> None:
    made = poor()
    first, second = made.cycle("+0s").plan, made.cycle("+1m").plan

    assert [each.name for each in first.reservations] == ["older-20260101t000000z"]
    assert ([*second.reservations], [*second.promises]) == ([], [])


def test_a_promise_by_cuts_that_its_budget_can_pay_no_more_does_not_stand() -> None:
    made = poor()
    made.cycle("+0s")
    made.edit("Budget", "org-w", spec={"envelopes": [envelope(4)]})
    made.cycle("+1m")

    told = made.state().get("Reservation", "older-20260101t000000z")["status"]
    assert (told["state"], told["reason"]) == ("Failed", "NoKnownTime")


def test_a_start_beside_one_that_may_be_cut_changes_the_chances_of_the_others() -> None:
    """It is protected until after the promise, and takes the GPUs without which its neighbour's are not enough."""
    made = World().domain("a").domain("b").budget("org:v", 16).budget("org:w", 8).budget("org:x", 8)
    for run, domain in (("v1", "a"), ("v2", "b")):
        made.run(run, 4, owner="org:v", locality={"selector": {"fabric.domain": domain}})
    made.old()
    made.run("waits", 8, owner="org:w").cycle("+0s")
    before = chances(made, "waits-20260101t000000z")
    cycle = made.run("starts", 4, owner="org:x", created="+30s").cycle("+1m")

    (lease,) = cycle.leases("starts")
    assert before == {"v1": HALF, "v2": HALF}
    assert chances(made, "waits-20260101t000000z") == {"v2" if lease.nodes == {"a01"} else "v1": 1}


def halves(*more: tuple[str, str]) -> World:
    """Two runs of 4 GPUs on the node of domain a, two on that of b, all old; nodes of 4 GPUs, by name and domain, come
    later; then 8 GPUs in a domain are waited for.
    """
    made = World().domain("a").domain("b").budget("org:v", 64).budget("org:w", 64).policy(lottery={"term": "12h"})
    for run, domain in (("v1", "a"), ("v2", "a"), ("v3", "b"), ("v4", "b")):
        made.run(run, 4, owner="org:v", locality={"selector": {"fabric.domain": domain}})
    made.old()
    for name, domain in more:
        made.node(name, 4, domain=domain)
    return made.run("waits", 8, owner="org:w")


ALL = dict.fromkeys(("v1", "v2", "v3", "v4"), HALF)
IN_A = dict.fromkeys(("v1", "v2"), HALF)
CAME = "a node comes"


@pytest.mark.parametrize(
    "happens", [CAME, "it goes", "it is cordoned", "it is in another domain", "a pod takes it", "it is smaller"]
)
def test_nodes_and_pods_that_a_promise_may_use_are_seen_when_they_change(happens: str) -> None:
    """With 4 GPUs free in a one run less goes there than in b."""
    made = halves(*([] if happens == CAME else [("a02", "a")]))
    made.cycle("+0s")
    before = chances(made, WAITS)
    if happens == CAME:
        made.node("a02", 4, domain="a")
    elif happens == "it goes":
        made.delete("Node", "a02")
    elif happens == "it is cordoned":
        made.edit("Node", "a02", spec={"unschedulable": True})
    elif happens == "it is in another domain":
        made.edit("Node", "a02", metadata={"labels": {"fabric.domain": "z"}})
    elif happens == "a pod takes it":
        made.foreign_pod("other", "a02", 4)
    else:
        made.edit("Node", "a02", status={"allocatable": {"nvidia.com/gpu": "3"}})
    made.cycle("+1m")
    written = made.cycle("+2m").plan.promises

    assert (before, chances(made, WAITS)) == ((ALL, IN_A) if happens == CAME else (IN_A, ALL))
    assert written == []


WAITS = "waits-20260101t000000z"


def test_a_node_elsewhere_that_changes_leaves_a_promise_as_it_was_told() -> None:
    made = halves(("a02", "a")).node("o01", flavor=OTHER)
    made.cycle("+0s")
    made.edit("Node", "o01", spec={"unschedulable": True})

    assert made.cycle("+1m").plan.promises == []


def test_an_edit_of_the_policy_is_seen() -> None:
    made = halves()
    made.cycle("+0s")
    made.edit("Policy", "default", spec={"lottery": {"term": "25h"}})
    made.cycle("+1m")

    told = made.state().get("Reservation", WAITS)["status"]
    assert (told["earliestStart"], chances(made, WAITS)) == (moment("+1h"), ALL)


def test_an_older_promise_by_cuts_that_ends_leaves_its_victims_to_the_younger() -> None:
    made = halves().run("older", 8, owner="org:w", created="-1h")
    made.cycle("+0s")
    before = {run: made.state().status(run)["killProbability"] for run in ALL}
    made.edit("Run", "older", spec={"state": "Suspended"})
    made.cycle("+1m")

    after = {run: made.state().status(run)["killProbability"] for run in ALL}
    assert (before, after, chances(made, WAITS)) == (dict.fromkeys(ALL, 1), ALL, ALL)
