"""Every folder of the product says what it is: its docstring names its files, and they are few enough to know."""

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.support.console import ROOT

PACKAGES: Final = ("benchmarks", "cronjobs", "exporters", "jobtree", "planner", "policies", "reports", "simulator")
FOLDERS: Final = sorted(path.parent for package in PACKAGES for path in (ROOT / package).rglob("__init__.py"))
MOST: Final = 12
NOT_COUNTED: Final = {"__init__.py", "py.typed"}
"""The folder's page, and what only says that its types may be used."""
LONGEST: Final = 400


def modules(folder: Path) -> list[str]:
    """The folder's own modules, without ``__init__``."""
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def test_no_folder_has_more_files_than_one_keeps_in_mind() -> None:
    files = {path for package in PACKAGES for path in (ROOT / package).rglob("*.*") if "__pycache__" not in path.parts}
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in files if path.name not in NOT_COUNTED)

    assert {folder: count for folder, count in counts.items() if count > MOST} == {}


def test_no_module_is_longer_than_one_reads_at_once() -> None:
    lines = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
             for package in PACKAGES for path in (ROOT / package).rglob("*.py")}  # fmt: skip
    assert {path: count for path, count in lines.items() if count > LONGEST} == {}


@pytest.mark.parametrize(
    "folder", [folder for folder in FOLDERS if modules(folder)], ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_folder_names_its_files(folder: Path) -> None:
    page = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    named = set(re.findall(r"`(\w+)`", page))

    assert [name for name in modules(folder) if name not in named] == []
