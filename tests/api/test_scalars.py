"""Durations, times, owners and quantities: what is read, what is printed, and that the two agree."""

from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api import Duration, OwnerPath, Time
from jobtree.api.kinds.base import json_name
from jobtree.api.values.errors import Unreadable, show
from jobtree.api.values.scalars import (
    DAY,
    HOUR,
    MAX_DURATION,
    Cpu,
    Memory,
    dec_hook,
    enc_hook,
    exact,
    milli_gpu_seconds,
    parse_count,
    quantity,
)

durations = st.integers(0, MAX_DURATION).map(Duration)
times = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30))  # noqa: DTZ001 UTC is added below
offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
owners = st.builds(
    "{}{}".format,
    st.sampled_from("aZ09"),
    st.lists(st.from_regex(r"[A-Za-z0-9_.@+-]{1,8}", fullmatch=True), min_size=1, max_size=5).map(":".join),
)


@pytest.mark.parametrize(
    ("text", "seconds", "canonical"),
    [
        ("10m", 600, "10m"),
        ("12h", 12 * HOUR, "12h"),
        ("1h30m", 5400, "1h30m"),
        ("2d", 2 * DAY, "48h"),
        ("72h", 3 * DAY, "72h"),
        ("168h", 7 * DAY, "7d"),
        ("14d", 14 * DAY, "14d"),
        ("129h50m", 467_400, "129h50m"),
        ("1d2h3m4s", 93_784, "26h3m4s"),
        ("90m", 5400, "1h30m"),
        ("0s", 0, "0s"),
        ("0h0m", 0, "0s"),
    ],
)
def test_durations(text: str, seconds: int, canonical: str) -> None:
    assert (Duration.parse(text), str(Duration.parse(text))) == (seconds, canonical)


@pytest.mark.parametrize(
    "text", ["", "10", "10 m", " 10m", "10m ", "-5m", "+5m", "1.5h", "5m1h", "5M", "h", "1w", "٣m", 600, None]
)
def test_what_is_no_duration(text: Any) -> None:
    with pytest.raises(Unreadable) as caught:
        Duration.parse(text)
    assert str(caught.value) == (f"{show(text)} is not a duration; allowed is a duration such as 10m, 12h, 1h30m or 2d")


@given(durations)
def test_a_printed_duration_is_read_back(duration: Duration) -> None:
    assert Duration.parse(str(duration)) == duration
    assert repr(duration) == f"Duration({int(duration)})"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2025-11-01T14:05:00Z", "2025-11-01T14:05:00Z"),
        ("2025-11-01T14:05Z", "2025-11-01T14:05:00Z"),
        ("2025-11-01T14:05:07+02:00", "2025-11-01T12:05:07Z"),
        ("2025-11-01T00:05-08:30", "2025-11-01T08:35:00Z"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
        ("0999-01-01T00:00:00Z", "0999-01-01T00:00:00Z"),
        (datetime(2025, 11, 1, 14, 5, tzinfo=UTC), "2025-11-01T14:05:00Z"),
        (datetime(2025, 11, 1, 14, 5), "2025-11-01T14:05:00Z"),  # noqa: DTZ001 as YAML readers make them
    ],
)
def test_times(text: Any, canonical: str) -> None:
    assert str(Time.parse(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2025-11-01",
        "2025-11-01T14:05:00",
        "2025-11-01T14:05:00.5Z",
        "2025-11-01 14:05:00Z",
        "14:05",
        "2025-11-01t14:05:00z",
        1761998700,
        None,
        date(2025, 11, 1),
        datetime(2025, 11, 1, 0, 0, 0, 5, tzinfo=UTC),
    ],
)
def test_what_is_no_time(text: Any) -> None:
    with pytest.raises(Unreadable, match=r"allowed is a time such as 2025-11-01T14:05:00Z$"):
        Time.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "2025-02-30T00:00:00Z", "2025-11-01T25:00:00Z", "2025-13-01T00:00Z", "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-00:01", "0001-01-01T00:00:00+00:01",
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    ],
)  # fmt: skip
def test_what_no_calendar_and_no_clock_has(text: str | datetime) -> None:
    with pytest.raises(Unreadable, match="a time that there is; allowed is"):
        Time.parse(text)


@given(times, offsets)
def test_a_time_is_the_same_moment_in_every_zone(moment: datetime, zone: timezone) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    time = Time.parse(moment.astimezone(zone).isoformat())
    assert int(time) == round(moment.timestamp())
    assert Time.parse(str(time)) == time


@given(owners)
def test_owners_are_read_as_they_are(path: str) -> None:
    owner = OwnerPath.parse(path)
    prefixes = [path.rsplit(":", cut)[0] for cut in range(1, path.count(":") + 1)]
    assert (owner, list(owner.ancestors())) == (path, prefixes)


@pytest.mark.parametrize(
    "path", ["", ":", "org:", ":org", "a::b", "a b", "a:\tb", "a:*", "a/b", "a\n", "ä", "x" * 254, 3, None]
)
def test_what_is_no_owner(path: Any) -> None:
    with pytest.raises(Unreadable, match="is not an owner; allowed is a colon path such as org:ai:rai:sys"):
        OwnerPath.parse(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        (40, 40),
        (0.5, Fraction(1, 2)),
        ("500m", Fraction(1, 2)),
        ("2Gi", 2**31),
        ("1.5Ki", 1536),
        ("3k", 3000),
        ("1e3", 1000),
        ("12E2", 1200),
        ("1E", 10**18),
        ("100n", Fraction(1, 10**7)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("0", 0),
    ],
)
def test_quantities(text: Any, value: Fraction) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize("text", ["", "four", "-1", "4 Gi", "4gi", "1e999", "0x10", True, None, [4]])
def test_what_is_no_quantity(text: Any) -> None:
    with pytest.raises(Unreadable, match="is not a quantity; allowed is a quantity such as 4, 500m or 2Gi"):
        quantity(text)


@pytest.mark.parametrize(
    ("scalar", "text"),
    [(Cpu.parse("4"), "4"), (Cpu.parse("1500m"), "1500m"), (Cpu.parse("100u"), "1m"), (Memory.parse("2048Mi"), "2Gi"),
     (Memory.parse("1k"), "1000"), (Memory.parse(0), "0"), (Memory.parse("100m"), "1")],
)  # fmt: skip
def test_cpu_and_memory_are_rounded_up_and_printed(scalar: Cpu | Memory, text: str) -> None:
    assert str(scalar) == text


def test_counts_are_whole() -> None:
    assert [parse_count("8"), parse_count(8), parse_count("1k")] == [8, 8, 1000]
    with pytest.raises(Unreadable, match=r'^"500m" is not whole; allowed is a whole number$'):
        parse_count("500m")


def test_decimals_are_what_was_written() -> None:
    assert exact(0.1) == Fraction(1, 10)
    assert [milli_gpu_seconds(hours) for hours in (0, 96, 0.1, 1.005)] == [0, 345_600_000, 360_000, 3_618_000]


def test_the_hooks_know_the_scalars_and_nothing_else() -> None:
    assert dec_hook(Duration, "10m") == Duration(600)
    assert enc_hook(Time.parse("2025-11-01T14:05Z")) == "2025-11-01T14:05:00Z"
    with pytest.raises(NotImplementedError, match=r"^complex is no scalar of the API$"):
        dec_hook(complex, 1)
    with pytest.raises(NotImplementedError, match=r"^complex is no scalar of the API$"):
        enc_hook(1j)


@pytest.mark.parametrize(
    ("attribute", "name"),
    [("max_gpu_hours", "maxGPUHours"), ("gpus_per_pod", "gpusPerPod"), ("gpu_type", "gpuType"), ("from_", "from"),
     ("total_gpus", "totalGPUs"), ("max_gpus_per_cycle", "maxGPUsPerCycle"), ("run_uid", "runUid"), ("p50", "p50")],
)  # fmt: skip
def test_json_names(attribute: str, name: str) -> None:
    assert json_name(attribute) == name
