"""What methods of the lab are given: points one by one or together, crashes, noise, named parameters."""

import math

import numpy as np
import pytest

import cylbo
from cylbo.bench.methods import METHODS
from cylbo.bench.objective import Objective, Spent
from cylbo.bench.problems import Task


def test_points_of_a_batch_are_all_suggested_before_one_is_told():
    asked_with_open = []

    def watched(objective):
        def evaluate(points):
            asked_with_open.append(len(points))
            return Objective.evaluate(objective, points)

        return evaluate

    objective = Objective(lambda x: float(x @ x), 2, 7, batch=3)
    objective.evaluate = watched(objective)
    METHODS["default"].spend(objective, 0)
    assert asked_with_open == [3, 3, 1]
    assert len(objective.values) == len(objective.seconds) == 7
    assert len(np.unique(objective.points, axis=0)) == 7


def test_a_batch_beyond_the_budget_is_cut_and_the_run_is_spent():
    objective = Objective(lambda x: 1.0, 1, 3)
    objective.evaluate([[0.0], [0.1]])
    with pytest.raises(Spent):
        objective.evaluate([[0.2], [0.3]])
    assert len(objective.values) == 3


def test_every_evaluation_is_observed_also_one_that_crashed():
    seen = []
    objective = Objective(lambda x: math.nan if x[0] > 0 else 2.0, 1, 3, lambda x, value, s: seen.append((x[0], value)))
    assert objective([0.0]) == 2.0
    assert math.isnan(objective([0.5]))
    np.testing.assert_array_equal(seen, [(0.0, 2.0), (0.5, math.nan)])


def test_a_best_point_is_asked_for_every_ten_evaluations_and_at_the_end_and_told_without_noise():
    told = []
    task = Task(lambda x: -100.0, truth=lambda x: float(x[0]), noise=1.0)
    objective = Objective(task, 1, 25, observe_best=lambda n, value: told.append((n, value)))
    for i in range(25):
        objective([i / 25])
        if objective.asks_for_best:
            objective.recommend([i / 50])
    assert told == objective.recommended == [(10, 9 / 50), (20, 19 / 50), (25, 24 / 50)]


def test_without_noise_no_best_point_is_asked_for():
    objective = Objective(lambda x: 0.0, 1, 10)
    assert not any(objective([0.0]) or objective.asks_for_best for _ in range(10))


def test_points_of_a_space_are_dicts_of_all_its_parameters():
    space = cylbo.Space(width=cylbo.Integer(1, 9), kind=cylbo.Categorical(["a", "b"]))
    objective = Objective(Task(lambda p: float(p["width"]), space=space), 2, 3)
    assert objective({"width": 4, "kind": "a"}) == 4.0
    with pytest.raises(ValueError, match=r"expected a dict with width, kind, got {'width': 4}"):
        objective({"width": 4})
    assert len(objective.values) == 1


def test_points_of_a_box_have_its_dimension():
    with pytest.raises(ValueError, match=r"shape \(3,\), got \(2,\)"):
        Objective(lambda x: 0.0, 3, 2)([0.0, 0.0])
