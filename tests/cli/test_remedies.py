"""`explain`: remedies as people and programs read them."""

import msgspec

from tests.support.times import T0, moment
from tests.support.worlds import World

CPU = {"gpuType": None, "totalGPUs": None, "pods": 1, "cpuPerPod": "1", "memoryPerPod": "1Gi"}


def waiting() -> World:
    """A run that lacks 4 of its 8 GPUs, one that waits for another run, and one that starts."""
    return (
        World()
        .domain("A", nodes=2)
        .budget("org:a", 8)
        .run("starts", 4, created="-4d")
        .run(
            "short",
            8,
            template={"spec": {"containers": [{"name": "main", "image": "i"}], "nodeSelector": {"region": "us-west"}}},
        )
        .run("follows", 4, follow={"after": ["starts"]})
    )


def explained(world: World, run: str, *more: str, at: str = T0) -> str:
    return world.runs("explain", run, *more, at=at).ok().out


def test_each_remedy_is_a_line_with_what_to_do() -> None:
    world = waiting()
    printed = explained(world, "short")

    assert printed.endswith(
        "  short: 4 GPUs of org-a/gpus (concurrency)\n"
        "\n"
        "Remedies, cheapest first; each was planned and starts the run\n"
        "  run default/starts suspended (4 GPUs): "
        f"kubectl runs --state {world.path} -n default suspend starts\n"
        "  run it unfunded, charged to nobody: cancel Run default/short, "
        "and submit it under another name with spec.funding.opportunistic: true\n"
        "  4 GPUs fewer: cancel Run default/short, and submit it under another name with spec.resources.totalGPUs: 4\n"
        "  4 GPUs more at org-a/gpus: Budget org-a: spec.envelopes[gpus].concurrency: 12\n"
    )


def test_the_command_of_a_remedy_does_it() -> None:
    world = waiting()
    explained(world, "short")
    world.runs("-n", "default", "suspend", "starts").ok()

    assert world.cycle(T0).running == ["short"]


def test_what_is_computed_is_an_item_beside_the_objects() -> None:
    world = waiting()
    items = msgspec.json.decode(explained(world, "short", "-o", "json"))["items"]
    *objects, computed = items

    assert [each["kind"] for each in objects] == ["Run"]
    assert {key: computed[key] for key in ("kind", "metadata", "taken")} == {
        "kind": "Explanation",
        "metadata": {"namespace": "default", "name": "short"},
        "taken": [],
    }
    assert computed["nextCycle"]["shorts"] == [
        {"rule": "concurrency", "subject": "org-a/gpus", "amount": 4, "unit": "GPU"}
    ]
    assert computed["remedies"][-1] == {
        "kind": "cap",
        "who": "owners of Budgets",
        "words": "4 GPUs more at org-a/gpus",
        "gpus": 4,
        "how": "Budget org-a: spec.envelopes[gpus].concurrency: 12",
        "changes": [{"object": "Budget org-a", "field": "spec.envelopes[gpus].concurrency", "value": 12}],
    }


def test_a_label_of_the_template_is_named_where_it_stands() -> None:
    world = World().node("n").budget("org:a", 8)
    world.run(
        "r",
        4,
        template={"spec": {"containers": [{"name": "main", "image": "i"}], "nodeSelector": {"region": "us-east"}}},
    )

    assert (
        "  also nodes without region=us-east: cancel Run default/r, and submit it under another name with "
        'spec.template.spec.nodeSelector["region"]: (left out)\n'
    ) in explained(world, "r")


def test_nodes_on_which_gpus_are_freed_are_listed() -> None:
    world = World().domain("A", nodes=3).budget("org:a", 24).budget("org:b", 24).run("b", 20, owner="org:b")
    world.cycle(T0)
    world.run("r", 16, limit="1h")

    assert "  12 GPUs freed in A: 4 on a01, 8 on a02\n" in explained(world, "r")


def test_where_nothing_helps_that_is_said() -> None:
    world = World().node("n").run("r", 8)
    assert explained(world, "r").endswith(
        "\n\nRemedies, cheapest first; each was planned and starts the run\n"
        "  run it unfunded, charged to nobody: cancel Run default/r, "
        "and submit it under another name with spec.funding.opportunistic: true\n"
    )
    world = World().node("n", 4).run("r", 8, funding={"opportunistic": True}, locality={"selector": {"no": "node"}})
    world.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}})
    printed = explained(world, "r")
    assert "\n\nNo remedy\n  no change that was tried, alone or combined, starts it\n" in printed
    assert "Remedies, cheapest first" not in printed


def first(world: World, run: str, at: str = T0) -> list[str]:
    """What has to come first, line by line."""
    _, _, block = explained(world, run, at=at).partition("\n\nWhat has to come first\n")
    return [line.removeprefix("  ") for line in block.splitlines()]


def test_a_run_that_starts_gets_none() -> None:
    world = waiting()
    assert "Remedies" not in explained(world, "starts")
    assert first(world, "starts") == []


def never(why: str, run: str, ends: str, follow: str) -> str:
    """What is said of upstreams that never complete; ``ends``: when the run fails with them."""
    again = f"cancel Run default/{run}, and submit it under another name with {follow}"
    return f"{why} and never completes; {run} fails too at {moment(ends)}: {again}"


def test_a_run_that_follows_others_is_told_which_have_to_complete() -> None:
    world = waiting().run("data", 1).run("both", 4, follow={"after": ["starts", "nowhere", "data"]})
    world.run("pods", 1, follow={"after": ["data"]}, resources=CPU)

    assert first(world, "follows") == ["starts (Running) completes"]
    assert first(world, "both") == ["starts (Running), nowhere (to be submitted), data (Running) complete"]
    assert first(world, "pods") == ["data (Running) completes"]
    assert "Remedies" not in explained(world, "both")
    world.cycle(T0)
    world.runs("complete", "data", at="+1m").ok()
    world.runs("cancel", "starts", at="+1m").ok()
    world.cycle("+1m")
    assert first(world, "both", "+2m") == [
        "nowhere (to be submitted) completes",
        never("starts failed", "both", "+31m", "spec.follow.after: [nowhere, data]"),
    ]
    assert first(world, "follows", "+2m") == [never("starts failed", "follows", "+31m", "spec.follow: (left out)")]


def test_upstreams_that_were_deleted_never_complete_unless_they_had_or_come_again() -> None:
    world = World().node("n", 8).budget("org:a", 8)
    for name in ("bad", "done", "lost", "old"):
        world.run(name, 1)
    world.run("all", 1, follow={"after": ["done", "lost", "bad", "old"]}).run("one", 1, follow={"after": ["lost"]})
    world.cycle(T0)
    for name in ("done", "old"):
        world.runs("complete", name, at="+1m").ok()
    world.runs("cancel", "bad", at="+1m").ok()
    world.cycle("+1m")
    for name in ("done", "lost"):
        world.delete("Run", name)
    assert first(world, "one", "+2m") == [never("lost was deleted", "one", "+32m", "spec.follow: (left out)")]
    told = never("bad failed and lost was deleted, and they", "all", "+31m", "spec.follow.after: [done, old]")
    assert first(world, "all", "+2m") == [told.replace("they and never completes", "they never complete")]
    world.run("lost", 1, created="+2m")
    assert first(world, "one", "+2m") == ["lost (Running) completes"]


def test_a_suspended_run_is_told_how_to_resume() -> None:
    world = waiting()
    world.runs("suspend", "starts").ok()
    resume = f"kubectl runs --state {world.path} -n default resume starts"
    assert first(world, "starts") == [f"its owner resumes it: {resume}"]
    (*_, computed) = msgspec.json.decode(explained(world, "starts", "-o", "json"))["items"]
    assert computed["remedies"] == [
        {"kind": "resume", "who": "the run's owner", "words": "its owner resumes it", "how": resume}
    ]

    world.runs(*resume.split()[4:]).ok()
    assert world.cycle(T0).phases["starts"] == "Running"


def test_what_is_over_has_nothing_to_come_first() -> None:
    world = waiting()
    world.runs("cancel", "follows").ok()
    world.cycle(T0)

    assert first(world, "follows") == []
