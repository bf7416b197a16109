"""What cycles of the cases plan stays as it is (see `tests.support.golden`)."""

from collections.abc import Iterator

import pytest

from tests.support import golden


@pytest.fixture(autouse=True)
def _plans_stay(request: pytest.FixtureRequest) -> Iterator[None]:
    with golden.case(f"cases/{request.path.stem}::{request.node.name}"):
        yield
