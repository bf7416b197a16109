"""A planner process that forecasts and promises nothing: what a cycle takes without."""

import msgspec

import planner
from cronjobs import worker
from jobtree.world.plan import Plan
from planner.search.incumbent import Incumbent


class Undated(planner.Planning):
    """The real planner, but for the dates."""

    def finish(self, incumbent: Incumbent) -> Plan:
        """The plan of an incumbent, without promises and estimates."""
        return msgspec.structs.replace(self.undated(incumbent), lottery=self.decision.lottery)


if __name__ == "__main__":
    worker.main(Undated)
