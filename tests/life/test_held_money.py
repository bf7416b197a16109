"""Money that a promise holds keeps starts away; it takes nobody's payer (spec §3.8, §5)."""

from tests.support.worlds import World


def test_a_start_beside_held_money_leaves_a_relatives_payer_where_all_fits() -> None:
    # of 10: the child's 4 that run, 4 held for w, who waits for a node; 4 more start: 8 of 10 are paid
    world = World().domain("A", gpus=[4]).domain("B", gpus=[4]).domain("C", gpus=[4])
    world.budget("org", 10).budget("corp", 8)
    world.run("kid", 4, owner="org:b", locality={"selector": {"fabric.domain": "A"}})
    world.run("busy", 4, owner="corp", limit="2h", locality={"selector": {"fabric.domain": "B"}})
    assert world.cycle().running == ["busy", "kid"]
    world.run("w", 4, owner="org", created="+1m", locality={"selector": {"fabric.domain": "B"}})
    assert world.cycle("+1m").phases["w"] == "Pending"
    world.run("late", 4, owner="org", created="+2m", locality={"selector": {"fabric.domain": "C"}})
    cycle = world.cycle("+2m")

    assert cycle.phases == {"busy": "Running", "kid": "Running", "late": "Running", "w": "Pending"}
    assert (cycle.funding("kid"), cycle.funding("late")) == ({"shared": 4}, {"owned": 4})
