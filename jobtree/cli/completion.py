"""`completion SHELL`: scripts that complete commands, options and names of runs, and the answer they ask for."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, Final

from jobtree.api.values.errors import Refusal
from jobtree.cli.common import show
from jobtree.cli.common.args import Commands, Options, UsageError, command

_SCRIPTS: Final = {
    "bash": """\
# bash: source <(kubectl-runs completion bash)
_kubectl_runs() {
    local IFS=$'\\n'
    COMPREPLY=($(kubectl-runs completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _kubectl_runs kubectl-runs""",
    "zsh": """\
# zsh: source <(kubectl-runs completion zsh)
_kubectl_runs() {
    compadd -- ${(f)"$(kubectl-runs completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)"} || _files
}
compdef _kubectl_runs kubectl-runs""",
    "fish": """\
# fish: kubectl-runs completion fish | source
function __kubectl_runs
    kubectl-runs completion --words (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c kubectl-runs -a '(__kubectl_runs)'""",
    "kubectl": """\
#!/bin/sh
# kubectl: save this as kubectl_complete-runs in a folder of PATH, executable; then `kubectl runs <TAB>` completes.
kubectl-runs completion --words "$@" 2>/dev/null
echo :4""",
}


def add(commands: Commands, whole: argparse.ArgumentParser) -> None:
    """Declares the command; ``whole``: the command line that it completes."""
    parser = command(
        commands,
        "completion",
        _completion,
        "print a completion script for a shell, or for kubectl",
        example="source <(kubectl-runs completion bash)",
        takes=(),
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("shell", nargs="?", choices=tuple(_SCRIPTS), metavar="SHELL", help=", ".join(_SCRIPTS))
    what.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(whole=whole)


def _completion(_options: Options, given: argparse.Namespace) -> int:
    if given.words is None and given.shell is None:
        raise UsageError(f"no shell is named; say one of {', '.join(_SCRIPTS)}")
    if given.words is None:
        show.write(f"{_SCRIPTS[given.shell]}\n")
    else:
        show.say(*candidates(given.whole, given.words))
    return 0


def candidates(whole: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """What may stand where the last word of ``whole``'s command line does, given the ones before it."""
    *before, last = words or [""]
    here, state = whole, ""
    previous = ""
    for word in before:
        commands = _commands(here)
        if word in commands:
            here = commands[word]
        elif word.startswith("--state="):
            state = word.removeprefix("--state=")
        elif word == "=":  # bash takes --state=FILE apart
            continue
        elif previous == "--state":
            state = word
        previous = word
    if last.startswith("-"):
        found = [name for action in _actions(here) for name in action.option_strings]
    elif _commands(here):
        found = list(_commands(here))
    elif any(action.dest == "run" for action in _actions(here)) and state:
        found = list(_run_names(state))
    else:
        found = []
    return sorted(name for name in set(found) if name.startswith(last))


def _actions(parser: argparse.ArgumentParser) -> list[Any]:
    return parser._actions


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return next((action.choices for action in _actions(parser) if isinstance(action.choices, dict)), {})


def _run_names(state: str) -> Iterator[str]:
    from pathlib import Path

    from jobtree.cluster.statefile import StateFile

    try:
        yield from (run.name for run in StateFile(Path(state), 0).read().runs)
    except Refusal:
        return  # a TAB is no place for error messages
