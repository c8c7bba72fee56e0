"""Optuna's Gaussian process and its TPE."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler

__all__ = ["METHODS", "gaussian_process", "search", "silence", "tpe"]

# Optuna's Gaussian process standardises what it is told, which needs finite squares; no problem of ours comes near
LARGEST_VALUE = 1e100


def search(objective: Objective, seed: int, *, sampler: "Callable[[int], BaseSampler]") -> None:
    """Optuna's ask and tell with the sampler of that seed."""
    import optuna

    interval = optuna.distributions.FloatDistribution(-1.0, 1.0)
    coordinates: dict[str, BaseDistribution] = {f"x{i}": interval for i in range(objective.dim)}
    with silence():
        study = optuna.create_study(sampler=sampler(seed))
        study.enqueue_trial(dict.fromkeys(coordinates, 0.0))
        while objective.left:
            trial = study.ask(coordinates)
            value = objective([trial.params[name] for name in coordinates])
            study.tell(trial, float(np.clip(value, -LARGEST_VALUE, LARGEST_VALUE)))


def gaussian_process(seed: int) -> "BaseSampler":
    """Matern-5/2 with a length scale per coordinate, maximum a posteriori, log EI; ten random points first."""
    import optuna

    with warnings.catch_warnings():
        # That our functions have no noise is worth telling, though the argument is called experimental
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.GPSampler(seed=seed, deterministic_objective=True)


def tpe(seed: int) -> "BaseSampler":
    """Parzen estimators of all coordinates together (the default since Optuna 5); ten random points first."""
    import optuna

    return optuna.samplers.TPESampler(seed=seed)


@contextmanager
def silence() -> Iterator[None]:
    """No messages of Optuna, which tells of every study."""
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(verbosity)


METHODS = (
    Method(
        "optuna-gp",
        "Optuna GP",
        "Akiba et al. 2019 (optuna)",
        partial(search, sampler=gaussian_process),
        # greenlet is optional for Optuna, but without it a run takes twice as long and other points
        (("optuna", "optuna"), ("torch", "torch"), ("greenlet", "greenlet")),
    ),
    Method(
        "optuna-tpe",
        "Optuna TPE",
        "Akiba et al. 2019, Watanabe 2023 (optuna)",
        partial(search, sampler=tpe),
        (("optuna", "optuna"),),
    ),
)
