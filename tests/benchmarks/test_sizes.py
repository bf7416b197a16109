"""The condensed distribution of jobs."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from benchmarks import sizes

UNIT = st.floats(0, 1, exclude_max=True)


def test_the_stored_distribution_is_of_the_whole_trace() -> None:
    assert {row.gpus: row.jobs for row in sizes.read().rows} == {
        1: 76627, 2: 1818, 4: 1870, 8: 1643, 12: 7, 16: 199, 24: 7, 32: 67, 64: 6, 128: 3,
    }  # fmt: skip


def test_condensed_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text("# from somewhere\n" + sizes.condense([(8, 3600), (1, 100), (1, 300), (0, 50), (1, 0)]))

    assert sizes.read(path) == sizes.Sizes(
        (sizes.Size(1, 2, 0, (100,) * 5 + (300,) * 16), sizes.Size(8, 1, 8, (3600,) * 21))
    )


@given(UNIT, UNIT)
def test_draws_stay_within_what_was_seen(u: float, v: float) -> None:
    gpus, seconds = sizes.read().draw(u, v)

    (row,) = (row for row in sizes.read().rows if row.gpus == gpus)
    assert max(1, row.seconds[0]) <= seconds <= row.seconds[-1]


def test_longer_quantiles_are_longer_jobs() -> None:
    durations = [sizes.read().draw(0.9, v / 10)[1] for v in range(10)]

    assert durations == sorted(durations)
