"""Printing: kubectl-like tables, JSON, YAML, and the few words that all commands share."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from jobtree.api.values.errors import Refusal
from jobtree.api.values.escaped import escaped
from jobtree.api.values.scalars import DAY, HOUR, MINUTE, enc_hook

if TYPE_CHECKING:
    from jobtree.world.reading.intake import Intake


def say(*lines: str) -> None:
    """Lines on stdout, as `escaped` shows them.

    Raises Refusal where they cannot be written, and BrokenPipeError where nobody reads.
    """
    write("".join(f"{escaped(line)}\n" for line in lines))


def write(text: str) -> None:
    """Text on stdout, as it is; raises like `say`."""
    with _told():
        sys.stdout.write(text)


def flush() -> None:
    """What was written goes out; raises like `say`."""
    with _told():
        sys.stdout.flush()


def discard() -> None:
    """What stdout still holds goes nowhere, so that Python does not try again, and complain, when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        discard()
        raise Refusal(f"the output cannot be written: {(error.strerror or str(error)).lower()}") from None


def complain(text: str) -> None:
    """A line on stderr, as `escaped` shows it."""
    with contextlib.suppress(OSError):  # where that cannot be written either, there is nobody to tell
        sys.stderr.write(f"{escaped(text)}\n")


def warn(messages: Iterable[str]) -> None:
    """``warning: ...`` lines on stderr."""
    for message in messages:
        complain(f"warning: {message}")


def set_aside(intake: Intake) -> None:
    """A warning for each object that cannot be used, and what may not be read: what a table lacks is said."""
    from exporters.plans.nodelist import natural

    if intake.hidden:
        complain(f"note: you may not list {', '.join(intake.hidden)}: what is there is not counted or shown")
    warn(
        sorted(
            (f"{notice.subject}: {notice.message}" for notice in intake.quarantined if not notice.told_by), key=natural
        )
    )


def data(value: Any, output: str) -> None:
    """A value of plain data or API structs as JSON or YAML."""
    if output == "json":
        encoded = msgspec.json.encode(value, enc_hook=enc_hook)
        write(f"{msgspec.json.format(encoded, indent=2).decode()}\n")
        return
    import yaml

    plain = msgspec.to_builtins(value, enc_hook=enc_hook)
    write(yaml.dump(plain, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True))


def listing(items: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """API objects as the List that ``kubectl get -o json`` prints."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def age(seconds: int) -> str:
    """A length of time in its two largest units, as kubectl does: ``45s``, ``3m20s``, ``2h``, ``3d4h``."""
    if seconds < 0:
        return "0s"
    parts = ((seconds // DAY, "d"), (seconds % DAY // HOUR, "h"), (seconds % HOUR // MINUTE, "m"), (seconds % 60, "s"))
    first = next((place for place, (number, _) in enumerate(parts) if number), 3)
    return "".join(f"{number}{unit}" for number, unit in parts[first : first + 2] if number) or "0s"
