"""The practical side of the optimiser beside peers: engineering problems, noise, crashes, mixed spaces, batches.

    python -m benchmarks.practical engineering --jobs 2
    python -m benchmarks.practical noise --jobs 2
    python -m benchmarks.practical failures --jobs 2
    python -m benchmarks.practical mixed --jobs 2
    python -m benchmarks.practical batches --jobs 2

Every run has a process of its own and one thread. Finished runs are kept in the file and not repeated; one that the
time limit stopped counts with what it had reached, and is made again if the limit has grown. Tables and pictures of
the runs on record are those of `cylbo bench report`.
"""

import argparse
import sys
from pathlib import Path

from . import batches, engineering, failures, mixed, noise
from .runs import make_missing

EXPERIMENTS = {module.EXPERIMENT.name: module.EXPERIMENT for module in (engineering, noise, failures, mixed, batches)}


def main() -> None:
    """Make the runs that are missing."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.practical",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, experiment in EXPERIMENTS.items():
        command = commands.add_parser(name, description=experiment.about)
        for what in ("problems", "methods"):
            known = getattr(experiment, what)
            command.add_argument(
                f"--{what}", nargs="+", choices=known, default=known, metavar=what[:-1].upper(), help="; ".join(known)
            )
        command.add_argument("--budget", type=at_least_one, default=experiment.budget)
        command.add_argument("--seeds", type=at_least_one, default=experiment.seeds)
        command.add_argument("--jobs", type=at_least_one, default=2)
        command.add_argument("--time-limit", type=float, default=1800.0, help="CPU seconds per run")
        command.add_argument("--out", type=Path, default=Path("practical.jsonl"))
    args = parser.parse_args()
    experiment = EXPERIMENTS[args.command]
    keys = experiment.keys(args.problems, args.methods, args.budget, args.seeds)
    failed = make_missing(experiment, keys, args.out, jobs=args.jobs, time_limit=args.time_limit)
    sys.exit(f"{failed} runs failed; the same command makes them again." if failed else 0)


def at_least_one(text: str) -> int:
    """A number of things."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1, got {text}")
    return number


if __name__ == "__main__":
    main()
