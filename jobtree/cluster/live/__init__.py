"""A live cluster behind `protocol.Cluster`: one consistent read, writes in order, a lock for planners.

`client` who and where; `lists` reads, `writing` writes, `lock` one planner at a time; `refused` pods that the server
does not take; `cluster` the protocol, `paths` where kinds lie.
"""

from jobtree.api import Refusal
from jobtree.cluster.protocol import Cluster


def connect(context: str | None, at: int, *, planning: bool = False, namespace: str | None = None) -> Cluster:
    """The cluster that kubectl would use, at Unix second ``at``; ``context``: another than the current one;
    ``namespace``: what is shown to who may not list everything, by default the context's.

    With ``planning`` its `hold` takes the planners' lock. Raises Refusal.
    """
    try:
        from jobtree.cluster.live import client, cluster, lock, paths
    except ModuleNotFoundError as error:
        raise Refusal(
            f"a live cluster needs {error.name}, which is missing; install the wheel with [live], or name a file with "
            "--state FILE"
        ) from None
    api = client.connect(context)
    return cluster.LiveCluster(api, at, lock.Lock(api, paths.system()) if planning else None, own=namespace)
