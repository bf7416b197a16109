"""Random worlds in which most of what waits is in gangs: two of them, of two or three runs each, or of more."""

from dataclasses import replace

from hypothesis import strategies as st

from tests.reference import worlds
from tests.reference.worlds import World
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.drawing import Draw


@st.composite
def ganged(draw: Draw, kind: str) -> World:
    """A world of one of `worlds.KINDS` with the runs that wait in gangs; what runs stays as it is."""
    world: World = draw(worlds.worlds(kind))
    held = {each["metadata"]["name"] for each in world.earlier or () if each["kind"] == "Run"}
    sizes = {name: draw(st.integers(2, 3)) for name in "gh"}

    def joined(each: Document) -> Document:
        if each["kind"] != "Run" or each["metadata"]["name"] in held:
            return each
        name = draw(st.sampled_from(["g", "g", "g", "h", ""]))
        return doc.merge(each, {"spec": {"gang": {"name": name, "size": sizes[name]} if name else None}})

    return replace(world, documents=[joined(each) for each in world.documents])
