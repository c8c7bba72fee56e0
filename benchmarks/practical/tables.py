"""What the pages of several experiments share."""

from collections.abc import Callable, Sequence

import numpy as np

from cylbo.bench import figures
from cylbo.bench.markdown import NOTHING, escaped, regret_text, span, table

from .runs import Cells, Run


def label(method: str) -> str:
    """The lab's label of a method, or its name."""
    return escaped(figures.label(method))


def stages(cells: Cells, *early: int) -> list[int]:
    """After how many evaluations tables show what was reached: these, as far as runs go, and at the end."""
    budget = max(run.key.budget for row in cells.values() for runs in row.values() for run in runs)
    return [*(n for n in early if n < budget), budget]


def minutes(runs: Sequence[Run]) -> str:
    """Mean minutes of suggesting, with a mark if runs were stopped at the time limit."""
    stopped = [len(run.values) for run in runs if run.stopped]
    mark = f" †{np.mean(stopped):.0f}" if stopped else ""
    return f"{np.mean([sum(run.seconds) for run in runs]) / 60.0:.2g}{mark}"


def quartiles(numbers: Sequence[float]) -> str:
    """Median [lower quartile, upper quartile]."""
    low, middle, high = map(regret_text, np.quantile(numbers, (0.25, 0.5, 0.75)))
    return f"{middle} [{low}, {high}]"


def by_problem(
    cells: Cells,
    number: Callable[[Run], float],
    text: Callable[[Sequence[float]], str],
    middle: Callable[[Sequence[float]], float] = np.median,
) -> list[str]:
    """A table of one number per run: a row per problem, a column per method, the lowest `middle` bold."""
    methods = list(dict.fromkeys(m for row in cells.values() for m in row))
    rows = []
    for problem, row in cells.items():
        numbers = {m: [number(run) for run in runs] for m, runs in row.items()}
        lowest = min(map(middle, numbers.values()))
        texts = {m: f"**{text(of)}**" if middle(of) == lowest else text(of) for m, of in numbers.items()}
        rows.append([problem, seeds(*row.values()), *(texts.get(m, NOTHING) for m in methods)])
    return table(["problem", "seeds", *map(label, methods)], rows)


def seeds(*cells: Sequence[Run]) -> str:
    """The number of runs in each of the cells."""
    return span(map(len, cells))
