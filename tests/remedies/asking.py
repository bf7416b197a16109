"""Asking for remedies in the worlds of the tests, and carrying them out on the documents."""

import re
from typing import Any, Final

from planner.effort import USUAL, Effort
from planner.planning import plan
from planner.remedies import Remedies, Remedy, record, remedies
from tests.reference.worlds import snapshot
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import T0, moment, rfc3339, unix
from tests.support.worlds import World

_STEP = re.compile(r"([^.\[\]]+)(?:\[([^\]]+)\])?")
AT: Final = unix(T0)


def documents(world: World, at: str = "+0s") -> list[Document]:
    """What the world's file holds, created objects stamped."""
    return doc.read(world.save(moment(at)))


def ask(found: list[Document], run: str, at: int = AT, namespace: str = "default", effort: Effort = USUAL) -> Remedies:
    """Remedies of a run under the plan of a world of documents."""
    world = snapshot(found)
    return remedies(world, plan(world, at, effort), (namespace, run), effort)


def said(remedy: Remedy) -> tuple[str, str, int, str, str]:
    """(kind, who, GPUs, words, how)."""
    return remedy.kind, remedy.who.name, remedy.gpus, remedy.words, remedy.how


def carried_out(found: list[Document], remedy: Remedy, at: int = AT) -> list[Document]:
    """The documents with the fields that the remedy says; a run that is submitted again is as young as can be."""
    for change in remedy.changes:
        kind, _, name = change.subject.partition(" ")
        found = [
            _with(each, change.field, change.value) if kind == each["kind"] and name == _name(each) else each
            for each in found
        ]
        if kind == "Run" and change.field not in record.CHANGING:
            found = [
                doc.merge(each, {"metadata": {"creationTimestamp": rfc3339(at)}}) if name == _name(each) else each
                for each in found
            ]
    return found


def _name(document: Document) -> str:
    meta = document["metadata"]
    return f"{meta.get('namespace', 'default')}/{meta['name']}" if document["kind"] == "Run" else meta["name"]


def _with(document: Document, path: str, value: Any) -> Document:
    """The document with one field set: ``spec.envelopes[west].concurrency``; None takes it out."""
    steps = _STEP.findall(path)
    found: Document = _set(document, steps, value)
    return found


def _set(value: Any, steps: list[tuple[str, str]], to: Any) -> Any:
    if not steps:
        return to
    (name, item), *rest = steps
    if item.startswith('"'):
        rest, item = [(item.strip('"'), ""), *rest], ""  # the key of a label, which may have dots
    before = value.get(name) if isinstance(value, dict) else None
    if item:
        key = "type" if name == "conditions" else "name"
        inner: Any = [_set(each, rest, to) if each[key] == item else each for each in before or []]
    else:
        inner = _set(before or {}, rest, to)
    made = {**(value or {}), name: inner}
    if inner is None:
        del made[name]
    return made
