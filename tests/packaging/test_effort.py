"""One number says how much every property test does."""

import pytest

from tests.support.effort import effort


@pytest.mark.parametrize(
    ("said", "in_ci", "share"),
    [(None, False, 0.1), ("", False, 0.1), (None, True, 1.0), ("100", True, 100.0), ("0.01", True, 0.01)],
)
def test_it_is_said_or_all_of_it_in_ci_and_a_tenth_elsewhere(said: str | None, in_ci: bool, share: float) -> None:
    assert effort(said, in_ci=in_ci) == share


@pytest.mark.parametrize("said", ["much", "0", "-1", "inf", "nan"])
def test_what_is_no_share_is_refused(said: str) -> None:
    with pytest.raises(ValueError, match=f"JOBTREE_EFFORT is {said}; it is a number above 0, such as 0.2, 1 or 100"):
        effort(said, in_ci=False)
