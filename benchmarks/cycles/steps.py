"""What each part of the search leaves: ``python -m benchmarks.cycles.steps STATE AT`` prints it, in its own process."""

import sys
from pathlib import Path
from typing import Final

import msgspec

from jobtree.cluster.statefile import StateFile
from jobtree.world.tables.snapshot import Snapshot, take
from planner import Planning
from planner.search.certificates import Step

NAMES: Final = ("relaxation", "allowed", "whole", "solved again", "placed", "paid", "topped up")
"""Parts of the search in their order; only large masters have all."""


def measure(snapshot: Snapshot, at: int) -> list[Step]:
    """Values of the leading stage after each part; of what no solver made none."""
    *_, last = Planning(snapshot, at).outcomes()
    return list(last.steps)


def main() -> None:
    """Entry point of the process."""
    path, at = Path(sys.argv[1]), int(sys.argv[2])
    sys.stdout.buffer.write(msgspec.json.encode(measure(take(StateFile(path, at).read()), at)))


if __name__ == "__main__":
    main()
