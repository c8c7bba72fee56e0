"""What the lab runs: problems, dimensions with their budgets, methods and seeds under one name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cylbo.bench.problems import exists
from cylbo.bench.problems.crashes import FAMILY as CRASHES
from cylbo.bench.problems.engineering import FAMILY as ENGINEERING
from cylbo.bench.problems.mixed import FAMILY as MIXED
from cylbo.bench.problems.noise import FAMILY as NOISE
from cylbo.bench.store import Key

__all__ = ["ALL", "PRACTICAL", "SUITES", "Suite", "suite"]


@dataclass(frozen=True)
class Suite:
    """Every method on every problem in every dimension, once per seed; the seed is also the problem's instance."""

    name: str
    title: str
    description: str
    problems: tuple[str, ...]
    budgets: Mapping[int, int] = field(hash=False)  # dimension -> evaluations
    methods: tuple[str, ...]
    seeds: int = 5
    batches: tuple[int, ...] = (1,)  # points at a time
    open: bool = False  # its page shows every method that was run, not only its own
    regret: bool = False  # every seed is another instance: values are not comparable, their distance to the minimum is
    timing: bool = False  # its page is about seconds alone: against what was reached, or against the dimension

    def keys(
        self,
        *,
        problems: Iterable[str] | None = None,
        methods: Iterable[str] | None = None,
        dims: Iterable[int] | None = None,
        seeds: int | None = None,
        budget: int | None = None,
        batches: Iterable[int] | None = None,
    ) -> list[Key]:
        """The runs, seed by seed so that an early stop leaves every method with as many; None is the suite's own.

        A dimension that is not the suite's needs a `budget`, which then holds for every dimension. Practical problems
        have one dimension each, and no runs in others.
        """
        budgets = {}
        for dim in self.budgets if dims is None else dims:
            if budget is None and dim not in self.budgets:
                known = ", ".join(map(str, self.budgets))
                raise ValueError(f"suite {self.name} has dimensions {known}; for {dim} give a budget as well.")
            budgets[dim] = self.budgets[dim] if budget is None else budget
        places = [
            (problem, dim, evaluations)
            for dim, evaluations in budgets.items()
            for problem in (self.problems if problems is None else problems)
            if exists(problem, dim)
        ]
        if not places:
            asked = ", ".join(map(str, budgets))
            raise ValueError(f"suite {self.name} expected a dimension that one of its problems has, got {asked}.")
        return [
            Key(problem, dim, evaluations, method, seed, batch)
            for seed in range(self.seeds if seeds is None else seeds)
            for problem, dim, evaluations in places
            for method in (self.methods if methods is None else methods)
            for batch in (self.batches if batches is None else batches)
        ]


PAPER_FUNCTIONS = ("branin", "hartmann6", "rosenbrock", "levy")
PAPER_BUDGETS = {20: 200, 50: 400, 100: 600}  # Sec. 4.1

ADDITIVE = tuple(f"additive-{p}" for p in (1, 2, 4, 6, 10))
OURS = ("default", "paper", "matern")
PAPER_ROWS = ("smac", "tpe", "spearmint", "spearmint+", *ADDITIVE, "elastic", "matern", "paper")
# Without a Gaussian process: evolution strategies and local quadratic or linear models
DIRECT = ("cma", "cobyqa", "bobyqa", "ngopt")
TODAY = ("botorch", "turbo", "saasbo", "spherical", *DIRECT, "optuna-gp", "optuna-tpe", "sobol")

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "table1",
            "Table 1: four functions from their centre",
            "Every system of the paper and today's, on the paper's functions in its scaling.",
            PAPER_FUNCTIONS,
            PAPER_BUDGETS,
            ("default", *PAPER_ROWS, *TODAY),
            open=True,
        ),
        Suite(
            "table2",
            "Table 2: variants of BOCK on Rosenbrock",
            "BOCK, without the warp of the radius (-W), with a fake observation at the rim (+B).",
            ("rosenbrock",),
            PAPER_BUDGETS,
            ("paper", "paper-w", "paper+b"),
        ),
        Suite(
            "degree",
            "The degree of the angular kernel",
            "BOCK with P = 3, 5, 7, 9 powers of the cosine.",
            PAPER_FUNCTIONS,
            {20: 200},
            ("paper", "paper-p5", "paper-p7", "paper-p9"),
        ),
        Suite(
            "efficiency",
            "Accuracy against seconds",
            "What the 20-dimensional runs of Table 1 cost (figure 5 of the paper, all four functions).",
            PAPER_FUNCTIONS,
            {20: 200},
            ("default", *PAPER_ROWS, *TODAY),
            timing=True,
        ),
        Suite(
            "scalability",
            "Seconds against dimension",
            "What a run costs in 20, 50 and 100 dimensions (figure 6 of the paper, all four functions).",
            PAPER_FUNCTIONS,
            PAPER_BUDGETS,
            (*OURS, "spearmint"),
            timing=True,
        ),
        Suite(
            "shifted",
            "The optimum anywhere",
            "Functions shifted, or rotated and shifted, so that the optimum lies at a random place of the box.",
            (
                *(f"{name}-{twin}" for name in PAPER_FUNCTIONS for twin in ("shifted", "rotated")),
                "ackley-shifted",
                "ackley-rotated",
                "rastrigin-shifted",
                "styblinski-tang-shifted",
                "michalewicz-shifted",
                "hartmann6-sparse",
            ),
            {20: 200, 100: 600},
            (
                *OURS,
                *("botorch", "turbo", "spherical", *DIRECT),
                *("optuna-gp", "optuna-tpe", "tpe", "smac", "sobol"),
            ),
            open=True,
            regret=True,
        ),
        Suite(
            "bbob",
            "COCO bbob-largescale",
            "The 24 functions of a suite that nobody here wrote.",
            tuple(f"bbob-largescale-f{k}" for k in range(1, 25)),
            {40: 400},
            (*OURS, "botorch", "turbo", *DIRECT, "optuna-gp", "sobol"),
            open=True,
            regret=True,
        ),
        Suite(
            "smoke",
            "Does everything run?",
            "Two small problems; under two minutes.",
            ("rosenbrock", "levy-shifted"),
            {4: 12},
            tuple(name for name in ("default", *PAPER_ROWS, *TODAY) if name not in (*ADDITIVE[1:], "saasbo")),
            seeds=2,
        ),
    )
}


# Their pages show what the others do not ask for: true values, crashes, pairs of runs
PRACTICAL: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "engineering",
            "Problems of engineering kind",
            "Nine small models of things, on which nothing was tuned.",
            tuple(ENGINEERING.dims),
            dict.fromkeys(ENGINEERING.dims.values(), 200),
            ("default", "turbo", "optuna-gp", "cma", "sobol"),
        ),
        Suite(
            "noise",
            "Noise",
            "Hartmann6 with normal noise: the true value at the recommended point.",
            tuple(NOISE.dims),
            {20: 200},
            ("default", "cylbo, told the sd", "BoTorch qLogNEI", "BoTorch qLogNEI, told the sd"),
            regret=True,
        ),
        Suite(
            "failures",
            "Crashes",
            "A third of the box crashes.",
            tuple(CRASHES.dims),
            {20: 200},
            ("default", "cylbo, told a million", "optuna-gp", "optuna-tpe"),
            regret=True,
        ),
        Suite(
            "mixed",
            "Mixed spaces",
            "Hyperparameters of scikit-learn models: numbers, integers and choices together.",
            tuple(MIXED.dims),
            dict.fromkeys(MIXED.dims.values(), 100),
            ("default", "optuna-gp", "optuna-tpe", "Optuna TPE, univariate"),
            seeds=10,
        ),
        Suite(
            "batches",
            "Batches",
            "Several points are asked for before the first of them is told.",
            SUITES["shifted"].problems,
            {20: 200},
            ("default",),
            regret=True,
            batches=(1, 2, 4, 8),
        ),
    )
}
ALL = SUITES | PRACTICAL


def suite(name: str) -> Suite:
    """The suite of that name."""
    if name not in ALL:
        raise ValueError(f"suite must be one of {', '.join(ALL)}; got {name!r}.")
    return ALL[name]
