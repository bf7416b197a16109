"""`jobtree migrate`: what Slurm's and Kueue's users have, as manifests for `submit`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobtree.api.values.errors import Refusal
from jobtree.cli.common import files, show
from jobtree.cli.common.args import Commands, Options, command, group

if TYPE_CHECKING:
    from jobtree.importers.made import Made


def add(commands: Commands) -> None:
    """Declares the commands."""
    kinds = group(commands, "migrate", "turn what another scheduler's users have into manifests, printed as YAML")
    slurm = command(
        kinds, "slurm", _slurm, "turn batch scripts into Runs", takes=(),
        example="jobtree migrate slurm train.sh --owner org:ai:rai --flavor H100-80GB > runs.yaml",
    )  # fmt: skip
    slurm.add_argument("--owner", metavar="OWNER", help="the Runs' owner (default: org:ACCOUNT of --account)")
    slurm.add_argument("--flavor", metavar="FLAVOR", help="their GPUs' flavor (default: the type in --gres or --gpus)")
    slurm.add_argument("--image", metavar="IMAGE", help="the image whose bash runs the scripts")
    kueue = command(
        kinds, "kueue", _kueue, "turn ClusterQueues into Budgets, and Jobs of LocalQueues into Runs", takes=(),
        example="jobtree migrate kueue queues.yaml jobs.yaml > jobtree.yaml",
    )  # fmt: skip
    for parser in (slurm, kueue):
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")


def _slurm(_options: Options, given: argparse.Namespace) -> int:
    from jobtree.importers import slurm

    defaults = slurm.Defaults(given.owner, given.flavor, given.image)
    return _printed(
        (path, partial(slurm.read, script=files.read_text(path), name=path.stem, defaults=defaults))
        for path in given.files
    )


def _kueue(_options: Options, given: argparse.Namespace) -> int:
    from jobtree.importers import kueue

    documents = [each for path in given.files for each in _documents(path)]
    return _printed([(given.files[0], partial(kueue.read, documents=documents))])


def _documents(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a YAML or JSON file, Lists taken apart, read as `submit` reads. Raises Refusal."""
    from jobtree.cluster.document import parse

    try:
        yield from (each.value() for each in parse(files.read(path)).documents())
    except Refusal as refusal:
        raise refusal.about(str(path)) from None


def _printed(reads: Iterable[tuple[Path, Callable[[Made], None]]]) -> int:
    """The objects that these give, each by its file, as YAML on stdout, what is left out on stderr."""
    from jobtree.importers.made import Made

    made = Made()
    for path, read in reads:
        try:
            read(made)
        except Refusal as refusal:
            raise Refusal(str(refusal), subject=str(path)) from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"{type(error).__name__} {error}"
            raise Refusal(f"it has an object without what its kind must have: {said}", subject=str(path)) from None
    import yaml

    for note in made.notes:
        show.complain(f"note: {note}")
    show.write(yaml.dump_all(made.documents, Dumper=yaml.CSafeDumper, sort_keys=False, explicit_start=True))
    return 0
