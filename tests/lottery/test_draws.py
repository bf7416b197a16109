"""The lottery: fair, the same for whoever computes it, and verifiable from the page (spec §6)."""

# ruff: noqa: N802  the tests are called by the ids of their cases

import json
import math
import re
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api.kinds.plan import Draw, Lottery, PoolOwner
from jobtree.api.values.scalars import OwnerPath, Time, enc_hook
from jobtree.check.time.lottery import recompute
from policies.cuts import lottery
from policies.cuts.lottery import Pool, Token

ORIGIN = "5f" * 32
LENGTH = 4200
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
START = 1_767_226_500

tokens = st.builds(Token, st.sampled_from(["a", "b-c"]), st.sampled_from(["r", "r-10", "r2"]), st.integers(0, 12))
pools = st.dictionaries(st.sampled_from(["org:a", "org:a:b", "org:B", "z"]), st.sets(tokens, min_size=1), min_size=1)


def pool_of(owners: dict[str, set[Token]]) -> Pool:
    return {owner: tuple(mine) for owner, mine in owners.items()}


def drawn(owners: dict[str, set[Token]], needed: int, position: int = 7) -> Lottery:
    """The published record of draws of ``needed`` tokens."""
    secret = lottery.secret_at(ORIGIN, position, LENGTH)
    seed = lottery.seed_of(secret, UID, START)

    def left(picked: tuple[Token, ...]) -> Pool:
        if len(picked) == needed:
            return {}
        return {owner: tuple(mine - {*picked}) for owner, mine in owners.items()}

    picks = lottery.draw(seed, left)
    return Lottery(
        position=position,
        secret=secret,
        draws=(
            Draw(
                reservation="team/w-1",
                uid=UID,
                earliest_start=Time(START),
                seed=seed,
                pools=tuple(
                    tuple(
                        PoolOwner(owner=OwnerPath(o), tokens=tuple(map(str, t))) for o, t in lottery.ordered(each.pool)
                    )
                    for each in picks
                ),
                picks=tuple(str(each.token) for each in picks),
            ),
        ),
    )


@given(pools, st.integers(1, 3))
def test_the_checker_draws_the_same(owners: dict[str, set[Token]], needed: int) -> None:
    steps = [*recompute(drawn(owners, needed), lottery.secret_at(ORIGIN, 0, LENGTH))]
    assert [step for step in steps if not step.holds] == []
    assert steps[0].published == lottery.secret_at(ORIGIN, 0, LENGTH)


@given(pools, st.randoms(use_true_random=False))
def test_X4_the_order_in_which_a_pool_is_listed_is_no_matter(owners: dict[str, set[Token]], random: object) -> None:
    words = [lottery.Words("ab" * 32) for _ in range(2)]
    listed = {owner: tuple(sorted(mine)) for owner, mine in sorted(owners.items())}
    other = {owner: tuple(sorted(mine, reverse=True)) for owner, mine in sorted(owners.items(), reverse=True)}
    assert lottery.pick(listed, words[0]) == lottery.pick(other, words[1])


def test_X5_owners_are_drawn_alike_however_many_runs_they_have() -> None:
    pool = pool_of({"org:p": {Token("d", "p", 0)}, "org:q": {Token("d", f"q{i}", 0) for i in range(9)}})
    secret, picked = ORIGIN, Counter[str]()
    for _ in range(4000):
        secret = sha256(bytes.fromhex(secret)).hexdigest()
        picked[lottery.pick(pool, lottery.Words(lottery.seed_of(secret, UID, START))).run] += 1
    assert abs(picked["p"] - 2000) < 4 * math.sqrt(4000 / 4)
    assert all(abs(picked[f"q{i}"] - 2000 / 9) < 4 * math.sqrt(4000 / 18 * 17 / 18) for i in range(9))


def test_groups_sort_as_numbers() -> None:
    assert sorted([Token("d", "r", 10), Token("d", "r", 9)]) == [Token("d", "r", 9), Token("d", "r", 10)]


def test_the_chain_hashes_back_to_its_anchor() -> None:
    secret = lottery.secret_at(ORIGIN, 3, 5)
    for _ in range(3):
        secret = sha256(bytes.fromhex(secret)).hexdigest()
    assert secret == lottery.secret_at(ORIGIN, 0, 5)


def test_a_changed_secret_is_found() -> None:
    record = drawn({"org:p": {Token("d", "p", 0)}, "org:q": {Token("d", "q", 0)}}, 1)
    forged = msgspec.structs.replace(record, secret="0" + record.secret[1:])
    assert not all(step.holds for step in recompute(forged, lottery.secret_at(ORIGIN, 0, LENGTH)))


def test_the_program_on_the_page_verifies_a_plan_and_finds_a_changed_byte(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/verify-lottery.md").read_text()
    (tmp_path / "verify.py").write_text(re.findall(r"```python verify.py\n(.*?)```", page, re.DOTALL)[0])
    record = drawn({"org:p": {Token("d", "p", 0)}, "org:q": {Token("d", f"q{i}", 0) for i in range(9)}}, 2)
    (tmp_path / "anchor.json").write_text(json.dumps({"data": {"anchor": lottery.secret_at(ORIGIN, 0, LENGTH)}}))

    def run(published: Lottery) -> tuple[int, str]:
        plan = msgspec.json.encode({"status": {"lottery": published}}, enc_hook=enc_hook)
        (tmp_path / "plan.json").write_bytes(plan)
        done = subprocess.run(
            [sys.executable, "verify.py", "plan.json", "anchor.json"],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    assert run(record) == (0, "".join(f"team/w-1: {token}\n" for token in record.draws[0].picks))
    assert run(msgspec.structs.replace(record, secret="0" + record.secret[1:]))[0] == 1
