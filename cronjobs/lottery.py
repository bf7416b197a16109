"""The lottery's chain around a cycle: which secret it may draw with, and when a new chain is published (spec §6).

The random origin is drawn here, and here alone. The anchor is published by the first cycle that promises something
which the lottery may have to settle, so at least ``reservations.notice`` before any draw.
"""

import secrets
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple

from jobtree.api import Time
from jobtree.api.values.scalars import DAY
from jobtree.cluster.protocol import Cluster, Ref, Write
from jobtree.world.memory import seen
from jobtree.world.memory.lottery import LENGTH, NAME, ORIGIN, Chain, Lot
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake
from policies.cuts.lottery import secret_at

ANNOUNCED: Final = DAY
"""Seconds between the publication of a chain that replaces another and its first use."""


class _Drawn(NamedTuple):
    """A chain computed from its origin: its anchor and the secret at one position."""

    anchor: str
    secret: str


def lot(cluster: Cluster, intake: Intake, at: int) -> Lot | None:
    """The next secret, where a promise is due at ``at`` (Unix seconds) and there is a chain that may be used.

    None under ``mode: observe``: what is only published cuts nobody, and its secret would be drawn with again.
    """
    chain = Chain.of(intake.config_map(NAME))
    if chain is None or chain.since >= at or chain.position >= chain.length or not _is_due(intake, at):
        return None
    if intake.policy is not None and intake.policy.spec.mode == "observe":
        return None
    origin = cluster.secret(NAME, ORIGIN)
    drawn = None if origin is None else _computed(origin, chain.length, chain.position + 1)
    if drawn is None or drawn.anchor != chain.anchor:
        return None
    return Lot(chain.position + 1, drawn.secret)


def published(cluster: Cluster, intake: Intake, plan: Plan, origin: str | None = None) -> Iterator[Write]:
    """Writes of a new chain, where a promise of the plan may need one and none can be used.

    ``origin``: w_N in hex, drawn at random where none is given.
    """
    if not _may_draw(intake, plan):
        return
    data = intake.config_map(NAME)
    chain, stored = Chain.of(data), cluster.secret(NAME, ORIGIN)
    usable = chain is not None and stored is not None and chain.position < chain.length
    if chain is not None and stored is not None and usable and (not _is_due(intake, plan.at) or _is_of(chain, stored)):
        return
    replaces = data is not None or any(each.status.lottery for each in intake.plans)
    origin = origin or secrets.token_hex(32)
    drawn = _computed(origin, LENGTH, 1)
    assert drawn is not None, "an origin is 32 bytes in hex"
    retired = () if chain is None else (*chain.retired, chain.anchor)
    new = Chain(drawn.anchor, LENGTH, 0, Time(plan.at + (ANNOUNCED if replaces else 0)), retired)
    secret, record = Ref("Secret", seen.NAMESPACE, NAME), Ref("ConfigMap", seen.NAMESPACE, NAME)
    if stored is not None:
        yield Write("delete", secret)
    body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": {ORIGIN: origin}}
    yield Write("create", secret, body)
    if data is None:
        yield Write("create", record, {"apiVersion": "v1", "kind": "ConfigMap", "data": new.data()})
    else:
        yield Write("patch", record, {"data": {**dict.fromkeys(data), **new.data()}})


def _is_due(intake: Intake, at: int) -> bool:
    return any(
        each.status.stands and (each.status.earliest_start or each.spec.earliest_start) <= at
        for each in intake.reservations
    )


def _may_draw(intake: Intake, plan: Plan) -> bool:
    """Does a promise that stands, or that the plan makes, name runs that the lottery may take?"""
    statuses = [each.status for each in (*intake.reservations, *plan.reservations)]
    statuses += [each.status for each in plan.promises]
    forecasts = [each.forecast for each in statuses if each.stands and each.forecast is not None]
    return any(remedy.action == "Lottery" for forecast in forecasts for remedy in forecast.remedies)


def _is_of(chain: Chain, origin: str) -> bool:
    drawn = _computed(origin, chain.length, 1)
    return drawn is not None and drawn.anchor == chain.anchor


@lru_cache(maxsize=4)  # a program that runs many cycles asks for the same one in each
def _computed(origin: str, length: int, position: int) -> _Drawn | None:
    """Hash the whole chain: half a second for 2²⁰, the first time. None where the origin is no 32 bytes in hex."""
    try:
        whole = len(bytes.fromhex(origin)) == sha256().digest_size
    except ValueError:
        return None
    if not whole:
        return None
    return _Drawn(secret_at(origin, 0, length), secret_at(origin, position, length))
