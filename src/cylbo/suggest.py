"""One round of Bayesian optimisation as a straight line: history and state in, next point, new state and info out.

Read `suggest` from top to bottom; every room it passes through is named after what it holds.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cylbo.blend import Blend, BlendedGP
from cylbo.center import CenteredGP
from cylbo.config import Config
from cylbo.errors import NotPositiveDefiniteError
from cylbo.geometry import Array, Domain
from cylbo.gp import GP, Data, parallel_posterior
from cylbo.hyper import Hyperparameters
from cylbo.kernel import Cylindrical
from cylbo.learn import Learned, State
from cylbo.maximize import Objective, best_starts, uniform
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
    """The next point, what the next round begins from, and how the point came about."""

    x: Array  # (d,)
    state: State  # None before the first fit
    rung: Rung


def suggest(known: Known, state: State, domain: Domain, config: Config, rng: Generator) -> Suggestion:
    """The next point to evaluate. Never fails: where the model does, a simpler way is taken, and named."""
    if len(known.y) < 2:  # nothing to fit: the authors' design after the centre is one uniform point of the box
        return Suggestion(_fresh(known, domain, rng), state, "random")
    learned = config.learn(known.x, known.y, domain, state, config, rng)
    try:
        model = _Model(known, learned, domain, config)
        x = model.maximize(rng)
    except (NotPositiveDefiniteError, _NoCandidateError):
        return Suggestion(_fresh(known, domain, rng), learned.state, "space-filling")
    return Suggestion(x, learned.state, "last hyperparameters" if learned.failed else "model")


class _NoCandidateError(Exception):
    """The acquisition was a number nowhere, or only where we have been."""


class _Model:
    """The parts that a configuration chooses, joined for one round."""

    def __init__(self, known: Known, learned: Learned, domain: Domain, config: Config) -> None:
        """Raises NotPositiveDefiniteError if no jitter helps."""
        self.known, self.domain, self.config = known, domain, config
        self.kernel = learned.kernel or config.kernel(domain.radius)
        self.best = learned.best
        self.gp = self._condition(learned)

    def _condition(self, learned: Learned) -> GP:
        """One GP per setting on the data, and on believed values where evaluations are open or failed."""
        known, y = self.known, learned.y
        gp = self._gp(known.x, y, learned.h)
        unseen = np.concatenate([known.pending, known.failed])
        if not len(unseen):
            return gp
        # Open points are believed to come out as predicted, so that the variance there goes and the next point lies
        # elsewhere; failed ones as predicted, but no better than the middle of what was seen
        believed = gp.posterior(unseen).mean.mean(0)
        failed = slice(len(known.pending), None)
        believed[failed] = np.maximum(believed[failed], np.median(y))
        return self._gp(np.concatenate([known.x, unseen]), np.concatenate([y, believed]), learned.h)

    def _gp(self, x: Array, y: Array, h: Hyperparameters) -> GP:
        config, kernel = self.config, self.kernel
        data = Data.of(x, y, kernel)
        if isinstance(kernel, Cylindrical):
            return CenteredGP(
                data, kernel, h, stabilizer=config.stabilizer, boundary=config.boundary, jitters=config.jitters
            )
        if isinstance(kernel, Blend):
            return BlendedGP(data, kernel, h, stabilizer=config.stabilizer, jitters=config.jitters)
        return GP(data, kernel, h, stabilizer=config.stabilizer, jitters=config.jitters)

    def maximize(self, rng: Generator) -> Array:  # -> (d,)
        """The point of largest acquisition that was found and is new."""
        config, domain, gp = self.config, self.domain, self.gp

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
        starts = best_starts(
            self._candidates(rng),
            score(few),
            score(gp),
            config.n_starts,
            per_group=config.starts_per_group,
            share=config.screening_share,
            rng=rng,
        )
        if not len(starts):
            raise _NoCandidateError
        ends, values = config.climb(
            slope, starts, domain, learning_rate=config.learning_rate, max_steps=config.max_steps
        )
        if domain.lattice is not None:  # what was climbed to is rounded, maybe to a known point; the starts are new
            ends = np.concatenate([domain.project(ends), starts])
            values = score(gp)(ends)
        usable = ~np.isnan(values) & np.isfinite(ends).all(-1) & _is_new(ends, self.known)
        if not usable.any():
            raise _NoCandidateError
        ends, values = ends[usable], values[usable]
        best: Array = ends[values.argmax()]
        return np.asarray(domain.project(best[None])[0])

    def _candidates(self, rng: Generator) -> list[Array]:  # each (m, d)
        """Points spread over the box, sprays about the best points and the evaluated points; never the centre."""
        config, domain, known = self.config, self.domain, self.known
        leaders = known.x[np.argsort(known.y, stable=True)[: config.n_leaders]]
        sprays = [config.spray(leaders, domain, sd, config.n_spray, rng) for sd in config.spray_scales]
        groups = [config.sobol(domain, config.n_sobol, rng), *sprays, known.x]
        if domain.lattice is not None:
            base = leaders[rng.integers(len(leaders), size=config.n_spray)]
            redrawn = [domain.lattice.redrawn(spray[::2], rng) for spray in sprays]
            groups = [domain.project(group) for group in (*groups, domain.lattice.redrawn(base, rng), *redrawn)]
            groups = [group[_is_new(group, known)] for group in groups]
        return [group[(group != 0).any(-1)] for group in groups]


def _is_new(x: Array, known: Known) -> NDArray[np.bool_]:  # (m, d) -> (m,)
    """Whether each point differs from all that were evaluated, are open or failed."""
    seen = np.concatenate([known.x, known.pending, known.failed])
    return np.array([(np.abs(point - seen) > SAME_POINT).any(-1).all() for point in x], dtype=bool)


def _fresh(known: Known, domain: Domain, rng: Generator) -> Array:  # -> (d,)
    """A uniform point of the box; drawn again in the (all but impossible) case that it is known."""
    for x in uniform(domain, 100, rng):
        if _is_new(x[None], known)[0]:
            break
    return np.asarray(x)
