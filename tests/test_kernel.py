import math
import warnings

import mpmath
import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given
from hypothesis import strategies as st

import brute_force
from brute_force import split
from cylbo.model.gp import correlation
from cylbo.model.kernel import (
    Cylindrical,
    Matern,
    angular,
    angular_slope,
    kumaraswamy,
    kumaraswamy_slope,
    matern52,
    matern52_slope,
    squared_distances,
)


@pytest.fixture(scope="module")
def gpytorch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its import calls torch.jit.script
        import gpytorch
    return gpytorch


def ball_points(rng, n, d, radius):
    """Random directions, hence obtuse angles and negative coordinates; radii from near 0 to the rim."""
    x = rng.standard_normal((n, d))
    r = radius * np.concatenate([[1e-6, 1.0 - 1e-9], rng.random(n - 2)])
    return x / np.linalg.norm(x, axis=1, keepdims=True) * r[:, None]


def gram(kernel, x, models):
    return correlation(kernel, kernel.relate(x, x), brute_force.hyperparameters(models))


@pytest.mark.parametrize("d", [1, 2, 20, 500])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_squared_distances_are_those_of_the_double_loop(d, scale):
    rng = np.random.default_rng(d)
    x1, x2 = scale * rng.uniform(-1.0, 1.0, (6, d)), scale * rng.uniform(-1.0, 1.0, (4, d))
    x2[1] = x1[3]
    for first, second in ((x1, x2), (x2, x1), (x1, x1), (x1, x1.copy())):
        expected = [[math.dist(p, q) ** 2 for q in second] for p in first]
        np.testing.assert_allclose(squared_distances(first, second), expected, rtol=1e-12, atol=1e-13 * d * scale**2)


@given(seed=st.integers(0, 10**6), d=st.integers(1, 30))
def test_squared_distances_of_nearly_equal_points_are_not_negative(seed, d):
    # catches: the root of what rounding has made less than zero
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (1, d)) + 1e-9 * rng.standard_normal((6, d))
    assert (squared_distances(x, x) >= 0.0).all()
    assert (squared_distances(x, x.copy()) >= 0.0).all()


@pytest.mark.parametrize("degree", range(1, 10))
@pytest.mark.parametrize("warped", [True, False])
def test_cylindrical_kernel_is_the_double_loop_over_radii_and_cosines(degree, warped):
    rng = np.random.default_rng(degree)
    for d in (1, 2, 20):
        x1, x2 = ball_points(rng, 6, d, math.sqrt(d)), ball_points(rng, 4, d, math.sqrt(d))
        models = brute_force.random_models(rng, 3, math.sqrt(d), degree=degree, warped=warped)
        kernel = Cylindrical(math.sqrt(d))
        h = brute_force.hyperparameters(models)
        found = correlation(kernel, kernel.relate(x1, x2), h)
        for i, model in enumerate(models):
            expected = model.cross([split(p) for p in x1], [split(p) for p in x2]) / model.amplitude
            np.testing.assert_allclose(found[i], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("d", [2, 20])
@pytest.mark.parametrize("degree", [1, 3, 9])
def test_cylindrical_kernel_agrees_with_gpytorch_away_from_the_centre(gpytorch, d, degree):
    """gpytorch has the unit ball, weights that carry the amplitude, and a small eps inside the warp."""
    rng = np.random.default_rng(10 * d + degree)
    radius = math.sqrt(d)
    x = rng.standard_normal((12, d))
    x *= radius * rng.uniform(0.1, 0.95, (12, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
    kernel = Cylindrical(radius)
    for model in brute_force.random_models(rng, 3, radius, degree=degree, x_scale=radius / 2):
        base = gpytorch.kernels.MaternKernel(nu=2.5)
        oracle = gpytorch.kernels.CylindricalKernel(degree + 1, base, eps=1e-13).double()
        oracle.alpha, oracle.beta = torch.tensor(model.warp, dtype=torch.float64)  # floats would become float32
        oracle.angular_weights = torch.tensor(model.weights, dtype=torch.float64)
        oracle.radial_base_kernel.lengthscale = torch.tensor(model.lengthscale / radius, dtype=torch.float64)
        with torch.no_grad():
            expected = oracle(torch.from_numpy(x / radius)).to_dense()
        np.testing.assert_allclose(gram(kernel, x, [model])[0], expected, atol=1e-10)


def test_matern52_is_the_general_matern_at_nu_five_halves():
    z = np.concatenate([np.logspace(-3, 2, 60), [1.0]])
    s = math.sqrt(5.0) * z
    expected = 2.0 ** (1 - 2.5) / math.gamma(2.5) * s**2.5 * scipy.special.kv(2.5, s)
    np.testing.assert_allclose(matern52(z), expected, rtol=1e-12)
    before = z.copy()
    matern52(z), matern52_slope(z)
    assert np.array_equal(z, before)  # arguments are never modified
    assert matern52(np.zeros(1))[0] == 1.0


@pytest.mark.parametrize("d", [1, 2, 20, 500])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_matern_kernel_agrees_with_gpytorch(gpytorch, d, scale):
    rng = np.random.default_rng(d)
    x1, x2 = (scale * rng.standard_normal((n, d)) for n in (7, 5))
    lengthscale = scale * math.sqrt(d) * 0.4
    oracle = gpytorch.kernels.MaternKernel(nu=2.5).double()
    oracle.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)  # a float would become float32
    kernel = Matern(scale * math.sqrt(d))
    model = brute_force.Matern(1.0, 1.0, 0.1, lengthscale, 0.0)
    found = correlation(kernel, kernel.relate(x1, x2), brute_force.hyperparameters([model]))[0]
    with torch.no_grad():
        np.testing.assert_allclose(
            found, oracle(torch.from_numpy(x1), torch.from_numpy(x2)).to_dense(), rtol=1e-9, atol=1e-12
        )
    expected = model.cross([(None, p) for p in x1.tolist()], [(None, p) for p in x2.tolist()])
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


def test_matern_kernel_of_a_point_with_itself_is_one_and_its_gradient_zero():
    x = np.array([[0.3, -0.7], [1e-4, 1.0]])
    kernel = Matern(1.0)
    h = brute_force.hyperparameters([brute_force.Matern(1.0, 1.0, 0.1, 0.5, 0.0)])
    relation = kernel.relate(x.copy(), x)
    value = correlation(kernel, relation, h)[0].diagonal()
    slope = kernel.euclidean_slope(relation.t, h)[0].diagonal()
    np.testing.assert_allclose(value, 1.0, rtol=1e-14)
    np.testing.assert_allclose(slope, -5.0 / 3.0 / 0.5**2, rtol=1e-6)  # a number, times the difference 0


@pytest.mark.parametrize("d", [1, 2, 20, 500])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_relations_are_distances_for_the_matern_and_radii_with_cosines_for_the_cylinder(d, scale):
    rng = np.random.default_rng(d)
    x1, x2 = (scale * rng.standard_normal((n, d)) for n in (7, 5))
    norms = [np.linalg.norm(x, axis=1) for x in (x1, x2)]
    for kernel in (Matern(1.0), Cylindrical(1.0)):
        r1, r2, t = kernel.relate(x1, x2)
        np.testing.assert_allclose(r1, norms[0], rtol=1e-13)
        np.testing.assert_allclose(r2, norms[1], rtol=1e-13)
        if kernel.has_center:
            np.testing.assert_allclose(t, x1 @ x2.T / np.outer(*norms), rtol=1e-11, atol=1e-14)
        else:
            np.testing.assert_allclose(t, np.linalg.norm(x1[:, None] - x2, axis=-1), rtol=1e-9)


@pytest.mark.parametrize("radius", [1.0, 1e-3, 1e3, math.sqrt(500)])
def test_kumaraswamy_is_its_closed_form_in_many_digits(radius):
    rng = np.random.default_rng(0)
    u = np.concatenate([[0.0, 1e-12, 1e-3, 1 - 1e-9, 1.0], rng.random(20)])
    alpha, beta = 2.0 ** rng.uniform(-1, 1, 5), 2.0 ** rng.uniform(-1, 1, 5)
    found = kumaraswamy(radius * u, radius, alpha, beta)
    assert found.shape == (5, 25)
    for s in range(5):
        for j, value in enumerate(radius * u):
            with mpmath.workdps(40):
                v = min(mpmath.mpf(float(value)) / mpmath.mpf(radius), mpmath.mpf(1))
                expected = radius * (1 - (1 - v ** float(alpha[s])) ** float(beta[s]))
            assert found[s, j] == pytest.approx(float(expected), rel=1e-7, abs=1e-13 * radius)


def test_kumaraswamy_fixes_both_ends_and_clips_beyond_the_rim():
    found = kumaraswamy(np.array([0.0, 3.0, 3.0000001, 30.0]), 3.0, np.array([0.5]), np.array([2.0]))
    assert found.tolist() == [[0.0, 3.0, 3.0, 3.0]]


@given(log2_alpha=st.floats(-1.0, 0.0), log2_beta=st.floats(0.0, 1.0))
def test_warp_rises_and_is_concave_for_alpha_below_and_beta_above_one(log2_alpha, log2_beta):
    u = np.linspace(0.0, 1.0, 401)
    (w,) = kumaraswamy(u, 1.0, np.array([2.0**log2_alpha]), np.array([2.0**log2_beta]))
    assert (np.diff(w) >= 0.0).all()
    assert (np.diff(w, 2) <= 1e-14).all()
    assert (w >= u - 1e-14).all()  # concave with both ends fixed: the centre is stretched, the rim compressed


@pytest.mark.parametrize("degree", range(1, 10))
def test_angular_kernel_is_the_polynomial(degree):
    rng = np.random.default_rng(degree)
    t = np.concatenate([[-1.0, 0.0, 1.0], rng.uniform(-1, 1, 9)]).reshape(3, 4)
    weights = rng.dirichlet(np.ones(degree + 1), 3)
    found = angular(t, weights)
    for s in range(3):
        np.testing.assert_allclose(found[s], np.polynomial.Polynomial(weights[s])(t), rtol=1e-13, atol=1e-15)
        assert found[s, 0, 2] == pytest.approx(1.0)  # weights on the simplex: the angle carries no amplitude


@pytest.mark.parametrize("d", [1, 2, 20, 500])
@pytest.mark.parametrize("warped", [True, False])
def test_kernel_matrix_is_symmetric_with_unit_diagonal_and_no_negative_eigenvalue(d, warped):
    rng = np.random.default_rng(d)
    for degree in range(1, 10):
        x = ball_points(rng, 25, d, math.sqrt(d))
        x[5] = x[6]  # two equal points
        x[7] = -x[8]
        models = brute_force.random_models(rng, 2, math.sqrt(d), degree=degree, warped=warped)
        for K in gram(Cylindrical(math.sqrt(d)), x, models):
            np.testing.assert_allclose(K, K.T, rtol=1e-14, atol=1e-16)
            np.testing.assert_allclose(K.diagonal(), 1.0, rtol=1e-13)
            assert np.linalg.eigvalsh(K).min() > -1e-13 * len(K)
        isotropic = [brute_force.Matern(1.0, 1.0, 0.1, math.sqrt(d) / 2, 0.0)]
        assert np.linalg.eigvalsh(gram(Matern(math.sqrt(d)), x, isotropic)[0]).min() > -1e-12


@pytest.mark.parametrize("d", [2, 20])
@pytest.mark.parametrize("kind", [Cylindrical, Matern])
def test_kernels_do_not_see_rotations_nor_reflections(d, kind):
    rng = np.random.default_rng(d)
    x = ball_points(rng, 12, d, math.sqrt(d))
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    models = brute_force.random_models(rng, 2, math.sqrt(d))
    kernel = kind(math.sqrt(d))
    np.testing.assert_allclose(gram(kernel, x @ rotation.T, models), gram(kernel, x, models), rtol=1e-9, atol=1e-12)


def test_radial_kernel_towards_the_centre_is_the_matern_of_the_warped_radius():
    rng = np.random.default_rng(1)
    models = brute_force.random_models(rng, 4, 2.0)
    r = np.array([1e-9, 0.3, 1.7, 2.0])
    found = Cylindrical(2.0).radial(np.zeros(1), r, brute_force.hyperparameters(models))
    for s, model in enumerate(models):
        np.testing.assert_allclose(found[s, 0], [model.matern(model.warped(v)) for v in r], rtol=1e-13)


def test_warped_radii_come_in_lengthscales():
    rng = np.random.default_rng(2)
    r = np.array([0.0, 1e-9, 0.3, 1.7, 2.0])
    for warped in (True, False):
        models = brute_force.random_models(rng, 4, 2.0, warped=warped)
        found = Cylindrical(2.0).warp(r, brute_force.hyperparameters(models))
        for s, model in enumerate(models):
            expected = [model.warped(v) / model.lengthscale for v in r]
            np.testing.assert_allclose(found[s], expected, rtol=1e-13, atol=1e-15)


def central(f, x, step):
    """Differences of the fourth order; `step` may be one per entry."""
    return (8 * (f(x + step) - f(x - step)) - (f(x + 2 * step) - f(x - 2 * step))) / (12 * step)


@pytest.mark.parametrize("radius", [1.0, 1e-3, 1e3, math.sqrt(500)])
def test_slope_of_the_warp_matches_finite_differences(radius):
    rng = np.random.default_rng(3)
    u = np.array([1e-3, 0.01, 0.1, 0.3, 0.5, 0.77, 0.95, 0.99])
    alpha, beta = 2.0 ** rng.uniform(-1, 1, 6), 2.0 ** rng.uniform(-1, 1, 6)
    alpha[0] = beta[0] = 1.0
    found = kumaraswamy_slope(radius * u, radius, alpha, beta)
    step = 1e-3 * radius * np.minimum(u, 1 - u)
    expected = central(lambda r: kumaraswamy(r, radius, alpha, beta), radius * u, step)
    assert found.shape == (6, 8)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    np.testing.assert_allclose(found[0], 1.0, rtol=1e-13)


def test_slope_of_the_warp_is_its_closed_form_in_many_digits():
    rng = np.random.default_rng(4)
    u = np.concatenate([[1e-12, 1e-3, 1 - 1e-9], rng.random(20)])
    alpha, beta = 2.0 ** rng.uniform(-1, 0, 5), 2.0 ** rng.uniform(0, 1, 5)
    found = kumaraswamy_slope(3.0 * u, 3.0, alpha, beta)
    for s in range(5):
        for j, value in enumerate(3.0 * u):
            with mpmath.workdps(40):
                warp = lambda r: 1 - (1 - (r / 3) ** float(alpha[s])) ** float(beta[s])  # noqa: B023, E731
                expected = 3 * mpmath.diff(warp, mpmath.mpf(float(value)), h=mpmath.mpf(10) ** -25)
            assert found[s, j] == pytest.approx(float(expected), rel=1e-6)


def test_slope_of_the_warp_is_zero_beyond_the_rim():
    r = np.array([3.0000001, 30.0])
    assert kumaraswamy_slope(r, 3.0, np.array([0.5, 1.0]), np.array([2.0, 1.0])).tolist() == [[0.0, 0.0]] * 2
    at_rim = kumaraswamy_slope(np.array([3.0]), 3.0, np.array([0.5, 1.0]), np.array([2.0, 1.0]))
    assert at_rim.tolist() == [[0.0], [1.0]]


def test_slope_of_the_matern_is_its_derivative_divided_by_the_distance():
    z = np.logspace(-2, 1.5, 50)
    np.testing.assert_allclose(matern52_slope(z) * z, central(matern52, z, 1e-3 * np.minimum(z, 1.0)), rtol=1e-8)
    assert matern52_slope(np.zeros(1))[0] == pytest.approx(-5.0 / 3.0, rel=1e-15)
    for value in (1e-9, 0.01, 1.0, 20.0):
        with mpmath.workdps(40):
            s = mpmath.sqrt(5) * mpmath.mpf(value)
            expected = (
                mpmath.diff(lambda t: (1 + t + t * t / 3) * mpmath.exp(-t), s) * mpmath.sqrt(5) / mpmath.mpf(value)
            )
        assert matern52_slope(np.array([value]))[0] == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("degree", range(1, 10))
def test_slope_of_the_angular_kernel_is_that_of_the_polynomial(degree):
    rng = np.random.default_rng(degree)
    t = np.concatenate([[-1.0, 0.0, 1.0], rng.uniform(-1, 1, 9)]).reshape(3, 4)
    weights = rng.dirichlet(np.ones(degree + 1), 3)
    found = angular_slope(t, weights)
    assert found.shape == (3, 3, 4)
    np.testing.assert_allclose(found, central(lambda v: angular(v, weights), t, 1e-3), rtol=1e-8, atol=1e-9)
    for s in range(3):
        polynomial = np.polynomial.Polynomial(weights[s]).deriv()
        np.testing.assert_allclose(found[s], polynomial(t), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("warped", [True, False])
def test_slope_of_the_radial_kernel_matches_finite_differences(warped):
    rng = np.random.default_rng(5)
    kernel = Cylindrical(2.0)
    h = brute_force.hyperparameters(brute_force.random_models(rng, 4, 2.0, warped=warped))
    r1 = np.array([1e-3, 0.02, 0.3, 0.9, 1.4, 1.9])
    r2 = np.array([0.0, 0.3, 1.0, 2.0])  # the centre, an equal radius, the rim
    found = kernel.radial_slope(r1, r2, h)
    assert found.shape == (4, 6, 4)
    step = 1e-3 * np.minimum(r1, 2.0 - r1)
    for i in range(6):
        expected = central(lambda r: kernel.radial(r, r2, h), r1[i : i + 1], step[i])
        np.testing.assert_allclose(found[:, i : i + 1], expected, rtol=1e-7, atol=1e-8)
    assert (found[:, 2, 1] == 0.0).all()  # flat where the radii are equal
    assert (found[:, :, 0] < 0.0).all()  # falls away from the centre


@pytest.mark.parametrize("warped", [True, False])
def test_slope_of_the_warped_radius_matches_finite_differences(warped):
    rng = np.random.default_rng(6)
    kernel = Cylindrical(2.0)
    h = brute_force.hyperparameters(brute_force.random_models(rng, 4, 2.0, warped=warped))
    r = np.array([1e-3, 0.02, 0.3, 0.9, 1.4, 1.9])
    expected = central(lambda v: kernel.warp(v, h), r, 1e-3 * np.minimum(r, 2.0 - r))
    np.testing.assert_allclose(kernel.warp_slope(r, h), expected, rtol=1e-8)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_slope_of_the_isotropic_kernel_times_the_difference_is_the_gradient(d):
    rng = np.random.default_rng(d)
    kernel = Matern(math.sqrt(d))
    h = brute_force.hyperparameters([brute_force.Matern(1.0, 1.0, 0.1, v, 0.0) for v in (0.3, 1.0, 4.0)])
    x1, x2 = rng.uniform(-1, 1, (4, d)), rng.uniform(-1, 1, (3, d))
    slope = kernel.euclidean_slope(kernel.relate(x1, x2).t, h)  # (s, n, m)
    for j in range(d):
        axis = np.eye(d)[j]

        def along(t, axis=axis):
            return correlation(kernel, kernel.relate(x1 + t * axis, x2), h)

        expected = central(along, 0.0, 1e-3)
        np.testing.assert_allclose(slope * (x1[:, None, j] - x2[:, j]), expected, rtol=1e-6, atol=1e-8)
