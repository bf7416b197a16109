"""What is read of a live cluster: everything at one revision, or nothing."""

import time

import pytest

from jobtree.api import Refusal
from jobtree.cluster.live import lists
from jobtree.cluster.live.cluster import LiveCluster
from tests.kube.bench.kube import Kube
from tests.kube.bench.proxy import proxy
from tests.kube.live import api, budget, run


def test_everything_is_read_in_pages_at_one_revision(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "PAGE", 2)
    kube.nodes(5)
    kube.create(budget("org:a", 8), *(run(f"r{number}", 4) for number in range(5)))

    read = LiveCluster(api(kube), int(time.time())).read()

    assert [node.metadata.name for node in read.nodes] == [f"n{number}" for number in range(1, 6)]
    assert [each.name for each in read.runs] == [f"r{number}" for number in range(5)]
    assert [each.name for each in read.budgets] == ["org-a"]
    assert read.quarantined == ()


def test_what_changes_while_pages_are_read_is_not_seen(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "PAGE", 2)
    kube.create(*(run(f"r{number}", 4) for number in range(4)))
    way = api(kube)
    pages: list[str] = []
    get = way.get

    def disturbed(path: str, **query: str | int) -> bytes:
        if path.endswith("/runs"):
            pages.append(path)
            kube.create(run(f"late{len(pages)}", 4))
        return get(path, **query)

    monkeypatch.setattr(way, "get", disturbed)
    read = LiveCluster(way, int(time.time())).read()

    assert [each.name for each in read.runs] == ["r0", "r1", "r2", "r3"]
    assert len(pages) == 2


def test_a_list_that_cannot_be_had_whole_is_refused(kube: Kube) -> None:
    with proxy(kube.url, kube.processes.ca) as before:
        way = api(kube, url=before.url)
        LiveCluster(way, 0).read()
        before.crashed = True
        with pytest.raises(Refusal, match="does not answer"):
            LiveCluster(way, 0).read()


def test_people_without_rights_are_told_which(kube: Kube) -> None:
    with pytest.raises(Refusal, match=r'"alice" cannot list resource "runs" .* in the namespace "default"; say -n'):
        LiveCluster(api(kube, token="alice"), 0).read()


def test_a_wrong_token_is_told(kube: Kube) -> None:
    with pytest.raises(Refusal, match="does not know who you are"):
        LiveCluster(api(kube, token="nobody"), 0).read()
