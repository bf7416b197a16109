"""The README's picture is the demo's: it carries the digest of what it shows, and the demo must show the same.

``python -m tests.examples.picture`` runs the demo and writes its picture, with that digest, into the docs.
"""

import hashlib
import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from rich.console import Console

from examples import demo
from exporters.lake.lake import Lake, read_plan, read_snapshot
from exporters.plans import planjson
from reports.fleet.slots import fleet_slots

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "fleet.png"
_CHUNK = "fleet"


def shown_by_the_demo(output: Path) -> str:
    """SHA-256 of who holds each GPU after the demo's cycle, from the lake in its output folder."""
    manifest = Lake(output / "cluster.yaml.lake").manifest_path(demo.NOW)
    snapshot, _ = read_snapshot(manifest)
    slots = fleet_slots(snapshot.tables, planjson.decode(read_plan(manifest)))
    return hashlib.sha256(repr(slots).encode()).hexdigest()


def shown_by_the_picture() -> str:
    """The digest that the picture in the docs carries."""
    with Image.open(PICTURE) as image:
        return str(image.info.get(_CHUNK, ""))


def write() -> int:
    """Makes the picture in the docs anew; returns the demo's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        code = demo.main(output, Console(file=io.StringIO()))
        if code == 0:
            carried = PngInfo()
            carried.add_text(_CHUNK, shown_by_the_demo(output))
            with Image.open(output / "fleet.png") as image:
                image.save(PICTURE, pnginfo=carried, optimize=True, dpi=image.info["dpi"])
    return code


if __name__ == "__main__":
    sys.exit(write())
