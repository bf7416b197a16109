"""The pages with commands, in the order in which a newcomer reads them.

``python -m tests.examples.consoles`` writes what their commands print now into all of them.
"""

from tests.support import console

PAGES = (
    "README.md", "docs/getting-started.md", "docs/own-fleet.md", "docs/nodes.md", "docs/cli.md", "docs/finance.md",
    "docs/month.md", "docs/lake.md", "docs/reports.md", "docs/simulate.md",
    "docs/planner.md", "docs/verify-lottery.md",
)  # fmt: skip

if __name__ == "__main__":
    console.rewrite(*PAGES)
