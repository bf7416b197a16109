"""Where the tests' files lie."""

import subprocess
import sys
from pathlib import Path

from tests.support.scratch import in_memory


def test_a_folder_serves_where_it_is_there_and_has_room(tmp_path: Path) -> None:
    assert in_memory(tmp_path, 1)
    assert not in_memory(tmp_path, 1 << 62)
    assert not in_memory(tmp_path / "none", 1)


def test_who_says_where_temporary_files_go_is_heard(tmp_path: Path) -> None:
    code = "import tempfile; from tests.support import scratch; scratch.choose(); print(tempfile.gettempdir())"
    told = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}

    assert subprocess.check_output([sys.executable, "-c", code], env=told, text=True) == f"{tmp_path}\n"
