import math

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from brute_force import model_of
from cylbo.model.hyperparameters import Layout, Priors

LOG2 = math.log(2.0)
PRIORS = Priors()


def layout(degree=3, *, warped=True, radius=20.0**0.5, y_range=(-2.0, 5.0)):
    return Layout(PRIORS, radius, y_range, angular_degree=degree, warped=warped)


def random_theta(rng, place):
    """A theta well inside of the support."""
    theta = rng.uniform(place.lower, place.upper)
    if place.degree is not None:
        logits = rng.uniform(-5.0, 5.0, place.degree + 1)
        first = place.where(["log_c0"])[0]
        theta[first : first + place.degree + 1] = [logits[0], *(logits[1:] - logits[0])]
    return theta


def log_prior_by_scipy(theta, place):
    """Each density of section 3 of the description of the authors' code, without what is flat."""
    value = dict(zip(place.names, theta, strict=True))
    total = math.log(math.log1p(2.0 * (0.1 / math.exp(value["log_noise"])) ** 2))
    if "log_alpha" in value:
        for v in (value["log_alpha"], value["log_beta"]):
            spike = 0.5 * scipy.stats.halfnorm(scale=0.01).pdf(abs(v))
            slab = 0.5 * scipy.stats.uniform(0.0, LOG2).pdf(abs(v))
            total += math.log(spike + slab)
    if "log_c0" in value:
        contrasts = theta[list(place.where(["contrast"]))]
        logits = np.concatenate([[0.0], contrasts]) + value["log_c0"]
        total += scipy.stats.norm(0.0, 2.0).logpdf(logits).sum()
    return total


@pytest.mark.parametrize("degree", [None, *range(1, 10)])
@pytest.mark.parametrize("warped", [True, False])
def test_log_prior_is_that_of_scipy_up_to_a_constant(degree, warped):
    rng = np.random.default_rng(0)
    place = layout(degree, warped=warped)
    thetas = [random_theta(rng, place) for _ in range(30)]
    difference = [place.log_prior(t) - log_prior_by_scipy(t, place) for t in thetas]
    np.testing.assert_allclose(difference, difference[0], atol=1e-11)


def test_spike_and_slab_hold_half_of_the_mass_each():
    def density(v):
        return math.exp(PRIORS.log_warp_density(v))

    slab = 0.5 / LOG2
    total = scipy.integrate.quad(density, 0.0, LOG2, points=[0.01, 0.02, 0.05])[0]
    spike = scipy.integrate.quad(lambda v: density(v) - slab, 0.0, LOG2, points=[0.01, 0.02, 0.05])[0]
    assert total == pytest.approx(1.0, abs=1e-8)
    assert spike == pytest.approx(0.5, abs=1e-8)


def test_spike_and_slab_have_the_published_heights_and_cross_where_they_should():
    def density(v):
        return math.exp(PRIORS.log_warp_density(v))

    slab = density(LOG2)  # 69 standard deviations from the spike
    assert slab == pytest.approx(0.721, abs=5e-4)
    assert density(0.0) - slab == pytest.approx(39.9, abs=0.05)
    crossing = scipy.optimize.brentq(lambda v: density(v) - 2.0 * slab, 0.0, 0.1)
    assert crossing == pytest.approx(0.0283, abs=5e-5)


def test_logits_have_a_normal_density_of_standard_deviation_two():
    for v in (-12.0, -1.0, 0.0, 0.3, 20.0):
        assert PRIORS.log_logit_density(v) == pytest.approx(scipy.stats.norm(0, 2).logpdf(v), rel=1e-13)


@pytest.mark.parametrize("log_noise", [-22.0, -12.0, -2.3, 0.0, 5.0, 16.0])
def test_noise_has_the_horseshoe_shape_over_all_of_its_support(log_noise):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        variance = mpmath.exp(mpmath.mpf(log_noise))
        expected = float(mpmath.log(mpmath.log(1 + 2 * (mpmath.mpf("0.1") / variance) ** 2)))
    assert PRIORS.log_noise_density(log_noise) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("d", [1, 2, 20, 500])
def test_support_is_that_of_the_authors(d):
    place = layout(3, radius=math.sqrt(d))
    bounds = {n: (low, high) for n, low, high in zip(place.names, place.lower, place.upper, strict=True)}
    assert bounds["log_amplitude"] == (-12.0, 20.0)
    assert bounds["log_noise"] == (-12.0, 16.0)
    assert bounds["log_alpha"] == pytest.approx((-LOG2, 0.0))
    assert bounds["log_beta"] == pytest.approx((0.0, LOG2))
    assert bounds["log_lengthscale2"] == pytest.approx((-12.0, math.log(2.0 * math.sqrt(d))))
    assert bounds["log_c0"] == (-12.0, 20.0)
    assert bounds["mean"] == (-2.0, 5.0)
    largest = place.unpack(place.upper[None]).lengthscale[0]
    assert largest == pytest.approx(math.sqrt(2.0) * d**0.25)


def test_density_is_zero_just_outside_of_the_support_and_positive_on_its_edge():
    place = layout(3)
    inside = np.clip(place.initial(np.array([1.0, 2.0])), place.lower, place.upper)
    for i, name in enumerate(place.names):
        if name == "contrast":  # its interval alone is wider than what both logits leave it
            continue
        for edge, step in ((place.lower[i], -1e-9), (place.upper[i], 1e-9)):
            theta = inside.copy()
            theta[i] = edge
            assert math.isfinite(place.log_prior(theta)), name
            theta[i] = edge + step
            assert place.log_prior(theta) == -math.inf, name


@pytest.mark.parametrize("p", [1, 2, 3])
def test_every_logit_is_bounded_not_only_the_first(p):
    place = layout(3)
    first = place.where(["log_c0"])[0]
    theta = place.initial(np.array([1.0, 2.0]))
    theta[first] = 7.0
    for logit, allowed in ((20.0, True), (20.0 + 1e-9, False), (-12.0, True), (-12.0 - 1e-9, False)):
        theta[first + 1 :][:3] = 0.0
        theta[first + p] = logit - 7.0
        assert (place.log_prior(theta) > -math.inf) == allowed


@pytest.mark.parametrize("degree", [None, *range(1, 10)])
@pytest.mark.parametrize("warped", [True, False])
def test_vector_and_named_values_say_the_same(degree, warped):
    rng = np.random.default_rng(1)
    place = layout(degree, warped=warped)
    thetas = np.stack([random_theta(rng, place) for _ in range(4)])
    h = place.unpack(thetas)
    assert len(h) == 4
    assert len(place) == thetas.shape[1] == 4 + 2 * warped + (0 if degree is None else degree + 1)
    for s, theta in enumerate(thetas):
        expected = model_of(theta, place.names, place.ball_radius)
        assert h.amplitude[s] == pytest.approx(expected.amplitude, rel=1e-13)
        assert h.noise_ratio[s] * h.amplitude[s] == pytest.approx(expected.noise, rel=1e-12)
        assert h.lengthscale[s] == pytest.approx(expected.lengthscale, rel=1e-13)
        assert h.mean[s] == expected.mean
        if degree is None:
            assert h.weights is None
        else:
            np.testing.assert_allclose(h.weights[s], expected.weights, rtol=1e-12)
        if warped:
            assert (h.warp[0][s], h.warp[1][s]) == pytest.approx((math.exp(theta[2]), math.exp(theta[3])))
        else:
            assert h.warp is None


@given(shift=st.floats(-5.0, 5.0))
def test_shifting_all_logits_changes_no_weight(shift):
    place = layout(4)
    theta = random_theta(np.random.default_rng(2), place)
    moved = theta.copy()
    moved[place.where(["log_c0"])[0]] += shift
    np.testing.assert_array_equal(place.unpack(moved[None]).weights, place.unpack(theta[None]).weights)


def test_extreme_contrasts_do_not_overflow():
    place = layout(9)
    h = place.unpack(np.stack([place.lower, place.upper]))
    np.testing.assert_allclose(h.weights.sum(-1), 1.0, rtol=1e-14)
    assert (h.weights >= 0.0).all()


def test_positions_are_found_by_name():
    place = layout(3)
    assert place.names[place.where(["mean"])[0]] == "mean"
    assert [place.names[i] for i in place.where(["contrast", "log_c0"])] == ["log_c0"] + ["contrast"] * 3
    assert layout(None).where(["contrast"]) == ()


def test_initial_values_are_those_of_the_authors():
    """log A is the log of the standard deviation, not of the variance: their code, to the letter."""
    y = np.array([3.0, 7.0])
    s = math.sqrt(8.0)  # unbiased
    place = layout(3, radius=math.sqrt(20.0), y_range=(3.0, 7.0))
    value = dict(zip(place.names, place.initial(y), strict=True))
    assert value["log_amplitude"] == pytest.approx(math.log(s))
    assert value["log_noise"] == pytest.approx(math.log(s / 1000.0))
    assert value["log_lengthscale2"] == pytest.approx(0.5 * math.log(20.0))
    assert value["log_alpha"] == value["log_beta"] == value["log_c0"] == value["contrast"] == 0.0
    assert value["mean"] == 5.0
    h = place.unpack(place.initial(y)[None])
    assert h.lengthscale[0] == pytest.approx(20.0**0.25)
    np.testing.assert_allclose(h.weights, 0.25)


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [1e-30, 3e-30], [0.0, 1e12], [-1e30, 1e30, 0.0]])
def test_initial_values_have_positive_density_whatever_the_values(values):
    y = np.array(values)
    place = layout(3, y_range=(min(values), max(values)))
    assert math.isfinite(place.log_prior(place.initial(y)))


def test_repaired_theta_is_the_nearest_of_the_new_support():
    place = layout(3, y_range=(0.0, 1.0))
    theta = random_theta(np.random.default_rng(3), place)
    assert np.array_equal(place.repaired(theta), theta)
    theta[-1] = 1.5
    repaired = place.repaired(theta)
    assert repaired[-1] == 1.0
    assert np.array_equal(repaired[:-1], theta[:-1])
    assert theta[-1] == 1.5
