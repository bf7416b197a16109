"""Refusals: one sentence that says which field, what was given and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from jobtree.api.values.counted import counted

#: Longest excerpt of a given value in a sentence.
SHOWN: Final = 60


class Unreadable(ValueError):  # noqa: N818 it says what the text is
    """A text that is no scalar of its kind. `allowed` says what would be."""

    def __init__(self, given: object, what: str, allowed: str) -> None:
        super().__init__(f"{show(given)} is not {what}; allowed is {allowed}")
        self.allowed = allowed


class Refusal(Exception):  # noqa: N818 the word that users read
    """Something that is not accepted, as one sentence.

    `subject` is the object (`Run default/train-32`), `field` its path (`spec.resources.totalGPUs`), `given` the value
    as a sentence shows it and `allowed` what would be accepted; each is empty where it does not apply. `members` are
    the subjects of all objects that a rule over several of them finds at fault. `path`: the same as `field`, part by
    part, where reading found the fault.
    """

    path: tuple[str | int, ...] = ()

    def __init__(
        self, problem: str, *, subject: str = "", field: str = "", given: str = "", allowed: str = "",
        members: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(f"{subject}: {problem}" if subject else problem)
        self.problem = problem
        self.subject = subject
        self.field = field
        self.given = given
        self.allowed = allowed
        self.members = members or ((subject,) if subject else ())

    def about(self, subject: str) -> Refusal:
        """The same refusal with its object named."""
        return Refusal(self.problem, subject=subject, field=self.field, given=self.given, allowed=self.allowed)


class Refusals(Refusal):
    """Several refusals at once; each is a sentence of its own."""

    def __init__(self, each: Sequence[Refusal]) -> None:
        super().__init__("; ".join(map(str, each)))
        self.each = tuple(each)


def wrong(field: str, given: object, allowed: str) -> Refusal:
    """The refusal of a field's value: `FIELD is GIVEN; allowed is ALLOWED`."""
    shown = show(given)
    return Refusal(f"{field} is {shown}; allowed is {allowed}", field=field, given=shown, allowed=allowed)


def missing(field: str, allowed: str) -> Refusal:
    """The refusal of a field that is not there: `FIELD is missing; allowed is ALLOWED`."""
    return Refusal(f"{field} is missing; allowed is {allowed}", field=field, given="nothing", allowed=allowed)


def show(value: Any) -> str:
    """A value as a sentence shows it: texts in quotes, long ones cut short, containers by their kind and length."""
    if isinstance(value, dict | list | tuple):
        kind = "mapping" if isinstance(value, dict) else "list"
        return f"a {kind} of {counted(len(value), 'entry', 'entries')}" if value else f"an empty {kind}"
    if value is None:
        return "null"
    if isinstance(value, str) or type(value) in {bool, int, float}:
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = str(value)  # durations, times and quantities in their canonical form
    if len(text) <= SHOWN:
        return text
    return f"{text[: SHOWN - 2]}…" + ('"' if isinstance(value, str) else "")
