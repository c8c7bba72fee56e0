"""The sections of a suite's page, as lines of Markdown."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from cylbo.bench.figures import label
from cylbo.bench.functions import ROSENBROCK_SCALE
from cylbo.bench.markdown import NOTHING, escaped, listed, mean_and_sd, regret_text, seconds_text, span, table
from cylbo.bench.pages import Cell, Page, late_seconds, total_seconds
from cylbo.bench.published import Published, counterpart, published
from cylbo.bench.standings import standings
from cylbo.bench.statistics import ALPHA, LEVEL_RULE, Comparison, compare, lowest_and_level
from cylbo.bench.suites import Suite
from cylbo.types import Array

__all__ = [
    "evaluations_section",
    "first_section",
    "how_to_read",
    "loss_section",
    "paper_section",
    "rank_section",
    "rosenbrock_section",
    "seconds_section",
]

PROBLEMS_PER_TABLE = 6  # wider tables cannot be read
FEW_PROBLEMS = 10  # Demsar 2006, Sec. 3.2.2: below, Friedman's chi-square is a rough approximation
ADDITIVE = re.compile(r"additive-(\d+)")  # group: the largest group size
ADDITIVE_ROW = "Additive BO"
ROSENBROCK = "rosenbrock"  # in the authors' scaling


def how_to_read(suite: Suite) -> str:
    """What the tables of the page hold."""
    if suite.regret:
        what = (
            "Every seed is another instance of a problem, so its values are not comparable: the tables show the simple "
            "regret (best value - minimum of that instance), median [lower quartile, upper quartile] over seeds; the "
            "lowest is the one with the lowest median."
        )
    else:
        what = (
            "The tables show the best value, mean ± population standard deviation over seeds. "
            "Columns *paper* hold what Oh et al. 2018 printed for the same method and budget."
        )
    return (
        f"{what} Lower is better. {LEVEL_RULE} † marks runs stopped at the time limit, with the mean evaluations they "
        "reached. Failed runs are counted under *Evaluations* and nowhere else."
    )


def loss_section(page: Page) -> list[str]:
    """The main tables, rows methods and columns problems."""
    lines: list[str] = []
    for problems in _narrow(page.problems):
        lines += ["", *_loss_table(page, problems)]
    if page.unknown:
        lines += ["", f"Left out, for the minimum is not known here: {listed(page.unknown)}."]
    return lines


def _loss_table(page: Page, problems: Sequence[str]) -> list[str]:
    additive = _best_additive(page)
    bold = {p: _leaders(page, p) for p in problems}
    beside = {
        p
        for p in problems
        for m in page.methods
        if _paper(page, m, p) or (p in additive and _paper(page, ADDITIVE_ROW, p))
    }
    header = ["method", "seeds"]
    for p in problems:
        header += [escaped(p), "paper"] if p in beside else [escaped(p)]

    def row(title: str, seeds: str, ours: Callable[[str], str], paper_row: str) -> list[str]:
        cells = [title, seeds]
        for p in problems:
            cells += [ours(p), printed(paper_row, p)] if p in beside else [ours(p)]
        return cells

    def printed(paper_row: str, problem: str) -> str:
        paper = _paper(page, paper_row, problem)
        return mean_and_sd(*paper) if paper else NOTHING

    def loss(method: str, problem: str) -> str:
        return _loss(page, page.cells.get((method, problem)), bold=method in bold[problem])

    def best_additive(problem: str) -> str:
        size, cell = additive.get(problem, (0, None))
        return f"{_loss(page, cell)} (p = {size})" if cell else NOTHING

    def seeds(method: str) -> str:
        return span(len(page.cells[method, p].losses) if (method, p) in page.cells else 0 for p in problems)

    rows = [row(escaped(label(m)), seeds(m), partial(loss, m), m) for m in page.methods]
    if additive.keys() & set(problems):
        rows.append(row(f"{ADDITIVE_ROW} (best of p)", "", best_additive, ADDITIVE_ROW))
    lines = table(header, rows)
    if additive.keys() & set(problems):
        lines += ["", f"{ADDITIVE_ROW} (best of p): per function the group size with the lowest mean, as in the paper."]
    return lines


def _best_additive(page: Page) -> dict[str, tuple[int, Cell]]:
    """Problem -> the group size with the lowest mean loss and its runs; empty with fewer than two group sizes."""
    sizes = {m: int(match[1]) for m in page.methods if (match := ADDITIVE.fullmatch(m))}
    if len(sizes) < 2:
        return {}
    found = {}
    for p in page.problems:
        tried = [
            (_center(page, page.cells[m, p].losses), size, page.cells[m, p])
            for m, size in sizes.items()
            if (m, p) in page.cells
        ]
        if tried:
            _, size, cell = min(tried, key=lambda choice: choice[:2])
            found[p] = size, cell
    return found


def paper_section(page: Page) -> list[str]:
    """How far we are from the paper's means, in its standard deviations."""
    additive = _best_additive(page)
    rows = []
    for m in page.methods:
        gaps = [_gap(page.cells.get((m, p)), _paper(page, m, p)) for p in page.problems]
        if any(gaps):
            rows.append([escaped(label(m)), *(gap or NOTHING for gap in gaps)])
    gaps = [_gap(additive[p][1] if p in additive else None, _paper(page, ADDITIVE_ROW, p)) for p in page.problems]
    if any(gaps):
        rows.append([f"{ADDITIVE_ROW} (best of p)", *(gap or NOTHING for gap in gaps)])
    if not rows:
        return []
    return [
        "",
        "### Gap to the paper",
        "",
        "Our mean - the paper's, in units of the paper's standard deviation; negative where ours is lower. "
        "Where the paper printed a standard deviation of 0.00 it is the plain difference.",
        "",
        *table(["method", *map(escaped, page.problems)], rows),
    ]


def rosenbrock_section(page: Page) -> list[str]:
    """Rosenbrock without the authors' factor, the best value / (50000 / (8181 (d - 1))); empty for regrets."""
    scaled = {key: cell for key, cell in page.cells.items() if key[1] == ROSENBROCK}
    if page.suite.regret or not scaled:
        return []
    scale = ROSENBROCK_SCALE / (page.dim - 1)
    plain = {key: Cell(cell.runs, cell.losses / scale) for key, cell in scaled.items()}
    leaders = _leaders(page, ROSENBROCK)
    return [
        "",
        "### Rosenbrock in its own units",
        "",
        "The paper's table, and with it the one above, is in the authors' scaling; other papers report the plain sum "
        f"of squares, which is the best value divided by {scale:.4g}.",
        *_tables_of_cells(
            replace(page, problems=(ROSENBROCK,), cells=plain),
            lambda cell: _loss(page, cell, bold=cell.runs[0].key.method in leaders),
        ),
    ]


def evaluations_section(page: Page) -> list[str]:
    """What became of the runs."""
    rows = []
    for m in page.methods:
        runs = [run for run in page.runs if run.key.method == m]
        status = Counter(run.status for run in runs)
        made = [run.evaluations for run in runs if run.status != "failed"]
        reached = NOTHING
        if made:
            reached = f"{np.mean(made):.4g}" + (f" (least {min(made)})" if min(made) < page.budget else "")
        rows.append(
            [escaped(label(m)), str(status["finished"]), str(status["timeout"]), str(status["failed"]), reached]
        )
    header = ["method", "finished", "stopped at the time limit", "failed", "evaluations per run that did not fail"]
    return ["", "### Evaluations", "", *table(header, rows)]


def rank_section(page: Page) -> tuple[Comparison | None, list[str]]:
    """Ranks over problems with Friedman's test and Nemenyi's critical difference."""
    complete = [m for m in page.methods if all((m, p) in page.cells for p in page.problems)]
    comparison = compare({m: {p: float(np.median(page.cells[m, p].losses)) for p in page.problems} for m in complete})
    lines = ["", "### Ranks over problems", ""]
    if comparison is None:
        return None, [
            *lines,
            f"Not made: it takes two problems and two methods with runs on all of them; "
            f"here are {len(page.problems)} and {len(complete)}.",
        ]
    k, n = len(comparison.methods), comparison.n_problems
    lines += [
        f"Blocks are the {n} problems, each with the median over seeds (Demsar 2006); 1 is best.",
        "",
        *table(
            ["method", "average rank", "median rank"],
            [
                [escaped(label(m)), f"{mean:.2f}", f"{median:.4g}"]
                for m, mean, median in zip(
                    comparison.methods, comparison.mean_ranks, comparison.median_ranks, strict=True
                )
            ],
        ),
        "",
        _verdict(comparison),
    ]
    if n < FEW_PROBLEMS:
        lines += ["", f"With {n} problems and {k} methods the test sees only large differences; not seen is not equal."]
    left_out = [m for m in page.methods if m not in complete]
    if left_out:
        lines += ["", f"Left out, for runs are missing on some problem: {listed(map(label, left_out))}."]
    stopped = [m for m in complete if any(_dagger(page.cells[m, p]) for p in page.problems)]
    if stopped:
        lines += ["", f"Ranked by what they had reached at the time limit: {listed(map(label, stopped))}."]
    fewer = _uneven_seeds(page, complete)
    if fewer:
        lines += ["", f"With fewer seeds than others on some problem: {listed(map(label, fewer))}."]
    return comparison, lines


def _verdict(comparison: Comparison) -> str:
    test = (
        f"Friedman's test: p = {comparison.p_value:.2g}. Nemenyi's critical difference at {ALPHA:g}: "
        f"{comparison.critical_difference:.2f}."
    )
    if not comparison.significant:
        return f"{test} The methods do not differ significantly."
    best, alike = escaped(label(comparison.methods[0])), comparison.like_the_best
    if not alike:
        return f"{test} {best} is significantly better than every other method."
    return f"{test} Not significantly different from the best, {best}: {listed(map(label, alike))}."


def _uneven_seeds(page: Page, methods: Sequence[str]) -> list[str]:
    most = {p: max(len(page.cells[m, p].losses) for m in methods) for p in page.problems}
    return [m for m in methods if any(len(page.cells[m, p].losses) < most[p] for p in page.problems)]


def seconds_section(page: Page) -> list[str]:
    """What a suggestion and what a run costs."""
    return [
        "",
        f"### Seconds in {page.dim} dimensions, {page.budget} evaluations",
        "",
        "Per suggestion: median over the second half of the evaluations of a run, when initial designs are over, and "
        "of these the median over the runs. "
        "Where a method suggests many points at once, most of them cost nothing and the seconds per run tell more.",
        *_tables_of_cells(page, lambda cell: seconds_text(seconds := late_seconds(cell), seconds)),
        "",
        "Per run: sum over all suggestions, mean ± population standard deviation over seeds. † marks runs stopped at "
        "the time limit, with the mean evaluations they reached: the whole would have cost more.",
        *_tables_of_cells(page, _seconds_per_run),
    ]


def _tables_of_cells(page: Page, words: Callable[[Cell], str]) -> list[str]:
    """Tables with one row per method and one column per problem."""
    lines: list[str] = []
    for problems in _narrow(page.problems):
        rows = [
            [escaped(label(m)), *(words(page.cells[m, p]) if (m, p) in page.cells else NOTHING for p in problems)]
            for m in page.methods
        ]
        lines += ["", *table(["method", *map(escaped, problems)], rows)]
    return lines


def _seconds_per_run(cell: Cell) -> str:
    seconds = total_seconds(cell)
    mean, sd = seconds_text(seconds.mean(), seconds.mean()), seconds_text(seconds.std(), seconds.mean())
    return f"{mean} ± {sd}{_dagger(cell)}"


def first_section(page: Page) -> list[str]:
    """On how many problems each method is first, level with the first or behind; empty if nobody can be compared."""
    losses = {p: {m: page.cells[m, p].losses for m in page.methods if (m, p) in page.cells} for p in page.problems}
    lines = standings(losses, partial(_center, page))
    return ["", "### First or level", "", *lines] if lines else []


def _leaders(page: Page, problem: str) -> tuple[str, ...]:
    losses = {m: page.cells[m, problem].losses for m in page.methods if (m, problem) in page.cells}
    return lowest_and_level(losses, partial(_center, page))


def _center(page: Page, losses: Array) -> float:
    """What the tables compare: the median of regrets, the mean of values."""
    return float(np.median(losses) if page.suite.regret else np.mean(losses))


def _loss(page: Page, cell: Cell | None, *, bold: bool = False) -> str:
    if cell is None:
        return NOTHING
    if page.suite.regret:
        low, middle, high = np.quantile(cell.losses, (0.25, 0.5, 0.75))
        text = f"{regret_text(middle)} [{regret_text(low)}, {regret_text(high)}]"
    else:
        text = mean_and_sd(float(np.mean(cell.losses)), float(np.std(cell.losses)))
    if bold:
        text = f"**{text}**"
    return text + _dagger(cell)


def _dagger(cell: Cell) -> str:
    """The mark of runs that were stopped, with the evaluations they reached; else empty."""
    stopped = [run.evaluations for run in cell.runs if run.stopped]
    return f" †{np.mean(stopped):.4g}" if stopped else ""


def _paper(page: Page, method: str, problem: str) -> Published | None:
    """The paper's numbers for a method of ours, or for its best-of-p row."""
    place = (problem, page.dim, page.budget)
    return published(method, *place) if method == ADDITIVE_ROW else counterpart(method, *place)


def _gap(cell: Cell | None, paper: Published | None) -> str:
    """Empty where one of the two is missing."""
    if cell is None or paper is None:
        return ""
    difference = float(np.mean(cell.losses)) - paper.mean
    gap = f"{difference / paper.sd:+.1f} sd" if paper.sd > 0.0 else f"{difference:+.2f}"
    return gap + _dagger(cell)


def _narrow(problems: Sequence[str]) -> list[Sequence[str]]:
    """The problems in groups that fit into a table."""
    return [problems[i : i + PROBLEMS_PER_TABLE] for i in range(0, len(problems), PROBLEMS_PER_TABLE)]
