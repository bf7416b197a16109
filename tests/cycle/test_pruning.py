"""Closed leases go when they were kept long enough; what they were charged stays, whatever happens meanwhile (§3.6)."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.plans import planjson
from exporters.writes.writes import writes_for
from jobtree.api import Duration, Time
from jobtree.api.kinds.policy import PolicySpec, RetentionPolicy
from jobtree.cluster import edits
from jobtree.cluster.protocol import Write
from jobtree.world.memory import balances as balances_record
from jobtree.world.memory.balances import Account
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake
from jobtree.world.tables.snapshot import take
from planner import plan
from policies.funding import retention
from tests.history.play import Cluster, Step
from tests.support import documents as doc
from tests.support.documents import Document, merge
from tests.support.effort import examples
from tests.support.times import moment, unix
from tests.support.worlds import Cycle, World

T0: Final = unix("+0s")
H: Final = 3600


def worked(**policy: Any) -> World:
    """r ran on 4 GPUs and a spare for an hour; s starts at +1h and goes on; leases are kept for a day."""
    return (
        World()
        .node("n")
        .policy(retention={"leases": "1d"}, **policy)
        .budget("org:a", 8, maxGPUHours=500)
        .run("r", 4, by=4, spares=1)
        .run("s", 2, created="+1s")
    )


def used(world: World, at: str) -> Any:
    return world.usage("org-a", at=at)["gpuSecondsConsumed"]


def balances(world: World) -> list[Document]:
    data = world.state().get("ConfigMap", "jobtree-balances")["data"]
    return list(msgspec.json.decode(data["accounts"]))


def names(world: World) -> list[str]:
    return [each["metadata"]["name"] for each in world.state().all("Lease")]


def test_what_closed_leases_were_charged_stays_when_they_go() -> None:
    world = worked()
    world.cycle()
    world.runs("complete", "r", at="+1h").ok()
    world.cycle("+1h")
    before = used(world, "+25h")
    cycle = world.cycle("+25h")
    assert names(world) == ["s-20260101t000000z-g0-0"]
    assert "2 closed leases go" in cycle.output.out
    assert [(each.namespace, each.name) for each in cycle.plan.pruned] == [
        ("default", "r-20260101t000000z-g0-0"), ("default", "r-20260101t000000z-g0-1")
    ]  # fmt: skip
    same = {
        "budget": "org-a", "envelope": "gpus", "owner": "org:a", "runOwner": "org:a", "flavor": "H100-80GB",
        "fundingClass": "owned", "place": '{"region":"us-west"}',
    }  # fmt: skip
    begin = T0
    assert balances(world) == [
        {**same, "role": "Active", "spans": [[begin, begin + H, 4000]]},
        {**same, "role": "Spare", "spans": [[begin, begin + H, 500]]},
    ]
    assert used(world, "+25h") == before == (4.5 + 2 * 25) * H


def test_a_start_that_is_edited_later_counts_what_fell_after_it_to_the_second() -> None:
    world = worked()
    world.cycle()
    world.runs("complete", "r", at="+1h").ok()
    world.cycle("+1h")
    world.cycle("+25h")
    for start in (1, H // 2 + 7, H - 1, H, 2 * H):
        world.edit(
            "Budget", "org-a", spec={"envelopes": [doc.envelope(8, start=moment(f"+{start}s"), maxGPUHours=500)]}
        )
        assert used(world, "+25h") == 4.5 * max(0, H - start) + 2 * (25 * H - start)


def test_a_budget_that_is_deleted_and_made_again_was_charged_the_same() -> None:
    world = worked()
    world.cycle()
    world.runs("complete", "r", at="+1h").ok()
    world.cycle("+1h")
    budget = world.state().get("Budget", "org-a")
    world.cycle("+25h")
    world.delete("Budget", "org-a")
    world.cycle("+26h")
    world.add({**budget, "status": {}})
    world.cycle("+27h")
    assert used(world, "+27h") == (4.5 + 2 * 26) * H


def test_leases_stay_until_the_first_whole_hour_after_their_retention() -> None:
    world = worked()
    world.cycle()
    world.runs("complete", "r", at="+30m").ok()
    world.cycle("+1h")
    assert len(world.cycle("+24h59m").leases()) == 3
    assert len(world.cycle("+25h").leases()) == 1
    assert [each.plan.pruned for each in (world.cycle("+25h10s"), world.cycle("+50h"))] == [[], []]


@pytest.mark.parametrize(
    ("kept", "at", "last"),
    [("7d", 8 * 24 * H + 59, 24 * H), ("1h", 3 * H + 1, 2 * H), ("10m", 1250, 600), ("0s", 1250, 1250)],
)
def test_which_ends_are_long_enough_ago(kept: str, at: int, last: int) -> None:
    spec = PolicySpec(retention=RetentionPolicy(leases=Duration.parse(kept)))
    assert retention.closed_by(spec, at) == last


def test_leases_that_a_quota_still_counts_or_a_follower_asks_for_stay() -> None:
    world = (
        World()
        .node("n")
        .policy(retention={"leases": "1h"})
        .budget("org:a", 8)
        .run("top", 1, spec={"quota": {"maxGPUHours": 99}})
        .run("below", 1, spec={"parent": "top"})
        .run("first", 1)
        .run("other", 1)
        .run("next", 1, spec={"follow": {"after": ["first", "other"]}})
    )
    world.cycle()
    for run in ("below", "first"):
        world.runs("complete", run, at="+10m").ok()
    world.cycle("+10m")
    world.delete("Run", "first")
    assert world.cycle("+2h").plan.pruned == []
    world.delete("Run", "top").delete("Run", "next")
    world.cycle("+3h")
    gone = world.cycle("+5h")
    assert sorted({lease.run for lease in gone.leases()}) == ["other"]


def broken(name: str) -> tuple[World, Cycle]:
    """A world that has leases to prune, where a part of the balances cannot be read, and its cycle."""
    world = worked()
    world.cycle()
    world.runs("complete", "r", at="+1h").ok()
    world.cycle("+1h")
    metadata = {"name": name, "namespace": "jobtree-system"}
    part = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"accounts": "?"}}
    return world, world.add(part).cycle("+25h")


def test_where_balances_cannot_be_read_nothing_goes_and_a_warning_says_so() -> None:
    world, cycle = broken("jobtree-balances")
    assert (len(cycle.leases()), cycle.plan.pruned) == (3, [])
    assert cycle.warnings["ConfigMap jobtree-system/jobtree-balances"] == [
        "its accounts cannot be read, so no closed lease is pruned; put back what it was"
    ]
    world.delete("ConfigMap", "jobtree-balances")
    assert len(world.cycle("+26h").leases()) == 1


def test_nor_does_anything_go_where_a_later_part_of_them_cannot_be_read() -> None:
    _, cycle = broken("jobtree-balances-2")
    assert (len(cycle.leases()), cycle.plan.pruned) == (3, [])
    assert cycle.warnings["ConfigMap jobtree-system/jobtree-balances"] == [
        "it is gone and jobtree-balances-2 is there: what it says was charged counts nowhere; put it back"
    ]
    assert cycle.warnings["ConfigMap jobtree-system/jobtree-balances-2"] == [
        "its accounts cannot be read, so no closed lease is pruned; put back what it was"
    ]


def test_so_many_go_at_once_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.change(Step(T0, put=[doc.node("n"), doc.policy(retention={"leases": "0s"}), *runs(6)]))
    cluster.cycle(T0)
    for number in range(6):
        done = {"metadata": {"annotations": {"rq.davidlangworthy.io/completed": moment(f"+{60 - number}s")}}}
        cluster.change(Step(T0 + 60, patches=[("Run", f"r{number}", done)]))
    cluster.cycle(T0 + 60)
    monkeypatch.setattr(retention, "AT_ONCE", 4)
    first, second, third = (cluster.cycle(T0 + 60 + later).plan for later in (10, 20, 30))
    assert [sorted(each.name[:2] for each in plan.pruned) for plan in (first, second, third)] == [
        ["r2", "r3", "r4", "r5"], ["r0", "r1"], []
    ]  # fmt: skip


def runs(count: int) -> list[Document]:
    budget = doc.budget("org:a", [doc.envelope(8, maxGPUHours=900)])
    made = [budget, *(doc.run(f"r{number}", 1) for number in range(count))]
    given = {"metadata": {"uid": "uid", "creationTimestamp": moment("-1h")}}
    return [merge(each, given) for each in made]


def closed() -> Cluster:
    """Four leases have just closed and may go."""
    cluster = Cluster()
    cluster.change(Step(T0, put=[doc.node("n"), doc.policy(retention={"leases": "10s"}), *runs(4)]))
    cluster.cycle(T0)
    done = {"metadata": {"annotations": {"rq.davidlangworthy.io/completed": moment("+60s")}}}
    cluster.change(Step(T0 + 60, patches=[("Run", f"r{number}", done) for number in range(4)]))
    cluster.cycle(T0 + 60)
    return cluster


def left(cluster: Cluster) -> tuple[list[str], list[str], Any]:
    """Leases, accounts and usage."""
    documents = cluster.documents()
    kept = [each["data"]["accounts"] for each in documents if each["metadata"]["name"].startswith("jobtree-balances")]
    (usage,) = (each["status"]["envelopes"] for each in documents if each["kind"] == "Budget")
    return [each["metadata"]["name"] for each in documents if each["kind"] == "Lease"], kept, usage


@examples(12)
@given(st.data())
def test_a_crash_after_any_write_counts_nothing_twice_and_loses_nothing(data: st.DataObject) -> None:
    crashes(data, closed)


def parted() -> Cluster:
    """As `closed`, and the balances have no room left for what these were charged."""
    cluster = closed()
    first = balances_record.Part(accounts=(Account("b", "e", "org:b", "org:b", "f", "owned", "Active", ((0, 9, 1),)),))
    metadata = {"name": "jobtree-balances", "namespace": "jobtree-system"}
    data = balances_record.record(first)
    cluster.change(Step(T0 + 60, put=[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}]))
    return cluster


@examples(12)
@given(st.data())
def test_nor_does_one_when_another_part_of_the_balances_begins(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balances_record, "MOST", 200)
        accounts = crashes(data, parted)

    assert len(accounts) == 2


def crashes(data: st.DataObject, made: Callable[[], Cluster]) -> list[str]:
    """A cycle is cut off after any of its writes, and the next ones leave what would be there without that."""
    whole, crashed = made(), made()
    for at in (T0 + 80, T0 + 100):
        whole.cycle(at)

    read = crashed.read()
    writes = carrying_out(read, plan(take(read), T0 + 80))
    assert [write.verb for write in writes].count("delete") == 4
    done = writes[: data.draw(st.integers(0, len(writes)))]
    edits.apply(crashed.text, done, Time(T0 + 80))
    crashed.cycle(T0 + 100)
    assert left(crashed) == left(whole)
    assert left(crashed)[0] == []
    edits.apply(crashed.text, carrying_out(crashed.read(), plan(take(crashed.read()), T0 + 110)), Time(T0 + 110))
    assert left(crashed) == left(whole)
    return left(whole)[1]


def carrying_out(read: Intake, decided: Plan) -> list[Write]:
    """What is written of a plan."""
    return writes_for(read, decided, planjson.encode(decided))


def test_the_same_writes_made_again_prune_nothing_more() -> None:
    cluster = closed()
    read = cluster.read()
    decided = plan(take(read), T0 + 80)
    edits.apply(cluster.text, carrying_out(read, decided), Time(T0 + 80))
    again = [(write.verb, str(write.ref)) for write in carrying_out(cluster.read(), decided)]
    assert again == []
