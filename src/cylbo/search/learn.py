"""From data to hyperparameters: slice sampling as in the paper, or the most probable ones by gradient.

Both take the data in ball coordinates, the state that the last round left and the configuration, and return what the
Gaussian process is made from.
"""

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Union

import numpy as np
from numpy.random import Generator

from cylbo.errors import SamplingError
from cylbo.model.beliefs import Form
from cylbo.model.blended import Blend
from cylbo.model.evidence import JUDGED, Evidence, Profile
from cylbo.model.fit import Fitted, at, fit
from cylbo.model.gp import Data
from cylbo.model.hyperparameters import Hyperparameters, Layout, Vector
from cylbo.model.likelihood import LogPosterior
from cylbo.model.scaling import from_compressed
from cylbo.numerics.slice_sampler import Chain, sample
from cylbo.search.data import Known, representative
from cylbo.space.domain import Domain
from cylbo.types import Array

if TYPE_CHECKING:
    from cylbo.search.settings import Method

__all__ = ["Fits", "Learn", "Learned", "State", "expected", "fits_and_process", "fitted", "profiled", "sampled"]

NOTED = 0.1  # noise of this share of what separates the good values is no longer a matter of rounding
DROWNED = 0.7  # noise above this share of the spread of all that is predicted leaves nothing to be seen ...
FEWEST_TO_DOUBT = 5  # ... which is no longer for lack of values
NOISE_LEVELS = (1e-7, 1e-5, 3e-2)  # of the starts of a new fit, as shares of the amplitude

State = Union[Chain, "Fits", None]  # where the next round begins; None before the first fit


@dataclass(frozen=True, eq=False)
class Learned:
    """What the model is made from, and the state for the next round."""

    h: Hyperparameters  # s settings
    y: Array  # (n,) values as the model sees them
    best: float  # what an improvement is measured from; NaN if no point is allowed yet
    state: State
    kernel: Blend | None = None  # None: the one that the configuration names
    noise: Array | None = None  # (n,) variances of told noise in units of the amplitude, besides what h says
    unsure: bool = False  # what separates the good values may be noise
    shelter: int | None = None  # the evaluated point to keep close to, where noise hides what lies further away
    failed: bool = False  # nothing could be learned: these are the last round's hyperparameters
    to_values: Callable[[Array], Array] | None = None  # numbers such as y back in the user's unit; None: not asked for
    observed: float = 0.0  # variance that an observation has besides that of the process, with to_values


class Learn(Protocol):
    """Data in ball coordinates, and where the last round ended, to what the model is made from."""

    def __call__(
        self, known: Known, domain: Domain, state: State, config: "Method", rng: Generator, until: float = math.inf
    ) -> Learned:
        """Learn, and be done when the clock says `until`."""
        ...


def sampled(
    known: Known,
    domain: Domain,
    state: State,
    config: "Method",
    rng: Generator,
    until: float = math.inf,
) -> Learned:
    """`config.sweeps` settings from their posterior, by slice sampling. Oh et al. 2018, Sec. 4.

    Noise is sampled too; what was told of it is not used.
    """
    kernel = config.kernel(domain.radius)
    x, y = known.x, config.scaling(known.y)
    best = float(y[known.allowed].min()) if known.allowed.any() else np.nan
    layout = Layout(
        config.priors,
        domain.radius,
        (float(y.min()), float(y.max())),
        angular_degree=config.angular_degree if kernel.has_center else None,
        warped=config.warped,
    )
    chain = state if isinstance(state, Chain) and len(state.theta) == len(layout) else None
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
    told_noise: bool = False  # with a hyperparameter for the amplitude, see `model/evidence.py`


def fitted(
    known: Known,
    domain: Domain,
    state: State,
    config: "Method",
    rng: Generator,
    until: float = math.inf,
) -> Learned:
    """The most probable setting (`model/evidence.py`) of the form of the model that predicts the good values best."""
    n, d = known.x.shape
    last = state if isinstance(state, Fits) else None
    after, new = fits_and_process(
        known.x, known.y, domain, last, config, noise=known.told_noise, count=n + len(known.left_out), until=until
    )
    best = float(new.predicted[known.allowed].min()) if known.allowed.any() else np.nan
    # A process that is sure of itself near the best point finds the smallest of gains there, again and again. What
    # counts is a gain that would be seen among the good values, of which there are more in more dimensions, and above
    # the noise. Equal values count once: on a plateau of the best ones nothing would be too small a gain
    spread = _separation(new.t, best, d)
    observed = new.h.amplitude[0] * (new.h.noise_ratio[0] + (0.0 if new.told is None else np.median(new.told)))
    noise = math.sqrt(observed)
    target = best - max(config.ambition * spread, config.noise_ambition * noise if known.noisy else 0.0)
    hidden = n >= FEWEST_TO_DOUBT and 0.0 < DROWNED * new.predicted.std() < noise
    # Where good values are forbidden, those that are allowed lie further apart; few allowed ones say nothing
    apart = max(spread, _separation(new.t[known.allowed], best, d))
    unsure = noise > NOTED * apart and (hidden or n >= config.refit_until)
    # Ripples look like noise, and where the model sees noise it takes the best value for luck. Unless values are known
    # to be noisy it was none: what lies above it is no improvement. Among choices that gains nothing
    if unsure and not known.noisy and not domain.has_choices and known.allowed.any():
        target = min(target, float(new.t[known.allowed].min()))
    # In many dimensions nearly all that is unknown lies at the rim of the box. A model that sees little but noise would
    # look there for ever; about a point that is good for certain there is something to be averaged
    shelter = None
    if hidden and known.noisy and known.allowed.any():
        shelter = int(np.where(known.allowed, new.predicted + new.uncertainty, np.inf).argmin())
    return Learned(
        new.h,
        new.t,
        target,
        after,
        kernel=new.kernel,
        noise=new.told,
        unsure=bool(unsure),
        shelter=shelter,
        to_values=lambda t: from_compressed(t, new.theta[2], known.y),
        observed=float(observed),
    )


def _separation(t: Array, best: float, d: int) -> float:  # (n,)
    """How far the good ones among different values lie above the best; NaN of none."""
    values = np.unique(t)
    good = values[min(len(values) - 1, min(len(t) - 1, max(d, 2)) // 2)] if len(values) else np.nan
    return max(float(good) - best, 0.0)


def expected(known: Known, domain: Domain, state: State, config: "Method") -> Array | None:  # -> (n,)
    """What the model expects of another evaluation at each evaluated point; None of fewer than two."""
    last = profiled(known, domain, state, config)
    if last is None and len(known.y) > 1:  # no model has suggested anything yet, or noise was told since
        fits, _ = fits_and_process(known.x, known.y, domain, None, config, noise=known.told_noise)
        last = profiled(known, domain, fits, config)
    return None if last is None else from_compressed(last[1].predicted, last[0][2], known.y)


def profiled(known: Known, domain: Domain, state: State, config: "Method") -> tuple[Array, Profile] | None:
    """The hyperparameters (p,) of the last fit, and what it makes of all data; None without one."""
    noise = known.told_noise
    if not isinstance(state, Fits) or state.told_noise != (noise is not None) or not len(known.y):
        return None
    theta = state.thetas[state.form]
    evidence = Evidence(known.x, known.y, config.beliefs, state.form, middle=domain.middle, noise=noise)
    return theta, evidence.profile(theta)


def fits_and_process(
    x: Array,
    y: Array,
    domain: Domain,
    last: Fits | None,
    config: "Method",
    *,
    noise: Array | None = None,
    forms: tuple[Form, ...] | None = None,
    judged: float = JUDGED,
    count: int | None = None,
    until: float = math.inf,
) -> tuple[Fits, Fitted]:
    """The fits after this round, and the process of the form that predicts best on all data.

    Hyperparameters move little from one evaluation to the next, so they are fitted when the data have grown by
    `warm_growth`, and all forms are fitted and judged, anew from several starts, when they have grown by
    `refit_growth`. The forms are those of the configuration unless others are given. `count` is the number of data if
    these are not all, `until` when the clock stops the fits.
    """
    d = x.shape[1]
    n = len(x) if count is None else count
    forms = config.forms if forms is None else forms
    evidence = functools.partial(Evidence, x, y, config.beliefs, middle=domain.middle, noise=noise, judged=judged)
    among = representative(np.argsort(y, stable=True), config.fit_points)
    if last is not None and last.told_noise != (noise is not None):  # other hyperparameters
        last = None
    if last is None or n < config.refit_until or n >= (1.0 + config.refit_growth) * last.chosen_at:
        # Less than half as many values as coordinates cannot tell one coordinate from another
        able = forms if 2 * n >= d else (Form(),)
        fits = {}
        for i, form in enumerate(able):
            share = until if math.isinf(until) else _part(until, len(able) - i)
            fits[form] = _anew(evidence(form, among=among, until=share), last, config)
        chosen = max(able, key=lambda form: fits[form].score)
        after = Fits({form: fits[form].theta for form in able}, chosen, n, n, noise is not None)
    elif n >= (1.0 + config.warm_growth) * last.fitted_at:
        form = last.form
        warm = fit(evidence(form, among=among, until=until), [last.thetas[form]], config.warm_steps)
        after = dataclasses.replace(last, thetas={**last.thetas, form: warm.theta}, fitted_at=n)
    else:
        after = last
    return after, at(evidence(after.form), after.thetas[after.form])


def _part(until: float, among: int) -> float:
    """When the first of so many must end for all of them to have as much of what is left on the clock."""
    now = time.perf_counter()
    return now + (until - now) / among


def _anew(evidence: Evidence, last: Fits | None, config: "Method") -> Fitted:
    """From the last fit, from starts that trust every value and from one that sees noise: between them lies a valley
    of little evidence.
    """
    starts = [last.thetas[evidence.form]] if last is not None and evidence.form in last.thetas else []
    for level in NOISE_LEVELS:
        start = evidence.prior_mean.copy()
        start[1] = np.log(level)
        starts.append(start)
    return fit(evidence, starts, config.fit_steps)
