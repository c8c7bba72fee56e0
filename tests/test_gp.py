import math

import numpy as np
import pytest

import brute_force
from brute_force import check_pullback, split
from cylbo.errors import NotPositiveDefiniteError
from cylbo.model.centred import CenteredGP
from cylbo.model.gp import GP, SMALLEST_VARIANCE, Data, parallel_posterior
from cylbo.model.kernel import Cylindrical, Matern


def problem(seed, n, m, d, *, x_scale=1.0, y_scale=1.0):
    rng = np.random.default_rng(seed)
    x = x_scale * rng.uniform(-1.0, 1.0, (n, d))
    queries = x_scale * rng.uniform(-1.0, 1.0, (m, d))
    y = y_scale * rng.standard_normal(n)
    return rng, x, y, queries


def isotropic(rng, n, d, *, x_scale=1.0, y_scale=1.0):
    return [
        brute_force.Matern(
            ball_radius=x_scale * math.sqrt(d),
            amplitude=y_scale**2 * math.exp(rng.uniform(-1, 1)),
            noise=y_scale**2 * 10.0 ** rng.uniform(-4, -1),
            lengthscale=x_scale * math.sqrt(d) * math.exp(rng.uniform(-1, 0.5)),
            mean=y_scale * rng.normal(),
        )
        for _ in range(n)
    ]


@pytest.mark.parametrize("d", [1, 2, 20, 500])
@pytest.mark.parametrize("x_scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("y_scale", [1e-3, 1.0, 1e3])
def test_matern_posterior_is_the_textbook_formula(d, x_scale, y_scale):
    rng, x, y, queries = problem(d, 9, 5, d, x_scale=x_scale, y_scale=y_scale)
    x[4] = 0.0  # the centre is a point like any other
    queries[2] = 0.0
    queries[3] = x[1]
    models = isotropic(rng, 3, d, x_scale=x_scale, y_scale=y_scale)
    kernel = Matern(x_scale * math.sqrt(d))
    data = Data.of(x, y, kernel)
    gp = GP(data, kernel, brute_force.hyperparameters(models), stabilizer=1e-6)
    found = gp.posterior(queries)
    points = [(None, p) for p in x]
    for s, model in enumerate(models):
        for j, query in enumerate(queries):
            mean, variance = model.posterior(points, y, (None, query))
            assert float(found.mean[s, j]) == pytest.approx(mean, rel=1e-8, abs=1e-8 * y_scale)
            assert float(found.variance[s, j]) == pytest.approx(variance, rel=1e-7, abs=1e-9 * y_scale**2)


@pytest.mark.parametrize("d", [1, 2, 20])
def test_cylindrical_posterior_away_from_the_centre_is_the_textbook_formula(d):
    rng, x, y, queries = problem(d, 8, 6, d)
    models = brute_force.random_models(rng, 3, math.sqrt(d))
    kernel = Cylindrical(math.sqrt(d))
    gp = GP(Data.of(x, y, kernel), kernel, brute_force.hyperparameters(models), stabilizer=1e-6)
    found = gp.posterior(queries)
    for s, model in enumerate(models):
        for j, query in enumerate(queries):
            mean, variance = model.posterior([split(p) for p in x], y, split(query))
            assert float(found.mean[s, j]) == pytest.approx(mean, rel=1e-8, abs=1e-8)
            assert float(found.variance[s, j]) == pytest.approx(variance, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("kind", [Cylindrical, Matern])
def test_without_noise_the_mean_interpolates_and_the_variance_vanishes_at_the_data(kind):
    rng, x, y, _ = problem(1, 6, 1, 3)
    kernel = kind(math.sqrt(3))
    model = brute_force.random_models(rng, 1, math.sqrt(3))[0]
    h = brute_force.hyperparameters([model])
    h.noise_ratio[:] = 1e-12
    gp = GP(Data.of(x, y, kernel), kernel, h, stabilizer=0.0)
    found = gp.posterior(x)
    np.testing.assert_allclose(found.mean[0], y, atol=1e-6)
    assert (found.variance > 0).all()
    assert (found.variance < 1e-6).all()


def test_far_from_all_data_the_prior_comes_back():
    model = brute_force.Matern(1.0, 2.5, 0.1, 0.01, -3.0)
    kernel = Matern(1.0)
    data = Data.of(np.array([[0.1], [0.2]]), np.array([1.0, 2.0]), kernel)
    found = GP(data, kernel, brute_force.hyperparameters([model]), stabilizer=1e-6).posterior(np.array([[-1.0]]))
    assert found.mean.item() == pytest.approx(-3.0, rel=1e-12)
    assert found.variance.item() == pytest.approx(2.5 * (1 + 1e-6), rel=1e-12)


def test_two_equal_points_without_noise_need_jitter_and_share_their_value():
    x = np.array([[0.5, 0.1], [0.5, 0.1], [-0.3, 0.8]])
    y = np.array([1.0, 3.0, 0.0])
    kernel = Matern(math.sqrt(2.0))
    h = brute_force.hyperparameters([brute_force.Matern(1.0, 1.0, 1.0, 1.0, 0.0)])
    h.noise_ratio[:] = 0.0
    data = Data.of(x, y, kernel)
    gp = GP(data, kernel, h, stabilizer=0.0)
    assert gp.tau.item() > 0.0
    assert gp.posterior(x[:1]).mean.item() == pytest.approx(2.0, abs=1e-3)
    with pytest.raises(NotPositiveDefiniteError):
        GP(data, kernel, h, stabilizer=0.0, jitters=())


def test_subset_has_the_posteriors_of_its_samples():
    rng, x, y, queries = problem(5, 6, 4, 2)
    models = isotropic(rng, 4, 2)
    kernel = Matern(math.sqrt(2))
    data = Data.of(x, y, kernel)
    whole = GP(data, kernel, brute_force.hyperparameters(models), stabilizer=1e-6)
    part = whole.subset(slice(-2, None))
    alone = GP(data, kernel, brute_force.hyperparameters(models[2:]), stabilizer=1e-6)
    assert (len(whole), len(part)) == (4, 2)
    q = queries
    np.testing.assert_allclose(part.posterior(q).mean, alone.posterior(q).mean)
    np.testing.assert_allclose(part.posterior(q).variance, alone.posterior(q).variance)
    assert whole.posterior(q).mean.shape == (4, 4)


def test_only_an_exact_zero_is_the_centre_and_only_for_the_cylinder():
    x = np.array([[0.0, 0.0], [0.0, 1e-300], [-0.0, 0.0], [1.0, 0.0]])
    y = np.arange(4.0)
    apart = Data.of(x, y, Cylindrical(1.0))
    assert apart.center_y.tolist() == [0.0, 2.0]
    assert apart.y.tolist() == [1.0, 3.0]
    assert np.array_equal(apart.x, x[[1, 3]])
    together = Data.of(x, y, Matern(1.0))
    assert len(together.center_y) == 0
    assert np.array_equal(together.x, x)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_pullback_of_mean_and_variance_matches_finite_differences(d):
    rng, x, y, queries = problem(20 + d, 7, 5, d)
    x[2] = 0.0
    queries[1] = 0.0  # the centre is a point like any other, with a slope like any other
    queries[2] = x[0]
    kernel = Matern(math.sqrt(d))
    gp = GP(Data.of(x, y, kernel), kernel, brute_force.hyperparameters(isotropic(rng, 3, d)), stabilizer=1e-6)
    check_pullback(gp, queries, rng)
    assert (np.abs(gp.posterior(queries).pullback(np.ones((3, 5)), np.zeros((3, 5)))[1]) > 1e-6).any()


@pytest.mark.parametrize("d", [1, 3])
def test_correlations_and_their_pullback_are_those_of_the_double_loop(d):
    rng, x, y, queries = problem(40 + d, 6, 4, d)
    models = isotropic(rng, 3, d)
    kernel = Matern(math.sqrt(d))
    gp = GP(Data.of(x, y, kernel), kernel, brute_force.hyperparameters(models), stabilizer=1e-6)
    toward, step = gp.toward(queries), 1e-5

    def correlations(query):
        return np.array([[m.covariance((None, query), (None, p)) / m.amplitude for p in x] for m in models])

    np.testing.assert_allclose(toward.k, np.stack([correlations(q) for q in queries], 1), rtol=0.0, atol=1e-12)
    assert toward.variance.tolist() == [[1.0] * 4] * 3
    k_bar = rng.standard_normal((3, 4, 6))
    slopes = [[correlations(q + e) - correlations(q - e) for e in step * np.eye(d)] for q in queries]  # (m, d, s, n)
    expected = np.einsum("smn,mdsn->md", k_bar, slopes) / (2.0 * step)
    found = toward.pullback(k_bar, rng.standard_normal((3, 4)))  # the variance is the same everywhere
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_pullback_of_a_subset_is_that_of_its_samples():
    rng, x, y, queries = problem(6, 6, 4, 2)
    kernel = Matern(math.sqrt(2))
    gp = GP(Data.of(x, y, kernel), kernel, brute_force.hyperparameters(isotropic(rng, 4, 2)), stabilizer=1e-6)
    bars = rng.standard_normal((2, 2, 4))
    padded = np.concatenate([np.zeros((2, 2, 4)), bars], 1)
    part = gp.subset(slice(-2, None)).posterior(queries).pullback(*bars)
    np.testing.assert_allclose(part, gp.posterior(queries).pullback(*padded), rtol=1e-9, atol=1e-12)


def test_where_the_variance_is_kept_positive_it_has_no_slope():
    """Two data so close to each other, and so free of noise, that rounding decides about the sign."""
    kernel = Matern(1.0)
    h = brute_force.hyperparameters([brute_force.Matern(1.0, 2.0, 1.0, 1.0, 0.0)])
    h.noise_ratio[:] = 0.0
    x = np.array([[0.1, 0.2], [-0.5, 0.7]])
    found = GP(Data.of(x, np.array([1.0, 2.0]), kernel), kernel, h, stabilizer=0.0).posterior(x)
    assert found.variance.tolist() == [[2.0 * SMALLEST_VARIANCE] * 2]
    assert (found.pullback(np.zeros((1, 2)), np.ones((1, 2))) == 0.0).all()
    assert np.isfinite(found.pullback(np.ones((1, 2)), np.ones((1, 2)))).all()


def test_the_plain_gp_of_the_cylinder_refuses_to_be_climbed():
    rng, x, y, queries = problem(7, 5, 3, 2)
    kernel = Cylindrical(math.sqrt(2))
    models = brute_force.random_models(rng, 2, math.sqrt(2))
    found = GP(Data.of(x, y, kernel), kernel, brute_force.hyperparameters(models), stabilizer=1e-6).posterior(queries)
    with pytest.raises(NotImplementedError, match="CenteredGP"):
        found.pullback(np.ones((2, 3)), np.ones((2, 3)))


def check_parallel(gp, queries, rng):
    whole, shared = gp.posterior(queries), parallel_posterior(gp, queries)
    np.testing.assert_allclose(shared.mean, whole.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(shared.variance, whole.variance, rtol=1e-8, atol=1e-12)
    bars = rng.standard_normal((2, *whole.mean.shape))
    np.testing.assert_allclose(shared.pullback(*bars), whole.pullback(*bars), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("samples", [1, 2, 3, 4, 5, 11])
@pytest.mark.parametrize("kind", [Cylindrical, Matern])
def test_posterior_by_several_threads_is_the_posterior(monkeypatch, kind, samples):
    monkeypatch.setattr("cylbo.model.gp.LARGE", 1)
    rng, x, y, queries = problem(30 + samples, 7, 5, 3)
    x[2] = 0.0
    queries[[1, 3]] = 0.0
    kernel = kind(math.sqrt(3))
    data = Data.of(x, y, kernel)
    if kind is Matern:
        gp = GP(data, kernel, brute_force.hyperparameters(isotropic(rng, samples, 3)), stabilizer=1e-6)
    else:
        h = brute_force.hyperparameters(brute_force.random_models(rng, samples, math.sqrt(3)))
        gp = CenteredGP(data, kernel, h, stabilizer=1e-6, boundary=True)
    check_parallel(gp, queries, rng)


def test_posterior_of_many_data_by_several_threads_is_the_posterior():
    rng, x, y, queries = problem(31, 300, 5, 3)
    kernel = Cylindrical(math.sqrt(3))
    h = brute_force.hyperparameters(brute_force.random_models(rng, 5, math.sqrt(3)))
    x[0] = 0.0
    check_parallel(CenteredGP(Data.of(x, y, kernel), kernel, h, stabilizer=1e-6), queries, rng)
