"""The CRDs: current, structural, bounded where CEL looks, and with rules that speak of fields that exist."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from jobtree.api import KINDS
from jobtree.api.crds.cel import RULES
from jobtree.api.crds.crds import RESOURCES, definition, generate, object_schema
from tests.support.console import ROOT

Schema = dict[str, Any]
#: What a structural schema may say at a node (the server refuses or prunes the rest).
KEYWORDS = {
    "type", "format", "description", "properties", "additionalProperties", "items", "required", "enum", "pattern",
    "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "anyOf",
    "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
}  # fmt: skip


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema below and including this one."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from nodes(schema[key], path + mark)


def at(schema: Schema, path: str) -> Schema:
    """The schema at a JSON path of plain names."""
    for name in path.strip(".").split("."):
        schema = schema["properties"][name]
    return schema


ALL = {kind: list(nodes(object_schema(kind))) for kind in KINDS}


def test_the_files_are_current() -> None:
    files = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "deploy/crds").glob("*.yaml")}
    assert files == generate(), "run `jobtree crds` and write its files to deploy/crds"


def test_leases_alone_may_be_created_with_their_status_and_are_the_same_otherwise() -> None:
    versions = {kind: definition(kind)["spec"]["versions"] for kind in KINDS}
    assert {kind: [each["name"] for each in found] for kind, found in versions.items()} == {
        kind: ["v1", "v1whole"] if kind == "Lease" else ["v1"] for kind in KINDS
    }
    v1, whole = versions["Lease"]
    assert whole == {
        **{key: value for key, value in v1.items() if key != "subresources"},
        "name": "v1whole",
        "storage": False,
    }


def test_the_files_are_plain_yaml_that_says_the_same() -> None:
    read = {name: yaml.safe_load(text) for name, text in generate().items()}
    assert read == {f"{RESOURCES[kind].plural}.yaml": definition(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_node_is_structural(kind: str) -> None:
    for path, node in ALL[kind]:
        assert set(node) <= KEYWORDS, path
        either = node.get("x-kubernetes-int-or-string", False)
        assert either == ("anyOf" in node), path
        assert either != ("type" in node), path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert (node.get("type") == "array") == ("items" in node), path
        assert set(node.get("required", ())) <= set(node.get("properties", ())), path
        if node.get("type") == "object" and path not in {"", ".metadata"}:
            assert {"properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"} & set(node), path


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_lists_that_merge_by_key_have_their_keys(kind: str) -> None:
    for path, node in ALL[kind]:
        for key in node.get("x-kubernetes-list-map-keys", ()):
            assert key in node["items"]["required"], path
        if node.get("x-kubernetes-list-type") == "set":
            assert node["items"]["type"] in {"string", "integer"}, path


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_everything_in_a_spec_is_described_and_bounded(kind: str) -> None:
    for path, node in ALL[kind]:
        if not path.startswith(".spec") or path.startswith(".spec.template."):
            continue
        if not path.endswith(("[]", "{}")):
            assert node.get("description"), path
        if node.get("type", ""):
            assert node["type"] != "array" or "maxItems" in node, path


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_columns_show_fields_that_exist(kind: str) -> None:
    for column in RESOURCES[kind].columns:
        plain = re.sub(r"\[[^]]*\].*", "", column.path)
        assert at(object_schema(kind), plain), column.path


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rules_speak_of_fields_that_exist(kind: str) -> None:
    whole = object_schema(kind)
    for place, rules in RULES[kind].items():
        here = whole
        for part in place:
            here = here["items"] if part == "[]" else here["properties"][part]
        for rule in rules:
            for name in re.findall(r"(?:self|oldSelf)((?:\.\??[a-zA-Z_]+(?![a-zA-Z_(]))+)", rule.rule):  # no function's
                path = name.replace("?", "")
                if path and not path.startswith(".metadata"):
                    assert at(here, path), rule.rule
            if rule.field and not rule.field.startswith(".metadata"):
                assert at(here, rule.field), rule.rule
            assert "\n" not in rule.message


def test_a_closed_or_fixed_part_cannot_be_patched_away() -> None:
    """A rule on `spec` or `status` is not asked when that whole field is removed; on the root it always is."""
    for kind in ("Lease", "Reservation", "Plan"):
        schema = object_schema(kind)
        assert schema["required"] == ["spec"]
        assert schema["x-kubernetes-validations"][0]["rule"] == "self.spec == oldSelf.spec"
    assert object_schema("Lease")["x-kubernetes-validations"][1]["rule"] == (
        "!has(oldSelf.status) || !has(oldSelf.status.closed) || !oldSelf.status.closed || "
        "(has(self.status) && self.status == oldSelf.status)"
    )
    for kind, places in RULES.items():
        for place, rules in places.items():
            assert place == () or not any("oldSelf" in rule.rule for rule in rules), kind


def test_every_field_of_a_run_is_fixed_but_three() -> None:
    fixed = {rule.field for rule in RULES["Run"][()] if "is fixed" in rule.message}
    whole = {f".spec.{name}" for name in object_schema("Run")["properties"]["spec"]["properties"]}
    within = {f".spec.malleable.{name}" for name in ("minTotalGPUs", "maxTotalGPUs", "stepGPUs")}
    assert fixed == (whole - {".spec.state", ".spec.malleable", ".spec.spares", ".spec.sparesPerGroup"}) | within | {
        ".spec"
    }


def test_names_by_which_people_ask() -> None:
    assert {kind: (resource.plural, resource.short) for kind, resource in RESOURCES.items()} == {
        "Budget": ("budgets", "bud"),
        "Run": ("runs", "jr"),
        "Reservation": ("reservations", "rsv"),
        "Lease": ("gpuleases", "gl"),
        "Plan": ("plans", "pl"),
        "Policy": ("policies", "jtp"),
    }
    assert {kind: definition(kind)["spec"]["names"]["singular"] for kind in KINDS} == {
        "Budget": "budget", "Run": "run", "Reservation": "reservation", "Lease": "gpulease", "Plan": "plan",
        "Policy": "policy",
    }  # fmt: skip
    assert {kind for kind in KINDS if definition(kind)["spec"]["scope"] == "Cluster"} == {"Budget", "Plan", "Policy"}
