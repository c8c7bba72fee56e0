"""Who plays: cylbo and its peers behind one face, ask and tell.

A point is an array (d,) of the box [-1, 1]^d, or a dict by name in a `cylbo.Space`.
"""

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from cylbo.bench.methods import botorch, optuna
from cylbo.model.scaling import standardized
from cylbo.record.trial import Trial
from cylbo.run.optimizer import Optimizer
from cylbo.space.categories import Categorical
from cylbo.space.parameters import Integer, Real
from cylbo.space.space import Space

if TYPE_CHECKING:
    from botorch.models.gpytorch import GPyTorchModel
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from torch import Tensor

Array = NDArray[np.float64]
Point = Any


class Player(Protocol):
    """Suggests points and learns from their values."""

    def ask(self) -> Point:
        """A point to evaluate; several may be open."""

    def tell(self, value: float | None) -> None:
        """The value of the point that has been open for longest; None if it crashed."""

    def recommended(self) -> Point:
        """The point to be used if nothing more could be evaluated."""


def box(dim: int) -> Array:  # (d, 2)
    """The bounds of the lab's problems."""
    return np.tile([-1.0, 1.0], (dim, 1))


class Cylbo:
    """The library as it comes."""

    def __init__(
        self, bounds: Array | Space, seed: int, *, std: float | None = None, penalty: float | None = None
    ) -> None:
        """`std` is told with every value; a `penalty` is told of crashes, as if it were a value."""
        self._opt, self._std, self._penalty = Optimizer(bounds, seed=seed), std, penalty
        self._open: deque[Trial] = deque()

    def ask(self) -> Point:
        """As the optimizer suggests."""
        trial = self._opt.ask()
        self._open.append(trial)
        return trial.x if trial.params is None else trial.params

    def tell(self, value: float | None) -> None:
        """A value, a penalty or a failure."""
        trial, told = self._open.popleft(), self._penalty if value is None else value
        if told is None:
            self._opt.fail(trial)
        else:
            self._opt.tell(trial, told, std=self._std)

    def recommended(self) -> Point:
        """The best trial."""
        best = self._opt.best
        assert best is not None
        return best.x


class Optuna:
    """A sampler of Optuna; in a box it begins at the centre, as all methods of the lab do."""

    def __init__(self, bounds: Array | Space, sampler: "BaseSampler") -> None:
        """A study without messages."""
        from optuna import create_study
        from optuna.distributions import FloatDistribution
        from optuna.trial import Trial as OptunaTrial

        self._named = isinstance(bounds, Space)
        with optuna.silence():
            self._study = create_study(sampler=sampler)
        if isinstance(bounds, Space):
            self._space = distributions(bounds)
        else:
            self._space = {f"x{i}": FloatDistribution(*ends) for i, ends in enumerate(bounds.tolist())}
            self._study.enqueue_trial(dict.fromkeys(self._space, 0.0))
        self._open: deque[OptunaTrial] = deque()

    def ask(self) -> Point:
        """As the sampler suggests."""
        self._open.append(self._study.ask(self._space))
        params = self._open[-1].params
        return params if self._named else np.array([params[name] for name in self._space])

    def tell(self, value: float | None) -> None:
        """A value, or a failed trial, which is how Optuna is told of a crash."""
        from optuna.trial import TrialState

        with optuna.silence():
            state = TrialState.FAIL if value is None else TrialState.COMPLETE
            self._study.tell(self._open.popleft(), value, state=state)

    def recommended(self) -> Point:
        """The best trial."""
        return self._study.best_params


def distributions(space: Space) -> "dict[str, BaseDistribution]":
    """The same space in Optuna's words."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

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


def univariate_tpe(seed: int) -> "BaseSampler":
    """Parzen estimators of each parameter by itself, the default before Optuna 5."""
    from optuna.samplers import TPESampler

    return TPESampler(seed=seed, multivariate=False)


class NoisyBotorch:
    """BoTorch as its documentation advises with noise: SingleTaskGP, qLogNoisyExpectedImprovement, posterior mean.

    Start design, model, restarts and raw samples are those of the lab's `botorch`; the noise is inferred, or known.
    """

    def __init__(self, dim: int, budget: int, seed: int, *, std: float | None = None) -> None:
        """Sobol points after the centre."""
        self._dim, self._seed, self._std = dim, seed, std
        engine = qmc.Sobol(dim, scramble=True, rng=np.random.default_rng(seed))
        n_design = min(botorch.INITIAL_POINTS, budget // botorch.INITIAL_SHARE)
        self._design = [np.zeros(dim), *(2.0 * engine.random(1)[0] - 1.0 for _ in range(1, n_design))]
        self._x: list[Array] = []
        self._y: list[float] = []
        self._model: GPyTorchModel | None = None
        self._fitted_to = 0

    def ask(self) -> Point:
        """The next of the design, then the maximiser of the acquisition function."""
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        if len(self._x) < len(self._design):
            x = self._design[len(self._x)]
        else:
            model, data = self._fitted()
            acquisition = qLogNoisyExpectedImprovement(model, X_baseline=data, prune_baseline=True)
            x = 2.0 * botorch.maximizer(acquisition, self._dim) - 1.0
        self._x.append(x)
        return x

    def tell(self, value: float | None) -> None:
        """A value."""
        assert value is not None
        self._y.append(value)

    def recommended(self) -> Point:
        """The evaluated point with the best posterior mean."""
        import torch

        model, data = self._fitted()
        with torch.no_grad():
            return self._x[int(model.posterior(data).mean.argmax())]

    def _fitted(self) -> "tuple[GPyTorchModel, Tensor]":
        """The model of all data, fitted once, and their points in the unit cube."""
        import torch
        from botorch.models import SingleTaskGP

        y = np.array(self._y)
        x = torch.from_numpy((np.array(self._x) + 1.0) / 2.0)
        if self._fitted_to < len(y):
            torch.manual_seed(int(np.random.SeedSequence((self._seed, len(y))).generate_state(1)[0]))
            values = torch.from_numpy(-standardized(y))[:, None]
            variance = None if self._std is None else torch.full_like(values, (self._std / y.std(ddof=1)) ** 2)
            model = SingleTaskGP(x, values, train_Yvar=variance, outcome_transform=None)
            self._model, self._fitted_to = botorch.map_fitted(model, self._model), len(y)
        assert self._model is not None
        return self._model, x
