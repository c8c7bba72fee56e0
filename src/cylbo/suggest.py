"""One round of Bayesian optimisation as a straight line: history and chain in, next point, new chain and info out.

Read `suggest` from top to bottom; every room it passes through is named after what it holds.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cylbo.center import CenteredGP
from cylbo.config import Config
from cylbo.errors import NotPositiveDefiniteError, SamplingError
from cylbo.geometry import Array, Domain
from cylbo.gp import GP, Data, parallel_posterior
from cylbo.hyper import Hyperparameters, Layout, Vector
from cylbo.kernel import Cylindrical, Matern
from cylbo.likelihood import LogPosterior
from cylbo.maximize import Objective, best_starts, uniform
from cylbo.slice_sampler import Chain, sample
from cylbo.threads import in_parallel

__all__ = ["Known", "Rung", "Suggestion", "suggest"]

# How a point came about: before there is a model, by the model in full, by the model with the hyperparameters of the
# last round (sampling failed), or as a uniform point of the box (nothing else worked)
Rung = Literal["random", "model", "last hyperparameters", "space-filling"]

CHUNK_ELEMENTS = 2**17  # entries of a (samples, queries, data) block while screening: 1 MB, about a core's cache
SAME_POINT = 1e-9  # two points closer than this in every coordinate of the box [-1, 1]^d count as one


@dataclass(frozen=True, eq=False)
class Known:
    """All that is known of the objective, in ball coordinates."""

    x: Array  # (n, d) evaluated
    y: Array  # (n,) their values
    pending: Array  # (q, d) asked for and not yet told
    failed: Array  # (f, d) evaluations that gave nothing


@dataclass(frozen=True, eq=False)
class Suggestion:
    """The next point, the sampler's state for the next round, and how the point came about."""

    x: Array  # (d,)
    chain: Chain | None  # None before the first fit
    rung: Rung


def suggest(known: Known, chain: Chain | None, domain: Domain, config: Config, rng: Generator) -> Suggestion:
    """The next point to evaluate. Never fails: where the model does, a simpler way is taken, and named."""
    if len(known.y) < 2:  # nothing to fit: the authors' design after the centre is one uniform point of the box
        return Suggestion(_fresh(known, domain, rng), chain, "random")
    model = _Model(known, domain, config)
    try:
        thetas, chain = model.sample(chain, rng)
        rung: Rung = "model"
    except (SamplingError, NotPositiveDefiniteError):
        thetas = model.start(chain).theta[None]
        rung = "last hyperparameters"
    try:
        gp = model.condition(thetas)
        x = model.maximize(gp, rng)
    except (NotPositiveDefiniteError, _NoCandidateError):
        return Suggestion(_fresh(known, domain, rng), chain, "space-filling")
    return Suggestion(x, chain, rung)


class _NoCandidateError(Exception):
    """The acquisition was a number nowhere, or only where we have been."""


class _Model:
    """The parts that a configuration chooses, joined for one round."""

    def __init__(self, known: Known, domain: Domain, config: Config) -> None:
        self.known, self.domain, self.config = known, domain, config
        self.kernel: Cylindrical | Matern = config.kernel(domain.radius)
        self.y = config.scaling(known.y)
        self.best = float(self.y.min())
        self.layout = Layout(
            config.priors,
            domain.radius,
            (self.best, float(self.y.max())),
            angular_degree=config.angular_degree if self.kernel.has_center else None,
            warped=config.warped,
        )

    def start(self, chain: Chain | None) -> Chain:
        """Where the sampler begins: the last round's state, or the authors' initial values."""
        if chain is not None:
            return Chain(self.layout.repaired(chain.theta), chain.widths)
        return Chain(self.layout.initial(self.y), np.full(len(self.layout), self.config.slice_width))

    def sample(self, chain: Chain | None, rng: Generator) -> tuple[Vector, Chain]:  # (s, p)
        """Hyperparameters from their posterior, by slice sampling."""
        config, layout = self.config, self.layout
        log_posterior = LogPosterior(
            Data.of(self.known.x, self.y, self.kernel),
            self.kernel,
            layout,
            stabilizer=config.stabilizer,
            jitters=config.jitters,
        )

        def run(start: Chain, n_sweeps: int) -> tuple[Vector, Chain]:
            return sample(
                log_posterior,
                start,
                n_sweeps,
                rng,
                lower=layout.lower,
                upper=layout.upper,
                tune_widths=config.tune_widths,
            )

        start = self.start(chain)
        if chain is None:
            _, start = run(start, config.first_sweeps)
        return run(start, config.sweeps)

    def condition(self, thetas: Vector) -> GP:  # (s, p)
        """One GP per sample on the data, and on believed values where evaluations are open or failed."""
        h = self.layout.unpack(thetas)
        known = self.known
        gp = self._gp(known.x, self.y, h)
        unseen = np.concatenate([known.pending, known.failed])
        if not len(unseen):
            return gp
        # Open points are believed to come out as predicted, so that the variance there goes and the next point lies
        # elsewhere; failed ones as predicted, but no better than the middle of what was seen
        believed = gp.posterior(unseen).mean.mean(0)
        failed = slice(len(known.pending), None)
        believed[failed] = np.maximum(believed[failed], np.median(self.y))
        return self._gp(np.concatenate([known.x, unseen]), np.concatenate([self.y, believed]), h)

    def _gp(self, x: Array, y: Array, h: Hyperparameters) -> GP:
        config, kernel = self.config, self.kernel
        data = Data.of(x, y, kernel)
        if isinstance(kernel, Cylindrical):
            return CenteredGP(
                data, kernel, h, stabilizer=config.stabilizer, boundary=config.boundary, jitters=config.jitters
            )
        return GP(data, kernel, h, stabilizer=config.stabilizer, jitters=config.jitters)

    def maximize(self, gp: GP, rng: Generator) -> Array:  # -> (d,)
        """The point of largest acquisition that was found and is new."""
        config, domain = self.config, self.domain

        def score(gp: GP) -> Objective:
            chunk = max(16, CHUNK_ELEMENTS // (len(gp) * max(1, len(gp.data.y))))

            def one(x: Array) -> Array:
                return config.acquisition(gp.posterior(x), self.best).value

            def values(x: Array) -> Array:
                return np.concatenate(in_parallel(one, [x[i : i + chunk] for i in range(0, len(x), chunk)]))

            return values

        def slope(x: Array) -> tuple[Array, Array]:
            posterior = parallel_posterior(gp, x)
            acquired = config.acquisition(posterior, self.best)
            return acquired.value, posterior.pullback(acquired.mean_bar, acquired.variance_bar)

        few = gp.subset(slice(-config.screening_samples, None))
        starts = best_starts(self._candidates(rng), score(few), score(gp), config.n_starts, config.screening_share, rng)
        if not len(starts):
            raise _NoCandidateError
        ends, values = config.climb(
            slope, starts, domain, learning_rate=config.learning_rate, max_steps=config.max_steps
        )
        usable = ~np.isnan(values) & np.isfinite(ends).all(-1) & _is_new(ends, self.known)
        if not usable.any():
            raise _NoCandidateError
        ends, values = ends[usable], values[usable]
        best: Array = ends[values.argmax()]
        return domain.project(best)

    def _candidates(self, rng: Generator) -> Array:  # -> (m, d)
        """Sobol points of the box, a spray about the incumbent and the evaluated points; never the centre."""
        config, domain, known = self.config, self.domain, self.known
        incumbent = known.x[known.y.argmin()]
        sprays = [config.spray(incumbent, domain, sd, config.n_spray, rng) for sd in config.spray_scales]
        candidates = np.concatenate([config.sobol(domain, config.n_sobol, rng), *sprays, known.x])
        away: Array = candidates[(candidates != 0).any(-1)]
        return away


def _is_new(x: Array, known: Known) -> NDArray[np.bool_]:  # (m, d) -> (m,)
    """Whether each point differs from all that were evaluated, are open or failed."""
    seen = np.concatenate([known.x, known.pending, known.failed])
    return np.array([(np.abs(point - seen) > SAME_POINT).any(-1).all() for point in x])


def _fresh(known: Known, domain: Domain, rng: Generator) -> Array:  # -> (d,)
    """A uniform point of the box; drawn again in the (all but impossible) case that it is known."""
    for x in uniform(domain, 100, rng):
        if _is_new(x[None], known)[0]:
            break
    return np.asarray(x)
