"""From a state file to a Snapshot, the part of a cycle that grows with the fleet alone: ``python -m benchmarks.load``.

Prints seconds and peak memory for the world of a case (default full-100k-1), each try in a fresh process.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec

from benchmarks import fleet, sizes
from benchmarks.catalogue import chosen
from benchmarks.clock import Clock, Span
from benchmarks.fleet.recipe import Recipe

CACHE: Final = Path(__file__).parent.parent / ".cache" / "benchmarks"


def world(recipe: Recipe) -> Path:
    """The state file of a fleet, made at most once for a recipe and the code that makes it."""
    digest = hashlib.sha256(msgspec.json.encode(recipe))
    for source in (sizes.SOURCE, Path(sizes.__file__), *sorted(Path(fleet.__file__).parent.glob("*.py"))):
        digest.update(source.read_bytes())
    path = CACHE / f"fleet-{recipe.gpus}-{digest.hexdigest()[:12]}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        fleet.write_fleet(part, recipe)
        part.rename(path)
    return path


def load(path: Path) -> dict[str, Span]:
    """Read and snapshot in this process."""
    from jobtree.cluster.statefile import StateFile
    from jobtree.world.tables.snapshot import take

    clock = Clock()
    with clock.span("read"):
        intake = StateFile(path, fleet.AT).read()
    with clock.span("snapshot"):
        snapshot = take(intake)
    with clock.span("digest"):
        assert snapshot.digest
    return clock.spans


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--case", default="full-100k-1")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)  # the child process
    given = parser.parse_args()
    if given.file is not None:
        sys.stdout.buffer.write(msgspec.json.encode(load(given.file)))
        return
    path = world(chosen([given.case], everything=False)[0].recipe)
    print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    for _ in range(given.tries):
        child = [sys.executable, "-m", "benchmarks.load", "--file", str(path)]
        spans = json.loads(subprocess.run(child, check=True, capture_output=True).stdout)
        print(", ".join(f"{name} {span['wall']:.2f} s" for name, span in spans.items()), end="")
        print(f"; peak {spans['digest']['peak_mb']} MB")


if __name__ == "__main__":
    main()
