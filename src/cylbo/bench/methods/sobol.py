"""Scrambled Sobol points: what any method must beat."""

import numpy as np
from scipy.stats import qmc

from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective

__all__ = ["METHODS"]


def search(objective: Objective, seed: int) -> None:
    """The centre, then an Owen-scrambled Sobol sequence over the box."""
    objective(objective.center)
    engine = qmc.Sobol(objective.dim, scramble=True, rng=np.random.default_rng(seed))
    while True:
        objective(2.0 * engine.random(1)[0] - 1.0)


METHODS = (Method("sobol", "Sobol", "Sobol 1967, Owen 1998 (scipy)", search),)
