"""Money that others have: sponsors that the run does not list yet, and terms on which envelopes do not pay or use caps
do not admit.

A sponsor is an owner whose envelope of the run's flavor lends to the run's owner (spec §3.1); the one with most room is
asked first, and where no single one suffices, the fewest in that order.
"""

from collections.abc import Iterator
from typing import Any

from jobtree.api.values.counted import named
from jobtree.api.values.scalars import Duration
from jobtree.world.naming.kinship import COUSIN, OWN, Family
from jobtree.world.tables import values
from planner.advice.edits import Cell
from planner.remedies.bench import Bench, largest
from planner.remedies.record import Change, Command, Remedy, Who, label_of
from planner.remedies.submitting import again
from policies.caps import uses
from policies.caps.cap import HOUR_MILLI
from policies.inputs.fleet import ANY
from policies.inputs.money import Envelope, bits
from policies.inputs.runs import RunRow
from policies.lifecycle import unweighed


def sponsors(bench: Bench) -> Iterator[Remedy]:
    """Owners to be added to the run's ``funding.sponsors``; with ``allowBorrow`` where it is not set."""
    run = bench.run
    lenders = _lenders(bench)
    if not lenders or not _lent(bench, lenders):
        return
    single = next((owner for owner in lenders if _lent(bench, [owner])), None)
    if single is None:
        count = largest(len(lenders), lambda number: _lent(bench, lenders[:number]))
        owners = lenders[:count]
        for owner in reversed(lenders[:count]):
            fewer = [other for other in owners if other != owner]
            owners = fewer if _lent(bench, fewer) else owners
    else:
        owners = [single]
    listed = (*run.sponsors, *owners)
    words = f"borrow from {named(owners)}"
    if run.allow_borrow:
        yield Remedy(
            kind="sponsor",
            who=Who.OWNER,
            gpus=0,
            words=words,
            changes=(Change(f"Run {run.namespace}/{run.name}", "spec.funding.sponsors", list(listed)),),
            commands=tuple(Command(f"sponsors add {run.name} {owner}", run.namespace) for owner in owners),
            edits=(Cell("runs", run.key, "sponsors", list(listed)),),
        )
    else:
        said = {"spec.funding.allowBorrow": True, "spec.funding.sponsors": list(listed)}
        yield again(bench, "sponsor", words, {"sponsors": list(listed), "allow_borrow": True}, said)


def _lent(bench: Bench, owners: list[str]) -> bool:
    listed = (*bench.run.sponsors, *owners)
    return bench.starts(bench.with_run(sponsors=listed, allow_borrow=True))


def _lenders(bench: Bench) -> list[str]:
    """Owners that lend to the run's owner and are not its sponsors yet, with most room first."""
    run, state = bench.run, bench.state
    room: dict[str, int] = {}
    for index in state.money.by_flavor.get(run.flavor, ()):
        envelope = state.money.envelopes[index]
        rank = state.money.family.rank(run.owner, envelope.owner)
        pays = rank is not None and (rank == OWN or envelope.shares)
        if pays or envelope.owner in run.sponsors:
            continue
        if envelope.lends_to(run.owner) and envelope.pays_at(bench.at):
            left = min(
                state.book.caps[cap].limit - state.funded.used[cap]
                for cap in state.book.of_envelope(index, state.money.user_of(run.owner))
                if not state.book.caps[cap].ahead
            )
            room[envelope.owner] = room.get(envelope.owner, 0) + max(0, left)
    return sorted((owner for owner, left in room.items() if left), key=lambda owner: (-room[owner], owner))


def terms(bench: Bench) -> list[Remedy]:
    """Other terms for each of the nearest envelopes whose terms keep it from paying; whether that suffices or not."""
    return [
        Remedy(
            kind="terms",
            who=Who.BUDGETS,
            gpus=0,
            words=f"{envelope.label} of {envelope.owner} on other terms",
            changes=tuple(
                Change(f"Budget {envelope.budget}", f"spec.envelopes[{envelope.name}].{path}", to)
                for path, to in said.items()
            ),
            edits=tuple(Cell("envelopes", (envelope.budget, envelope.name), *cell) for cell in columns.items()),
        )
        for envelope, said, columns in _closed_doors(bench)[: bench.state.effort.helping.lenders]
    ]


def use_terms(bench: Bench) -> Iterator[Remedy]:
    """Longer runs admitted by the use caps whose perRun.maxTime keeps this one from their nodes."""
    run, money = bench.run, bench.state.money
    shut = [money.uses[i] for i in bits(uses.watch(money, run.owner, run.flavor, run.limit).shut)]
    if shut:
        to = None if run.limit is None else str(Duration(run.limit))
        yield Remedy(
            kind="terms",
            who=Who.BUDGETS,
            gpus=0,
            words=f"longer runs at {named([uses.USE.named(use.label) for use in shut])}",
            changes=tuple(
                Change(f"Budget {use.budget}", f"spec.useCaps[{use.name}].perRun.maxTime", to) for use in shut
            ),
            edits=tuple(Cell("use_caps", (use.budget, use.name), "per_run_time", run.limit) for use in shut),
        )


def binding(bench: Bench) -> Iterator[Remedy]:
    """The run's namespace bound to its owner, where it is not (spec §1 Budget.namespaces)."""
    run, table = bench.run, bench.kept.tables["budgets"]
    if bench.state.blocked.get(run.key, ("",))[0] != unweighed.OWNER:
        return
    money = bench.state.money
    names = zip(values.texts(table, "name"), values.texts(table, "owner"), strict=True)
    lists = values.column(table, "namespaces")
    above = sorted(
        (_distance(money.family, run.owner, owner), name, listed)
        for (name, owner), listed in zip(names, lists, strict=True)
        if owner == run.owner or (listed and money.family.descends(run.owner, owner))
    )
    for _, name, listed in sorted(above, key=lambda each: (not each[2], each))[:1]:
        spaces = sorted({*listed, run.namespace})
        change = Change(f"Budget {name}", "spec.namespaces", spaces)
        words = f"namespace {run.namespace} bound to {run.owner}"
        yield Remedy("terms", Who.BUDGETS, 0, words, (change,), edits=(Cell("budgets", (name,), "namespaces", spaces),))


def _distance(family: Family, owner: str, above: str) -> int:
    """Generations from ``owner`` up to ``above``."""
    level, steps = {owner}, 0
    while above not in level:
        level, steps = {up for one in level for up in family.parents(one)}, steps + 1
    return steps


def _closed_doors(bench: Bench) -> list[tuple[Envelope, dict[str, Any], dict[str, Any]]]:
    """Envelopes of the run's flavor that it may hope for, nearest first, with the fields that open them."""
    money, run, at = bench.state.money, bench.run, bench.at
    unpaid = _unpaid_sites(bench)
    found = []
    for index in money.by_flavor.get(run.flavor, ()):
        envelope = money.envelopes[index]
        rank = money.family.rank(run.owner, envelope.owner)
        sponsor = envelope.owner in run.sponsors and run.allow_borrow
        if rank is None and not sponsor:
            continue
        family = rank is not None and rank <= COUSIN and not (sponsor and not envelope.shares)
        said, columns = _family_terms(envelope, rank) if family else _lending_terms(envelope, run)
        more = (_time_terms(envelope, run), _window_terms(envelope, at), _spent_terms(bench, envelope))
        for fields, cells in more:
            said, columns = said | fields, columns | cells
        near = COUSIN + 1 if rank is None else rank
        if said:
            found.append((near, envelope.label, envelope, said, columns))
        elif (wider := _place_terms(bench, envelope, unpaid))[0]:
            found.append((near, envelope.label, envelope, *wider))
    return [door[2:] for door in sorted(found, key=lambda door: door[:2])]


def _unpaid_sites(bench: Bench) -> frozenset[int]:
    """Sites where the run could lie, and nobody pays for it."""
    state = bench.state
    paid = (kind.sites for kind in state.problem().types if not kind.unfunded)
    return state.sites_for(bench.run).difference(*paid)


def _place_terms(bench: Bench, envelope: Envelope, unpaid: frozenset[int]) -> "_Terms":
    """Any value of a label, or of all, that keeps the envelope from paying where nobody does."""
    asked = [key for key, value in envelope.selector if value != ANY]
    for keys in [*([key] for key in asked), asked]:
        wider = tuple((key, ANY if key in keys else value) for key, value in envelope.selector)
        if unpaid & bench.state.fleet.sites_matching(envelope.flavor, wider):
            return {label_of("selector", key): ANY for key in keys}, {"selector": list(wider)}
    return {}, {}


_Terms = tuple[dict[str, Any], dict[str, Any]]
"""Fields of an envelope, as in a manifest and as in the snapshot."""


def _family_terms(envelope: Envelope, rank: int | None) -> _Terms:
    if rank == OWN or envelope.shares:
        return {}, {}
    return {"sharing": "family"}, {"sharing": "family"}


def _lending_terms(envelope: Envelope, run: RunRow) -> _Terms:
    if envelope.lends_to(run.owner):
        return {}, {}
    acl = [*envelope.lending_to, run.owner] if envelope.lends and envelope.lending_to else [run.owner]
    said: dict[str, Any] = {"lending.to": sorted(acl)}
    columns: dict[str, Any] = {"lending_to": sorted(acl)}
    if not envelope.lends:
        said, columns = {"lending.allow": True, **said}, {"lending_allow": True, **columns}
    return said, columns


def _time_terms(envelope: Envelope, run: RunRow) -> _Terms:
    limit = envelope.lasts(run.limit)
    if not envelope.is_too_long(limit):
        return {}, {}
    return {"perRun.maxTime": None if limit is None else str(Duration(limit))}, {"per_run_time": limit}


def _window_terms(envelope: Envelope, at: int) -> _Terms:
    if envelope.start is None or at >= envelope.start or envelope.allow_admission:
        return {}, {}
    return {"preActivation.allowAdmission": True}, {"allow_admission": True}


def _spent_terms(bench: Bench, envelope: Envelope) -> _Terms:
    """An envelope of 0 GPU-hours or credits pays for nobody; what the run needs for one accounting period is given."""
    run, period = bench.run, int(bench.state.policy.accounting_period)
    seconds = period if run.limit is None else min(period, run.limit)
    milli = 1000 * run.width_min + bench.state.policy.spares.discount_milli * run.lowered().spare_gpus
    said, columns = dict[str, Any](), dict[str, Any]()
    if envelope.max_gpu_milliseconds == 0:
        hours = -(-milli * seconds // HOUR_MILLI)
        said["maxGPUHours"], columns["max_gpu_milliseconds"] = hours, hours * HOUR_MILLI
    if envelope.max_millicredits == 0:
        rate = bench.state.money.rate_milli(bench.state.money.envelopes.index(envelope))
        needed = -(-milli * seconds * rate // (1000 * HOUR_MILLI))
        said["maxCredits"], columns["max_millicredits"] = needed, needed * 1000
    return said, columns
