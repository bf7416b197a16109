"""A planner process whose solver hangs: after its first incumbent it never answers again."""

import signal
from collections.abc import Iterator

import planner
from cronjobs import worker
from planner.search.incumbent import Incumbent


class Hanging(planner.Planning):
    """The real planner, up to the first incumbent."""

    def incumbents(self) -> Iterator[Incumbent]:
        """The first, and then nothing for ever."""
        yield next(super().incumbents())
        while True:
            signal.pause()


if __name__ == "__main__":
    worker.main(Hanging)
