"""Reservation: a held promise of when and where a run will start (spec §1, §5)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from jobtree.api.kinds.base import Fraction, Labels, Strict, Tolerant, shown
from jobtree.api.kinds.meta import EnvelopeRef, Object, RunRef
from jobtree.api.values.scalars import Time

ReservationState = Literal["Pending", "Activated", "Released", "Failed", "BlockedFunding"]
AWAITS: Final = "WaitingForVictims"
"""Reason of a promise that is Activated and starts once the pods of what was cut for it are gone (spec §8)."""


def is_standing(state: str, reason: str) -> bool:
    """Is a promise still to be kept? Its state is final else."""
    return state in ("Pending", "BlockedFunding") or (state == "Activated" and reason == AWAITS)


Confidence = Literal["fixed", "window", "estimated"]
RemedyAction = Literal["ReclaimUnfunded", "DropSpare", "Shrink", "Lottery"]


class IntendedSlice(Strict, frozen=True, kw_only=True):
    """Where the run is meant to start."""

    domain: Annotated[Labels, Meta(max_length=16, description="Node labels that the domain has.")] = {}
    nodes: Annotated[tuple[str, ...], Meta(max_length=16_384, description="The nodes, where they are known.")] = ()


class ReservationSpec(Strict, frozen=True, kw_only=True):
    """The promise as first made; immutable."""

    run_ref: Annotated[RunRef, Meta(description="The Run that is waiting.")]
    intended_slice: Annotated[IntendedSlice, Meta(description="Where it is meant to start.")]
    earliest_start: Annotated[Time, Meta(description="The start as first promised.")]
    paying_envelopes: Annotated[
        tuple[EnvelopeRef, ...], Meta(max_length=256, description="The envelopes meant to pay.")
    ] = ()


class Conflict(Tolerant, frozen=True, kw_only=True):
    """A run that may be cut for this promise."""

    run: Annotated[str, Meta(description="`namespace/name` of the Run.")]
    kill_probability: Annotated[Fraction, Meta(description="Its chance to be cut, by the published procedure.")] = (
        shown(0)
    )


class Remedy(Tolerant, frozen=True, kw_only=True):
    """A cut that would make room."""

    run: Annotated[str, Meta(description="`namespace/name` of the Run.")]
    action: Annotated[RemedyAction, Meta(description="The closure's reason.")]
    gpus: Annotated[int, Meta(description="GPUs that it frees.")] = shown(0)


class Forecast(Tolerant, frozen=True, kw_only=True):
    """What is missing and what will be cut."""

    deficit_gpus: Annotated[int, Meta(description="GPUs to be freed for the cheapest feasible placement.")] = shown(0)
    scope: Annotated[str, Meta(description="Where they are missing, e.g. `domain=B`.")] = ""
    conflict_set: Annotated[tuple[Conflict, ...], Meta(description="Runs that may be cut.")] = ()
    remedies: Annotated[tuple[Remedy, ...], Meta(description="Cuts that make room, in the order they are made.")] = ()
    confidence: Annotated[
        Confidence,
        Meta(description="`fixed`: from exact ends or notice; `window`: from a window's start."),
    ] = shown("estimated")
    p50: Annotated[Time | None, Meta(description="The start, as likely before as after.")] = None
    p90: Annotated[Time | None, Meta(description="The start, nine times of ten before.")] = None
    ground: Annotated[
        str, Meta(description="SHA-256 of nodes, others' pods and Policy that the cuts were weighed on.")
    ] = ""


class Move(Tolerant, frozen=True, kw_only=True):
    """One move of the promised time or place."""

    at: Annotated[Time, Meta(description="The cycle that moved it.")]
    earliest_start: Annotated[Time | None, Meta(description="The start from then on.")] = None
    intended_slice: Annotated[IntendedSlice | None, Meta(description="The place from then on, where it changed.")] = (
        None
    )
    cause: Annotated[str, Meta(description="Why it moved, one sentence.")] = ""


class ReservationStatus(Tolerant, frozen=True, kw_only=True):
    """The promise as it stands."""

    state: Annotated[ReservationState, Meta(description="Released and Failed are final.")] = shown("Pending")
    reason: Annotated[str, Meta(description="A stable CamelCase word for the state.")] = ""
    message: Annotated[str, Meta(description="One sentence with the number that matters.")] = ""
    earliest_start: Annotated[Time | None, Meta(description="The start as it stands now.")] = None
    intended_slice: Annotated[IntendedSlice | None, Meta(description="The place as it stands now.")] = None
    forecast: Annotated[Forecast | None, Meta(description="What is missing.")] = None
    history: Annotated[tuple[Move, ...], Meta(description="The last 20 moves of time or place, oldest first.")] = ()

    @property
    def stands(self) -> bool:
        """Is it still to be kept?"""
        return is_standing(self.state, self.reason)


class Reservation(Object, frozen=True, kw_only=True):
    """A held promise of when and where a run will start."""

    NAMESPACED: ClassVar[bool] = True

    spec: ReservationSpec
    kind: Literal["Reservation"] = "Reservation"
    status: ReservationStatus = ReservationStatus()
