"""Classes and segments (spec §3.5, §3.6): every way to spoil them is caught under its own name."""

import pytest

from tests.check.scene import Scene, ago
from tests.check.spoils import Spoil, below, growing, pruned

SPOILS = [
    Spoil(
        "classes",
        "a recalled claim that stays funded",
        lambda s: s.unturned(),
        "class-derived classes-partition-width",
    ),
    Spoil(
        "classes",
        "a claim that loses its class for nothing",
        lambda s: s.turns("own-0", "unfunded"),
        "class-derived classes-partition-width",
    ),
    Spoil(
        "classes",
        "a class that is another's",
        lambda s: s.turns("kid-0", "owned"),
        "class-derived classes-partition-width",
    ),
    Spoil("classes", "a segment that repeats the last", lambda s: s.turns("kid-0", "shared"), "segments-append-only"),
    Spoil(
        "classes",
        "a segment on top of the last",
        lambda s: s.unturned().turns("cousin-0", "unfunded", since=ago("3h")),
        "segments-append-only",
    ),
    Spoil(
        "classes",
        "a segment in the future",
        lambda s: s.unturned().turns("cousin-0", "unfunded", since=s.at + 1),
        "segments-append-only",
    ),
    Spoil("classes", "a segment of no lease", lambda s: s.turns("nobody-0", "unfunded"), "segments-append-only"),
    Spoil("hours", "a segment of a closed lease", lambda s: s.turns("done-0", "unfunded"), "segments-append-only"),
    Spoil(
        "classes",
        "a change of class of what a quarantined Budget pays",
        lambda s: s.quarantine("Budget", "org-a").drop(),
        "class-derived classes-partition-width",
    ),
    Spoil(
        "simple",
        "a start of another class",
        lambda s: s.relabel(0, funding=(Scene.entry("shared", s.at),)),
        "class-derived classes-partition-width",
    ),
    Spoil(
        "simple",
        "a ledger older than its lease",
        lambda s: s.relabel(0, funding=(Scene.entry("owned", s.at - 1),)),
        "class-derived",
    ),
    Spoil(
        "simple",
        "a ledger that has ended",
        lambda s: s.relabel(0, funding=(Scene.entry("owned", s.at, s.at + 9),)),
        "class-derived",
    ),
    Spoil(
        "simple",
        "a start without a ledger",
        lambda s: s.relabel(0, funding=()),
        "class-derived classes-partition-width",
    ),
    Spoil(
        "simple",
        "a credit rate that there is not",
        lambda s: s.relabel(0, funding=(Scene.entry("owned", s.at, rate=1),)),
        "class-derived",
    ),
    Spoil(
        "credits",
        "a credit rate left out",
        lambda s: s.relabel(0, funding=(Scene.entry("owned", s.at),)),
        "class-derived",
    ),
    Spoil(
        "hours",
        "a credit rate that has come",
        lambda s: s.policy(creditRates={"H100-80GB": 2}).relabel(0, funding=(Scene.entry("owned", s.at, rate=2),)),
        "class-derived",
    ),
    Spoil("hours", "a lease that goes too early", lambda s: pruned(s, "done-0", retention="31m"), "prune-due"),
    Spoil("hours", "an open lease that goes", lambda s: pruned(s, "done-0", "v-0"), "prune-due"),
    Spoil("hours", "a lease that goes and was never there", lambda s: pruned(s, "done-0", "nobody-0"), "prune-due"),
    Spoil("hours", "a lease that goes twice", lambda s: pruned(s, "done-0", "done-0"), "unique-names balances-whole"),
    Spoil(
        "hours",
        "a lease that goes while nobody can read the balances",
        lambda s: pruned(s, "done-0").set_aside("ConfigMap", "jobtree-system", "jobtree-balances"),
        "prune-due",
    ),
    Spoil(
        "hours",
        "a lease that goes while nobody can read a further part of the balances",
        lambda s: pruned(s, "done-0").set_aside("ConfigMap", "jobtree-system", "jobtree-balances-12"),
        "prune-due",
    ),
    Spoil(
        "hours",
        "a lease that goes and counts in the quota of a tree",
        lambda s: pruned(s, "done-0").run("top", 1, quota={"maxGPUHours": 99}).edit("Run", "done", below("top")),
        "prune-due",
    ),
    Spoil(
        "hours",
        "a lease that goes and tells a run that follows how its own ended",
        lambda s: pruned(s, "done-0").remove("Run", "done").run("next", 1, follow={"after": ["done"]}),
        "prune-due",
    ),
    Spoil("hours", "a lease that goes for nothing", lambda s: pruned(s, "done-0", spans=()), "balances-whole"),
    Spoil("hours", "balances that grow for nothing", pruned, "balances-whole"),
    Spoil(
        "hours",
        "balances that grow by a second less",
        growing(spans=((ago("11h") + 1, ago("30m"), 4000),)),
        "balances-whole",
    ),
    Spoil(
        "hours", "balances that grow by a GPU more", growing(spans=((ago("11h"), ago("30m"), 5000),)), "balances-whole"
    ),
    Spoil(
        "hours",
        "balances that grow by the same at another time",
        growing(spans=((ago("10h"), ago("30m") + 3600, 4000),)),
        "balances-whole",
    ),
    Spoil("hours", "balances that grow by what another envelope paid", growing(envelope="other"), "balances-whole"),
    Spoil(
        "hours", "balances that grow by what another run's owner was paid", growing(run_owner="org:b"), "balances-whole"
    ),
    Spoil("hours", "balances that grow by what was shared", growing(funding_class="shared"), "balances-whole"),
    Spoil("hours", "balances that grow by what was lent", growing(lent=True), "balances-whole"),
    Spoil("hours", "balances that grow by what spares cost", growing(role="Spare"), "balances-whole"),
    Spoil(
        "hours",
        "balances that grow by what was paid in another place",
        growing(place='{"region":"us-east"}'),
        "balances-whole",
    ),
    Spoil("hours", "balances that grow by what was paid nobody knows where", growing(place=""), "balances-whole"),
    Spoil("hours", "balances that grow by what cost credits", growing(rate_milli=1), "balances-whole"),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
