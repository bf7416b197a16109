"""The valid scenes that the tests start from, one per concept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from jobtree.api import OwnerPath, Time
from jobtree.api.kinds.plan import Draw, Lottery, PoolOwner
from jobtree.api.kinds.reservation import IntendedSlice, ReservationStatus
from jobtree.world.plan import Closure, PromiseUpdate
from tests.check.scene import T0, Scene, ago
from tests.support.documents import envelope
from tests.support.times import moment


def simple() -> Scene:
    """r of 4 starts on one node; w of 16 waits. Domains A and B of two nodes of 8; org:a has 8 GPUs."""
    scene = Scene().domain("A", 8, 8).domain("B", 8, 8).budget("org:a", envelope(8))
    return scene.run("r", 4).run("w", 16).starts("r", "a01#0-3")


def array() -> Scene:
    """Of 5 indices of 4 GPUs 0 and 4 have Completed, 1 runs, and 2 starts: no more than 2 run at once."""
    scene = Scene().domain("A", 8, 8).budget("org:a", envelope(16))
    scene.run("sweep", 4, array={"count": 5, "maxParallel": 2})
    told = [{"indices": "0,4", "phase": "Completed"}, {"indices": "1", "phase": "Running", "started": moment("-1h")}]
    scene.edit("Run", "sweep", {"status": {"phase": "Running", "indices": told}})
    return scene.holds("sweep-1", "a01#0-3", name="sweep-1-0").starts("sweep-2", "a01#4-7")


def family() -> Scene:
    """A group of 4 over two nodes, three GPUs paid by its owner and one by its parent."""
    scene = Scene().domain("A", 2, 2, 8).domain("B", 8)
    scene.budget("org", envelope(8), parents=[]).budget("org:a", envelope(3)).budget("org:b", envelope(8))
    scene.budget("corp", envelope(8)).run("r", 4)
    scene.starts("r", "a01#0-1").starts("r", "a02#0")
    return scene.starts("r", "a02#1", payer="org/gpus", funding="shared")


def gang() -> Scene:
    """Two groups of 8 in pods of 4 with a spare each, together in domain A; org:a pays 16 and two half pods' spares."""
    scene = Scene().domain("A", 8, 8, 8).domain("B", 8, 8, 8).budget("org:a", envelope(20))
    scene.run(
        "r",
        16,
        resources={"gpusPerPod": 4},
        locality={"groupGPUs": 8, "allowCrossGroupSpread": False},
        spares=1,
    )
    scene.starts("r", "a01#0-7", group=0).starts("r", "a03#0-3", group=0, role="Spare")
    return scene.starts("r", "a02#0-7", group=1).starts("r", "a03#4-7", group=1, role="Spare")


def loan() -> Scene:
    """8 GPUs: 4 of its own, 4 lent by org:l, which is no relative; 1 of org:l's 5 is out on loan already."""
    scene = Scene().domain("A", 8, 8)
    lending = {"allow": True, "to": ["team:*"], "maxConcurrency": 5}
    scene.budget("team:a", envelope(4), parents=[]).budget("org:l", envelope(6, lending=lending))
    funding = {"allowBorrow": True, "maxBorrowGPUs": 4, "sponsors": ["org:l"]}
    scene.run("r", 8, owner="team:a", funding=funding).run("o", 1, owner="team:b", funding=funding, created="-3h")
    scene.holds("o", "a02#0", payer="org-l/gpus", funding="borrowed", name="o-0")
    scene.starts("r", "a01#0-3", payer="team-a/gpus")
    return scene.starts("r", "a01#4-7", payer="org-l/gpus", funding="borrowed")


def caps() -> Scene:
    """Two envelopes of org:a:x under an aggregate cap of 10 and a subtree bound of 12 of org:a; all just hold."""
    scene = Scene().domain("A", 8, 8)
    scene.budget("org:a", envelope(12, scope="subtree", sharing="none"))
    scene.budget(
        "org:a:x",
        envelope(8, "one", sharing="none"),
        envelope(8, "two", sharing="none"),
        aggregateCaps=[{"name": "both", "envelopes": ["one", "two"], "maxConcurrency": 10}],
    )
    scene.run("own", 2, created="-3h").run("r", 10, owner="org:a:x")
    scene.holds("own", "a02#6-7", payer="org-a/gpus", name="own-0")
    scene.starts("r", "a01#0-7", payer="org-a-x/one")
    return scene.starts("r", "a02#0-1", payer="org-a-x/two")


def hours() -> Scene:
    """org:a has 100 GPU-hours, 46 spent; 4 GPUs have 4 h left, 2 GPUs start for a day at most: 46 + 16 + 38 = 100."""
    scene = Scene().domain("A", 8, 8).budget("org:a", envelope(8, maxGPUHours=100))
    scene.run("done", 4, created="-12h").edit("Run", "done", {"status": {"phase": "Completed"}})
    scene.edit("Run", "done", {"status": {"conditions": [{"type": "Completed", "status": "True"}]}})
    scene.run("v", 4, runtime={"timeLimit": "5h"}, created="-3h").run("r", 2, runtime={"timeLimit": "19h"})
    scene.had("done", "a02#0-3", ago("11h"), ago("30m"))
    scene.holds("v", "a01#0-3", name="v-0")
    return scene.starts("r", "a02#0-1")


def credits_() -> Scene:
    """100 credits at 2 a GPU-hour: 4 GPUs for 12.5 hours."""
    scene = Scene().domain("A", 8).budget("org:a", envelope(8, maxCredits=100))
    scene.policy(creditRates={"H100-80GB": 2}).run("r", 4, runtime={"timeLimit": "12h30m"})
    return scene.starts("r", "a01#0-3").relabel(0, funding=(Scene.entry("owned", scene.at, rate=2),))


def malleable() -> Scene:
    """m runs on 16 to 32 GPUs by 8 and starts at 24; g runs on 8 of 8 to 24 and grows by a step."""
    scene = Scene().domain("A", 8, 8, 8).domain("B", 8, 8).budget("org:a", envelope(40))
    widths = {"minTotalGPUs": 16, "maxTotalGPUs": 32, "stepGPUs": 8}
    scene.run("m", 24, malleable=widths, locality={"groupGPUs": 8})
    scene.run("g", 8, malleable={"minTotalGPUs": 8, "maxTotalGPUs": 24, "stepGPUs": 8}, created="-3h")
    scene.holds("g", "b01#0-7", name="g-0")
    for group in range(3):
        scene.starts("m", f"a0{group + 1}#0-7", group=group)
    return scene.starts("g", "b02#0-7", group=1, reason="Grow")


def endings() -> Scene:
    """Five runs end, each for its own reason, one is shrunk by its owner, and r takes the slots."""
    scene = Scene().domain("A", 8, 8, 8).budget("org:a", envelope(24))
    scene.run("limited", 2, runtime={"timeLimit": "30m"}, created="-3h").holds("limited", "a01#0-1", name="limited-0")
    scene.run("done", 2, created="-3h").holds("done", "a01#2-3", name="done-0")
    scene.edit(
        "Run", "done", {"metadata": {"annotations": {"rq.davidlangworthy.io/completed": "2025-12-31T23:50:00Z"}}}
    )
    scene.run("gone", 2, created="-3h").holds("gone", "a01#4-5", name="gone-0").remove("Run", "gone")
    scene.run("cancelled", 2, created="-3h", state="Cancelled").holds("cancelled", "a01#6-7", name="cancelled-0")
    scene.run("suspended", 2, created="-3h", state="Suspended").holds("suspended", "a02#0-1", name="suspended-0")
    widths = {"minTotalGPUs": 2, "maxTotalGPUs": 4, "stepGPUs": 2, "desiredTotalGPUs": 2}
    scene.run("shrunk", 2, created="-3h", malleable=widths)
    scene.holds("shrunk", "a02#2-3", name="shrunk-0").holds("shrunk", "a02#4-5", name="shrunk-1", group=1)
    scene.closes("limited-0", "TimeLimit", ago("30m")).closes("done-0", "Completed", ago("10m"))
    scene.closes("gone-0", "RunDeleted").closes("cancelled-0", "Cancelled").closes("suspended-0", "Suspended")
    scene.closes("shrunk-1", "Shrink")
    return scene.run("r", 8).starts("r", "a01#0-7")


def failure() -> Scene:
    """a01 is gone: s swaps its lost group onto its spare on a02, where an opportunistic run lay; f fails, q waits."""
    scene = Scene().domain("A", 8, 8, 8).budget("org:a", envelope(16))
    scene.run("s", 4, resources={"gpusPerPod": 4}, spares=1, created="-3h")
    scene.run("o", 4, funding={"opportunistic": True}, created="-3h")
    scene.run("f", 2, created="-3h").run("q", 2, runtime={"checkpoint": "10m"}, created="-3h")
    scene.holds("s", "a01#0-3", name="s-0").holds("s", "a02#0-3", role="Spare", name="s-1")
    scene.holds("o", "a02#0-3", payer=None, name="o-0")
    scene.holds("f", "a01#4-5", name="f-0").holds("q", "a01#6-7", name="q-0")
    scene.remove("Node", "a01")
    scene.closes("s-0", "NodeFailure").closes("s-1", "Swap").closes("o-0", "ReclaimedBySpare")
    scene.closes("f-0", "NodeFailure").closes("q-0", "NodeFailure")
    return scene.starts("s", "a02#0-3", reason="Swap", name="s-2")


def classes() -> Scene:
    """The cap of org:a was lowered to 6: own (4) and half of child's claims hold; near's start recalls far's share."""
    scene = Scene().domain("A", 8, 8).domain("B", 8)
    scene.budget("org:a", envelope(6)).budget("org:a:x", envelope(1, sharing="none"))
    scene.run("near", 2).run("own", 2, created="-4h")
    scene.run("kid", 2, owner="org:a:x", created="-4h").run("cousin", 2, owner="org:b:y", created="-4h")
    scene.budget("org", envelope(1, sharing="none"), parents=[])
    scene.holds("own", "a01#0-1", name="own-0", start=ago("2h"))
    scene.holds("kid", "a01#2-3", name="kid-0", funding="shared")
    scene.holds("cousin", "a01#4-5", name="cousin-0", funding="shared", start=ago("3h"))
    return scene.turns("cousin-0", "unfunded").starts("near", "a02#0-1")


def recall() -> Scene:
    """own's 3 of org:a's 8 recall the cousin's 2, and the child keeps 4; another child's run has the 1 that is left."""
    scene = Scene().domain("A", 8, 8).budget("org:a", envelope(8, lending={"allow": True}))
    scene.budget("org:a:x", envelope(1, sharing="none")).budget("team", envelope(1, sharing="none"), parents=[])
    scene.budget("org", envelope(1, sharing="none"), parents=[])
    scene.run("kid", 4, owner="org:a:x", created="-4h").run("cousin", 2, owner="org:b:y", created="-4h")
    scene.run("own", 3).run("niece", 1, owner="org:a:x")
    scene.holds("kid", "a01#0-3", name="kid-0", funding="shared", payer="org-a/gpus")
    scene.holds("cousin", "a01#4-5", name="cousin-0", funding="shared", payer="org-a/gpus", start=ago("3h"))
    scene.turns("cousin-0", "unfunded").starts("niece", "a02#0", payer="org-a/gpus", funding="shared")
    return scene.starts("own", "a02#2-4", payer="org-a/gpus")


def opportunistic() -> Scene:
    """o runs unfunded and gives way to r; n starts unfunded by its own choice, on p's spare."""
    scene = Scene().domain("A", 8, 8).budget("org:a", envelope(12))
    scene.run("o", 4, owner="nobody", funding={"opportunistic": True}, created="-3h")
    scene.run("p", 4, spares=1, created="-3h").run("r", 6)
    scene.run("n", 1, owner="nobody", funding={"opportunistic": True})
    scene.holds("o", "a01#0-3", payer=None, name="o-0")
    scene.holds("p", "a02#0-3", name="p-0").holds("p", "a02#4", role="Spare", name="p-1")
    scene.closes("o-0", "ReclaimUnfunded")
    return scene.starts("r", "a01#0-5").starts("n", "a02#4", payer=None)


def bound() -> Scene:
    """A tree with a quota of 6, a co-start gang of two in it, of which one follows a Completed run."""
    scene = Scene().domain("A", 8, 8).budget("org:a", envelope(16), namespaces=["default"])
    scene.run("first", 2, created="-12h").edit("Run", "first", {"status": {"phase": "Completed"}})
    scene.edit("Run", "first", {"status": {"conditions": [{"type": "Completed", "status": "True"}]}})
    scene.run("root", 2, quota={"maxGPUs": 6, "maxGPUHours": 146}, created="-3h").holds(
        "root", "a01#0-1", name="root-0"
    )
    pair: dict[str, Any] = {"gang": {"name": "pair", "size": 2}, "parent": "root"}
    scene.run("one", 2, follow={"after": ["first"]}, **pair).run("two", 2, **pair)
    return scene.starts("one", "a01#2-3").starts("two", "a01#4-5")


def promised() -> Scene:
    """r holds node a01 for another hour; w of 16 is promised both nodes from then on, and stands so."""
    scene = Scene().domain("A", 8, 8).budget("org:a", envelope(16))
    scene.run("r", 8, runtime={"timeLimit": "2h"}).run("w", 16).holds("r", "a01#0-7", start=ago("1h"))
    where = {"nodes": ["a01", "a02"]}
    return scene.add({
        "apiVersion": "rq.davidlangworthy.io/v1",
        "kind": "Reservation",
        "metadata": {"name": "w-1", "namespace": "default", "uid": "uid-w-1"},
        "spec": {"runRef": {"name": "w"}, "intendedSlice": where, "earliestStart": moment("+1h")},
        "status": {"state": "Pending", "reason": "Waiting", "earliestStart": moment("+1h"), "intendedSlice": where},
    })  # fmt: skip


def drawn() -> Scene:
    """v holds the only node, w is promised it by now: the lottery took v, and w starts."""
    scene = Scene().domain("A", 8).budget("org:v", envelope(8)).budget("org:w", envelope(8))
    scene.run("v", 8, owner="org:v", created="-30h", runtime={"checkpoint": "10m"}).run("w", 8, owner="org:w")
    scene.holds("v", "a01#0-7", start=ago("24h"), payer="org-v/gpus", name="v-0")
    where = {"nodes": ["a01"]}
    scene.add({
        "apiVersion": "rq.davidlangworthy.io/v1",
        "kind": "Reservation",
        "metadata": {"name": "w-1", "namespace": "default", "uid": "uid-w-1"},
        "spec": {"runRef": {"name": "w"}, "intendedSlice": where, "earliestStart": moment("+0s")},
        "status": {"state": "Pending", "reason": "Waiting", "earliestStart": moment("+0s"), "intendedSlice": where},
    })  # fmt: skip
    scene.closures.append(
        Closure(namespace="default", name="v-0", ended=T0, reason="Lottery", made_room_for="default/w-1", draw=0)
    )
    scene.then(lambda plan: msgspec.structs.replace(plan, lottery=_draw(), promises=[_kept()]))
    return scene.starts("w", "a01#0-7", payer="org-w/gpus")


def _draw() -> Lottery:
    """The draw of v for w-1 with a secret."""
    secret = "5f" * 32
    return Lottery(
        position=1,
        secret=secret,
        draws=(
            Draw(
                reservation="default/w-1",
                uid="uid-w-1",
                earliest_start=Time(T0),
                seed=hashlib.sha256(f"{secret}\nuid-w-1\n{Time(T0)}".encode()).hexdigest(),
                pools=((PoolOwner(owner=OwnerPath("org:v"), tokens=("default/v#0",)),),),
                picks=("default/v#0",),
            ),
        ),
    )


def _kept() -> PromiseUpdate:
    status = ReservationStatus(
        state="Activated", reason="Started", earliest_start=Time(T0), intended_slice=IntendedSlice(nodes=("a01",))
    )
    return PromiseUpdate(namespace="default", name="w-1", status=status)


SCENES: dict[str, Callable[[], Scene]] = {
    "simple": simple,
    "array": array,
    "family": family,
    "gang": gang,
    "loan": loan,
    "caps": caps,
    "hours": hours,
    "credits": credits_,
    "malleable": malleable,
    "endings": endings,
    "failure": failure,
    "classes": classes,
    "recall": recall,
    "opportunistic": opportunistic,
    "bound": bound,
    "promised": promised,
    "drawn": drawn,
}
