"""How many calls a cycle makes: one for each thing that it begins."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobtree.cluster.live.client import Api
from tests.kube.bench.kube import Kube
from tests.kube.live import Live, budget, open_leases, run


def test_a_lease_and_its_ledger_are_one_call(thin_kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, str]] = []

    class Counted(Api):
        def call(self, method: str, path: str, body: Any = None, **options: Any) -> bytes:
            made.append((method, path.partition("?")[0]))
            return super().call(method, path, body, **options)

    monkeypatch.setattr("tests.kube.live.Api", Counted)
    thin_kube.nodes(3)
    thin_kube.create(budget("org:a", 24), run("r", 24, resources={"gpusPerPod": 8}))

    Live(thin_kube, tmp_path / "lake").cycle()

    calls = Counter(method for method, path in made if "/gpuleases" in path)
    assert calls == {"POST": 3}
    leases = open_leases(thin_kube)
    assert [each["apiVersion"] for each in leases] == ["rq.davidlangworthy.io/v1"] * 3
    assert [each["status"]["funding"][0]["class"] for each in leases] == ["owned"] * 3
