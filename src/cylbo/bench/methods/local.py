"""Local methods that fit a quadratic model to the values: Powell's line, as two packages have it today."""

import warnings
from collections.abc import Callable

import numpy as np
import scipy.optimize
from numpy.typing import ArrayLike

from cylbo.bench.methods.global_generator import kept
from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective
from cylbo.types import Array

__all__ = ["METHODS"]

# Both packages square what they are told, which needs finite squares; no problem of ours comes near
LARGEST_VALUE = 1e100
# SciPy's manual and Py-BOBYQA's advise a tenth of the greatest expected change; SciPy's default of 1, half the width of
# the box, would also move every start to the centre or a face in each coordinate
FIRST_RADIUS = 0.1 * 2.0


def cobyqa(objective: Objective, seed: int) -> None:
    """COBYQA (Ragonneau 2022) with SciPy's defaults but for its first radius."""

    def minimize(start: Array) -> None:
        options = {"initial_tr_radius": FIRST_RADIUS}
        scipy.optimize.minimize(_bounded(objective), start, method="COBYQA", bounds=objective.bounds, options=options)

    _restarted(objective, seed, minimize)


def bobyqa(objective: Objective, seed: int) -> None:
    """Py-BOBYQA (Cartis et al. 2019) as its manual advises for a global minimum in a box.

    The box is scaled to width 1, of which the first radius is a tenth. When a search has converged, the package itself
    goes on from its best point with a larger radius (Cartis et al. 2022) and gives up after some restarts in vain.
    """
    import pybobyqa

    def minimize(start: Array) -> None:
        pybobyqa.solve(
            _bounded(objective),
            start,
            bounds=tuple(objective.bounds.T),
            maxfun=objective.left,
            # The package would end at the first value below -1e20
            user_params={"model.abs_tol": -np.inf},
            seek_global_minimum=True,
            scaling_within_bounds=True,
            do_logging=False,
        )

    with kept(seed), warnings.catch_warnings():
        # The package warns of a budget that is smaller than its first design
        warnings.simplefilter("ignore", RuntimeWarning)
        _restarted(objective, seed, minimize)


def _restarted(objective: Objective, seed: int, minimize: Callable[[Array], object]) -> None:
    """Minimise from the centre, and from a random point of the box whenever a search has ended."""
    rng = np.random.default_rng(seed)
    start = objective.center
    while objective.left:
        minimize(start)
        start = rng.uniform(-1.0, 1.0, objective.dim)


def _bounded(objective: Objective) -> Callable[[ArrayLike], float]:
    """The objective at the nearest point of the box, which rounding may have left, and without huge values."""

    def bounded(x: ArrayLike) -> float:
        return float(np.clip(objective(np.clip(x, -1.0, 1.0)), -LARGEST_VALUE, LARGEST_VALUE))

    return bounded


METHODS = (
    Method("cobyqa", "COBYQA", "Ragonneau 2022 (scipy)", cobyqa),
    Method("bobyqa", "Py-BOBYQA", "Cartis et al. 2019, 2022 (Py-BOBYQA)", bobyqa, (("pybobyqa", "Py-BOBYQA"),)),
)
