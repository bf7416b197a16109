"""Threads that read the same kinds at once, in a process that has read none before."""

import subprocess
import sys

from tests.support.console import ROOT

READERS = """
import sys, threading
import msgspec
from exporters.plans.jsonfile import decode

sys.setswitchinterval(1e-6)
inner = [(f"f{i}", dict[str, list[int | None]] | None, None) for i in range(40)]
kinds = [msgspec.defstruct(f"Outer{n}", [
    (f"g{i}", msgspec.defstruct(f"Inner{n}", inner) | None, None) for i in range(5)
]) for n in range(30)]
start = threading.Barrier(8)
read = []

def reader():
    for kind in kinds:
        start.wait()
        read.append(decode(b'{"g4": {"f39": {"a": [1]}}}', kind, "unreadable").g4.f39["a"])

threads = [threading.Thread(target=reader) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(read == [[1]] * 240)
"""


def test_all_of_them_read_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", READERS], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
