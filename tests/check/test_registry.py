"""Every rule that the checker knows is told in one sentence and is broken by some spoil."""

from jobtree.check import INVARIANTS
from tests.check import (
    test_spoilt_arrays,
    test_spoilt_caps,
    test_spoilt_cuts,
    test_spoilt_ends,
    test_spoilt_gangs,
    test_spoilt_ledger,
    test_spoilt_lives,
    test_spoilt_nodes,
    test_spoilt_payers,
    test_spoilt_plans,
    test_spoilt_promises,
    test_spoilt_slots,
    test_spoilt_starts,
    test_spoilt_statuses,
    test_spoilt_usage,
)

TABLES = (
    test_spoilt_arrays, test_spoilt_caps, test_spoilt_cuts, test_spoilt_ends, test_spoilt_gangs, test_spoilt_ledger,
    test_spoilt_lives,
    test_spoilt_nodes, test_spoilt_payers, test_spoilt_plans, test_spoilt_promises, test_spoilt_slots,
    test_spoilt_starts, test_spoilt_statuses, test_spoilt_usage,
)  # fmt: skip


def test_every_rule_is_broken_by_a_spoil_and_no_other_is() -> None:
    broken = {name for table in TABLES for spoil in table.SPOILS for name in spoil.wanted}
    assert broken == set(INVARIANTS)


def test_every_rule_is_told_in_one_sentence() -> None:
    assert [name for name, meaning in INVARIANTS.items() if not meaning.endswith(".") or ". " in meaning] == []
