"""What the pages of several experiments share."""

from collections.abc import Callable, Sequence

import numpy as np

from cylbo.bench import figures
from cylbo.bench.markdown import NOTHING, escaped, regret_text, span, table
from cylbo.bench.statistics import ranks

from .runs import Cells, Run


def label(method: str) -> str:
    """The lab's label of a method, or its name."""
    return escaped(figures.label(method))


def stages(cells: Cells, *early: int) -> list[int]:
    """After how many evaluations tables show what was reached: these, as far as runs go, and at the end."""
    budget = max(run.key.budget for row in cells.values() for runs in row.values() for run in runs)
    return [*(n for n in early if n < budget), budget]


def methods_of(cells: Cells) -> list[str]:
    """Every method that some problem has runs of."""
    return list(dict.fromkeys(m for row in cells.values() for m in row))


def reached(run: Run, n: int) -> float:
    """The best value of the first n evaluations."""
    return float(run.best_so_far[:n][-1])


def average_ranks(cells: Cells, shown: Sequence[int], middle: Callable[[Sequence[float]], float]) -> list[str]:
    """Average ranks of what was reached after so many evaluations, over the problems that every method was run on."""
    methods = methods_of(cells)
    complete = [row for row in cells.values() if row.keys() == set(methods)]
    if not complete:
        return ["No problem has runs of every method, so there are no ranks."]
    of_stage = [
        ranks(np.array([[middle([reached(run, n) for run in row[m]]) for m in methods] for row in complete]))
        for n in shown
    ]
    rows = [[label(m), *(f"{of[:, i].mean():.2f}" for of in of_stage)] for i, m in enumerate(methods)]
    return [
        f"Average rank of the {middle.__name__} over {len(complete)} problems, 1 is best:",
        "",
        *table(["method", *map(str, shown)], rows),
    ]


def minutes(runs: Sequence[Run]) -> str:
    """Mean minutes of suggesting, with a mark if runs were stopped at the time limit."""
    stopped = [len(run.values) for run in runs if run.stopped]
    mark = f" †{np.mean(stopped):.0f}" if stopped else ""
    return f"{np.mean([sum(run.seconds) for run in runs]) / 60.0:.2g}{mark}"


def minutes_of_each(cells: Cells) -> str:
    """The minutes of every method over all problems, as a sentence."""
    runs = {m: [run for row in cells.values() for run in row.get(m, [])] for m in methods_of(cells)}
    return f"Minutes of suggesting per run: {', '.join(f'{minutes(of)} ({label(m)})' for m, of in runs.items())}."


def quartiles(numbers: Sequence[float], text: Callable[[float], str] = regret_text) -> str:
    """Median [lower quartile, upper quartile]."""
    low, middle, high = map(text, np.quantile(numbers, (0.25, 0.5, 0.75)))
    return f"{middle} [{low}, {high}]"


def by_problem(
    cells: Cells,
    number: Callable[[Run], float],
    text: Callable[[Sequence[float]], str],
    middle: Callable[[Sequence[float]], float] = np.median,
) -> list[str]:
    """A table of one number per run: a row per problem, a column per method, the lowest `middle` bold."""
    methods = methods_of(cells)
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
