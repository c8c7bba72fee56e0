"""Bayesian optimisation with cylindrical kernels, for expensive functions of many parameters.

import cylbo

result = cylbo.minimize(lambda x: ((x - 0.3) ** 2).sum(), bounds=[(-1, 1)] * 20, budget=60, seed=0)
print(result.x, result.fun)

opt = cylbo.Optimizer(bounds=[(-1, 1)] * 20, seed=0)  # or drive it yourself
trial = opt.ask()
opt.tell(trial, 1.0)
"""

import importlib
import typing

from cylbo._version import __version__
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
from cylbo.methods import DEFAULT, METHODS, PAPER
from cylbo.record.suggestion import Suggestion
from cylbo.record.trial import Trial
from cylbo.run.health import Health
from cylbo.run.minimize import load, minimize
from cylbo.run.optimizer import Optimizer
from cylbo.run.result import Result
from cylbo.search.settings import Method
from cylbo.space.categories import Boolean, Categorical
from cylbo.space.parameters import Integer, Real
from cylbo.space.space import Space
from cylbo.store.earlier import earlier

__all__ = [
    "DEFAULT",
    "METHODS",
    "PAPER",
    "Boolean",
    "Categorical",
    "CylboError",
    "Health",
    "Integer",
    "Method",
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
    "Suggestion",
    "Trial",
    "TrialClosedError",
    "UnknownTrialError",
    "__version__",
    "earlier",
    "load",
    "minimize",
    "plot",
]

# Names that a user may try first, and what to write instead
_INSTEAD = {
    "Config": "cylbo.Method, its name since 0.2",
    **dict.fromkeys(["maximize", "maximise"], "cylbo.minimize(fun, bounds, direction='maximize')"),
    **dict.fromkeys(["minimise", "optimize", "optimise"], "cylbo.minimize(fun, bounds)"),
    **dict.fromkeys(["Optimiser", "Study", "study", "create_study"], "cylbo.Optimizer(bounds)"),
}

if typing.TYPE_CHECKING:
    from cylbo import plot
else:
    # Hidden from type checkers, which would otherwise take every misspelt name for an attribute.
    def __getattr__(name: str) -> object:
        """Import `cylbo.plot` when it is asked for, and say of a missing name what to write instead."""
        if name == "plot":
            return importlib.import_module("cylbo.plot")
        hint = "dir(cylbo) lists the public names"
        if name in _INSTEAD:
            hint = f"write {_INSTEAD[name]}"
        raise AttributeError(f"module 'cylbo' has no attribute {name!r}; {hint}")


def __dir__() -> list[str]:
    """The public names, and not the modules that they come from."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
