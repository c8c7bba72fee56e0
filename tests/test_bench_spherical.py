"""The linear kernel on the sphere, and a run with it."""

import warnings
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("botorch")

from cylbo.bench.methods import botorch, sobol, spherical  # noqa: E402
from cylbo.bench.methods.method import Method  # noqa: E402
from cylbo.bench.objective import Objective  # noqa: E402

OPTIMUM = np.linspace(-0.7, 0.7, 10)


def bowl(x):
    return float(((x - OPTIMUM) ** 2).sum())


def run(function, budget, search=None):
    """With a fit cut short: its last thousands of iterations are most of the cost and not needed here."""
    quick = partial(botorch.search, fit=partial(spherical.linear_regression, iterations=60))
    objective = Objective(function, 10, budget)
    Method("", "", "", search or quick).spend(objective, 0)
    return objective


def kernel(dim, seed=0):
    """With parameters far from their start."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # GPyTorch calls what torch deprecates
        k = spherical.kernel(dim).double()
    k.lengthscale = torch.from_numpy(rng.lognormal(size=dim))
    with torch.no_grad():
        k.raw_slope.fill_(rng.normal())
        k.raw_scale.fill_(rng.normal())
    return k


def points(n, dim, seed=1):
    """The centre and two opposite corners are among them."""
    x = np.random.default_rng(seed).random((n, dim))
    x[:3] = np.array([0.5, 0.0, 1.0])[:, None]
    return torch.from_numpy(x)


def naive(k, p, q):
    """One entry of the kernel matrix from the formula, for points (d,)."""
    l = k.lengthscale.detach().numpy()[0]  # noqa: E741
    a = np.sqrt(1 / (1 + np.exp(-k.raw_scale.item())) * sum((0.5 / s) ** 2 for s in l))
    b1 = 1 / (1 + np.exp(-k.raw_slope.item()))

    def project(x):
        z = (x - 0.5) / (a * l)
        return np.array([*(2 * z), z @ z - 1]) / (z @ z + 1)

    return 1 - b1 + b1 * project(p) @ project(q)


@pytest.mark.parametrize("scale", [0.0, 1e-6, 1.0, 1e6])
def test_projected_points_lie_on_the_unit_sphere(scale):
    z = scale * torch.randn(50, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p = spherical.stereographic(z)
    assert p.shape == (50, 8)
    np.testing.assert_allclose(p.norm(dim=-1), 1.0, rtol=1e-12)


def test_the_inner_product_is_a_cylindrical_kernel_of_degree_one():
    """P(z)^T P(z') = cos t cos t' + sin t sin t' u.u' with t = 2 arctan |z| and u = z / |z|."""
    rng = np.random.default_rng(0)
    z1, z2 = rng.standard_normal((2, 40, 5)) * rng.lognormal(sigma=2, size=(2, 40, 1))
    r1, r2 = np.linalg.norm(z1, axis=1), np.linalg.norm(z2, axis=1)
    t1, t2 = 2 * np.arctan(r1), 2 * np.arctan(r2)
    u = (z1 * z2).sum(1) / (r1 * r2)
    expected = np.cos(t1) * np.cos(t2) + np.sin(t1) * np.sin(t2) * u
    p1, p2 = (spherical.stereographic(torch.from_numpy(z)) for z in (z1, z2))
    np.testing.assert_allclose((p1 * p2).sum(-1), expected, atol=1e-12)


@pytest.mark.parametrize("dim", [1, 4, 30])
def test_the_kernel_is_the_formula(dim):
    k, x1, x2 = kernel(dim), points(6, dim), points(5, dim, seed=2)
    expected = [[naive(k, p, q) for q in x2.numpy()] for p in x1.numpy()]
    np.testing.assert_allclose(k(x1, x2).to_dense().detach(), expected, rtol=1e-10)
    np.testing.assert_allclose(k(x1[:5], x2, diag=True).detach(), np.diag(expected), rtol=1e-10)


@pytest.mark.parametrize("dim", [2, 20])
def test_the_kernel_has_unit_diagonal_no_negative_eigenvalue_and_rank_of_at_most_two_more_than_the_dimension(dim):
    K = kernel(dim)(points(60, dim)).to_dense().detach().numpy()
    np.testing.assert_allclose(np.diag(K), 1.0, rtol=1e-12)
    eigenvalues = np.linalg.eigvalsh(K)[::-1]
    assert eigenvalues[-1] > -1e-12
    assert eigenvalues[dim + 2] < 1e-12 < eigenvalues[1]


def test_the_prior_of_the_length_scales_is_the_papers():
    """LogNormal(sqrt 2, sqrt 3) has its median at exp(sqrt 2), and the fit starts at its mode exp(sqrt 2 - 3)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        k = spherical.kernel(3)
    assert k.lengthscale_prior.icdf(torch.tensor(0.5)).item() == pytest.approx(np.exp(np.sqrt(2)), rel=1e-5)
    np.testing.assert_allclose(k.lengthscale.detach(), np.exp(np.sqrt(2) - 3), rtol=1e-5)


def test_a_run_begins_at_the_centre_stays_in_the_box_and_beats_sobol():
    objective = run(bowl, 30)
    x = np.array(objective.points)
    assert (x[0] == 0).all()
    assert x.shape == (30, 10)
    assert (np.abs(x) <= 1).all()
    assert min(objective.values) < 0.5 * min(run(bowl, 30, sobol.search).values)


def test_equal_values_do_not_end_the_run():
    assert len(run(lambda x: 3.0, 8).values) == 8
