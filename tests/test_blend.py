"""The blended kernel against cosines, integrals and double loops; its process against the textbook formulas."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.integrate
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from brute_force import check_pullback
from cylbo.errors import NotPositiveDefiniteError
from cylbo.model import blended as blend
from cylbo.model.blended import Blend, BlendedGP, cosine_slopes, cosines, grams, most_cosines
from cylbo.model.gp import GP, SMALLEST_VARIANCE, Data
from cylbo.model.kernel import Matern

B = 1.1  # half of the interval that the cosines live on
SPEEDS = np.pi * np.arange(1, 33) / (2.0 * B)
SHARES = [0.0, 0.3, 0.95]


def spectrum(log_lengthscale, most=32):
    return blend.spectrum(log_lengthscale, most)


def points(seed, n, d):
    """Of the box, its corners, its centre and a coordinate of 0 among them."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, d))
    x[:3] = np.array([-1.0, 1.0, 0.0])[:n, None]
    x[-1, 0] = 0.0
    return x


def matern(distance, lengthscale):
    s = math.sqrt(5.0) * np.abs(distance) / lengthscale
    return (1.0 + s + s**2 / 3.0) * np.exp(-s)


def spectral_density(speed, lengthscale):
    """Of a Matern-5/2 on the line: the Fourier transform of its correlation, by quadrature."""
    half, _ = scipy.integrate.quad(
        lambda u: matern(u, lengthscale), 0.0, np.inf, weight="cos", wvar=speed, epsabs=1e-12
    )
    return 2.0 * half


def one_effect(u, v, lengthscale):
    """E of points of a single coordinate. (n,), (m,) -> (n, m)"""
    kernel = Blend(np.ones(1), 0.5, spectrum(math.log(lengthscale))[0])
    return kernel.features(u[:, None]) @ kernel.features(v[:, None]).T


def variogram(k_uu, k_vv, k_uv):
    """Variance of the difference of every pair."""
    return np.diag(k_uu)[:, None] + np.diag(k_vv) - 2.0 * k_uv


# ---- features


@pytest.mark.parametrize("count", [1, 2, 3, 32])
@pytest.mark.parametrize("d", [1, 2, 50])
def test_features_are_cosines_of_the_multiples_of_half_a_period(d, count):
    x = points(d, 9, d)
    found = cosines(x, count)
    expected = [math.sqrt(2.0) * np.cos(j * math.pi * (x + 1.1) / 2.2) / math.sqrt(d) for j in range(1, count + 1)]
    assert found.shape == (count, 9, d)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("d", [1, 2, 50])
def test_slopes_of_the_features_are_their_differences(d):
    x, step = points(10 + d, 7, d), 1e-4
    near, far = (cosines(x + k * step, 12) - cosines(x - k * step, 12) for k in (1, 2))
    np.testing.assert_allclose(cosine_slopes(x, 12), (8.0 * near - far) / (12.0 * step), rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("d", [1, 3])
def test_beyond_the_interval_of_the_cosines_nothing_changes_any_more(d):
    # catches: mirrors there, which would make places far from each other the same
    inside = np.full((1, d), 1.1)
    for beyond in (1.1 + 1e-9, 1.5, 2.2, 7.0):
        for sign in (-1.0, 1.0):
            x = np.full((1, d), sign * beyond)
            np.testing.assert_allclose(cosines(x, 12), cosines(sign * inside, 12), rtol=0.0, atol=1e-12)
            assert not cosine_slopes(x, 12).any()
    assert np.abs(cosine_slopes(inside - 1e-6, 12)).max() < 1e-3  # and no bend at the end


@pytest.mark.parametrize("d", [1, 3, 50])
def test_every_gram_is_the_sum_over_coordinates_of_products_of_one_cosine(d):
    x = points(20 + d, 6, d)
    found = grams(x)
    assert found.shape == (32, 6, 6)
    for j, speed in enumerate(SPEEDS):
        for p in range(6):
            for q in range(6):
                products = (
                    2.0 * math.cos(speed * (a + B)) * math.cos(speed * (b + B)) / d
                    for a, b in zip(x[p], x[q], strict=True)
                )
                assert found[j, p, q] == pytest.approx(math.fsum(products), abs=1e-13)


@pytest.mark.parametrize("log_lengthscale", [-2.9, -1.9, -0.36, 1.6])
@pytest.mark.parametrize("d", [1, 4])
def test_features_grams_and_double_loops_give_the_same_effects(d, log_lengthscale):
    x, weights = points(30 + d, 8, d), spectrum(log_lengthscale)[0]
    features = Blend(np.ones(d), 0.5, weights).features(x)
    model = brute_force.Blended(1.0, 1.0, 0.0, 1.0, 0.0, effect_lengthscale=math.exp(log_lengthscale))
    expected = [[math.fsum(map(model.effect, p, q)) / d for q in x.tolist()] for p in x.tolist()]
    assert features.shape == (8, len(weights) * d)
    np.testing.assert_allclose(features @ features.T, expected, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(np.tensordot(weights, grams(x)[: len(weights)], 1), expected, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("d", [1, 4])
def test_slopes_of_the_weighted_features_belong_to_their_own_coordinate(d):
    # catches: rows put together in another order than those of the features, or without their weights
    x, step = points(40 + d, 5, d), 1e-4
    kernel = Blend(np.ones(d), 0.5, spectrum(-0.5)[0])
    slopes = np.zeros_like(kernel.features(x))
    for shift in step * np.eye(d):
        near, far = (kernel.features(x + k * shift) - kernel.features(x - k * shift) for k in (1, 2))
        slopes += (8.0 * near - far) / (12.0 * step)  # each feature moves with one coordinate only
    np.testing.assert_allclose(kernel.feature_slopes(x), slopes, rtol=0.0, atol=1e-8)


def test_without_effects_there_are_no_features():
    kernel = Blend(np.ones(3))
    assert kernel.features(points(0, 4, 3)).shape == (4, 0)
    assert kernel.feature_slopes(points(0, 4, 3)).shape == (4, 0)


@pytest.mark.parametrize("seed", range(3))
def test_effects_are_sums_of_functions_of_one_coordinate(seed):
    # of such a sum, and of nothing else, every mixed difference f(a, b) - f(a', b) - f(a, b') + f(a', b') is zero
    rng = np.random.default_rng(seed)
    low, high = rng.uniform(-1.0, 1.0, (2, 5))
    left = np.array([True, True, False, False, False])
    corners = [low, np.where(left, high, low), np.where(left, low, high), high]
    features = Blend(np.ones(5), 0.5, spectrum(-1.0)[0]).features(np.stack(corners))
    assert np.abs(np.array([1.0, -1.0, -1.0, 1.0]) @ features).max() < 1e-14
    assert np.abs(np.array([1.0, -1.0, 0.0, 0.0]) @ features).max() > 1e-3  # but differences are not


# ---- spectrum


@pytest.mark.parametrize("lengthscale", [0.06, 0.15, 0.3, 0.7, 2.0, 5.0])
def test_the_spectrum_is_the_fourier_transform_of_a_matern_without_its_faint_end(lengthscale):
    weights, _ = spectrum(math.log(lengthscale))
    density = np.array([spectral_density(speed, lengthscale) for speed in SPEEDS])
    assert weights.sum() == pytest.approx(1.0, rel=1e-14)
    assert (weights > 0.0).all()
    kept = density[density > 1e-6 * density[0]] - 1e-6 * density[0]
    np.testing.assert_allclose(weights, kept / kept.sum(), rtol=1e-4, atol=1e-7)


def test_the_shorter_the_lengthscale_the_more_cosines():
    # catches: paying for ripples where there is but a trend
    counts = [len(spectrum(log_lengthscale)[0]) for log_lengthscale in np.linspace(-2.9, 1.6, 40)]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (32, 10)


@pytest.mark.parametrize(("d", "most"), [(1, 32), (100, 32), (101, 31), (200, 16), (400, 8), (500, 8), (6000, 8)])
def test_hundreds_of_coordinates_have_fewer_cosines_each(d, most):
    assert most_cosines(d) == most
    assert len(grams(points(d, 2, d))) == most


def test_fewer_cosines_have_the_weights_of_the_first_ones():
    all_of_them, some = spectrum(-2.9)[0], spectrum(-2.9, 8)[0]
    assert len(some) == 8
    np.testing.assert_allclose(some, all_of_them[:8] / all_of_them[:8].sum(), rtol=1e-12)


@pytest.mark.parametrize("most", [8, 32])
@pytest.mark.parametrize("log_lengthscale", np.linspace(-4.0, 4.0, 9))
def test_the_derivative_of_the_spectrum_is_its_difference(log_lengthscale, most):
    step = 1e-4
    _, slope = spectrum(log_lengthscale, most)
    near, far = (
        padded(spectrum(log_lengthscale + k * step, most)[0]) - padded(spectrum(log_lengthscale - k * step, most)[0])
        for k in (1, 2)
    )
    np.testing.assert_allclose(padded(slope), (8.0 * near - far) / (12.0 * step), rtol=1e-7, atol=1e-10)
    assert slope.sum() == pytest.approx(0.0, abs=1e-14)


def test_a_cosine_comes_and_goes_without_a_jump():
    # The weights at a lengthscale where their number changes, from both sides
    low, high = -1.0, 0.0
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if len(spectrum(middle)[0]) > len(spectrum(0.0)[0]) else (low, middle)
    more, fewer = spectrum(low)[0], spectrum(high)[0]
    assert len(more) == len(fewer) + 1
    np.testing.assert_allclose(padded(more), padded(fewer), rtol=0.0, atol=1e-11)


def padded(weights):
    """With zeros for the cosines that are left out."""
    return np.pad(weights, (0, 32 - len(weights)))


@pytest.mark.parametrize("lengthscale", [0.3, 0.5, 0.7, 1.5])
def test_effects_are_a_matern_between_two_mirrors_without_its_constant(lengthscale):
    # All cosines of the interval with the weights of the line are the process and its images in the mirrors at -B and
    # B (the method of images); what is left out are the constant and the faint frequencies
    u, v = np.linspace(-1.0, 1.0, 9), np.linspace(-0.9, 1.0, 7)
    density = np.array([spectral_density(speed, lengthscale) for speed in (0.0, *SPEEDS)])
    mirrored = sum(
        matern(u[:, None] - v + 4.0 * B * m, lengthscale) + matern(u[:, None] + v + (4.0 * m + 2.0) * B, lengthscale)
        for m in range(-8, 9)
    )
    expected = (mirrored - density[0] / (2.0 * B)) * 2.0 * B / density[1:].sum()
    # ... and a millionth of the first one's weight of each of the others
    left_out = 2.0 * np.minimum(density[1:], 1e-6 * density[1]).sum() / density[1:].sum()
    np.testing.assert_allclose(one_effect(u, v, lengthscale), expected, rtol=0.0, atol=2.0 * left_out)
    assert left_out < 0.01


@pytest.mark.parametrize(("lengthscale", "tolerance"), [(0.2, 0.04), (0.3, 0.01), (0.4, 0.03)])
def test_in_the_interior_differences_of_an_effect_are_those_of_a_matern(lengthscale, tolerance):
    # Shorter lengthscales have frequencies that are missing, longer ones see the mirrors at 1.1. The tolerance is a
    # share of the largest variance of a difference.
    u, v = np.linspace(-0.5, 0.5, 11), np.linspace(-0.45, 0.45, 10)
    found = variogram(*(one_effect(a, b, lengthscale) for a, b in ((u, u), (v, v), (u, v))))
    expected = 2.0 - 2.0 * matern(u[:, None] - v, lengthscale)
    factor = 2.0 * B / sum(spectral_density(speed, lengthscale) for speed in SPEEDS)
    np.testing.assert_allclose(found, factor * expected, rtol=0.0, atol=tolerance * factor * expected.max())


# ---- the process


def problem(seed, n, m, d, share):
    """A generator, a random model, and data and queries for it."""
    rng = np.random.default_rng(seed)
    model = brute_force.Blended(
        ball_radius=math.sqrt(d),
        amplitude=math.exp(rng.uniform(-1.0, 1.0)),
        noise=10.0 ** rng.uniform(-4.0, -1.0),
        lengthscale=math.sqrt(d) * math.exp(rng.uniform(-1.0, 0.5)),
        mean=rng.normal(),
        stretch=tuple(np.exp(rng.uniform(-1.8, 1.8, d)).tolist()),
        share=share,
        effect_lengthscale=math.exp(rng.uniform(-2.9, 1.6)),
    )
    return rng, model, rng.uniform(-1.0, 1.0, (n, d)), rng.standard_normal(n), rng.uniform(-1.0, 1.0, (m, d))


def kernel_of(model):
    weights = spectrum(math.log(model.effect_lengthscale))[0] if model.share else None
    middle = 0.0 if model.middle is None else np.array(model.middle)
    return Blend(np.array(model.stretch), model.share, weights, middle)


def process(model, x, y, **options):
    kernel = kernel_of(model)
    h = brute_force.hyperparameters([model])
    return BlendedGP(Data.of(x, y, kernel), kernel, h, **{"stabilizer": model.stabilizer, **options})


def check_posterior(model, x, y, queries):
    found = process(model, x, y).posterior(queries)
    assert found.mean.shape == found.variance.shape == (1, len(queries))
    for j, query in enumerate(queries):
        mean, variance = model.posterior([(None, p) for p in x], y, (None, query))
        assert float(found.mean[0, j]) == pytest.approx(mean, rel=1e-8, abs=1e-8)
        assert float(found.variance[0, j]) == pytest.approx(variance, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("seed", range(3))
def test_posterior_is_the_textbook_formula(seed, share, d):
    _, model, x, y, queries = problem(seed, 9, 5, d, share)
    x[4] = 0.0  # the centre is a point like any other
    queries[2] = 0.0
    queries[3] = x[1]
    check_posterior(model, x, y, queries)


@pytest.mark.parametrize("share", SHARES)
def test_posterior_is_the_textbook_formula_wherever_the_middle_of_the_box_is(share):
    rng, model, x, y, queries = problem(53, 9, 5, 3, share)
    middle = rng.uniform(-1.0, 1.0, 3)
    queries[0] *= 2.0  # some out of the box
    model = dataclasses.replace(model, middle=tuple(middle.tolist()))
    check_posterior(model, x + middle, y, queries + middle)
    check_pullback(process(model, x + middle, y), queries + middle, rng)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("share", SHARES)
def test_posterior_of_a_single_value_is_the_textbook_formula(share, d):
    _, model, x, y, queries = problem(50, 1, 4, d, share)
    queries[0] = x[0]
    check_posterior(model, x, y, queries)


@pytest.mark.parametrize("stabilizer", [0.0, 1e-2])
def test_the_stabilizer_is_noise_and_variance(stabilizer):
    _, model, x, y, queries = problem(51, 6, 4, 2, 0.4)
    check_posterior(dataclasses.replace(model, stabilizer=stabilizer), x, y, queries)


@pytest.mark.parametrize("d", [1, 2, 20])
def test_without_stretch_and_effects_it_is_the_isotropic_process(d):
    _, model, x, y, queries = problem(60 + d, 8, 5, d, 0.0)
    model = dataclasses.replace(model, stretch=(1.0,) * d)
    isotropic = Matern(math.sqrt(d))
    expected = GP(Data.of(x, y, isotropic), isotropic, brute_force.hyperparameters([model]), stabilizer=1e-6)
    found = process(model, x, y)
    for name in ("mean", "variance"):
        np.testing.assert_allclose(
            getattr(found.posterior(queries), name), getattr(expected.posterior(queries), name), rtol=1e-9
        )


@pytest.mark.parametrize("share", SHARES)
def test_without_noise_the_mean_interpolates_and_the_variance_vanishes_at_the_data(share):
    _, model, x, y, _ = problem(70, 6, 1, 3, share)
    found = process(dataclasses.replace(model, noise=1e-12, stabilizer=0.0), x, y).posterior(x)
    np.testing.assert_allclose(found.mean[0], y, atol=1e-6)
    assert (found.variance > 0).all()
    assert (found.variance < 1e-6).all()


@pytest.mark.parametrize("share", [0.3, 0.95])
@pytest.mark.parametrize("seed", range(3))
def test_a_mirrored_coordinate_changes_nothing(seed, share):
    _, model, x, y, queries = problem(80 + seed, 8, 5, 3, share)
    mirror = np.array([1.0, -1.0, 1.0])
    found, mirrored = process(model, x, y).posterior(queries), process(model, x * mirror, y).posterior(queries * mirror)
    np.testing.assert_allclose(mirrored.mean, found.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(mirrored.variance, found.variance, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("n", [1, 7])
def test_pullback_of_mean_and_variance_matches_finite_differences(n, share, d):
    rng, model, x, y, queries = problem(90 + d, n, 5, d, share)
    queries[1] = 0.0  # the centre has a slope like any other point
    queries[2] = x[0]
    gp = process(model, x, y)
    check_pullback(gp, queries, rng)
    assert (np.abs(gp.posterior(queries).pullback(np.ones((1, 5)), np.zeros((1, 5)))[1]) > 1e-6).any()


@pytest.mark.parametrize("share", SHARES)
def test_correlations_and_their_pullback_are_those_of_the_double_loop(share):
    rng, model, x, y, queries = problem(100, 6, 4, 3, share)
    toward = process(model, x, y).toward(queries)
    step = 1e-5

    def prior(query):
        """Correlations of a query with the data and with itself."""
        return np.array([model.covariance((None, query), (None, p)) for p in [*x, query]]) / model.amplitude

    expected = np.stack([prior(query) for query in queries])
    np.testing.assert_allclose(toward.k[0], expected[:, :-1], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(toward.variance[0], expected[:, -1], rtol=0.0, atol=1e-12)
    k_bar, variance_bar = rng.standard_normal((1, 4, 6)), rng.standard_normal((1, 4))
    slopes = np.array(
        [
            [(prior(query + shift) - prior(query - shift)) / (2.0 * step) for shift in step * np.eye(3)]
            for query in queries
        ]
    )  # (m, d, n + 1)
    by_x = np.einsum("mn,mdn->md", np.column_stack([k_bar[0], variance_bar[0]]), slopes)
    np.testing.assert_allclose(toward.pullback(k_bar, variance_bar), by_x, rtol=1e-6, atol=1e-8)


def dense(model, x, y, queries, noise=0.0):
    """Posterior means (m,) and covariances (m, m) with noise of these variances besides the model's. By definition."""
    data, at = [(None, p) for p in x], [(None, p) for p in queries]
    K = model.gram(data) + np.diag(np.broadcast_to(noise, len(x)))
    k = model.cross(at, data)
    mean = model.mean + k @ np.linalg.solve(K, y - model.mean)
    return mean, model.cross(at, at) - k @ np.linalg.solve(K, k.T)


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("share", SHARES)
def test_posterior_with_noise_of_its_own_at_every_point_is_the_textbook_formula(share, d):
    # catches: standard deviations for variances, variances in units of y and not of the amplitude
    rng, model, x, y, queries = problem(200 + d, 9, 5, d, share)
    noise = rng.gamma(1.0, size=9) * np.array([0.0, 1.0, 1.0] * 3)  # some have none
    x[4], y[4] = x[1], y[1] + 3.0
    gp = process(model, x, y, noise=noise / model.amplitude)
    mean, covariance = dense(model, x, y, queries, noise)
    found = gp.posterior(queries)
    np.testing.assert_allclose(found.mean[0], mean, rtol=1e-8, atol=1e-8)
    stabilizer = model.stabilizer * model.amplitude  # which the process counts as variance
    np.testing.assert_allclose(found.variance[0], covariance.diagonal() + stabilizer, rtol=1e-7, atol=1e-9)
    check_pullback(gp, queries, rng)
    assert not np.allclose(found.mean, process(model, x, y).posterior(queries).mean, rtol=1e-3)


@pytest.mark.parametrize("share", SHARES)
def test_a_value_with_endless_noise_is_as_good_as_none(share):
    _, model, x, y, queries = problem(210, 9, 5, 3, share)
    y[4] = 1e3
    found = process(model, x, y, noise=np.where(np.arange(9) == 4, 1e12, 0.0)).posterior(queries)
    without = process(model, np.delete(x, 4, 0), np.delete(y, 4)).posterior(queries)
    np.testing.assert_allclose(found.mean, without.mean, rtol=1e-6)
    np.testing.assert_allclose(found.variance, without.variance, rtol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("told", [False, True])
def test_joint_covariances_are_the_textbook_formula(told, share, d):
    rng, model, x, y, queries = problem(220 + d, 9, 6, d, share)
    queries[2], queries[3], queries[5] = 0.0, x[1], queries[4]  # among them one of the data, and one twice
    noise = rng.gamma(1.0, size=9) if told else np.zeros(9)
    model = dataclasses.replace(model, middle=tuple(rng.uniform(-0.5, 0.5, d).tolist()))
    found = process(model, x, y, noise=noise / model.amplitude).joint(queries)
    _, covariance = dense(model, x, y, queries, noise)
    np.testing.assert_allclose(model.amplitude * found, covariance, rtol=1e-7, atol=1e-9)


def test_where_the_variance_is_kept_positive_it_has_no_slope():
    _, model, x, y, _ = problem(110, 2, 1, 2, 0.0)
    found = process(dataclasses.replace(model, noise=0.0, stabilizer=0.0), x, y).posterior(x)
    assert found.variance.tolist() == [[model.amplitude * SMALLEST_VARIANCE] * 2]
    assert (found.pullback(np.zeros((1, 2)), np.ones((1, 2))) == 0.0).all()


def test_its_only_sample_is_a_subset_with_the_same_posterior():
    _, model, x, y, queries = problem(111, 6, 4, 2, 0.4)
    gp = process(model, x, y)
    part = gp.subset(slice(-1, None))
    assert (len(gp), len(part)) == (1, 1)
    assert np.array_equal(part.posterior(queries).mean, gp.posterior(queries).mean)
    assert np.array_equal(part.posterior(queries).variance, gp.posterior(queries).variance)


@pytest.mark.parametrize("share", SHARES)
def test_equal_points_without_noise_need_jitter_and_share_their_value(share):
    _, model, _, _, _ = problem(112, 1, 1, 2, share)
    # Of so many, one at least breaks the factor down: two may be saved by rounding
    x, y = np.array([*[[0.5, 0.1]] * 10, [-0.3, 0.8]]), np.array([*[1.0, 3.0] * 5, 0.0])
    noiseless = dataclasses.replace(model, noise=0.0, stabilizer=0.0)
    gp = process(noiseless, x, y)
    assert gp.tau.item() > 0.0
    assert gp.posterior(x[:1]).mean.item() == pytest.approx(2.0, abs=1e-3)
    with pytest.raises(NotPositiveDefiniteError):
        process(noiseless, x, y, jitters=())


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 25),
    d=st.sampled_from([1, 2, 5, 40]),
    share=st.floats(0.0, 0.9999),
    log_effect_lengthscale=st.floats(-2.9, 1.6),
    log_lengthscale=st.floats(-5.0, 7.0),
)
@settings(max_examples=60)
def test_kernel_matrices_are_symmetric_and_have_no_negative_eigenvalue(
    seed, n, d, share, log_effect_lengthscale, log_lengthscale
):
    _, model, x, y, _ = problem(seed, n, 1, d, share)
    x[-1] = x[0]
    model = dataclasses.replace(
        model, effect_lengthscale=math.exp(log_effect_lengthscale), lengthscale=math.exp(log_lengthscale)
    )
    toward = process(model, x, y).toward(x)
    K = toward.k[0]
    # Distances come from a product, so squares of points in lengthscales are what rounding is measured by
    rounding = 1e-12 + 1e-15 * ((x * model.stretch / model.lengthscale) ** 2).sum(-1).max()
    np.testing.assert_allclose(K, K.T, rtol=0.0, atol=rounding)
    np.testing.assert_allclose(K.diagonal(), toward.variance[0], rtol=0.0, atol=rounding)
    assert np.linalg.eigvalsh(K).min() > -n * rounding


def test_data_are_not_modified():
    _, model, x, y, queries = problem(113, 6, 4, 3, 0.4)
    kernel = kernel_of(model)
    arrays = [x, y, queries, kernel.stretch, kernel.spectrum]
    before = [array.copy() for array in arrays]
    gp = BlendedGP(Data.of(x, y, kernel), kernel, brute_force.hyperparameters([model]), stabilizer=1e-6)
    first, second = (gp.posterior(queries) for _ in range(2))
    first.pullback(np.ones((1, 4)), np.ones((1, 4)))
    assert np.array_equal(first.mean, second.mean)
    assert np.array_equal(first.variance, second.variance)
    for now, then in zip(arrays, before, strict=True):
        assert np.array_equal(now, then)
