"""Elastic BO: gradients that vanish at the true scale and not at a longer one; a search that beats Sobol."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import norm

from cylbo.bench.methods import elastic
from cylbo.bench.methods.additive import NOISE_SD, AdditiveGP
from cylbo.bench.methods.elastic import Improvement, climbed, elastic_search, first_lively, ladder
from lab import best


def rungs(scales, d=20, n=15, seed=0):
    """Improvements under each scale; the data lie in the corner where all coordinates are positive."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.3, 1.0, (n, d))
    y = ((x - 0.7) ** 2).sum(-1)
    y = (y - y.mean()) / y.std()
    return (
        x,
        y,
        [Improvement(AdditiveGP(x, y, (tuple(range(d)),), np.array([np.log(s), 0.0])), y.min()) for s in scales],
    )


FAR = np.full(20, -0.8)  # 5.6 and more from all data
TRUE_SCALE = 0.4


def naive_log_ei(x, y, query, scale):
    """From the textbook's formulas and a dense solve."""
    K = np.exp([[-0.5 * ((a - b) ** 2).sum() / scale**2 for b in x] for a in x]) + NOISE_SD**2 * np.eye(len(x))
    k = np.exp([-0.5 * ((query - b) ** 2).sum() / scale**2 for b in x])
    mean, sd = k @ np.linalg.solve(K, y), np.sqrt(1.0 - k @ np.linalg.solve(K, k))
    z = (y.min() - mean) / sd
    return np.log(sd * (norm.pdf(z) + z * norm.cdf(z)))


@pytest.mark.parametrize("scale", [0.8, 2.0, 9.0])
def test_improvement_and_its_gradient_are_those_of_the_dense_formulas(scale):
    x, y, (rung,) = rungs([scale])
    query = np.random.default_rng(1).uniform(-1, 1, 20)
    value, gradient = rung(query)
    assert value == pytest.approx(naive_log_ei(x, y, query, scale), rel=1e-5)
    differences = approx_fprime(query, lambda q: naive_log_ei(x, y, q, scale), 1e-6)
    np.testing.assert_allclose(gradient, differences, rtol=1e-3, atol=1e-4 * np.abs(differences).max())


def test_gradient_vanishes_at_a_short_scale_and_not_at_a_long_one():
    _, _, all_rungs = rungs([TRUE_SCALE, 0.8, 1.6, 3.2, 6.4])
    norms = np.array([np.linalg.norm(rung(FAR)[1]) for rung in all_rungs])
    assert norms[0] < 1e-12
    assert (np.diff(norms[:4]) > 0).all()
    assert norms[3:].min() > elastic.SIGNIFICANT


def test_a_plain_local_search_stays_where_the_elastic_one_moves_and_ends_higher():
    _, _, all_rungs = rungs(ladder(TRUE_SCALE, 2 * np.sqrt(20)))
    true = all_rungs[0]
    assert np.linalg.norm(true(FAR)[1]) < 1e-12
    np.testing.assert_array_equal(climbed(true, FAR), FAR)
    end = elastic_search(all_rungs, FAR)
    assert np.linalg.norm(end - FAR) > 1.0
    assert true(end)[0] > true(FAR)[0] + 0.1
    assert (np.abs(end) <= 1.0).all()


def test_the_search_begins_at_the_first_scale_with_a_significant_gradient():
    _, _, all_rungs = rungs(ladder(TRUE_SCALE, 2 * np.sqrt(20)))
    first = first_lively(all_rungs, FAR)
    norms = [np.linalg.norm(rung(FAR)[1]) for rung in all_rungs]
    assert 0 < first < len(all_rungs) - 1
    assert max(norms[:first]) < elastic.SIGNIFICANT <= norms[first]
    assert first_lively(all_rungs[:1], FAR) == 0  # none is lively: the last one there is


def test_where_the_true_scale_has_a_gradient_the_search_is_the_plain_local_one():
    x, _, all_rungs = rungs(ladder(2.0, 2 * np.sqrt(20)))
    start = x[0] - 0.3
    assert first_lively(all_rungs, start) == 0
    np.testing.assert_array_equal(elastic_search(all_rungs, start), climbed(all_rungs[0], start))


@pytest.mark.parametrize(("true", "longest"), [(0.05, 9.0), (1.0, 1.0), (3.0, 2.0), (0.4, 8.9)])
def test_the_ladder_begins_at_the_true_scale_and_reaches_the_longest(true, longest):
    scales = ladder(true, longest)
    assert scales[0] == pytest.approx(true)
    assert scales[-1] >= longest * (1 - 1e-12)
    np.testing.assert_allclose(scales[1:] / scales[:-1], elastic.GROWTH)
    assert len(scales) == 1 or scales[-2] < longest


def test_nothing_is_asked_twice():
    # The improvement has its maximum at the best corner, again and again
    _, points = best("elastic", lambda x: float(x[0]), 1, 20)
    assert len(np.unique(points)) == 20
