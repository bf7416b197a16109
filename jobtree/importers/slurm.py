"""Slurm's batch scripts as Runs: the lines `#SBATCH …` at the head of a script say what a Run's spec says."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from jobtree.api import Duration
from jobtree.api.kinds.base import MAX_INDICES
from jobtree.api.values.errors import Refusal
from jobtree.api.values.scalars import DAY, HOUR, MINUTE, Memory
from jobtree.importers.made import Document, Made, name_of

_LONG: Final = {
    "A": "account", "C": "constraint", "D": "chdir", "G": "gpus", "H": "hold", "J": "job-name", "N": "nodes",
    "a": "array", "c": "cpus-per-task", "d": "dependency", "e": "error", "n": "ntasks", "o": "output",
    "p": "partition", "q": "qos", "t": "time", "w": "nodelist",
}  # fmt: skip
_FLAGS: Final = frozenset({"exclusive", "hold", "H", "no-requeue", "overcommit", "requeue", "wait"})
"""Options without a value."""
_GPUS: Final = re.compile(r"(?:gres/)?(?:gpu:)?(?:(?P<type>[A-Za-z][\w.-]*):)?(?P<count>[0-9]{1,12})")
_TIME: Final = re.compile(r"(?:(?P<days>[0-9]{1,12})-)?(?P<clock>[0-9]{1,12}(?::[0-9]{1,12}){0,2})")
_INDICES: Final = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12})(?::([0-9]{1,12}))?)?")
_MEMORY: Final = " KMGT"


@dataclass(frozen=True)
class Defaults:
    """What scripts do not say. ``owner``, ``flavor``: instead of what they say; ``image``: of the pods' container."""

    owner: str | None = None
    flavor: str | None = None
    image: str | None = None


def read(made: Made, script: str, name: str, defaults: Defaults) -> None:
    """Adds the Run of a script; ``name``: the file's. Raises Refusal where it says too little for a Run."""
    options = dict(_options(script))
    job = name_of(options.pop("job-name", name))
    account = options.pop("account", None)
    owner = defaults.owner or (account and (account if ":" in account else f"org:{account}"))
    if not owner:
        raise Refusal("it names no --account; say --owner OWNER")
    nodes, tasks = _shape(options)
    spec: Document = {"owner": owner}
    if "hold" in options:
        del options["hold"]
        spec["state"] = "Suspended"
    spec["resources"] = _gpus(options, nodes, tasks, defaults) or _cpus(made, options, job, nodes, tasks)
    if runtime := _runtime(options):
        spec["runtime"] = runtime
    if "array" in options:
        spec["array"] = _array(options.pop("array"))
    if defaults.image is not None:
        body = "".join(line for line in script.splitlines(keepends=True) if not line.startswith("#SBATCH"))
        container = {"name": "main", "image": defaults.image, "command": ["bash", "-c", body]}
        spec["template"] = {"spec": {"containers": [container]}}
    else:
        made.notes.append(f"{job}: its commands are left out, as no --image says what runs them")
    if options:
        left = ", ".join(f"--{option}{f'={value}' if value else ''}" for option, value in sorted(options.items()))
        made.notes.append(f"{job}: left out: {left}")
    made.add("Run", {"name": job}, spec)


def _options(script: str) -> Iterator[tuple[str, str]]:
    """(long name, value) of the head; a later one counts."""
    for line in script.removeprefix("\ufeff").splitlines():
        if line.strip() and not line.startswith("#"):
            return  # from the first command on sbatch reads no more
        if not line.startswith("#SBATCH"):
            continue
        try:
            words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
        except ValueError as error:
            raise Refusal(f"{line!r}: {error}") from None
        while words:
            word = words.pop(0)
            if not word.startswith("-"):
                raise Refusal(f"{line!r}: {word} is no option")
            if word.startswith("--"):
                name, equals, value = word[2:].partition("=")
            else:
                name, equals, value = word[1], word[2:] and "=", word[2:]
            if not equals and name not in _FLAGS and words:
                value = words.pop(0)
            yield _LONG.get(name, name), value


def _shape(options: dict[str, str]) -> tuple[int, int]:
    """How many nodes and tasks it has: one task on each node, and one node, where it says nothing else."""
    said, most = options.pop("nodes", ""), options.pop("ntasks-per-node", "")
    each = _count("ntasks-per-node", most or "1")
    if "ntasks" in options and not said:
        tasks = _count("ntasks", options.pop("ntasks"))
        return (-(-tasks // each) if most else 1), tasks
    nodes = _count("nodes", (said or "1").partition("-")[0])
    return nodes, _count("ntasks", options.pop("ntasks", str(nodes * each)))


def _gpus(options: dict[str, str], nodes: int, tasks: int, defaults: Defaults) -> Document | None:
    """The resources of a script that asks for GPUs; None of any other."""
    gres = [each for each in options.pop("gres", "").split(",") if each]
    per_node = next((each for each in gres if each.partition(":")[0] in {"gpu", "gres/gpu"}), None)
    if rest := [each for each in gres if each != per_node]:
        options["gres"] = ",".join(rest)
    per_node = options.pop("gpus-per-node", per_node)
    total, per_task = options.pop("gpus", None), options.pop("gpus-per-task", None)
    text = total or per_node or per_task
    if text is None:
        return None
    kind, count = _typed(text)
    if total is None:
        count *= nodes if per_node else tasks
    flavor = defaults.flavor or kind
    if flavor is None:
        raise Refusal(f"{text} says no type of GPU; say --flavor FLAVOR")
    resources: Document = {"gpuType": flavor, "totalGPUs": count}
    if (per_node or nodes > 1) and count % nodes == 0:
        resources["gpusPerPod"] = count // nodes
    return resources


def _typed(text: str) -> tuple[str | None, int]:
    """Type and count of ``gpu:h100:8``, ``h100:8``, ``8``, ``gpu``."""
    if text in {"gpu", "gres/gpu"}:
        return None, 1
    found = _GPUS.fullmatch(text)
    if found is None or int(found["count"]) == 0:
        raise Refusal(f"{text} is no number of GPUs; allowed is such as gpu:h100:8")
    return found["type"], int(found["count"])


def _cpus(made: Made, options: dict[str, str], job: str, nodes: int, tasks: int) -> Document:
    each = _count("cpus-per-task", options.pop("cpus-per-task", "1"))
    per_cpu, per_node = options.pop("mem-per-cpu", None), options.pop("mem", None)
    if per_cpu or per_node is None:
        memory = _memory(per_cpu or "1G") * (each if per_cpu else 1)
    else:
        memory = -(-_memory(per_node) // -(-tasks // nodes))  # of a node, for all its tasks
    if not (per_cpu or per_node):
        made.notes.append(f"{job}: it says no --mem: memoryPerPod is 1Gi")
    return {"pods": tasks, "cpuPerPod": str(each), "memoryPerPod": str(Memory(memory))}


def _memory(text: str) -> int:
    """Bytes of ``16G``; a number alone is of mebibytes."""
    found = re.fullmatch(r"([0-9]{1,12})([KMGT]?)B?", text)
    if found is None or int(found[1]) == 0:
        raise Refusal(f"--mem={text} is no amount; allowed is such as 16G")
    return int(found[1]) << 10 * _MEMORY.index(found[2] or "M")


def _runtime(options: dict[str, str]) -> Document:
    runtime: Document = {}
    limit = options.pop("time", "")
    if limit not in {"", "0", "UNLIMITED", "INFINITE"}:
        runtime["timeLimit"] = str(Duration(_seconds(limit)))
    for option, value in (("requeue", True), ("no-requeue", False)):
        if option in options:
            del options[option]
            runtime["requeue"] = value
    return runtime


def _seconds(text: str) -> int:
    """Slurm's times: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise Refusal(f"--time={text} is no time; allowed are minutes, H:M:S and D-H:M:S")
    parts = [int(part) for part in found["clock"].split(":")]
    units: tuple[int, ...] = (HOUR, MINUTE, 1)
    if found["days"] is None:
        units = units[-len(parts) :] if len(parts) > 1 else (MINUTE,)
    return int(found["days"] or 0) * DAY + sum(part * unit for part, unit in zip(parts, units, strict=False))


def _array(text: str) -> dict[str, Any]:
    """``0-9%4``, ``1,3,5``, ``0-15:4``."""
    said, percent, most = text.partition("%")
    indices: list[int] = []
    for part in said.split(","):
        found = _INDICES.fullmatch(part)
        if found is None or (found[3] and int(found[3]) == 0):
            raise Refusal(f"--array={text} is no list of indices; allowed is such as 0-9%4")
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if max(len(indices), (last - first) // step) >= MAX_INDICES:
            raise Refusal(f"--array={text} has more indices than the {MAX_INDICES} that an array may have")
        indices += range(first, last + 1, step)
    whole = sorted({*indices})
    array: dict[str, Any] = {"count": len(whole)} if whole == [*range(len(whole))] else {"indices": whole}
    return array | ({"maxParallel": _count("array", most)} if percent else {})


def _count(option: str, text: str) -> int:
    if not (re.fullmatch("[0-9]{1,12}", text) and int(text) > 0):
        raise Refusal(f"--{option}={text} is no number; allowed is a whole number above 0")
    return int(text)
