"""Twenty jobs: when each scheduler starts and ends each of them; of FIFO worked out on paper, of the others as seen."""

from pathlib import Path

import pytest

from exporters.lake.lake import Lake
from simulator import study
from tests.simulate import streams

FIFO = {
    "j01": (0, 60), "j02": (0, 90), "j03": (60, 120), "j04": (60, 80), "j05": (60, 180), "j06": (90, 120),
    "j07": (180, 210), "j08": (210, 220), "j09": (210, 255), "j10": (210, 270), "j11": (210, 225), "j12": (220, 320),
    "j13": (255, 275), "j14": (270, 310), "j15": (275, 305), "j16": (310, 330), "j17": (310, 315), "j18": (315, 375),
    "j19": (330, 360), "j20": (330, 360),
}  # fmt: skip
EASY = {
    "j01": (0, 60), "j02": (0, 90), "j03": (60, 120), "j04": (6, 26), "j05": (7, 127), "j06": (90, 120),
    "j07": (165, 195), "j08": (26, 36), "j09": (120, 165), "j10": (195, 255), "j11": (50, 65), "j12": (65, 165),
    "j13": (120, 140), "j14": (195, 235), "j15": (235, 265), "j16": (265, 285), "j17": (120, 125), "j18": (255, 315),
    "j19": (127, 157), "j20": (285, 315),
}  # fmt: skip
CONSERVATIVE = {
    "j01": (0, 60), "j02": (0, 90), "j03": (60, 120), "j04": (6, 26), "j05": (7, 127), "j06": (90, 120),
    "j07": (127, 157), "j08": (26, 36), "j09": (157, 202), "j10": (157, 217), "j11": (50, 65), "j12": (157, 257),
    "j13": (202, 222), "j14": (217, 257), "j15": (222, 252), "j16": (257, 277), "j17": (100, 105), "j18": (252, 312),
    "j19": (277, 307), "j20": (277, 307),
}  # fmt: skip
KUEUE = {
    "j01": (0, 60), "j02": (0, 90), "j03": (150, 210), "j04": (6, 60), "j05": (7, 180), "j06": (10, 40),
    "j07": (270, 300), "j08": (40, 50), "j09": (60, 105), "j10": (210, 270), "j11": (60, 75), "j12": (55, 155),
    "j13": (105, 125), "j14": (75, 115), "j15": (180, 210), "j16": (300, 320), "j17": (100, 105), "j18": (110, 170),
    "j19": (120, 150), "j20": (210, 240),
}  # fmt: skip
BY_LIMIT = {
    "j01": (0, 60), "j02": (0, 90), "j03": (60, 120), "j04": (6, 26), "j05": (7, 127), "j06": (90, 120),
    "j07": (165, 195), "j08": (26, 36), "j09": (195, 240), "j10": (195, 255), "j11": (50, 65), "j12": (65, 165),
    "j13": (240, 260), "j14": (195, 235), "j15": (255, 285), "j16": (290, 310), "j17": (235, 240), "j18": (240, 300),
    "j19": (260, 290), "j20": (310, 340),
}  # fmt: skip
JOBTREE = BY_LIMIT | {"j18": (236, 296)}
STREAM = streams.made([streams.submit(job) for job in streams.TWENTY])


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        ("fifo", FIFO), ("easy", EASY), ("easy-limit", BY_LIMIT), ("conservative", CONSERVATIVE),
        ("conservative-limit", BY_LIMIT), ("kueue", KUEUE),
    ],
)  # fmt: skip
def test_twenty_jobs_under_each_rival(scheduler: str, expected: dict[str, tuple[int, int]], tmp_path: Path) -> None:
    found = study.study(STREAM, scheduler, Lake(tmp_path, "hand"), 60)

    assert streams.times(found) == expected


@pytest.mark.slow
def test_twenty_jobs_under_jobtree_start_as_under_backfilling_by_limits(tmp_path: Path) -> None:
    found = study.study(STREAM, "jobtree", Lake(tmp_path, "hand"), 60)

    assert streams.times(found) == JOBTREE


def test_kueue_preempts_who_borrows_for_who_stays_within_its_quota(tmp_path: Path) -> None:
    found = study.study(STREAM, "kueue", Lake(tmp_path, "hand"), 60)

    cuts = {row["name"]: (row["cuts"], row["reason"]) for row in found.jobs.to_pylist() if row["cuts"]}
    assert cuts == {"j04": (1, "Preempted"), "j05": (2, "Preempted")}
