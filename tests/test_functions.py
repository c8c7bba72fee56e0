import math
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import torch

from cylbo.bench.functions import (
    BASES,
    FUNCTIONS,
    PROBLEMS,
    ackley,
    branin,
    check_dimension,
    hartmann6,
    levy,
    michalewicz,
    problem,
    rastrigin,
    rosenbrock,
    rosenbrock_raw,
    styblinski_tang,
)

OWN = [name for name in PROBLEMS if not name.startswith("bbob-")]
SEPARABLE = ("rastrigin", "styblinski-tang", "michalewicz")


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


@pytest.mark.parametrize("name", OWN)
def test_functions_take_any_leading_axes(name):
    p = problem(name, 12)
    x = np.random.default_rng(1).uniform(-1, 1, (2, 3, 12))
    together = p.function(x)
    assert together.shape == (2, 3)
    np.testing.assert_allclose(together, [[p(row) for row in block] for block in x], rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5, 20, 100])
def test_the_usual_functions_are_botorchs(oracle, d):
    x = np.random.default_rng(d).uniform(-1.0, 1.0, (20, d))
    np.testing.assert_allclose(ackley(x), evaluate(oracle.Ackley(dim=d), 32.768 * x), rtol=1e-9)
    np.testing.assert_allclose(rastrigin(x), evaluate(oracle.Rastrigin(dim=d), 5.12 * x), rtol=1e-9)
    np.testing.assert_allclose(styblinski_tang(x), evaluate(oracle.StyblinskiTang(dim=d), 5 * x), rtol=1e-9, atol=1e-9)
    if d in (2, 5):  # in others it refuses, as it does not know the optimum
        u = (x + 1) * math.pi / 2
        np.testing.assert_allclose(michalewicz(x), evaluate(oracle.Michalewicz(dim=d), u), rtol=1e-9, atol=1e-15)


def test_the_usual_functions_have_the_values_of_the_literature():
    ones = np.ones(7)
    assert ackley(ones / 32.768) == pytest.approx(20 * (1 - math.exp(-0.2)), rel=1e-12)  # 3.62538...
    assert rastrigin(3 * ones / 5.12) == pytest.approx(7 * 9, rel=1e-12)  # whole numbers have cosine 1
    assert rastrigin(ones / 2 / 5.12) == pytest.approx(7 * 20.25, rel=1e-12)
    assert styblinski_tang(ones / 5) == pytest.approx(7 * -5, rel=1e-12)
    assert michalewicz(2 * np.array([2.20, 1.57]) / math.pi - 1) == pytest.approx(-1.8013, abs=2e-4)
    assert rosenbrock_raw(np.zeros(20)) == pytest.approx(26761.5, rel=1e-12)


@pytest.mark.parametrize("twin", ["", "-shifted", "-rotated"])
@pytest.mark.parametrize(
    ("name", "d", "expected", "accuracy"),
    [
        ("ackley", 9, 0.0, 0.0),
        ("rastrigin", 9, 0.0, 0.0),
        ("rosenbrock-raw", 9, 0.0, 0.0),
        ("styblinski-tang", 1, -39.16616570377142, 1e-13),
        ("styblinski-tang", 10, -391.6616570377142, 1e-12),
        ("michalewicz", 2, -1.8013034100985532, 1e-15),
        ("michalewicz", 5, -4.687658, 5e-7),
        ("michalewicz", 10, -9.66015, 5e-6),
    ],
)
def test_minimum_is_the_published_one(name, d, expected, accuracy, twin):
    assert problem(name + twin, d).minimum == pytest.approx(expected, abs=accuracy)


@pytest.mark.parametrize("i", [1, 2, 3, 7, 40, 150])
def test_every_coordinate_of_michalewicz_is_where_a_fine_grid_has_its_lowest_place(i):
    u = np.linspace(0, math.pi, 1_000_001)
    terms = -np.sin(u) * np.sin(i * u**2 / math.pi) ** 20
    x = problem("michalewicz", i).minimizer
    before = problem("michalewicz", i - 1).minimum if i > 1 else 0.0
    assert (x[-1] + 1) * math.pi / 2 == pytest.approx(u[terms.argmin()], abs=4e-6)
    assert problem("michalewicz", i).minimum - before <= terms.min() + 1e-13


@pytest.mark.parametrize("name", SEPARABLE)
def test_nothing_far_outside_of_the_box_is_lower(name):
    """Along each coordinate by itself: enough where the function is a sum over them."""
    p = problem(name, 3)
    t = np.linspace(-30.0, 30.0, 200_001)
    for i in range(3):
        line = np.tile(p.minimizer, (len(t), 1))
        line[:, i] = t
        assert p.function(line).min() >= p.minimum - 1e-9


@pytest.mark.parametrize("name", OWN)
def test_no_search_finds_less_than_the_minimum(name):
    d = 7 if "hartmann6" in name else 3
    for instance in range(2):
        p = problem(name, d, instance)
        assert p(p.minimizer) == pytest.approx(p.minimum, abs=1e-12)
        assert p.minimizer.shape == (d,)
        assert (np.abs(p.minimizer) <= 1.0).all()
        rng = np.random.default_rng(instance)
        anywhere = rng.uniform(-3.0, 3.0, (20_000, d))
        values = p.function(anywhere)
        assert values.min() >= p.minimum - 1e-9
        near = p.minimizer + 0.02 * rng.standard_normal((2, d))
        for start in (*near, *anywhere[values.argsort()[:2]]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # steps of the search into flat regions
                found = scipy.optimize.minimize(p, start, method="Nelder-Mead", options={"maxfev": 400})
                found = scipy.optimize.minimize(p, found.x, method="BFGS")
            assert found.fun >= p.minimum - 1e-9


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("d", [6, 20])
def test_twins_are_the_function_at_the_translated_and_turned_point(base, d):
    function, plain = BASES[base][0], problem(base, d)
    shifted, rotated = problem(f"{base}-shifted", d, 3), problem(f"{base}-rotated", d, 3)
    Q = rotated.function.rotation
    np.testing.assert_allclose(Q @ Q.T, np.eye(d), atol=1e-13)
    for x in np.random.default_rng(0).uniform(-1, 1, (10, d)):
        translated = plain.minimizer + (x - shifted.minimizer)
        assert shifted(x) == pytest.approx(float(function(translated)), rel=1e-9)
        turned = [plain.minimizer[i] + math.fsum(Q[i] * (x - rotated.minimizer)) for i in range(d)]
        assert rotated(x) == pytest.approx(float(function(turned)), rel=1e-8)
        assert rotated(x) != pytest.approx(shifted(x), rel=1e-6)
    np.testing.assert_array_equal(shifted.minimizer, rotated.minimizer)


def test_places_are_uniform_and_rotations_are_without_preference():
    """In the plane the first entry of a uniform rotation is the cosine of a uniform angle: its law is the arcsine."""
    twins = [problem("ackley-rotated", 2, instance) for instance in range(400)]
    places = np.concatenate([p.minimizer for p in twins])
    cosines = [p.function.rotation[0, 0] for p in twins]
    assert scipy.stats.kstest(places, scipy.stats.uniform(-1, 2).cdf).pvalue > 0.01
    assert scipy.stats.kstest(cosines, scipy.stats.arcsine(-1, 2).cdf).pvalue > 0.01
    assert {round(float(np.linalg.det(p.function.rotation))) for p in twins} == {-1, 1}


@pytest.mark.parametrize(("base", "effective"), [("branin", 2), ("hartmann6", 6)])
def test_sparse_problems_depend_on_a_few_coordinates_only(base, effective):
    sparse = [problem(f"{base}-sparse", 50, instance) for instance in range(20)]
    for p in sparse:
        x = np.random.default_rng(0).uniform(-0.2, 0.2, 50) + p.minimizer
        active = {i for i, nudge in enumerate(0.1 * np.eye(50)) if p(x + nudge) != p(x)}
        assert active == set(p.function.coordinates.tolist())
        assert len(active) == effective
    drawn = {i for p in sparse for i in p.function.coordinates.tolist()}
    assert len(drawn) > (40 if effective == 6 else 20)  # 20 draws of 6 leave out 50 (44/50)^20 = 4 of 50; of 2, 22


def test_a_sparse_problem_is_the_small_one_translated():
    p = problem("hartmann6-sparse", 30, 2)
    c = p.function.coordinates
    for x in np.random.default_rng(0).uniform(-1, 1, (10, 30)):
        expected = float(hartmann6(x[c] - p.minimizer[c] + problem("hartmann6", 6).minimizer))
        assert p(x) == pytest.approx(expected, rel=1e-9)


def test_a_twin_is_the_same_in_another_process():
    program = """
import numpy as np
from cylbo.bench.functions import PROBLEMS, problem
for name in PROBLEMS:
    if not name.startswith("bbob-"):
        p = problem(name, 8, 5)
        print(repr((name, p.at_center, p.minimizer.tolist())))
"""
    environment = os.environ | {"PYTHONHASHSEED": "1"}  # one that would show a use of hash()
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    here = [repr((p.name, p.at_center, p.minimizer.tolist())) for p in (problem(name, 8, 5) for name in OWN)]
    assert done.stdout.splitlines() == here


@pytest.mark.parametrize("name", [name for name in OWN if name not in BASES])
def test_instances_and_dimensions_are_drawn_anew(name):
    first, second = problem(name, 12, 0), problem(name, 12, 1)
    assert not np.isclose(first.minimizer, second.minimizer).any() or name.endswith("sparse")
    assert first.at_center != second.at_center
    assert problem(name, 12).at_center == first.at_center
    assert not np.array_equal(problem(name, 13).minimizer[:12], first.minimizer)


@pytest.mark.parametrize("name", OWN)
def test_a_problem_survives_pickling(name):
    p = problem(name, 9, 1)
    x = np.random.default_rng(0).uniform(-1, 1, 9)
    assert pickle.loads(pickle.dumps(p))(x) == p(x)


def test_the_lab_has_all_twins_under_distinct_names():
    assert len(set(PROBLEMS)) == len(PROBLEMS) == 9 * 3 + 2 + 2 * 24
    assert list(PROBLEMS[:4]) == list(FUNCTIONS)


def test_unknown_names_and_too_few_dimensions_are_refused():
    with pytest.raises(ValueError, match=r"function must be one of 'branin', .* to 'bbob-f24', .* got 'akley'"):
        problem("akley", 3)
    with pytest.raises(ValueError, match=r"got 'ackley-sparse'"):
        problem("ackley-sparse", 3)
    with pytest.raises(ValueError, match="hartmann6 needs at least 6 dimensions, got 5"):
        problem("hartmann6", 5)
    with pytest.raises(ValueError, match="hartmann6-sparse needs at least 6 dimensions, got 5"):
        check_dimension("hartmann6-sparse", 5)
    with pytest.raises(ValueError, match="instance must be 0 or more, got -1"):
        problem("branin-shifted", 5, -1)
    check_dimension("hartmann6-sparse", 6)
