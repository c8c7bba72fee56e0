"""The most probable hyperparameters, by gradient from several starts."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cylbo.model.blended import Blend
from cylbo.model.evidence import Evidence
from cylbo.model.hyperparameters import Hyperparameters
from cylbo.types import Array

__all__ = ["PROBE_STEPS", "Fitted", "at", "fit"]


PROBE_STEPS = 8  # which of several starts leads to the best end is clear after these


@dataclass(frozen=True, eq=False)
class Fitted:
    """Hyperparameters, what the model is told of the values, and what counts as the best of them."""

    theta: Array  # (p,)
    kernel: Blend
    h: Hyperparameters  # a batch of one
    t: Array  # (n,) compressed values
    predicted: Array  # (n,) posterior means at the data: with noise, the lowest value is luck
    uncertainty: Array  # (n,) posterior standard deviations at the data
    score: float  # see `Profile`
    told: Array | None  # (n,) noise that was told, as variances in units of the amplitude

    @property
    def best(self) -> float:
        """The lowest of what is predicted."""
        return float(self.predicted.min())


def fit(evidence: Evidence, starts: Iterable[Array], max_iterations: int) -> Fitted:
    """The best theta L-BFGS-B finds within the ranges: a few steps from each start (p,), the others from the best."""
    if not evidence.gaps.any():  # there is nothing to learn: all values are equal
        return at(evidence, evidence.prior_mean)
    probes = []
    for start in starts:
        probes.append(evidence.descended(start, min(PROBE_STEPS, max_iterations)))
        if evidence.out_of_time:
            break
    best = min(probes, key=lambda end: end[0])
    left = max_iterations - PROBE_STEPS
    return at(evidence, (evidence.descended(best[1], left) if left > 0 and not evidence.out_of_time else best)[1])


def at(evidence: Evidence, theta: Array) -> Fitted:  # (p,)
    """The process at theta."""
    profile = evidence.profile(theta)
    h = Hyperparameters(
        amplitude=np.array([profile.amplitude]),
        noise_ratio=np.exp(theta[1:2]),
        lengthscale=np.exp(theta[:1]),
        mean=np.array([profile.mean]),
    )
    return Fitted(
        theta, evidence.kernel(theta), h, profile.t, profile.predicted, profile.uncertainty, profile.score, profile.told
    )
