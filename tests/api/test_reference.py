"""The reference page of the kinds."""

from pathlib import Path

from jobtree.api.crds.reference import generate

PAGE = Path(__file__).parents[2] / "docs/reference/kinds.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == generate(), (
        "write jobtree.api.crds.reference.generate() to docs/reference/kinds.md"
    )


def test_a_row_says_field_allowed_default_and_meaning() -> None:
    rows = generate().splitlines()
    gpus = "| `resources.totalGPUs` | a whole number from 1 to 1000000 |  | GPUs of the run, spares not counted. |"
    horizon = "a duration such as 10m, 12h, 1h30m or 2d | `14d` | No date beyond it is promised or estimated."
    assert {gpus, f"| `reservations.horizon` | {horizon} |"} <= set(rows)
    assert all(row.count("|") - row.count("\\|") == 5 for row in rows if row.startswith("|"))
