"""The text of a state file as documents: parsed once, kept to the byte where nothing is written (spec §10).

A file is a row of *groups*: a YAML document, a JSON document, or a List of either. A group that no write touches is
written back as the bytes it was read from; in one that is touched, only the touched objects are serialised again.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal

import msgspec

from jobtree.api import Refusal
from jobtree.cluster import yamltext
from jobtree.world.reading.intake import Key, key_of

_MARKER: Final = re.compile(rb"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
_JSON_START: Final = re.compile(rb'\s*(?:\{\s*["}]|\[)')
_BOM: Final = b"\xef\xbb\xbf"
_MARKED: Final = b"---\n"
_LIST_HEAD: Final = b'{"apiVersion":"v1","items":[\n'
_LIST_TAIL: Final = b'\n],"kind":"List","metadata":{"resourceVersion":""}}\n'


class HeadMeta(msgspec.Struct):
    """What identifies an object, and what a first sight adds."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    creationTimestamp: str | None = None  # noqa: N815  # the field's name in Kubernetes


class Head(msgspec.Struct):
    """The first look at an object: enough to know whose it is."""

    kind: str = ""
    apiVersion: str = ""  # noqa: N815  # the field's name in Kubernetes
    metadata: HeadMeta | None = None  # None: not there, or not as it should be
    name: str = ""  # of an object without usable metadata


_HEAD: Final = msgspec.json.Decoder(Head)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAWS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_NO_OBJECT: Final = "something in it is not a Kubernetes object (a mapping with apiVersion, kind and metadata)"
_BARE_LIST: Final = (
    "it holds a bare list; allowed are objects one after another, or "
    '{"apiVersion": "v1", "kind": "List", "items": [...]} around them'
)
_MOST_FLOW: Final = 2**20
"""Most bytes of YAML in flow style that looks like JSON: it is read a hundred times more slowly."""

Default = tuple[str, str]


@dataclass(slots=True, eq=False)
class Document:
    """One object: its key, its JSON, and the very text it was read from (None once it is written anew)."""

    key: Key
    head: Head
    raw: bytes | msgspec.Raw
    text: bytes | msgspec.Raw | None = None
    removed: bool = False

    def value(self) -> dict[str, Any]:
        """The object as JSON's values, a fresh copy."""
        value: dict[str, Any] = msgspec.json.decode(self.raw)
        return value

    def members(self) -> dict[str, msgspec.Raw]:
        """The JSON of each member of the object."""
        return _MEMBERS.decode(self.raw)

    def set_members(self, members: Mapping[str, msgspec.Raw]) -> None:
        """Replaces members that do not identify the object: the bytes of the others are those that it had."""
        self.raw = msgspec.json.encode(members)
        self.text = None

    def set(self, value: dict[str, Any]) -> None:
        """Replaces the object; it will be serialised anew."""
        self.raw = msgspec.json.encode(value, order="sorted")
        self.head = _HEAD.decode(self.raw)
        self.text = None


@dataclass(slots=True, eq=False)
class Group:
    """Documents that stand in the file together. ``text`` is what was read, None once a member changed."""

    style: Literal["json", "yaml", "yamlList"]
    documents: list[Document]
    text: bytes | None
    head: bytes = b""
    tail: bytes = b""
    indent: int = 0
    marker: bytes = b""

    def render(self) -> bytes:
        """The group's bytes as they go into the file."""
        if self.text is not None:
            return self.text
        left = [document for document in self.documents if not document.removed]
        if self.style == "json":
            if not self.head:  # one object by itself, printed as kubectl prints it
                return b"".join(self.marker + msgspec.json.format(bytes(each.raw), indent=4) + b"\n" for each in left)
            texts = [each.raw if each.text is None else each.text for each in left] or [b""]
            texts[0] = b"".join((self.marker, self.head, texts[0]))
            texts[-1] = b"".join((texts[-1], self.tail))
            return b",\n".join(texts)  # once, for it is large
        if self.style == "yaml":
            return b"".join(self.marker + self.head + yamltext.dump(each.value()).encode() for each in left)
        items = b"".join(_yaml_item(each, self.indent) for each in left)
        head = self.head if items else self.head.rstrip() + b" []\n"
        return head + items + self.tail


@dataclass(slots=True, eq=False)
class StateText:
    """A whole state file. ``by_key`` finds each object that has a name; ``groups`` are in the file's order."""

    groups: list[Group]
    json: bool = False
    by_key: dict[Key, tuple[Group, Document]] = field(default_factory=dict)

    def documents(self) -> Iterator[Document]:
        """Every object, in the file's order."""
        return (document for group in self.groups for document in group.documents if not document.removed)

    def index(self) -> None:
        """Fills ``by_key``. Raises Refusal naming an object that stands in the file twice."""
        for group in self.groups:
            for document in group.documents:
                if document.key.name and self.by_key.setdefault(document.key, (group, document))[1] is not document:
                    raise Refusal(f"{document.key} stands in it twice; remove one of the two")

    def append(self, value: dict[str, Any]) -> None:
        """Adds an object at the end: to the last JSON list, else as a document of its own."""
        document = make_document(msgspec.json.encode(value, order="sorted"))
        last = next((group for group in reversed(self.groups) if group.documents), None)
        if self.json and (last is None or last.style == "json"):
            if last is None:
                last = Group("json", [], None, _LIST_HEAD, _LIST_TAIL)
                self.groups.append(last)
            elif not last.head:
                last.head, last.tail = _LIST_HEAD, _LIST_TAIL
            last.documents.append(document)
            last.text = None
        else:
            last = Group("yaml", [document], None, marker=_MARKED)
            self.groups.append(last)
        self.by_key[document.key] = (last, document)

    def replace(self, key: Key, value: dict[str, Any]) -> None:
        """Gives the object of that key a new value."""
        group, document = self.by_key[key]
        document.set(value)
        group.text = None

    def replace_members(self, key: Key, members: Mapping[str, msgspec.Raw]) -> None:
        """Gives members of the object of that key, such as its status, other values in JSON."""
        group, document = self.by_key[key]
        document.set_members(members)
        group.text = None

    def remove(self, key: Key) -> None:
        """Takes the object of that key out."""
        group, document = self.by_key.pop(key)
        document.removed = True
        group.text = None

    def render(self) -> bytes:
        """The file's bytes; a document of YAML always begins on a line of its own."""
        parts: list[bytes] = []
        for group in self.groups:
            if parts and parts[-1] and not parts[-1].endswith(b"\n"):
                parts.append(b"\n")
            parts.append(group.render())
        return b"".join(parts)


def parse(data: bytes, *, json: bool = False) -> StateText:
    """Splits a file into its documents. ``json``: write new objects as JSON where the file is empty.

    Raises Refusal, without the file's name, for text that is no state file.
    """
    try:
        if not data.isascii():
            data.decode()
        whole = _whole(data)
        groups = [whole] if whole else list(_groups(data))
    except UnicodeDecodeError as error:
        raise Refusal(f"byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except RecursionError:
        raise Refusal("it is nested too deep to be a state file") from None
    filled = [group.style == "json" for group in groups if group.documents]
    text = StateText(groups, all(filled) if filled else json)
    text.index()
    return text


def _whole(data: bytes) -> Group | None:
    """The group of a file that is one object of JSON: in a large one, looking for lines of `---` takes a while."""
    if data.startswith(b"{"):
        with suppress(msgspec.DecodeError):
            return _json_group(data, data)
    return None


def _groups(data: bytes) -> Iterator[Group]:
    allowance = yamltext.Allowance()
    line = 1
    for chunk in _chunks(data):
        body = chunk.removeprefix(_BOM)
        marker = _MARKER.match(body)
        body = body[marker.end() :] if marker else body
        group = _group(chunk, body, allowance, line)
        group.marker = _MARKED if marker else b""
        yield group
        line += chunk.count(b"\n")


def _group(chunk: bytes, body: bytes, allowance: yamltext.Allowance, line: int) -> Group:
    """Reads what looks like JSON as JSON, and as YAML where it is not quite: with a comment, or a comma too many."""
    if not _JSON_START.match(body):
        return _yaml_group(chunk, body, allowance, line)
    try:
        return _json_group(chunk, body)
    except msgspec.DecodeError as error:
        if len(body) < _MOST_FLOW:
            with suppress(Refusal):  # then it is neither, and what JSON says is the clearer word
                return _yaml_group(chunk, body, allowance, line)
        raise Refusal(f"it is not JSON, or was cut off: {error}") from None


def _chunks(data: bytes) -> Iterator[bytes]:
    """The documents with their markers: cut before each line that begins with `---` or `...`.

    YAML forbids such a line inside a scalar, and JSON a line break inside a string, so the cut is exact.
    """
    marked = data.startswith((b"---", b"...")) or b"\n---" in data or b"\n..." in data  # far cheaper than the search
    cuts = [0, *(match.start() for match in _MARKER.finditer(data if marked else b"")), len(data)]
    return (data[start:end] for start, end in pairwise(cuts) if end > start)


def make_document(
    raw: bytes | msgspec.Raw, text: bytes | msgspec.Raw | None = None, default: Default | None = None
) -> Document:
    """The document of an object's JSON. ``default``: apiVersion and kind of the items of a typed list.

    Raises Refusal where it has no kind.
    """
    try:
        head = _HEAD.decode(raw)
    except msgspec.ValidationError:
        head = _broken_head(raw)
    if not head.kind and default:
        raw = msgspec.json.encode({"apiVersion": default[0], "kind": default[1], **msgspec.json.decode(raw)})
        head.apiVersion, head.kind = default
    name = head.metadata.name if head.metadata else head.name
    if not head.kind:
        raise Refusal(f"an object in it{f' ({name})' if name else ''} has no kind; allowed are Kubernetes objects")
    namespace = head.metadata.namespace if head.metadata else None
    return Document(key_of(head.apiVersion, head.kind, namespace or "", name), head, raw, text)


def _broken_head(raw: bytes | msgspec.Raw) -> Head:
    """As much as can be told of an object whose head is not as it should be: it will be named, not used."""
    value = msgspec.json.decode(raw)
    if not isinstance(value, dict):
        raise Refusal(_NO_OBJECT)
    kind, api_version, metadata = value.get("kind"), value.get("apiVersion"), value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return Head(
        kind=kind if isinstance(kind, str) else "",
        apiVersion=api_version if isinstance(api_version, str) else "",
        name=str(name) if isinstance(name, str | int | float) else "",
    )


def _json_group(chunk: bytes, body: bytes) -> Group:
    """Raises msgspec.DecodeError for what is not JSON, and Refusal for JSON that is no object."""
    try:
        members = _MEMBERS.decode(body)
    except msgspec.ValidationError:
        raise Refusal(_BARE_LIST if body.lstrip().startswith(b"[") else _NO_OBJECT) from None
    kind = _text(members.get("kind"))
    if not kind.endswith("List") or not bytes(members.get("items", b"")).startswith(b"["):
        raw = body.strip()
        return Group("json", [make_document(raw, raw)], chunk)
    default = _item_kind(kind, _text(members.get("apiVersion")))
    documents = [make_document(raw, raw, default) for raw in _RAWS.decode(members["items"])]
    _refuse_nested(documents)
    names = list(members)
    before, after = names[: names.index("items")], names[names.index("items") + 1 :]
    head = b"{" + b"".join(_member(name, members) + b"," for name in before) + b'"items":[\n'
    tail = b"\n]" + b"".join(b"," + _member(name, members) for name in after) + b"}\n"
    return Group("json", documents, chunk, head, tail)


def _text(raw: msgspec.Raw | None) -> str:
    value = msgspec.json.decode(raw) if raw else ""
    return value if isinstance(value, str) else ""


def _member(name: str, members: dict[str, msgspec.Raw]) -> bytes:
    return msgspec.json.encode(name) + b":" + bytes(members[name])


def _yaml_group(chunk: bytes, body: bytes, allowance: yamltext.Allowance, line: int) -> Group:
    text = body.decode()
    loaded = None if _is_empty(text) else yamltext.load(text, allowance, line)
    if loaded is None or loaded.value is None:
        return Group("yaml", [], chunk)
    value = loaded.value
    if not isinstance(value, dict):
        raise Refusal(_BARE_LIST if isinstance(value, list) else _NO_OBJECT)
    kind, items = value.get("kind"), value.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        head = text[: loaded.start].lstrip("\r\n").encode()
        return Group("yaml", [make_document(msgspec.json.encode(value))], chunk, head)
    default = _item_kind(kind, str(value.get("apiVersion", "")))
    cuts = loaded.items if len(loaded.items) == len(items) + 1 else []
    texts = [text[a:b].encode() for a, b in pairwise(cuts)] if cuts else [None] * len(items)
    documents = [
        make_document(msgspec.json.encode(item), text, default) for item, text in zip(items, texts, strict=True)
    ]
    _refuse_nested(documents)
    if cuts:
        before = chunk[: len(chunk) - len(body)] + text[: cuts[0]].encode()
        first = text[cuts[0] : cuts[1]]
        return Group(
            "yamlList", documents, chunk, before, text[cuts[-1] :].encode(), len(first) - len(first.lstrip(" "))
        )
    rest = {key: part for key, part in value.items() if key not in ("items", "kind")}
    head = b"---\n" + yamltext.dump(rest).encode() + b"items:\n"
    return Group("yamlList", documents, chunk, head, yamltext.dump({"kind": kind}).encode())


def _is_empty(text: str) -> bool:
    """Whether there are only comments and directives, which stand alone here, cut off from the marker after them."""
    return all(not line.strip() or line.lstrip()[0] in "#%" for line in text.splitlines())


def _yaml_item(document: Document, indent: int) -> bytes:
    if document.text is not None:
        text = bytes(document.text)
        return text if text.endswith(b"\n") else text + b"\n"
    return yamltext.dump(document.value(), item=True, indent=indent).encode()


def _item_kind(list_kind: str, api_version: str) -> Default | None:
    """What the items of a typed list are, which print neither apiVersion nor kind; None for a plain List."""
    kind = list_kind.removesuffix("List")
    return (api_version, kind) if kind else None


def _refuse_nested(documents: list[Document]) -> None:
    for document in documents:
        if document.head.kind == "List":
            raise Refusal("a List stands inside a List; list its items one by one")
