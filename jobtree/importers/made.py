"""What an import gives: objects as documents, checked as `submit` would, and sentences on what is left out."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from jobtree.api import API_VERSION, MAX_RUN_NAME, decode
from jobtree.api.rules.decode import KindObject
from jobtree.api.rules.kinds import problems
from jobtree.api.values.errors import Refusal

Document = dict[str, Any]
_NO_NAME: Final = re.compile(r"[^a-z0-9]+")


@dataclass
class Made:
    """``documents`` in the order that they were read; ``notes``: what of the source they do not say."""

    documents: list[Document] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, kind: str, metadata: Document, spec: Document) -> None:
        """An object; raises Refusal where it breaks a rule of its kind."""
        made = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
        item = decode(kind, made)
        if isinstance(item, KindObject):
            for problem in problems(item):
                raise problem
        self.documents.append(made)


def name_of(text: str) -> str:
    """A text as the name of a Run. Raises Refusal where nothing is left of it."""
    found = _NO_NAME.sub("-", text.lower()).strip("-")[:MAX_RUN_NAME].rstrip("-")
    if not found:
        raise Refusal(f"{text!r} has no letter or digit to make a name of")
    return found
