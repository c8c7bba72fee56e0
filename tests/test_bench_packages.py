"""The methods that come as packages: SMAC, hyperopt, Optuna, pycma, COBYQA, Py-BOBYQA and Nevergrad."""

import importlib.util
import json
import logging
import os
import random
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

from cylbo.bench.methods import cma, hyperopt, local, nevergrad, optuna, smac, sobol
from cylbo.bench.objective import Objective

for package in ("smac", "hyperopt", "optuna", "torch", "cma", "pybobyqa", "nevergrad"):
    pytest.importorskip(package)

FAMILIES = (smac, hyperopt, optuna, cma, local, nevergrad)
METHODS = {m.name: m for family in FAMILIES for m in family.METHODS}
# Enough to leave each method's random start behind: a quarter of the budget, 20, 10, 10 and none. COBYQA has a
# restart within its budget; the others of the last line have none, and so nothing random.
BUDGETS = {"smac": 12, "tpe": 24, "optuna-gp": 13, "optuna-tpe": 14, "cma": 40}
BUDGETS |= {"cobyqa": 30, "bobyqa": 30, "ngopt": 30}
SAME_FOR_ALL_SEEDS = ("bobyqa", "ngopt")
EACH = pytest.mark.parametrize("name", BUDGETS)


def sphere(x):
    return float(np.sum((x - 0.4) ** 2))


def run(name, function=sphere, *, dim=3, budget=None, seed=0):
    objective = Objective(function, dim, budget or BUDGETS[name])
    METHODS[name].spend(objective, seed)
    return objective


def global_state():
    _, key, position, *_ = np.random.get_state()  # noqa: NPY002 - the global generator is what is tested
    return key.tolist(), position, random.getstate()


@cache
def finished(name, seed):
    return run(name, seed=seed)


@EACH
def test_the_centre_comes_first_and_the_whole_budget_is_spent_inside_the_box(name):
    objective = finished(name, 0)
    points = np.array(objective.points)
    assert len(objective.values) == BUDGETS[name]
    assert not points[0].any()
    assert np.abs(points).max() <= 1.0
    assert len(np.unique(points, axis=0)) == len(points)


@EACH
def test_the_seed_alone_decides_and_nothing_is_written_printed_or_changed(name, tmp_path, monkeypatch, capfd):
    values = finished(name, 0).values
    monkeypatch.chdir(tmp_path)
    np.random.seed(7)  # noqa: NPY002 - else a run that seeds it would leave it as the run above did
    before = global_state()
    levels = {key: logging.getLogger(key).level for key in ("", "smac", "optuna", "hyperopt")}
    capfd.readouterr()
    assert run(name).values == values
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")
    assert global_state() == before
    assert {key: logging.getLogger(key).level for key in levels} == levels
    assert (finished(name, 1).values[1:] == values[1:]) is (name in SAME_FOR_ALL_SEEDS)


def test_a_fresh_process_with_other_string_hashes_repeats_every_run_in_silence():
    # SMAC orders its local searches by hash; and only here do messages reach the real streams, past pytest's handlers
    program = f"""
import json
from cylbo.bench.methods import METHODS
from cylbo.bench.objective import Objective
runs = {{name: Objective(lambda x: float(sum((x - 0.4) ** 2)), 3, budget) for name, budget in {BUDGETS}.items()}}
for name, objective in runs.items():
    METHODS[name].spend(objective, 0)
print(json.dumps({{name: [p.tolist() for p in o.points] for name, o in runs.items()}}))
"""
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, check=True)
    assert answer.stderr == b""
    points = json.loads(answer.stdout)
    assert points == {name: [p.tolist() for p in finished(name, 0).points] for name in BUDGETS}


@EACH
@pytest.mark.parametrize(
    "function",
    [
        lambda x: 3.0,
        lambda x: 1e300 if x[0] > 0.2 else sphere(x),  # one end of a huge range
        lambda x: -1e300 if x[0] <= 0.0 else 1e300,  # the best value, huge, many times
    ],
    ids=["constant", "cliff", "plateaus"],
)
def test_equal_and_huge_values_do_no_harm(name, function):
    assert run(name, function).left == 0


@EACH
@pytest.mark.parametrize("budget", [1, 2, 12])
def test_one_dimension_and_small_budgets_are_spent_too(name, budget):
    assert len(run(name, dim=1, budget=budget).values) == budget


@pytest.mark.parametrize(
    ("name", "budget"),
    [
        *(("smac", 40), ("tpe", 100), ("optuna-gp", 30), ("optuna-tpe", 100), ("cma", 100)),
        *(("cobyqa", 100), ("bobyqa", 100), ("ngopt", 100)),
    ],
)
def test_each_finds_an_optimum_beside_the_centre_better_than_sobol(name, budget):
    points = Objective(sphere, 10, budget)
    sobol.METHODS[0].spend(points, 1)
    assert min(run(name, dim=10, budget=budget, seed=1).values) < 0.75 * min(points.values)


def test_cma_starts_again_with_twice_the_population_when_it_has_converged():
    import cma as package

    sizes = []

    class Watched(package.CMAEvolutionStrategy):
        def __init__(self, *args):
            super().__init__(*args)
            sizes.append(self.popsize)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package, "CMAEvolutionStrategy", Watched)
        run("cma", lambda x: 0.0, budget=200)  # a flat function ends every run at once
    assert sizes[0] == int(4 + 3 * np.log(3))  # Hansen 2016, the default population
    assert len(sizes) > 2
    assert sizes == [sizes[0] * 2**i for i in range(len(sizes))]


def test_cma_leaves_the_global_generator_alone_in_many_dimensions_too():
    before = global_state()
    assert run("cma", dim=640, budget=600).left == 0
    assert global_state() == before


@EACH
def test_a_missing_package_is_named_as_pip_knows_it(name, monkeypatch):
    imported = {"tpe": "hyperopt", "optuna-gp": "optuna", "optuna-tpe": "optuna", "bobyqa": "pybobyqa"}
    imported = imported.get(name, "nevergrad" if name == "ngopt" else name)
    assert METHODS[name].missing == ()
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == imported else find(n))
    assert METHODS[name].missing == {"cobyqa": (), "bobyqa": ("Py-BOBYQA",)}.get(name, (imported,))


def test_cobyqa_begins_again_at_a_random_point_when_it_has_converged():
    points = {tuple(finished("cobyqa", seed).points[-1]) for seed in range(2)}
    assert len(points) == 2
    # A bowl is a quadratic function: it takes 2 d + 1 points to know it, and few more to end at its lowest point
    assert min(finished("cobyqa", 0).values[:20]) < 1e-10


def test_bobyqa_goes_on_after_it_has_converged_in_a_way_that_the_seed_decides():
    same, again, other = (run("bobyqa", dim=1, budget=600, seed=s) for s in (0, 0, 1))
    assert same.values == again.values != other.values
    assert np.abs(other.points).max() <= 1.0


def test_ngopt_names_the_budget_beyond_which_it_cannot_be_repeated():
    with pytest.raises(ValueError, match="at most 50 evaluations per dimension, got 151 in 3 dimensions"):
        run("ngopt", budget=151)
