"""``python -m benchmarks [CASE ...]``: planning cycles on named worlds, measured, with simple schedulers beside them.

Without names the quick ones (some minutes), with ``--all`` every one, with ``--fresh`` fleets whose seeds hang on the
commit that is measured. Prints the tables and writes them as JSON and Markdown: ``benchmarks/results/quick.*``,
``all.*`` or ``fresh.*``; for named cases ``.cache/benchmarks/named.*``.
"""

import argparse
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from benchmarks import machine
from benchmarks.catalogue import CASES, chosen, fresh
from benchmarks.cycles import pages, tables
from benchmarks.cycles.run import measure
from benchmarks.load import CACHE

RESULTS: Final = Path(__file__).parent / "results"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(case.name for case in CASES))
    parser.add_argument("--all", action="store_true", help="every case, with several seeds and sizes")
    parser.add_argument(
        "--fresh", action="store_true", help="15 fleets with the seeds of the commit that is checked out"
    )
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument("--page", action="store_true", help="only write stored results in brief into docs/planner.md")
    given = parser.parse_args()
    if given.page:
        pages.write(RESULTS)
        return
    if given.fresh and given.cases:
        parser.error("--fresh has cases of its own; leave out the names")
    unknown = sorted(set(given.cases) - {case.name for case in CASES})
    if unknown:
        parser.error(f"there is no case {unknown[0]}; there are {', '.join(case.name for case in CASES)}")
    measured = []
    cases = fresh(_commit()) if given.fresh else chosen(given.cases, everything=given.all)
    for case in cases:
        print(f"{case.name} ...", file=sys.stderr, flush=True)
        measured.append(measure(case))
    result = tables.Result(date=f"{datetime.now(UTC):%Y-%m-%d}", machine=machine.describe(), measured=measured)
    name = "named" if given.cases else "fresh" if given.fresh else "all" if given.all else "quick"
    out = given.out or (CACHE if given.cases else RESULTS)
    out.mkdir(parents=True, exist_ok=True)
    text = tables.markdown(result)
    (out / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def _commit() -> str:
    """The id of the commit that is checked out."""
    return subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
