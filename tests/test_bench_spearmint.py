"""Spearmint and Spearmint+ against SciPy, brute force, finite differences, and what they are known for."""

import math

import numpy as np
import pytest
from scipy import stats

from cylbo.bench.methods import sobol, spearmint
from cylbo.bench.methods.spearmint import Ensemble, LogPosterior, sample_hyperparameters
from cylbo.bench.objective import Objective
from cylbo.model.scaling import standardized

METHODS = {method.name: method for method in spearmint.METHODS}
both = pytest.mark.parametrize("warped", [False, True])


def random_theta(rng, d, warped):
    log_warp = rng.normal(0.0, 0.5, 2 * d if warped else 0)
    return np.concatenate([rng.normal(0.0, 0.3, 2), [rng.uniform(-6, -2)], rng.uniform(0.2, 2.0, d), log_warp])


def naive_kernel(a, b, theta):
    """Covariance of two points, spelled out coordinate by coordinate."""
    d = len(a)
    squared = 0.0
    for i in range(d):
        u, v = a[i], b[i]
        if len(theta) > 3 + d:
            alpha, beta = math.exp(theta[3 + d + i]), math.exp(theta[3 + 2 * d + i])
            u, v = 1 - (1 - u**alpha) ** beta, 1 - (1 - v**alpha) ** beta
        squared += ((u - v) / theta[3 + i]) ** 2
    r = math.sqrt(5 * squared)
    return math.exp(theta[1]) * (1 + r + r * r / 3) * math.exp(-r)


def naive_covariance(x1, x2, theta):
    return np.array([[naive_kernel(a, b, theta) for b in x2] for a in x1])


def naive_log_posterior(x, y, theta):
    d = x.shape[1]
    amplitude, noise = math.exp(theta[1]), math.exp(theta[2])
    K = naive_covariance(x, x, theta) + noise * np.eye(len(x))
    horseshoe = math.log(math.log(1 + 2 * (0.1 / noise) ** 2))
    warp = np.exp(theta[3 + d :])
    return (
        stats.multivariate_normal(np.full(len(x), theta[0]), K).logpdf(y)
        + stats.lognorm(1.0).logpdf(amplitude)
        + math.log(amplitude)  # densities of the logarithms: times the derivative of exp
        + horseshoe
        + math.log(noise)
        + (stats.lognorm(math.sqrt(0.75)).logpdf(warp) + np.log(warp)).sum()
    )


@both
def test_log_posterior_is_that_of_scipy_with_a_double_loop_covariance(warped):
    rng = np.random.default_rng(3)
    x, y = rng.random((9, 3)), rng.normal(size=9)
    x[0], x[1, 1] = 0.0, 1.0
    log_posterior = LogPosterior(x, y)
    differences = []
    for _ in range(6):
        theta = random_theta(rng, 3, warped)
        differences.append(log_posterior(theta) - naive_log_posterior(x, y, theta))
    assert differences == pytest.approx([differences[0]] * 6, abs=1e-9)  # constants of the priors are left out


@both
@pytest.mark.parametrize("d", [1, 4])
def test_log_posterior_keeps_no_memory_of_the_way_it_was_reached(warped, d):
    """As the sampler walks: one coordinate tried several times, then another; now and then a leap of all."""
    rng = np.random.default_rng(5)
    x, y = rng.random((12, d)), rng.normal(size=12)
    walked = LogPosterior(x, y)
    theta = random_theta(rng, d, warped)
    for step in range(200):
        i, other = rng.integers(len(theta)), random_theta(rng, d, warped)
        tried = theta.copy()
        tried[i] = other[i]
        assert walked(tried) == pytest.approx(LogPosterior(x, y)(tried), abs=1e-8)
        if rng.random() < 0.5:
            theta = tried
        if step % 50 == 49:
            theta = other


def test_log_posterior_is_minus_infinity_where_the_covariance_is_singular():
    x = np.full((3, 2), 0.5)
    theta = spearmint.initial_theta(2, warped=False)
    theta[2] = -40.0
    assert LogPosterior(x, np.array([0.0, 1.0, -1.0]))(theta) == -math.inf


@both
def test_improvement_is_the_average_over_samples_of_the_dense_formula(warped):
    rng = np.random.default_rng(7)
    x, y, queries = rng.random((8, 3)), rng.normal(size=8), rng.random((40, 3))
    thetas = np.array([random_theta(rng, 3, warped) for _ in range(4)])
    expected = []
    for theta in thetas:
        K = naive_covariance(x, x, theta) + math.exp(theta[2]) * np.eye(8)
        k = naive_covariance(queries, x, theta)
        mean = theta[0] + k @ np.linalg.solve(K, y - theta[0])
        sd = np.sqrt(math.exp(theta[1]) - np.einsum("ij,ij->i", k, np.linalg.solve(K, k.T).T))
        z = (-0.5 - mean) / sd
        expected.append(sd * (z * stats.norm.cdf(z) + stats.norm.pdf(z)))
    assert Ensemble(x, y, thetas).improvement(queries, -0.5) == pytest.approx(np.mean(expected, 0), rel=1e-7)


@both
def test_gradient_of_the_improvement_is_that_of_finite_differences(warped):
    rng = np.random.default_rng(11)
    x, y, queries = rng.random((10, 4)), rng.normal(size=10), rng.uniform(0.05, 0.95, (6, 4))
    ensemble = Ensemble(x, y, np.array([random_theta(rng, 4, warped) for _ in range(3)]))
    value, gradient = ensemble.improvement_slope(queries, 0.2)
    assert value == pytest.approx(ensemble.improvement(queries, 0.2), rel=1e-12)
    step = 1e-5
    for i, shift in enumerate(step * np.eye(4)):
        slope = (ensemble.improvement(queries + shift, 0.2) - ensemble.improvement(queries - shift, 0.2)) / (2 * step)
        assert gradient[:, i] == pytest.approx(slope, rel=1e-5, abs=1e-8)


def test_gradient_is_finite_on_the_faces_of_the_cube():
    """With exponents below 1 the slope of the warp itself is not."""
    rng = np.random.default_rng(13)
    theta = spearmint.initial_theta(2, warped=True)
    theta[5:] = -1.0
    ensemble = Ensemble(rng.random((5, 2)), rng.normal(size=5), theta[None])
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 1.0]])
    assert np.isfinite(ensemble.improvement_slope(corners, 0.0)[1]).all()


def test_a_relevant_coordinate_gets_a_shorter_lengthscale_than_an_irrelevant_one():
    rng = np.random.default_rng(17)
    x = rng.random((40, 2))
    y = standardized(np.sin(9.0 * x[:, 1]))
    thetas, _ = sample_hyperparameters(x, y, None, rng, warped=False, n_samples=60)
    irrelevant, relevant = thetas[:, 3:].mean(0)
    assert relevant < 0.6 < 1.0 < irrelevant


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_warp_is_learned_from_values_that_change_faster_on_one_side(mirrored):
    """sin(10 x^(1/3)): a warp that stretches the surroundings of 0 lies above the diagonal, mirrored below it."""
    rng = np.random.default_rng(19)

    def truth(x):
        return np.sin(10.0 * np.cbrt(1.0 - x if mirrored else x))

    x, held_out = rng.random((25, 1)), rng.random((200, 1))
    y = truth(x[:, 0])
    held_out_y = (truth(held_out[:, 0]) - y.mean()) / y.std(ddof=1)
    score = {}
    for warped in (False, True):
        thetas, _ = sample_hyperparameters(x, standardized(y), None, rng, warped=warped, n_samples=150)
        posterior = Ensemble(x, standardized(y), thetas).posterior(held_out)
        sd = np.sqrt(posterior.variance + np.exp(thetas[:, 2:3]))
        score[warped] = np.log(stats.norm(posterior.mean, sd).pdf(held_out_y).mean(0)).mean()
    alpha, beta = np.exp(thetas[:, 4, None]), np.exp(thetas[:, 5, None])
    u = np.linspace(0.1, 0.9, 9)
    warp = (1 - (1 - u**alpha) ** beta).mean(0)
    assert (warp < u - 0.05).all() if mirrored else (warp > u + 0.05).all()
    assert score[True] > score[False] + 0.3


@pytest.fixture
def small(monkeypatch):
    """Fewer candidates and climbs than the methods have, for tests of what does not depend on them."""
    monkeypatch.setattr(spearmint, "N_GRID", 1000)
    monkeypatch.setattr(spearmint, "N_REFINED", 3)
    monkeypatch.setattr(spearmint, "FIRST_SWEEPS", 10)


@both
def test_a_suggestion_improves_on_every_point_of_the_grid(warped):
    data = np.random.default_rng(29)
    x, y, grid = data.random((12, 3)), standardized(data.normal(size=12)), data.random((500, 3))
    thetas, _ = sample_hyperparameters(x, y, None, np.random.default_rng(0), warped=warped)
    found, _ = spearmint.suggest(x, y, None, grid, np.random.default_rng(0), warped=warped)
    improvement = Ensemble(x, y, thetas).improvement(np.concatenate([found[None], grid]), y.min())
    assert improvement[0] > improvement[1:].max()


def test_an_evaluated_point_is_never_suggested_however_good_it_looks(monkeypatch):
    data = np.random.default_rng(31)
    x, y, grid = data.random((4, 2)), standardized(data.normal(size=4)), data.random((50, 2))
    monkeypatch.setattr(Ensemble, "improvement", lambda _, queries, best: -np.abs(queries - x[0]).max(1))
    monkeypatch.setattr(spearmint, "_refined", lambda *_, scale: x.copy())
    monkeypatch.setattr(spearmint, "N_SPRAY", 0)
    found, _ = spearmint.suggest(x, y, None, np.concatenate([x, grid]), data, warped=False)
    assert np.array_equal(found, grid[np.abs(grid - x[0]).max(1).argmin()])


@pytest.mark.parametrize("name", METHODS)
def test_both_improve_on_sobol_where_the_optimum_is_off_the_centre(name, small):
    optimum = np.random.default_rng(23).uniform(-0.7, 0.7, 10)

    def quadratic(x):
        return float(((x - optimum) ** 2).sum())

    found, by_sobol = Objective(quadratic, 10, 40), Objective(quadratic, 10, 40)
    METHODS[name].spend(found, 1)
    sobol.METHODS[0].spend(by_sobol, 1)
    assert min(found.values) < 0.25 * min(by_sobol.values)


def test_the_grid_has_the_number_of_points_of_the_paper_and_fills_the_cube():
    grid = spearmint.sobol_grid(5, np.random.default_rng(0))
    assert grid.shape == (20_000, 5)
    assert grid.min() >= 0.0
    assert grid.max() <= 1.0
    assert grid.mean(0) == pytest.approx([0.5] * 5, abs=1e-3)
    assert np.cov(grid.T) == pytest.approx(np.eye(5) / 12, abs=1e-3)


def test_the_grid_is_the_same_in_every_round_and_another_for_another_seed(monkeypatch, small):
    seen = []
    original = spearmint.suggest

    def spy(x, y, chain, grid, rng, *, warped):
        seen.append(grid.copy())
        return original(x, y, chain, grid, rng, warped=warped)

    monkeypatch.setattr(spearmint, "suggest", spy)
    for seed in (0, 1):
        METHODS["spearmint"].spend(Objective(lambda x: float(x @ x), 3, 6), seed)
    assert len(seen) == 8
    assert all(np.array_equal(grid, seen[0]) for grid in seen[:4])
    assert all(np.array_equal(grid, seen[4]) for grid in seen[4:])
    assert not np.isin(seen[4], seen[0]).any()


@pytest.mark.parametrize("name", METHODS)
def test_a_run_begins_at_the_centre_stays_in_the_box_and_repeats_itself(name, small):
    runs = [Objective(lambda x: float(np.abs(x - 0.9).sum()), 2, 8) for _ in range(3)]
    for run, seed in zip(runs, (4, 4, 5), strict=True):
        METHODS[name].spend(run, seed)
    points = np.array([run.points for run in runs])
    assert (points[:, 0] == 0.0).all()
    assert np.abs(points).max() <= 1.0
    assert np.array_equal(points[0], points[1])
    assert (points[0, 1] != points[2, 1]).all()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: 3.0,
        lambda x: float(x[0] > 0.5),
        lambda x: 1e300 * float(x @ x),
        lambda x: -1e-300 * float(x[0]),
        lambda x: math.exp(200.0 * float(x[0])),
    ],
    ids=["constant", "step", "huge", "tiny", "steep"],
)
def test_odd_values_are_survived_and_no_point_is_asked_for_twice(name, function, small):
    objective = Objective(function, 2, 9)
    METHODS[name].spend(objective, 0)
    assert len(np.unique(objective.points, axis=0)) == 9


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_small_budgets_and_one_dimension_are_enough(budget, small):
    objective = Objective(lambda x: float(x[0]), 1, budget)
    METHODS["spearmint+"].spend(objective, 0)
    assert len(objective.values) == budget
