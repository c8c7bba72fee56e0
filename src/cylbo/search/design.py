"""Points without a model: the initial design, and random points where the model disappoints."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from cylbo.search.climb import uniform
from cylbo.search.data import N_JUDGED, Known
from cylbo.search.feasibility import Limit, log_chance
from cylbo.search.settings import Method
from cylbo.space.domain import Domain
from cylbo.types import Array

__all__ = ["needs_covering", "needs_initial_design", "random_point"]


SMALLEST_RETREAT = 1e-3  # of the box, when evaluations fail before there is a model


MOST_COVERING = 100  # random points that users can spare; in dimensions that need more nothing is gained


def needs_initial_design(known: Known, domain: Domain, config: Method) -> bool:
    """Whether there are choices, and too few points that were asked for to tell which of them are good."""
    n_known = len(known.y) + len(known.failed) + len(known.pending)
    return domain.has_choices and n_known <= config.n_first_discrete


def needs_covering(known: Known, domain: Domain, config: Method) -> bool:
    """Whether the model disappoints, and too few points lie where it did not want them.

    Choices had theirs before, a box of few dimensions has been seen by the suggestions that the model was judged by,
    and where values are noisy it is the noise that disappoints.
    """
    wanted = config.cover * domain.dim
    able = N_JUDGED <= wanted <= MOST_COVERING and not domain.has_choices
    return able and known.n_unguided < wanted and known.disappointed and not known.noisy


def random_point(known: Known, domain: Domain, rng: Generator, limits: Sequence[Limit] = ()) -> Array:  # -> (d,)
    """A uniform point of the box; drawn again in the (all but impossible) case that it is known.

    Of choices, those that came up least often so far; of places that may not count, as many as are going to. While
    there is one value and everything else has failed, the box is halved towards that value with every failure.
    """
    base, size = (known.x[0], 2.0 ** -len(known.failed)) if len(known.y) == 1 else (0.0, 1.0)
    drawn = uniform(domain, 100, rng)
    if domain.lattice is not None:
        jumps = domain.lattice.jumps
        seen, choices = np.concatenate([known.x, known.pending, known.failed])[:, jumps], drawn[:, jumps]
        in_common = sum(((choices == point).sum(-1) for point in seen), np.zeros(len(drawn), dtype=int))
        drawn = drawn[np.argsort(in_common, stable=True)]
    if limits:
        drawn = drawn[np.argsort(rng.random(len(drawn)) > np.exp(log_chance(limits, drawn)), stable=True)]
    for u in drawn:
        x = domain.project((base + max(size, SMALLEST_RETREAT) * (u - base))[None])[0] if size < 1.0 else u
        if known.is_new(x[None])[0]:
            break
    return np.asarray(x)
