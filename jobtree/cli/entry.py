"""Where the two programs begin. Nothing is imported before Ctrl-C is taken care of, so that it ends them quietly."""

_INTERRUPTED = 130
"""Exit code of a program that SIGINT ended, as shells count."""


def kubectl_runs() -> int:
    """The program `kubectl-runs`; returns the exit code."""
    try:
        from jobtree.cli.runs import main

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


def jobtree() -> int:
    """The program `jobtree`; returns the exit code."""
    try:
        from jobtree.cli.operator import main

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED
