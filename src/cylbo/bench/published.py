"""The numbers printed in the paper's Tables 1 and 2: mean and standard deviation of the best value of five runs.

Oh et al. 2018, Sec. 4.1. These are the only numbers of a report that are typed in.
"""

from typing import NamedTuple

__all__ = ["COUNTERPARTS", "PUBLISHED", "Published", "counterpart", "published"]


class Published(NamedTuple):
    """A cell of the paper's tables."""

    mean: float
    sd: float


# Sec. 4.1: the evaluations of the paper's methods by dimension; runs of another budget are not compared with it
BUDGETS = {20: 200, 50: 400, 100: 600}

COLUMNS = tuple((problem, dim) for problem in ("branin", "hartmann6", "rosenbrock", "levy") for dim in (20, 100))


def _row(*cells: tuple[float, float] | None) -> dict[tuple[str, int], Published]:
    return {column: Published(*cell) for column, cell in zip(COLUMNS, cells, strict=True) if cell is not None}


# row of the paper -> (problem, dimension) -> numbers; what Table 2 repeats from Table 1 is the same there
PUBLISHED: dict[str, dict[tuple[str, int], Published]] = {
    "SMAC": _row(
        (15.95, 3.71),
        (20.03, 0.85),
        (-1.61, 0.12),
        (-1.16, 0.19),
        (8579.13, 58.45),
        (8593.09, 18.80),
        (2.35, 0.00),
        (9.60, 0.04),
    ),
    "TPE": _row(
        (7.59, 1.20),
        (23.55, 0.73),
        (-1.74, 0.10),
        (-1.01, 0.10),
        (8608.36, 0.00),
        (8608.36, 0.00),
        (2.35, 0.00),
        (9.62, 0.00),
    ),
    "Spearmint": _row(
        (5.07, 3.01),
        (2.78, 1.06),
        (-2.60, 0.42),
        (-2.55, 0.19),
        (7970.05, 1276.62),
        (8608.36, 0.00),
        (1.88, 0.59),
        (4.87, 0.35),
    ),
    "Spearmint+": _row((6.83, 0.32), None, (-2.91, 0.25), None, (5909.63, 2725.76), None, (2.35, 0.00), None),
    "Additive BO": _row(
        (5.75, 0.93),
        (14.07, 0.84),
        (-3.03, 0.13),
        (-1.69, 0.22),
        (3632.25, 1642.71),
        (7378.27, 305.24),
        (2.32, 0.02),
        (9.59, 0.04),
    ),
    "Elastic BO": _row((6.77, 4.85), None, (-2.85, 0.57), None, (5346.96, 2494.89), None, (1.35, 0.34), None),
    "Matern": _row(
        (0.41, 0.00),
        (0.54, 0.06),
        (-3.29, 0.04),
        (-2.91, 0.26),
        (230.25, 187.41),
        (231.42, 28.94),
        (0.38, 0.13),
        (2.17, 0.18),
    ),
    "BOCK": _row(
        (0.50, 0.12),
        (1.03, 0.17),
        (-3.30, 0.02),
        (-3.16, 0.10),
        (47.87, 33.94),
        (128.69, 52.84),
        (0.54, 0.13),
        (6.78, 2.16),
    )
    | {("rosenbrock", 50): Published(29.65, 11.56)},  # Table 2
    "BOCK-W": {  # Table 2
        ("rosenbrock", 20): Published(1314.03, 1619.73),
        ("rosenbrock", 50): Published(51.14, 58.18),
        ("rosenbrock", 100): Published(157.89, 161.92),
    },
    "BOCK+B": {  # Table 2
        ("rosenbrock", 20): Published(48.87, 18.33),
        ("rosenbrock", 50): Published(33.90, 21.69),
        ("rosenbrock", 100): Published(87.00, 36.88),
    },
}

# Our method -> the paper's row that it stands for. Additive BO is the best of five group sizes, so no single
# `additive-<p>` stands for it: the report compares the best of them.
COUNTERPARTS = {
    "paper": "BOCK",
    "paper-w": "BOCK-W",
    "paper+b": "BOCK+B",
    "matern": "Matern",
    "smac": "SMAC",
    "tpe": "TPE",
    "spearmint": "Spearmint",
    "spearmint+": "Spearmint+",
    "elastic": "Elastic BO",
}


def published(row: str, problem: str, dim: int, budget: int) -> Published | None:
    """The paper's cell; None where it has none or had another budget."""
    return PUBLISHED[row].get((problem, dim)) if BUDGETS.get(dim) == budget else None


def counterpart(method: str, problem: str, dim: int, budget: int) -> Published | None:
    """The paper's cell for one of our methods; None where it has none."""
    return published(COUNTERPARTS[method], problem, dim, budget) if method in COUNTERPARTS else None
