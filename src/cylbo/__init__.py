"""Bayesian optimisation with cylindrical kernels, for expensive functions of many parameters.

import cylbo

result = cylbo.minimize(lambda x: ((x - 0.3) ** 2).sum(), bounds=[(-1, 1)] * 20, budget=60, seed=0)
print(result.x, result.fun)

opt = cylbo.Optimizer(bounds=[(-1, 1)] * 20, seed=0)  # or drive it yourself
trial = opt.ask()
opt.tell(trial, 1.0)
"""

from cylbo.config import DEFAULT, METHODS, PAPER, Config
from cylbo.errors import (
    CylboError,
    NoResultError,
    NotPositiveDefiniteError,
    OutOfTimeError,
    SamplingError,
    SpaceExhaustedError,
    StorageError,
    TrialClosedError,
    UnknownTrialError,
)
from cylbo.health import Health
from cylbo.minimize import load, minimize
from cylbo.optimizer import Optimizer
from cylbo.result import Result
from cylbo.space import Boolean, Categorical, Integer, Real, Space
from cylbo.tables import earlier
from cylbo.trial import Trial
from cylbo.version import __version__

__all__ = [
    "DEFAULT",
    "METHODS",
    "PAPER",
    "Boolean",
    "Categorical",
    "Config",
    "CylboError",
    "Health",
    "Integer",
    "NoResultError",
    "NotPositiveDefiniteError",
    "Optimizer",
    "OutOfTimeError",
    "Real",
    "Result",
    "SamplingError",
    "Space",
    "SpaceExhaustedError",
    "StorageError",
    "Trial",
    "TrialClosedError",
    "UnknownTrialError",
    "__version__",
    "earlier",
    "load",
    "minimize",
]
