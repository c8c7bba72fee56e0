"""What a report shows: the runs of a suite by dimension, method and problem, and the panels of its pictures.

loss  what is compared: the best value of a run, or in suites whose problems differ from seed to seed the simple
      regret, best value - minimum of that instance
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cylbo.bench.methods import METHODS
from cylbo.bench.record import Record
from cylbo.bench.suites import Suite
from cylbo.types import Array

__all__ = [
    "Cell",
    "Page",
    "convergence_panels",
    "efficiency_panels",
    "in_order",
    "late_seconds",
    "page_of",
    "scalability_panels",
    "total_seconds",
]


class Cell(NamedTuple):
    """All runs of one method on one problem in one dimension."""

    runs: tuple[Record, ...]  # finished or stopped at the time limit, in the order of their seeds
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
    runs: tuple[Record, ...]  # all, also failed ones
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


def page_of(suite: Suite, dim: int, budget: int, runs: Sequence[Record]) -> Page:
    """Group the runs of one dimension and budget."""
    grouped: dict[tuple[str, str], list[tuple[Record, float]]] = {}
    unknown = set()
    for run in runs:
        if run.status == "failed" or not np.isfinite(run.best):
            continue
        loss = run.regret if suite.regret else run.best
        if loss is None:
            unknown.add(run.key.problem)
        else:
            grouped.setdefault((run.key.method, run.key.problem), []).append((run, loss))
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
    """Seconds of a suggestion in the second half of a run, when initial designs are over: median over the runs."""
    return float(np.median([run.late_seconds for run in cell.runs]))


def total_seconds(cell: Cell) -> Array:  # (runs,)
    """Seconds of all suggestions of each run."""
    return np.array([run.seconds for run in cell.runs])


def convergence_panels(page: Page) -> tuple[dict[str, dict[str, list[Array]]], list[str]]:
    """Problem -> method -> curve of each run, above the minimum where it is known; and where that is."""
    known = _known(page)
    panels: dict[str, dict[str, list[Array]]] = {}
    for p in page.problems:
        for m in page.methods:
            for run in page.cells[m, p].runs if (m, p) in page.cells else ():
                curve = np.array(run.curve) if p in known else run.values
                panels.setdefault(p, {}).setdefault(m, []).append(curve)
    return panels, known


def efficiency_panels(page: Page) -> tuple[dict[str, dict[str, tuple[Array, Array]]], list[str]]:
    """Problem -> method -> (seconds, losses) of the runs, above the minimum where it is known; and where that is."""
    known = _known(page)
    panels: dict[str, dict[str, tuple[Array, Array]]] = {}
    for p in page.problems:
        for m in page.methods:
            if (m, p) in page.cells:
                cell = page.cells[m, p]
                reached = [run.best - ((run.minimum or 0.0) if p in known else 0.0) for run in cell.runs]
                panels.setdefault(p, {})[m] = total_seconds(cell), np.array(reached)
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


def _known(page: Page) -> list[str]:
    """The problems whose minimum is known for every run."""
    return [p for p in page.problems if all(run.minimum is not None for run in page.runs if run.key.problem == p)]
