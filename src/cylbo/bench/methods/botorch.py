"""BoTorch as a competent user runs it: its default Gaussian process with LogEI, and SAASBO.

    x (n, d) points of the unit cube   y (n, 1) standardised values, negated: BoTorch maximises

One loop for every model of the family: the centre, a short Sobol design, then fit and maximise LogEI in turns.
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import qmc

from cylbo.bench.methods.method import Method
from cylbo.bench.objective import Objective
from cylbo.model.scaling import standardized
from cylbo.types import Array

if TYPE_CHECKING:
    from botorch.acquisition.acquisition import AcquisitionFunction
    from botorch.models.gpytorch import GPyTorchModel
    from torch import Tensor

__all__ = ["METHODS", "PACKAGES", "gaussian_process", "log_ei", "map_fitted", "maximizer", "saas", "search"]

# (x, y, the last round's model if there is one) -> a fitted model
Fit = Callable[["Tensor", "Tensor", "GPyTorchModel | None"], "GPyTorchModel"]

# Doumont et al. (2025) give 30 of 1000 evaluations to the initial design; at our budgets of a few hundred a model with
# dimension-scaled priors earns more per evaluation than Sobol points do, so fewer, and never most of a short run
INITIAL_POINTS = 20
INITIAL_SHARE = 4  # at most one evaluation in so many

# BoTorch's recommendation for analytic acquisition functions (its tutorials)
RESTARTS = 10
RAW_SAMPLES = 512

# Differs from BoTorch's defaults, 512 warm-up steps and 256 samples, and from the paper (Eriksson, Jankowiak 2021),
# which samples anew in every round: half the chain, and a new one only every 5 evaluations, because a chain takes some
# ten seconds. In the rounds between, the last samples are conditioned on all data. The schedule may cost quality: one
# run of 25 evaluations in 10 dimensions ended at 1.00 after 24 s of CPU, with a chain in every round at 0.35 after 226.
NUTS_WARMUP = 256
NUTS_SAMPLES = 128
NUTS_THINNING = 16
REFIT_EVERY = 5

PACKAGES = (("torch", "torch"), ("gpytorch", "gpytorch"), ("botorch", "botorch"))


def gaussian_process(x: "Tensor", y: "Tensor", last: "GPyTorchModel | None") -> "GPyTorchModel":
    """SingleTaskGP with its defaults: RBF-ARD with the dimension-scaled priors of Hvarfner et al. (ICML 2024)."""
    from botorch.models import SingleTaskGP

    return map_fitted(SingleTaskGP(x, y, outcome_transform=None), last)


def map_fitted(
    model: "GPyTorchModel", last: "GPyTorchModel | None", *, iterations: int | None = None
) -> "GPyTorchModel":
    """The model at its most probable hyperparameters; at those of `last` where the fit fails.

    L-BFGS may take so many iterations, or as many as it likes, which is BoTorch's default.
    """
    from botorch.exceptions.errors import ModelFittingError
    from botorch.fit import fit_gpytorch_mll
    from gpytorch.mlls import ExactMarginalLogLikelihood

    fallback = copy.deepcopy((model if last is None else last).state_dict())
    try:
        fit_gpytorch_mll(
            ExactMarginalLogLikelihood(model.likelihood, model),
            optimizer_kwargs={"options": {} if iterations is None else {"maxiter": iterations}},
        )
    except (ModelFittingError, RuntimeError):  # torch's and GPyTorch's errors of linear algebra are the latter
        model.load_state_dict(fallback)
    return model.eval()


def saas(x: "Tensor", y: "Tensor", last: "GPyTorchModel | None", *, warmup: int, samples: int) -> "GPyTorchModel":
    """BoTorch's Gaussian process with the SAAS prior, its hyperparameters sampled by NUTS every few evaluations.

    A chain that strays to infinity is dropped for the last good one.
    """
    import jax
    import torch
    from botorch.fit import fit_fully_bayesian_model_nuts
    from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP

    # JAX's default is single precision, in which the kernel matrix of near points is not positive definite
    with jax.enable_x64(True):
        model = SaasFullyBayesianSingleTaskGP(x, y)
        if last is None or len(x) % REFIT_EVERY == 0:
            seed = int(torch.randint(2**31, ()))
            fit_fully_bayesian_model_nuts(
                model,
                warmup_steps=warmup,
                num_samples=samples,
                thinning=NUTS_THINNING,
                disable_progbar=True,
                seed=seed,
            )
            if last is None or all(bool(p.isfinite().all()) for p in model.parameters()):
                return model
        model.load_state_dict(last.state_dict())
    return model.eval()


def log_ei(model: "GPyTorchModel", y: "Tensor") -> "AcquisitionFunction":
    """Log expected improvement on the best of y, averaged over the samples of a fully Bayesian model."""
    from botorch.acquisition.analytic import LogExpectedImprovement

    return LogExpectedImprovement(model, y.max())


def maximizer(acquisition: "AcquisitionFunction", dim: int) -> Array:  # -> (d,)
    """Where the acquisition is largest in the unit cube, by L-BFGS from the best raw samples.

    Half of these lie around the best points so far (`sample_around_best`), without which the starts are all far away
    in high dimensions (Papenmeier et al., ICML 2025).
    """
    import torch
    from botorch.optim.optimize import optimize_acqf

    cube = torch.stack([torch.zeros(dim, dtype=torch.float64), torch.ones(dim, dtype=torch.float64)])
    point, _ = optimize_acqf(
        acquisition,
        bounds=cube,
        q=1,
        num_restarts=RESTARTS,
        raw_samples=RAW_SAMPLES,
        options={"sample_around_best": True},
    )
    return np.asarray(point[0].clamp(0.0, 1.0).detach().numpy())


def search(objective: Objective, seed: int, *, fit: Fit = gaussian_process) -> None:
    """The centre, Sobol points, then the maximiser of LogEI under a newly fitted model, until the budget is spent."""
    import torch

    objective(objective.center)
    engine = qmc.Sobol(objective.dim, scramble=True, rng=np.random.default_rng(seed))
    for _ in range(1, min(INITIAL_POINTS, objective.budget // INITIAL_SHARE)):
        objective(2.0 * engine.random(1)[0] - 1.0)
    model = None
    while objective.left:
        with _isolated(seed, len(objective.values)):
            x = torch.from_numpy((np.array(objective.points) + 1.0) / 2.0)
            y = torch.from_numpy(-standardized(np.array(objective.values)))[:, None]
            model = fit(x, y, model)
            point = maximizer(log_ei(model, y), objective.dim)
        objective(2.0 * point - 1.0)


@contextmanager
def _isolated(seed: int, evaluations: int) -> Iterator[None]:
    """Torch's global generator seeded from (seed, evaluations) inside and left alone outside; warnings unheard.

    BoTorch takes its random numbers from nowhere else. Its warnings, and those of GPyTorch and torch below it, are
    about fits and climbs that it then repeats by itself, about the short standardised data of the first rounds, and
    about deprecations between the three.
    """
    import torch

    state = np.random.SeedSequence((seed, evaluations)).generate_state(1, np.uint64)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(int(state[0]))
        yield


METHODS = (
    Method(
        "botorch",
        "BoTorch LogEI",
        "Hvarfner et al. 2024, Ament et al. 2023 (botorch)",
        search,
        PACKAGES,
    ),
    Method(
        "saasbo",
        "SAASBO",
        "Eriksson, Jankowiak 2021 (botorch)",
        partial(search, fit=partial(saas, warmup=NUTS_WARMUP, samples=NUTS_SAMPLES)),
        # BoTorch 0.18 samples with NumPyro, no longer with Pyro; its extra knows the versions of JAX that will do
        (*PACKAGES, ("jax", "botorch[fully_bayesian]"), ("numpyro", "botorch[fully_bayesian]")),
    ),
)
