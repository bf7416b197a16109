"""The lake that a command means, and what is done to a lake as such."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jobtree.api.values.counted import counted
from jobtree.api.values.errors import Refusal
from jobtree.cli.common import show
from jobtree.cli.common.args import Options

if TYPE_CHECKING:
    from exporters.lake.lake import Lake


def named(options: Options, folder: str | None) -> Lake:
    """The lake: as given, else beside the state file, whose name is that of its cluster. Raises Refusal."""
    from exporters.lake.lake import Lake, beside

    if folder is None and options.state is None:
        raise Refusal("no lake is named: say --state FILE, whose lake is beside it, or --lake DIR, or an fsspec URL")
    state = options.state or Path()
    return Lake(folder if folder is not None else str(beside(state)), state.name or None)


def there(options: Options, folder: str | None) -> Lake:
    """The lake of a command that reads it. Raises Refusal where it holds no cycle, or is another state file's."""
    from exporters.lake.storage import exists, glob

    lake = named(options, folder)
    if not any(glob(lake.root, pattern) for pattern in ("cycles/*", "days/*")):
        what = f"{lake.root} holds no cycle" if exists(lake.root) else f"there is no lake {lake.root}"
        raise Refusal(f"{what}; `jobtree --state FILE cycle` writes one")
    lake.refuse_stranger()
    return lake


def compact(lake: Lake) -> None:
    """Packs the days that are over, with a line for each. Raises Refusal."""
    from exporters.lake.days import compact as pack
    from exporters.lake.days import dates

    said = list[str]()

    def say(date: str, cycles: int) -> None:
        said.append(date)
        show.say(f"{date}: {counted(cycles, 'cycle')}")
        show.flush()

    for subject, message in pack(lake, say):
        show.warn([f"{subject}: {message}"])
    if not said:
        last = max(dates(lake.root))
        show.say(f"Nothing to compact before {last}, the last day of {lake.root}")
