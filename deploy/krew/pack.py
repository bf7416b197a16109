"""`make krew`: the plugin's archive and its manifest, in dist/, from the wheel there.

``python deploy/krew/pack.py [URI]``: where the archive will lie; without it the one in dist/ itself, for
``kubectl krew install --manifest dist/runs.yaml --archive dist/kubectl-runs.tar.gz``.
"""

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path
from typing import Final

KREW: Final = Path(__file__).parent
ROOT: Final = KREW.parents[1]
ARCHIVE: Final = "kubectl-runs.tar.gz"


def archive(wheel: Path) -> bytes:
    """The archive: wheel, lock and the plugin's script; the same bytes for the same wheel."""
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w") as tar:
        for file in (KREW / "kubectl-runs", ROOT / "LICENSE", ROOT / "deploy" / "requirements.lock", wheel):
            about = tarfile.TarInfo(file.name)
            about.size, about.mode = file.stat().st_size, 0o755 if file.name == "kubectl-runs" else 0o644
            tar.addfile(about, io.BytesIO(file.read_bytes()))
    return gzip.compress(inner.getvalue(), mtime=0)


def manifest(version: str, uri: str, data: bytes) -> str:
    """The manifest of an archive that lies at ``uri``."""
    text = (KREW / "runs.yaml").read_text().partition("\n")[2]
    facts = {"VERSION": version, "URI": uri, "SHA256": hashlib.sha256(data).hexdigest()}
    for name, fact in facts.items():
        text = text.replace(name, fact, 1)
    return text


def main() -> None:
    """Writes both."""
    dist = ROOT / "dist"
    wheel = max(dist.glob("jobtree-*.whl"), key=lambda path: path.stat().st_mtime)
    data = archive(wheel)
    (dist / ARCHIVE).write_bytes(data)
    uri = sys.argv[1] if len(sys.argv) > 1 else (dist / ARCHIVE).absolute().as_uri()
    (dist / "runs.yaml").write_text(manifest(wheel.name.split("-")[1], uri, data))


if __name__ == "__main__":
    main()
