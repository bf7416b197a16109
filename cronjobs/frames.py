"""What a planner process may say: the first byte of each frame."""

from typing import Final


class Frame:
    """First bytes of the frames that the planner process sends."""

    READY: Final = b"R"
    """It listens."""
    INCUMBENT: Final = b"I"
    """An incumbent, better than the ones before; opaque to the other end, which may send it back to be finished."""
    FOUND: Final = b"F"
    """The last incumbent is final; its plan follows."""
    PLAN: Final = b"P"
    """A plan, and with it the end of the answer."""
    ERROR: Final = b"E"
    """It failed; one line says where and why."""
