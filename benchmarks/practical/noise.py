"""Hartmann6 with noise: the true value at the point that each method would recommend."""

import zlib
from collections.abc import Callable

import numpy as np

from cylbo.bench.figures import DASHES, style
from cylbo.bench.functions import Problem, problem
from cylbo.bench.markdown import mean_and_sd, table

from .players import Array, Cylbo, NoisyBotorch, Player, Point, box
from .runs import Cells, Experiment, Key, Played, Run, play
from .tables import label, minutes, seeds, stages

DIM = 20
PROBLEMS = {f"{name}, sd {sd}": (name, sd) for name in ("hartmann6", "hartmann6-shifted") for sd in (0.1, 0.5)}
METHODS: dict[str, Callable[[int, int, float], Player]] = {  # of budget, seed and the noise's standard deviation
    "default": lambda budget, seed, sd: Cylbo(box(DIM), seed),
    "cylbo, told the sd": lambda budget, seed, sd: Cylbo(box(DIM), seed, std=sd),
    "BoTorch qLogNEI": lambda budget, seed, sd: NoisyBotorch(DIM, budget, seed),
    "BoTorch qLogNEI, told the sd": lambda budget, seed, sd: NoisyBotorch(DIM, budget, seed, std=sd),
}


def _play(key: Key, time_limit: float) -> Played:
    name, sd = PROBLEMS[key.problem]
    f = _function(key)
    rng = np.random.default_rng([zlib.crc32(name.encode()), key.seed])  # the same noise for every method

    def evaluate(x: Point) -> float:
        return f(x) + sd * float(rng.standard_normal())

    player = METHODS[key.method](key.budget, key.seed, sd)
    return play(player, evaluate, key.budget, time_limit, truth=f)


def _function(key: Key) -> Problem:
    return problem(PROBLEMS[key.problem][0], DIM, instance=key.seed)


def _reached(run: Run, n: int) -> float:
    """The true value at the point recommended last, up to n evaluations."""
    return [value for at, value in run.recommended if at <= n][-1]


def _lines(cells: Cells) -> list[str]:
    shown = stages(cells, 50, 100, 150)
    lines = ["True value at the recommended point, mean ± standard deviation over seeds, after so many evaluations."]
    for name, row in cells.items():
        rows = []
        for method, runs in row.items():
            reached = np.array([[_reached(run, n) for n in shown] for run in runs])
            texts = map(mean_and_sd, reached.mean(0), reached.std(0))
            rows.append([label(method), seeds(runs), *texts, minutes(runs)])
        lines += ["", *table([name, "seeds", *map(str, shown), "minutes per run"], rows)]
    return lines


def _curve(run: Run) -> Array:
    """The true value above the minimum, between two recommendations that of the later one."""
    ends, values = zip(*run.recommended, strict=True)
    return np.asarray(np.repeat(values, np.diff([0, *ends])) - _function(run.key).minimum)


EXPERIMENT = Experiment(
    name="noise",
    title="Noise",
    about="Hartmann6 repeated in 20 dimensions, its minimum -3.32, with normal noise. Every method recommends one of "
    "the points it evaluated: cylbo its `best`, BoTorch (SingleTaskGP, qLogNoisyExpectedImprovement) the one with the "
    "lowest posterior mean. What counts is that point's value without noise.",
    problems=tuple(PROBLEMS),
    methods=tuple(METHODS),
    budget=200,
    seeds=5,
    play=_play,
    lines=_lines,
    curve=_curve,
    regret=True,
    looks={
        "cylbo, told the sd": style("paper"),
        "BoTorch qLogNEI": style("botorch"),
        "BoTorch qLogNEI, told the sd": style("botorch")._replace(dashes=DASHES[2], marker="v"),
    },
)
