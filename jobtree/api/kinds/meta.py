"""Object metadata and the small structs that several kinds share (spec §1)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from jobtree.api.kinds.base import API_VERSION, Index, Name, PartName, RefName, Strict, Tolerant, shown
from jobtree.api.values.scalars import Time


class OwnerReference(Tolerant, frozen=True, kw_only=True):
    """The object that another one belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Tolerant, frozen=True, kw_only=True):
    """The metadata of any Kubernetes object; what Jobtree does not read is passed over."""

    name: Name
    namespace: str = ""
    uid: str = ""
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Object(Strict, frozen=True, kw_only=True):
    """The head of every kind of the group."""

    NAMESPACED: ClassVar[bool] = True

    metadata: ObjectMeta
    api_version: Literal["rq.davidlangworthy.io/v1"] = API_VERSION

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """`default` where a namespaced object states none, empty for cluster-scoped kinds."""
        return (self.metadata.namespace or "default") if self.NAMESPACED else ""

    @property
    def subject(self) -> str:
        """How sentences name the object: `Run default/train-32`, `Budget rai`."""
        return name_of(type(self).__name__, self.namespace, self.name)


def name_of(kind: str, namespace: str, name: str) -> str:
    """How sentences name an object; `namespace` is empty for cluster-scoped kinds."""
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


class RunRef(Strict, frozen=True, kw_only=True):
    """A Run, or one index of an array of runs."""

    name: Annotated[RefName, Meta(description="Name of the Run.")]
    namespace: Annotated[
        str,
        Meta(
            max_length=63,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?\Z",
            description="Its namespace; that of the referring object if absent.",
        ),
    ] = ""
    index: Annotated[Index | None, Meta(description="Index within the Run's array; absent for other runs.")] = None

    @property
    def run_name(self) -> str:
        """The name that people see: `NAME`, or `NAME-INDEX` for an index of an array."""
        return self.name if self.index is None else f"{self.name}-{self.index}"


class EnvelopeRef(Strict, frozen=True, kw_only=True):
    """An envelope of a Budget."""

    budget: Annotated[RefName, Meta(description="Name of the Budget.")]
    envelope: Annotated[PartName, Meta(description="Name of the envelope in it.")]


class Condition(Tolerant, frozen=True, kw_only=True):
    """One condition of an object's status, as Kubernetes has them."""

    type: Annotated[str, Meta(description="Name of the condition.")]
    status: Annotated[Literal["True", "False", "Unknown"], Meta(description="Whether it holds.")]
    reason: Annotated[str, Meta(description="A stable CamelCase word for the cause.")] = ""
    message: Annotated[str, Meta(description="One sentence that holds the number that matters.")] = shown("")
    last_transition_time: Annotated[Time | None, Meta(description="When `status` last changed.")] = None
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this was said of.")] = 0
