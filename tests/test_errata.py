"""What the paper or its supplement says, what is true, and which of the two we do."""

import math

import numpy as np
import pytest
import scipy.special

import brute_force
from cylbo.bench.functions import levy, problem, rosenbrock
from cylbo.model.gp import correlation
from cylbo.model.hyperparameters import Layout, Priors
from cylbo.model.kernel import Cylindrical, Relation, kumaraswamy


@pytest.mark.parametrize(
    ("k", "eigenvalues"),
    [
        (0.9, (-0.0341, 0.1, 2.9341)),
        (0.5, (-0.1861, 0.5, 2.6861)),
        (0.0, (-0.4142, 1.0, 2.4142)),
        (-1.0, (-1.0, 2.0, 2.0)),
    ],
)
def test_theorem_of_the_supplement_is_false(k, eigenvalues):
    """It claims that the angular Gram matrix stays positive semidefinite with a centre as similar to every
    direction as each is to itself. Two directions of similarity k < 1 and the centre: determinant -(1 - k)^2.
    """
    M = np.array([[1.0, k, 1.0], [k, 1.0, 1.0], [1.0, 1.0, 1.0]])
    assert np.linalg.det(M) == pytest.approx(-((1.0 - k) ** 2), abs=1e-14)
    np.testing.assert_allclose(np.linalg.eigvalsh(M), eigenvalues, atol=6e-5)


def cylinder(r, a, *, d=20):
    """Our kernel for points at radii r in directions a; the authors' lengthscale, equal weights, P = 3."""
    r, a = np.array(r, dtype=float), np.array(a, dtype=float)
    model = brute_force.Model(math.sqrt(d), 1.0, 0.0, d**0.25, 0.0, weights=(0.25,) * 4)
    kernel = Cylindrical(math.sqrt(d))
    return correlation(kernel, Relation(r, r, a @ a.T), brute_force.hyperparameters([model]))[0]


SMALLEST = [(0.001, -0.295), (0.1, -0.292), (0.5, -0.233), (1.0, -0.075), (2.0, 0.33)]


@pytest.mark.parametrize(("r", "smallest"), SMALLEST)
def test_radial_factor_does_not_rescue_the_theorem(r, smallest):
    """Two orthogonal directions at radius r and the centre as the supplement sees it."""
    K = cylinder([r, r, 0.0], np.eye(3))
    claimed = K.copy()
    claimed[2, :2] = claimed[:2, 2] = cylinder([r, 0.0], [[1.0], [1.0]])[0, 1]
    assert np.linalg.eigvalsh(claimed).min() == pytest.approx(smallest, abs=6e-3 if r == 2.0 else 6e-4)


@pytest.mark.parametrize("r", [r for r, _ in SMALLEST])
def test_gram_matrix_that_the_method_really_uses_is_positive_semidefinite(r):
    """The centre has one direction at a time, that of the query: a genuine Gram matrix, whatever it is."""
    rng = np.random.default_rng(0)
    directions = [np.eye(3)[0], -np.eye(3)[0], np.eye(3)[2], *rng.standard_normal((20, 3))]
    for a in directions:
        K = cylinder([r, r, 0.0], np.stack([np.eye(3)[0], np.eye(3)[1], a / np.linalg.norm(a)]))
        assert np.linalg.eigvalsh(K).min() > -1e-14


def curvature(alpha, beta):
    (w,) = kumaraswamy(np.linspace(0.0, 1.0, 1001), 1.0, np.array([alpha]), np.array([beta]))
    assert (np.diff(w) >= 0.0).all()
    return np.diff(w, 2)


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 1.0), (1.0, 0.5), (2.0, 0.5), (1.3, 0.8)])
def test_signs_that_the_supplement_gives_the_warp_prior_make_a_convex_warp(alpha, beta):
    """log alpha >= 0 and log beta <= 0 stretch the rim, the opposite of what its text wants."""
    second = curvature(alpha, beta)
    assert (second >= -1e-13).all()
    assert (second > 1e-10).any()


def test_signs_that_we_give_the_warp_prior_make_a_concave_warp():
    layout = Layout(Priors(), 1.0, (0.0, 1.0), angular_degree=3, warped=True)
    low, high = layout.lower[2:4], layout.upper[2:4]
    for log_alpha in np.linspace(low[0], high[0], 6):
        for log_beta in np.linspace(low[1], high[1], 6):
            second = curvature(math.exp(log_alpha), math.exp(log_beta))
            assert (second <= 1e-13).all()
            if (log_alpha, log_beta) != (high[0], low[1]):  # no warp at all
                assert (second < -1e-10).any()


@pytest.mark.parametrize(
    ("d", "standard", "with_hundred", "literal"),
    [(20, 2.3510, 7.198, 3.41), (50, 5.0764, 17.58, 8.60), (100, 9.6186, 34.87, 17.25)],
)
def test_levy_of_the_tables_is_the_standard_one_and_not_the_supplements(d, standard, with_hundred, literal):
    """The supplement prints 100 for 10 and, a plus sign missing, a product; the tables have 2.35 and 9.62."""
    assert float(levy(np.zeros(d))) == pytest.approx(standard, abs=6e-5)
    w = 1 + (0.0 - 1) / 4
    first = math.sin(math.pi * w) ** 2
    middle = (d - 1) * (w - 1) ** 2 * (1 + 100 * math.sin(math.pi * w + 1) ** 2)
    last = (w - 1) ** 2 * (1 + math.sin(2 * math.pi * w) ** 2)
    assert first + middle + last == pytest.approx(with_hundred, rel=5e-4)
    assert first * middle + last == pytest.approx(literal, rel=2e-3)


@pytest.mark.parametrize(
    ("d", "unnormalised", "factor"),
    [(20, 26761.5, 3.10878), (50, 69016.5, 8.01738), (100, 139441.5, 16.19838)],
)
def test_rosenbrock_of_the_tables_has_a_normaliser_that_the_paper_does_not_mention(d, unnormalised, factor):
    assert float(rosenbrock(np.zeros(d))) == pytest.approx(8608.36, abs=5e-3)
    assert (d - 1) * (100 * (2.5 - 2.5**2) ** 2 + (2.5 - 1) ** 2) == pytest.approx(unnormalised)
    assert unnormalised / float(rosenbrock(np.zeros(d))) == pytest.approx(factor, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "d", "printed"),
    [
        ("rosenbrock", 20, "8608.36"),
        ("rosenbrock", 100, "8608.36"),
        ("levy", 20, "2.35"),
        ("levy", 100, "9.62"),
    ],
)
def test_constants_of_the_papers_table_are_the_value_at_the_centre(name, d, printed):
    """Printed with a spread of 0.00: these methods never improved on the first point that all were given."""
    assert f"{problem(name, d).at_center:.2f}" == printed


@pytest.mark.parametrize("d", [1, 2, 20, 500])
@pytest.mark.parametrize("radius", [1.0, math.sqrt(20.0)])
def test_volume_ratio_of_two_balls_depends_on_the_relative_width_of_the_shell(d, radius):
    """The paper has o((1 - delta)^D); it is (1 - delta R / R)^D."""

    def log_volume(r):
        return 0.5 * d * math.log(math.pi) + d * math.log(r) - scipy.special.gammaln(0.5 * d + 1)

    shell = 0.1
    ratio = math.exp(log_volume(radius - shell) - log_volume(radius))
    assert ratio == pytest.approx((1 - shell / radius) ** d, rel=1e-9)


def test_plain_kernel_evaluation_at_the_centre_would_lose_prior_variance():
    """With the zero vector for a direction, as in gpytorch, k(0, 0) is c_0 of the amplitude, not all."""
    assert cylinder([0.0], [[0.0, 0.0, 0.0]])[0, 0] == pytest.approx(0.25)
    assert cylinder([0.0], [[0.0, 1.0, 0.0]])[0, 0] == pytest.approx(1.0)
