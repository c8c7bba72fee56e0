"""From data to hyperparameters: slice sampling as in the paper, or the most probable ones by gradient.

Both take the data in ball coordinates, the state that the last round left and the configuration, and return what the
Gaussian process is made from.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cylbo.blend import Blend
from cylbo.errors import SamplingError
from cylbo.fit import Evidence, Fitted, Form, at, fit
from cylbo.geometry import Array, Domain
from cylbo.gp import Data
from cylbo.hyper import Hyperparameters, Layout, Vector
from cylbo.likelihood import LogPosterior
from cylbo.slice_sampler import Chain, sample

if TYPE_CHECKING:
    from cylbo.config import Config

__all__ = ["Fits", "Learn", "Learned", "State", "fitted", "sampled"]

NOISE_LEVELS = (1e-7, 1e-5, 3e-2)  # of the starts of a new fit, as shares of the amplitude

State = Union[Chain, "Fits", None]  # where the next round begins; None before the first fit


@dataclass(frozen=True, eq=False)
class Learned:
    """What the model is made from, and the state for the next round."""

    h: Hyperparameters  # s settings
    y: Array  # (n,) values as the model sees them
    best: float  # what an improvement is measured from
    state: State
    kernel: Blend | None = None  # None: the one that the configuration names
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


@dataclass(frozen=True, eq=False)
class Fits:
    """The last fit of every form of the model, and which of them is trusted."""

    thetas: Mapping[Form, Array]
    form: Form
    chosen_at: int  # the number of data when all forms were last fitted and judged
    fitted_at: int  # ... when the trusted one was last fitted


def fitted(x: Array, y: Array, domain: Domain, state: State, config: "Config", rng: Generator) -> Learned:
    """The most probable setting (`fit.py`) of the form of the model that predicts the good values best.

    Hyperparameters move little from one evaluation to the next, so they are fitted when the data have grown by
    `warm_growth`, and all forms are fitted and judged, anew from several starts, when they have grown by
    `refit_growth`.
    """
    n, d = x.shape
    last = state if isinstance(state, Fits) else None
    evidence = functools.partial(Evidence, x, y, config.beliefs, middle=0.5 * (domain.low + domain.high))
    among = _representative(y, config.fit_points)
    if last is None or n < config.refit_until or n >= (1.0 + config.refit_growth) * last.chosen_at:
        # Less than half as many values as coordinates cannot tell one coordinate from another
        forms = config.forms if 2 * n >= d else (Form(),)
        fits = {form: _anew(evidence(form, among=among), last, config) for form in forms}
        chosen = max(forms, key=lambda form: fits[form].score)
        after = Fits({form: fits[form].theta for form in forms}, chosen, n, n)
    elif n >= (1.0 + config.warm_growth) * last.fitted_at:
        form = last.form
        warm = fit(evidence(form, among=among), [last.thetas[form]], config.warm_steps)
        after = dataclasses.replace(last, thetas={**last.thetas, form: warm.theta}, fitted_at=n)
    else:
        after = last
    new = at(evidence(after.form), after.thetas[after.form])
    # A process that is sure of itself near the best point finds the smallest of gains there, again and again. What
    # counts is a gain that would be seen among the good values, of which there are more in more dimensions
    good = float(np.sort(new.t)[min(n - 1, d) // 2])
    target = new.best - config.ambition * max(good - new.best, 0.0)
    return Learned(new.h, new.t, target, after, kernel=new.kernel)


def _representative(y: Array, count: int) -> NDArray[np.intp]:  # (n,) -> (m,)
    """At most so many of the data, in their order: one half the best, the others evenly from what is left."""
    order = np.argsort(y, kind="stable")
    if len(y) <= count:
        return np.arange(len(y))
    best, rest = order[: count // 2], order[count // 2 :]
    spread = np.linspace(0, len(rest) - 1, count - len(best)).round().astype(np.intp)
    return np.sort(np.concatenate([best, rest[spread]]))


def _anew(evidence: Evidence, last: Fits | None, config: "Config") -> Fitted:
    """From the last fit, from starts that trust every value and from one that sees noise: between them lies a valley
    of little evidence.
    """
    starts = []
    for level in NOISE_LEVELS:
        start = evidence.prior_mean.copy()
        start[1] = np.log(level)
        starts.append(start)
    if last is not None and evidence.form in last.thetas:
        starts.append(last.thetas[evidence.form])
    return fit(evidence, starts, config.fit_steps)
