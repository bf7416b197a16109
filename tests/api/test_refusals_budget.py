"""What a Budget is refused for: the whole sentence, with field, given and allowed."""

from typing import Any

import pytest

from jobtree.api import Budget, Refusal, decode
from jobtree.api.rules.kinds import check_object
from tests.support import documents as doc

HOURS = "a number from 0 to 1000000000"

LABEL_VALUE = "a text of at most 63 letters, digits and -_. (* for any)"
NAMESPACE = "a namespace of at most 63 lower-case letters, digits and -, such as team-a"


def judge(*envelopes: doc.Document, **spec: Any) -> list[str]:
    """Reads and checks the Budget of org:a with these envelopes; returns its warnings."""
    budget = decode("Budget", doc.budget("org:a", list(envelopes), **spec))
    assert isinstance(budget, Budget)
    return check_object(budget)


def refusal(*envelopes: doc.Document, **spec: Any) -> str:
    with pytest.raises(Refusal) as caught:
        judge(*envelopes, **spec)
    return str(caught.value)


WINDOW = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"selector": {}},
            f"selector is an empty mapping; allowed is a mapping of 1 to 16 entries, each {LABEL_VALUE}",
        ),
        (
            {"selector": {"region": "*", "gpus": 8}},
            f"selector.gpus is 8; allowed is {LABEL_VALUE} (in quotes)",
        ),
        ({"selector": {8: "x"}}, None),
        ({"concurrency": 0}, "concurrency is 0; allowed is a whole number from 1 to 1000000"),
        ({"concurrency": "many"}, 'concurrency is "many"; allowed is a whole number from 1 to 1000000'),
        ({"maxGPUHours": -1}, f"maxGPUHours is -1; allowed is {HOURS}"),
        ({"maxGPUHours": float("nan")}, f"maxGPUHours is NaN; allowed is {HOURS}"),
        ({"maxCredits": float("inf")}, f"maxCredits is Infinity; allowed is {HOURS}"),
        ({"start": "tomorrow"}, 'start is "tomorrow"; allowed is a time such as 2025-11-01T14:05:00Z'),
        (
            {"start": "2026-02-30T00:00:00Z"},
            ('start is "2026-02-30T00:00:00Z"; allowed is a time such as 2025-11-01T14:05:00Z, one that there is'),
        ),
        (
            {**WINDOW, "end": WINDOW["start"]},
            ("end is 2026-01-01T00:00:00Z; allowed is a time after spec.envelopes[0].start, 2026-01-01T00:00:00Z"),
        ),
        ({**WINDOW, "maxGPUHours": 193}, "maxGPUHours is 193; allowed is at most concurrency × window, 192 GPU-hours"),
        (
            {**WINDOW, "maxGPUHours": 192.1},
            ("maxGPUHours is 192.1; allowed is at most concurrency × window, 192 GPU-hours"),
        ),
        ({"scope": "tree"}, 'scope is "tree"; allowed is one of own, subtree'),
        ({"sharing": "all"}, 'sharing is "all"; allowed is one of family, none'),
        ({"lending": {"allow": "yes"}}, 'lending.allow is "yes"; allowed is true or false'),
        (
            {"lending": {"to": ["org:b", "org b"]}},
            'lending.to[1] is "org b"; allowed is an owner, a prefix such as org:ai:* or *',
        ),
        ({"perRun": {"maxTime": "0s"}}, "perRun.maxTime is 0s; allowed is a duration above 0s, or leave it out"),
        (
            {"perRun": {"maxTime": "1h", "defaultTime": "2h"}},
            "perRun.defaultTime is 2h; allowed is at most perRun.maxTime, 1h",
        ),
    ],
)
def test_a_broken_envelope_is_refused_in_one_sentence(fields: doc.Document, sentence: str | None) -> None:
    expected = f"spec.envelopes[0].{sentence}"
    if sentence is None:  # a key that is no text has no path of its own
        expected = "a key of spec.envelopes[0].selector is 8; allowed is a text (in quotes)"
    assert refusal({**doc.envelope(8), **fields}) == f"Budget org-a: {expected}"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"aggregateCaps": [{"name": "all", "envelopes": ["east", "north"]}]},
            'spec.aggregateCaps[0].envelopes[1] is "north"; allowed is an envelope of this Budget: east, west',
        ),
        (
            {"aggregateCaps": [{"name": "all", "flavor": "H100-80GB", "envelopes": ["east", "west"]}]},
            (
                'spec.aggregateCaps[0].envelopes[1] is "west"; '
                "allowed is an envelope of flavor H100-80GB, and this one has A100"
            ),
        ),
        (
            {"aggregateCaps": [{"name": "all", "envelopes": ["east", "east"]}]},
            'spec.aggregateCaps[0].envelopes[1] is "east"; allowed is each envelope once, and it is listed twice',
        ),
        (
            {"aggregateCaps": [{"name": "all", "envelopes": ["east"]}, {"name": "all", "envelopes": ["west"]}]},
            'spec.aggregateCaps[1].name is "all"; allowed is a name that no other aggregate cap has',
        ),
        (
            {"parents": ["org:z", "org:a"]},
            'spec.parents[1] is "org:a"; allowed is another owner: nothing descends from itself',
        ),
        (
            {"namespaces": [""]},
            f'spec.namespaces[0] is ""; allowed is {NAMESPACE}',
        ),
    ],
)
def test_a_broken_budget_is_refused_in_one_sentence(spec: doc.Document, sentence: str) -> None:
    east, west = doc.envelope(8, "east"), doc.envelope(8, "west", flavor="A100")
    assert refusal(east, west, **spec) == f"Budget org-a: {sentence}"


def test_two_envelopes_of_one_name_are_refused() -> None:
    assert refusal(doc.envelope(8, "west"), doc.envelope(4, "west")) == (
        'Budget org-a: spec.envelopes[1].name is "west"; allowed is a name that spec.envelopes[0] has not taken'
    )


def test_a_budget_needs_an_envelope_or_a_use_cap() -> None:
    assert refusal() == (
        "Budget org-a: spec.envelopes and spec.useCaps are empty; allowed is an entry in one of them at least"
    )


@pytest.mark.parametrize(
    ("caps", "sentence"),
    [
        ([{"name": "u"}], "spec.useCaps[0] bounds nothing: it has none of maxConcurrency, maxGPUHours, maxCredits,"),
        ([{"name": "u", "perRun": {}}], "spec.useCaps[0] bounds nothing"),
        (
            [{"name": "u", "maxConcurrency": 1}, {"name": "u", "maxCredits": 0}],
            'spec.useCaps[1].name is "u"; allowed is a name that no other use cap has',
        ),
        (
            [{"name": "u", "maxConcurrency": 1, "start": WINDOW["end"], "end": WINDOW["end"]}],
            f"spec.useCaps[0].end is {WINDOW['end']}; allowed is a time after spec.useCaps[0].start, {WINDOW['end']}",
        ),
        ([{"name": "u", "maxConcurrency": -1}], "spec.useCaps[0].maxConcurrency is -1; allowed is"),
        ([{"name": "u", "maxGPUHours": -0.5}], "spec.useCaps[0].maxGPUHours is -0.5; allowed is"),
        ([{"name": "u", "maxConcurrency": 1, "selector": {}}], "spec.useCaps[0].selector is an empty mapping; allowed"),
        ([{"name": "u", "maxConcurrency": 1, "scope": "all"}], 'spec.useCaps[0].scope is "all"; allowed is'),
        ([{"name": "u", "perRun": {"maxGPUs": 0}}], "spec.useCaps[0].perRun.maxGPUs is 0; allowed is"),
        ([{"name": "u", "perRun": {"maxTime": "0s"}}], "spec.useCaps[0].perRun.maxTime is 0s; allowed is"),
        ([{"name": "u", "maxGPUs": 8}], "spec.useCaps[0].maxGPUs is not a field"),
    ],
)
def test_a_broken_use_cap_is_refused_in_one_sentence(caps: list[doc.Document], sentence: str) -> None:
    told = refusal(useCaps=caps)
    assert told[: len(f"Budget org-a: {sentence}")] == f"Budget org-a: {sentence}"


def test_what_a_use_cap_may_say() -> None:
    cap = {
        "name": "u", "flavor": "H100-80GB", "selector": {"region": "*"}, "scope": "own", "maxConcurrency": 0,
        "maxGPUHours": 0, "maxCredits": 0.5, "perRun": {"maxGPUs": 8, "maxTime": "2d"}, **WINDOW,
    }  # fmt: skip
    assert judge(useCaps=[cap]) == []


def test_what_an_envelope_may_say() -> None:
    full = doc.envelope(
        8,
        **WINDOW,
        maxGPUHours=192,
        maxCredits=0,
        scope="subtree",
        sharing="family",
        preActivation={"allowReservations": False, "allowAdmission": True},
        perRun={"maxGPUs": 4, "maxTime": "2h", "defaultTime": "1h"},
        lending={"allow": True, "to": ["*", "org:b:*", "org:c"], "maxConcurrency": 0, "maxDuration": "2d"},
    )
    cap = {"name": "all", "flavor": doc.FLAVOR, "envelopes": ["gpus"], "maxConcurrency": 6}
    assert judge(full, parents=[], namespaces=["team-a"], aggregateCaps=[cap]) == []


def test_an_aggregate_cap_that_bounds_nothing_is_a_warning() -> None:
    assert judge(doc.envelope(8), aggregateCaps=[{"name": "all", "envelopes": ["gpus"]}]) == [
        "Budget org-a: spec.aggregateCaps[0] bounds nothing: it has no maxConcurrency, maxGPUHours or maxCredits"
    ]


@pytest.mark.parametrize(
    ("fields", "sharing"),
    [
        ({}, "family"),
        ({"maxGPUHours": 9}, "none"),
        ({"maxCredits": 9}, "none"),
        ({"maxGPUHours": 9, "sharing": "family"}, "family"),
    ],
)
def test_hours_and_credits_are_not_shared_unless_said(fields: doc.Document, sharing: str) -> None:
    budget = decode("Budget", doc.budget("org:a", [doc.envelope(8, **fields)]))
    assert isinstance(budget, Budget)
    assert budget.spec.envelopes[0].effective_sharing == sharing


@pytest.mark.parametrize(
    ("to", "owner", "admitted"),
    [
        ([], "org:b", True),
        (["*"], "org:b", True),
        (["org:x:*"], "org:x:y", True),
        (["org:x:*"], "org:x", False),
        (["org:x"], "org:x:y", False),
        (["org:l:*", "org:x"], "org:x", True),
    ],
)
def test_whom_an_envelope_lends_to(to: list[str], owner: str, admitted: bool) -> None:
    budget = decode("Budget", doc.budget("org:a", [doc.envelope(8, lending={"allow": True, "to": to})]))
    assert isinstance(budget, Budget)
    assert budget.spec.envelopes[0].lending.admits(owner) is admitted
