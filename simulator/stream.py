"""Streams: what befalls a cluster in the course of time, as JSON Lines beside the state file that it begins with.

::

    {"event": "header", "format": "jobtree-stream/1", "start": TIME, "end": TIME}     end: left out: till all is done
    {"at": TIME, "event": "submit", "run": MANIFEST, "duration": SECONDS}             it truly runs so long at totalGPUs
    {"at": TIME, "event": "running", "namespace": N, "name": N, "remaining": SECONDS} of a run that the base has running
    {"at": TIME, "event": "node-fail", "node": N, "mode": MODE, "outage": SECONDS}    NotReady, OutOfService, Deleted
    {"at": TIME, "event": "node-recover", "node": N}

What is true of a job is the simulator's to know; schedulers see its manifest.
"""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from jobtree.api import Refusal, Run, Time, dec_hook, decode
from jobtree.api.rules.kinds import check_object
from jobtree.cluster import document
from jobtree.world.reading.intake import POLICY

FORMAT = "jobtree-stream/1"
Mode = Literal["NotReady", "OutOfService", "Deleted"]
Key = tuple[str, str]
"""Namespace and name of a run."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line; ``end``: exclusive, None: until everything has come to its end."""

    format: str
    start: Time
    end: Time | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Any other line."""

    at: Time
    event: Literal["submit", "running", "node-fail", "node-recover"]
    run: dict[str, Any] = {}
    duration: int = 0
    namespace: str = "default"
    name: str = ""
    remaining: int = 0
    node: str = ""
    mode: Mode = "NotReady"
    outage: int = 0


class Job(NamedTuple):
    """A run of the stream. ``seconds``: how long it truly runs at its whole width; of one that the base has running,
    what is left of that. ``manifest``: what is submitted, None of such a one.
    """

    run: Run
    at: int
    seconds: int
    manifest: dict[str, Any] | None = None

    @property
    def key(self) -> Key:
        """Key of its run."""
        return self.run.namespace, self.run.name

    @property
    def gpus(self) -> int:
        """Whole width."""
        return self.run.spec.resources.total_gpus or 0

    @property
    def owner(self) -> str:
        """Owner of its run."""
        return self.run.spec.owner

    @property
    def flavor(self) -> str:
        """Flavor that it runs on."""
        return self.run.spec.resources.gpu_type or ""

    @property
    def checkpoint(self) -> int | None:
        """Seconds after which what was done is kept; None: what is stopped starts over."""
        every = self.run.spec.runtime.checkpoint
        return None if every is None else int(every)

    @property
    def limit(self) -> int | None:
        """Seconds after which it is ended."""
        limit = self.run.spec.runtime.time_limit
        return None if limit is None else int(limit)

    @property
    def told(self) -> int | None:
        """Seconds that its manifest lets a scheduler expect: its ``expected``, else its limit."""
        expected = self.run.spec.runtime.expected
        return self.limit if expected is None else int(expected)

    def by_limit(self) -> "Job":
        """The same, told by its limit alone where it states one."""
        if self.limit is None:
            return self
        spec = self.run.spec
        runtime = msgspec.structs.replace(spec.runtime, expected=None)
        return self._replace(run=msgspec.structs.replace(self.run, spec=msgspec.structs.replace(spec, runtime=runtime)))


class Stream(NamedTuple):
    """A whole stream: ``base`` is the state file's bytes; ``jobs`` by key, ``lines`` in the order of time."""

    name: str
    start: int
    end: int | None
    base: bytes
    jobs: dict[Key, Job]
    lines: list[Line]

    def by_limits(self) -> "Stream":
        """The same to who plans by time limits: where a job states one, nothing is expected of it."""
        return self._replace(jobs={key: job.by_limit() for key, job in self.jobs.items()})


def load(path: Path, base: Path | None = None, policy: Path | None = None) -> Stream:
    """A stream file, or the folder of ``stream.jsonl`` and ``base.json``; both may be gzipped (``.gz``).

    ``policy``: the file of a Policy that holds in place of the base's.
    Raises Refusal naming the file and line that cannot be read.
    """
    if not path.exists():
        what = "a stream is a file of submissions, or a folder with stream.jsonl and base.json"
        raise Refusal(f"there is no such stream; {what}, as examples/philly-hours is", subject=str(path))
    folder = path.is_dir()
    file = _there(path / "stream.jsonl") if folder else path
    name = path.resolve().name if folder else path.name.partition(".")[0]
    base = base or _there(file.parent / "base.json")
    if not base.exists():
        raise Refusal(f"there is no {base} to begin with; name a state file: --base FILE", subject=str(file))
    state = _bytes(base)
    return read(name, _bytes(file), state if policy is None else _under(state, policy), str(file))


def _under(state: bytes, policy: Path) -> bytes:
    """The state with another Policy."""
    with _about(policy):
        found = [each.value() for each in document.parse(_bytes(policy)).documents()]
        if [each.get("kind") for each in found] != ["Policy"]:
            raise Refusal("it is to hold one Policy and nothing else")
        decode("Policy", found[0])
    items = [each.value() for each in document.parse(state).documents() if each.key != POLICY]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": [*items, *found]})


@contextmanager
def _about(path: Path) -> Iterator[None]:
    try:
        yield
    except Refusal as refusal:
        raise refusal.about(str(path)) from None


def read(name: str, text: bytes, base: bytes, file: str = "stream") -> Stream:
    """A stream from its lines and the state file that it begins with. Raises Refusal naming ``file`` and line."""
    header: Header | None = None
    lines: list[Line] = []
    jobs: dict[Key, Job] = {}
    for number, each in enumerate(text.splitlines(), 1):
        where = f"{file}, line {number}"
        if header is None:
            header = _decoded(each, Header, where)
            if header.format != FORMAT:
                raise Refusal(f"its format is {header.format}; allowed is {FORMAT}", subject=where)
            continue
        line = _decoded(each, Line, where)
        before = lines[-1].at if lines else header.start
        if line.at < before:
            raise Refusal(
                f"{line.at} lies before {before}, where the stream is; lines are in time order", subject=where
            )
        if line.event == "node-fail" and line.mode == "NotReady" and line.outage <= 0:
            raise Refusal(f"its outage is {line.outage} s; allowed are seconds above 0", subject=where)
        lines.append(line)
        if line.event == "submit":
            job = _job(line, where)
            if job.key in jobs:
                raise Refusal(f"{job.run.subject} is submitted twice; names are unique", subject=where)
            jobs[job.key] = job
    if header is None:
        raise Refusal("it is empty; its first line is to be the header", subject=file)
    return Stream(name, int(header.start), None if header.end is None else int(header.end), base, jobs, lines)


def _job(line: Line, where: str) -> Job:
    if line.duration <= 0:
        raise Refusal(f"its duration is {line.duration} s; allowed are seconds above 0", subject=where)
    try:
        run = msgspec.convert(line.run, Run, dec_hook=dec_hook)
        check_object(run)
    except (msgspec.ValidationError, ValueError) as error:
        raise Refusal(f"its run cannot be used: {error}", subject=where) from None
    if not run.spec.resources.total_gpus or run.spec.array is not None:
        raise Refusal("only runs with GPUs that are no arrays can be simulated", subject=where)
    return Job(run, int(line.at), line.duration, line.run)


def _there(path: Path) -> Path:
    """The file, or its gzipped form where that is there."""
    packed = path.with_name(f"{path.name}.gz")
    return packed if packed.exists() and not path.exists() else path


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Refusal(f"it cannot be read: {reason.lower()}", subject=str(path)) from None


def _decoded(text: bytes, kind: type[Any], where: str) -> Any:
    try:
        return msgspec.json.decode(text, type=kind, dec_hook=dec_hook)
    except (msgspec.DecodeError, ValueError) as error:
        raise Refusal(f"it is no line of a stream: {error}", subject=where) from None
