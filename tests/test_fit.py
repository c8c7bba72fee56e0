"""The evidence against naive densities, its gradient against differences, the fit against processes drawn from it."""

import dataclasses
import itertools
import math

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cylbo.config import DEFAULT
from cylbo.fit import WORST, Beliefs, Evidence, fit
from cylbo.gp import GP, Data
from cylbo.kernel import Matern

BELIEFS = Beliefs()
NO_NUGGET = Beliefs(log_nugget_range=(-60.0, 0.0))


def matern(distance, lengthscale):
    s = math.sqrt(5.0) * distance / lengthscale
    return (1.0 + s + s * s / 3.0) * math.exp(-s)


def naive_correlation(x, lengthscale, nugget):
    return np.array(
        [[matern(math.dist(p, q), lengthscale) + (nugget if i == j else 0.0) for j, q in enumerate(x)]
         for i, p in enumerate(x)]
    )  # fmt: skip


def naive_unit(y):
    return np.median([v - min(y) for v in y if v > min(y)])


def naive_log_posterior(x, y, theta, beliefs=BELIEFS):
    """Of theta: log density of y in its own unit, mean and amplitude the best a search finds, and log prior."""
    lengthscale, nugget, strength = np.exp(theta)
    low, unit = min(y), naive_unit(y)

    def t(v):
        return mpmath.log(1 + strength * (v - low) / unit) / strength

    values = np.array([float(t(v)) for v in y])
    log_jacobian = sum(float(mpmath.log(mpmath.diff(t, v))) for v in y)
    R = naive_correlation(x, lengthscale, nugget)

    def minus_log_density(m_and_log_amplitude):
        m, log_amplitude = m_and_log_amplitude
        return -scipy.stats.multivariate_normal.logpdf(values, np.full(len(y), m), math.exp(log_amplitude) * R)

    start = [values.mean(), 2.0 * math.log(values.std())]
    options = {"xatol": 1e-8, "fatol": 1e-11, "maxiter": 4000, "maxfev": 4000}
    result = scipy.optimize.minimize(minus_log_density, start, method="Nelder-Mead", options=options)
    assert result.success
    in_sqrt_d = theta - [0.5 * math.log(x.shape[1]), 0.0, 0.0]
    priors = [beliefs.log_lengthscale, beliefs.log_nugget, beliefs.log_compression]
    log_prior = sum(scipy.stats.norm.logpdf(v, *prior) for v, prior in zip(in_sqrt_d, priors, strict=True))
    return -result.fun + log_jacobian + log_prior


def exact_cost(x, y, theta):
    """What the evidence should be at theta (mpf), in the precision of mpmath's context."""
    lengthscale, nugget, strength = (mpmath.exp(v) for v in theta)
    n, d = x.shape
    values = [mpmath.mpf(v) for v in y.tolist()]
    above = sorted(v - min(values) for v in values if v > min(values))
    unit = (above[len(above) // 2] + above[(len(above) - 1) // 2]) / 2
    stretched = [strength * (v - min(values)) / unit for v in values]

    def correlation(p, q):
        s = mpmath.sqrt(5 * sum((mpmath.mpf(a) - mpmath.mpf(b)) ** 2 for a, b in zip(p, q, strict=True))) / lengthscale
        return (1 + s + s * s / 3) * mpmath.exp(-s)

    R = mpmath.matrix([[correlation(p, q) for q in x.tolist()] for p in x.tolist()]) + nugget * mpmath.eye(n)
    ones, t = mpmath.ones(n, 1), mpmath.matrix([mpmath.log(1 + v) / strength for v in stretched])
    u, v = mpmath.lu_solve(R, ones), mpmath.lu_solve(R, t)
    m = (ones.T * v)[0] / (ones.T * u)[0]
    amplitude = ((t - m * ones).T * (v - m * u))[0] / n
    cost = n * mpmath.log(amplitude) / 2 + mpmath.log(mpmath.det(R)) / 2 + sum(mpmath.log(1 + v) for v in stretched)
    priors = [BELIEFS.log_lengthscale, BELIEFS.log_nugget, BELIEFS.log_compression]
    in_sqrt_d = [theta[0] - mpmath.log(d) / 2, *theta[1:]]
    return cost + sum(((v - mean) / sd) ** 2 for v, (mean, sd) in zip(in_sqrt_d, priors, strict=True)) / 2


def exact(x, y, theta):
    """Value and gradient of the evidence, with 50 digits."""
    with mpmath.workdps(50):
        center, step = [mpmath.mpf(v) for v in theta.tolist()], mpmath.mpf("1e-12")

        def shifted(i, k):
            return exact_cost(x, y, [v + k * step * (i == j) for j, v in enumerate(center)])

        slopes = [float((shifted(i, 1) - shifted(i, -1)) / (2 * step)) for i in range(3)]
        return float(exact_cost(x, y, center)), np.array(slopes)


def central_differences(evidence, theta, step=1e-4):
    """Of fourth order: rounding, not the step, is what limits them."""
    costs = np.array([[evidence(theta + k * e)[0] for k in (-2, -1, 1, 2)] for e in step * np.eye(3)])
    return costs @ [1.0, -8.0, 8.0, -1.0] / (12.0 * step)


def problem(seed, n, d):
    """Points of the box, skewed values, a moderate theta."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, d))
    y = 3.0 + np.exp(rng.standard_normal(n)) * 10.0 ** rng.uniform(-3.0, 3.0)
    theta = rng.uniform([-2.0 + 0.5 * math.log(d), -12.0, -4.0], [2.0 + 0.5 * math.log(d), 0.0, 3.0])
    return x, y, theta


def drawn(seed, *, n=150, d=2, lengthscale=0.5, noise=0.0):
    """Points and a sample of the process with amplitude 1 there, observed with noise of that variance."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, d))
    factor = np.linalg.cholesky(naive_correlation(x, lengthscale, 1e-12))
    return x, factor @ rng.standard_normal(n) + math.sqrt(noise) * rng.standard_normal(n)


def starts(evidence):
    """One that trusts the values, one that sees noise."""
    mean = evidence.prior_mean
    return [np.array([mean[0], log_nugget, mean[2]]) for log_nugget in (-16.0, -3.0)]


def fitted_to(x, y, beliefs=BELIEFS):
    evidence = Evidence(x, y, beliefs)
    return fit(evidence, starts(evidence), 60)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_evidence_is_the_log_density_of_the_values_up_to_a_constant(seed, d):
    # catches: a forgotten Jacobian or prior, a wrong factor of n, a lengthscale not measured in sqrt(d)
    x, y, _ = problem(seed, 12, d)
    thetas = [problem(100 * seed + i, 12, d)[2] for i in range(4)]
    evidence = Evidence(x, y, BELIEFS)
    found = np.array([-evidence(theta)[0] for theta in thetas])
    expected = np.array([naive_log_posterior(x, y, theta) for theta in thetas])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-6, atol=1e-6)


def test_other_beliefs_are_heard():
    x, y, theta = problem(7, 10, 3)
    beliefs = Beliefs(log_lengthscale=(1.0, 0.3), log_nugget=(-3.0, 0.5), log_compression=(2.0, 0.7))
    evidence = Evidence(x, y, beliefs)
    thetas = [theta, theta + np.array([0.5, 0.4, -0.6])]
    expected = np.diff([naive_log_posterior(x, y, theta, beliefs) for theta in thetas])
    assert -np.diff([evidence(theta)[0] for theta in thetas]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("d", [1, 5, 50])
@given(seed=st.integers(0, 10**6), n=st.integers(2, 14))
@settings(max_examples=40)
def test_gradient_matches_central_differences(d, seed, n):
    x, y, theta = problem(seed, n, d)
    evidence = Evidence(x, y, BELIEFS)
    _, gradient = evidence(theta)
    np.testing.assert_allclose(gradient, central_differences(evidence, theta), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("d", [1, 5, 50])
@pytest.mark.parametrize("log_nugget", [-20.7, -14.0, -3.0])
def test_value_and_gradient_are_right_where_two_points_are_equal(d, log_nugget):
    x, y, theta = problem(d, 8, d)
    x[3] = x[6]  # with different values: noise to be explained
    theta[:2] = 0.5 * math.log(d), log_nugget
    value, gradient = Evidence(x, y, BELIEFS)(theta)
    exact_value, exact_gradient = exact(x, y, theta)
    assert value == pytest.approx(exact_value, rel=1e-5)
    np.testing.assert_allclose(gradient, exact_gradient, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("d", [1, 5, 50])
def test_value_and_gradient_are_right_in_every_corner_of_the_ranges(d):
    # with the least nugget and the longest lengthscale R has a condition of 1e10: differences would drown in rounding
    x, y, _ = problem(d, 6, d)
    evidence = Evidence(x, y, BELIEFS)
    for corner in itertools.product(*zip(evidence.lower, evidence.upper, strict=True)):
        value, gradient = evidence(np.array(corner))
        exact_value, exact_gradient = exact(x, y, np.array(corner))
        assert value == pytest.approx(exact_value, rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(gradient, exact_gradient, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("scale", "offset"), [(1e-3, 0.0), (1e3, -7e5), (1e150, 0.0), (4.0, 1e3)])
def test_evidence_does_not_depend_on_unit_and_origin_of_the_values(scale, offset):
    x, y, theta = problem(3, 12, 3)
    y = np.round(y, 3)
    value, gradient = Evidence(x, y, BELIEFS)(theta)
    other_value, other_gradient = Evidence(x, scale * y + offset, BELIEFS)(theta)
    assert other_value == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(other_gradient, gradient, rtol=1e-6, atol=1e-6)


def test_evidence_does_not_depend_on_the_order_of_the_data_nor_on_rotations():
    x, y, theta = problem(4, 12, 3)
    rng = np.random.default_rng(0)
    order = rng.permutation(12)
    rotation = scipy.stats.ortho_group.rvs(3, random_state=rng)
    value, _ = Evidence(x, y, BELIEFS)(theta)
    assert Evidence(x[order] @ rotation, y[order], BELIEFS)(theta)[0] == pytest.approx(value, rel=1e-9)


def test_a_matrix_without_factor_is_the_worst_and_no_exception():
    x, y, theta = problem(0, 6, 1)
    x[1] = x[0]  # two equal rows first: the second pivot is exactly 0
    theta[1] = -60.0
    value, gradient = Evidence(x, y, NO_NUGGET)(theta)
    assert value == WORST
    assert gradient.tolist() == [0.0, 0.0, 0.0]


def test_any_evidence_is_better_than_the_worst():
    x, y, _ = problem(1, 14, 1)
    y[0] = 1e9
    evidence = Evidence(x, y, BELIEFS)
    corners = itertools.product(*zip(evidence.lower, evidence.upper, strict=True))
    costs = [evidence(np.array(corner))[0] for corner in corners]
    assert max(costs) < 1e-9 * WORST


def test_a_fit_that_never_finds_a_factor_still_gives_finite_hyperparameters():
    x, y, _ = problem(0, 6, 1)
    x[1] = x[0]
    found = fit(Evidence(x, y, NO_NUGGET), [np.array([0.0, -60.0, -1.0])], 30)
    assert_usable(found)


def test_a_fit_leaves_a_start_without_factor_for_one_with():
    x, y, _ = problem(0, 6, 1)
    x[1] = x[0]
    evidence = Evidence(x, y, NO_NUGGET)
    found = fit(evidence, [np.array([0.0, -60.0, -1.0]), np.array([0.0, -3.0, -1.0])], 30)
    assert evidence(found.theta)[0] < WORST


def assert_usable(found):
    h = found.h
    assert len(h) == 1
    assert np.isfinite([h.amplitude, h.noise_ratio, h.lengthscale, h.mean]).all()
    assert np.isfinite([*found.theta, *found.t, found.best]).all()
    assert min(h.amplitude[0], h.noise_ratio[0], h.lengthscale[0]) > 0.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lengthscale", [0.3, 1.0])
def test_fit_recovers_the_lengthscale(seed, lengthscale):
    found = fitted_to(*drawn(seed, lengthscale=lengthscale))
    assert lengthscale / 2.0 < found.h.lengthscale[0] < 2.0 * lengthscale
    assert found.h.lengthscale[0] == pytest.approx(math.exp(found.theta[0]), rel=1e-14)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_fit_finds_the_noise_that_is_there(seed, noise):
    x, y = drawn(seed, noise=noise)
    # hardly any compression, so that the noise stays what it was
    found = fitted_to(x, y, Beliefs(log_compression_range=(-5.0, -4.9)))
    variance = found.h.noise_ratio[0] * found.h.amplitude[0] * naive_unit(y) ** 2  # in the unit of y
    assert noise / 3.0 < variance < 3.0 * noise
    assert noise / 3.0 < found.h.noise_ratio[0] < 3.0 * noise


@pytest.mark.parametrize("seed", range(3))
def test_fit_finds_almost_no_noise_where_there_is_none(seed):
    assert fitted_to(*drawn(seed)).h.noise_ratio[0] < 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_fit_compresses_a_heavy_tail_and_leaves_a_process_alone(seed):
    x, y = drawn(seed)
    plain, tailed = fitted_to(x, y), fitted_to(x, np.exp(4.0 * y))
    assert tailed.theta[2] > plain.theta[2] + 1.5
    assert math.exp(plain.theta[2]) < 1.0


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_all_ends_is_returned(seed):
    x, y, _ = problem(seed, 25, 2)
    evidence = Evidence(x, y, BELIEFS)
    rng = np.random.default_rng(seed)
    several = [rng.uniform(evidence.lower, evidence.upper) for _ in range(4)]
    alone = [evidence(fit(evidence, [start], 5).theta)[0] for start in several]
    for order in itertools.permutations(several):
        assert evidence(fit(evidence, order, 5).theta)[0] == pytest.approx(min(alone), rel=1e-12)
    assert all(end <= evidence(start)[0] for end, start in zip(alone, several, strict=True))
    assert max(alone) > min(alone) + 1e-3  # else there was nothing to choose


@pytest.mark.parametrize("step", [-100.0, 100.0])
def test_starts_outside_the_ranges_are_brought_in_and_stay_in(step):
    x, y, _ = problem(2, 12, 3)
    evidence = Evidence(x, y, BELIEFS)
    start = evidence.prior_mean + step
    before = start.copy()
    found = fit(evidence, [start], 30)
    assert (found.theta >= evidence.lower).all()
    assert (found.theta <= evidence.upper).all()
    assert np.array_equal(start, before)


def test_more_steps_cost_more_evaluations_up_to_the_budget():
    x, y, _ = problem(5, 30, 3)
    counts = []
    for steps in (2, 30):
        evidence = Evidence(x, y, BELIEFS)
        fit(evidence, [evidence.upper - 0.5], steps)
        counts.append(evidence.evaluations)
    assert counts[0] < counts[1]
    assert counts[0] <= 2 * 2 + 21  # L-BFGS-B finishes its last line search, of 20 evaluations at most


@pytest.mark.parametrize("values", [[2.0, 2.0, 2.0, 2.0], [1e308] * 5, [0.0, -0.0], [-3.0]])
def test_equal_values_give_finite_hyperparameters(values):
    rng = np.random.default_rng(0)
    evidence = Evidence(rng.uniform(-1.0, 1.0, (len(values), 3)), np.array(values), BELIEFS)
    found = fit(evidence, starts(evidence), 30)
    assert_usable(found)
    assert not found.t.any()
    assert np.array_equal(found.theta, evidence.prior_mean)  # nothing was learned
    value, gradient = evidence(evidence.prior_mean)
    assert np.isfinite([value, *gradient]).all()


@pytest.mark.parametrize("values", [[1.0, 0.0], [-1e308, 1e308], [0.0, 5e-300], [1.0, np.nextafter(1.0, 2.0)]])
@pytest.mark.parametrize("d", [1, 50])
def test_two_values_are_enough(values, d):
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (2, d))
    found = fitted_to(x, np.array(values))
    assert_usable(found)
    assert found.t.argmin() == np.argmin(values)


def test_two_different_values_at_the_same_point_are_noise():
    x = np.repeat(np.random.default_rng(0).uniform(-1.0, 1.0, (10, 2)), 2, 0)
    y = np.random.default_rng(1).standard_normal(20)
    found = fitted_to(x, y)
    assert_usable(found)
    assert found.h.noise_ratio[0] > 0.1


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("d", [1, 3])
def test_best_is_the_lowest_posterior_mean_at_the_data(noise, d):
    x, y = drawn(11, n=20, d=d, noise=noise)
    found = fitted_to(x, y)
    lengthscale, nugget, strength = np.exp(found.theta)
    gap = (y - y.min()) / naive_unit(y)
    t = np.log(1.0 + strength * gap) / strength
    K, R = (naive_correlation(x, lengthscale, eta) for eta in (0.0, nugget))
    ones = np.linalg.solve(R, np.ones(len(y)))
    m = ones @ t / ones.sum()
    posterior_mean = m + K @ np.linalg.solve(R, t - m)
    np.testing.assert_allclose(found.t, t, rtol=1e-12)
    assert found.best == pytest.approx(posterior_mean.min(), abs=1e-7)
    assert found.h.mean[0] == pytest.approx(m, rel=1e-6)
    assert found.h.amplitude[0] == pytest.approx((t - m) @ np.linalg.solve(R, t - m) / len(y), rel=1e-5)
    assert found.h.noise_ratio[0] == pytest.approx(nugget, rel=1e-12)
    if noise:
        assert found.best > t.min() + 1e-3  # catches: the lowest value, which is luck


def gp_of(x, found):
    kernel = Matern(math.sqrt(x.shape[1]))
    return GP(Data.of(x, found.t, kernel), kernel, found.h, stabilizer=DEFAULT.stabilizer, jitters=DEFAULT.jitters)


@pytest.mark.parametrize("d", [1, 2, 50])
def test_without_noise_the_process_goes_through_the_compressed_values(d):
    x, y = drawn(5, n=30, d=d, lengthscale=0.5 * math.sqrt(d))
    x[4] = 0.0  # the centre is a point like any other
    found = fitted_to(x, np.exp(y), dataclasses.replace(BELIEFS, log_nugget=(-20.0, 0.1)))
    mean = gp_of(x, found).posterior(x).mean[0]
    np.testing.assert_allclose(mean, found.t, atol=1e-6)


def test_with_noise_the_best_is_what_the_process_says():
    x, y = drawn(6, n=40, noise=0.1)
    found = fitted_to(x, y)
    assert found.best == pytest.approx(gp_of(x, found).posterior(x).mean.min(), abs=1e-8)


def test_the_fit_is_no_worse_with_a_point_far_worse_than_all_others():
    # catches: a unit taken from the range, or from the standard deviation
    x, y = drawn(8, n=60)
    y[y.argmax()] = 1e12
    found = fitted_to(x, y)
    assert_usable(found)
    rest = np.argsort(y)[:-1]
    assert scipy.stats.spearmanr(found.t, y).statistic == pytest.approx(1.0)
    assert found.t[rest].std() > 1e-2 * found.t.std()


def test_data_are_not_modified():
    x, y, theta = problem(9, 10, 3)
    copies = x.copy(), y.copy(), theta.copy()
    evidence = Evidence(x, y, BELIEFS)
    first = evidence(theta)
    fit(evidence, [theta], 30)
    second = evidence(theta)
    assert first[0] == second[0]
    assert np.array_equal(first[1], second[1])
    for now, before in zip((x, y, theta), copies, strict=True):
        assert np.array_equal(now, before)
