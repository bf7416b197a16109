"""Plan files: YAML that a person can read and a program can apply.

The head is a comment: the plan in words. Below it stands the complete plan, one decision per line, so that two plans
can be compared with ``diff``. ``load(dump(plan)) == plan``.
"""

from typing import Any, Final

import msgspec

from exporters.plans import summary, worldprint
from jobtree.api import dec_hook, enc_hook
from jobtree.api.values.counted import named
from jobtree.api.values.errors import Refusal
from jobtree.cluster import document, yamltext
from jobtree.world.plan import Plan

_CONTROLS: Final = {code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF)}
"""What a YAML reader would take for more than text: JSON's escapes for it."""
_MADE_FROM: Final = "madeFrom"
_ALLOWED: Final = "make one with `jobtree plan --out FILE`"


def dump(plan: Plan, made_from: worldprint.Prints | None = None) -> str:
    """The plan file's text; with ``made_from`` it can be said later what has changed since."""
    head = [f"# {line}".rstrip() for line in summary.lines(plan)]
    body: list[str] = []
    for field in msgspec.structs.fields(Plan):
        value = getattr(plan, field.name)
        if isinstance(value, list):
            body += [f"{field.encode_name}:", *(f"- {_json(item)}" for item in value)] if value else []
        else:
            body.append(f"{field.encode_name}: {_json(value)}")
    if made_from is not None:
        body.append(f"{_MADE_FROM}: {_json(worldprint.pack(made_from))}")
    return "\n".join([*head, "", *body, ""])


def load(text: str) -> Plan:
    """The plan of a plan file. Raises Refusal where it is spoilt."""
    return load_both(text)[0]


def load_both(text: str) -> tuple[Plan, worldprint.Prints | None]:
    """The plan of a plan file, and what it was made from where that is told. Raises Refusal where it is spoilt."""
    if objects := _objects(text):
        raise Refusal(f"it is {objects}, no plan file; {_ALLOWED}")
    try:
        loaded = yamltext.load(text, yamltext.Allowance())
        value = loaded.value if loaded else None
        made_from = value.pop(_MADE_FROM, None) if isinstance(value, dict) else None
        plan: Plan = msgspec.convert(value, Plan, dec_hook=dec_hook)
    except Refusal as refusal:
        raise Refusal(f"it is no plan file, or a spoilt one: {refusal}; {_ALLOWED}") from None
    except msgspec.ValidationError as error:
        raise Refusal(f"it is no plan file, or a spoilt one: {error}; {_ALLOWED}") from None
    return plan, None if made_from is None else worldprint.unpack(made_from)


def _objects(text: str) -> str:
    """What a file of Kubernetes objects is in words; empty of any other."""
    try:
        values = [each.value() for each in document.parse(text.encode()).documents()]
    except Refusal:
        return ""
    kinds = sorted({str(value["kind"]) for value in values if value.get("apiVersion") and value.get("kind")})
    if len(values) == 1 and kinds:
        return f"a {kinds[0]}"
    return f"a file of objects (kinds {named(kinds)})" if kinds else ""


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=enc_hook).decode().translate(_CONTROLS)
