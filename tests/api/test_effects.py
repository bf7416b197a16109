"""No field is without effect (case U17): what an object says in its spec is asked by whoever decides, or is refused."""

import re
from pathlib import Path

from jobtree.world.tables.schema import TABLES

ROOT = Path(__file__).parents[2]
DECIDE = ("policies", "planner", "cronjobs", "exporters/writes", "exporters/lake")


def test_u17_every_column_of_a_snapshot_is_read_by_what_decides_or_writes() -> None:
    code = "\n".join(file.read_text() for folder in DECIDE for file in sorted((ROOT / folder).rglob("*.py")))
    names = set(re.findall(r"\w+", code))
    unread = {f"{table}.{column}" for table, schema in TABLES.items() for column in schema.names if column not in names}
    assert unread == set()
