"""Fleet: nodes, domains, and what may be used or paid for where (spec §2, §3.2).

A *site* is a set of nodes that the same selectors match and the same tolerations open: nothing in the model can tell
its nodes apart. Selectors that matter are those of envelopes, of use caps and of runs that wait.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobtree.world.naming.domains import Domain, domain_names
from jobtree.world.tables import values as col
from jobtree.world.tables.values import Bools, Ints

Selector = tuple[tuple[str, str], ...]
"""Sorted (label, value) pairs; value ``*`` is met by any value or none."""

Toleration = tuple[str | None, str | None, str | None, str | None]
"""(key, operator, value, effect) as in a pod template."""

ANY: Final = "*"
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True)
class Labels:
    """Node labels as one integer column per key: the code of the value, -1 where a node lacks the key."""

    columns: dict[str, npt.NDArray[np.int32]]
    codes: dict[str, int]
    count: int

    @classmethod
    def read(cls, nodes: pa.Table, keys: Iterable[str]) -> "Labels":
        """The columns of ``keys`` only: label sets are large, and most keys are in no selector."""
        asked = sorted(set(keys))
        array = nodes.column("labels").combine_chunks()
        count = len(array)
        lengths = np.diff(array.offsets.to_numpy())
        flat = array.flatten()
        kept = pc.is_in(flat.field("key"), value_set=pa.array(asked, flat.field("key").type))
        owner = np.repeat(np.arange(count), lengths)[kept.to_numpy(zero_copy_only=False)]
        flat = flat.filter(kept)
        names = pc.dictionary_encode(flat.field("key"))
        values = pc.dictionary_encode(flat.field("value"))
        name_codes = names.indices.to_numpy()
        value_codes = values.indices.to_numpy()
        key_of = {name: code for code, name in enumerate(names.dictionary.to_pylist())}
        columns = {}
        for key in asked:
            column = np.full(count, -1, dtype=np.int32)
            if key in key_of:
                here = name_codes == key_of[key]
                column[owner[here]] = value_codes[here]
            columns[key] = column
        return cls(columns, {value: code for code, value in enumerate(values.dictionary.to_pylist())}, count)

    def match(self, selector: Selector) -> Bools:
        """Mark nodes, (nodes,) bools, that have every label that ``selector`` asks for."""
        result = np.ones(self.count, dtype=np.bool_)
        for key, value in selector:
            if value != ANY:
                result &= self.columns[key] == self.codes.get(value, -2)
        return result


def _tolerates(toleration: Toleration, key: str, value: str, effect: str) -> bool:
    """The rule of Kubernetes: an empty key with Exists tolerates everything, an empty effect every effect."""
    its_key, operator, its_value, its_effect = toleration
    if its_effect and its_effect != effect:
        return False
    if (operator or "Equal") == "Exists":
        return not its_key or its_key == key
    return its_key == key and (its_value or "") == value


@dataclass(frozen=True)
class Access:
    """Demand of a run on nodes: flavor, labels, and the taints it tolerates; ``shuns``: labels of nodes to avoid."""

    flavor: str
    selector: Selector
    tolerations: tuple[Toleration, ...] = ()
    shuns: tuple[Selector, ...] = ()


@dataclass(frozen=True)
class Fleet:
    """The nodes as arrays, in name order.

    ``gpus``: allocatable; ``takes_work``: not cordoned, Ready, not being deleted, with a flavor; ``domain``: index into
    ``domains``; ``site``: index of the node's site, equal for nodes that no selector can tell apart.
    """

    names: list[str]
    uids: list[str]
    index: dict[str, int]
    flavor: list[str]
    gpus: Ints
    cpu_milli: Ints
    memory: Ints
    max_pods: Ints
    takes_work: Bools
    domain: Ints
    domains: list[Domain]
    site: Ints
    site_count: int
    _labels: Labels
    _taints: list[tuple[tuple[str, str, str], ...]]
    _first: Ints = field(repr=False)
    _sites: dict[Access, frozenset[int]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, nodes: pa.Table, selectors: Iterable[Selector], accesses: Sequence[Access]) -> "Fleet":
        """``selectors``: of envelopes; ``accesses``: of the runs that may be placed."""
        names = col.texts(nodes, "name")
        flavor = col.texts(nodes, "flavor")
        asked = {selector for access in accesses for selector in (access.selector, *access.shuns)}
        wanted = sorted(set(selectors) | asked)
        labels = Labels.read(nodes, (key for selector in wanted for key, _ in selector))
        taints = [
            tuple((str(k), str(v or ""), str(e)) for k, v, e in row if e in _REPELLING)
            for row in col.column(nodes, "taints")
        ]
        domain, domains = _domains(nodes, names)
        columns: list[npt.NDArray[np.generic]] = [
            np.unique(np.asarray(flavor, dtype=object).astype(str), return_inverse=True)[1]
        ]
        columns += [labels.match(selector) for selector in wanted]
        columns += [
            _open_to(tolerations, taints) for tolerations in sorted({a.tolerations for a in accesses}, key=repr)
        ]
        signature = np.stack([c.astype(np.int64) for c in columns], axis=1) if names else np.zeros((0, 1), np.int64)
        _, first, site = np.unique(signature, axis=0, return_index=True, return_inverse=True)
        ready = col.bools(nodes, "ready") & ~col.bools(nodes, "unschedulable") & ~col.bools(nodes, "deleting")
        return cls(
            names=names,
            uids=col.texts(nodes, "uid"),
            index={name: i for i, name in enumerate(names)},
            flavor=flavor,
            gpus=col.ints(nodes, "gpus"),
            cpu_milli=col.ints(nodes, "cpu_milli"),
            memory=col.ints(nodes, "memory"),
            max_pods=col.ints(nodes, "max_pods", null=110),
            takes_work=ready & ~col.bools(nodes, "out_of_service") & np.asarray([bool(f) for f in flavor], dtype=bool),
            domain=domain,
            domains=domains,
            site=np.asarray(site, dtype=np.int64).reshape(-1),
            site_count=len(first),
            _labels=labels,
            _taints=taints,
            _first=np.asarray(first, dtype=np.int64),
        )

    @cached_property
    def node_site(self) -> dict[str, int]:
        """Site by node name."""
        return dict(zip(self.names, self.site.tolist(), strict=True))

    def site_flavor(self, site: int) -> str:
        """The flavor of every node of ``site``."""
        return self.flavor[int(self._first[site])]

    def sites_matching(self, flavor: str | None, selector: Selector) -> frozenset[int]:
        """The sites whose nodes have this flavor (None: any) and these labels."""
        return frozenset(site for site in self._matching(selector) if flavor in (None, self.site_flavor(site)))

    def sites_for(self, access: Access) -> frozenset[int]:
        """The sites on whose nodes a run of ``access`` may be placed."""
        if access not in self._sites:
            self._sites[access] = self._open_sites(access)
        return self._sites[access]

    def nodes_on(self, sites: frozenset[int]) -> list[int]:
        """Nodes of these sites, ascending."""
        return np.flatnonzero(self.is_on(sites)).tolist()

    def is_on(self, sites: Collection[int]) -> Bools:
        """Does each node lie on one of these sites? (nodes,)"""
        return np.isin(self.site, sorted(sites))

    def _open_sites(self, access: Access) -> frozenset[int]:
        untainted = _open_to(access.tolerations, [self._taints[i] for i in self._first])
        shunned = {site for selector in access.shuns for site in self._matching(selector)}
        return frozenset(
            s for s in self.sites_matching(access.flavor, access.selector) if untainted[s] and s not in shunned
        )

    def _matching(self, selector: Selector) -> list[int]:
        matched = self._labels.match(selector)[self._first]
        return [site for site in range(self.site_count) if matched[site]]

    def domain_name(self, domain: int) -> str:
        """People's name for it: its label, or its node's name; where that is another's too, with region and cluster."""
        return self._domain_names[self.domains[domain]]

    @cached_property
    def _domain_names(self) -> dict[Domain, str]:
        return domain_names(self.domains)


def _open_to(tolerations: tuple[Toleration, ...], taints: Sequence[tuple[tuple[str, str, str], ...]]) -> Bools:
    known: dict[tuple[tuple[str, str, str], ...], bool] = {}
    for taint_set in taints:
        if taint_set not in known:
            known[taint_set] = all(any(_tolerates(t, *taint) for t in tolerations) for taint in taint_set)
    return np.asarray([known[taint_set] for taint_set in taints], dtype=np.bool_)


def _domains(nodes: pa.Table, names: list[str]) -> tuple[Ints, list[Domain]]:
    """A domain is the triple (region, cluster, domain label); without the label a node is its own (spec §2)."""
    texts = (col.texts(nodes, column) for column in ("region", "cluster", "domain"))
    keys = [
        Domain(region, cluster, label or name, not label)
        for region, cluster, label, name in zip(*texts, names, strict=True)
    ]
    ordered = sorted(set(keys))
    code = {key: i for i, key in enumerate(ordered)}
    return np.asarray([code[key] for key in keys], dtype=np.int64), ordered
