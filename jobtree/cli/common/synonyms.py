"""What kubectl, Slurm and other tools call what a command here does: whoever types that is told the command's name."""

from collections.abc import Collection
from typing import Final

_SAID_ELSEWHERE: Final = {
    "submit": ("apply", "create", "run", "sbatch", "srun", "salloc", "add"),
    "state": ("get", "list", "ls", "ps", "squeue", "queue", "status", "jobs", "runs"),
    "explain": ("describe", "show", "why", "scontrol"),
    "events": ("history", "log"),
    "leases": ("sacct",),
    "fleet": ("nodes", "sinfo", "top", "gpus"),
    "budgets usage": ("usage", "quota", "quotas", "budget", "sshare", "sreport"),
    "whatif": ("what-if", "simulate"),
    "cancel": ("delete", "rm", "kill", "stop", "scancel"),
    "suspend": ("hold", "pause"),
    "resume": ("release", "unsuspend"),
    "shrink": ("scale", "resize"),
    "cycle": ("schedule", "run", "start"),
    "apply": ("submit",),
    "report": ("reports", "usage", "chargeback", "sacct", "sreport"),
    "migrate": ("import", "convert"),
}


def command_for(word: str, known: Collection[str]) -> str | None:
    """The command that other tools call ``word``; None: there is none. ``known``: first words of the program's own."""
    meant = (mine for mine, others in _SAID_ELSEWHERE.items() if word.lower() in others)
    return next((mine for mine in meant if mine.split()[0] in known), None)
