"""From data to hyperparameters: slice sampling as in the paper, or the most probable ones by gradient.

Both take the data in ball coordinates, the state that the last round left and the configuration, and return what the
Gaussian process is made from.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from cylbo.errors import SamplingError
from cylbo.fit import Evidence, Fitted, fit
from cylbo.geometry import Array, Domain
from cylbo.gp import Data
from cylbo.hyper import Hyperparameters, Layout, Vector
from cylbo.likelihood import LogPosterior
from cylbo.slice_sampler import Chain, sample

if TYPE_CHECKING:
    from cylbo.config import Config

__all__ = ["Learn", "Learned", "State", "fitted", "sampled"]

NOISE_LEVELS = (1e-7, 1e-5, 3e-2)  # of the starts of a new fit, as shares of the amplitude

State = Chain | Fitted | None  # where the next round begins; None before the first fit


@dataclass(frozen=True, eq=False)
class Learned:
    """What the model is made from, and the state for the next round."""

    h: Hyperparameters  # s settings
    y: Array  # (n,) values as the model sees them
    best: float  # what an improvement is measured from
    state: State
    failed: bool = False  # nothing could be learned: these are the last round's hyperparameters


Learn = Callable[[Array, Array, Domain, State, "Config", Generator], Learned]  # x (n, d), y (n,), ...


def sampled(x: Array, y: Array, domain: Domain, state: State, config: "Config", rng: Generator) -> Learned:
    """`config.sweeps` settings from their posterior, by slice sampling. Oh et al. 2018, Sec. 4."""
    kernel = config.kernel(domain.radius)
    y = config.scaling(y)
    best = float(y.min())
    layout = Layout(
        config.priors,
        domain.radius,
        (best, float(y.max())),
        angular_degree=config.angular_degree if kernel.has_center else None,
        warped=config.warped,
    )
    chain = state if isinstance(state, Chain) else None
    if chain is None:
        start = Chain(layout.initial(y), np.full(len(layout), config.slice_width))
    else:
        start = Chain(layout.repaired(chain.theta), chain.widths)
    log_posterior = LogPosterior(
        Data.of(x, y, kernel), kernel, layout, stabilizer=config.stabilizer, jitters=config.jitters
    )

    def run(start: Chain, n_sweeps: int) -> tuple[Vector, Chain]:
        lower, upper = layout.lower, layout.upper
        return sample(log_posterior, start, n_sweeps, rng, lower=lower, upper=upper, tune_widths=config.tune_widths)

    try:
        burnt_in = start if chain is not None else run(start, config.first_sweeps)[1]
        thetas, new_chain = run(burnt_in, config.sweeps)
    except SamplingError:
        return Learned(layout.unpack(start.theta[None]), y, best, state, failed=True)
    return Learned(layout.unpack(thetas), y, best, new_chain)


def fitted(x: Array, y: Array, domain: Domain, state: State, config: "Config", rng: Generator) -> Learned:
    """The most probable setting of `fit.py`: a few steps from the last one, now and then anew from several starts."""
    evidence = Evidence(x, y, config.beliefs)
    last = state if isinstance(state, Fitted) else None
    starts = [] if last is None else [last.theta]
    anew = last is None or len(y) < config.refit_until or len(y) >= (1.0 + config.refit_growth) * last.anew_at
    if anew:
        # Starts that trust every value and one that sees noise: between them lies a valley of little evidence
        starts += [np.array([evidence.prior_mean[0], np.log(level), evidence.prior_mean[2]]) for level in NOISE_LEVELS]
    new = fit(evidence, starts, config.fit_steps if anew else config.warm_steps)
    new = dataclasses.replace(new, anew_at=len(y) if last is None or anew else last.anew_at)
    return Learned(new.h, new.t, new.best, new)
