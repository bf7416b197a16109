"""Intake: the decoded objects of a cluster at one revision; what is broken is set aside and named (spec §2).

One bad object never stops anything: it is quarantined with the sentence that says why, and the rest is used. Only a
broken Policy refuses the whole, since nothing may be planned by other rules than the ones that were meant.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import is_
from typing import Any, Final, NamedTuple

import msgspec

from jobtree.api import (
    API_VERSION,
    GROUP,
    KINDS,
    Budget,
    Lease,
    Plan,
    Policy,
    Refusal,
    Reservation,
    Run,
    Time,
    decode,
)
from jobtree.api.kinds.core import Node, Pod
from jobtree.api.kinds.meta import name_of
from jobtree.api.kinds.policy import POLICY_NAME
from jobtree.api.rules.kinds import check_node, check_object, set_problems
from jobtree.api.values.errors import missing, wrong
from jobtree.world.collector import collector_paused
from jobtree.world.kept import kept
from jobtree.world.memory import balances, seen
from jobtree.world.memory.balances import Part
from jobtree.world.naming import annotations, config_maps, needs
from jobtree.world.naming.config_maps import ConfigMap
from jobtree.world.reading import holdings, leases, unread
from jobtree.world.reading.lost import lost
from jobtree.world.reading.unread import UnreadLease

_ALIVE: Final = frozenset({"Node", "Pod"})
"""Kinds whose kubelets write signs of life into them, which nobody reads: as long as that is all, they are the same."""
CONFIG_MAPS: Final = frozenset({"jobtree-lottery", seen.RECORD})
"""Names of the ConfigMaps that a cycle reads (spec §3.6, §6), beside the parts of the balances."""

_CORE: Final = frozenset({"Node", "Pod", "ConfigMap"})
_NAMESPACED: Final = frozenset(
    {"Pod", "ConfigMap", "Secret", *(name for name, kind in KINDS.items() if kind.NAMESPACED)}
)
_MEANT: Final = {name.lower(): name for name in (*KINDS, "Node", "Pod")}
"""What a document may be meant to be whose apiVersion or spelling says otherwise: nothing else in the core group."""
_CLUSTER_SCOPED: Final = frozenset({"Node", *(name for name, kind in KINDS.items() if not kind.NAMESPACED)})


class Key(NamedTuple):
    """Key of an object. ``group`` is the API group, empty for Kubernetes' own core kinds."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return name_of(self.kind, self.namespace, self.name)


POLICY: Final = Key(GROUP, "Policy", "", POLICY_NAME)


def key_of(api_version: str, kind: str, namespace: str, name: str) -> Key:
    """The key of an object as written: `default` where a namespaced kind states no namespace, none for a global one."""
    group = api_version.rpartition("/")[0]
    if group in ("", GROUP):
        if kind in _NAMESPACED:
            namespace = namespace or "default"
        elif kind in _CLUSTER_SCOPED:
            namespace = ""
    return Key(group, kind, namespace, name)


def is_read(key: Key) -> bool:
    """Whether a cycle reads objects of this key: all of our group, Nodes, Pods and some ConfigMaps.

    It also reads what has one of these kinds but the apiVersion of Kubernetes' core, or none: to say so.
    """
    if key.group == GROUP:
        return True
    if key.group == "":
        if key.kind == "ConfigMap":
            return key.name in CONFIG_MAPS or balances.number_of(*key[2:]) is not None
        return key.kind.lower() in _MEANT
    return False


class Notice(NamedTuple):
    """An object and one sentence about it. ``told_by``: the object whose sentence this is, where that is another."""

    kind: str
    namespace: str
    name: str
    message: str
    told_by: str = ""

    @property
    def subject(self) -> str:
        """``Run default/r``, or ``Budget org-a`` where there is no namespace."""
        return name_of(self.kind, self.namespace, self.name)


@dataclass(frozen=True, kw_only=True)
class Intake:
    """Everything that a cycle reads. Each tuple is sorted by namespace and name, whatever order the objects came in.

    ``revision`` identifies the state that was read; ``quarantined`` are objects that cannot be used (absent from the
    other fields but ``unread``, open Leases among them), ``warnings`` are about objects that are used. ``namespace`` is
    that of who reads and names none; ``hidden`` says in words what they may not read: nothing is planned without that.
    """

    revision: str
    namespace: str = "default"
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    budgets: tuple[Budget, ...] = ()
    runs: tuple[Run, ...] = ()
    leases: tuple[Lease, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    plans: tuple[Plan, ...] = ()
    policy: Policy | None = None
    config_maps: tuple[ConfigMap, ...] = ()
    quarantined: tuple[Notice, ...] = ()
    unread: tuple[UnreadLease, ...] = ()
    warnings: tuple[Notice, ...] = ()
    hidden: tuple[str, ...] = ()

    def config_map(self, name: str) -> dict[str, str] | None:
        """The data of the planner's ConfigMap of that name, None where it is not there."""
        found = (each.data for each in self.config_maps if (each.namespace, each.name) == (seen.NAMESPACE, name))
        return next(found, None)

    @cached_property
    def balances(self) -> Mapping[int, Part]:
        """Charges of pruned leases: the parts of the record that are there and can be read, by number."""
        return _parts(*(each for each in self.config_maps if _number(each) is not None))

    @property
    def last_cycle(self) -> Time | None:
        """The time of the last Plan that was carried out, None where none was."""
        plan = seen.last_plan(self.plans)
        return None if plan is None else plan.spec.at

    def refuse_past(self, at: int, what: str = "this one is") -> None:
        """Raises Refusal where a plan for a later second was carried out already: time never goes back."""
        if self.last_cycle is not None and at < self.last_cycle:
            raise Refusal(
                f"a plan for {self.last_cycle} was carried out already, and {what} for {Time(at)}; "
                "time only goes forward: say a later --at"
            )

    @cached_property
    def last_seen(self) -> seen.Seen | None:
        """Money as the last cycle saw it; None where there was no cycle, or its record is lost."""
        return seen.of(seen.last_plan(self.plans), self.config_map(seen.RECORD))

    @property
    def last_world(self) -> seen.World | None:
        """World that the last cycle was given, and since when it has been that."""
        return seen.last_world(self.plans)


def _number(found: ConfigMap) -> int | None:
    return balances.number_of(found.namespace, found.name)


@kept
def _parts(*found: ConfigMap) -> Mapping[int, Part]:
    """They grow as long as a cluster is there, and change once in many cycles."""
    parts = {number: each.data for each in found if (number := _number(each)) is not None}
    return {number: balances.of(parts[number]) for number in sorted(parts)}


class Known:
    """Objects that the last intake made of each document.

    That follows from the document's JSON and the Policy's resource names alone, so the next intake takes it as it is
    where both are still the same. What a Lease that contradicts itself is read as depends on the time too. Where all
    objects of a kind are those of before, so is their tuple: what follows from it is `kept`.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._made: dict[Key, _Made] = {}
        self._kinds: dict[str, tuple[Any, ...]] = {}

    def of(self, names: tuple[str, ...]) -> "dict[Key, _Made]":
        """Objects that hold under these resource names."""
        return self._made if names == self._names else {}

    def policy(self) -> "dict[Key, _Made]":
        """Policy as made, which says the resource names."""
        return {key: made for key, made in self._made.items() if key == POLICY}

    def keep(self, names: tuple[str, ...], made: "dict[Key, _Made]") -> None:
        """Remembers this in place of all before."""
        self._names, self._made = names, made

    def all_of(self, kind: str, found: Iterable[Any]) -> tuple[Any, ...]:
        """The objects of a kind; the tuple of before where it has the very same ones."""
        now, before = tuple(found), self._kinds.get(kind, ())
        self._kinds[kind] = before if len(now) == len(before) and all(map(is_, now, before)) else now
        return self._kinds[kind]


def intake(
    objects: Iterable[tuple[Key, bytes | msgspec.Raw]], revision: str, known: Known | None = None, at: int | None = None
) -> Intake:
    """Decodes objects given as (key, JSON). Keys are unique; those that `is_read` does not know are passed over.

    ``known``: of the intake before, if there was one; it is brought up to date. ``at``: Unix second after which no
    ledger can know anything, where there is one. Raises Refusal for a broken Policy.
    """
    known = known or Known()
    with collector_paused():
        reading = _Reading(revision, at, known)
        others = []
        for key, raw in sorted(objects, key=lambda pair: pair[0]):
            if key.group == GROUP and key.kind == "Policy":  # what a resource or label means is the Policy's to say
                reading.take(key, raw, known.policy())
            else:
                others.append((key, raw))
        names = reading.resource_names = (reading.policy() or Policy()).spec.resource_names
        before = known.of(names)
        for key, raw in others:
            reading.take(key, raw, before)
        known.keep(names, reading.made)
        return reading.done()


class _Made(NamedTuple):
    """The object that a document's JSON says, with sentences about it."""

    raw: bytes | msgspec.Raw
    item: Any
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _Reading:
    """An Intake that is being filled; ``made``: of each document that can be used; ``resource_names``: the Policy's."""

    revision: str
    at: int | None
    known: Known
    resource_names: tuple[str, ...] = ()
    made: dict[Key, _Made] = field(default_factory=dict)
    found: dict[str, dict[Key, Any]] = field(
        default_factory=lambda: {kind: {} for kind in (*KINDS, "Node", "Pod", "ConfigMap")}
    )
    quarantined: dict[Key, str] = field(default_factory=dict)
    told_by: dict[Key, str] = field(default_factory=dict)
    unread: list[UnreadLease] = field(default_factory=list)
    warnings: list[Notice] = field(default_factory=list)

    def policy(self) -> Policy | None:
        """The Policy, where one could be read."""
        found: Policy | None = self.found["Policy"].get(POLICY)
        return found

    def take(self, key: Key, raw: bytes | msgspec.Raw, before: Mapping[Key, _Made]) -> None:
        """Read a document, or take over what was made of it ``before``; one that cannot be read is quarantined.

        Raises Refusal where that is the Policy.
        """
        if not is_read(key):
            return
        made = old = before.get(key)
        if made is None or (made.raw is not raw and made.raw != raw) or (key.kind == "Lease" and made.warnings):
            try:
                made = self._decode(key, raw)
                if key.kind in _ALIVE and old is not None and old.item == made.item:
                    made = made._replace(item=old.item)
            except Refusal as refusal:
                if key.kind.lower() == "policy" and key.name == POLICY_NAME:
                    raise refusal if refusal.subject else refusal.about(str(key)) from None
                self._quarantine(key, raw, refusal)
                return
        self.made[key] = made
        self.found[key.kind][key] = made.item
        if made.warnings:
            self._warn(key, made.warnings)

    def _quarantine(self, key: Key, raw: bytes | msgspec.Raw, refusal: Refusal) -> None:
        self.quarantined[key] = refusal.problem
        if key.group == GROUP and key.kind == "Lease":
            told = unread.of(key.namespace, key.name, raw)
            self.quarantined[key] = unread.sentence(refusal, told)
            self.unread += [told] if told else []

    def _decode(self, key: Key, raw: bytes | msgspec.Raw) -> _Made:
        kind = key.kind
        if key.group == GROUP and kind not in KINDS:
            raise Refusal(f"{kind} is not a kind of {GROUP}; allowed are {', '.join(sorted(KINDS))}")
        if key.group == "" and kind not in _CORE:
            raise _misnamed(kind, raw)
        if kind == "Policy" and key != POLICY:
            raise Refusal("only the Policy named default is read; rename this one or remove it")
        if kind == "ConfigMap":
            return _Made(raw, config_maps.read(key.namespace, key.name, raw), ())
        item, warnings = leases.read(raw, self.at) if kind == "Lease" else (decode(kind, raw), [])
        if isinstance(item, Node):
            check_node(item)
            needs.of_node(item, self.resource_names)
        elif isinstance(item, Pod):
            needs.of_pod(item.spec, self.resource_names)
        else:
            told = check_object(leases.as_begun(item) if isinstance(item, Lease) else item)
            warnings += [message.removeprefix(f"{key}: ") for message in told]
        if isinstance(item, Run):
            needs.of_template(item, self.resource_names)
            warnings += annotations.odd(item)
        return _Made(raw, item, tuple(warnings))

    def _warn(self, key: Key, messages: Iterable[str]) -> None:
        self.warnings.extend(Notice(*key[1:], message) for message in messages)

    def done(self) -> Intake:
        """Set aside what does not go together, and give the rest."""
        while problems := set_problems([*self.found["Budget"].values(), *self.found["Run"].values()]):
            for problem in problems:  # without one Budget another owner may have another parent, so look again
                self._set_aside(problem)
        self._set_indices_aside()
        maps = [key[2:] for key in (*self.found["ConfigMap"], *self.quarantined) if key.kind == "ConfigMap"]
        for name, message in lost(maps, self.found["Plan"].values()):
            self._warn(Key("", "ConfigMap", seen.NAMESPACE, name), [message])
        whole = {kind: self.known.all_of(kind, found.values()) for kind, found in self.found.items()}
        for each, message in holdings.odd(whole["Lease"], whole["Budget"], whole["Run"]):
            self._warn(Key(GROUP, each.kind, each.namespace, each.name), [message])
        if self.policy() is None and not self.found["Plan"]:  # said at the first cycle, which leaves a Plan
            self._warn(POLICY, ["there is none: the built-in defaults hold"])
        return Intake(
            revision=self.revision,
            nodes=whole["Node"],
            pods=whole["Pod"],
            budgets=whole["Budget"],
            runs=whole["Run"],
            leases=whole["Lease"],
            reservations=whole["Reservation"],
            plans=whole["Plan"],
            policy=self.policy(),
            config_maps=whole["ConfigMap"],
            quarantined=tuple(
                Notice(*key[1:], message, self.told_by.get(key, ""))
                for key, message in sorted(self.quarantined.items())
            ),
            unread=tuple(self.unread),
            warnings=tuple(sorted(self.warnings)),
        )

    def _set_indices_aside(self) -> None:
        """Indices of an array that cannot be used: what they hold stays as it is, as of any such run."""
        if not any(key.kind == "Run" for key in self.quarantined):
            return
        for lease in self.found["Lease"].values():
            array = Key(GROUP, "Run", lease.namespace, lease.spec.run_ref.name)
            key = Key(GROUP, "Run", *lease.run_key)
            if key != array and array in self.quarantined and not lease.status.closed and key not in self.found["Run"]:
                self.quarantined.setdefault(key, self.quarantined[array])
                self.told_by.setdefault(key, str(array))

    def _set_aside(self, refusal: Refusal) -> None:
        """Moves every member of a set that breaks a rule together into quarantine."""
        for subject in refusal.members:
            kind, _, path = subject.partition(" ")
            namespace, _, name = path.rpartition("/")
            key = Key(GROUP, kind, namespace, name)
            self.found[kind].pop(key, None)
            if key not in self.quarantined:
                self.quarantined[key] = refusal.problem
                self.told_by[key] = "" if subject == refusal.subject else refusal.subject


def _misnamed(kind: str, raw: bytes | msgspec.Raw) -> Refusal:
    """Of an object that Kubernetes' core would not know."""
    meant = _MEANT[kind.lower()]
    if meant not in KINDS:
        return wrong("kind", kind, meant)
    said = msgspec.json.decode(raw).get("apiVersion")
    return wrong("apiVersion", said, API_VERSION) if said else missing("apiVersion", API_VERSION)
