"""Optuna's Gaussian process and its TPE, on the box or in a space of named parameters."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective
from cylbo.bench.problems import Need
from cylbo.space.categories import Categorical
from cylbo.space.parameters import Integer, Real
from cylbo.space.space import Space

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler

__all__ = ["METHODS", "UNIVARIATE", "distributions", "gaussian_process", "search", "silence", "tpe"]

# Optuna's Gaussian process standardises what it is told, which needs finite squares; no problem of ours comes near
LARGEST_VALUE = 1e100
CRASHES_AND_CHOICES: frozenset[Need] = frozenset({"crashes", "mixed"})


def search(objective: Objective, seed: int, *, sampler: "Callable[[int], BaseSampler]") -> None:
    """Optuna's ask and tell with the sampler of that seed.

    On the box it begins at the centre; in a space of named parameters with random points, as nobody is given a start.
    """
    import optuna

    with silence():
        study = optuna.create_study(sampler=sampler(seed))
        if objective.space is None:
            box = distributions(objective.dim)
            study.enqueue_trial(dict.fromkeys(box, 0.0))
        else:
            box = distributions(objective.space)
        while objective.left:
            trial = study.ask(box)
            point = [trial.params[name] for name in box] if objective.space is None else trial.params
            (value,) = objective.evaluate([point])
            if np.isnan(value):
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, float(np.clip(value, -LARGEST_VALUE, LARGEST_VALUE)))


def distributions(space: Space | int) -> "dict[str, BaseDistribution]":
    """The same space in Optuna's words; of a number, the box [-1, 1] in so many dimensions."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(space, int):
        return dict.fromkeys((f"x{i}" for i in range(space)), FloatDistribution(-1.0, 1.0))
    found: dict[str, BaseDistribution] = {}
    for name, p in space.parameters.items():
        if isinstance(p, Categorical):
            found[name] = CategoricalDistribution(p.choices)
        elif isinstance(p, Integer):
            found[name] = IntDistribution(int(p.low), int(p.high), log=p.log)
        elif isinstance(p, Real):
            found[name] = FloatDistribution(p.low, p.high, log=p.log)
        else:
            raise TypeError(f"expected Real, Integer, Categorical or Boolean under {name!r}, got {p!r}.")
    return found


def gaussian_process(seed: int) -> "BaseSampler":
    """Matern-5/2 with a length scale per coordinate, maximum a posteriori, log EI; ten random points first."""
    import optuna

    with warnings.catch_warnings():
        # That our functions have no noise is worth telling, though the argument is called experimental
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.GPSampler(seed=seed, deterministic_objective=True)


def tpe(seed: int, *, multivariate: bool = True) -> "BaseSampler":
    """Parzen estimators of all coordinates together (the default since Optuna 5); ten random points first.

    Before Optuna 5 the default was one of each coordinate by itself.
    """
    import optuna

    if multivariate:
        return optuna.samplers.TPESampler(seed=seed)
    return optuna.samplers.TPESampler(seed=seed, multivariate=False)


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
        handles=CRASHES_AND_CHOICES,
    ),
    Method(
        "optuna-tpe",
        "Optuna TPE",
        "Akiba et al. 2019, Watanabe 2023 (optuna)",
        partial(search, sampler=tpe),
        (("optuna", "optuna"),),
        handles=CRASHES_AND_CHOICES,
    ),
)
UNIVARIATE = Method(
    "Optuna TPE, univariate",
    "Optuna TPE, univariate",
    "Akiba et al. 2019 (optuna)",
    partial(search, sampler=partial(tpe, multivariate=False)),
    (("optuna", "optuna"),),
    handles=CRASHES_AND_CHOICES,
)
