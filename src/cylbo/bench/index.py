"""The index of a report: its pages, methods, machines, commands and failed runs."""

from collections import Counter
from collections.abc import Sequence

from cylbo.bench.commands import commands
from cylbo.bench.experiments import Experiment, experiment_commands
from cylbo.bench.figures import label
from cylbo.bench.markdown import escaped, table
from cylbo.bench.methods import METHODS
from cylbo.bench.pages import in_order
from cylbo.bench.record import Record
from cylbo.bench.suites import Suite

__all__ = ["index"]

COMMANDS = (
    "The first ones make all runs of the table, with every seed up to the highest. A time limit stands where it "
    "stopped runs (the largest if there were several) or where a run took longer than the usual one. With "
    "`--known runs.csv`, `cylbo bench run` leaves out what the table holds already. The last one adds the runs of a "
    "file to the table in the folder `report` and writes its pages; without a file it writes them from the table alone."
)
FILES = (
    "All numbers of these pages but the paper's come from two files: [runs.csv](runs.csv) has a row per run, "
    "[curves.csv](curves.csv) its best value so far. Column k of a curve is taken after k / 64 of the budget, rounded "
    "up, column 0 after the first evaluation; an empty cell repeats the one before it. Where runs.csv knows the "
    "minimum of a run's instance, the curve is what lies above it, with five digits; where it has a true_value, that "
    "of the point recommended in the end of a noisy run, the curve is the true value at the point recommended by "
    "then. `late_seconds` is the median of a suggestion in the second half of a run, `late_crashes` the number of "
    "evaluations that crashed after the first 60."
)


def index(
    runs: Sequence[Record],
    shown: Sequence[tuple[Suite, Sequence[Record]]],
    experiments: Sequence[tuple[Experiment, Sequence[Record]]],
) -> str:
    """The text of README.md; `shown` and `experiments` are what has a page, with its runs."""
    status = Counter(run.status for run in runs)
    lines = [
        "# Report of the lab",
        "",
        f"{len(runs)} runs: {status['finished']} finished, {status['timeout']} stopped at the time limit, "
        f"{status['failed']} failed.",
        "",
        FILES,
        "",
        "## Suites",
        "",
        *table(
            ["suite", "what", "runs", "dimensions", "seeds"],
            [
                *(_row(suite.title, suite.name, suite.description, of_suite) for suite, of_suite in shown),
                *(_row(each.title, each.page, each.summary, its) for each, its in experiments),
            ],
            words=2,
        ),
    ]
    names = {run.name for _, its in (*shown, *experiments) for run in its}
    elsewhere = [run for run in runs if run.name not in names]
    if elsewhere:
        places = sorted({(run.key.problem, run.key.dim, run.key.budget) for run in elsewhere})
        named = ", ".join(f"{escaped(p)} ({dim} dimensions, {budget} evaluations)" for p, dim, budget in places)
        lines += ["", f"{len(elsewhere)} runs belong to no suite and are in no table: {named}."]
    methods = in_order(run.key.method for run in runs)
    lines += [
        "",
        "## Methods",
        "",
        *table(
            ["method", "name", "source", "runs"],
            [
                [
                    escaped(label(m)),
                    escaped(m),
                    escaped(METHODS[m].source) if m in METHODS else "not known to this version",
                    str(sum(run.key.method == m for run in runs)),
                ]
                for m in methods
            ],
            words=3,
        ),
    ]
    lines += ["", "## Machines", *_machines(runs)]
    lines += ["", "## Commands", "", COMMANDS, "", "```", *commands(shown)]
    lines += [line for each, its in experiments for line in experiment_commands(each, its)]
    lines += ["cylbo bench report results.db -o report", "```"]
    failed = [run for run in runs if run.status == "failed"]
    if failed:
        lines += ["", "## Failed runs", "", "By the last line of their traceback; the file of the runs has all of it."]
        lines += ["", *map(_failure, sorted(failed, key=lambda run: methods.index(run.key.method)))]
    return "\n".join(lines) + "\n"


def _row(title: str, page: str, what: str, runs: Sequence[Record]) -> list[str]:
    dims = ", ".join(map(str, sorted({run.key.dim for run in runs})))
    seeds = len({run.key.seed for run in runs})
    return [f"[{escaped(title)}]({page}.md)", escaped(what), str(len(runs)), dims, str(seeds)]


def _failure(run: Record) -> str:
    problem, dim, _, method, seed, _ = run.key
    return "- " + escaped(f"{label(method)} on {problem}, {dim} dimensions, seed {seed}: {run.error or 'no message'}")


def _machines(runs: Sequence[Record]) -> list[str]:
    """Where the runs were made and with which versions; every run names only the packages that it used."""
    places = Counter((run.machine, run.cores, run.threads, run.python) for run in runs)
    versions: dict[str, set[str]] = {}
    for run in runs:
        for package, version in run.versions.items():
            versions.setdefault(package, set()).add(version)
    limits = sorted({run.time_limit for run in runs if run.time_limit > 0.0})
    lines = [
        "",
        *table(
            ["machine", "cores", "threads per run", "Python", "runs"],
            [[*map(escaped, place), str(count)] for place, count in sorted(places.items())],
        ),
    ]
    if versions:
        named = "; ".join(
            f"{escaped(name)} {escaped(' and '.join(sorted(found)))}" for name, found in sorted(versions.items())
        )
        lines += ["", f"Versions: {named}."]
    if limits:
        lines += ["", f"Time limit of a run, in seconds: {', '.join(f'{limit:g}' for limit in limits)}."]
    return lines
