"""What a planner process may say: the first byte of each frame."""

from typing import Final


class Frame:
    """First bytes of the frames that the planner process sends."""

    READY: Final = b"R"
    """It listens."""
    INCUMBENT: Final = b"I"
    """A plan, better than the ones before."""
    DONE: Final = b"D"
    """The last plan was final."""
    ERROR: Final = b"E"
    """It failed; one line says where and why."""
