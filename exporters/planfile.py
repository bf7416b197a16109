"""Plan files: YAML that a person can read and a program can apply.

The head is a comment: the plan in words. Below it stands the complete plan, one decision per line, so that two plans
can be compared with ``diff``. ``load(dump(plan)) == plan``.
"""

import re
from typing import Any, Final

import msgspec
import yaml

from exporters import summary
from jobtree.api import dec_hook, enc_hook
from jobtree.api.errors import Refusal
from jobtree.world.plan import Plan

_ALLOWED: Final = "make one with `jobtree plan --out FILE`"


class _Loader(yaml.CSafeLoader):
    """YAML that also reads JSON's numbers with an exponent and no point as numbers."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"-?[0-9]+[eE][-+]?[0-9]+$"), list("-0123456789"))


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
        document = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise Refusal(f"the plan file is not YAML{where}; {_ALLOWED}") from error
    except RecursionError as error:
        raise Refusal(f"the plan file is nested too deeply; {_ALLOWED}") from error
    try:
        plan: Plan = msgspec.convert(document, Plan, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise Refusal(f"the plan file is spoilt: {error}; {_ALLOWED}") from error
    return plan


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=enc_hook).decode().translate(summary.CONTROLS)
