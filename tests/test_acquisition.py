import itertools
import math

import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from cylbo.model.centred import CenteredGP
from cylbo.model.gp import GP, Data, Posterior
from cylbo.model.kernel import Cylindrical, Matern
from cylbo.search.improvement import Acquired, expected_improvement, log_expected_improvement, log_h

# From far above to far below, dense about the switches at -1 and -50
Z = sorted(
    {
        *np.linspace(30.0, -10.0, 81).tolist(),
        *(
            switch + step
            for switch in (-1.0, -50.0)
            for step in (-1.0, -1e-3, -1e-9, -1e-14, 0.0, 1e-14, 1e-9, 1e-3, 1.0)
        ),
        *np.nextafter([-1.0, -1.0, -50.0, -50.0], [0.0, -2.0, 0.0, -99.0]).tolist(),
        *(-np.logspace(1.0, 6.0, 61)).tolist(),
    }
)


def exact(z):
    """log h(z) and its derivative Phi(z) / h(z), h = phi + z Phi, in 50 digits after all cancellation."""
    with mpmath.workdps(80):
        z = mpmath.mpf(z)
        density = mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)
        cumulative = mpmath.erfc(-z / mpmath.sqrt(2)) / 2
        h = density + z * cumulative
        return float(mpmath.log(h)), float(cumulative / h)


def no_queries(mean_bar, variance_bar):
    raise AssertionError("nobody asked for a derivative by the queries")


def posterior(mean, variance):
    return Posterior(np.array(mean), np.array(variance), no_queries)


def test_log_expected_improvement_is_exact_from_plus_thirty_to_minus_a_million():
    found, _ = log_h(np.array(Z))
    expected = [exact(z)[0] for z in Z]
    np.testing.assert_allclose(found, expected, rtol=2e-15, atol=1e-12)


def test_derivative_of_log_expected_improvement_is_exact_all_the_way():
    _, slope = log_h(np.array(Z))
    np.testing.assert_allclose(slope, [exact(v)[1] for v in Z], rtol=1e-10)


def test_log_expected_improvement_rises_over_the_whole_line():
    z = np.concatenate([-np.logspace(6, 0, 4000), np.linspace(-1, 30, 4000)])
    value, slope = log_h(z)
    assert (np.diff(value) >= 0).all()
    assert (slope > 0).all()


@given(mean=st.floats(-50, 50), sd=st.floats(1e-3, 1e3), best=st.floats(-50, 50))
def test_log_expected_improvement_in_units_of_the_values(mean, sd, best):
    found = log_expected_improvement(posterior([[mean]], [[sd**2]]), best).value.item()
    z = (best - mean) / math.sqrt(sd**2)
    assert found == pytest.approx(exact(z)[0] + math.log(sd), rel=1e-10, abs=1e-10)


@given(mean=st.floats(-5, 5), sd=st.floats(0.1, 10), best=st.floats(-5, 5))
def test_expected_improvement_is_the_closed_form_of_scipy(mean, sd, best):
    z = (best - mean) / sd
    expected = sd * scipy.stats.norm.pdf(z) + (best - mean) * scipy.stats.norm.cdf(z)
    assert expected_improvement(posterior([[mean]], [[sd**2]]), best).value.item() == pytest.approx(
        max(expected, 0.0), rel=1e-9, abs=1e-14
    )


def test_expected_improvement_is_the_expectation_of_the_improvement():
    """Minimisation: what counts is how far a draw lies below the best."""
    for mean, sd, best in ((0.3, 0.7, 0.0), (-2.0, 0.5, -1.0), (5.0, 3.0, 1.0)):
        y = np.linspace(min(best, mean) - 12 * sd, best, 20_001)
        expected = scipy.integrate.simpson((best - y) * scipy.stats.norm(mean, sd).pdf(y), x=y)
        found = posterior([[mean]], [[sd**2]])
        assert expected_improvement(found, best).value.item() == pytest.approx(expected, rel=1e-7)
        assert log_expected_improvement(found, best).value.item() == pytest.approx(math.log(expected), abs=1e-7)


def test_expected_improvement_is_never_negative():
    mean = np.linspace(0.0, 60.0, 5000)[None]
    acquired = expected_improvement(posterior(mean, np.ones_like(mean)), 0.0)
    assert (acquired.value >= 0.0).all()
    assert (acquired.mean_bar <= 0.0).all()
    assert (acquired.variance_bar >= 0.0).all()


def test_one_sums_and_the_other_averages_over_the_samples():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(4, 5)), rng.uniform(0.1, 2.0, (4, 5))
    each = [expected_improvement(posterior(mean[s : s + 1], variance[s : s + 1]), 0.2).value for s in range(4)]
    both = posterior(mean, variance)
    np.testing.assert_allclose(expected_improvement(both, 0.2).value, np.sum(each, 0), rtol=1e-12)
    np.testing.assert_allclose(log_expected_improvement(both, 0.2).value, np.log(np.mean(each, 0)), rtol=1e-9)


def test_a_hopeless_sample_does_not_spoil_the_average_of_the_others():
    found = log_expected_improvement(posterior([[0.0], [1e9]], [[1.0], [1e-6]]), 0.0)
    assert found.value.item() == pytest.approx(math.log(1 / math.sqrt(2 * math.pi) / 2), rel=1e-12)
    assert np.isfinite(found.mean_bar).all()
    assert np.isfinite(found.variance_bar).all()
    assert found.mean_bar[1].item() == found.variance_bar[1].item() == 0.0


@pytest.mark.parametrize("acquisition", [expected_improvement, log_expected_improvement])
@pytest.mark.parametrize("samples", [1, 3])
def test_derivatives_by_mean_and_variance_match_finite_differences(acquisition, samples):
    rng = np.random.default_rng(samples)
    mean, variance = rng.normal(size=(samples, 8)), rng.uniform(0.1, 2.0, (samples, 8))
    mean[:, 0] += 4.0  # a hopeless one
    mean[:, 1] -= 4.0  # and a sure one
    best, step = -0.2, 1e-4
    acquired = acquisition(posterior(mean, variance), best)
    assert isinstance(acquired, Acquired)
    assert acquired.value.shape == (8,)
    assert acquired.mean_bar.shape == acquired.variance_bar.shape == (samples, 8)

    def change(by_mean, by_variance):  # of the fourth order
        def value(t):
            return acquisition(posterior(mean + t * by_mean, variance + t * by_variance), best).value

        return (8 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12 * step)

    for s in range(samples):
        one = np.zeros((samples, 1))
        one[s] = 1.0
        np.testing.assert_allclose(acquired.mean_bar[s], change(one, 0.0), rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(acquired.variance_bar[s], change(0.0, one), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("z", [3.0, 0.0, -1.0, -2.0, -10.0, -49.0, -51.0, -1e3, -1e5])
def test_derivatives_of_log_expected_improvement_are_exact_far_into_the_tail(z):
    """d/dmean = -(log h)' / sd and d/dvariance = phi / h / (2 variance), the latter without a cancellation."""
    variance = 0.3
    sd = math.sqrt(variance)
    acquired = log_expected_improvement(posterior([[-z * sd]], [[variance]]), 0.0)
    with mpmath.workdps(80):
        t = mpmath.mpf(z * sd / sd)
        density = mpmath.exp(-t * t / 2) / mpmath.sqrt(2 * mpmath.pi)
        cumulative = mpmath.erfc(-t / mpmath.sqrt(2)) / 2
        h = density + t * cumulative
        by_mean, by_variance = float(-cumulative / h / sd), float(density / h / (2 * variance))
    assert acquired.mean_bar.item() == pytest.approx(by_mean, rel=1e-10)
    assert acquired.variance_bar.item() == pytest.approx(by_variance, rel=1e-10)


def test_expected_improvement_that_is_clamped_has_no_slope():
    mean = np.linspace(0.0, 60.0, 5000)[None]
    acquired = expected_improvement(posterior(mean, np.ones_like(mean)), 0.0)
    clamped = acquired.value == 0.0
    assert clamped.any()
    assert (acquired.mean_bar[:, clamped] == 0.0).all()
    assert (acquired.variance_bar[:, clamped] == 0.0).all()


def cylindrical(rng, d, *, boundary, warped, k):
    radius = math.sqrt(d)
    models = brute_force.random_models(rng, 3, radius, warped=warped)
    kernel = Cylindrical(radius)
    x = np.concatenate([np.zeros((k, d)), rng.uniform(-1.0, 1.0, (7, d))])
    y = rng.standard_normal(len(x))
    data = Data.of(x, y, kernel)
    h = brute_force.hyperparameters(models)
    return CenteredGP(data, kernel, h, stabilizer=1e-6, boundary=boundary), float(y.min()), x


def matern(rng, d):
    models = [brute_force.Matern(1.0, 1.5, 0.01, math.sqrt(d) * s, 0.1) for s in (0.3, 1.0)]
    kernel = Matern(math.sqrt(d))
    x, y = rng.uniform(-1.0, 1.0, (7, d)), rng.standard_normal(7)
    data = Data.of(x, y, kernel)
    return GP(data, kernel, brute_force.hyperparameters(models), stabilizer=1e-6), float(y.min()), x


def value_and_gradient(acquisition, gp, best, x):
    found = gp.posterior(x)
    acquired = acquisition(found, best)
    gradient = found.pullback(acquired.mean_bar, acquired.variance_bar)
    assert gradient.shape == x.shape
    return acquired.value, gradient


def check_gradient(acquisition, gp, best, x):
    """Against central differences of the fourth order, along every coordinate."""
    _, found = value_and_gradient(acquisition, gp, best, x)
    m, d = x.shape
    step = 1e-4
    shifts = step * np.eye(d)

    def value(points):
        return acquisition(gp.posterior(points.reshape(-1, d)), best).value

    near, far = (value(x[:, None] + j * shifts) - value(x[:, None] - j * shifts) for j in (1, 2))
    expected = ((8 * near - far) / (12 * step)).reshape(m, d)
    largest = np.abs(found).max(1, keepdims=True)
    assert (np.abs(found - expected) <= 2e-6 * largest + 1e-9).all()


@pytest.mark.parametrize("acquisition", [expected_improvement, log_expected_improvement])
@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("warped", [True, False])
@pytest.mark.parametrize(("d", "k"), [*itertools.product((1, 2, 7), (0, 1, 3)), (3, 1), (3, 2), (20, 1)])
def test_gradients_through_the_centred_gp_match_finite_differences(acquisition, boundary, warped, d, k):
    rng = np.random.default_rng(d + k)
    gp, best, _ = cylindrical(rng, d, boundary=boundary, warped=warped, k=k)
    queries = rng.standard_normal((6, d))
    queries *= (
        math.sqrt(d)
        * np.array([[0.1], [0.3], [0.5], [0.7], [0.9], [0.97]])
        / np.linalg.norm(queries, axis=1, keepdims=True)
    )
    check_gradient(acquisition, gp, best, queries)


@pytest.mark.parametrize("acquisition", [expected_improvement, log_expected_improvement])
@pytest.mark.parametrize("d", [1, 2, 7, 20])
def test_gradients_through_the_matern_gp_match_finite_differences(acquisition, d):
    rng = np.random.default_rng(10 + d)
    gp, best, _ = matern(rng, d)
    queries = np.concatenate([rng.uniform(-1.0, 1.0, (5, d)), np.zeros((1, d))])
    check_gradient(acquisition, gp, best, queries)


def test_gradient_is_a_number_at_the_data_the_centre_and_the_rim():
    rng = np.random.default_rng(3)
    corners = np.array([[1.0, 1.0], [-1.0, 1.0], [math.sqrt(2.0), 0.0], [0.0, -0.5], [1e-300, 0.0]])
    models = [cylindrical(rng, 2, boundary=b, warped=w, k=1) for b in (False, True) for w in (False, True)]
    for gp, best, x in [*models, matern(rng, 2)]:
        value, gradient = value_and_gradient(log_expected_improvement, gp, best, np.concatenate([x, corners]))
        assert np.isfinite(value).all()
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("acquisition", [expected_improvement, log_expected_improvement])
@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_queries_at_the_centre_have_no_slope_and_leave_that_of_the_others_alone(acquisition, boundary, k, d):
    rng = np.random.default_rng(30 + d + k)
    gp, best, _ = cylindrical(rng, d, boundary=boundary, warped=True, k=k)
    queries = rng.uniform(-1.0, 1.0, (5, d))
    value, alone = value_and_gradient(acquisition, gp, best, queries)
    mixed = np.insert(queries, [0, 2, 5], 0.0, axis=0)
    others = (mixed != 0).any(1)
    mixed_value, gradient = value_and_gradient(acquisition, gp, best, mixed)
    assert (gradient[~others] == 0.0).all()
    np.testing.assert_allclose(gradient[others], alone, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mixed_value[others], value, rtol=1e-9, atol=1e-12)
    assert (value_and_gradient(acquisition, gp, best, np.zeros((3, d)))[1] == 0.0).all()
