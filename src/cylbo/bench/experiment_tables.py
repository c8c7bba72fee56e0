"""The tables of the experiments, as lines of Markdown."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from scipy.stats import mannwhitneyu

from cylbo.bench import figures
from cylbo.bench.markdown import NOTHING, escaped, mean_and_sd, regret_text, span, table
from cylbo.bench.record import LEARNED_AFTER, Record
from cylbo.bench.standings import standings
from cylbo.bench.statistics import lowest_and_level, ranks
from cylbo.types import Array

__all__ = ["Cells", "batches", "crashes", "engineering", "mixed", "noise"]

# problem -> method -> records, each in the order of the experiment
Cells = Mapping[str, Mapping[str, Sequence[Record]]]
Center = Callable[[Array], float]

OURS = "default"
ALONE, MOST = "q = 1", "q = 8"
# What is better than this is as good
SMALLEST_REGRET = 1e-4


def engineering(cells: Cells) -> list[str]:
    """What was reached on the way and in the end, ranks and duels."""
    shown = _stages(cells, 50, 100)
    lines: list[str] = []
    for n in shown:
        lines += ["", f"Best value after {n} evaluations, median [lower quartile, upper quartile] over seeds:", ""]
        lines += _by_problem(cells, partial(_best_after, n=n), partial(_quartiles, text="{:.3g}".format))
    return [
        *lines[1:],
        "",
        *_standings(cells, partial(_best_after, n=shown[-1]), np.median),
        "",
        *_average_ranks(cells, shown, np.median),
        "",
        f"On how many instances cylbo has the lower value after {shown[-1]} evaluations:",
        "",
        *_instances_won(cells),
        "",
        _minutes_of_each(cells),
    ]


def noise(cells: Cells) -> list[str]:
    """The true value at the recommended point, on the way and in the end."""
    shown = _stages(cells, 50, 100, 150)
    lines = ["True value at the recommended point, mean ± standard deviation over seeds, after so many evaluations."]
    for name, row in cells.items():
        texts = _stage_texts(row, shown, lambda run, n: run.after(n), lambda mean, sd: mean_and_sd(mean, sd))
        rows = [[_label(m), _seeds(runs), *texts[m], _minutes(runs)] for m, runs in row.items()]
        lines += ["", *table([name, "seeds", *map(str, shown), "minutes per run"], rows)]
    return lines


def crashes(cells: Cells) -> list[str]:
    """Regrets, the share of crashed suggestions and minutes."""

    def late_share(run: Record) -> float:
        late = run.evaluations - LEARNED_AFTER
        return run.late_crashes / late if late > 0 else np.nan

    return [
        "Regret at the end, median [lower quartile, upper quartile] over seeds:",
        "",
        *_by_problem(cells, _regret, _quartiles),
        "",
        *_standings(cells, _regret, np.median),
        "",
        f"Share of crashed suggestions after the first {LEARNED_AFTER} evaluations, mean over seeds (largest):",
        "",
        *_by_problem(cells, late_share, lambda shares: f"{np.mean(shares):.0%} ({max(shares):.0%})", np.mean),
        "",
        "Minutes of suggesting per run:",
        "",
        *_by_problem(cells, lambda run: run.seconds / 60.0, lambda minutes: f"{np.mean(minutes):.2g}", np.mean),
    ]


def mixed(cells: Cells) -> list[str]:
    """Losses on the way and in the end, ranks and duels."""
    shown = _stages(cells, 25, 50)
    lines = ["Best loss after so many evaluations, mean ± standard deviation over seeds."]
    for name, row in cells.items():
        texts = _stage_texts(row, shown, _best_after, lambda mean, sd: f"{mean:.4g} ± {sd:.2g}")
        rows = [
            [_label(m), _seeds(runs), *texts[m], f"{np.median([run.late_seconds for run in runs]):.3f}"]
            for m, runs in row.items()
        ]
        lines += ["", *table([name, "seeds", *map(str, shown), "seconds per suggestion"], rows)]
    ended = _standings(cells, partial(_best_after, n=shown[-1]), np.mean)
    return [*lines, "", *ended, "", *_average_ranks(cells, shown, np.mean), "", *_pairs_won(cells, shown[-1])]


def batches(cells: Cells) -> list[str]:
    """What batches lose against single points, and the regrets themselves."""
    (budget,) = _stages(cells)
    rounds = budget // int(MOST.removeprefix("q = "))
    columns = [(q, budget) for q in _methods_of(cells) if q != ALONE] + [(ALONE, rounds)]
    ratios = {name: [_ratio(row.get(q, []), row.get(ALONE, []), n) for q, n in columns] for name, row in cells.items()}
    means = [_geometric_mean(column) for column in zip(*ratios.values(), strict=True)]
    named = {**ratios, "**geometric mean**": means}
    header = ["problem", *(q if n == budget else f"{q} after {n}" for q, n in columns)]
    texts = [[name, *(f"{r:.2f}" if np.isfinite(r) else NOTHING for r in row)] for name, row in named.items()]
    return [
        f"Regret after {budget} evaluations relative to that of one point at a time, geometric mean over seeds, none "
        f"counted below {SMALLEST_REGRET:g}. The last column is what one point at a time has reached after {rounds} "
        f"evaluations, as many as {MOST} has rounds: where all points of a round are evaluated at once, the two take "
        "equally long.",
        "",
        *table(header, texts),
        "",
        "The regret itself, median [lower quartile, upper quartile] over seeds:",
        "",
        *_by_problem(cells, _regret, _quartiles),
        "",
        *_standings(cells, _regret, np.median),
    ]


def _label(method: str) -> str:
    return escaped(figures.label(method))


def _stages(cells: Cells, *early: int) -> list[int]:
    """After how many evaluations tables show what was reached: these, as far as runs go, and at the end."""
    budget = max(run.key.budget for row in cells.values() for runs in row.values() for run in runs)
    return [*(n for n in early if n < budget), budget]


def _methods_of(cells: Cells) -> list[str]:
    return list(dict.fromkeys(m for row in cells.values() for m in row))


def _best_after(run: Record, n: int) -> float:
    return run.best_after(n)


def _regret(run: Record) -> float:
    assert run.minimum is not None
    return run.best - run.minimum


def _seeds(*cells: Sequence[Record]) -> str:
    return span(map(len, cells))


def _minutes(runs: Sequence[Record]) -> str:
    """Mean minutes of suggesting, with a mark if runs were stopped at the time limit."""
    stopped = [run.evaluations for run in runs if run.stopped]
    mark = f" †{np.mean(stopped):.0f}" if stopped else ""
    return f"{np.mean([run.seconds for run in runs]) / 60.0:.2g}{mark}"


def _minutes_of_each(cells: Cells) -> str:
    runs = {m: [run for row in cells.values() for run in row.get(m, [])] for m in _methods_of(cells)}
    return f"Minutes of suggesting per run: {', '.join(f'{_minutes(of)} ({_label(m)})' for m, of in runs.items())}."


def _quartiles(numbers: Array, text: Callable[[float], str] = regret_text) -> str:
    low, middle, high = map(text, np.quantile(numbers, (0.25, 0.5, 0.75)))
    return f"{middle} [{low}, {high}]"


def _numbers(cells: Cells, number: Callable[[Record], float]) -> dict[str, dict[str, Array]]:
    return {p: {m: np.array([number(run) for run in runs]) for m, runs in row.items()} for p, row in cells.items()}


def _standings(cells: Cells, number: Callable[[Record], float], center: Center) -> list[str]:
    return standings(_numbers(cells, number), center)


def _by_problem(
    cells: Cells, number: Callable[[Record], float], text: Callable[[Array], str], center: Center = np.median
) -> list[str]:
    """A table of one number per run: a row per problem, a column per method."""
    methods = _methods_of(cells)
    rows = []
    for problem, numbers in _numbers(cells, number).items():
        bold = lowest_and_level(numbers, center)
        texts = {m: f"**{text(of)}**" if m in bold else text(of) for m, of in numbers.items()}
        rows.append([problem, _seeds(*cells[problem].values()), *(texts.get(m, NOTHING) for m in methods)])
    return table(["problem", "seeds", *map(_label, methods)], rows)


def _stage_texts(
    row: Mapping[str, Sequence[Record]],
    shown: Sequence[int],
    number: Callable[[Record, int], float],
    text: Callable[[float, float], str],
) -> dict[str, list[str]]:
    """Method -> mean and standard deviation of the number after each of so many evaluations."""
    texts: dict[str, list[str]] = {m: [] for m in row}
    for n in shown:
        numbers = {m: np.array([number(run, n) for run in runs]) for m, runs in row.items()}
        bold = lowest_and_level(numbers, np.mean)
        for m, of in numbers.items():
            words = text(float(of.mean()), float(of.std()))
            texts[m].append(f"**{words}**" if m in bold else words)
    return texts


def _average_ranks(cells: Cells, shown: Sequence[int], center: Center) -> list[str]:
    """Average ranks of what was reached after so many evaluations, over the problems that every method was run on."""
    methods = _methods_of(cells)
    complete = [row for row in cells.values() if row.keys() == set(methods)]
    if not complete:
        return ["No problem has runs of every method, so there are no ranks."]
    of_stage = [
        ranks(
            np.array([[center(np.array([run.best_after(n) for run in row[m]])) for m in methods] for row in complete])
        )
        for n in shown
    ]
    rows = [[_label(m), *(f"{of[:, i].mean():.2f}" for of in of_stage)] for i, m in enumerate(methods)]
    name = "median" if center is np.median else "mean"
    return [
        f"Average rank of the {name} over {len(complete)} problems, 1 is best:",
        "",
        *table(["method", *map(str, shown)], rows),
    ]


def _instances_won(cells: Cells) -> list[str]:
    """On how many instances cylbo ends lower than each peer."""
    peers = [m for m in _methods_of(cells) if m != OURS]
    rows = []
    for name, row in cells.items():
        ours = {run.key.seed: run.best for run in row.get(OURS, [])}
        common = [[(ours[r.key.seed], r.best) for r in row.get(m, []) if r.key.seed in ours] for m in peers]
        rows.append([name, *(f"{sum(a < b for a, b in pairs)} of {len(pairs)}" for pairs in common)])
    return table(["problem", *map(_label, peers)], rows)


def _pairs_won(cells: Cells, n: int) -> list[str]:
    """How cylbo compares with each peer on each problem."""
    peers = [m for m in _methods_of(cells) if m != OURS]
    rows = []
    for name, row in cells.items():
        texts = []
        for peer in peers:
            if peer not in row or OURS not in row:
                texts.append(NOTHING)
                continue
            ours, theirs = [run.best for run in row[OURS]], [run.best for run in row[peer]]
            test = mannwhitneyu(ours, theirs)
            better = 1.0 - test.statistic / (len(ours) * len(theirs))
            texts.append(f"{better:.0%} (p = {test.pvalue:.2g})")
        rows.append([name, *texts])
    return [
        f"How often a run of cylbo ends below a run of the peer after {n} evaluations, over all pairs of runs, a tie "
        "counted half; in brackets the p-value of Wilcoxon's rank-sum test, two-sided.",
        "",
        *table(["problem", *map(_label, peers)], rows),
    ]


def _ratio(runs: Sequence[Record], alone: Sequence[Record], n: int) -> float:
    """The regret after n evaluations relative to that of single points at the end, geometric mean over common seeds."""
    reached = {r.key.seed: max(r.best_after(n) - (r.minimum or 0.0), SMALLEST_REGRET) for r in runs}
    ratios = [reached[r.key.seed] / max(_regret(r), SMALLEST_REGRET) for r in alone if r.key.seed in reached]
    return _geometric_mean(ratios)


def _geometric_mean(ratios: Sequence[float]) -> float:
    """The geometric mean of those that are known; NaN if none is."""
    known = [ratio for ratio in ratios if np.isfinite(ratio)]
    return float(np.exp(np.mean(np.log(known)))) if known else np.nan
