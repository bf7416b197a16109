"""A read by a process that has done nothing else, in a module of its own: a spawned process knows no `__main__`."""

import resource
import time

from kubernetes.client import Configuration

from jobtree.cluster.live.client import Api
from jobtree.cluster.live.cluster import LiveCluster
from jobtree.world.tables.snapshot import take


def read(url: str, ca: str) -> str:
    """Seconds and memory of a read, in a process that has done nothing else."""
    configuration = Configuration()
    configuration.host, configuration.ssl_ca_cert = url, ca
    configuration.api_key = {"authorization": "Bearer admin"}
    way = Api(configuration)
    began, worked = time.perf_counter(), time.process_time()
    snapshot = take(LiveCluster(way, int(time.time())).read())
    done, cpu = time.perf_counter() - began, time.process_time() - worked
    way.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows = snapshot.tables["nodes"].num_rows, snapshot.tables["leases"].num_rows
    return f"{done:.1f} s, {cpu:.1f} s of CPU, {memory:.2f} GiB; {rows[0]} nodes, {rows[1]} leases"
