"""What the lab runs: problems, dimensions with their budgets, methods and seeds under one name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cylbo.bench.store import Key

__all__ = ["SUITES", "Suite", "suite"]


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
    ) -> list[Key]:
        """The runs, seed by seed so that an early stop leaves every method with as many; None is the suite's own.

        A dimension that is not the suite's needs a `budget`, which then holds for every dimension.
        """
        budgets = {}
        for dim in self.budgets if dims is None else dims:
            if budget is None and dim not in self.budgets:
                known = ", ".join(map(str, self.budgets))
                raise ValueError(f"suite {self.name} has dimensions {known}; for {dim} give a budget as well.")
            budgets[dim] = self.budgets[dim] if budget is None else budget
        return [
            Key(problem, dim, evaluations, method, seed)
            for seed in range(self.seeds if seeds is None else seeds)
            for dim, evaluations in budgets.items()
            for problem in (self.problems if problems is None else problems)
            for method in (self.methods if methods is None else methods)
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


def suite(name: str) -> Suite:
    """The suite of that name."""
    if name not in SUITES:
        raise ValueError(f"suite must be one of {', '.join(SUITES)}; got {name!r}.")
    return SUITES[name]
