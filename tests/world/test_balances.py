"""Balances keep every second of what was charged, and fit an object (spec §3.6)."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api import Refusal
from jobtree.world.memory import balances
from jobtree.world.memory.balances import (
    Account,
    Part,
    Span,
    Title,
    accounts_of,
    grown,
    merged,
    of,
    place_of,
    record,
    whole,
)
from jobtree.world.tables import rows
from policies.inputs.balances import read_balances
from tests.support.times import T0, unix

AT = unix(T0)
DAY = 86_400


def title(envelope: str = "gpus", **said: Any) -> Title:
    whole: dict[str, Any] = {
        "budget": "org-a", "owner": "org:a", "run_owner": "org:a", "flavor": "H100-80GB", "funding_class": "owned",
        "role": "Active", "lent": False, "place": '{"region":"us-west"}', "rate_milli": 0,
    }  # fmt: skip
    return Title(envelope=envelope, **(whole | said))


def account(*spans: Span, **said: Any) -> Account:
    return Account(**title(**said)._asdict(), spans=spans)


def charged(accounts: Sequence[Account], start: int) -> int:
    return sum(
        milli * (until - max(since, start))
        for each in accounts for since, until, milli in each.spans if until > start
    )  # fmt: skip


titles = st.builds(title, st.sampled_from("ab"), rate_milli=st.sampled_from([0, 1500]), lent=st.booleans())
spans = st.builds(
    lambda since, lasts, milli: (since, since + lasts, milli),
    st.integers(0, 40), st.integers(1, 20), st.integers(1, 3),
)  # fmt: skip
charges = st.lists(st.tuples(titles, spans), max_size=12)


@given(charges)
def test_accounts_are_the_sum_of_charges_in_every_second_and_canonical(found: list[tuple[Title, Span]]) -> None:
    accounts = accounts_of(found)
    assert [each.title for each in accounts] == sorted({whose for whose, _ in found})
    for each in accounts:
        mine = [span for whose, span in found if whose == each.title]
        for second in range(61):
            assert sum(m for since, until, m in each.spans if since <= second < until) == sum(
                m for since, until, m in mine if since <= second < until
            )
        for (_, until, milli), (since, _, following) in zip(each.spans, each.spans[1:], strict=False):
            assert until < since or (until == since and milli != following)


ends = st.none() | st.integers(-1, 62)


@given(st.lists(spans, max_size=5), ends, ends)
def test_what_was_charged_between_two_times_is_the_sum_of_its_seconds(
    found: list[Span], start: int | None, end: int | None
) -> None:
    table = rows.balances([account(*found, rate_milli=1500)])
    [balance], _ = read_balances(table, {})
    low, high = -1 if start is None else start, 62 if end is None else end
    total = sum(milli for second in range(low, high) for since, until, milli in found if since <= second < until)
    assert balance.charged(start, end) == (total, total * 1500)


@given(charges, charges)
def test_a_record_says_what_was_put_in(one: list[tuple[Title, Span]], other: list[tuple[Title, Span]]) -> None:
    together = merged(accounts_of(one), accounts_of(other), [])
    assert together == accounts_of([*one, *other])
    kept = Part(accounts=together, counted={("default", "r-0"): AT})
    assert of(record(kept)) == kept
    assert tuple(rows.accounts(rows.balances(together))) == together


@pytest.mark.parametrize("data", [{"a": "1"}, {"accounts": "[{}]"}, {"accounts.zlib": "AAAA"}, {"accounts.zlib": "é"}])
def test_a_record_that_cannot_be_read_says_what_follows(data: dict[str, str]) -> None:
    with pytest.raises(Refusal) as refusal:
        of(data)
    assert refusal.value.problem == ("its accounts cannot be read, so no closed lease is pruned; put back what it was")


def test_a_place_is_what_selectors_ask_of_a_node() -> None:
    assert place_of({"region": "east", "rack": "r1"}, ["region", "zone"]) == '{"region":"east","zone":null}'


def crowded() -> list[Account]:
    """A month in which what is paid for changes every five minutes, too unevenly to be compressed by much."""

    def spans(seed: int) -> list[Span]:
        begins = range(AT, AT + 31 * DAY, 300)
        return [(at, at + 1 + (at // 300 * 31 + seed) % 299, 1000 + at // 300 * 7919 % 8000) for at in begins]

    return [account(*spans(seed), envelope=f"e{seed}") for seed in range(3)]


def size(accounts: Sequence[Account]) -> int:
    return sum(map(len, record(Part(accounts=tuple(accounts))).values()))


@pytest.mark.slow
def test_what_does_not_fit_is_merged_by_days_and_nothing_is_refunded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balances, "MOST", 230_000)
    before, start = crowded(), AT + 3 * DAY + 12_345
    after = merged(before, [], [start])
    assert size(after) <= 230_000 < size(before)
    blurred = AT + 24 * DAY
    for moment in (start, *range(AT, blurred, DAY), *range(blurred, AT + 31 * DAY, 997)):
        assert charged(after, moment) == charged(before, moment)
    for moment in range(AT, blurred, 7001):
        since = max(moment // DAY * DAY, start if start <= moment else 0)
        assert charged(before, moment) <= charged(after, moment) <= charged(before, since)
    assert merged(after, [], [start]) == after


def test_months_and_years_are_merged_where_days_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    daily = account(*((AT + day * DAY, AT + day * DAY + 9, 1000 + day) for day in range(800)))
    monkeypatch.setattr(balances, "MOST", 4500)
    monthly = merged([daily], [], [])[0].spans
    assert len(monthly) == 25 + 90
    monkeypatch.setattr(balances, "MOST", 100)
    yearly = merged([daily], [], [])[0].spans
    ends = [unix(f"{year}-01-01T00:00:00Z") for year in (2027, 2028)] + [AT + 792 * DAY]
    assert [until for _, until, _ in yearly[:3]] == ends
    assert {charged([account(*spans)], AT) for spans in (monthly, yearly)} == {charged([daily], AT)}


ONLY_WHOLE = st.lists(st.lists(st.tuples(titles, spans), min_size=1, max_size=4), max_size=6)


@given(ONLY_WHOLE, st.integers(200, 900))
def test_what_fits_no_part_begins_another_and_nothing_is_lost(
    batches: list[list[tuple[Title, Span]]], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balances, "MOST", most)
        patch.setattr(balances, "_LADDER", ())
        parts: dict[int, Part] = {}
        for batch in batches:
            number, accounts = grown(parts, accounts_of(batch), [])
            assert number in {max(parts, default=0), len(parts)}  # all before the last stay as they are
            assert size(accounts) - len("{}") <= most or number not in parts
            parts[number] = Part(accounts=accounts)
    assert list(parts) == list(range(len(parts)))
    assert whole([*parts.values()]) == accounts_of([each for batch in batches for each in batch])


def test_a_part_is_made_coarser_before_another_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    daily = [account((AT + day * DAY, AT + day * DAY + 9, 1000 + day), rate_milli=day // 30) for day in range(800)]
    monkeypatch.setattr(balances, "MOST", 4000)
    parts: dict[int, Part] = {}
    for each in daily:
        number, accounts = grown(parts, [each], [AT + 40 * DAY])
        parts[number] = Part(accounts=accounts)

    assert [len(part.accounts) > 4000 // size(daily[:30]) for part in parts.values()] == [True, True]
    assert max(size(part.accounts) for part in parts.values()) <= 4000 + len("{}")
    for moment in (AT, AT + 40 * DAY):
        assert charged(whole([*parts.values()]), moment) == charged(daily, moment)


def test_names_of_parts() -> None:
    assert [balances.name_of(number) for number in (0, 1, 12)] == [
        "jobtree-balances", "jobtree-balances-1", "jobtree-balances-12"
    ]  # fmt: skip
    assert [balances.number_of("jobtree-system", balances.name_of(number)) for number in (0, 1, 12)] == [0, 1, 12]
    others = ("jobtree-balances-", "jobtree-balances-0", "jobtree-balances-01", "jobtree-balances-x", "jobtree-budgets")
    assert [balances.number_of("jobtree-system", name) for name in others] == [None] * 5
    assert balances.number_of("default", "jobtree-balances") is None


def test_a_part_that_is_gone_is_missed_by_name() -> None:
    words = "what it says was charged counts nowhere; put it back"
    assert list(balances.gaps([0, 1, 2])) == list(balances.gaps([])) == []
    assert list(balances.gaps([5, 2, 0])) == [
        ("jobtree-balances-1", f"it is gone and jobtree-balances-2 is there: {words}"),
        ("jobtree-balances-3", f"it is gone and jobtree-balances-5 is there: {words}"),
    ]
    assert list(balances.gaps([10**30])) == [
        ("jobtree-balances", f"it is gone and jobtree-balances-{10**30} is there: {words}")
    ]
