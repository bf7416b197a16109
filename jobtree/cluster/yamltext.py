"""YAML as Kubernetes means it: JSON's values only, texts stay texts, aliases bounded, every position known.

PyYAML's own constructor turns times into dates and `on` into a truth value, and expands aliases without a bound. So
libyaml's events are read here directly. Numbers are read as kubectl reads them (`0644` is octal); a plain scalar that
is no number, no null and neither true nor false is text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from jobtree.api import Refusal

MAX_EXPANDED: Final = 10_000_000
"""Most characters that the aliases of one file may stand for: far above any manifest, far below what fills memory."""

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_DECIMAL: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})")
_RADIX: Final = re.compile(r"[-+]?0(?:o?[0-7]{1,20}|x[0-9a-fA-F]{1,15}|b[01]{1,60})")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?")
_DASH: Final = re.compile(r"^ *-(?=\s)", re.MULTILINE)
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = object()
_NO_KEY: Final = object()


class Allowance:
    """How many characters the aliases of one file may still stand for."""

    def __init__(self, characters: int = MAX_EXPANDED) -> None:
        self._left = characters

    def spend(self, characters: int) -> None:
        """Raises Refusal once more is asked for than was allowed."""
        self._left -= characters
        if self._left < 0:
            raise Refusal(f"its aliases stand for more than {MAX_EXPANDED:,} characters; write the values out")


@dataclass(slots=True)
class Loaded:
    """One document: its JSON value, and where its text is.

    ``start`` is the index of its first character after comments. ``items``, for a block-style `items` list, holds the
    index of the first character of each item's line, and last the index after the list.
    """

    value: Any
    start: int = 0
    items: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been read yet; ``size`` in characters."""

    value: Any
    anchor: str | None
    flow: bool
    is_items: bool = False
    key: Any = _NO_KEY
    merges: list[Any] = field(default_factory=list)
    size: int = 1


def load(text: str, allowance: Allowance, line: int = 1) -> Loaded | None:
    """The one document in ``text``; None where there is only white space, comments or directives.

    ``line``: the number of its first line in the file. Raises Refusal (a sentence without the file's name) for
    anything that is not YAML, or not JSON's values.
    """
    try:
        return _Builder(text, allowance, line).run()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + line}, column {mark.column + 1}: " if mark else ""
        tab = mark is not None and text[mark.index : mark.index + 1] == "\t"
        said = "a tab; YAML indents with spaces" if tab else error.problem or error.context
        raise Refusal(f"{where}{said}") from None
    except yaml.reader.ReaderError as error:
        raise Refusal(f"character {error.position}: {error.reason}") from None


class _Builder:
    """Makes the value from the events, without recursion: libyaml itself bounds the depth."""

    def __init__(self, text: str, allowance: Allowance, line: int) -> None:
        self._text = text
        self._first_line = line
        self._allowance = allowance
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._open: list[_Open] = []
        self._documents = 0
        self._root: Any = None
        self._start = 0
        self._items: list[int] = []
        self._item_end = 0
        self._block_items = True

    def run(self) -> Loaded | None:
        """Build the document; None where there is none."""
        handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._begin,
            yaml.SequenceStartEvent: self._begin,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        for event in _events(self._text):
            handler = handlers.get(type(event))
            if handler:
                handler(event)
        if not self._documents:
            return None
        return Loaded(self._root, self._start, self._items if self._block_items else [])

    def _document(self, _: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise Refusal("two documents without a line --- between them")

    def _scalar(self, event: Any) -> None:
        value: Any = event.value
        if event.implicit[0]:
            value = _MERGE if value == "<<" and self._wants_key() else _resolve(value)
        elif event.tag is not None:
            value = self._tagged(event)
        size = len(event.value) + 1
        if event.anchor:
            self._anchors[event.anchor] = (value, size)
        self._add(value, size, event)

    def _alias(self, event: Any) -> None:
        known = self._anchors.get(event.anchor)
        if known is None:
            what = "stands inside itself" if event.anchor in self._anchors else "is not defined before it"
            raise self._refusal(event, f"the alias *{event.anchor} {what}")
        value, size = known
        self._allowance.spend(size)
        self._add(value, size, event)

    def _begin(self, event: Any) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, _TAG + ("map" if mapping else "seq")):
            raise self._refusal(event, f"the tag {event.tag} has no meaning here; leave it out")
        if event.anchor:
            self._anchors[event.anchor] = None
        if not self._open and not event.anchor and not event.tag:
            self._start = self._text.rfind("\n", 0, event.start_mark.index) + 1
        opened = _Open({} if mapping else [], event.anchor, bool(event.flow_style))
        if not mapping and len(self._open) == 1 and self._open[0].key == "items":
            opened.is_items = True
            self._block_items = not opened.flow
            self._item_end = event.start_mark.index
        elif self._in_items():
            self._item_starts(event, mapping)
        self._open.append(opened)

    def _in_items(self) -> bool:
        return len(self._open) == 2 and self._open[1].is_items

    def _item_starts(self, event: Any, mapping: bool) -> None:
        """Notes where the line of this item's dash begins: at the last item's end, or the next dash after it."""
        dash = self._item_end
        if self._items and self._text[dash : dash + 1] != "-":
            match = _DASH.search(self._text, dash)
            dash = match.end() - 1 if match else dash
        self._block_items = self._block_items and mapping and dash <= event.start_mark.index
        self._items.append(self._text.rfind("\n", 0, dash) + 1)

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        for merged in done.merges:
            for key, value in merged.items():
                done.value.setdefault(key, value)
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.size)
        if done.is_items and self._items:
            self._items.append(self._text.rfind("\n", 0, event.start_mark.index) + 1)
        elif self._in_items():
            self._item_end = event.start_mark.index + (1 if done.flow else 0)
        self._add(done.value, done.size, event)

    def _refusal(self, event: Any, problem: str) -> Refusal:
        return Refusal(f"line {event.start_mark.line + self._first_line}: {problem}")

    def _wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is _NO_KEY

    def _key(self, value: Any, event: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._refusal(event, "a key is a text; put it in quotes")
        return str(value)

    def _tagged(self, event: Any) -> Any:
        """The value of a scalar with a tag of its own, such as `!!str 5`."""
        if event.tag == _TAG + "str":
            return event.value
        value = _resolve(event.value)
        kinds = {"int": int, "float": int | float, "bool": bool, "null": type(None)}
        wanted = kinds.get(event.tag.removeprefix(_TAG))
        if wanted is None or not isinstance(value, wanted):
            raise self._refusal(event, f"{event.value!r} with the tag {event.tag} has no meaning here")
        return value

    def _add(self, value: Any, size: int, event: Any) -> None:
        if not self._open:
            self._root = value
            return
        parent = self._open[-1]
        parent.size += size
        if isinstance(parent.value, list):
            if parent.is_items and not isinstance(value, dict):
                self._block_items = False
            parent.value.append(value)
        elif parent.key is _NO_KEY:
            parent.key = value if value is _MERGE else self._key(value, event)
            if parent.key is not _MERGE and parent.key in parent.value:
                raise self._refusal(event, f"the key {parent.key} stands twice in one mapping")
        elif parent.key is _MERGE:
            sources = value if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                raise self._refusal(event, "<< takes a mapping or a list of mappings")
            parent.merges.extend(sources)
            parent.key = _NO_KEY
        else:
            parent.value[parent.key] = value
            parent.key = _NO_KEY


def _events(text: str) -> Iterator[Any]:
    return yaml.parse(text, Loader=yaml.CSafeLoader)


def _resolve(text: str) -> Any:
    """The value of a plain scalar."""
    first = text[:1]
    if first in "0123456789+-.":
        if _DECIMAL.fullmatch(text):
            return int(text)
        if _RADIX.fullmatch(text):
            return _radix(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            return number if abs(number) != float("inf") else text
    if first in "~nN" and text in _NULLS:
        return None
    return _BOOLS.get(text, text) if first in "tTfF" else text


def _radix(text: str) -> int:
    digits = text.lstrip("+-")
    sign = -1 if text[0] == "-" else 1
    return sign * (int(digits, 0) if digits[1] in "xbo" else int(digits, 8))


class _Dumper(yaml.CSafeDumper):
    """Block style as `kubectl get -o yaml`; quotes whatever any YAML reader could take for something else than text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, value: str) -> Any:
    """A text as kubectl prints it: in double quotes where it looks like something else, in lines where it has some."""
    looks = dumper.resolve(yaml.ScalarNode, value, (True, False))
    lines = "\n" in value and value.strip("\n") and not value.endswith("\n\n")  # after `|+` libyaml ends the document
    style = '"' if looks != _TAG + "str" or (value.endswith("\n") and not lines) else "|" if lines else None
    return dumper.represent_scalar(_TAG + "str", value, style=style)


_Dumper.add_representer(str, _text)
for _tag, _pattern, _first in (("float", _FLOAT, "-+.0123456789"), ("int", _RADIX, "-+0"), ("bool", "y|Y|n|N", "yYnN")):
    _Dumper.add_implicit_resolver(
        _TAG + _tag, re.compile(f"^(?:{getattr(_pattern, 'pattern', _pattern)})$"), list(_first)
    )


def dump(value: Any, *, item: bool = False, indent: int = 0) -> str:
    """``value`` in block style, keys sorted; with ``item`` as an item of a list whose dash is at column ``indent``."""
    text: str = yaml.dump(
        [value] if item else value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=2**30
    )
    return re.sub(r"^(?=[^\n])", " " * indent, text, flags=re.MULTILINE) if indent else text
