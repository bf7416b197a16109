"""What a figure was measured on, in words that name no host and no path."""

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Final

import msgspec

PACKAGES: Final = ("jobtree", "highspy", "msgspec", "numpy", "orjson", "pyarrow", "pyyaml")


class Machine(msgspec.Struct, frozen=True):
    """``memory``: GB; ``packages``: versions of those that matter."""

    cores: int
    processor: str
    memory: int
    system: str
    python: str
    packages: dict[str, str]


def describe() -> Machine:
    """This machine."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        processor=_processor(),
        memory=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        packages={name: metadata.version(name) for name in PACKAGES},
    )


def _processor() -> str:
    """The model name that the kernel gives; Linux only, elsewhere what Python knows."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def sentence(machine: Machine) -> str:
    """One line for people."""
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    return (
        f"{machine.cores} cores of {machine.processor}, {machine.memory} GB, {machine.system}, "
        f"Python {machine.python}, {packages}"
    )
