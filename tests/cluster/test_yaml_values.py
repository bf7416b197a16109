"""YAML as Kubernetes means it: texts stay texts, numbers are kubectl's, aliases are bounded (spec §10)."""

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api import Refusal
from jobtree.cluster.yamltext import Allowance, dump, load


def value_of(text: str, allowance: Allowance | None = None) -> Any:
    loaded = load(text, allowance or Allowance())
    return loaded.value if loaded else None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("y", "y"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("nan", "nan"),
        ("0644", 420),
        ("0o17", 15),
        ("0x1F", 31),
        ("08", 8.0),
        ("-7", -7),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ('"8"', "8"),
        ("!!str 8", "8"),
        ("!!int 8", 8),
        ("8x", "8x"),
        ("99999999999999999999999", 1e23),
    ],
)
def test_plain_scalars(text: str, value: Any) -> None:
    assert value_of(f"a: {text}\n") == {"a": value}


def test_anchors_and_merge_keys_work() -> None:
    text = "base: &base {a: 1, b: [x]}\nuse:\n  <<: *base\n  a: 2\nboth:\n  <<: [{c: 3}, *base]\n"
    assert value_of(text) == {
        "base": {"a": 1, "b": ["x"]},
        "use": {"a": 2, "b": ["x"]},
        "both": {"c": 3, "a": 1, "b": ["x"]},
    }


def test_numbers_as_keys_are_read_as_text() -> None:
    assert value_of("data:\n  8: x\n") == {"data": {"8": "x"}}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [1", "line 2, column 1: did not find expected ',' or ']'"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed in this context"),
        ("a: 1\nb: 2\na: 3\n", "line 3: the key a stands twice in one mapping"),
        ("a: *x\n", "line 1: the alias *x is not defined before it"),
        ("a: &x [*x]\n", "line 1: the alias *x stands inside itself"),
        ("a: !Ref x\n", "line 1: 'x' with the tag !Ref has no meaning here"),
        ("a: !!set {x}\n", "line 1: the tag tag:yaml.org,2002:set has no meaning here; leave it out"),
        ("a: !!int x\n", "line 1: 'x' with the tag tag:yaml.org,2002:int has no meaning here"),
        ("? [a]\n: 1\n", "line 1: a key is a text; put it in quotes"),
        ("true: 1\n", "line 1: a key is a text; put it in quotes"),
        ("<<: 5\n", "line 1: << takes a mapping or a list of mappings"),
        ("a: \x01\n", "character 3: control characters are not allowed"),
        ("a:\n\tb: 1\n", "line 2, column 1: a tab; YAML indents with spaces"),
        ("a:\n  b: é\n\tc: 2\n", "line 3, column 1: a tab; YAML indents with spaces"),
        ("a: 1\n- b\n", "line 2, column 1: did not find expected key"),
        ("[" * 100_000, "line 1, column 1001: exceeded maximum nesting depth"),
        ("- " * 100_000, "line 1, column 1999: exceeded maximum nesting depth"),
    ],
)
def test_what_is_no_yaml_or_no_json_value_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(Refusal) as refused:
        value_of(text)
    assert str(refused.value) == sentence


def test_lines_are_counted_from_the_files_first() -> None:
    with pytest.raises(Refusal, match=r"^line 12, column 5: "):
        load("a: 1\nb: c: d", Allowance(), 11)


def test_aliases_stand_for_so_much_and_no_more() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    with pytest.raises(Refusal, match=r"^its aliases stand for more than 10,000,000 characters; write the values out$"):
        value_of(bomb)


def test_the_allowance_is_the_files_not_the_documents() -> None:
    allowance = Allowance(100)
    text = f"a: &a {'x' * 40}\nb: *a\n"
    value_of(text, allowance)
    value_of(text, allowance)
    with pytest.raises(Refusal, match=r"^its aliases stand for more than"):
        value_of(text, allowance)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values, max_size=4))
def test_what_is_written_reads_the_same(value: dict[str, Any]) -> None:
    assert value_of(dump(value)) == value


@given(st.text(alphabet="0123456789eExob_+-.:~ynofNYtruealsTF#&*!|>'\"%@` \n", max_size=6))
def test_a_text_is_a_text_to_every_reader(text: str) -> None:
    written = dump({"key": text})
    assert value_of(written) == {"key": text}
    assert yaml.safe_load(written) == {"key": text}


@given(
    st.lists(st.dictionaries(st.text(min_size=1), values, max_size=3), min_size=1, max_size=3), st.sampled_from([0, 2])
)
def test_items_of_a_list_are_written_at_any_indent(items: list[dict[str, Any]], indent: int) -> None:
    text = "items:\n" + "".join(dump(item, item=True, indent=indent) for item in items) + "kind: List\n"
    assert value_of(text) == {"items": items, "kind": "List"}


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cc", "Cs"])), st.integers(-(2**62), 2**62) | st.floats(), max_size=3
    )
)
def test_json_is_yaml(value: dict[str, Any]) -> None:
    text = msgspec.json.encode(value).decode()
    assert value_of(text) == msgspec.json.decode(text)
