"""The plan's canonical bytes: what the lake keeps, what digests are taken of, what a replay is compared with."""

import hashlib

import msgspec

from exporters.plans import jsonfile
from jobtree.api import enc_hook
from jobtree.world.plan import Plan


def encode(plan: Plan) -> bytes:
    """JSON on one line, fields in the order of their declaration, mappings by key: equal plans give equal bytes."""
    return msgspec.json.encode(plan, enc_hook=enc_hook, order="deterministic")


def digest_of(encoded: bytes) -> str:
    """What manifests and the Plan object name a plan by: the SHA-256 of its canonical bytes, in hex."""
    return hashlib.sha256(encoded).hexdigest()


def decode(data: bytes) -> Plan:
    """The plan of such bytes. Raises Refusal where they are spoilt."""
    return jsonfile.decode(data, Plan, "the stored plan is spoilt")
