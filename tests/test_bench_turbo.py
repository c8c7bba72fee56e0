"""TuRBO-1: the trust region's life, its candidates, the local Gaussian process."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from cylbo.bench.methods import sobol, turbo
from cylbo.bench.objective import Objective
from cylbo.model.scaling import standardized

OPTIMUM = np.linspace(-0.7, 0.7, 10)


def bowl(x):
    return float(((x - OPTIMUM) ** 2).sum())


def run(function, dim, budget, seed=0, family=turbo):
    objective = Objective(function, dim, budget)
    family.METHODS[0].spend(objective, seed)
    return objective


def after(region, outcomes, tolerance):
    for improved in outcomes:
        region = turbo.resized(region, improved=improved, failure_tolerance=tolerance)
    return region


def test_the_region_halves_when_the_failures_reach_the_tolerance_and_not_before():
    assert after(turbo.TrustRegion(), [False] * 6, 7).length == 0.8
    assert after(turbo.TrustRegion(), [False] * 7, 7) == turbo.TrustRegion(0.4)
    assert after(turbo.TrustRegion(), [False] * 14, 7) == turbo.TrustRegion(0.2)


def test_the_region_doubles_after_three_successes_in_a_row_up_to_its_largest_size():
    assert after(turbo.TrustRegion(0.25), [True] * 2, 7).length == 0.25
    assert after(turbo.TrustRegion(0.25), [True] * 3, 7) == turbo.TrustRegion(0.5)
    assert after(turbo.TrustRegion(0.25), [True] * 30, 7).length == 1.6


def test_a_success_forgives_the_failures_before_it_and_the_other_way_round():
    assert after(turbo.TrustRegion(), [False] * 6 + [True] + [False] * 6, 7).length == 0.8
    assert after(turbo.TrustRegion(), [True, True, False, True, True], 7).length == 0.8


def test_a_region_below_the_smallest_size_is_given_up_for_a_new_design():
    """0.8 / 2^7 < 2^-7 <= 0.8 / 2^6: seven halvings of 4 failures after the design of 2 points, then 2 points anew."""
    values = iter(range(100))  # never better than the first, at the centre
    x = np.array(run(lambda x: float(next(values)), 1, 60).points)[:, 0]
    for halvings in range(7):
        assert np.abs(x[2 + 4 * halvings : 6 + 4 * halvings]).max() <= 0.8 / 2**halvings  # the box is twice the cube
    assert np.sign(x[30]) == -np.sign(x[31])  # a Latin hypercube: one point in each half of the box
    assert np.abs(x[30:32]).min() > 0.8 / 2**6


@pytest.mark.parametrize("length", [0.8, 2.0**-6])
def test_the_sides_have_the_geometric_mean_of_the_length_and_the_proportions_of_the_length_scales(length):
    lengthscales = np.random.default_rng(1).lognormal(size=12)
    low, high = turbo.box(np.full(12, 0.3), lengthscales, length)
    sides = high - low
    assert np.exp(np.log(sides).mean()) == pytest.approx(length, rel=1e-12)
    np.testing.assert_allclose(sides / sides[0], lengthscales / lengthscales[0], rtol=1e-9)
    np.testing.assert_allclose((low + high) / 2, 0.3, rtol=1e-12)


@pytest.mark.parametrize("dim", [1, 7, 20, 80, 300])
def test_candidates_stay_in_region_and_cube_and_move_about_twenty_coordinates_but_never_none(dim):
    rng = np.random.default_rng(dim)
    center = rng.random(dim)
    center[0] = 1.0  # on the rim of the cube
    low, high = center - 0.3, center + 0.2
    points = turbo.candidates(center, low, high, 1000, rng)
    assert points.shape == (1000, dim)
    assert (points >= np.maximum(low, 0) - 1e-12).all()
    assert (points <= np.minimum(high, 1) + 1e-12).all()
    moved = points != center
    assert moved.any(axis=1).all()
    chance = min(1.0, 20 / dim)
    assert moved.mean() == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / moved.size) + 1e-3)


def test_a_candidate_that_would_not_move_at_all_moves_one_coordinate(monkeypatch):
    monkeypatch.setattr(turbo, "PERTURBED_COORDINATES", 0)
    points = turbo.candidates(np.full(9, 0.5), np.zeros(9), np.ones(9), 256, np.random.default_rng(0))
    moved = points != 0.5
    assert (moved.sum(axis=1) == 1).all()
    assert moved.any(axis=0).all()


def data(n=25, d=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    return x, standardized(np.sin(6 * x[:, 0]) + x[:, 1] ** 2)


def naive_covariance(theta, x1, x2):
    signal, lengthscales = np.exp(theta[1]), np.exp(theta[3:])
    K = np.empty((len(x1), len(x2)))
    for i, p in enumerate(x1):
        for j, q in enumerate(x2):
            r = np.sqrt(5 * (((p - q) / lengthscales) ** 2).sum())
            K[i, j] = signal * (1 + r + r**2 / 3) * np.exp(-r)
    return K


THETA = np.array([0.3, np.log(1.7), np.log(2e-3), *np.log([0.4, 0.9, 2.0, 3.5])])


def test_the_likelihood_is_that_of_scipy():
    x, y = data()
    K = naive_covariance(THETA, x, x) + 2e-3 * np.eye(len(x))
    expected = multivariate_normal(np.full(len(y), 0.3), K).logpdf(y)
    assert turbo.negative_log_likelihood(THETA, x, y)[0] == pytest.approx(-expected, rel=1e-9)


def test_the_gradient_of_the_likelihood_matches_finite_differences():
    x, y = data()
    numerical = approx_fprime(THETA, lambda t: turbo.negative_log_likelihood(t, x, y)[0], 1e-6)
    np.testing.assert_allclose(turbo.negative_log_likelihood(THETA, x, y)[1], numerical, rtol=1e-4, atol=1e-4)


def test_the_fit_gives_coordinates_that_do_not_matter_the_longest_length_scales():
    x, y = data(n=60, d=6)
    theta = turbo.fitted(x, y)
    assert set(np.argsort(theta[3:])[:2]) == {0, 1}


def test_samples_have_the_mean_and_covariance_of_the_exact_posterior():
    x, y = data(n=8)
    c = np.random.default_rng(5).random((5, 4))
    K = naive_covariance(THETA, x, x) + 2e-3 * np.eye(len(x))
    k = naive_covariance(THETA, x, c)
    mean = 0.3 + k.T @ np.linalg.solve(K, y - 0.3)
    cov = naive_covariance(THETA, c, c) - k.T @ np.linalg.solve(K, k)
    rng = np.random.default_rng(6)
    samples = np.array([turbo.posterior_sample(THETA, x, y, c, rng) for _ in range(4000)])
    sd = np.sqrt(np.diag(cov))
    assert (np.abs(samples.mean(0) - mean) < 5 * sd / np.sqrt(4000)).all()
    # The standard error of a sample covariance is at most sqrt(2 / n) of the product of the deviations
    assert (np.abs(np.cov(samples.T) - cov) < 5 * np.sqrt(2 / 4000) * np.outer(sd, sd)).all()


def test_candidates_that_coincide_with_data_can_be_sampled():
    x, y = data()
    theta = np.array([0.0, 0.0, np.log(1e-8), *np.log([4.0] * 4)])
    sample = turbo.posterior_sample(theta, x, y, np.vstack([x, x + 1e-9]), np.random.default_rng(0))
    assert np.isfinite(sample).all()


def test_a_run_begins_at_the_centre_stays_in_the_box_and_beats_sobol():
    objective = run(bowl, 10, 60)
    points = np.array(objective.points)
    assert (points[0] == 0).all()
    assert points.shape == (60, 10)
    assert (np.abs(points) <= 1).all()
    assert min(objective.values) < 0.5 * min(run(bowl, 10, 60, family=sobol).values)


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    first, again, other = (run(bowl, 10, 26, seed).values for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    "function",
    [lambda x: 3.0, lambda x: 1e300 * bowl(x), lambda x: float(bowl(x) > 3), lambda x: 1e-300 * bowl(x)],
    ids=["constant", "huge", "two values", "tiny"],
)
def test_odd_values_do_not_end_the_run(function):
    assert len(run(function, 10, 26).values) == 26


@pytest.mark.parametrize("budget", [1, 2, 3, 5])
def test_the_smallest_budgets_are_spent(budget):
    assert len(run(lambda x: float(x @ x), 3, budget).values) == budget
