"""A third of the box crashes: what is found, and how often a suggestion crashes once that could be known."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from cylbo.bench.figures import style
from cylbo.bench.functions import Problem, problem
from cylbo.bench.methods import optuna

from .players import Array, Cylbo, Optuna, Player, Point, box
from .runs import Cells, Experiment, Key, Played, Run, play
from .tables import by_problem, quartiles

DIM = 20
SHARE = 1.0 / 3.0  # of the box that crashes
SAMPLE = 2**14  # points that calibrate it, to within half a per cent
NEAR = 0.1  # standard deviations of the score, over the box, from the optimum to the border
LEARNED_AFTER = 60  # evaluations; crashes count from here on
PENALTY = 1e6
TOLD_PENALTY = "cylbo, told a million"

Score = Callable[[Array], Array]  # (..., d) -> (...,)


@dataclass(frozen=True, eq=False)
class Region:
    """Where evaluations crash: score(x) > threshold."""

    score: Score
    threshold: float

    def crashes(self, x: Array) -> bool:  # (d,)
        """Whether this point does."""
        return bool(self.score(x) > self.threshold)


def half_space(rng: Generator, dim: int) -> Score:
    """Along a random direction."""
    w = rng.standard_normal(dim)
    return lambda x: np.asarray(x @ w)


def smooth(rng: Generator, dim: int, coordinates: int = 5, waves: int = 64) -> Score:
    """A random function of a few coordinates that varies over half the width of the box: a sum of random waves."""
    chosen = rng.permutation(dim)[:coordinates]
    frequencies, phases = rng.standard_normal((coordinates, waves)), rng.uniform(0.0, 2.0 * np.pi, waves)
    weights = rng.standard_normal(waves)
    return lambda x: np.asarray(np.cos(x[..., chosen] @ frequencies + phases) @ weights)


def corner(rng: Generator, dim: int) -> Score:
    """The larger of two coordinates, or of their opposites, of which one crashes earlier than the other."""
    pair, signs, lead = rng.permutation(dim)[:2], rng.choice([-1.0, 1.0], 2), [0.0, rng.uniform(0.0, 0.3)]
    return lambda x: np.asarray((x[..., pair] * signs + lead).max(-1))


SCORES = {"half-space": half_space, "smooth": smooth, "corner": corner}


def region(kind: str, optimum: Array, rng: Generator, *, near: bool = False) -> Region:
    """One of that kind in which neither the centre nor the optimum (d,) lies; next to the optimum if `near`."""
    sample = rng.uniform(-1.0, 1.0, (SAMPLE, len(optimum)))
    while True:
        score = SCORES[kind](rng, len(optimum))
        of_sample = score(sample)
        threshold = float(np.quantile(of_sample, 1.0 - SHARE))
        of_center, of_optimum = (threshold - score(np.stack([np.zeros(len(optimum)), optimum]))) / of_sample.std()
        if of_center > 0.0 and of_optimum > 0.0 and (of_optimum < NEAR or not near):
            return Region(score, threshold)


PROBLEMS = {f"{name}, {kind}": (name, kind, False) for name in ("levy", "rosenbrock", "hartmann6") for kind in SCORES}
PROBLEMS |= {f"hartmann6, {kind}, near": ("hartmann6", kind, True) for kind in SCORES}
METHODS: dict[str, Callable[[int], Player]] = {
    "default": lambda seed: Cylbo(box(DIM), seed),
    TOLD_PENALTY: lambda seed: Cylbo(box(DIM), seed, penalty=PENALTY),
    "optuna-gp": lambda seed: Optuna(box(DIM), optuna.gaussian_process(seed)),
    "optuna-tpe": lambda seed: Optuna(box(DIM), optuna.tpe(seed)),
}


def _play(key: Key, time_limit: float) -> Played:
    f, crashing = _function(key), _region(key)

    def evaluate(x: Point) -> float | None:
        return None if crashing.crashes(x) else f(x)

    return play(METHODS[key.method](key.seed), evaluate, key.budget, time_limit)


def _function(key: Key) -> Problem:
    return problem(f"{PROBLEMS[key.problem][0]}-shifted", DIM, instance=key.seed)


def _region(key: Key) -> Region:
    _, kind, near = PROBLEMS[key.problem]
    optimum = _function(key).minimizer
    assert optimum is not None
    rng = np.random.default_rng([zlib.crc32(key.problem.encode()), key.seed])
    return region(kind, optimum, rng, near=near)


def _regret(run: Run) -> Array:  # (n,)
    """Of the best so far."""
    return run.best_so_far - _function(run.key).minimum


def _crashed(run: Run) -> float:
    """The share of late suggestions that crashed."""
    late = run.values[LEARNED_AFTER:]
    return late.count(None) / len(late) if late else np.nan


def _lines(cells: Cells) -> list[str]:
    return [
        "Regret at the end, median [lower quartile, upper quartile] over seeds:",
        "",
        *by_problem(cells, lambda run: float(_regret(run)[-1]), quartiles),
        "",
        f"Share of crashed suggestions after the first {LEARNED_AFTER} evaluations, mean over seeds (largest):",
        "",
        *by_problem(cells, _crashed, lambda shares: f"{np.mean(shares):.0%} ({max(shares):.0%})", np.mean),
        "",
        "Minutes of suggesting per run:",
        "",
        *by_problem(cells, lambda run: sum(run.seconds) / 60.0, lambda minutes: f"{np.mean(minutes):.2g}", np.mean),
    ]


EXPERIMENT = Experiment(
    name="failures",
    title="Crashes",
    about="Shifted functions in 20 dimensions where a third of the box crashes: a half-space; where a smooth random "
    "function of five coordinates is high; a corner of two coordinates. Neither the centre, where all begin, nor the "
    "optimum crashes; *near*: the border passes close to the optimum. cylbo is told of a crash with `fail`, or given a "
    "large value instead; Optuna's samplers with a failed trial.",
    problems=tuple(PROBLEMS),
    methods=tuple(METHODS),
    budget=200,
    seeds=5,
    play=_play,
    lines=_lines,
    curve=_regret,
    regret=True,
    looks={TOLD_PENALTY: style("paper")},
)
