"""`sponsors list`, `sponsors add` and `sponsors remove`: who may lend to a run, and how much room they have for it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import msgspec

from jobtree.api.values.errors import Refusal
from jobtree.api.values.nearest import did_you_mean
from jobtree.cli.changing import control, doubts
from jobtree.cli.common import lookup, owners, show
from jobtree.cli.common.args import Commands, Options, command, group

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobtree.api import OwnerPath, Run
    from jobtree.cli.changing.control import Change
    from jobtree.world.reading.intake import Intake


class Offer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an envelope of a sponsor would do for a run.

    ``room_gpus``: GPUs that its caps, those on lending too, leave to it now; None where it does not lend to the run.
    """

    owner: str
    budget: str | None = None
    envelope: str | None = None
    listed: bool
    lends: bool
    room_gpus: int | float | None = msgspec.field(name="roomGPUs")
    verdict: str


def add(commands: Commands) -> None:
    """Declares the command group."""
    kinds = group(commands, "sponsors", "list, add or remove the owners that may lend to a run")
    listed = command(
        kinds,
        "list",
        _list,
        "list who may lend to a run, with what room, and who would if listed",
        example="kubectl runs --state cluster.yaml sponsors list sweep",
    )
    listed.add_argument("run", metavar="RUN")
    for name, handler, what in (
        ("add", _add, "add a sponsor, last in preference"),
        ("remove", _remove, "remove a sponsor"),
    ):
        example = f"kubectl runs --state cluster.yaml sponsors {name} sweep org:ai:mm"
        changed = command(kinds, name, handler, what, example=example)
        changed.add_argument("run", metavar="RUN")
        changed.add_argument("owner", metavar="OWNER")


def _list(options: Options, given: argparse.Namespace) -> int:
    intake = options.intake()
    run = lookup.find_run(intake, given.run, options.namespace)
    offers = list(_offers(intake, run, options.time))
    if options.output in {"json", "yaml"}:
        show.data(offers, options.output)
        return 0
    from exporters.plans.summary import table

    _warn_of_own_rule(run)
    rows = [
        (
            offer.owner,
            f"{offer.budget}/{offer.envelope}" if offer.budget else "-",
            "yes" if offer.listed else "no",
            "-" if offer.room_gpus is None else str(offer.room_gpus),
            offer.verdict,
        )
        for offer in offers
    ]
    header = ("OWNER", "BUDGET/ENVELOPE", "LISTED", "ROOM", "VERDICT")
    show.say(*(table(header, rows) if rows else [f"{run.subject} has no sponsors, and nobody would lend to it."]))
    return 0


def _offers(intake: Intake, run: Run, at: int) -> Iterator[Offer]:
    """Envelopes of the run's sponsors in its order, then those that would lend if they were listed, by owner.

    Of owners that are not listed only those that lend to somebody.
    """
    from exporters.plans.nodelist import natural
    from jobtree.world.naming.kinship import SPONSOR
    from jobtree.world.tables.snapshot import take
    from planner.state.derive import state_of
    from policies.funding.usage import headroom, plain
    from policies.model.payers import payers

    state = state_of(take(intake), at)
    money = state.money
    row = state.runs[run.namespace, run.name]
    others = sorted({envelope.owner for envelope in money.envelopes} - set(row.sponsors), key=natural)
    asked = msgspec.structs.replace(row, allow_borrow=True, sponsors=(*row.sponsors, *others))
    found, refused = payers(money, asked)
    reasons: dict[int, str] = {each.envelope: each.words(row) for each in refused if each.rank == SPONSOR}
    lenders = {each.envelope for each in found if each.rank == SPONSOR}
    order = {owner: place for place, owner in enumerate(asked.sponsors)}
    labels = {i: (order[money.envelopes[i].owner], natural(money.envelopes[i].label)) for i in (*reasons, *lenders)}
    envelopes = sorted(labels, key=labels.__getitem__)
    for owner in row.sponsors:
        if all(money.envelopes[i].owner != owner for i in envelopes):
            words = f"{owner} has no envelope of {row.flavor} to lend from"
            yield Offer(
                owner=owner, budget=None, envelope=None, listed=True, lends=False, room_gpus=None, verdict=words
            )
    for index in envelopes:
        envelope = money.envelopes[index]
        listed, lends = envelope.owner in row.sponsors, index in lenders
        if not (listed or envelope.lends):
            continue
        yield Offer(
            owner=envelope.owner,
            budget=envelope.budget,
            envelope=envelope.name,
            listed=listed,
            lends=lends,
            room_gpus=plain(headroom(state.book, index, state.funded.used, loan=True), 1000) if lends else None,
            verdict=("may lend" if listed else "would lend if listed") if lends else reasons[index],
        )


def _add(options: Options, given: argparse.Namespace) -> int:
    owner = _owner(given.owner)

    def made(run: Run, intake: Intake) -> Change:
        control.refuse_index(run)
        control.refuse_terminal(run)
        sponsors = run.spec.funding.sponsors
        if owner not in sponsors and not intake.hidden:  # who may not read all objects cannot know all owners
            owners.meant(intake, given.owner)
        _warn_of_own_rule(run)
        show.warn(f"{run.subject}: {words}" for words in doubts.sponsor(intake, owner))
        return _listing([*sponsors, owner] if owner not in sponsors else None), f"lists {owner} as a sponsor"

    return control.change(options, [given.run], made)


def _remove(options: Options, given: argparse.Namespace) -> int:
    owner = _owner(given.owner)

    def made(run: Run, _: Intake) -> Change:
        control.refuse_index(run)
        control.refuse_terminal(run)
        sponsors = run.spec.funding.sponsors
        if owner not in sponsors:
            hint = did_you_mean(owner, [str(each) for each in sponsors])
            raise Refusal(f"{run.subject} does not list {owner} as a sponsor{hint}")
        rest = [each for each in sponsors if each != owner]
        return _listing(rest), f"lists {owner} as a sponsor no more"

    return control.change(options, [given.run], made)


def _owner(text: str) -> OwnerPath:
    """Raises Refusal for what is no owner."""
    from jobtree.api import OwnerPath

    try:
        return OwnerPath.parse(text)
    except ValueError as error:
        raise Refusal(str(error)) from None


def _listing(sponsors: Sequence[str] | None) -> dict[str, Any] | None:
    """The patch that lists these; None where nothing changes."""
    return None if sponsors is None else {"spec": {"funding": {"sponsors": [str(each) for each in sponsors]}}}


def _warn_of_own_rule(run: Run) -> None:
    if not run.spec.funding.allow_borrow:
        show.warn([f"{run.subject}: sponsors pay nothing, since its funding.allowBorrow is false"])
