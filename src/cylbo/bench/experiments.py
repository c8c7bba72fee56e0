"""The experiments beside the suites: engineering problems, noise, crashes, mixed spaces, batches."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cylbo.bench import experiment_tables as tables
from cylbo.bench.experiment_tables import Cells
from cylbo.bench.figures import DASHES, Style, style
from cylbo.bench.record import Record
from cylbo.bench.suites import SUITES

__all__ = ["EXPERIMENTS", "Experiment", "experiment_commands"]

BATCHES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Experiment:
    """What is run under one name, and how its page is written."""

    name: str
    # The page without its suffix; several experiments may share one
    page: str
    title: str
    # One sentence for the index
    summary: str
    about: str
    problems: tuple[str, ...]
    methods: tuple[str, ...]
    lines: Callable[[Cells], list[str]]
    batches: tuple[int, ...] = (1,)
    # The looks of methods that the lab does not have, or of batch sizes
    looks: Mapping[str, Style] = field(default_factory=dict)

    def its(self, records: Sequence[Record]) -> list[Record]:
        """The records of the experiment: of several budgets the largest; none without one of a batch if it has some."""
        own = [
            r
            for r in records
            if r.key.problem in self.problems and r.key.method in self.methods and r.batch in self.batches
        ]
        if len(self.batches) > 1:
            places = {(r.key.dim, r.key.budget) for r in own if r.batch > 1}
            own = [r for r in own if (r.key.dim, r.key.budget) in places]
        largest = max((r.key.budget for r in own), default=0)
        return [r for r in own if r.key.budget == largest]

    def row(self, record: Record) -> str:
        """The method, or among batches their size."""
        return f"q = {record.batch}" if len(self.batches) > 1 else record.key.method

    def cells(self, records: Sequence[Record]) -> Cells:
        """The records by problem and method, in the order of the experiment and of the seeds."""
        rows = [f"q = {q}" for q in self.batches] if len(self.batches) > 1 else self.methods
        found: dict[str, dict[str, list[Record]]] = {p: {m: [] for m in rows} for p in self.problems}
        for record in sorted(records, key=lambda r: r.order):
            found[record.key.problem][self.row(record)].append(record)
        by_problem = {p: {m: made for m, made in row.items() if made} for p, row in found.items()}
        return {p: row for p, row in by_problem.items() if row}


def experiment_commands(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    """A line for each number of seeds and each time limit that methods have."""
    methods: dict[tuple[int, float], list[str]] = {}
    rows = dict.fromkeys(experiment.row(r) for r in records)
    for row in rows:
        of_row = [r for r in records if experiment.row(r) == row]
        seeds, limit = max(r.key.seed for r in of_row) + 1, max(r.time_limit for r in of_row)
        methods.setdefault((seeds, limit), []).append(row)
    problems = [p for p in experiment.problems if p in {r.key.problem for r in records}]
    words = ["cylbo", "bench", "run", experiment.name, "--budget", str(records[0].key.budget)]
    words += ["--functions", *problems] if len(problems) < len(experiment.problems) else []
    lines = []
    for (seeds, limit), names in methods.items():
        chosen = ["--methods", *sorted(names)]
        if len(experiment.batches) > 1:
            # The rows of this experiment are batch sizes
            sizes = sorted(int(name.removeprefix("q = ")) for name in names)
            chosen = ["--batches", *map(str, sizes)]
        lines.append(shlex.join([*words, "--time-limit", f"{limit:g}", "--seeds", str(seeds), *chosen]))
    return [f"{line} --out results.db" for line in lines]


CRASHING = tuple(
    f"{f}, {kind}" for f in ("levy", "rosenbrock", "hartmann6") for kind in ("half-space", "smooth", "corner")
)
PENALISED = "cylbo, told a million"

EXPERIMENTS = (
    Experiment(
        name="engineering",
        page="engineering",
        title="Problems of engineering kind",
        summary="Nine small models of things, on which nothing was tuned.",
        about="Nothing was tuned on these. A rover's path among obstacles, the weights of a lasso, those of a small "
        "neural network, the conductivities of a rod, a controller that swings up a pole, an antenna array, an optical "
        "filter, a cluster of atoms and a truss; the number is that of the parameters. Every seed is another instance; "
        "all methods begin at the centre of the box. No minimum is known but that of the rod, 0; the picture shows how "
        "far runs are above the lowest value that any run of any instance found.",
        problems=(
            "rover, 60",
            "lasso, 60",
            "network, 71",
            "rod, 30",
            "pole, 22",
            "antenna, 32",
            "filter, 30",
            "atoms, 30",
            "truss, 24",
        ),
        methods=("default", "turbo", "optuna-gp", "cma", "sobol"),
        lines=tables.engineering,
    ),
    Experiment(
        name="noise",
        page="practical",
        title="Noise",
        summary="Hartmann6 with normal noise: the true value at the recommended point.",
        about="Hartmann6 repeated in 20 dimensions, its minimum -3.32, with normal noise. Every method recommends one "
        "of the points it evaluated: cylbo its `best`, BoTorch (SingleTaskGP, qLogNoisyExpectedImprovement) the one "
        "with the lowest posterior mean. What counts is that point's value without noise.",
        problems=tuple(f"{name}, sd {sd}" for name in ("hartmann6", "hartmann6-shifted") for sd in (0.1, 0.5)),
        methods=("default", "cylbo, told the sd", "BoTorch qLogNEI", "BoTorch qLogNEI, told the sd"),
        lines=tables.noise,
        looks={
            "cylbo, told the sd": style("paper"),
            "BoTorch qLogNEI": style("botorch"),
            "BoTorch qLogNEI, told the sd": style("botorch")._replace(dashes=DASHES[2], marker="v"),
        },
    ),
    Experiment(
        name="failures",
        page="practical",
        title="Crashes",
        summary="A third of the box crashes.",
        about="Shifted functions in 20 dimensions where a third of the box crashes: a half-space; where a smooth "
        "random function of five coordinates is high; a corner of two coordinates. Neither the centre, where all "
        "begin, nor the optimum crashes; *near*: the border passes close to the optimum. cylbo is told of a crash with "
        "`fail`, or given a large value instead; Optuna's samplers with a failed trial.",
        problems=(*CRASHING, *(f"{problem}, near" for problem in CRASHING[-3:])),
        methods=("default", PENALISED, "optuna-gp", "optuna-tpe"),
        lines=tables.crashes,
        looks={PENALISED: style("paper")},
    ),
    Experiment(
        name="mixed",
        page="practical",
        title="Mixed spaces",
        summary="Hyperparameters of scikit-learn models: numbers, integers and choices together.",
        about="Hyperparameters of scikit-learn models, numbers, integers and choices together; the loss is the mean "
        "over three fixed folds and always the same for the same parameters. The spaces are equal. Nobody was given a "
        "start: cylbo begins at the middle of all ranges and the first of all choices, which stand in alphabetical "
        "order, Optuna with its ten random points. Losses: share of errors (svm), root mean squared error (splines), "
        "log loss. Runs that an error of scikit-learn's ended are left out. The picture shows how far they are above "
        "the lowest that any run found.",
        problems=("svm, digits", "boosting, wine", "network, breast cancer", "splines, diabetes"),
        methods=("default", "optuna-gp", "optuna-tpe", "Optuna TPE, univariate"),
        lines=tables.mixed,
        looks={"Optuna TPE, univariate": style("optuna-tpe")._replace(dashes=DASHES[1], marker="v")},
    ),
    Experiment(
        name="batches",
        page="batches",
        title="Batches",
        summary="Several points are asked for before the first of them is told.",
        about="Suite `shifted` in 20 dimensions. q points are asked for before the first of them is told, then all q "
        "are told. Every seed is another instance of a problem; regret is the best value minus the instance's minimum.",
        problems=SUITES["shifted"].problems,
        methods=("default",),
        lines=tables.batches,
        batches=BATCHES,
        looks={
            f"q = {q}": style(like) for q, like in zip(BATCHES, ("default", "paper", "botorch", "turbo"), strict=True)
        },
    ),
)
