"""CMA-ES with restarts: what a method without a model reaches with the same evaluations."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cylbo.bench.methods.global_generator import kept
from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective

__all__ = ["METHODS"]

# pycma advises about a quarter of the box's width (docstring of `fmin`), Hansen's tutorial 0.3 of it (arXiv 1604.00772)
INITIAL_STEP = 0.3 * 2.0
POPULATION_GROWTH = 2  # Auger and Hansen 2005: every restart doubles the population
QUIET = {"verbose": -10, "verb_disp": 0, "verb_log": 0}  # no words and no files; below -9 it reads none either


def search(objective: Objective, seed: int, *, initial_step: float = INITIAL_STEP) -> None:
    """IPOP-CMA-ES (Auger and Hansen 2005): from the centre, and from a random point whenever a run has converged.

    The centre is evaluated but not told: it is no sample of the search distribution (pycma's `eval_initial_x` keeps
    to that too). Coordinates outside the box are folded back by pycma's own smooth transformation.
    """
    import cma

    # Our own generator instead of pycma's seed: that one is given to the global generator, and 0 means the time
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> NDArray[np.float64]:
        return rng.standard_normal(shape)

    options: dict[str, Any] = {"bounds": [-1.0, 1.0], "seed": np.nan, "randn": normal, **QUIET}
    start = objective.center
    objective(start)
    while objective.left:
        strategy = cma.CMAEvolutionStrategy(start, initial_step, options)
        while not strategy.stop():
            points = strategy.ask()
            values = [objective(x) for x in points]
            # In hundreds of dimensions pycma checks sums of its own, drawn with NumPy's global generator, and may warn
            with kept(), warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                strategy.tell(points, values)
        start = rng.uniform(-1.0, 1.0, objective.dim)
        options["popsize"] = POPULATION_GROWTH * strategy.popsize


METHODS = (Method("cma", "CMA-ES", "Hansen 2016, Auger and Hansen 2005 (cma)", search, (("cma", "cma"),)),)
