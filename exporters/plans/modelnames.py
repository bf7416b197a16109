"""Names of the master's columns and rows for people, made from their keys.

``start[rai/train]``, ``pay[rai/train,Active,a01+15,rai-sys/west]``: what it is, then of what. Many equal things are
called after the first of them: ``rai/train+3`` is the type of that run and of three more, ``A+1`` the kind of domain A
and of one more, ``a01+15`` the nodes like a01.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from policies.inputs.shapes import NO_LOAD, PodLoad, Shape
from policies.model.master import Master

PARTS: Final[dict[str, tuple[str, ...]]] = {
    "start": ("candidate",),
    "steps": ("candidate",),
    "starts": ("type",),
    "type": ("type",),
    "all-steps": ("type",),
    "groups": ("type", "shape", "kind"),
    "whole": ("type", "shape"),
    "together": ("type", "kind"),
    "together-runs": ("type",),
    "lies-together": ("type", "kind"),
    "pieces": ("shape", "kind", "part", "load"),
    "count": ("shape", "kind", "part", "load"),
    "room": ("kind", "part", "load", "pod", "size"),
    "lies": ("purse", "role", "kind", "region"),
    "lie": ("purse", "role", "kind", "part"),
    "pay": ("purse", "role", "region", "envelope"),
    "paid": ("purse", "role", "region"),
    "own": ("purse", "role", "region"),
    "port": ("purse", "role", "region"),
    "flow": ("purse", "role", "region", "envelope"),
    "hub": ("role", "envelope"),
    "wallet": ("role", "envelope", "text"),
    "cap": ("cap",),
    "borrow": ("purse",),
    "per-run": ("purse", "envelope"),
    "use-run": ("purse", "use"),
    "allowed": ("cap", "text"),
    "far": ("cap", "text"),
    "overdraw": ("envelope",),
    "one-way": ("text", "text"),
    "gang": ("text", "text"),
    "tree": ("text", "text", "time"),
    "seat": ("type", "kind", "role", "node"),
    "seats": ("type", "kind", "role"),
    "chunks": ("type", "kind", "role", "node"),
    "node": ("text", "node"),
}
"""By what a column or row is, what the parts of its key are; any other parts are written as they are."""


@dataclass(frozen=True)
class Names:
    """One name per column and row, each once and without blanks."""

    columns: list[str]
    rows: list[str]

    @classmethod
    def of(cls, master: Master) -> "Names":
        """Names of a master's columns and rows."""
        say = _Words(master).say
        model = master.model
        return cls(_unique(map(say, model.column_keys)), _unique(map(say, model.row_keys)))

    def for_lp(self) -> "Names":
        """The same in letters that every reader of LP files takes: ``start{rai.train_32}``."""
        return Names(_unique(map(_plain, self.columns)), _unique(map(_plain, self.rows)))


_IN_LP: Final = str.maketrans({"[": "{", "]": "}", ",": ";", "/": ".", "+": "~"})


_LONGEST: Final = 90  # CBC reads names of at most 100 letters from an LP file


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.#{};~]", "_", name.translate(_IN_LP))[:_LONGEST]


def _unique(names: Iterable[str]) -> list[str]:
    """The second of equal names gets ``#2``, and so on."""
    seen: dict[str, int] = {}
    for name in names:
        said = name
        while said in seen:
            seen[name] += 1
            said = f"{name}#{seen[name]}"
        seen[said] = 1
    return list(seen)


class _Words:
    """What the parts of keys are called in one master."""

    def __init__(self, master: Master) -> None:
        problem = master.problem
        fleet, money = problem.fleet, problem.book.money
        self._types = [_and_more(self._way(master, kind.members[0]), kind.members) for kind in problem.types]
        self._purses = {
            purse.index: _and_more(self._way(master, purse.example), purse.starts) for purse in master.purses
        }
        kinds = [_and_more(fleet.domain_name(kind.domains[0]), kind.domains) for kind in master.kinds]
        nodes: dict[int, list[str]] = {}
        for name, site in zip(fleet.names, fleet.site.tolist(), strict=True):
            nodes.setdefault(money.region[site], []).append(name)
        self._regions = {region: _and_more(mine[0], mine) for region, mine in nodes.items()}
        self._sites = {site: self._regions[money.region[site]] for site in range(fleet.site_count)}
        self._say: dict[str, Callable[[Any], str]] = {
            "candidate": lambda index: self._way(master, index),
            "type": lambda index: self._types[index],
            "shape": _shape,
            "kind": lambda index: kinds[index],
            "part": lambda sites: "&".join(dict.fromkeys(self._sites[site] for site in sites)),
            "load": _load,
            "pod": lambda gpus: f"pods-of-{gpus}",
            "size": lambda gpus: f"by-{gpus}",
            "purse": lambda index: self._purses[index],
            "role": lambda active: "Active" if active else "Spare",
            "region": lambda region: self._regions[region],
            "node": lambda index: fleet.names[index],
            "envelope": lambda index: money.envelopes[index].label,
            "use": lambda number: money.uses[number].label,
            "cap": lambda index: "{0.rule},{0.measure.name},{0.subject}".format(problem.book.caps[index]),
            "time": lambda hours: "hours" if hours else "GPUs",
            "text": str,
        }

    def say(self, key: tuple[Any, ...]) -> str:
        """The name of a column or row."""
        what, *parts = key
        meanings = PARTS.get(what, ())
        meanings = (*meanings, *("text",) * (len(parts) - len(meanings)))
        said = [self._say[meaning](part) for meaning, part in zip(meanings, parts, strict=True)]
        return re.sub(r"[^!-~]", "_", f"{what}[{','.join(text for text in said if text)}]")

    @staticmethod
    def _way(master: Master, candidate: int) -> str:
        run = master.problem.candidates[candidate]
        unfunded = master.problem.types[run.type].unfunded
        return f"{run.run.namespace}/{run.run.name}{',unfunded' if unfunded else ''}"


def _and_more(first: str, all_of_them: Sequence[object]) -> str:
    more = len(all_of_them) - 1
    return f"{first}+{more}" if more else first


def _shape(shape: Shape) -> str:
    pods = f"-in-pods-of-{shape.pod}" if shape.pod else ""
    spares = f"-and-{shape.spares}-spares" if shape.spares else ""
    return f"{shape.gpus}-GPUs{pods}{spares}"


def _load(load: PodLoad) -> str:
    return "" if load == NO_LOAD else f"{load.cpu_milli}m-{load.memory}B"
