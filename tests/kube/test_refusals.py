"""The API server refuses what the models refuse, and takes what they take: both judge the very same objects.

The objects are those of the tests of the models, in their tables. What the server cannot know is named, and shown to be
taken by it, so that nothing is on that list for longer than it must.
"""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import urllib3

from jobtree.api import KINDS
from jobtree.api.crds.crds import RESOURCES
from jobtree.cluster.live import client
from tests.api import test_refusals_budget as budgets
from tests.api import test_refusals_other as others
from tests.api import test_refusals_run as runs
from tests.api import test_refusals_run_rules as rules
from tests.api import test_updates as updates
from tests.kube.access import MERGE, Person
from tests.kube.bench import tools
from tests.kube.bench.kube import Kube, Object
from tests.kube.live import Live, api, budget, run
from tests.support import documents as doc

APPLY: Final = "application/apply-patch+yaml"
CREATE: Final = "fieldValidation=Strict&dryRun=All&x="
STAMP: Final = "2026-01-01T00:00:00Z"

#: What only the models refuse, by the end of their sentence: sums over whole ledgers, and lengths of time compared.
MODELS_ONLY: Final = (
    "allowed is at most perRun.maxTime, 1h",
    "allowed is a time at or after what comes before it",
    "allowed is a time, since another segment follows",
    "allowed is a time at or after its from",
    "allowed is a duration of at most 36525d",
)
#: What no JSON can say, or what is another object's path on a server.
NO_JSON: Final = ("is NaN", "is Infinity", 'metadata.name is ""', "a key of spec")


def table(test: Any) -> list[Any]:
    """The values with which a test of the models is parametrized."""
    (mark,) = test.pytestmark
    return list(mark.args[1])


def _bad() -> Iterator[tuple[str, Object]]:
    """Sentences of the models, each with the object that it refuses."""
    train = doc.run("train", 128)
    for patch, sentence in [
        *table(runs.test_a_broken_field_is_refused_in_one_sentence),
        *table(rules.test_fields_that_disagree_are_refused_in_one_sentence),
    ]:
        yield sentence, doc.merge(train, patch)
    for name, more, sentence in table(runs.test_a_name_that_pods_cannot_bear_is_refused):
        yield sentence, doc.merge(doc.run(name, 128), more)
    for fields, sentence in table(budgets.test_a_broken_envelope_is_refused_in_one_sentence):
        yield sentence or "a key of spec", doc.budget("org:a", [{**doc.envelope(8), **fields}])
    east, west = doc.envelope(8, "east"), doc.envelope(8, "west", flavor="A100")
    for spec, sentence in table(budgets.test_a_broken_budget_is_refused_in_one_sentence):
        yield sentence, doc.budget("org:a", [east, west], **spec)
    yield "two envelopes of one name", doc.budget("org:a", [doc.envelope(8, "west"), doc.envelope(4, "west")])
    yield "no envelope", doc.budget("org:a", [])
    for patch, sentence in table(others.test_a_broken_lease_is_refused_in_one_sentence):
        yield sentence, doc.merge(others.LEASE, patch)
    yield "no place", doc.merge(others.RESERVATION, {"spec": {"intendedSlice": {"domain": None}}})
    for spec, sentence in table(others.test_a_broken_policy_is_refused_in_one_sentence):
        yield sentence, doc.policy(**spec)
    yield "another Policy", doc.merge(doc.policy(), {"metadata": {"name": "other"}})


def _good() -> Iterator[Object]:
    for patch in table(runs.test_what_a_run_may_say):
        yield doc.merge(doc.run("train", 128), patch)
    for patch in table(others.test_what_a_lease_may_say):
        yield doc.merge(others.LEASE, patch)
    yield from (others.RESERVATION, doc.policy())


@pytest.fixture
def admin(thin_kube: Kube, monkeypatch: pytest.MonkeyPatch) -> Person:
    once = urllib3.Retry(total=0, raise_on_status=False)  # a 500 that is an answer would be asked for six times
    monkeypatch.setattr(client, "_retries", lambda _: once)
    thin_kube.namespace("team")
    return Person(api(thin_kube))


def place(document: Object) -> str:
    """The path of all objects of its kind, in its namespace."""
    kind = document["kind"]
    namespace = document["metadata"].get("namespace") or "default"
    within = f"/namespaces/{namespace}" if KINDS[kind].NAMESPACED else ""
    return f"/apis/{doc.API}{within}/{RESOURCES[kind].plural}"


def stated(document: Object) -> Object:
    """The object as a person sends it."""
    meta = {key: value for key, value in document["metadata"].items() if key in {"name", "namespace"}}
    if KINDS[document["kind"]].NAMESPACED:
        meta.setdefault("namespace", "default")
    return {**{key: value for key, value in document.items() if key != "status"}, "metadata": meta}


def judged(admin: Person, document: Object) -> list[tuple[int, str]]:
    """What the server says to a create and to an apply; of an object with a status, to that of its status."""
    body, where = stated(document), place(document)
    name = body["metadata"]["name"]
    if document.get("status"):
        admin.tries("POST", where, body)
        given = {"status": document["status"]}
        return [admin.tries("PATCH", f"{where}/{name}/status?dryRun=All&x=", given, kind=MERGE)]
    return [
        admin.tries("POST", f"{where}?{CREATE}", body),
        admin.tries("PATCH", f"{where}/{name}?fieldManager=test&force=true&{CREATE}", body, kind=APPLY),
    ]


def test_the_server_refuses_what_the_models_refuse(admin: Person) -> None:
    bad = [(sentence, each) for sentence, each in _bad() if not any(word in sentence for word in NO_JSON)]
    told = [(sentence, [status for status, _ in judged(admin, each)]) for sentence, each in bad]
    taken = [sentence for sentence, statuses in told if 200 in statuses]
    assert taken == [sentence for sentence, _ in bad if sentence.endswith(MODELS_ONLY)]
    # 500: an apply that has an entry of a set twice.
    assert {status for sentence, found in told if sentence not in taken for status in found} <= {400, 422, 500}
    assert len(bad) > 100


def test_the_server_takes_what_the_models_take(admin: Person) -> None:
    good = list(_good())
    told = [(each["kind"], each["metadata"]["name"], judged(admin, each)) for each in good]
    assert [each for each in told if any(status != 200 for status, _ in each[2])] == []
    assert {each["kind"] for each in good} == {"Run", "Lease", "Reservation", "Policy"}


def test_what_a_run_may_not_become_is_refused_by_the_server(admin: Person) -> None:
    where = f"{place(updates.RUN)}/train"
    assert admin.tries("POST", place(updates.RUN), stated(updates.RUN))[0] == 200
    *allowed, written_out = table(updates.test_what_may_change_of_a_run)
    assert (
        admin.tries("PATCH", where, {"spec": written_out}, kind=MERGE)[0] == 422
    )  # a default is a field like any other
    for patch in allowed:
        assert admin.tries("PATCH", f"{where}?dryRun=All&x=", {"spec": patch}, kind=MERGE) == (200, "")
    refused = [patch for patch, _ in table(updates.test_a_submitted_run_keeps_its_spec)]
    for patch in refused:
        assert admin.tries("PATCH", where, {"spec": patch}, kind=MERGE)[0] == 422, patch
        whole = doc.merge(stated(updates.RUN), {"spec": patch})
        assert admin.tries("PATCH", f"{where}?fieldManager=test&force=true&x=", whole, kind=APPLY)[0] in {200, 422}
    assert admin.tries("PATCH", where, {"spec": None}, kind=MERGE)[0] == 422
    assert admin.tries("PATCH", where, {"spec": {"state": "Cancelled"}}, kind=MERGE)[0] == 200
    for state in ("Active", "Suspended", None):
        status, said = admin.tries("PATCH", where, {"spec": {"state": state}}, kind=MERGE)
        assert (status, "Cancelled is final" in said) == (422, True)


def test_facts_and_promises_do_not_change_on_the_server(admin: Person) -> None:
    changes: list[tuple[Object, Object]] = [
        (others.LEASE, {"paidBy": {"envelope": "other"}}),
        (others.RESERVATION, {"earliestStart": "2026-01-01T00:20:00Z"}),
    ]
    for document, patch in changes:
        where = f"{place(document)}/{document['metadata']['name']}"
        assert admin.tries("POST", place(document), stated(document))[0] == 200
        for change in (patch, None):
            assert admin.tries("PATCH", where, {"spec": change}, kind=MERGE)[0] == 422
    status = f"{place(others.LEASE)}/r-g0-0/status"
    assert admin.tries("PATCH", status, {"status": others.CLOSED}, kind=MERGE) == (200, "")
    reopened: list[Object | None] = [None, {"closed": False}, {"closureReason": "Failed"}, {"ended": STAMP}]
    for end in reopened:
        assert admin.tries("PATCH", status, {"status": end}, kind=MERGE)[0] == 422


COLUMNS: Final = {
    "budgets": "NAME OWNER GPUS HEADROOM HEALTHY AGE",
    "runs": "NAME OWNER FLAVOR GPUS PHASE WIDTH START ETA AGE",
    "reservations": "NAME RUN STATE START DEFICIT AGE",
    "gl": "NAME RUN GROUP ROLE BUDGET ENVELOPE START ENDED REASON AGE",
    "plans": "NAME AT PHASE STARTED WAITING CLOSED TRUNCATED AGE",
}


@pytest.mark.parametrize("name", COLUMNS)
def test_kubectl_get_shows_what_people_look_for(thin_kube: Kube, name: str) -> None:
    thin_kube.nodes(1)
    thin_kube.create(budget("org:a", 8), run("r", 8), run("waits", 8))
    with tempfile.TemporaryDirectory() as folder:
        Live(thin_kube, Path(folder)).cycle()
    if name == "reservations":
        thin_kube.create(doc.merge(others.RESERVATION, {"metadata": {"namespace": "default"}}))
    command = [str(tools.find()["kubectl"]), "--kubeconfig", str(thin_kube.kubeconfig()), "get", name]
    header, *rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert header.split() == COLUMNS[name].split()
    assert rows
