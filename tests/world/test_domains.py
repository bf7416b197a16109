"""Names of domains, which are triples (region, cluster, label): short, and each of one domain alone (spec §2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.world.naming.domains import Domain, domain_names

PARTS = st.sampled_from(["", "a", "b"])
DOMAINS = st.lists(st.builds(Domain, PARTS, PARTS, st.sampled_from(["a", "b", "c"]), st.booleans()), max_size=12)


@pytest.mark.parametrize(
    ("domains", "names"),
    [
        ([("w", "c1", "A", False), ("w", "c1", "B", False), ("e", "c1", "n1", True)], ["A", "B", "n1"]),
        ([("w", "c1", "A", False), ("e", "c1", "A", False), ("e", "c1", "B", False)], ["w/c1/A", "e/c1/A", "B"]),
        ([("", "c1", "A", False), ("", "c2", "A", False), ("", "", "A", False)], ["c1/A", "c2/A", "A"]),
        ([("x", "", "A", False), ("", "x", "A", False), ("y", "", "A", False)], ["x//A", "/x/A", "y/A"]),
        ([("w", "c1", "n1", False), ("w", "c1", "n1", True)], ["w/c1/n1", "w/c1/node:n1"]),
    ],
    ids=["labels", "regions", "clusters", "which part is missing", "a node called as a domain"],
)  # fmt: skip
def test_names_are_as_long_as_it_takes(domains: list[tuple[str, str, str, bool]], names: list[str]) -> None:
    given = [Domain(*each) for each in domains]
    assert domain_names(given) == dict(zip(given, names, strict=True))


@given(DOMAINS)
def test_no_two_domains_have_one_name(domains: list[Domain]) -> None:
    names = domain_names(domains)
    assert set(names) == set(domains)
    assert len(set(names.values())) == len(names)
