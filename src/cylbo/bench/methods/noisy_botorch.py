"""BoTorch as its documentation advises with noise: SingleTaskGP, qLogNoisyExpectedImprovement, posterior mean.

Start design, model, restarts and raw samples are those of the lab's `botorch`; the noise is inferred, or known.
"""

import warnings
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import qmc

from cylbo.bench.methods import botorch
from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective
from cylbo.model.scaling import standardized

if TYPE_CHECKING:
    from botorch.models.gpytorch import GPyTorchModel
    from torch import Tensor

__all__ = ["METHODS"]


def search(objective: Objective, seed: int, *, told_noise: bool = False) -> None:
    """The centre, Sobol points, then the maximiser of the acquisition function.

    It recommends the evaluated point with the best posterior mean.
    """
    import torch
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement

    engine = qmc.Sobol(objective.dim, scramble=True, rng=np.random.default_rng(seed))
    n_design = min(botorch.INITIAL_POINTS, objective.budget // botorch.INITIAL_SHARE)
    design = [objective.center, *(2.0 * engine.random(1)[0] - 1.0 for _ in range(1, n_design))]
    model: GPyTorchModel | None = None
    fitted_to = 0
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # Those of BoTorch and below are about fits and climbs that it then repeats by itself
        warnings.simplefilter("ignore")
        while objective.left:
            n = len(objective.values)
            if n < len(design):
                objective(design[n])
            else:
                if model is None or fitted_to < n:
                    model, fitted_to = _fitted(objective, seed, model, told_noise), n
                data = _unit_cube(objective)
                acquisition = qLogNoisyExpectedImprovement(model, X_baseline=data, prune_baseline=True)
                objective(2.0 * botorch.maximizer(acquisition, objective.dim) - 1.0)
            if objective.asks_for_best:
                model, fitted_to = _fitted(objective, seed, model, told_noise), len(objective.values)
                with torch.no_grad():
                    best = int(model.posterior(_unit_cube(objective)).mean.argmax())
                objective.recommend(objective.points[best])


def _unit_cube(objective: Objective) -> "Tensor":
    import torch

    return torch.from_numpy((np.array(objective.points) + 1.0) / 2.0)


def _fitted(objective: Objective, seed: int, last: "GPyTorchModel | None", told_noise: bool) -> "GPyTorchModel":
    """The model of all values, from the generator of so many values on."""
    import torch
    from botorch.models import SingleTaskGP

    y = np.array(objective.values)
    torch.manual_seed(int(np.random.SeedSequence((seed, len(y))).generate_state(1)[0]))
    values = torch.from_numpy(-standardized(y))[:, None]
    variance = torch.full_like(values, (objective.noise / y.std(ddof=1)) ** 2) if told_noise else None
    model = SingleTaskGP(_unit_cube(objective), values, train_Yvar=variance, outcome_transform=None)
    return botorch.map_fitted(model, last)


METHODS = tuple(
    Method(
        name,
        name,
        "Ament et al. 2023 (botorch)",
        partial(search, told_noise=told),
        botorch.PACKAGES,
        handles=frozenset({"noise"}),
    )
    for name, told in (("BoTorch qLogNEI", False), ("BoTorch qLogNEI, told the sd", True))
)
