"""Additive BO: exact conditionals, likelihood and decomposition; a search that beats Sobol."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from cylbo.bench.methods import additive
from cylbo.bench.methods.additive import AdditiveGP, best_decomposition, fitted_theta, log_likelihood, lower_bound
from lab import best, off_center

NOISE = additive.NOISE_SD**2
GROUPS = ((0, 3), (1,), (2, 4))
THETA = np.log([0.7, 0.4])


def data(n=12, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, d)), rng.standard_normal(n)


def naive_kernel(x1, x2, groups, theta):
    """A double loop over the points: what the module computes with pdist and cdist."""
    h, amplitude = np.exp(theta)
    return np.array(
        [
            [sum(amplitude * np.exp(-0.5 * sum((a[i] - b[i]) ** 2 for i in g) / h**2) for g in groups) for b in x2]
            for a in x1
        ]
    )


@pytest.mark.parametrize("theta", [THETA, np.log([0.05, 2.0]), np.log([4.0, 9.0])])
def test_each_group_has_the_exact_conditional_of_its_term(theta):
    x, y = data()
    queries = np.random.default_rng(1).uniform(-1, 1, (7, 5))
    K = naive_kernel(x, x, GROUPS, theta) + NOISE * np.eye(len(x))
    gp = AdditiveGP(x, y, GROUPS, theta)
    for j, group in enumerate(GROUPS):
        k = naive_kernel(queries, x, [group], theta)
        posterior = gp.group_posterior(j, queries[:, group])
        np.testing.assert_allclose(posterior.mean[0], k @ np.linalg.solve(K, y), rtol=1e-6, atol=1e-8)
        expected = np.exp(theta[1]) - np.einsum("mn,nm->m", k, np.linalg.solve(K, k.T))
        np.testing.assert_allclose(posterior.variance[0], expected, rtol=1e-5, atol=1e-8)


def test_the_means_of_the_groups_add_up_to_the_mean_of_the_sum():
    x, y = data()
    queries = np.random.default_rng(1).uniform(-1, 1, (7, 5))
    K = naive_kernel(x, x, GROUPS, THETA) + NOISE * np.eye(len(x))
    gp = AdditiveGP(x, y, GROUPS, THETA)
    total = sum(gp.group_posterior(j, queries[:, g]).mean[0] for j, g in enumerate(GROUPS))
    np.testing.assert_allclose(total, naive_kernel(queries, x, GROUPS, THETA) @ np.linalg.solve(K, y), rtol=1e-8)


def test_the_uncertainty_of_the_sum_is_that_of_the_dense_gp():
    x, y = data()
    query = np.random.default_rng(1).uniform(-1, 1, 5)
    K = naive_kernel(x, x, GROUPS, THETA) + NOISE * np.eye(len(x))
    k = naive_kernel([query], x, GROUPS, THETA)[0]
    expected = naive_kernel([query], [query], GROUPS, THETA)[0, 0] - k @ np.linalg.solve(K, k)
    assert AdditiveGP(x, y, GROUPS, THETA).sd(query) == pytest.approx(np.sqrt(expected), rel=1e-6)


@pytest.mark.parametrize("theta", [THETA, np.log([0.05, 2.0]), np.log([4.0, 9.0])])
def test_likelihood_is_that_of_scipys_multivariate_normal(theta):
    x, y = data()
    K = naive_kernel(x, x, GROUPS, theta) + NOISE * np.eye(len(x))
    expected = multivariate_normal(cov=K).logpdf(y)
    value, slope = log_likelihood(theta, x, y, GROUPS)
    assert value == pytest.approx(expected, rel=1e-7)

    def density(t):
        return multivariate_normal(cov=naive_kernel(x, x, GROUPS, t) + NOISE * np.eye(len(x))).logpdf(y)

    steps = 1e-5 * np.eye(2)
    central = [(density(theta + s) - density(theta - s)) / 2e-5 for s in steps]
    np.testing.assert_allclose(slope, central, rtol=1e-4, atol=1e-5)


def test_the_fit_is_as_good_as_the_best_of_a_grid():
    x = np.random.default_rng(2).uniform(-1, 1, (30, 5))
    y = np.sin(4 * x[:, 0]) + x[:, 1] ** 2
    y = (y - y.mean()) / y.std()
    theta = fitted_theta(x, y, GROUPS, starts=[THETA])
    grid = [
        log_likelihood(np.log([h, a]), x, y, GROUPS)[0] for h in np.geomspace(0.1, 9, 25) for a in (0.05, 0.2, 1, 5)
    ]
    assert log_likelihood(theta, x, y, GROUPS)[0] >= max(grid)
    assert np.exp(fitted_theta(x, y, GROUPS, starts=[THETA], widest=0.3)[0]) <= 0.3 + 1e-12


@pytest.mark.parametrize("z", [[0.3, -0.8], [-1.0, 1.0], [0.0, 0.0]])
def test_slope_of_the_lower_bound_is_that_of_finite_differences(z):
    x, y = data()
    gp = AdditiveGP(x, y, GROUPS, THETA)

    def value(point):
        posterior = gp.group_posterior(2, point[None])
        return posterior.mean[0, 0] - np.sqrt(1.7 * posterior.variance[0, 0])

    point = np.array(z)
    posterior = gp.group_posterior(2, point[None])
    acquired = lower_bound(posterior, 1.7)
    assert acquired.value[0] == pytest.approx(value(point))
    slope = posterior.pullback(acquired.mean_bar, acquired.variance_bar)[0]
    np.testing.assert_allclose(slope, approx_fprime(point, value, 1e-7), rtol=1e-4, atol=1e-5)


def test_the_next_point_is_the_minimiser_of_each_lower_bound_on_a_fine_grid():
    x, y = data(n=8, seed=1)  # a case in which another beta has another minimiser: -0.374 with half of it, -0.429 twice
    gp = AdditiveGP(x, y, ((0,), (1, 2, 3, 4)), np.log([0.3, 0.4]))
    axis = np.linspace(-1, 1, 2001)
    posterior = gp.group_posterior(0, axis[:, None])
    bound = posterior.mean[0] - np.sqrt(0.2 * np.log(2 * 9) * posterior.variance[0])  # beta_t = 0.2 d log(2t), d = 1
    assert additive.next_point(gp)[0] == pytest.approx(axis[bound.argmin()], abs=2e-3)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
def test_random_groups_are_a_partition_into_groups_of_the_size_allowed(size):
    groups = additive.random_groups(7, size, np.random.default_rng(3))
    assert sorted(i for g in groups for i in g) == list(range(7))
    assert max(map(len, groups)) == min(size, 7)
    assert len(groups) == -(-7 // size)


@pytest.mark.parametrize("truth", [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))])
def test_the_pairs_of_an_additive_function_are_found(truth):
    # Only three pairings of four coordinates exist: 20 tries miss one with chance (2/3)^20, and the seed is fixed
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (40, 4))
    y = sum(np.sin(2 * x[:, a] * x[:, b]) + x[:, a] for a, b in truth)
    y = (y - y.mean()) / y.std()
    first = ((0, 1), (2, 3)) if truth != ((0, 1), (2, 3)) else ((0, 2), (1, 3))
    theta = fitted_theta(x, y, first, starts=[np.log([1.0, 0.5])])
    assert best_decomposition(x, y, first, theta, 2, rng, tries=20)[0] == truth


def test_the_present_groups_stay_when_no_rival_is_better():
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (60, 6))
    truth = ((0, 5), (1, 3), (2, 4))
    y = sum(np.sin(2 * x[:, a] * x[:, b]) for a, b in truth)
    y = (y - y.mean()) / y.std()
    theta = fitted_theta(x, y, truth, starts=[np.log([1.0, 0.3])])
    assert all(best_decomposition(x, y, truth, theta, 2, rng, tries=1)[0] == truth for _ in range(4))


def test_a_bandwidth_that_leaves_nothing_to_learn_is_shrunk(monkeypatch):
    caps = []

    def spy(*args, widest, **kwargs):
        caps.append(widest)
        return fitted_theta(*args, widest=widest, **kwargs)

    monkeypatch.setattr(additive, "fitted_theta", spy)
    best("additive-1", lambda x: x[0], 1, 30)  # a line in one dimension is soon known
    assert caps[0] == additive.BANDWIDTHS[1]
    assert caps[-1] < caps[0]


def test_groups_larger_than_the_space_are_one_group():
    best("additive-10", off_center, 4, 13)
