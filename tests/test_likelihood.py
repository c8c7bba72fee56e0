"""The log posterior density against averages of naive log likelihoods, through every path of its memory."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from cylbo.model.gp import Data
from cylbo.model.hyperparameters import Layout, Priors
from cylbo.model.kernel import Cylindrical, Matern
from cylbo.model.likelihood import LogPosterior


class Setting:
    """Data, their log posterior, and thetas of its support to try."""

    def __init__(self, seed, *, d=3, n=6, k=1, degree=3, warped=True, kind=Cylindrical, y_scale=1.0):
        self.rng = np.random.default_rng(seed)
        self.radius = math.sqrt(d)
        self.x = self.rng.uniform(-1.0, 1.0, (n, d))
        self.y = y_scale * (1.0 + self.rng.standard_normal(n))
        self.center_y = y_scale * self.rng.standard_normal(k)
        self.kernel = kind(self.radius)
        values = np.concatenate([self.center_y, self.y])
        self.layout = Layout(
            Priors(log_amplitude=(-20.0, 20.0), log_noise=(-22.0, 16.0)),
            self.radius,
            (values.min() - y_scale, values.max() + y_scale),
            angular_degree=degree if kind is Cylindrical else None,
            warped=warped,
        )
        x = np.concatenate([np.zeros((k, d)), self.x])
        self.data = Data.of(x, values, self.kernel)
        self.y_scale = y_scale

    def log_posterior(self):
        return LogPosterior(self.data, self.kernel, self.layout, stabilizer=1e-6)

    def theta(self):
        """A theta with logits of moderate size, amplitude and noise not far from the scale of the values."""
        theta = self.rng.uniform(self.layout.lower, self.layout.upper)
        log_scale = 2.0 * math.log(self.y_scale)
        theta[0] = log_scale + self.rng.uniform(-2.0, 2.0)
        theta[1] = theta[0] + self.rng.uniform(-10.0, 1.0)
        theta[list(self.layout.where(["log_lengthscale2"]))] = self.rng.uniform(-4.0, math.log(2 * self.radius))
        theta[list(self.layout.where(["contrast", "log_c0"]))] = 0.0
        for i in self.layout.where(["contrast", "log_c0"]):
            theta[i] = self.rng.uniform(-2.0, 2.0)
        return theta

    def truth(self, theta):
        model = brute_force.model_of(theta, self.layout.names, self.radius)
        if isinstance(self.kernel, Matern):
            likelihood = model.log_likelihood([(None, p) for p in self.data.x], [*self.data.y, *self.data.center_y])
        else:
            likelihood = brute_force.averaged_log_likelihood(model, self.x, self.y, self.center_y)
        return likelihood + self.layout.log_prior(theta)


def assert_close(found, expected):
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("k", [0, 1, 2, 5])
@pytest.mark.parametrize("degree", [1, 3, 9])
@pytest.mark.parametrize("warped", [True, False])
def test_likelihood_is_the_average_over_training_directions_of_naive_ones(k, degree, warped):
    for d in (1, 2, 20):
        setting = Setting(degree, d=d, k=k, degree=degree, warped=warped)
        log_posterior = setting.log_posterior()
        for _ in range(4):
            theta = setting.theta()
            assert_close(log_posterior(theta), setting.truth(theta))


@pytest.mark.parametrize("d", [1, 500])
@pytest.mark.parametrize("y_scale", [1e-3, 1.0, 1e3])
def test_likelihood_in_many_dimensions_and_units(d, y_scale):
    setting = Setting(3, d=d, n=4, k=2, y_scale=y_scale)
    for _ in range(4):
        theta = setting.theta()
        assert_close(setting.log_posterior()(theta), setting.truth(theta))


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("k", [1, 3])
def test_one_or_two_data_are_enough(n, k):
    setting = Setting(4, n=n, k=k)
    theta = setting.theta()
    assert_close(setting.log_posterior()(theta), setting.truth(theta))


@pytest.mark.parametrize("k", [1, 2, 4])
def test_data_at_the_centre_alone_have_the_likelihood_of_replicates(k):
    """No training direction to average over, and none needed: the direction of the centre drops out."""
    setting = Setting(5, n=0, k=k)
    theta = setting.theta()
    model = brute_force.model_of(theta, setting.layout.names, setting.radius)
    likelihood = model.log_likelihood([(0.0, (1.0, 0.0, 0.0))] * k, setting.center_y)
    assert_close(setting.log_posterior()(theta), likelihood + setting.layout.log_prior(theta))


def test_matern_likelihood_is_that_of_scipy_with_the_centre_as_a_point_like_any_other():
    setting = Setting(6, kind=Matern, warped=False, k=1)
    log_posterior = setting.log_posterior()
    assert len(setting.data.x) == 7
    theta = setting.theta()
    for i in [*range(len(theta)), 3, 0, 2, 1]:
        theta = theta.copy()
        theta[i] = setting.theta()[i]
        assert_close(log_posterior(theta), setting.truth(theta))


@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("warped", [True, False])
def test_no_order_of_moves_leaves_anything_stale_in_the_memory(k, warped):
    """Single coordinates as the sampler moves them, several at once, returns to earlier thetas."""
    setting = Setting(7, k=k, warped=warped)
    log_posterior = setting.log_posterior()
    theta = setting.theta()
    visited = [theta]
    p = len(theta)
    moves = [*range(p), *range(p)[::-1], *setting.rng.integers(0, p, 60)]
    for step, i in enumerate(moves):
        theta = theta.copy()
        if step % 7 == 3:
            theta = visited[setting.rng.integers(len(visited))].copy()
        theta[i] = setting.theta()[i]
        if step % 5 == 4:
            theta[setting.rng.integers(p)] = setting.theta()[i] if i == 0 else theta[i]
            theta = np.clip(theta, setting.layout.lower, setting.layout.upper)
        expected = setting.truth(theta)
        if step % 3 == 0:  # leaves the memory half filled
            assert log_posterior(theta, expected + 50.0) < expected + 50.0
        if expected == -math.inf:
            assert log_posterior(theta) == -math.inf
        else:
            assert_close(log_posterior(theta), expected)
        visited.append(theta)


@pytest.mark.parametrize("name", ["mean", "log_c0"])
def test_moving_the_mean_or_all_logits_needs_no_factorisation(name):
    setting = Setting(8)
    log_posterior = setting.log_posterior()
    theta = setting.theta()
    (i,) = setting.layout.where([name])
    log_posterior(theta)
    assert log_posterior.factorisations == 1
    for _ in range(5):
        theta = theta.copy()
        theta[i] = setting.theta()[i]
        assert_close(log_posterior(theta), setting.truth(theta))
    assert log_posterior.factorisations == 1


@settings(max_examples=25)
@given(shift=st.floats(-3.0, 3.0))
def test_shifting_all_logits_changes_the_prior_and_not_the_likelihood(shift):
    setting = Setting(9)
    log_posterior = setting.log_posterior()
    theta = setting.theta()
    moved = theta.copy()
    moved[setting.layout.where(["log_c0"])[0]] += shift
    likelihoods = [log_posterior(t) - setting.layout.log_prior(t) for t in (theta, moved)]
    assert likelihoods[0] == pytest.approx(likelihoods[1], abs=1e-10)


@pytest.mark.parametrize("k", [0, 1, 3])
def test_likelihood_is_quadratic_in_the_mean(k):
    setting = Setting(10, k=k)
    theta = setting.theta()
    values = []
    for mean in (-0.5, 0.0, 0.5, 1.0):
        theta = theta.copy()
        theta[-1] = mean
        values.append(setting.log_posterior()(theta))
    assert np.diff(values, 3)[0] == pytest.approx(0.0, abs=1e-8 * np.abs(values).max())
    assert np.diff(values, 2)[0] < 0.0


@pytest.mark.parametrize("k", [0, 1, 3])
def test_along_amplitude_and_noise_together_the_likelihood_has_two_coefficients(k):
    """L(s) = L(0) + Q (1 - e^-s) / 2 - (n + k) s / 2, the stabiliser scaling along."""
    setting = Setting(11, k=k)
    theta = setting.theta()
    likelihood = []
    for s in (0.0, 0.5, 1.5):
        moved = theta.copy()
        moved[:2] += s
        likelihood.append(setting.log_posterior()(moved) - setting.layout.log_prior(moved))
    half_q = [(likelihood[j] - likelihood[0] + (6 + k) * s / 2) / -math.expm1(-s) for j, s in ((1, 0.5), (2, 1.5))]
    assert half_q[0] == pytest.approx(half_q[1], rel=1e-8)
    assert half_q[0] > 0.0


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("k", range(4))
def test_above_the_floor_the_value_is_exact_and_below_it_stays_below(n, k):
    for seed in range(8):
        setting = Setting(seed, d=1 + seed % 3, n=n, k=k)
        theta = setting.theta()
        if seed % 2:  # in the spike and at equal weights, where the prior is above 1
            theta[2:4] = 0.0
            theta[list(setting.layout.where(["log_c0", "contrast"]))] = 0.0
        check_floors(setting, theta)


def check_floors(setting, theta):
    theta[1] = setting.rng.uniform(-12.0, 3.0)  # from hardly any nugget, where the bound is loose, to nothing else
    expected = setting.truth(theta)
    exact = setting.log_posterior()(theta)
    assert exact == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert setting.log_posterior()(theta, exact) == pytest.approx(exact, rel=1e-12, abs=1e-12)
    for gap in (1e-6, 0.01, 1.0, 30.0):
        assert setting.log_posterior()(theta, exact - gap) == pytest.approx(exact, rel=1e-12, abs=1e-12)
        assert setting.log_posterior()(theta, exact + gap) < exact + gap


def test_floor_does_spare_the_solve_towards_the_centre():
    """Otherwise the test above would say nothing about the bound."""
    setting = Setting(12, n=6, k=1)
    log_posterior = setting.log_posterior()
    theta = setting.theta()
    exact = setting.log_posterior()(theta)
    rejected = log_posterior(theta, exact + 1000.0)
    assert exact < rejected < exact + 1000.0  # an upper bound, not the value


@pytest.mark.parametrize("name", ["log_amplitude", "log_noise", "log_alpha", "log_beta", "log_lengthscale2", "mean"])
def test_density_is_zero_outside_of_the_support(name):
    setting = Setting(13)
    (i,) = setting.layout.where([name])
    for edge in (setting.layout.lower[i] - 1e-9, setting.layout.upper[i] + 1e-9):
        theta = setting.theta()
        theta[i] = edge
        assert setting.log_posterior()(theta) == -math.inf


def test_covariance_that_resists_every_jitter_has_density_zero_and_is_forgotten_after():
    setting = Setting(14)
    x = setting.x.copy()
    x[1] = x[0]
    data = Data(x, setting.y, setting.center_y)
    log_posterior = LogPosterior(data, setting.kernel, setting.layout, stabilizer=0.0, jitters=())
    theta = setting.theta()
    theta[0], theta[1] = 20.0, -22.0  # noise e^-42 of the amplitude: two equal points cannot be told apart
    assert log_posterior(theta) == -math.inf
    assert log_posterior(theta) == -math.inf
    theta = theta.copy()
    theta[1] = 18.0 - 2.0
    assert math.isfinite(log_posterior(theta))


def test_theta_is_not_modified():
    setting = Setting(15)
    theta = setting.theta()
    before = theta.copy()
    setting.log_posterior()(theta)
    assert np.array_equal(theta, before)


class Shifted(Setting):
    """The same data with a number added to every value, and so to every mean."""

    def __init__(self, seed, offset, **options):
        super().__init__(seed, **options)
        low, high = self.layout.y_range
        self.layout = Layout(
            self.layout.priors,
            self.radius,
            (low + offset, high + offset),
            angular_degree=self.layout.degree,
            warped=self.layout.warped,
        )
        self.data = Data(self.data.x, self.data.y + offset, self.data.center_y + offset)


@pytest.mark.parametrize("kind", [Cylindrical, Matern])
@pytest.mark.parametrize(("n", "k"), [(6, 0), (6, 1), (6, 3), (1, 0), (1, 2), (0, 1), (0, 3)])
@pytest.mark.parametrize("offset", [1e8, -1e8])
def test_a_number_added_to_values_and_mean_changes_nothing(kind, n, k, offset):
    """Values of 1e8 leave eight digits for what they differ by."""
    options = {"n": n, "k": k, "kind": kind, "warped": kind is Cylindrical}
    here, there = Setting(16, **options), Shifted(16, offset, **options)
    near, far = here.log_posterior(), there.log_posterior()
    for _ in range(10):
        theta = here.theta()
        theta[1] = theta[0] + here.rng.uniform(-5.0, 1.0)
        moved = theta.copy()
        moved[-1] += offset
        assert far(moved) == pytest.approx(near(theta), rel=1e-6)
        assert far(moved, far(moved) - 1.0) == pytest.approx(near(theta), rel=1e-6)
