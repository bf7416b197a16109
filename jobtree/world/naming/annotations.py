"""Reports of running programs and people in a Run's annotations (spec §5, §10)."""

from collections.abc import Iterator

from jobtree.api import ANNOTATION_COMPLETED, ANNOTATION_ETA, Run, Time
from jobtree.api.kinds.base import ANNOTATION_CANCELLED_INDICES, ANNOTATION_COMPLETED_INDICES
from jobtree.world.naming import arrays


def odd(run: Run) -> Iterator[str]:
    """Say what is odd. A report must not stop its run: an annotation that cannot be read is left out."""
    said = run.metadata.annotations
    for annotation in (ANNOTATION_COMPLETED, ANNOTATION_ETA):
        text = said.get(annotation)
        if text is not None and run.spec.array is not None:
            yield f"its annotation {annotation} is left out: indices of an array are marked each by itself"
        elif text is not None and time_or_none(text) is None:
            yield f"its annotation {annotation} is {text!r} and is left out; allowed is a time"
    for annotation, reader, allowed in (
        (ANNOTATION_COMPLETED_INDICES, arrays.completed, "2026-01-01T00:00:00Z=0-3,7"),
        (ANNOTATION_CANCELLED_INDICES, arrays.cancelled, "0-3,7"),
    ):
        try:
            reader(run)
        except ValueError:
            yield f"its annotation {annotation} is {said[annotation]!r} and is left out; allowed is such as {allowed}"


def time_or_none(text: str) -> Time | None:
    """The time that an annotation says, None where it says none."""
    try:
        return Time.parse(text)
    except ValueError:
        return None
