import math
import warnings

import numpy as np
import pytest
import scipy.optimize
import torch

from cylbo.bench.functions import FUNCTIONS, branin, hartmann6, levy, problem, rosenbrock


@pytest.fixture(scope="module")
def oracle():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its import calls torch.jit.script
        from botorch.test_functions import synthetic
    return synthetic


def evaluate(function, u):
    """The oracle's formula, also outside of its box, where its public face refuses."""
    return function._evaluate_true(torch.from_numpy(u)).numpy()


def points(d, n=20):
    """Points of the cube and some outside of it, where the formulas are continued."""
    return np.random.default_rng(d).uniform(-1.2, 1.2, (n, d))


@pytest.mark.parametrize("d", [2, 3, 20, 101])
def test_branin_is_the_mean_over_pairs_and_an_odd_coordinate_is_a_dummy(oracle, d):
    x = points(d)
    u = 7.5 * x[:, : d // 2 * 2].reshape(20, -1, 2) + [2.5, 7.5]
    np.testing.assert_allclose(branin(x), evaluate(oracle.Branin(), u).mean(1), rtol=1e-9)


@pytest.mark.parametrize("d", [6, 11, 20, 50, 100])
def test_hartmann6_is_the_mean_over_blocks_and_the_rest_are_dummies(oracle, d):
    x = points(d)
    u = 0.5 * (x[:, : d // 6 * 6].reshape(20, -1, 6) + 1.0)
    np.testing.assert_allclose(hartmann6(x), evaluate(oracle.Hartmann(dim=6), u).mean(1), rtol=1e-6)


@pytest.mark.parametrize("d", [2, 5, 20, 100])
def test_rosenbrock_is_the_usual_one_times_the_authors_normaliser(oracle, d):
    x = points(d)
    raw = evaluate(oracle.Rosenbrock(dim=d), 7.5 * x + 2.5)
    np.testing.assert_allclose(rosenbrock(x), raw * 50000 / (8181 * (d - 1)), rtol=1e-9)
    np.testing.assert_allclose(rosenbrock(x[0]) * 8181 * (d - 1) / 50000, scipy.optimize.rosen(7.5 * x[0] + 2.5))


@pytest.mark.parametrize("d", [1, 2, 5, 20, 100])
def test_levy_is_the_standard_one(oracle, d):
    x = points(d)
    np.testing.assert_allclose(levy(x), evaluate(oracle.Levy(dim=d), 10.0 * x), rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "d", "expected"),
    [
        *(("branin", d, 24.1300) for d in (20, 50, 100)),
        *(("hartmann6", d, -0.505315) for d in (20, 50, 100)),
        *(("rosenbrock", d, 8608.36) for d in (20, 50, 100)),
        ("levy", 20, 2.3510),
        ("levy", 50, 5.0764),
        ("levy", 100, 9.6186),
    ],
)
def test_value_at_the_centre(name, d, expected):
    digits = len(str(expected).split(".")[1])
    assert problem(name, d).at_center == pytest.approx(expected, abs=0.51 * 10.0**-digits)


@pytest.mark.parametrize(
    ("name", "d", "expected", "rel"),
    [
        ("branin", 20, 1.2e3, 0.05),
        ("branin", 100, 8.5e3, 0.05),
        ("rosenbrock", 20, 5.4e7, 0.02),
        ("rosenbrock", 100, 2.2e8, 0.03),
        ("levy", 20, 7e2, 0.08),
        ("levy", 100, 9e2, 0.06),
    ],
)
def test_value_explodes_on_the_rim_outside_of_the_cube(name, d, expected, rel):
    x = np.zeros(d)
    x[0] = math.sqrt(d)
    assert problem(name, d)(x) == pytest.approx(expected, rel=rel)


@pytest.mark.parametrize(
    ("name", "expected"), [("branin", 0.397887), ("hartmann6", -3.32237), ("rosenbrock", 0.0), ("levy", 0.0)]
)
@pytest.mark.parametrize("d", [6, 20, 100])
def test_minimiser_has_the_published_minimum(name, expected, d):
    p = problem(name, d)
    assert p.minimum == pytest.approx(expected, abs=1e-5)
    assert p(p.minimizer) == p.minimum
    assert (np.abs(p.minimizer) <= 1.0).all()
    assert p.minimizer.shape == (d,)
    assert p.bounds.shape == (d, 2)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_better_lies_near_the_minimiser_nor_far_from_it(name):
    p = problem(name, 12)
    rng = np.random.default_rng(0)
    near = p.minimizer + 0.01 * rng.standard_normal((500, 12))
    anywhere = rng.uniform(-1.0, 1.0, (5000, 12))
    assert p.function(near).min() >= p.minimum - 1e-9
    assert p.function(anywhere).min() > p.minimum


@pytest.mark.parametrize("corner", [(-math.pi, 12.275), (math.pi, 2.275), (9.42478, 2.475)])
def test_branin_has_three_minimisers_of_the_same_value(corner):
    x = np.tile((np.array(corner) - [2.5, 7.5]) / 7.5, 10)
    assert float(branin(x)) == pytest.approx(0.397887, abs=1e-5)
    rms = {-math.pi: 0.697, math.pi: 0.496, 9.42478: 0.807}
    assert math.sqrt((x**2).mean()) == pytest.approx(rms[corner[0]], abs=6e-4)


def test_minimisers_lie_at_the_published_radii():
    def fraction(name):
        return math.sqrt(float((problem(name, 60).minimizer ** 2).mean()))

    assert fraction("rosenbrock") == pytest.approx(0.2)
    assert fraction("levy") == pytest.approx(0.1)
    assert fraction("hartmann6") == pytest.approx(0.464, abs=5e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_any_leading_axes(name):
    p = problem(name, 12)
    x = np.random.default_rng(1).uniform(-1, 1, (2, 3, 12))
    together = p.function(x)
    assert together.shape == (2, 3)
    np.testing.assert_allclose(together, [[p(row) for row in block] for block in x], rtol=1e-12)


def test_unknown_names_and_too_few_dimensions_are_refused():
    with pytest.raises(ValueError, match=r"function must be one of 'branin', .* got 'ackley'"):
        problem("ackley", 3)
    with pytest.raises(ValueError, match="hartmann6 needs at least 6 dimensions, got 5"):
        problem("hartmann6", 5)
