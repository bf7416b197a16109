"""Plan files: YAML that a person can read and a program can apply.

The head is a comment: the plan in words. Below it stands the complete plan, one decision per line, so that two plans
can be compared with ``diff``. ``load(dump(plan)) == plan``.
"""

from typing import Any, Final

import msgspec

from exporters import summary
from jobtree.api import dec_hook, enc_hook
from jobtree.api.errors import Refusal
from jobtree.cluster import yamltext
from jobtree.world.plan import Plan

_CONTROLS: Final = {code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF)}
"""What a YAML reader would take for more than text: JSON's escapes for it."""
_ALLOWED: Final = "make one with `jobtree plan`"


def dump(plan: Plan) -> str:
    """The plan file's text."""
    head = [f"# {line}".rstrip() for line in summary.lines(plan)]
    body: list[str] = []
    for field in msgspec.structs.fields(Plan):
        value = getattr(plan, field.name)
        if isinstance(value, list):
            body += [f"{field.encode_name}:", *(f"- {_json(item)}" for item in value)] if value else []
        else:
            body.append(f"{field.encode_name}: {_json(value)}")
    return "\n".join([*head, "", *body, ""])


def load(text: str) -> Plan:
    """The plan of a plan file. Raises Refusal where it is spoilt."""
    try:
        loaded = yamltext.load(text, yamltext.Allowance())
        plan: Plan = msgspec.convert(loaded.value if loaded else None, Plan, dec_hook=dec_hook)
    except Refusal as refusal:
        raise Refusal(f"it is no plan file, or a spoilt one: {refusal}; {_ALLOWED}") from None
    except msgspec.ValidationError as error:
        raise Refusal(f"it is no plan file, or a spoilt one: {error}; {_ALLOWED}") from None
    return plan


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=enc_hook).decode().translate(_CONTROLS)
