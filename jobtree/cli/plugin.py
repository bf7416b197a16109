"""`kubectl-runs`, the plugin that kubectl finds as `kubectl runs` (spec §10)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache

from jobtree.cli import completion
from jobtree.cli.asking import budgets, events, explain, fleet, pods, state, verify, watch
from jobtree.cli.changing import control, sponsors, submit, whatif
from jobtree.cli.common import args


@cache
def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top, commands = args.program(
        "kubectl runs", "Submit runs to a GPU fleet and see what becomes of them.", takes=tuple(args.GLOBAL)
    )
    for module in (submit, explain, whatif, watch, events, state, fleet, pods, budgets, control, sponsors, verify):
        module.add(commands)
    completion.add(commands, top)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return args.run(parser(), argv)
