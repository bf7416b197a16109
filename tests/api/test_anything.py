"""Whatever a document holds, the answer is an object or one sentence: never a traceback."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api import KINDS, KindObject, Refusal, decode
from jobtree.api.rules.kinds import check_object, set_problems
from jobtree.api.values.allowed import type_of
from tests.api.test_round_trips import values
from tests.support.effort import examples

KEYS = (
    st.text(max_size=5)
    | st.integers(0, 9)
    | st.sampled_from(["metadata", "spec", "owner", "resources", "name", "envelopes"])
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def read(kind: str, document: Any) -> str:
    """What is wrong with a document; empty where nothing is."""
    try:
        item = decode(kind, document)
        assert isinstance(item, KindObject)
        check_object(item)
        problems = set_problems([item])
    except Refusal as refusal:
        return str(refusal)
    return str(problems[0]) if problems else ""


def spoilt(document: Any, data: st.DataObject) -> Any:
    """The document with anything at all in one of its places."""
    if isinstance(document, dict) and document and data.draw(st.integers(0, 3)):
        key = data.draw(st.sampled_from(sorted(document)))
        return {**document, key: spoilt(document[key], data)}
    if isinstance(document, list) and document:
        return [spoilt(document[0], data), *document[1:]]
    if isinstance(document, dict) and data.draw(st.booleans()):
        return {**document, data.draw(KEYS): data.draw(ANYTHING)}
    return data.draw(ANYTHING)


@pytest.mark.parametrize("kind", sorted(KINDS))
@examples(20)  # each document is a large one
@given(data=st.data())
def test_any_document_is_an_object_or_one_sentence(kind: str, data: st.DataObject) -> None:
    document = spoilt(data.draw(values(type_of(KINDS[kind]))), data)
    sentence = read(kind, document)
    assert sentence == "" or (sentence.startswith(kind) and "allowed" in sentence) or "did you mean" in sentence


def answer(kind: str, raw: Any) -> str:
    """The sentence for what cannot be read; the kind where it can be."""
    try:
        decode(kind, raw)
    except Refusal as refusal:
        return str(refusal)
    return kind


@pytest.mark.parametrize("kind", [*sorted(KINDS), "Node", "Pod"])
@examples(30)
@given(value=ANYTHING)
def test_any_value_is_an_object_or_one_sentence(kind: str, value: Any) -> None:
    assert answer(kind, value).startswith(kind)


@pytest.mark.parametrize("kind", [*sorted(KINDS), "Node", "Pod"])
@examples(30)
@given(raw=st.binary(max_size=60) | st.text('{}[]:,"0 a', max_size=20).map(str.encode))
def test_any_bytes_are_an_object_or_one_sentence(kind: str, raw: bytes) -> None:
    assert answer(kind, raw).startswith(kind)


def test_a_key_that_is_no_text_is_refused_at_any_place() -> None:
    assert answer("Run", {1: 2}) == "Run: a key of the Run is 1; allowed is a text (in quotes)"
