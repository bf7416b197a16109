"""What running programs and people report in a Run's annotations (spec §5, §10)."""

from collections.abc import Iterator

from jobtree.api import ANNOTATION_COMPLETED, ANNOTATION_ETA, Run, Time


def odd(run: Run) -> Iterator[str]:
    """What a running program reports must not stop its run: an annotation that cannot be read is left out."""
    for annotation in (ANNOTATION_COMPLETED, ANNOTATION_ETA):
        text = run.metadata.annotations.get(annotation)
        if text is not None and time_or_none(text) is None:
            yield f"its annotation {annotation} is {text!r} and is left out; allowed is a time"


def time_or_none(text: str) -> Time | None:
    """The time that an annotation says, None where it says none."""
    try:
        return Time.parse(text)
    except ValueError:
        return None
