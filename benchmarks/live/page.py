"""What is measured on a live cluster: a section of `results/live.md` for each command, which writes it itself."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import machine

PAGE: Final = Path(__file__).parent.parent / "results" / "live.md"
_SECTION: Final = "\n## "


class Row(NamedTuple):
    """A figure and what it may be at most."""

    what: str
    measured: str
    bound: str = ""


def record(command: str, rows: Sequence[Row]) -> None:
    """Prints the rows, and puts them in the place of those that the command measured before."""
    on = f"{datetime.now(UTC):%Y-%m-%d}, on {machine.sentence(machine.describe())}; a load of {os.getloadavg()[1]:.0f}."
    table = ["| what | measured | bound |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    section = "\n".join([f"`{command}`", "", on, "", *table, ""])
    print("\n".join(table), flush=True)
    head, *others = PAGE.read_text(encoding="utf-8").split(_SECTION)
    kept = [other for other in others if not other.startswith(f"`{command}`\n")]
    parts = [each.rstrip() + "\n" for each in (head, *sorted([*kept, section]))]
    PAGE.write_text(_SECTION.join(parts), encoding="utf-8")


def cpu(pid: int | None) -> float:
    """CPU seconds of a process so far; none where there is no process."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
