"""Why a run has no date, beside why it waits: one clear reason (spec §5)."""

from collections.abc import Mapping

import msgspec

from jobtree.world.plan import Plan
from policies.inputs.claims import RunKey


def without_date(plan: Plan, why: Mapping[RunKey, str]) -> Plan:
    """The plan in which what waits without a date says why; ``why``: as clauses."""
    if not why:
        return plan
    waits = [msgspec.structs.replace(each, undated=why.get((each.namespace, each.name), "")) for each in plan.waits]
    return msgspec.structs.replace(plan, waits=waits)
