"""What hypothesis hands to a composite strategy."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]
"""A value of a strategy."""
