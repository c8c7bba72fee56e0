"""The paper's rows and our own in the lab."""

import numpy as np
import pytest

from cylbo.bench.functions import problem
from cylbo.bench.methods import METHODS
from cylbo.bench.methods.ours import METHODS as OURS
from cylbo.bench.objective import Objective

NAMES = [method.name for method in OURS if method.name not in ("paper-p5", "paper-p7")]  # 9 stands for them


def spent(name, function, budget, seed=0):
    objective = Objective(function, function.dim, budget)
    METHODS[name].spend(objective, seed)
    return objective


@pytest.mark.parametrize("name", NAMES)
def test_each_begins_at_the_centre_spends_its_budget_and_improves_on_sobol(name):
    function = problem("styblinski-tang-shifted", 10, instance=1)
    objective = spent(name, function, 20)
    assert (objective.points[0] == 0).all()
    assert len(objective.values) == 20
    assert min(objective.values) < min(spent("sobol", function, 20).values)


@pytest.mark.parametrize("name", NAMES)
def test_the_papers_kernel_searches_the_ball_and_the_others_the_box(name):
    # A slope towards a corner of the box, whose best point in the ball lies outside of it
    function = problem("levy", 3)
    points = np.array(
        spent(name, type(function)("slope", 3, lambda x: np.sum(x * [3.0, 1.0, 0.1]), None, 0.0), 12).points
    )
    assert (np.linalg.norm(points, axis=-1) <= np.sqrt(3.0) + 1e-9).all()
    outside = (np.abs(points) > 1.0 + 1e-12).any()
    assert outside == name.startswith("paper")


def test_the_same_seed_gives_the_same_run_and_another_another():
    function = problem("levy-rotated", 5)
    first, again, other = (spent("default", function, 10, seed).values for seed in (0, 0, 1))
    assert first == again
    assert first != other
