"""What a report shows: the runs of a suite by dimension, method and problem, and the panels of its pictures.

loss  what is compared: the best value of a run, or in suites whose problems differ from seed to seed the simple
      regret, best value - minimum of that instance
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cylbo.bench.methods import METHODS
from cylbo.bench.store import Run
from cylbo.bench.suites import Suite
from cylbo.types import Array

__all__ = [
    "Cell",
    "Minimum",
    "Page",
    "convergence_panels",
    "efficiency_panels",
    "in_order",
    "late_seconds",
    "page_of",
    "scalability_panels",
    "total_seconds",
]

Minimum = Callable[[str, int, int], float | None]  # problem, dimension, seed -> the minimum if it is known


class Cell(NamedTuple):
    """All runs of one method on one problem in one dimension."""

    runs: tuple[Run, ...]  # finished or stopped at the time limit, in the order of their seeds
    losses: Array  # (runs,)


@dataclass(frozen=True)
class Page:
    """One dimension and budget of a suite."""

    suite: Suite
    dim: int
    budget: int
    problems: tuple[str, ...]
    methods: tuple[str, ...]  # in the order of the lab
    cells: Mapping[tuple[str, str], Cell]  # (method, problem); only those with a run that gave values
    runs: tuple[Run, ...]  # all, also failed ones
    unknown: tuple[str, ...]  # problems of a regret suite without a known minimum

    @property
    def _is_own(self) -> bool:
        """Whether the dimension says what the budget is."""
        return self.suite.budgets.get(self.dim) == self.budget

    @property
    def size(self) -> str:
        """In the names of files."""
        return str(self.dim) if self._is_own else f"{self.dim}-{self.budget}"

    @property
    def title(self) -> str:
        """Of pictures."""
        evaluations = "" if self._is_own else f", {self.budget} evaluations"
        return f"{self.suite.title} ({self.dim} dimensions{evaluations})"


def page_of(suite: Suite, dim: int, budget: int, runs: Sequence[Run], minimum: Minimum) -> Page:
    """Group the runs of one dimension and budget."""
    grouped: dict[tuple[str, str], list[tuple[Run, float]]] = {}
    unknown = set()
    for run in runs:
        if run.status == "failed" or np.isnan(run.best):
            continue
        lowest = minimum(run.key.problem, dim, run.key.seed) if suite.regret else 0.0
        if lowest is None:
            unknown.add(run.key.problem)
        else:
            grouped.setdefault((run.key.method, run.key.problem), []).append((run, run.best - lowest))
    return Page(
        suite=suite,
        dim=dim,
        budget=budget,
        problems=tuple(p for p in suite.problems if p in {run.key.problem for run in runs} - unknown),
        methods=in_order(run.key.method for run in runs),
        cells={
            key: Cell(tuple(run for run, _ in pairs), np.array([loss for _, loss in pairs]))
            for key, pairs in grouped.items()
            if key[1] not in unknown
        },
        runs=tuple(runs),
        unknown=tuple(p for p in suite.problems if p in unknown),
    )


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, in the order of the lab; those it does not know last."""
    present = set(names)
    return (*(name for name in METHODS if name in present), *sorted(present - set(METHODS)))


def late_seconds(cell: Cell) -> float:
    """Median seconds of a suggestion in the second half of the runs, when initial designs are over."""
    return float(np.median(np.concatenate([run.seconds[len(run.seconds) // 2 :] for run in cell.runs])))


def total_seconds(cell: Cell) -> Array:  # (runs,)
    """Seconds of all suggestions of each run."""
    return np.array([run.seconds.sum() for run in cell.runs])


def convergence_panels(page: Page, minimum: Minimum) -> tuple[dict[str, dict[str, list[Array]]], list[str]]:
    """Problem -> method -> best so far (n,) of each run, above the minimum where it is known; and where that is."""
    known = _known(page, minimum)
    panels: dict[str, dict[str, list[Array]]] = {}
    for p in page.problems:
        for m in page.methods:
            for run in page.cells[m, p].runs if (m, p) in page.cells else ():
                offset = _offset(run, minimum) if p in known else 0.0
                panels.setdefault(p, {}).setdefault(m, []).append(np.minimum.accumulate(run.values) - offset)
    return panels, known


def efficiency_panels(page: Page, minimum: Minimum) -> tuple[dict[str, dict[str, tuple[Array, Array]]], list[str]]:
    """Problem -> method -> (seconds, losses) of the runs, above the minimum where it is known; and where that is."""
    known = _known(page, minimum)
    panels: dict[str, dict[str, tuple[Array, Array]]] = {}
    for p in page.problems:
        for m in page.methods:
            if (m, p) in page.cells:
                cell = page.cells[m, p]
                reached = np.array([run.best - (_offset(run, minimum) if p in known else 0.0) for run in cell.runs])
                panels.setdefault(p, {})[m] = total_seconds(cell), reached
    return panels, known


def scalability_panels(pages: Sequence[Page]) -> dict[str, dict[str, dict[int, Array]]]:
    """Problem -> method -> dimension -> seconds of each finished run; only problems with two dimensions.

    What was stopped at a time limit says nothing of what all of it costs.
    """
    panels: dict[str, dict[str, dict[int, Array]]] = {}
    for p in pages[0].suite.problems:
        for m in in_order(m for page in pages for m in page.methods):
            cells = {page.dim: page.cells[m, p] for page in pages if (m, p) in page.cells}
            finished = {dim: [run.status == "finished" for run in cell.runs] for dim, cell in cells.items()}
            line = {dim: total_seconds(cell)[finished[dim]] for dim, cell in cells.items() if any(finished[dim])}
            if line:
                panels.setdefault(p, {})[m] = line
    return {p: lines for p, lines in panels.items() if len({dim for line in lines.values() for dim in line}) > 1}


def _known(page: Page, minimum: Minimum) -> list[str]:
    """The problems whose minimum is known for every run."""
    return [
        p
        for p in page.problems
        if all(minimum(p, page.dim, run.key.seed) is not None for run in page.runs if run.key.problem == p)
    ]


def _offset(run: Run, minimum: Minimum) -> float:
    lowest = minimum(run.key.problem, run.key.dim, run.key.seed)
    assert lowest is not None
    return lowest
