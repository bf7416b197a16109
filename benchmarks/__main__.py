"""``python -m benchmarks [--sizes 1000,10000,100000]``: a planning cycle on fleets of several sizes, measured.

Each cycle runs in a fresh process. Writes ``benchmarks/results/DATE-cycle.json`` and ``.md``, and prints the table.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import fleet, machine, tables
from benchmarks.load import world
from benchmarks.measure import Measured
from exporters import planjson
from exporters.lake import Lake, read_plan

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000", help="GPUs, by comma (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    found = []
    for gpus in sizes:
        print(f"{gpus:,} GPUs ...", file=sys.stderr, flush=True)
        path = world(gpus)
        whole = command(path)
        found.append({"world": path.stem, "command": whole, "cycle": msgspec.to_builtins(phases(path))})
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    result: dict[str, Any] = {"date": date, "machine": machine.describe(), "worlds": found}
    given.out.mkdir(parents=True, exist_ok=True)
    text = tables.markdown(result)
    (given.out / f"{date}-cycle.json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    (given.out / f"{date}-cycle.md").write_text(text, encoding="utf-8")
    print(text)


def phases(path: Path) -> Measured:
    """The cycle phase by phase (see `benchmarks.measure`)."""
    child = [sys.executable, "-m", "benchmarks.measure", str(path), str(fleet.AT)]
    done = subprocess.run(child, check=True, stdout=subprocess.PIPE, env=_one_thread())
    return msgspec.json.decode(done.stdout, type=Measured)


def command(path: Path) -> dict[str, float]:
    """``jobtree cycle`` as an operator runs it, with its planner process: wall seconds, CPU and memory of both, and
    whether the deadline of the Policy (45 s by default) cut the plan short."""
    with tempfile.TemporaryDirectory() as folder:
        state = shutil.copy(path, folder)
        argv = [sys.executable, "-c", "import sys; from jobtree.cli.operator import main; sys.exit(main())"]
        at = datetime.fromtimestamp(fleet.AT, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        argv += ["--state", state, "cycle", "--at", at]
        began = time.perf_counter()
        errors = Path(folder) / "stderr"
        with (
            errors.open("wb") as stderr,
            subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=stderr, env=_one_thread()) as process,
        ):
            _, status, used = os.wait4(process.pid, 0)  # the usage of this process and of those that it waited for
            process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
        if process.returncode:
            said = errors.read_text(encoding="utf-8").strip().rpartition("\n")[2]
            sys.exit(f"jobtree cycle on {path.name} ended with exit code {process.returncode}: {said}")
        plan = planjson.decode(read_plan(Lake(Path(folder) / "lake").manifest_path(fleet.AT)))
    return {
        "wall": round(wall, 3),
        "cpu": round(used.ru_utime + used.ru_stime, 3),
        "peakMB": used.ru_maxrss // 1024,
        "truncated": plan.truncated,
    }


def _one_thread() -> dict[str, str]:
    """As the planner process has it: numerical libraries on one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


if __name__ == "__main__":
    main()
