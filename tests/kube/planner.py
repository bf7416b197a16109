"""`jobtree` in a process of its own, whose lock is late after a few seconds: `python -m tests.kube.planner cycle …`."""

import sys

from jobtree.cli.entry import jobtree
from jobtree.cluster.live import lock

if __name__ == "__main__":
    lock.SECONDS = 5
    sys.exit(jobtree())
