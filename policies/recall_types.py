"""Near payments told apart by type as far as it matters, where a model (beyond ``recall_flows.FINE`` types) does not.

There a start may recall by what lies elsewhere, of another type. A near payment that a relaxation makes use of gets a
part for each type that may lie in its cell, and the parts the rows that near payments of smaller models have:

    near(rights, envelope, cell) = Σ_types part(rights, envelope, cell, type)
    Σ_envelopes, cells part(rights, envelope, cell, type) ≤ what starts of the type with these rights
    Σ_rights, envelopes part(rights, envelope, cell in a region, type) ≤ what lies of the type in the region

Every plan has such parts, whichever payments are told apart: a bound stays one of every plan. With all told apart the
relaxation is that of the model that tells types apart.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from typing import Self

from policies.model import INF, Model, More
from policies.payments import Terms
from policies.recall_flows import Near


class Parts:
    """The near payments of a model that are told apart so far. ``columns``, ``rows``: how many the model itself has."""

    def __init__(self, near: Near, columns: int, rows: int) -> None:
        self._near = near
        self._columns, self._rows = count(columns), count(rows)
        self._apart: set[int] = set()
        self._starts: dict[tuple[int, int], int] = {}
        self._lies: dict[tuple[int, int], int] = {}

    @classmethod
    def after(cls, model: Model, near: Near | None) -> Self | None:
        """None told apart yet; nothing (None) where no payment recalls, or the model tells all types apart."""
        return None if near is None or near.network.fine else cls(near, len(model.cost), len(model.row_lower))

    @property
    def together(self) -> list[int]:
        """Near payments that are not told apart."""
        return [column for column in self._near.key if column not in self._apart]

    def of(self, payments: Iterable[int]) -> More:
        """What tells these near payments apart, which are not yet."""
        near, more = self._near, More([], [])
        starts: dict[tuple[int, int], Terms] = defaultdict(list)
        lies: dict[tuple[int, int], Terms] = defaultdict(list)
        for column in payments:
            number, _, cell = near.key[column]
            gpus = near.unit[number] / 1000
            parts: Terms = []
            for kind in near.types[number][cell]:
                part = next(self._columns)
                parts.append((part, -1.0))
                rows = (self._starts, starts, (kind, number)), (self._lies, lies, (kind, cell.region))
                more.columns.append([(known[key], gpus) for known, _, key in rows if key in known])
                for known, fresh, key in rows:
                    if key not in known:
                        fresh[key].append((part, gpus))
            more.rows.append(([(column, 1.0), *parts], 0.0, 0.0))
            next(self._rows)
            self._apart.add(column)
        for known, fresh, most in ((self._starts, starts, near.started), (self._lies, lies, near.lying)):
            for key, terms in fresh.items():
                known[key] = next(self._rows)
                more.rows.append(([*terms, *most(*key)], -INF, 0.0))
        return more
