"""What each report says of a small lake, in whole values."""

from pathlib import Path
from typing import Any

import pytest

from jobtree.world.plan import Price, Prices, Short, Wait
from tests.reports.worlds import lease, make, record
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment, unix

FLAVOR = "H100-80GB"
A, B = "org:a", "org:b"


def gpus(node: str, first: int, count: int) -> list[str]:
    return [f"{node}#{ordinal}" for ordinal in range(first, first + count)]


def run(name: str, total: int, owner: str, created: str, **metadata: Any) -> Document:
    made = doc.run(name, total, owner)
    return doc.merge(made, {"metadata": {"uid": name, "creationTimestamp": moment(created), **metadata}})


def rows(
    lake: Path, report: str, *columns: str, since: str | None = None, until: str | None = None, **given: str
) -> list[tuple[Any, ...]]:
    begin, end = (None if each is None else unix(each) for each in (since, until))
    made = make(lake, report, begin, end, given)
    assert [outcome.apart for outcome in made.outcomes] == [""] * len(made.outcomes)
    return [tuple(row[column] for column in columns) for row in made.rows.to_pylist()]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes in two domains, an hour of two owners: own work, a loan that runs out of money, a spare, a wait."""
    lake = tmp_path_factory.mktemp("small") / "lake"
    base = [
        doc.policy(spares={"discount": 0.5}, creditRates={FLAVOR: 2}),
        doc.node("a01", domain="A"),
        doc.node("b01", 4, domain="B"),
        doc.foreign_pod("p", on="b01", gpus=1),
        doc.budget(A, [doc.envelope(8, maxGPUHours=48, start=moment("-12h"), end=moment("+36h"))]),
        doc.budget(B, [doc.envelope(8, lending={"allow": True})]),
        run("train", 4, A, "-30m"),
        run("loan", 2, A, "-90m"),
        run("next", 8, B, "+0s"),
    ]
    spare = lease("train-1", "train", gpus("a01", 4, 1), "org-a/gpus", ("owned", "+0s", None), owner=A, role="Spare")
    short = Short(rule="concurrency", subject="org-b/gpus", amount=2, unit="GPU")
    room = Short(rule="capacity", subject=FLAVOR, amount=4, unit="GPU")
    waits = [
        Wait(namespace="default", name="next", reason="BudgetShort", message="one", shorts=[short]),
        Wait(namespace="default", name="next", reason="CapacityShort", message="two", shorts=[room]),
    ]

    def held(until: str | None, reason: str = "Completed") -> list[Document]:
        return [
            lease("train-0", "train", gpus("a01", 0, 4), "org-a/gpus", ("owned", "+0s", until), owner=A, rate=2),
            lease(
                "loan-0", "loan", gpus("b01", 0, 2), "org-b/gpus", ("borrowed", "+0s", "+20m"),
                ("unfunded", "+20m", until), owner=A, payer_owner=B, rate=2, reason=reason,
            ),
        ]  # fmt: skip

    record(lake, "+0s", [*base, spare, *held(None)], waits[:1])
    record(lake, "+30m", [*base, spare, *held(None)], waits[1:])
    base[-2] = doc.merge(base[-2], {"spec": {"state": "Cancelled"}})  # the loan's run, so that it does not wait again
    record(lake, "+1h", [*base, spare, *held("+50m", reason="TimeLimit")])
    return lake


def test_usage_tells_the_pace_and_when_it_reaches_the_cap(lake: Path) -> None:
    columns = ("envelope", "owner", "owned_gpus", "spare_gpus", "gpu_hours", "gpu_hours_left", "gpu_hours_a_day")
    # 4 GPUs for 50 min and a spare at half for 1 h; the loan for 20 min. The pace is that of this hour.
    own, lent = 4 * 5 / 6 + 0.5, 2 / 3
    found = rows(lake, "usage", *columns, "out_of_hours")

    assert [found[0][:4], found[1][:4]] == [("gpus", A, 0, 1), ("gpus", B, 0, 0)]
    assert found[0][4:7] == pytest.approx((own, 48 - own, own * 24))
    assert found[1][4:] == (pytest.approx(lent), None, pytest.approx(lent * 24), None)
    assert unix(found[0][7]) - unix("+1h") == pytest.approx((48 - own) / own * 3600, abs=1)


def test_a_cap_that_lasts_beyond_its_window_does_not_run_out(lake: Path) -> None:
    slow = rows(lake, "usage", "out_of_hours", until="+1m")

    assert slow == [("2026-01-01T10:40:00Z",), (None,)]


def test_burndown_tells_what_is_left_after_each_step(lake: Path) -> None:
    found = rows(lake, "burndown", "until", "envelope", "gpu_hours_spent", "gpu_hours_left", since="+0s")

    own = [row for row in found if row[1] == "org-a/gpus"]
    assert own[0] == (moment("+1m"), "org-a/gpus", pytest.approx(4.5 / 60), pytest.approx(48 - 4.5 / 60))
    assert own[-1] == (moment("+1h"), "org-a/gpus", pytest.approx(0.5 / 60), pytest.approx(48 - 4 * 5 / 6 - 0.5))
    assert len(own) == 60


def test_leases_are_told_in_slurms_words(lake: Path) -> None:
    columns = ("lease", "run_owner", "payer", "class", "gpus", "started", "ended", "elapsed", "state", "reason")

    assert rows(lake, "leases", *columns, "milli_gpu_seconds") == [
        ("loan-0", A, "org-b/gpus", "unfunded", 2, moment("+0s"), moment("+50m"), "00:50:00", "TIMEOUT", "TimeLimit",
         2000 * 1200),
        ("train-0", A, "org-a/gpus", "owned", 4, moment("+0s"), moment("+50m"), "00:50:00", "COMPLETED", "Completed",
         4000 * 3000),
        ("train-1", A, "org-a/gpus", "owned", 1, moment("+0s"), None, "01:00:00", "RUNNING", "Start", 500 * 3600),
    ]  # fmt: skip


def test_a_lease_that_ended_later_was_running(lake: Path) -> None:
    assert rows(lake, "leases", "lease", "ended", "state", until="+40m")[:2] == [
        ("loan-0", None, "RUNNING"),
        ("train-0", None, "RUNNING"),
    ]


def test_ownership_tells_whose_money_it_was(lake: Path) -> None:
    assert rows(lake, "ownership", "run_owner", "class", "paid_by", "gpu_seconds") == [
        (A, "owned", A, 4 * 3000 + 3600),
        (A, "unfunded", None, 2 * 1800),
        (A, "borrowed", B, 2 * 1200),
    ]


def test_utilisation_and_fragmentation_of_every_domain(lake: Path) -> None:
    columns = ("domain", "gpus", "held", "standby", "foreign", "free", "broken", "utilisation_percent")

    # In the step of a minute that begins at +49m all is held; in that of +55m only the spare and the foreign pod.
    found = {row[0]: row[1:] for row in rows(lake, "utilisation", "time", *columns, since="+49m", until="+50m")}
    assert found == {moment("+49m"): ("us-west/c1/B", 4.0, 2.0, 0.0, 1.0, 1.0, 1.0, 50.0)}
    assert rows(lake, "utilisation", *columns, since="+55m", until="+56m") == [
        ("us-west/c1/A", 8.0, 0.0, 1.0, 0.0, 7.0, 7.0, 0.0),
        ("us-west/c1/B", 4.0, 0.0, 0.0, 1.0, 3.0, 3.0, 0.0),
    ]


def test_waits_are_told_of_what_started_and_what_waits(lake: Path) -> None:
    columns = (
        "owner",
        "started",
        "started_gpus",
        "wait_seconds_p50",
        "wait_seconds_longest",
        "waiting",
        "waiting_gpus",
    )

    assert rows(lake, "waits", *columns) == [
        (A, 2, 6, 1800, 5400, 0, 0),
        (B, 0, 0, None, None, 1, 8),
    ]


def test_bottlenecks_tell_what_was_in_the_way_and_for_how_long(lake: Path) -> None:
    columns = ("bound", "subject", "runs", "gpu_seconds", "percent", "waiting_gpus")

    # Half an hour for money; then for room: 4 + 1 of the fleet's 12 GPUs are free, and 8 are asked for.
    assert rows(lake, "bottlenecks", *columns) == [
        ("concurrency", "org-b/gpus", 1, 8 * 1800, 50.0, None),
        ("flavor", FLAVOR, 1, 8 * 1800, 50.0, 8),
    ]


def test_as_many_free_as_asked_for_but_apart_is_fragmentation(tmp_path: Path) -> None:
    base = [doc.node("a01", domain="A"), doc.node("b01", domain="B"), run("next", 8, A, "+0s")]
    held = [
        lease(f"{node}-0", "r", gpus(node, 0, 4), None, ("unfunded", "+0s", None), owner=A) for node in ("a01", "b01")
    ]
    short = Short(rule="capacity", subject=FLAVOR, amount=4, unit="GPU")
    wait = Wait(namespace="default", name="next", reason="CapacityShort", message="", shorts=[short])
    for when in ("+0s", "+1h"):
        record(tmp_path / "lake", when, [*base, *held], [wait])

    found = rows(tmp_path / "lake", "bottlenecks", "bound", "subject", "gpu_hours")
    assert found == [("fragmentation", FLAVOR, 8.0)]


def test_bounds_have_the_prices_that_plans_gave_them(tmp_path: Path) -> None:
    def prices(envelope: int, room: int) -> Prices:
        caps = Price(
            rule="concurrency", subjects=("org-b/gpus", "org-c/gpus"), unit="GPU", value=envelope, milli_gpus=500
        )
        hours = Price(rule="hours", subjects=("org-a/gpus",), unit="GPU-hour", value=room // 24, milli_gpus=42)
        dear, cheap = (
            Price(
                rule="capacity", subjects=(FLAVOR,), unit="GPU", value=room // part, milli_gpus=1000, domains=domains
            )
            for part, domains in ((1, ("A", "B")), (2, ("C",)))
        )  # fmt: skip
        return Prices(relaxed=10**6, weight=86400, bounds=[caps, dear, cheap, hours])

    def wait(name: str, rule: str, subject: str) -> Wait:
        short = Short(rule=rule, subject=subject, amount=4, unit="GPU")
        return Wait(namespace="default", name=name, reason="", message="", shorts=[short])

    base = [doc.node("a01", domain="A"), *(run(name, 4, A, "+0s") for name in ("poor", "near", "big"))]
    waits = [
        wait("poor", "concurrency", "org-b/gpus"), wait("near", "capacity", "domain=B"), wait("big", "capacity", FLAVOR)
    ]  # fmt: skip
    record(tmp_path / "lake", "+0s", base, waits, prices(86400, 2 * 86400))
    record(tmp_path / "lake", "+1h", base, waits, prices(2 * 86400, 2 * 86400))
    record(tmp_path / "lake", "+4h", base, waits, None)

    columns = ("bound", "subject", "gpu_hours", "unit", "price", "admits_gpus", "price_now", "priced_hours")
    assert rows(tmp_path / "lake", "bottlenecks", *columns) == [
        ("domain", "domain=B", 16.0, "GPU", 2.0, 1.0, None, 4.0),
        ("fragmentation", FLAVOR, 16.0, "GPU", 2.0, 1.0, None, 4.0),
        ("concurrency", "org-b/gpus", 16.0, "GPU", 1.75, 0.5, None, 4.0),
        ("hours", "org-a/gpus", 0.0, "GPU-hour", 0.08, 0.04, None, 4.0),
    ]
    now = rows(tmp_path / "lake", "bottlenecks", "subject", "price", "price_now", until="+2h")
    assert [row for row in now if row[0] == "org-b/gpus"] == [("org-b/gpus", 1.5, 2.0)]


MANDATORY = {
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd",
    "ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity",
    "PricingUnit", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName",
}  # fmt: skip
"""Columns of feature level Mandatory in FOCUS 1.2."""


def test_focus_has_every_mandatory_column_and_its_products_are_right(lake: Path) -> None:
    made = make(lake, "focus", None, None, {"currency": "EUR", "credit_price": "1.5"})
    names = set(made.rows.column_names)
    found = made.rows.to_pylist()

    assert names >= MANDATORY
    assert all(name[0].isupper() or name.startswith("x_") for name in names)
    for row in found:
        assert [name for name in MANDATORY - {"ChargeClass"} if row[name] is None] == []
        assert row["ChargeClass"] is None  # no row corrects an earlier one
        assert row["PricingQuantity"] * row["ListUnitPrice"] == pytest.approx(row["ListCost"])
        assert row["PricingQuantity"] * row["ContractedUnitPrice"] == pytest.approx(row["ContractedCost"])
        assert row["BilledCost"] == row["PricingCurrencyEffectiveCost"] * 1.5
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
    told = [(row["BillingAccountId"], row["SubAccountId"], row["BillingCurrency"], row["BilledCost"]) for row in found]
    assert told == [
        (A, A, "EUR", pytest.approx(4 * 5 / 6 * 2 * 1.5)),
        (A, A, "EUR", 0.0),  # the spare's lease has no rate
        (B, A, "EUR", pytest.approx(2 / 3 * 2 * 1.5)),
    ]


def test_focus_bills_each_month_by_itself(tmp_path: Path) -> None:
    held = lease("l", "r", gpus("a01", 0, 1), "org-a/gpus", ("owned", "-10s", "+7s"), owner=A)
    record(tmp_path / "lake", "+1h", [doc.node("a01"), doc.budget(A, [doc.envelope(8)]), held])

    columns = ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")
    assert rows(tmp_path / "lake", "focus", *columns, currency="USD", credit_price="1") == [
        ("2025-12-01T00:00:00Z", "2026-01-01T00:00:00Z", "2025-12-31T23:59:50Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z"),
    ]
