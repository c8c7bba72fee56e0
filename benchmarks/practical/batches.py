"""Several points at a time: what is lost by not knowing the outcome of the others, and what is won in rounds."""

from collections.abc import Sequence

import numpy as np

from cylbo.bench.figures import style
from cylbo.bench.functions import problem
from cylbo.bench.markdown import NOTHING, table
from cylbo.bench.suites import suite

from .players import Array, Cylbo, box
from .runs import Cells, Experiment, Key, Played, Run, play
from .tables import by_problem, methods_of, minutes_of_each, quartiles, stages

DIM = 20
SIZES = {f"q = {q}": q for q in (1, 2, 4, 8)}
ALONE, MOST = "q = 1", "q = 8"
SMALLEST_REGRET = 1e-4  # what is better than this is as good


def _play(key: Key, time_limit: float) -> Played:
    f = problem(key.problem, DIM, instance=key.seed)
    return play(Cylbo(box(DIM), key.seed), f, key.budget, time_limit, batch=SIZES[key.method])


def _regret(run: Run) -> Array:  # (n,)
    """Of the best so far."""
    return run.best_so_far - problem(run.key.problem, DIM, instance=run.key.seed).minimum


def _geometric_mean(ratios: Sequence[float]) -> float:
    """Of those that are known; NaN if none is."""
    known = [ratio for ratio in ratios if np.isfinite(ratio)]
    return float(np.exp(np.mean(np.log(known)))) if known else np.nan


def _ratio(runs: Sequence[Run], alone: Sequence[Run], n: int) -> float:
    """The regret after n evaluations relative to that of single points at the end, geometric mean over common seeds."""
    reached = {run.key.seed: max(_regret(run)[:n][-1], SMALLEST_REGRET) for run in runs}
    common = [run for run in alone if run.key.seed in reached]
    return _geometric_mean([reached[run.key.seed] / max(_regret(run)[-1], SMALLEST_REGRET) for run in common])


def _lines(cells: Cells) -> list[str]:
    (budget,) = stages(cells)
    rounds = budget // SIZES[MOST]
    sizes = methods_of(cells)
    columns = [(q, budget) for q in sizes if q != ALONE] + [(ALONE, rounds)]
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
        *by_problem(cells, lambda run: float(_regret(run)[-1]), quartiles),
        "",
        minutes_of_each(cells),
    ]


EXPERIMENT = Experiment(
    name="batches",
    title="Batches",
    about="Suite `shifted` in 20 dimensions. q points are asked for before the first of them is told, then all q are "
    "told. Every seed is another instance of a problem; regret is the best value minus the instance's minimum.",
    problems=suite("shifted").problems,
    methods=tuple(SIZES),
    budget=200,
    seeds=5,
    play=_play,
    lines=_lines,
    curve=_regret,
    regret=True,
    looks={q: style(like) for q, like in zip(SIZES, ("default", "paper", "botorch", "turbo"), strict=True)},
)
