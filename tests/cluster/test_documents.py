"""What a state file may look like, and that what is not touched stays as it is to the byte (spec §10)."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api import Refusal
from jobtree.cluster.document import StateText, parse
from jobtree.cluster.protocol import Ref, Write
from jobtree.cluster.statefile import StateFile
from jobtree.cluster.yamltext import dump
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.effort import examples

AT = 1767225600
STAMP = {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}


def run(name: str) -> Document:
    return doc.merge(doc.run(name, 8), {"metadata": STAMP})


def config_map(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"on": "0644"}}


def suspend(name: str) -> Write:
    return Write("patch", Ref("Run", "default", name), {"spec": {"state": "Suspended"}})


def names(path: Path) -> list[str]:
    return [each.name for each in StateFile(path, AT).read().runs]


def write(path: Path, *writes: Write) -> str:
    """Applies writes and returns the file's text."""
    state = StateFile(path, AT)
    state.write(writes, state.read().revision)
    return path.read_text(encoding="utf-8")


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


YAML_RUN = doc.dump([run("r")]).removeprefix("---\n")
FOREIGN = """\
# nobody touches this
apiVersion: apps/v1
kind:   Deployment     # odd spaces
metadata: {name: web, labels: {on: "yes"}}
spec:
  replicas: 0x3
  text: |
    ---not a marker
     --- nor this
"""


def yaml_file() -> str:
    return (
        f"# our cluster\n---\n{FOREIGN}---\n{YAML_RUN}...\n---\n# empty\n--- # last\n{FOREIGN.replace('web', 'web2')}"
    )


def indented(text: str, spaces: int) -> str:
    return "".join(" " * spaces + line for line in text.splitlines(keepends=True))


def yaml_list(kind: str = "List", indent: int = 0) -> str:
    items = [config_map("a"), run("r"), config_map("b")]
    text = "".join(f"  # a comment\n{indented(dump(item, item=True), indent)}" for item in items)
    return f"apiVersion: v1\nitems:\n{text}kind: {kind}\nmetadata:\n  resourceVersion: ''\n"


def json_list() -> str:
    items = [config_map("a"), run("r"), config_map("b")]
    lines = ",\n".join(compact(item) for item in items)
    return f'{{"apiVersion":"v1","items":[\n{lines}\n],"kind":"List","metadata":{{"resourceVersion":""}}}}\n'


def pretty_json_list() -> str:
    document = {"kind": "List", "apiVersion": "v1", "items": [config_map("a"), run("r"), config_map("b")]}
    return json.dumps(document, indent=4)


FILES: dict[str, Callable[[], str]] = {
    "YAML documents": yaml_file,
    "a YAML List": yaml_list,
    "an indented YAML List": lambda: yaml_list(indent=2),
    "a YAML List in flow style": lambda: f"kind: List\napiVersion: v1\nitems: [{compact(run('r'))}]\n",
    "a JSON List of lines": json_list,
    "a pretty JSON List": pretty_json_list,
    "a JSON object": lambda: json.dumps(run("r"), indent=2),
    "a typed list": lambda: compact(
        {"apiVersion": doc.API, "kind": "RunList", "items": [{k: v for k, v in run("r").items() if k[0] in "ms"}]}
    ),
    "JSON and YAML documents": lambda: f"{compact(run('r'))}\n---\n{FOREIGN}---\n{compact(config_map('c'))}",
    "a file with a byte order mark": lambda: "\ufeff" + YAML_RUN,
    "a file of Windows lines": lambda: yaml_file().replace("\n", "\r\n"),
    "a file with directives": lambda: f"%YAML 1.1\n---\n{YAML_RUN}",
    "a file without a last line break": lambda: (
        yaml_file() + "---\n" + YAML_RUN.replace("name: r", "name: r2").rstrip()
    ),
}


@pytest.fixture(params=FILES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.write_bytes(FILES[request.param]().encode())
    return path


def test_every_form_is_read(path: Path) -> None:
    assert "r" in names(path)


def test_every_form_is_rendered_as_it_was(path: Path) -> None:
    assert parse(path.read_bytes()).render() == path.read_bytes()


def test_a_write_without_a_change_leaves_the_file_alone(path: Path) -> None:
    before = path.stat()
    write(path, Write("patch", Ref("Run", "default", "r"), {"spec": {"state": None}}))
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_every_form_takes_a_patch_a_create_and_a_delete(path: Path) -> None:
    create = Write("create", Ref("Run", "default", "new"), doc.run("new", 4))
    write(path, suspend("r"), create)
    intake = StateFile(path, AT).read()
    assert {each.name: each.spec.state for each in intake.runs if each.name != "r2"} == {
        "new": "Active",
        "r": "Suspended",
    }
    write(path, Write("delete", Ref("Run", "default", "r")))
    assert "r" not in names(path)
    assert intake.quarantined == ()


def test_one_that_remembers_the_file_reads_and_writes_as_one_that_sees_it_first(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(path.read_bytes())
    remembers = StateFile(path, AT)
    rounds = [
        [suspend("r"), Write("create", Ref("Run", "default", "new"), doc.run("new", 4))],
        [],
        [Write("patch", Ref("Run", "default", "new"), {"status": {"phase": "Pending"}}, "status")],
        [Write("delete", Ref("Run", "default", "r"))],
        [Write("create", Ref("Run", "default", "r"), doc.run("r", 2))],
    ]
    for writes in rounds:
        remembers.write(writes, remembers.read().revision)
        write(other, *writes)
        assert path.read_bytes() == other.read_bytes()
        assert remembers.read() == StateFile(other, AT).read()
    path.write_text(doc.dump([doc.run("r", 8), doc.node("n", 0)]), encoding="utf-8")
    assert remembers.read() == StateFile(path, AT).read()


def test_untouched_yaml_documents_stay_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    path.write_text(yaml_file(), encoding="utf-8")
    assert write(path, suspend("r")) == yaml_file().replace(
        YAML_RUN, dump(doc.merge(run("r"), {"spec": {"state": "Suspended"}}))
    )


@pytest.mark.parametrize("indent", [0, 2])
def test_untouched_items_of_a_yaml_list_stay_to_the_byte(tmp_path: Path, indent: int) -> None:
    path = tmp_path / "state.yaml"
    text = yaml_list(indent=indent)
    path.write_text(text, encoding="utf-8")
    after = write(path, suspend("r"))
    first, last = text.index(" " * indent + "- apiVersion: rq"), text.index("  # a comment", text.index("name: r\n"))
    assert after.startswith(text[:first])
    assert after.endswith(text[text.index(" " * indent + "- apiVersion: v1", last) :])


@pytest.mark.parametrize("make", [json_list, pretty_json_list])
def test_untouched_items_of_a_json_list_stay_to_the_byte(tmp_path: Path, make: Callable[[], str]) -> None:
    path = tmp_path / "state.json"
    path.write_text(make(), encoding="utf-8")
    before = parse(path.read_bytes())
    write(path, suspend("r"))
    after = parse(path.read_bytes())
    kept = [(bytes(a.raw), bytes(b.raw)) for a, b in zip(before.documents(), after.documents(), strict=True)]
    assert [a == b for a, b in kept] == [True, False, True]


def test_a_json_list_has_one_changed_line(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(json_list(), encoding="utf-8")
    after = compact(doc.merge(run("r"), {"spec": {"state": "Suspended"}}))
    assert write(path, suspend("r")) == json_list().replace(compact(run("r")), after)


def test_comments_above_a_document_outlive_its_change(tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    path.write_text(f"# mine\n\n# and mine\n{YAML_RUN}", encoding="utf-8")
    assert write(path, suspend("r")).startswith("# mine\n\n# and mine\napiVersion: ")


def test_the_last_item_of_a_yaml_list_may_go(tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    path.write_text(f"apiVersion: v1\nitems:\n- {compact(run('r'))}\nkind: List\n", encoding="utf-8")
    assert write(path, Write("delete", Ref("Run", "default", "r"))) == "apiVersion: v1\nitems: []\nkind: List\n"


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_new_file_is_of_the_kind_that_its_name_says(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"new{suffix}"
    state = StateFile(path, AT, create=True)
    intake = state.read()
    assert (intake.runs, path.exists()) == ((), False)
    state.write([Write("create", Ref("Run", "default", "r"), run("r"))], intake.revision)
    text = path.read_text(encoding="utf-8")
    assert text.startswith('{"apiVersion":"v1","items":[\n' if suffix == ".json" else "---\napiVersion: ")
    assert names(path) == ["r"]


FORMS = {
    "yaml": lambda value: "---\n" + doc.dump([value]).removeprefix("---\n"),
    "flow": lambda value: "--- " + compact(value) + " # flow\n",
    "json": lambda value: "---\n" + json.dumps(value, indent=1) + "\n",
    "list": lambda value: (
        "---\n"
        + compact({"apiVersion": "v1", "kind": "List", "items": [value, config_map("z" + value["metadata"]["name"])]})
        + "\n"
    ),
    "yaml list": lambda value: f"---\nkind: List\nitems:\n- # item\n{indented(dump(value), 2)}",
}


@examples(40)
@given(
    forms=st.lists(st.sampled_from(sorted(FORMS)), min_size=1, max_size=6),
    touched=st.sets(st.integers(0, 5)),
    comments=st.lists(st.sampled_from(["", "# c\n", "\n\n", "---\n", "...\n# d\n"]), min_size=6, max_size=6),
)
def test_any_mixture_keeps_what_is_not_touched(forms: list[str], touched: set[int], comments: list[str]) -> None:
    texts = [FORMS[form](run(f"r{number}")) for number, form in enumerate(forms)]
    data = "".join(comment + text for comment, text in zip(comments, texts, strict=False)).encode()
    state = parse(data)
    assert state.render() == data
    for key, (_, document) in list(state.by_key.items()):
        if key.kind == "Run" and int(key.name[1:]) in touched:
            state.replace(key, doc.merge(document.value(), {"spec": {"state": "Suspended"}}))
    after = state.render()
    again = parse(after)
    for key, (_, document) in again.by_key.items():
        if key.kind == "Run":
            wanted = "Suspended" if int(key.name[1:]) in touched else None
            assert document.value() == doc.merge(run(key.name), {"spec": {"state": wanted}})
    kept = [text.encode() for number, text in enumerate(texts) if number not in touched]
    assert all(text in after for text in kept)
    assert again.by_key.keys() == parse(data).by_key.keys()


NO_OBJECT = "something in it is not a Kubernetes object (a mapping with apiVersion, kind and metadata)"
BARE_LIST = (
    "it holds a bare list; allowed are objects one after another, or "
    '{"apiVersion": "v1", "kind": "List", "items": [...]} around them'
)
REFUSED = {
    "two of one name": (doc.dump([run("r"), run("r")]), "Run default/r stands in it twice; remove one of the two"),
    "two of one name, one without its namespace": (
        doc.dump([run("r"), doc.merge(run("r"), {"metadata": {"namespace": None}})]),
        "Run default/r stands in it twice; remove one of the two",
    ),
    "two foreign ones": (
        doc.dump([config_map("a"), config_map("a")]),
        "ConfigMap default/a stands in it twice; remove one of the two",
    ),
    "no kind": ("metadata:\n  name: x\n", "an object in it (x) has no kind; allowed are Kubernetes objects"),
    "a text": ("hello\n", NO_OBJECT),
    "a bare list": ("[1, 2]", BARE_LIST),
    "a bare list of objects in JSON": (json.dumps([run("r"), run("s")]), BARE_LIST),
    "a bare list of objects in YAML": ("- kind: Run\n- kind: Run\n", BARE_LIST),
    "a number among items": ('{"kind":"List","items":[1]}', NO_OBJECT),
    "a List in a List": (
        '{"kind":"List","items":[{"kind":"List","items":[]}]}',
        "a List stands inside a List; list its items one by one",
    ),
    "cut JSON": (json_list()[:300], "it is not JSON, or was cut off: Input data was truncated"),
    "cut YAML": (YAML_RUN.partition("lGPUs")[0], "line 13, column 1: could not find expected ':'"),
    "nested JSON": ('{"kind":"List","items":[' + "[" * 100_000, "it is nested too deep to be a state file"),
    "nested YAML": ("a: " + "[" * 100_000, "line 1, column 1003: exceeded maximum nesting depth"),
    "deep values": ("kind: A\nb: " + "[" * 990 + "]" * 990, "it is nested too deep to be a state file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_are_no_state_files_are_refused_with_one_sentence(tmp_path: Path, case: str) -> None:
    text, sentence = REFUSED[case]
    path = tmp_path / "state.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Refusal) as refused:
        StateFile(path, AT).read()
    assert str(refused.value) == f"{path}: {sentence}"
    assert path.read_text(encoding="utf-8") == text


@examples(60)
@given(form=st.sampled_from(sorted(FILES)), data=st.data())
def test_a_file_with_anything_in_it_is_read_or_refused(form: str, data: st.DataObject) -> None:
    text = FILES[form]()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    junk = data.draw(
        st.sampled_from(
            ["", "\0", "\x85", "---\n", "...", "\t", "- ", "'", '"', "{", "]", ": ", "&a", "*a", "|\n", "%", "#"]
        )
    )
    file = (text[:start] + junk + text[end:]).encode()
    state = None
    with suppress(Refusal):
        state = parse(file)
    if state is not None:
        assert state.render() == file
        again = b"".join(group.render() for group in rewritten(state).groups)
        assert parse(again).by_key.keys() == state.by_key.keys()


def rewritten(state: StateText) -> StateText:
    """The same with every document serialised anew."""
    for group in state.groups:
        group.text = None
        for document in group.documents:
            document.text = None
    return state


def test_bytes_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    path.write_bytes(b"kind: \xff\n")
    with pytest.raises(Refusal) as refused:
        StateFile(path, AT).read()
    assert str(refused.value) == f"{path}: byte 6 is not UTF-8; save the file as UTF-8"


def test_leases_of_kubernetes_itself_are_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "r"}}
    path.write_text(doc.dump([lease, run("r")]), encoding="utf-8")
    intake = StateFile(path, AT).read()
    assert (intake.leases, intake.quarantined, len(intake.runs)) == ((), (), 1)


@pytest.mark.parametrize("head", [{"metadata": "x"}, {"metadata": {"name": 5}}, {"metadata": {"name": "r", "uid": 5}}])
def test_an_object_with_a_broken_head_is_set_aside_and_kept(tmp_path: Path, head: Document) -> None:
    path = tmp_path / "state.yaml"
    text = doc.dump([{**doc.run("x", 8), **head}, run("good")])
    path.write_text(text, encoding="utf-8")
    intake = StateFile(path, AT).read()
    assert ([each.name for each in intake.runs], len(intake.quarantined)) == (["good"], 1)
    assert write(path, suspend("good")).startswith(text.partition("---\n")[1] + text.split("---\n")[1])
