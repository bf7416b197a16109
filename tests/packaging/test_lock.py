"""The lock file answers for pyproject.toml: every requirement, at an allowed version, with hashes, and no host."""

import re
import tomllib
from itertools import chain

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.console import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# One entry is a pin, perhaps a marker, and the hashes on the lines after it.
ENTRIES = re.findall(
    r"^(\S.*==.*?)(?: \\)?$((?:\n +--hash=\S+.*)*)", (ROOT / "requirements.lock").read_text(), re.MULTILINE
)
LOCKED = [(Requirement(pin), hashes.count("--hash=sha256:")) for pin, hashes in ENTRIES]


def versions(name: str) -> list[str]:
    """The locked versions of a package, more than one where they differ by Python version."""
    return [
        specifier.version
        for pin, _ in LOCKED
        if canonicalize_name(pin.name) == canonicalize_name(name)
        for specifier in pin.specifier
    ]


def test_every_requirement_is_locked_at_an_allowed_version() -> None:
    project = PYPROJECT["project"]
    extras = chain.from_iterable(project["optional-dependencies"].values())
    asked = [Requirement(text) for text in [*project["dependencies"], *extras, *PYPROJECT["dependency-groups"]["dev"]]]

    unmet = [
        str(requirement)
        for requirement in asked
        if not (found := versions(requirement.name)) or not all(map(requirement.specifier.contains, found))
    ]

    assert unmet == []


def test_every_entry_has_hashes() -> None:
    assert [str(pin) for pin, hashes in LOCKED if hashes == 0] == []


def test_lock_names_no_host() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert [line for line in lines if "://" in line or line.startswith("-")] == []
