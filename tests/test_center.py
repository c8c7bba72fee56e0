"""The posterior with observations at the centre against a naive GP where they have the query's direction."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from cylbo.model.centred import CenteredGP
from cylbo.model.gp import GP, Data
from cylbo.model.kernel import Cylindrical


class Setting:
    """Data and queries with obtuse angles, negative coordinates, radii from next to 0 up to the rim."""

    def __init__(self, seed, *, d, n=7, k=1, m=6, x_scale=1.0, y_scale=1.0):
        self.rng = np.random.default_rng(seed)
        self.radius = x_scale * math.sqrt(d)
        self.y_scale = y_scale
        self.x = self.points(n, d)
        if n > 2:
            self.x[1] = -0.5 * self.x[0]  # exactly opposite
        self.y = y_scale * (2.0 + self.rng.standard_normal(n))
        self.center_y = y_scale * (1.0 + self.rng.standard_normal(k))
        self.queries = self.points(m, d)
        if n:
            self.queries[2] = self.x[0]  # a query at a datum
            self.queries[3] = 1e-3 * self.x[n - 1]  # in a datum's direction, next to the centre
        self.kernel = Cylindrical(self.radius)

    def points(self, n, d):
        x = self.rng.standard_normal((n, d))
        r = np.concatenate([[1e-5, 1.0, 1.0 - 1e-9], self.rng.random(max(0, n - 3))])[:n]
        return x / np.linalg.norm(x, axis=1, keepdims=True) * (self.radius * r)[:, None]

    def gp(self, models, *, boundary=False):
        d = self.x.shape[1]
        x = np.concatenate([np.zeros((len(self.center_y), d)), self.x])
        y = np.concatenate([self.center_y, self.y])
        order = self.rng.permutation(len(y))
        data = Data.of(x[order], y[order], self.kernel)
        h = brute_force.hyperparameters(models)
        return CenteredGP(data, self.kernel, h, stabilizer=models[0].stabilizer, boundary=boundary)

    def check(self, models, *, boundary=False, rel=1e-8):
        found = self.gp(models, boundary=boundary).posterior(self.queries)
        for s, model in enumerate(models):
            for j, query in enumerate(self.queries):
                mean, variance = brute_force.centered_posterior(
                    model, self.x, self.y, self.center_y, query, boundary=boundary
                )
                assert float(found.mean[s, j]) == pytest.approx(mean, rel=rel, abs=rel * self.y_scale)
                tolerance = 0.1 * rel * model.amplitude
                assert float(found.variance[s, j]) == pytest.approx(variance, rel=rel, abs=tolerance)


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("warped", [True, False])
@pytest.mark.parametrize("degree", range(1, 10))
def test_posterior_is_the_naive_one_with_the_centre_in_the_querys_direction(degree, warped, boundary):
    """One more point for the centre, and with BOCK+B another at the rim for the variance alone."""
    for d in (1, 2, 20):
        setting = Setting(degree, d=d)
        models = brute_force.random_models(setting.rng, 2, setting.radius, degree=degree, warped=warped)
        setting.check(models, boundary=boundary)


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("k", [0, 1, 2, 5])
@pytest.mark.parametrize("d", [1, 2, 20, 500])
def test_any_number_of_centre_observations_is_as_many_points_of_the_naive_gp(d, k, boundary):
    setting = Setting(100 + k, d=d, k=k)
    models = brute_force.random_models(setting.rng, 2, setting.radius)
    setting.check(models, boundary=boundary)


@pytest.mark.parametrize("x_scale", [1e-3, 1e3])
@pytest.mark.parametrize("y_scale", [1e-3, 1e3])
@pytest.mark.parametrize("boundary", [False, True])
def test_units_of_parameters_and_values_do_not_matter(x_scale, y_scale, boundary):
    setting = Setting(7, d=3, k=2, x_scale=x_scale, y_scale=y_scale)
    models = brute_force.random_models(setting.rng, 3, setting.radius, x_scale=x_scale, y_scale=y_scale)
    setting.check(models, boundary=boundary)


@given(seed=st.integers(0, 10**6), d=st.sampled_from([1, 2, 3, 10]), k=st.integers(0, 3), boundary=st.booleans())
def test_posterior_is_the_naive_one_for_whatever_data(seed, d, k, boundary):
    setting = Setting(seed, d=d, n=1 + seed % 6, k=k, m=4)
    models = brute_force.random_models(setting.rng, 1, setting.radius, degree=1 + seed % 5, warped=seed % 2 == 0)
    setting.check(models, boundary=boundary)


@pytest.mark.parametrize("boundary", [False, True])
def test_nearly_noise_free_data_lose_few_digits(boundary):
    """With the authors' stabiliser alone on the diagonal; the naive solve itself keeps some ten digits."""
    setting = Setting(8, d=4, n=12)
    models = brute_force.random_models(setting.rng, 3, setting.radius)
    quiet = [brute_force.Model(**{**vars(m), "noise": 1e-10 * m.amplitude}) for m in models]
    setting.check(quiet, boundary=boundary, rel=1e-5)


@pytest.mark.parametrize("d", [1, 2, 20])
def test_without_centre_observations_it_is_the_plain_gp(d):
    setting = Setting(9, d=d, k=0)
    models = brute_force.random_models(setting.rng, 3, setting.radius)
    centered = setting.gp(models)
    plain = GP(centered.data, setting.kernel, brute_force.hyperparameters(models), stabilizer=1e-6)
    queries = setting.queries
    np.testing.assert_allclose(centered.posterior(queries).mean, plain.posterior(queries).mean)
    np.testing.assert_allclose(centered.posterior(queries).variance, plain.posterior(queries).variance)


@pytest.mark.parametrize("d", [1, 2, 20])
def test_fake_point_at_the_rim_lowers_the_variance_and_leaves_the_mean_alone(d):
    setting = Setting(10, d=d)
    models = brute_force.random_models(setting.rng, 3, setting.radius)
    queries = setting.queries
    without, with_rim = (setting.gp(models, boundary=b).posterior(queries) for b in (False, True))
    np.testing.assert_allclose(with_rim.mean, without.mean)
    assert (with_rim.variance <= without.variance + 1e-13).all()
    assert (with_rim.variance[:, 1] < 0.9 * without.variance[:, 1]).all()  # this one lies on the rim


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("d", [1, 2, 20])
def test_query_at_the_centre_is_the_moment_matched_mixture_over_the_training_directions(d, k, boundary):
    setting = Setting(20 + k, d=d, k=k)
    models = brute_force.random_models(setting.rng, 2, setting.radius)
    setting.queries[[1, 4]] = 0.0  # among others that are not
    found = setting.gp(models, boundary=boundary).posterior(setting.queries)
    for s, model in enumerate(models):
        mean, variance = brute_force.posterior_at_center(
            model, setting.x, setting.y, setting.center_y, boundary=boundary
        )
        for j in (1, 4):
            assert float(found.mean[s, j]) == pytest.approx(mean, rel=1e-9)
            assert float(found.variance[s, j]) == pytest.approx(variance, rel=1e-8)
        for j in (0, 5):
            mean, variance = brute_force.centered_posterior(
                model, setting.x, setting.y, setting.center_y, setting.queries[j], boundary=boundary
            )
            assert float(found.mean[s, j]) == pytest.approx(mean, rel=1e-8)
            assert float(found.variance[s, j]) == pytest.approx(variance, rel=1e-7)


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("n", [0, 4])
def test_queries_that_are_all_at_the_centre_are_answered_like_one_among_others(n, k, boundary):
    setting = Setting(25, d=3, n=n, k=k)
    gp = setting.gp(brute_force.random_models(setting.rng, 2, setting.radius), boundary=boundary)
    setting.queries[0] = 0.0
    among_others = gp.posterior(setting.queries)
    alone = gp.posterior(np.zeros((2, 3)))
    np.testing.assert_allclose(alone.mean, among_others.mean[:, [0, 0]])
    np.testing.assert_allclose(alone.variance, among_others.variance[:, [0, 0]])


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("d", [1, 3])
def test_data_at_the_centre_alone_are_enough(d, k, boundary):
    setting = Setting(30, d=d, n=0, k=k)
    models = brute_force.random_models(setting.rng, 2, setting.radius)
    setting.check(models, boundary=boundary)
    setting.queries[3] = 0.0
    here = setting.gp(models, boundary=boundary).posterior(setting.queries)
    for s, model in enumerate(models):
        a = (1.0,) + (0.0,) * (d - 1)  # any direction: nothing else has one
        points, values = [(0.0, a)] * k, list(setting.center_y)
        mean, variance = model.posterior(points, values, (0.0, a))
        if boundary:
            variance = model.posterior([*points, (model.ball_radius, a)], [*values, 0.0], (0.0, a))[1]
        assert float(here.mean[s, 3]) == pytest.approx(mean, rel=1e-9)
        assert float(here.variance[s, 3]) == pytest.approx(variance, rel=1e-8)


def test_prior_variance_is_the_same_at_the_centre_as_elsewhere():
    """gpytorch's kernel dips there, to c_0 of the amplitude."""
    model = brute_force.Model(1.0, 2.0, 1e6, 1.0, 0.0, weights=(0.1, 0.2, 0.7))  # all noise: the data say nothing
    data = Data.of(np.array([[0.5, 0.5]]), np.ones(1), Cylindrical(1.0))
    gp = CenteredGP(data, Cylindrical(1.0), brute_force.hyperparameters([model]), stabilizer=0.0)
    found = gp.posterior(np.array([[0.0, 0.0], [-0.7, 0.1]]))
    np.testing.assert_allclose(found.variance, 2.0, rtol=1e-5)


def test_without_noise_the_centre_is_interpolated_from_every_direction():
    setting = Setting(40, d=3, n=6)
    models = brute_force.random_models(setting.rng, 2, setting.radius, warped=False, stabilizer=1e-9)
    models = [brute_force.Model(**{**vars(m), "noise": 1e-9 * m.amplitude}) for m in models]
    directions = setting.rng.standard_normal((20, 3))
    found = setting.gp(models).posterior(1e-7 * directions)
    np.testing.assert_allclose(found.mean, setting.center_y[0], atol=1e-3)
    assert (found.variance < 1e-4).all()


@pytest.mark.parametrize("d", [2, 20])
def test_posterior_does_not_see_rotations(d):
    setting = Setting(50, d=d)
    models = brute_force.random_models(setting.rng, 2, setting.radius)
    before = setting.gp(models, boundary=True).posterior(setting.queries)
    rotation = np.linalg.qr(setting.rng.standard_normal((d, d)))[0]
    setting.x, setting.queries = setting.x @ rotation.T, setting.queries @ rotation.T
    after = setting.gp(models, boundary=True).posterior(setting.queries)
    np.testing.assert_allclose(after.mean, before.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(after.variance, before.variance, rtol=1e-7, atol=1e-10)


def test_subset_has_the_posteriors_of_its_samples():
    setting = Setting(60, d=3, k=2)
    models = brute_force.random_models(setting.rng, 4, setting.radius)
    setting.queries[0] = 0.0
    queries = setting.queries
    whole = setting.gp(models, boundary=True).posterior(queries)
    part = setting.gp(models, boundary=True).subset(slice(1, 3)).posterior(queries)
    np.testing.assert_allclose(part.mean, whole.mean[1:3])
    np.testing.assert_allclose(part.variance, whole.variance[1:3])


def test_gram_matrix_really_used_is_positive_semidefinite_whatever_the_direction_of_the_centre():
    setting = Setting(70, d=4, n=12)
    for model in brute_force.random_models(setting.rng, 5, setting.radius, degree=5):
        for query in setting.queries:
            points = [brute_force.split(p) for p in setting.x] + [(0.0, brute_force.split(query)[1])]
            assert np.linalg.eigvalsh(model.cross(points, points)).min() > -1e-12 * model.amplitude


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("warped", [True, False])
@pytest.mark.parametrize("k", [0, 1, 4])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_pullback_of_mean_and_variance_matches_finite_differences(d, k, warped, boundary):
    setting = Setting(80 + d, d=d, k=k)
    for degree in (1, 3, 9):
        models = brute_force.random_models(setting.rng, 3, setting.radius, degree=degree, warped=warped)
        queries = setting.points(5, d) * 0.98
        queries[0] = 0.05 * setting.x[-1]
        brute_force.check_pullback(setting.gp(models, boundary=boundary), queries, setting.rng)


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("d", [1, 3])
def test_pullback_with_data_at_the_centre_alone_matches_finite_differences(d, boundary):
    setting = Setting(90, d=d, n=0, k=2)
    models = brute_force.random_models(setting.rng, 2, setting.radius)
    brute_force.check_pullback(setting.gp(models, boundary=boundary), setting.points(6, d)[3:], setting.rng)


def test_pullback_of_a_subset_is_that_of_its_samples():
    setting = Setting(61, d=3, k=2)
    models = brute_force.random_models(setting.rng, 4, setting.radius)
    gp = setting.gp(models, boundary=True)
    bars = setting.rng.standard_normal((2, 2, len(setting.queries)))
    part = gp.subset(slice(1, 3)).posterior(setting.queries).pullback(*bars)
    padded = np.zeros((2, 4, len(setting.queries)))
    padded[:, 1:3] = bars
    np.testing.assert_allclose(part, gp.posterior(setting.queries).pullback(*padded), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_pullback_at_the_centre_is_zero_and_the_others_do_not_see_it(k, boundary):
    setting = Setting(62, d=3, k=k)
    gp = setting.gp(brute_force.random_models(setting.rng, 2, setting.radius), boundary=boundary)
    queries = setting.queries.copy()
    queries[[0, 4]] = 0.0
    others = [1, 2, 3, 5]
    bars = setting.rng.standard_normal((2, 2, 6))
    found = gp.posterior(queries).pullback(*bars)
    assert found.shape == (6, 3)
    assert (found[[0, 4]] == 0.0).all()
    alone = gp.posterior(queries[others]).pullback(*bars[:, :, others])
    np.testing.assert_allclose(found[others], alone, rtol=1e-9, atol=1e-12)
    assert (gp.posterior(np.zeros((4, 3))).pullback(*bars[:, :, :4]) == 0.0).all()
    assert gp.posterior(np.zeros((0, 3))).pullback(*bars[:, :, :0]).shape == (0, 3)


def test_queries_are_not_modified():
    setting = Setting(63, d=3)
    gp = setting.gp(brute_force.random_models(setting.rng, 2, setting.radius), boundary=True)
    setting.queries[1] = 0.0
    before = setting.queries.copy()
    bars = np.ones((2, 2, len(before)))
    found = gp.posterior(setting.queries)
    mean, variance = found.mean.copy(), found.variance.copy()
    first = found.pullback(*bars)
    assert np.array_equal(found.pullback(*bars), first)  # may be called again
    assert np.array_equal(setting.queries, before)
    assert np.array_equal(found.mean, mean)
    assert np.array_equal(found.variance, variance)
