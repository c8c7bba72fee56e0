"""The functions of COCO behind our interface. COCO itself is the oracle of what it knows."""

import concurrent.futures
import multiprocessing
import pickle
import sys

import numpy as np
import pytest
import scipy.optimize

cocoex = pytest.importorskip("cocoex")

from cylbo.bench.coco import COCO_NAMES, coco_function  # noqa: E402
from cylbo.bench.functions import check_dimension, problem  # noqa: E402

BBOB = [name for name in COCO_NAMES if "largescale" not in name]


def points(n, d):
    return np.random.default_rng(d).uniform(-1, 1, (n, d))


def evaluated(p_and_x):
    p, x = p_and_x
    return p(x)


def optimum_that_coco_writes_to_a_file(suite, number, dim, instance, folder, monkeypatch):
    """COCO's own x_opt, also of the large scale: its only way to tell it is a file in the working directory."""
    monkeypatch.chdir(folder)
    chosen = cocoex.Suite(suite, f"instances: {instance}", f"dimensions: {dim} function_indices: {number}")
    chosen.get_problem(0)._best_parameter("print")
    return np.loadtxt(folder / "._bbob_problem_best_parameter.txt") / 5


@pytest.mark.parametrize("name", COCO_NAMES)
def test_minimum_is_attained_where_coco_has_the_optimum(name, tmp_path, monkeypatch):
    suite, number = name.rsplit("-f", 1)
    for dim, instance in [(20, 0), (40, 14), (40, 30)]:
        p = problem(name, dim, instance)
        x = optimum_that_coco_writes_to_a_file(suite, int(number), dim, instance + 1, tmp_path, monkeypatch)
        assert (np.abs(x) <= 1.0).all()
        assert p(x) == pytest.approx(p.minimum, abs=1e-9)
        if suite == "bbob":
            np.testing.assert_allclose(p.minimizer, x, atol=1e-12)
        else:
            assert p.minimizer is None


@pytest.mark.parametrize("name", COCO_NAMES)
def test_values_are_finite_and_never_below_the_minimum(name):
    for dim in (20, 40):
        p = problem(name, dim, 2)
        values = p.function(np.vstack([points(200, dim), 1.5 * points(20, dim), np.zeros(dim)]))
        assert np.isfinite(values).all()
        assert values.min() > p.minimum
        assert p.at_center == values[-1]


@pytest.mark.parametrize("name", BBOB)
def test_no_search_from_near_the_minimiser_finds_less(name):
    p = problem(name, 3, 1)
    for offset in 0.01 * np.random.default_rng(0).standard_normal((5, 3)):
        found = scipy.optimize.minimize(p, p.minimizer + offset, method="Nelder-Mead", options={"maxfev": 500})
        assert found.fun >= p.minimum - 1e-9


@pytest.mark.parametrize("dim", [2, 20, 40])
def test_f1_is_the_sphere_of_the_scaled_box(dim):
    p = problem("bbob-f1", dim, 4)
    for x in points(10, dim):
        assert p(x) == pytest.approx(p.minimum + 25 * ((x - p.minimizer) ** 2).sum(), rel=1e-12)


@pytest.mark.parametrize("dim", [20, 40, 80, 640])
def test_f1_of_the_large_scale_is_the_same_divided_by_the_growth_beyond_40_dimensions(dim):
    """Elhara et al. 2019: the functions are multiplied by min(1, 40 / d). Its x_opt from differences: it is exact."""
    p = problem("bbob-largescale-f1", dim, 4)
    curvature = 25 * min(1.0, 40 / dim)
    slopes = (p.function(0.5 * np.eye(dim)) - p.function(-0.5 * np.eye(dim))) / 1.0
    optimum = -slopes / (2 * curvature)
    assert p(optimum) == pytest.approx(p.minimum, abs=1e-8)
    for x in points(3, dim):
        assert p(x) == pytest.approx(p.minimum + curvature * ((x - optimum) ** 2).sum(), rel=1e-10)


@pytest.mark.parametrize(("name", "dim"), [("bbob-f21", 10), ("bbob-largescale-f8", 80)])
def test_values_are_those_of_the_problem_that_coco_gives_for_this_name(name, dim):
    suite, number = name.rsplit("-f", 1)
    # of all functions and instances, but of one dimension, as COCO walks through a suite to find a problem in it
    whole = cocoex.Suite(suite, "instances: 1-15", f"dimensions: {dim}")
    for instance in (0, 6, 14):
        theirs = whole.get_problem_by_function_dimension_instance(int(number), dim, instance + 1)
        x = points(5, dim)
        np.testing.assert_array_equal(problem(name, dim, instance).function(x), [theirs(5 * row) for row in x])
        theirs.free()


def test_instances_differ_and_do_not_disturb_each_other():
    several = [problem("bbob-f15", 5, instance) for instance in range(20)]
    before = [p(np.full(5, 0.3)) for p in several]
    assert len(set(before)) == 20
    assert [p(np.full(5, 0.3)) for p in reversed(several)] == before[::-1]


def test_functions_take_any_leading_axes_and_refuse_another_dimension():
    p = problem("bbob-f3", 5)
    x = points(6, 5).reshape(2, 3, 5)
    np.testing.assert_array_equal(p.function(x), [[p(row) for row in block] for block in x])
    with pytest.raises(ValueError, match="dimension"):
        p(np.zeros(4))


def test_a_problem_works_in_a_process_that_did_not_make_it():
    p, x = problem("bbob-largescale-f8", 20, 3), points(4, 20)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(evaluated, [(p, row) for row in x])) == [p(row) for row in x]
    copy = pickle.loads(pickle.dumps(p))
    del p
    assert np.isfinite(copy(x[0]))


def test_nothing_is_printed_and_no_file_written(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for name in ("bbob-f5", "bbob-largescale-f24"):
        p = problem(name, 40, 16)
        p.function(points(50, 40))
        p(np.full(40, 3.0))
        del p
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_what_does_not_exist_is_refused_before_coco_sees_it():
    with pytest.raises(ValueError, match="bbob-f3 exists in 2, 3, 5, 10, 20, 40 dimensions, got 7"):
        problem("bbob-f3", 7)
    with pytest.raises(ValueError, match="bbob-largescale-f3 exists in 20, 40, 80, 160, 320, 640 dimensions, got 10"):
        check_dimension("bbob-largescale-f3", 10)
    with pytest.raises(ValueError, match="got 'bbob-f25'"):
        problem("bbob-f25", 20)
    with pytest.raises(ValueError, match="got 'bbob-f01'"):
        coco_function("bbob-f01", 20)
    with pytest.raises(ValueError, match="instance must be 0 or more, got -1"):
        coco_function("bbob-f1", 20, -1)


def test_a_missing_package_names_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "cocoex", None)
    with pytest.raises(ImportError, match=r"pip install 'cylbo\[bench\]'"):
        problem("bbob-f1", 20)
    check_dimension("bbob-f1", 20)
