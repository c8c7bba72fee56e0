"""The practical side of the optimiser beside peers: engineering problems, noise, crashes, mixed spaces, batches.

    python -m benchmarks.practical engineering --jobs 2
    python -m benchmarks.practical noise --jobs 2
    python -m benchmarks.practical failures --jobs 2
    python -m benchmarks.practical mixed --jobs 2
    python -m benchmarks.practical batches --jobs 2
    python -m benchmarks.practical report

Every run has a process of its own and one thread. Finished runs are kept in the file and not repeated; one that the
time limit stopped counts with what it had reached, and is made again if the limit has grown. `report` writes
engineering.md and practical.md in docs/results, and docs/batches.md, with their pictures, from what is in the file.
"""

import argparse
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cylbo.bench import figures
from cylbo.bench.markdown import escaped

from . import batches, engineering, failures, mixed, noise
from .runs import Experiment, Run, make_missing, read

EXPERIMENTS = {module.EXPERIMENT.name: module.EXPERIMENT for module in (engineering, noise, failures, mixed, batches)}
PAGES = {  # below docs -> title and experiments
    "results/engineering.md": ("Problems that nothing was tuned on", ("engineering",)),
    "results/practical.md": ("Noise, crashes and mixed spaces", ("noise", "failures", "mixed")),
    "batches.md": ("Several points at a time", ("batches",)),
}
HOW_TO_READ = (
    "Lower is better; regret is the best value minus the known minimum. Seconds and minutes are those of one processor "
    "core spent suggesting, without the evaluations. † marks runs stopped at the time limit, with the mean evaluations "
    "they reached. Pictures show the median over seeds; the band holds the middle half of them."
)


def main() -> None:
    """Make the runs that are missing, or write the pages."""
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
    command = commands.add_parser("report", description="Write the pages.")
    command.add_argument("--out", type=Path, default=Path("practical.jsonl"), help="the file of the runs")
    command.add_argument("--docs", type=Path, default=Path("docs"), help="the folder of the pages")
    args = parser.parse_args()
    if args.command == "report":
        if not (runs := read(args.out)):
            sys.exit(
                f"there are no runs in {args.out}; make some with `python -m benchmarks.practical mixed --out ...`."
            )
        write(runs, args.docs)
        return
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


def write(runs: Sequence[Run], docs: Path) -> None:
    """A page for each group of experiments that has runs; of several budgets the largest is shown."""
    for place, (title, names) in PAGES.items():
        path = docs / place
        shown: list[Run] = []
        lines = [f"# {title}", "", HOW_TO_READ]
        for name in names:
            of_name = [run for run in runs if run.key.experiment == name]
            largest = max((run.key.budget for run in of_name), default=0)
            of_name = [run for run in of_name if run.key.budget == largest]
            if of_name:
                shown += of_name
                lines += section(EXPERIMENTS[name], of_name, docs / "results" / f"practical-{name}", path)
        if shown:
            path.write_text("\n".join([*lines, *origin(shown)]) + "\n", encoding="utf-8", newline="\n")
            print(path)


def section(experiment: Experiment, runs: Sequence[Run], picture: Path, page: Path) -> list[str]:
    """Words, tables and the picture, which is saved under that name."""
    cells = experiment.cells(runs)
    panels = {p: {m: [experiment.curve(run) for run in of] for m, of in row.items()} for p, row in cells.items()}
    if not experiment.regret:
        for problem, row in panels.items():
            lowest = min(curve[-1] for curves in row.values() for curve in curves)
            panels[problem] = {m: [curve - lowest for curve in curves] for m, curves in row.items()}
    figures.OURS.update(experiment.looks)  # the lab would choose by name, and might choose the same for two
    figure = figures.convergence(panels, title=experiment.title, above_minimum=experiment.problems)
    picture.parent.mkdir(parents=True, exist_ok=True)
    svg, _ = figures.save(figure, picture)
    heading = f"## {experiment.title}: {runs[0].key.budget} evaluations"
    link = f"![{experiment.title}]({svg.relative_to(page.parent)})"
    return ["", heading, "", experiment.about, "", *experiment.lines(cells), "", link]


def origin(runs: Sequence[Run]) -> list[str]:
    """Versions, machines and commands."""
    places = Counter(
        "Python {python}, {cores} cores, {threads} thread per run".format(**run.environment) for run in runs
    )
    versions: dict[str, set[str]] = {}
    for run in runs:
        for package, version in run.environment["versions"].items():
            versions.setdefault(package, set()).add(version)
    named = "; ".join(f"{escaped(name)} {' and '.join(sorted(found))}" for name, found in sorted(versions.items()))
    lines = ["", "## How it was made", "", f"{named}."]
    lines += ["", *(f"- {count} runs: {place}" for place, count in sorted(places.items())), "", "```"]
    for name in dict.fromkeys(run.key.experiment for run in runs):
        lines += made_with(EXPERIMENTS[name], [run for run in runs if run.key.experiment == name])
    return [*lines, "python -m benchmarks.practical report", "```"]


def made_with(experiment: Experiment, runs: Sequence[Run]) -> list[str]:
    """What makes these runs: a line for each number of seeds and each time limit that methods have."""
    methods: dict[tuple[int, float], list[str]] = {}
    for method in experiment.methods:
        if of_method := [run for run in runs if run.key.method == method]:
            seeds, limit = max(run.key.seed for run in of_method) + 1, max(run.time_limit for run in of_method)
            methods.setdefault((seeds, limit), []).append(method)
    problems = [p for p in experiment.problems if p in {run.key.problem for run in runs}]
    words = ["python", "-m", "benchmarks.practical", experiment.name, "--budget", str(runs[0].key.budget)]
    words += ["--problems", *problems] if len(problems) < len(experiment.problems) else []
    return [
        shlex.join(
            [*words, "--time-limit", f"{limit:g}", "--seeds", str(seeds)]
            + (["--methods", *names] if len(names) < len(experiment.methods) else [])
        )
        for (seeds, limit), names in methods.items()
    ]


if __name__ == "__main__":
    main()
