"""Files as such: never half written, one writer at a time, what cannot be read or written says why (spec §10)."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jobtree.api import Refusal
from jobtree.cluster.protocol import Ref, Write
from jobtree.cluster.statefile import StateFile
from tests.support import documents as doc
from tests.support.disk import full_at
from tests.support.worlds import World

AT = 1767225600
TEXT = doc.dump([doc.node("n"), doc.run("r", 8)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "state.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def create(name: str) -> Write:
    return Write("create", Ref("Run", "default", name), doc.run(name, 8))


def submit(path: Path, name: str) -> None:
    state = StateFile(path, AT)
    state.write([create(name)], state.read().revision)


def names(path: Path) -> set[str]:
    return {each.name for each in StateFile(path, AT).read().runs}


def sentence(path: Path) -> str:
    with pytest.raises(Refusal) as refusal:
        StateFile(path, AT).read()
    return str(refusal.value)


HEAD = """
import os, sys
from jobtree.cluster.protocol import Ref, Write
from jobtree.cluster.statefile import StateFile

state = StateFile(sys.argv[1], 1767225600, create=True)

def submit(name):
    spec = {"owner": "org:a", "resources": {"gpuType": "H100-80GB", "totalGPUs": 8}}
    run = {"apiVersion": "rq.davidlangworthy.io/v1", "kind": "Run", "metadata": {"name": name}, "spec": spec}
    state.write([Write("create", Ref("Run", "default", name), run)], state.read().revision)
"""


def child(program: str, *args: object) -> subprocess.Popen[str]:
    """A process of its own that writes the state file named by its first argument."""
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + program, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> int:
    process.communicate()
    return process.returncode


DIES = """
number, real = 0, {}

def dying(name):
    def call(*args, **kwargs):
        global number
        number -= 1
        if number < 0:
            os._exit(9)
        if name == "write" and len(args[1]) > 100:
            return real[name](args[0], args[1][:100])  # so that there are moments within the writing too
        return real[name](*args, **kwargs)
    return call

for name in ("open", "write", "fsync", "chmod", "replace", "unlink", "close"):
    real[name] = getattr(os, name)
code = 9
for number, folder in enumerate(sys.argv[2:]):
    if os.fork() == 0:
        state = StateFile(folder + "/state.yaml", 1767225600)
        for name in real:
            setattr(os, name, dying(name))
        submit("new")
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.wait()[1])
    if code == 0:
        break
print(number, code)
"""


def test_a_crash_at_any_moment_leaves_the_old_state_or_the_new_one(tmp_path: Path) -> None:
    """The n-th process dies at its n-th call of the system, until one comes to its end."""
    paths = [tmp_path / str(number) / "state.yaml" for number in range(60)]
    for path in paths:
        path.parent.mkdir()
        path.write_text(TEXT, encoding="utf-8")
    report, _ = child(DIES, paths[0], *(path.parent for path in paths)).communicate()
    deaths, code = map(int, report.split())
    assert code == 0
    left = [names(path) for path in paths[: deaths + 1]]
    before = left.index({"r", "new"})
    assert left == [{"r"}] * before + [{"r", "new"}] * (deaths + 1 - before)
    assert 10 < before < deaths
    for path in paths[: deaths + 1]:
        submit(path, "later")
        assert (names(path) >= {"r", "later"}, os.listdir(path.parent)) == (True, [path.name])


def test_a_full_disk_leaves_the_file_as_it_was(path: Path) -> None:
    with full_at(100), pytest.raises(Refusal) as refusal:
        submit(path, "new")
    assert str(refusal.value) == f"{path}: it cannot be written and is as it was: file too large"
    assert (path.read_text(encoding="utf-8"), os.listdir(path.parent)) == (TEXT, [path.name])


def test_writers_wait_for_each_other_and_nothing_is_lost(path: Path) -> None:
    writers = [child("with state.hold():\n    submit(sys.argv[2])", path, f"w{number}") for number in range(5)]
    assert [ended(writer) for writer in writers] == [0] * 5
    assert names(path) == {"r", "w0", "w1", "w2", "w3", "w4"}


def test_two_that_make_the_same_file_both_get_in(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    writers = [child("with state.hold():\n    submit(sys.argv[2])", path, f"w{number}") for number in range(2)]
    assert [ended(writer) for writer in writers] == [0, 0]
    assert names(path) == {"w0", "w1"}


def test_a_writer_that_waits_too_long_says_so_and_readers_do_not_wait(path: Path) -> None:
    holder = child("with state.hold():\n    print('held', flush=True)\n    sys.stdin.read()", path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    state = StateFile(path, AT, wait=0.1)
    revision = state.read().revision
    with pytest.raises(Refusal) as refusal:
        state.write([create("new")], revision)
    assert str(refusal.value) == f"{path}: another command has been writing it for 0.1 s; try again later"
    holder.communicate("")
    state.write([create("new")], revision)
    assert names(path) == {"r", "new"}


def test_a_writer_that_dies_lets_go_of_the_lock(path: Path) -> None:
    assert ended(child("with state.hold():\n    os._exit(9)", path)) == 9
    submit(path, "new")
    assert names(path) == {"r", "new"}


def test_mode_and_owner_stay(path: Path) -> None:
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()
    submit(path, "new")
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_a_new_file_has_the_mode_that_the_user_wants(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    before = os.umask(0o027)
    try:
        state = StateFile(path, AT, create=True)
        state.write([create("r")], state.read().revision)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_symbolic_links_are_followed_and_stay(path: Path) -> None:
    folder = path.parent / "elsewhere"
    folder.mkdir()
    link = folder / "link.yaml"
    link.symlink_to(Path("..") / path.name)
    submit(link, "new")
    assert (link.is_symlink(), names(path), os.listdir(folder)) == (True, {"r", "new"}, ["link.yaml"])


def test_a_link_to_nothing_is_a_missing_file(tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to("new.yaml")
    state = StateFile(link, AT, create=True)
    state.write([create("r")], state.read().revision)
    assert (link.is_symlink(), names(tmp_path / "new.yaml")) == (True, {"r"})


def test_a_read_only_file_is_not_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o444)
    if os.geteuid() == 0:  # root may write everything, so the answer has to come from the system call itself
        monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(Refusal, match=r"it cannot be written and is as it was: permission denied$"):
        submit(path, "new")


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    said = "there is no such file; `kubectl runs --state FILE submit -f MANIFEST` makes one"
    assert sentence(path) == f"{path}: {said}"


def test_a_missing_file_in_a_missing_folder_is_a_wrong_name(tmp_path: Path) -> None:
    path = tmp_path / "none" / "none.yaml"
    assert sentence(path) == f"{path}: there is no such file"


def test_a_directory_is_no_state_file(tmp_path: Path) -> None:
    assert sentence(tmp_path) == f"{tmp_path}: it is a directory; name a file in it"


def test_a_pipe_is_no_state_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert sentence(path) == f"{path}: it is not a regular file; name a file"


def test_links_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.symlink_to("a")
    assert sentence(path) == f"{path}: it cannot be read: too many levels of symbolic links"


def test_an_unreadable_file_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0)
    if os.geteuid() == 0:  # root reads everything, so the refusal has to come from the system call itself
        monkeypatch.setattr(os, "open", _denied)
    assert sentence(path) == f"{path}: it cannot be read: permission denied"


def _denied(*_: object) -> int:
    raise PermissionError(13, os.strerror(13))


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none" / "state.yaml"
    state = StateFile(path, AT, create=True)
    with pytest.raises(Refusal) as refusal:
        state.write([create("r")], state.read().revision)
    assert str(refusal.value) == f"{path}: its directory cannot be opened: no such file or directory"


def test_a_world_becomes_the_same_written_in_yaml_as_in_json() -> None:
    """Most tests write JSON, which is read at once, and most people YAML."""
    ends = []
    for written in (doc.dump, doc.as_json):
        world = World(written=written).domain("A", nodes=2).policy().foreign_pod("other", "a02", 2)
        world.budget("org:a", 8, lending={"allow": True}).budget("org:b", 4)
        world.run("runs", 6, limit="2h").run("lent", 2, owner="org:b:x", funding={"allowBorrow": True}).run("waits", 4)
        world.cycle()
        world.runs("complete", "runs", at="+30m").ok()
        world.edit("Run", "lent", spec={"state": "Suspended"}, metadata={"annotations": {"why": "01:30\n- on\n"}})
        world.cycle("+1h")
        world.add(doc.run("late", 3)).delete("Run", "lent")
        ends.append([world.cycle("+2h").documents, world.cycle("+3h").documents])
    assert ends[0] == ends[1]
