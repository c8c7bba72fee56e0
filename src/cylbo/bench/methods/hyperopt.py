"""TPE as its authors wrote it: a peer of the paper's tables."""

import numpy as np

from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective

__all__ = ["METHODS"]


def search(objective: Objective, seed: int) -> None:
    """Tree-structured Parzen estimators (Bergstra et al. 2011) with hyperopt's defaults: 20 random points first."""
    import hyperopt

    names = [f"x{i}" for i in range(objective.dim)]
    hyperopt.fmin(
        objective,
        [hyperopt.hp.uniform(name, -1.0, 1.0) for name in names],
        algo=hyperopt.tpe.suggest,
        # Not `max_evals`: hyperopt 0.3 evaluates `points_to_evaluate` beyond it
        early_stop_fn=lambda trials: (not objective.left, []),
        points_to_evaluate=[dict.fromkeys(names, 0.0)],
        rstate=np.random.default_rng(seed),
        verbose=False,
        show_progressbar=False,
    )


METHODS = (Method("tpe", "TPE", "Bergstra et al. 2011 (hyperopt)", search, (("hyperopt", "hyperopt"),)),)
