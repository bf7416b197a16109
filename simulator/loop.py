"""The loop: a stream from event to event in virtual time, whoever schedules.

    events     submissions, nodes, true ends; each at its own second
    turns      the scheduler's: when something happened or is due, and `every` after the last one at the earliest
    service    what a job has done of what it has to do, in seconds at its whole width; what is stopped keeps what it
               had done at its last checkpoint, and a job without one begins anew
    outages    work on a node that fails stands still from then on, whenever the scheduler hears of it; silence of less
               than `BLIP` harms nothing

Two runs of one stream give the same bytes: nothing here looks at a clock, and every order is that of times and names.
"""

import heapq
import math
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

import msgspec

from simulator.stream import Job, Key, Line, Mode, Stream

BLIP: Final = 300
"""Seconds of silence that a node's work outlasts: `failure.notReadyAfter` of the default Policy."""


_LIVE: Final = frozenset({"Waiting", "Running"})


class Stop(NamedTuple):
    """A job that runs no more. ``outcome``: Failed, or empty where it waits again; ``why``: in a word."""

    key: Key
    outcome: str
    why: str


class Eta(NamedTuple):
    """Time at which a job that waits is said to start, Unix seconds."""

    key: Key
    p50: int
    p90: int


class Turn(NamedTuple):
    """Deeds of a scheduler. ``running``: the nodes and width of jobs that run since then, or otherwise than before;
    ``again``: those of them that began anew; ``due``: when it wants its next turn at the latest; ``gap``: of its plan,
    0 is a proven optimum; ``overdraft``: GPUs that it charges beyond a bound.
    """

    running: dict[Key, tuple[frozenset[str], int]] = {}
    again: frozenset[Key] = frozenset()
    stopped: tuple[Stop, ...] = ()
    etas: tuple[Eta, ...] = ()
    due: int | None = None
    gap: float = 0.0
    overdraft: int = 0


class Scheduler(Protocol):
    """Scheduler, which is compared. It hears of everything in the order of time, and decides when it has its turn."""

    def submit(self, job: Job, at: int) -> None:
        """A job is there, and waits."""

    def fail(self, node: str, mode: Mode, at: int) -> None:
        """A node fails, or is silent for a while."""

    def recover(self, node: str, at: int) -> None:
        """Take it as well again."""

    def finish(self, key: Key, at: int) -> None:
        """All pods of a job have succeeded."""

    def turn(self, at: int) -> Turn:
        """Decides at Unix second ``at``."""


class Fate(msgspec.Struct, kw_only=True):
    """Fate of a job. Times are Unix seconds; ``left``: of its work, seconds at its whole width; ``width``: GPUs
    that it holds since ``since``, on ``nodes``; ``held``: GPU-seconds until then; ``eta``: the first that it was told.
    """

    at: int
    left: float
    todo: float
    width: int = 0
    nodes: list[str] = []
    since: int = 0
    begun: int = 0
    held: int = 0
    lost: int = 0
    starts: int = 0
    cuts: int = 0
    first: int | None = None
    ended: int | None = None
    outcome: str = "Waiting"
    why: str = ""
    told: int | None = None
    p50: int | None = None
    p90: int | None = None
    down: list[str] = []


class Tick(msgspec.Struct, frozen=True, array_like=True):
    """The cluster after a turn: GPUs that work and that are there, jobs, and what the scheduler said of its plan."""

    at: int
    used: int
    gpus: int
    running: int
    waiting: int
    waiting_gpus: int
    started: int
    cut: int
    gap: float
    overdraft: int


class Progress(msgspec.Struct):
    """All that a run of the loop knows: what it goes on from."""

    fates: dict[str, Fate]
    ticks: list[Tick] = []
    line: int = 0
    last: int | None = None
    wanted: int | None = None
    due: int | None = None


class Loop:
    """A stream under one scheduler; ``gpus``: of each node."""

    def __init__(self, stream: Stream, scheduler: Scheduler, every: int, gpus: dict[str, int]) -> None:
        self.stream, self.scheduler, self.every, self.gpus = stream, scheduler, every, gpus
        self.progress = Progress({}, wanted=stream.start)
        self._ends: list[tuple[int, Key]] = []
        self._live: dict[str, Fate] = {}
        self._out: set[str] = set()
        self._down: set[str] = set()

    def resume(self, progress: Progress, out: Iterable[str], down: Iterable[str]) -> None:
        """Goes on from there. ``out``: nodes that are not there, ``down``: whose work stands still."""
        self.progress, self._out, self._down = progress, set(out), set(down)
        self._live = {name: fate for name, fate in progress.fates.items() if fate.outcome in _LIVE}
        for name in self._live:
            self._expect(_key(name))

    def begin(self, key: Key, job: Job, nodes: Iterable[str], width: int) -> None:
        """A job runs as the stream begins."""
        fate = self._new(job, job.at)
        self._start(key, fate, frozenset(nodes), width, self.stream.start)
        fate.first = job.at

    def run(self, on_turn: Callable[[int], None] | None = None) -> Progress:
        """Go on to the end of the stream; ``on_turn`` hears of the second of each turn when it is over."""
        while (at := self._next()) is not None:
            self._happen(at)
            if self._turn_at() == at:
                self._turn(at)
                if on_turn is not None:
                    on_turn(at)
        return self.progress

    @property
    def outages(self) -> tuple[list[str], list[str]]:
        """Nodes that are not there, and those whose work stands still."""
        return sorted(self._out), sorted(self._down)

    def _next(self) -> int | None:
        """The next second in which something happens; None at the end."""
        lines, line = self.stream.lines, self.progress.line
        times = [int(lines[line].at)] if line < len(lines) else []
        while self._ends and self._stale(*self._ends[0]):
            heapq.heappop(self._ends)
        times += [self._ends[0][0]] if self._ends else []
        if (turn := self._turn_at()) is not None and (times or self.progress.wanted is not None or self._waits()):
            times.append(turn)
        at = min(times, default=None)
        return None if at is None or (self.stream.end is not None and at >= self.stream.end) else at

    def _waits(self) -> bool:
        return bool(self._live)

    def _turn_at(self) -> int | None:
        """Time of the scheduler's next turn."""
        now = self.progress
        wanted = min((each for each in (now.wanted, now.due) if each is not None), default=None)
        return wanted if wanted is None or now.last is None else max(wanted, now.last + self.every)

    def _happen(self, at: int) -> None:
        """Everything of this second: ends, then the stream's own lines."""
        before = self.progress.line
        ended = []
        while self._ends and self._ends[0][0] <= at:
            end, key = heapq.heappop(self._ends)
            if not self._stale(end, key):
                ended.append(key)
        for key in sorted(set(ended)):
            self._finish(key, at)
        lines = self.stream.lines
        while self.progress.line < len(lines) and lines[self.progress.line].at <= at:
            self._one(lines[self.progress.line], at)
            self.progress.line += 1
        if (ended or self.progress.line > before) and self.progress.wanted is None:
            self.progress.wanted = at

    def _one(self, line: Line, at: int) -> None:
        if line.event == "submit":
            job = self.stream.jobs[line.run["metadata"].get("namespace", "default"), line.run["metadata"]["name"]]
            self._new(job, at)
            self.scheduler.submit(job, at)
        elif line.event == "node-fail" and line.node not in self._out:
            if line.mode == "Deleted":
                self._out.add(line.node)
            if line.mode != "NotReady" or line.outage > BLIP:
                self._down.add(line.node)
                self._touch(line.node, at)
            self.scheduler.fail(line.node, line.mode, at)
        elif line.event == "node-recover":
            self._out.discard(line.node)
            self._go_on(line.node, at)
            self.scheduler.recover(line.node, at)

    def _turn(self, at: int) -> None:
        now = self.progress
        now.wanted, now.last = None, at
        turn = self.scheduler.turn(at)
        now.due = None if turn.due is None else max(turn.due, at + 1)
        for stop in turn.stopped:
            self._stop(stop, at)
        started = 0
        for key, (nodes, width) in sorted(turn.running.items()):
            fate = now.fates[_name(key)]
            if fate.outcome not in _LIVE:
                continue
            if fate.width and key in turn.again:
                self._stop(Stop(key, "", "Swap"), at)
            started += not fate.width
            self._start(key, fate, nodes, width, at)
        for eta in turn.etas:
            fate = now.fates[_name(eta.key)]
            if fate.told is None and fate.first is None:
                fate.told, fate.p50, fate.p90 = at, eta.p50, eta.p90
        self._tick(turn, started, at)

    def _tick(self, turn: Turn, started: int, at: int) -> None:
        live, away = self._live, self._out | self._down
        waiting = [name for name, fate in live.items() if fate.outcome == "Waiting"]
        self.progress.ticks.append(
            Tick(
                at,
                sum(fate.width for fate in live.values() if not fate.down),
                sum(gpus for node, gpus in self.gpus.items() if node not in away),
                len(live) - len(waiting),
                len(waiting),
                sum(self.stream.jobs[_key(name)].gpus for name in waiting),
                started,
                sum(stop.outcome == "" for stop in turn.stopped),
                turn.gap,
                turn.overdraft,
            )
        )

    def _new(self, job: Job, at: int) -> Fate:
        name = _name(job.key)
        fate = self._live[name] = self.progress.fates[name] = Fate(at=at, left=job.seconds, todo=job.seconds)
        return fate

    def _over(self, key: Key, fate: Fate, outcome: str, at: int) -> None:
        fate.width, fate.nodes, fate.down = 0, [], []
        fate.ended, fate.outcome = at, outcome
        del self._live[_name(key)]

    def _start(self, key: Key, fate: Fate, nodes: frozenset[str], width: int, at: int) -> None:
        """Runs so wide from now on, be it anew or wider than before."""
        if fate.width:
            self._serve(key, fate, at)
        else:
            fate.begun, fate.starts = at, fate.starts + 1
            fate.first = at if fate.first is None else fate.first
        fate.width, fate.nodes, fate.since, fate.outcome = width, sorted(nodes), at, "Running"
        fate.down = sorted(nodes & self._down)
        self._expect(key)

    def _serve(self, key: Key, fate: Fate, at: int) -> None:
        """Add what it did since it was last looked at."""
        if not fate.down:
            fate.left = max(0.0, fate.left - (at - fate.since) * fate.width / self.stream.jobs[key].gpus)
        fate.held += (at - fate.since) * fate.width
        fate.since = at

    def _stop(self, stop: Stop, at: int) -> None:
        fate, job = self.progress.fates[_name(stop.key)], self.stream.jobs[stop.key]
        fate.why = stop.why
        if fate.outcome not in _LIVE:  # its pods had succeeded: that is what the scheduler has seen
            return
        if fate.width:
            self._serve(stop.key, fate, at)
        if stop.outcome:
            self._over(stop.key, fate, stop.outcome, at)
            return
        fate.width, fate.nodes, fate.down, fate.outcome = 0, [], [], "Waiting"
        fate.cuts += 1
        done = fate.todo - fate.left
        kept = done // job.checkpoint * job.checkpoint if job.checkpoint else 0.0
        fate.lost += round((done - kept) * job.gpus)
        fate.left = fate.todo - kept

    def _finish(self, key: Key, at: int) -> None:
        fate = self.progress.fates[_name(key)]
        self._serve(key, fate, at)
        fate.left = 0.0
        self._over(key, fate, "Completed", at)
        self.scheduler.finish(key, at)

    def _go_on(self, node: str, at: int) -> None:
        if node in self._down:
            self._down.discard(node)
            self._touch(node, at)

    def _touch(self, node: str, at: int) -> None:
        """Let what lies on a node stand still from now on, or go on."""
        for name, fate in self._live.items():
            if node in fate.nodes:
                self._serve(_key(name), fate, at)
                fate.down = sorted(set(fate.nodes) & self._down)
                self._expect(_key(name))

    def _expect(self, key: Key) -> None:
        end = self._end(key)
        if end is not None:
            heapq.heappush(self._ends, (end, key))

    def _end(self, key: Key) -> int | None:
        """True end of a job if all stays as it is."""
        fate = self.progress.fates[_name(key)]
        if not fate.width or fate.down:
            return None
        return fate.since + max(1, math.ceil(fate.left * self.stream.jobs[key].gpus / fate.width))

    def _stale(self, end: int, key: Key) -> bool:
        return self._end(key) != end


def _name(key: Key) -> str:
    return "/".join(key)


def _key(name: str) -> Key:
    namespace, _, rest = name.partition("/")
    return namespace, rest
