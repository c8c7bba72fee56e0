"""Nevergrad's NGOpt, which chooses one of many optimisers by dimension and budget."""

import warnings

from cylbo.bench.methods.global_generator import kept
from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective

__all__ = ["METHODS"]

# Beyond it NGOpt chooses CMA-ES with a model, whose code NumPy 2.4 refuses and whose seed is the time
LARGEST_BUDGET_PER_DIMENSION = 50


def search(objective: Objective, seed: int) -> None:
    """NGOpt (Meunier et al. 2022), told the box, the budget and that points are evaluated one by one.

    With the budgets of the lab it chooses COBYLA, which begins at the centre, draws nothing at random and starts again
    from its best point when it has converged. So all seeds make the same points of the same function.
    """
    import nevergrad

    if objective.budget > LARGEST_BUDGET_PER_DIMENSION * objective.dim:
        raise ValueError(
            f"ngopt expected at most {LARGEST_BUDGET_PER_DIMENSION} evaluations per dimension, got "
            f"{objective.budget} in {objective.dim} dimensions; choose a smaller budget."
        )
    with kept(seed), warnings.catch_warnings():
        # COBYLA warns of settings that NGOpt itself has chosen
        warnings.simplefilter("ignore")
        coordinates = nevergrad.p.Array(init=objective.center, lower=-1.0, upper=1.0)
        optimizer = nevergrad.optimizers.NGOpt(coordinates, budget=objective.budget, num_workers=1)
        while True:
            candidate = optimizer.ask()
            optimizer.tell(candidate, objective(candidate.value))


METHODS = (Method("ngopt", "NGOpt", "Meunier et al. 2022 (nevergrad)", search, (("nevergrad", "nevergrad"),)),)
