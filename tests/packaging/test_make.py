"""What `make` says on a machine that cannot run Jobtree."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_make_names_the_missing_python(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        (tmp_path / name).symlink_to(ROOT / name)

    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(
        ["make", "env", "PYTHON="], cwd=tmp_path, capture_output=True, text=True, check=False, env=alone
    )

    assert done.returncode == 2
    assert done.stdout == (
        "Jobtree needs Python 3.11 or newer with its venv module; none was found on PATH: "
        "install one, or name it: make PYTHON=/path/to/python3\n"
    )
