"""Cuts that are announced, as pods may read them: annotations that the downward API brings into them as files.

A pod of a run that a standing promise may take something from says from when on (`CUT_AT`), and with what chance that
is all of it (`CUT_CHANCE`). Kubelets bring a change into the pod within seconds, so a job has the Policy's notice to
write a checkpoint. Where nothing threatens a run any more, both go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from jobtree.api import GROUP
from jobtree.api.kinds.core import Pod
from jobtree.api.kinds.reservation import Forecast
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake
from policies.inputs.pods import ENDED

CUT_AT: Final = f"{GROUP}/cut-at"
"""RFC 3339: when the earliest promise is due that may take something from the pod's run."""
CUT_CHANCE: Final = f"{GROUP}/cut-chance"
"""From 0 to 1: the chance that it takes all of it."""

RunKey = tuple[str, str]


def announced(intake: Intake, plan: Plan) -> dict[RunKey, Mapping[str, str]]:
    """By run, the annotations that its pods are to have once ``plan`` is carried out; of runs in nobody's way none."""
    statuses = {(each.namespace, each.name): each.status for each in intake.reservations}
    statuses |= {(each.namespace, each.name): each.status for each in plan.reservations}
    statuses |= {(each.namespace, each.name): each.status for each in plan.promises}
    for gone in plan.lapsed:
        statuses.pop((gone.namespace, gone.name), None)
    found: dict[RunKey, Mapping[str, str]] = {}
    due = ((status.earliest_start, name, status) for name, status in statuses.items() if status.stands)
    for at, _, status in sorted((each for each in due if each[0] is not None), key=lambda each: each[:2], reverse=True):
        for run, chance in _threatened(status.forecast or Forecast()):
            namespace, _, name = run.partition("/")
            found[namespace, name] = {CUT_AT: str(at), CUT_CHANCE: f"{float(chance):.3g}"}  # the earliest comes last
    return found


def _threatened(forecast: Forecast) -> Iterator[tuple[str, float]]:
    """Runs that a promise takes something from, or may, with their chance to lose all."""
    sure = {each.run for each in forecast.remedies if each.action != "Lottery"}
    chances = {each.run: each.kill_probability for each in forecast.conflict_set}
    yield from ((run, chances.get(run, 0)) for run in sorted(sure))
    yield from ((run, chance) for run, chance in chances.items() if chance and run not in sure)


def notices(pods: Iterable[Pod], wanted: Mapping[str, str]) -> Iterator[Write]:
    """The writes that make the pods of a run say so, and no more than that."""
    for pod in pods:
        meta = pod.metadata
        is_there = {key: value for key, value in meta.annotations.items() if key in (CUT_AT, CUT_CHANCE)}
        if is_there == wanted or pod.status.phase in ENDED or meta.deletion_timestamp is not None:
            continue
        said: dict[str, Any] = {CUT_AT: None, CUT_CHANCE: None, **wanted}
        body = {"metadata": {"annotations": said}}
        yield Write("patch", Ref("Pod", meta.namespace or "default", meta.name), body)
