"""The loop: what is evaluated, what is returned, and what survives a crash."""

import dataclasses
import math
import numbers
import sys
from collections import UserDict
from types import MappingProxyType

import numpy as np
import pytest
import torch

import cylbo

QUICK = {"n_sobol": 256, "sweeps": 2, "first_sweeps": 5, "max_steps": 10}
CHEAP = dataclasses.replace(cylbo.DEFAULT, **QUICK)
BOX = [(-1.0, 1.0), (-2.0, 4.0)]


def bowl(x):
    return float(np.sum((x - 0.3) ** 2))


def run(fun=bowl, bounds=BOX, *, budget=5, seed=0, method=CHEAP, **options):
    return cylbo.minimize(fun, bounds, budget=budget, seed=seed, method=method, **options)


class Recorded:
    """An objective that keeps what it was called with."""

    def __init__(self, fun=bowl):
        self.fun, self.x = fun, []

    def __call__(self, x):
        self.x.append(np.array(x))
        return self.fun(x)


# ---- the result


@pytest.mark.parametrize("method", cylbo.METHODS)
def test_every_method_runs_on_five_parameters(method):
    fun = Recorded()
    bounds = [(-1.0, 1.0)] * 5
    result = run(fun, bounds, budget=8, method=method)
    assert isinstance(result, cylbo.Result)
    assert result.nfev == len(fun.x) == 8
    assert np.array_equal(result.x_iters, np.stack(fun.x))
    assert result.func_vals.tolist() == [bowl(x) for x in fun.x]
    assert result.fun == result.func_vals.min() == bowl(result.x)
    assert result.fun < bowl(np.zeros(5))  # better than the centre
    assert result.success is True
    assert result.message == "used the budget of 8 evaluations"
    assert np.all(abs(result.x_iters) <= 1.0)
    assert len(np.unique(result.x_iters, axis=0)) == 8
    assert [t.origin for t in result.trials] == ["center", "random"] + ["model"] * 6


def test_a_budget_of_one_evaluates_the_centre():
    result = run(budget=1)
    assert result.x_iters.tolist() == [[0.0, 1.0]]
    assert (result.nfev, result.success) == (1, True)


@pytest.mark.parametrize("budget", [np.int64(2), np.uint8(2), 2.0, np.float32(2)])
def test_the_budget_may_be_an_integer_of_any_kind(budget):
    result = run(budget=budget)
    assert result.nfev == 2
    assert result.message == "used the budget of 2 evaluations"


def test_the_result_is_the_callers_to_change():
    result = run()
    best = min(result.trials, key=lambda t: t.value)
    result.x[:] = 7.0
    assert not np.any(best.x == 7.0)


def test_the_defaults_need_nothing_but_a_function_and_bounds():
    seen = []

    def stop(trial):
        seen.append(trial)
        raise StopIteration

    assert cylbo.minimize(bowl, BOX, callback=stop).nfev == len(seen) == 1


@pytest.mark.parametrize("name", ["default", "cylinder"])
def test_a_quadratic_is_optimised(name):
    # Random search with the same budget, the best of 20 uniform points, 500 times over
    target = np.array([0.4, -0.3, 0.2, -0.5, 0.1])

    def quadratic(x):
        return float(np.sum((x - target) ** 2))

    method = dataclasses.replace(cylbo.METHODS[name], n_sobol=1000, first_sweeps=20, sweeps=5)
    found = [run(quadratic, [(-1.0, 1.0)] * 5, budget=20, method=method, seed=seed).fun for seed in range(5)]
    uniform = np.random.default_rng(0).uniform(-1, 1, (500, 20, 5))
    random_search = np.sum((uniform - target) ** 2, -1).min(1)
    # One run in five is unlucky with so few sweeps of "cylinder" (27 of 128 seeds), so the middle one has to do it
    assert np.median(found) < 0.5 * random_search.min()
    assert np.median(found) < 0.1 * quadratic(np.zeros(5))
    assert max(found) < np.median(random_search)


@pytest.mark.parametrize("name", ["default", "cylinder"])
def test_a_shifted_quadratic_in_two_parameters_is_found(name):
    method, bounds = dataclasses.replace(cylbo.METHODS[name], **QUICK), [(0, 100), (-0.01, 0.01)]
    result = run(lambda x: (x[0] - 30.0) ** 2 + 4e7 * (x[1] + 0.002) ** 2, bounds, budget=18, method=method)
    assert result.x[0] == pytest.approx(30.0, abs=2.0)
    assert result.x[1] == pytest.approx(-0.002, abs=2e-3)


# ---- bad arguments, before anything is evaluated


@pytest.mark.parametrize("budget", [0, -1, 1.5, -1.0, True, "10", None, math.nan, math.inf])
def test_a_bad_budget_gets_a_clear_error(budget):
    fun = Recorded()
    with pytest.raises((ValueError, TypeError), match="budget must be an integer of at least 1, got"):
        run(fun, budget=budget)
    assert not fun.x


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"method": "bock"},
            ValueError,
            r"'default', 'cylinder', 'paper', 'paper-w', 'paper\+b', 'matern'.* got 'bock'",
        ),
        ({"region": "sphere"}, ValueError, "region must be 'box' or 'ball'"),
        ({"seed": -1}, ValueError, "seed must be a non-negative integer"),
        ({"seed": "zero"}, (ValueError, TypeError), "seed must be a non-negative integer"),
        ({"center": [5.0, 0.0]}, ValueError, "center must lie inside the bounds"),
        ({"y0": [1.0]}, ValueError, "y0 was given without x0"),
        ({"x0": [[0.0, 0.0]], "y0": [1.0, 2.0]}, ValueError, r"y0 must have shape \(1,\)"),
        ({"x0": [[0.0, 0.0]], "y0": ["a"]}, TypeError, "y0 must be an array of numbers"),
        ({"patience": 0}, ValueError, "patience must be an integer of at least 1 or None, got 0"),
        ({"patience": 1.5}, ValueError, "patience must be an integer of at least 1 or None, got 1.5"),
        ({"max_seconds": 0}, ValueError, "max_seconds must be a positive number or None, got 0"),
        ({"max_seconds": math.nan}, ValueError, "max_seconds must be a positive number or None, got nan"),
        ({"max_seconds": "60"}, ValueError, "max_seconds must be a positive number or None, got '60'"),
        ({"callback": lambda a, b, c: None}, TypeError, r"callback must be callable as f\(trial\) or"),
        ({"callback": lambda: None}, TypeError, r"callback must be callable as f\(trial\) or"),
        ({"bounds": [(1, 0)]}, ValueError, "reversed"),
        ({"callback": "stop"}, TypeError, "callback must be callable or None, got 'stop'"),
        ({"on_error": "ignore"}, ValueError, "on_error must be 'raise' or 'fail', got 'ignore'"),
        ({"on_error": None}, ValueError, "on_error must be 'raise' or 'fail', got None"),
        ({"progress": "no"}, TypeError, "^progress must be True or False, got 'no'"),
        ({"progress": 1}, TypeError, "^progress must be True or False, got 1"),
        ({"resume": "yes", "storage": "run.db"}, TypeError, "^resume must be True or False, got 'yes'"),
        ({"resume": 0}, TypeError, "^resume must be True or False, got 0"),
    ],
)
def test_bad_options_get_a_clear_error_before_the_first_evaluation(options, error, message):
    fun = Recorded()
    with pytest.raises(error, match=message):
        run(fun, **options)
    assert not fun.x


def test_an_objective_that_is_no_function_gets_a_clear_error():
    with pytest.raises(TypeError, match=r"fun must be callable, got 3\.0"):
        run(3.0)


# ---- centre and earlier evaluations


def test_the_centre_is_evaluated_first_exactly():
    assert run(center=[0.1, 0.7]).x_iters[0].tolist() == [0.1, 0.7]


def test_earlier_evaluations_cost_no_budget_and_count_for_the_best():
    fun = Recorded()
    result = run(fun, budget=4, x0=[[0.5, 0.5], [0.9, 0.9]], y0=[-100.0, 3.0], noisy=False)
    assert len(fun.x) == result.nfev == len(result.x_iters) == len(result.func_vals) == 4
    assert result.fun == -100.0
    assert result.x.tolist() == [0.5, 0.5]
    assert not any(x.tolist() in ([0.5, 0.5], [0.9, 0.9]) for x in fun.x)
    assert [t.origin for t in result.trials[:3]] == ["told", "told", "center"]
    assert len(result.trials) == 6


def test_points_without_values_are_evaluated_first_and_cost_budget():
    x0 = [[0.5, 0.5], [0.9, 0.9]]
    fun = Recorded()
    result = run(fun, budget=4, x0=x0)
    assert [x.tolist() for x in fun.x[:2]] == x0
    assert fun.x[2].tolist() == [0.0, 1.0]
    assert result.nfev == len(fun.x) == 4


def test_more_points_without_values_than_budget():
    assert run(budget=1, x0=[[0.5, 0.5], [0.9, 0.9]]).x_iters.tolist() == [[0.5, 0.5]]


def test_duplicates_among_the_earlier_points_keep_working():
    x0 = [[0.5, 0.5]] * 3 + [[0.0, 1.0]] * 2
    for y0 in ([1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]):
        result = run(budget=3, x0=x0, y0=y0)
        assert result.nfev == 3
        assert [t.origin for t in result.trials[5:]] == ["model"] * 3


# ---- callback


def test_the_callback_gets_every_finished_trial():
    got = []
    values = iter([1.0, math.nan, 2.0, math.inf, 3.0])
    result = run(lambda x: next(values), callback=got.append)
    assert [t.id for t in got] == [0, 1, 2, 3, 4]
    assert [t.status for t in got] == ["done", "failed", "done", "failed", "done"]
    assert all(a is b for a, b in zip(got, result.trials, strict=True))


def test_the_callback_does_not_get_earlier_evaluations():
    got = []
    run(budget=2, x0=[[0.5, 0.5]], y0=[1.0], callback=got.append)
    assert [t.id for t in got] == [1, 2]


def test_the_callback_may_stop_the_run():
    def stop_at_two(trial):
        if trial.id == 2:
            raise StopIteration

    result = run(budget=50, callback=stop_at_two)
    assert result.nfev == 3
    assert result.success is True
    assert result.message == "stopped by the callback"
    assert result.fun == result.func_vals.min()


def test_another_error_of_the_callback_passes_with_the_result():
    def broken(trial):
        if trial.id == 1:
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full") as caught:
        run(callback=broken)
    result = caught.value.result
    assert result.nfev == 2
    assert np.isfinite(result.func_vals).all()


# ---- objectives that misbehave


class Unhelpful(Exception):  # noqa: N818
    """Its `result` is taken."""

    @property
    def result(self):
        return "mine"


@pytest.mark.parametrize("error", [ValueError, StopIteration, ZeroDivisionError])
def test_an_error_of_the_objective_passes_with_the_result_so_far(error):
    raised = error("boom")
    fun = Recorded(lambda x: bowl(x) if len(fun.x) < 4 else throw())

    def throw():
        raise raised

    with pytest.raises(error) as caught:
        run(fun, budget=10)
    assert caught.value is raised
    result = raised.result
    assert isinstance(result, cylbo.Result)
    assert result.nfev == 3  # the fourth has not failed: the program has
    assert np.array_equal(result.x_iters, np.stack(fun.x[:3]))
    assert result.func_vals.tolist() == [bowl(x) for x in fun.x[:3]]
    assert result.fun == min(result.func_vals)
    assert bowl(result.x) == result.fun
    assert result.success is False
    assert result.message == f"stopped by {error.__name__}: boom"
    assert [trial.status for trial in result.trials] == ["done"] * 3 + ["open"]
    assert result.trials[3].reason == f"{error.__name__}: boom"
    assert any("3 evaluations were made" in note for note in raised.__notes__)


def test_a_stored_run_that_is_stopped_says_where_it_can_go_on_from(tmp_path):
    def stop(x):
        raise KeyboardInterrupt

    for storage, place in (
        (None, "in the attribute `result`"),
        (tmp_path / "run.db", "run.db, to go on from with resume"),
    ):
        with pytest.raises(KeyboardInterrupt) as caught:
            run(stop, budget=10, storage=storage)
        [note] = caught.value.__notes__
        assert place in note
        assert "in the attribute `result`" in note


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_evaluation_has_not_failed_and_passes_with_the_result_so_far(error):
    raised = error("boom")
    fun = Recorded(lambda x: bowl(x) if len(fun.x) < 4 else throw())

    def throw():
        raise raised

    for on_error in ("raise", "fail"):
        fun.x.clear()
        with pytest.raises(error) as caught:
            run(fun, budget=10, on_error=on_error)
        assert caught.value is raised
        result = raised.result
        assert result.nfev == 3  # the fourth was neither finished nor failed
        assert np.array_equal(result.x_iters, np.stack(fun.x[:3]))
        assert result.func_vals.tolist() == [bowl(x) for x in fun.x[:3]]
        assert result.fun == bowl(result.x) == min(result.func_vals)
        assert result.success is False
        assert result.message == f"stopped by {error.__name__}: boom"
        assert [t.status for t in result.trials] == ["done"] * 3 + ["open"]
        assert np.array_equal(result.trials[3].x, fun.x[3])
        assert result.trials[3].reason == ""
        assert any("3 evaluations were made" in note for note in raised.__notes__)


def test_on_error_fail_goes_on_and_keeps_the_reason():
    def throw():
        raise ZeroDivisionError("no mass")

    fun = Recorded(lambda x: throw() if len(fun.x) in (1, 4) else bowl(x))
    result = run(fun, budget=6, on_error="fail")
    assert len(fun.x) == result.nfev == 6
    assert np.array_equal(result.x_iters, np.stack(fun.x))
    assert np.isnan(result.func_vals).tolist() == [True, False, False, True, False, False]
    assert [t.reason for t in result.trials] == ["ZeroDivisionError: no mass" if i in (0, 3) else "" for i in range(6)]
    assert result.success is True
    assert result.message == "used the budget of 6 evaluations"
    # A failure is a failure, whichever way the objective says so
    quiet = Recorded(lambda x: math.nan if len(quiet.x) in (1, 4) else bowl(x))
    assert np.array_equal(run(quiet, budget=6).x_iters, result.x_iters)


def test_on_error_fail_does_not_hide_a_value_of_the_wrong_kind():
    with pytest.raises(TypeError, match="the objective must return one real number"):
        run(lambda x: "1.0", on_error="fail")


class MuteError(Exception):
    """Cannot be shown."""

    def __str__(self):
        raise RuntimeError("not even this")


@pytest.mark.parametrize("on_error", ["raise", "fail"])
def test_an_error_that_cannot_be_shown_is_an_error_like_others(on_error):
    def throw(x):
        raise MuteError

    if on_error == "fail":
        trials = run(throw, on_error="fail").trials
    else:
        with pytest.raises(MuteError) as caught:
            run(throw)
        trials = caught.value.result.trials
    assert {t.reason for t in trials} == {"MuteError: MuteError that cannot be shown"}


def test_an_error_at_the_first_evaluation_has_a_result_too():
    with pytest.raises(ZeroDivisionError) as caught:
        run(lambda x: 1 / 0)
    result = caught.value.result
    with pytest.raises(cylbo.NoResultError, match="no evaluation succeeded, so there is no best point"):
        _ = result.x
    assert math.isnan(result.fun)
    assert result.x_iters.shape == (0, 2)
    assert result.message.endswith("no evaluation succeeded")


def test_an_interrupt_while_a_point_is_suggested_loses_nothing(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("cylbo.run.optimizer.suggest", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        run()
    assert caught.value.result.func_vals.tolist() == [bowl(np.array([0.0, 1.0]))]


def test_the_result_so_far_holds_the_earlier_evaluations():
    with pytest.raises(ZeroDivisionError) as caught:
        run(lambda x: 1 / 0, x0=[[0.5, 0.5]], y0=[2.0])
    assert caught.value.result.fun == 2.0
    assert caught.value.result.nfev == 0


def test_an_exception_that_cannot_take_a_result_passes_all_the_same():
    def throw(x):
        raise Unhelpful("own way")

    with pytest.raises(Unhelpful, match="own way") as caught:
        run(throw)
    assert caught.value.result == "mine"


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.float32("nan"),
        np.array(np.nan),
        pytest.param(10**400, id="huge integer"),
        pytest.param(-(10**400), id="huge negative integer"),
        pytest.param(10**5000, id="integer that Python does not spell"),
    ],
)
def test_a_value_that_is_not_finite_is_a_failed_evaluation_and_the_run_goes_on(bad):
    fun = Recorded(lambda x: bad if len(fun.x) in (1, 4) else bowl(x))
    result = run(fun, budget=6)
    assert result.nfev == len(fun.x) == 6
    assert np.isnan(result.func_vals).tolist() == [True, False, False, True, False, False]
    assert [t.status for t in result.trials] == ["failed", "done", "done", "failed", "done", "done"]
    assert "the objective returned" in result.trials[0].reason
    assert len(np.unique(result.x_iters, axis=0)) == 6
    assert result.success is True
    assert result.fun == np.nanmin(result.func_vals)


def test_if_all_evaluations_fail_the_result_says_so():
    result = run(lambda x: math.nan)
    with pytest.raises(cylbo.NoResultError, match="no evaluation succeeded, so there is no best point"):
        _ = result.x
    assert math.isnan(result.fun)
    assert result.success is False
    assert result.message == "used the budget of 5 evaluations; no evaluation succeeded"
    assert result.nfev == 5
    assert np.isnan(result.func_vals).all()
    assert result.x_iters.shape == (5, 2)
    assert len(np.unique(result.x_iters, axis=0)) == 5


def test_if_all_evaluations_fail_the_earlier_ones_remain():
    result = run(lambda x: math.nan, x0=[[0.5, 0.5]], y0=[2.0])
    assert (result.fun, result.success) == (2.0, True)


@pytest.mark.parametrize("bad", ["1.0", None, 1j, [1.0], np.ones((2, 2)), True])
def test_a_value_that_is_no_number_stops_the_run_with_the_result_so_far(bad):
    fun = Recorded(lambda x: bowl(x) if len(fun.x) < 3 else bad)
    with pytest.raises(
        TypeError, match=r"the objective must return one real number, or a dict .*: expected .* for trial 2"
    ) as caught:
        run(fun)
    result = caught.value.result
    assert result.func_vals.tolist() == [bowl(x) for x in fun.x[:2]]
    assert [trial.status for trial in result.trials] == ["done", "done", "open"]


class Garbled:
    """A number that cannot be read, for a reason that takes five arguments."""

    def __float__(self):
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "garbled")


numbers.Real.register(Garbled)


def test_a_value_that_cannot_be_read_is_named_as_what_it_is():
    with pytest.raises(ValueError, match=r"the objective must return one real number.*garbled") as caught:
        run(lambda x: Garbled())
    assert [t.status for t in caught.value.result.trials] == ["open"]


def test_what_the_objective_does_to_its_argument_stays_its_own_affair():
    def rude(x):
        value = bowl(x)
        x[:] = 1e9
        return value

    polite_run, rude_run = run(), run(rude)
    assert np.array_equal(rude_run.x_iters, polite_run.x_iters)
    assert rude_run.func_vals.tolist() == polite_run.func_vals.tolist()


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.array, lambda v: int(v * 8)])
def test_the_objective_may_return_any_kind_of_number(kind):
    result = run(lambda x: kind(bowl(x)), budget=4)
    assert result.success
    assert result.func_vals.dtype == np.float64


@pytest.mark.parametrize("name", cylbo.METHODS)
def test_a_constant_objective_keeps_working(name):
    result = run(lambda x: 2.0, budget=8, method=dataclasses.replace(cylbo.METHODS[name], **QUICK))
    assert (result.fun, result.nfev) == (2.0, 8)
    assert len(np.unique(result.x_iters, axis=0)) == 8
    assert result.x.tolist() == [0.0, 1.0]  # the earliest of equals


def test_the_objective_may_call_minimize_itself():
    def outer(x):
        return run(lambda z: bowl(z) + x[0] ** 2, budget=3).fun

    plain = run(lambda x: run(budget=3).fun + x[0] ** 2, budget=4)
    assert np.allclose(run(outer, budget=4).x_iters, plain.x_iters)


# ---- an objective that says more than its value


@pytest.mark.parametrize("kind", [dict, MappingProxyType, UserDict])
def test_a_dict_of_the_value_is_as_good_as_the_value(kind):
    plain, told = run(), run(lambda x: kind({"value": bowl(x)}))
    assert np.array_equal(plain.x_iters, told.x_iters)
    assert plain.func_vals.tolist() == told.func_vals.tolist()
    assert (plain.fun, plain.message) == (told.fun, told.message)


def test_noise_and_constraints_of_a_dict_are_told():
    def outcome(x):
        return {"value": bowl(x), "std": 0.5, "constraints": np.array([x[0], -1.0])}

    result = run(outcome, budget=8)
    for trial in result.trials:
        assert (trial.value, trial.std) == (bowl(trial.x), 0.5)
        assert trial.constraints == (trial.x[0], -1.0)
    assert result.x[0] <= 0.0


def test_the_best_point_keeps_the_constraints():
    result = run(lambda x: {"value": bowl(x), "constraints": [0.1 - x[0]]}, budget=9)
    allowed = [trial for trial in result.trials if trial.x[0] >= 0.1]
    assert result.success
    assert result.fun == min(trial.value for trial in allowed)
    assert result.fun == bowl(result.x)
    assert 0 < len(allowed) < 9


def test_if_no_point_keeps_the_constraints_the_result_says_so():
    result = run(lambda x: {"value": bowl(x), "constraints": [1.0 + x[0]]}, budget=4, bounds=[(0.0, 1.0)] * 2)
    assert result.success is False
    with pytest.raises(cylbo.NoResultError, match="no evaluation kept every constraint"):
        _ = result.x
    assert math.isnan(result.fun)
    assert result.message.startswith("used the budget of 4 evaluations; no evaluation kept every constraint")
    assert not np.isnan(result.func_vals).any()


WRONG_OUTCOMES = {
    "nothing": ({}, TypeError, "value"),
    "another name": ({"loss": 1.0}, TypeError, "loss"),
    "a name too many": ({"value": 1.0, "time": 3.0}, TypeError, "time"),
    "the trial": ({"value": 1.0, "trial": 0}, TypeError, "trial"),
    "a number as a name": ({0: 1.0}, TypeError, ""),
    "no number": ({"value": None}, TypeError, "expected one real number, got None for trial 2; did your"),
    "true": ({"value": True}, TypeError, "expected one real number, got True for trial 2; say which number"),
    "a dict in the dict": ({"value": {"value": 1.0}}, TypeError, "expected one real number"),
    "negative noise": ({"value": 1.0, "std": -0.5}, ValueError, "expected std >= 0, got -0.5 for trial 2"),
    "noise that is none": ({"value": 1.0, "std": "0.5"}, TypeError, "expected std to be one real number"),
    "a constraint": ({"value": 1.0, "constraints": 1.0}, TypeError, "constraints must be a list of numbers, got 1.0"),
    "a text": ({"value": 1.0, "constraints": "no"}, TypeError, "constraints must be a list of numbers, got 'no'"),
    "names": ({"value": 1.0, "constraints": {"a": 1.0}}, TypeError, "constraints must be a list of numbers"),
    "texts": ({"value": 1.0, "constraints": ["a"]}, TypeError, r"expected constraints\[0\] to be one real number"),
    "no constraints": ({"value": 1.0, "constraints": []}, ValueError, "expected 2 constraints .* trial 0, got 0"),
    "left out": ({"value": 1.0}, ValueError, "expected 2 constraints .* trial 0, got 0"),
    "too few": ({"value": 1.0, "constraints": [1.0]}, ValueError, "expected 2 constraints .* trial 0, got 1"),
    "too many": ({"value": 1.0, "constraints": [1.0] * 3}, ValueError, "expected 2 constraints .* trial 0, got 3"),
    "a number": (1.0, ValueError, "expected 2 constraints as with trial 0, got 0 for trial 2"),
}


@pytest.mark.parametrize(("wrong", "error", "message"), WRONG_OUTCOMES.values(), ids=WRONG_OUTCOMES)
@pytest.mark.parametrize("on_error", ["raise", "fail"])
def test_a_dict_of_something_else_stops_the_run_with_the_result_so_far(wrong, error, message, on_error):
    fun = Recorded(lambda x: {"value": bowl(x), "constraints": [-1.0, 0.0]} if len(fun.x) < 3 else wrong)
    said = f"the objective must return one real number, or a dict of value, std, constraints and metadata: .*{message}"
    with pytest.raises(error, match=said) as caught:
        run(fun, on_error=on_error)
    assert len(fun.x) == 3
    result = caught.value.result
    assert [trial.status for trial in result.trials] == ["done", "done", "open"]
    assert result.fun == min(result.func_vals)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 10**400], ids=["nan", "inf", "-inf", "huge"])
@pytest.mark.parametrize("where", ["value", "std", "constraints"])
def test_a_number_of_a_dict_that_is_not_finite_is_a_failed_evaluation(bad, where):
    fine = {"value": 1.0, "std": 0.1, "constraints": [-1.0]}
    if where == "std" and bad != bad:
        bad = math.inf  # NaN says that it is not known
    broken = {**fine, where: [bad] if where == "constraints" else bad}
    fun = Recorded(lambda x: broken if len(fun.x) in (1, 4) else {**fine, "value": bowl(x)})
    result = run(fun, budget=6)
    assert [trial.status for trial in result.trials] == ["failed", "done", "done", "failed", "done", "done"]
    assert np.isnan(result.func_vals).tolist() == [True, False, False, True, False, False]
    assert result.trials[0].reason.startswith("the objective returned {'value': ")
    assert result.trials[0].constraints == ()
    assert result.success


@pytest.mark.parametrize("unknown", [None, math.nan, np.float32("nan")])
def test_a_std_that_is_not_known_costs_no_value(unknown):
    result = run(lambda x: {"value": bowl(x), "std": unknown}, budget=3)
    assert np.isfinite(result.func_vals).all()
    assert all(math.isnan(trial.std) for trial in result.trials)


@pytest.mark.parametrize("kind", [np.atleast_1d, np.atleast_2d, torch.tensor, lambda v: torch.tensor([v])])
def test_an_array_of_one_is_as_good_as_its_entry(kind):
    def outcome(x):
        return {"value": kind(bowl(x)), "std": kind(0.5), "constraints": [kind(-1.0)]}

    assert run(lambda x: kind(0.25), budget=1).fun == 0.25
    trial = run(outcome, budget=1).trials[0]
    assert (trial.value, trial.std, trial.constraints) == (pytest.approx(bowl(trial.x), rel=1e-6), 0.5, (-1.0,))


def test_an_objective_without_a_return_is_asked_for_it():
    def forgetful(x):
        bowl(x)

    said = "the objective must return .*got None for trial 0; did your function return a number?.* return NaN"
    with pytest.raises(TypeError, match=said):
        run(forgetful)


def test_numpys_true_and_false_are_flags_too(tmp_path):
    result = run(budget=2, noisy=np.False_, progress=np.False_, storage=tmp_path / "run.db", resume=np.False_)
    assert run(budget=2, noisy=False, storage=tmp_path / "run.db", resume=np.True_).fun == result.fun


def test_what_was_said_of_noise_and_budgets_reaches_the_search():
    for bad in ("yes", 1, 0, 0.0):
        with pytest.raises(TypeError, match="noisy must be True, False or None, got"):
            run(noisy=bad)
    result = run(noisy=False, max_suggest_seconds=1e6, max_memory=1e12, budget=4)
    assert [trial.suggestion.to_json().get("points") for trial in result.trials] == [None, None, 2, 3]
    assert not any(trial.suggestion.points is not None for trial in run(budget=4).trials)


# ---- repeatability


@pytest.mark.parametrize("name", cylbo.METHODS)
def test_the_same_seed_gives_the_same_run_and_another_seed_another(name):
    method = dataclasses.replace(cylbo.METHODS[name], **QUICK)
    first, second, other = (run(seed=seed, method=method) for seed in (5, 5, 6))
    assert first.x_iters.tobytes() == second.x_iters.tobytes()
    assert first.func_vals.tobytes() == second.func_vals.tobytes()
    assert not np.array_equal(first.x_iters[1:], other.x_iters[1:])


def test_minimize_is_the_ask_and_tell_loop():
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP)
    for _ in range(5):
        trial = opt.ask()
        opt.tell(trial, bowl(trial.x))
    assert np.array_equal(run().x_iters, np.stack([t.x for t in opt.trials]))


def test_neither_callback_nor_progress_changes_the_run(capsys):
    assert np.array_equal(run(callback=lambda t: None, progress=True).x_iters, run().x_iters)


# ---- progress


def test_progress_shows_evaluations_best_value_and_seconds(capsys):
    result = run(budget=3, progress=True)
    captured = capsys.readouterr()
    assert "3/3" in captured.err
    assert f"best {result.fun:.6g}" in captured.err
    assert "s per suggestion" in captured.err
    assert captured.out == ""


def test_without_progress_nothing_is_printed(capsys):
    run(budget=3)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_progress_survives_failures_and_gives_the_terminal_back(capsys):
    out, err = sys.stdout, sys.stderr
    run(lambda x: math.nan, budget=2, progress=True)
    assert "2/2  best -  2 failed" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        run(lambda x: 1 / 0, progress=True)
    assert sys.stdout is out
    assert sys.stderr is err
    assert run(budget=1, progress=True).nfev == 1


def test_the_region_reaches_the_search():
    def slope(x):
        return float(x[0])

    ball = run(
        slope,
        [(-1, 1)] * 3,
        budget=10,
        region="ball",
        seed=1,
        method=dataclasses.replace(CHEAP, max_steps=100),
    )
    box = run(slope, [(-1, 1)] * 3, budget=10, seed=1)
    assert ball.fun < -1.0 <= box.fun
    assert np.linalg.norm(ball.x_iters, axis=1).max() <= math.sqrt(3) * (1 + 1e-12)
    assert abs(box.x_iters).max() <= 1.0


# ---- named parameters

SPACE = cylbo.Space(
    c=cylbo.Categorical(["low", "high"]), k=cylbo.Integer(0, 4), x=cylbo.Real(-1, 1), s=cylbo.Real(1e-3, 1e3, log=True)
)
DEPTH = {("low", 0): 2.0, ("low", 1): 1.0, ("low", 2): 1.5, ("low", 3): 3.0, ("low", 4): 4.0}
DEPTH |= {("high", 0): 5.0, ("high", 1): 2.0, ("high", 2): 1.0, ("high", 3): 0.0, ("high", 4): 1.0}


def mixed(params):
    """Each category and integer has a valley of its own, whose bottom is known."""
    where = 0.1 * params["k"] - (0.5 if params["c"] == "low" else 0.0)
    size = -1.0 if params["c"] == "low" else 1.0
    away = (params["x"] - where) ** 2 + 0.2 * (math.log10(params["s"]) - size) ** 2
    return DEPTH[params["c"], params["k"]] + away


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_of_a_mixed_problem_is_found(seed):
    """All valleys by brute force: the deepest is at ("high", 3), where x is 0.3 and s is 10."""
    method = dataclasses.replace(CHEAP, fit_steps=10, warm_steps=2, n_spray=50)
    result = run(mixed, SPACE, budget=60, seed=seed, method=method)
    assert (result.params["c"], result.params["k"]) == min(DEPTH, key=DEPTH.get)
    assert result.fun == mixed(result.params) < 0.02
    assert result.params["x"] == pytest.approx(0.3, abs=0.15)
    assert math.log10(result.params["s"]) == pytest.approx(1.0, abs=0.35)


def test_the_objective_gets_a_dict_of_its_own():
    seen = []

    def spoil(params):
        seen.append([params["k"], *params["w"]])
        params["w"][:] = 99.0
        params.clear()
        return float(len(seen))

    result = run(spoil, cylbo.Space(k=cylbo.Integer(0, 20), w=cylbo.Real(0, 1, shape=2)), budget=4)
    assert result.x_iters.tolist() == seen
    assert [[t.params["k"], *t.params["w"]] for t in result.trials] == seen


def test_the_result_names_the_best_point():
    result = run(mixed, SPACE, budget=6)
    best = min(result.trials, key=lambda t: t.value)
    assert result.params == best.params
    assert np.array_equal(result.x, best.x)
    assert result.x_iters.shape == (6, 4)
    with pytest.raises(cylbo.NoResultError, match="no named parameters"):
        _ = run(budget=2).params


def test_earlier_points_by_name_cost_no_budget_and_count_for_the_best():
    x0 = [{"c": "high", "k": 3, "x": 0.3, "s": 10.0}, {"c": "low", "k": 0, "x": 0.0, "s": 1.0}]
    result = run(mixed, SPACE, budget=3, x0=x0, y0=[mixed(p) for p in x0])
    assert (result.nfev, len(result.trials)) == (3, 5)
    assert result.params == x0[0]
    first = run(mixed, SPACE, budget=3, x0=x0)
    assert [t.params for t in first.trials[:2]] == x0
    assert first.nfev == 3


def test_to_maximise_gives_the_points_of_the_negative_and_the_users_values():
    down = run(mixed, SPACE, budget=8)
    up = run(lambda params: -mixed(params), SPACE, budget=8, direction="maximize")
    assert np.array_equal(up.x_iters, down.x_iters)
    assert np.array_equal(up.func_vals, -down.func_vals)
    assert up.fun == -down.fun == up.func_vals.max()
    assert up.params == down.params


def test_a_space_that_is_refused_calls_nothing():
    fun = Recorded()
    for options in ({"center": {"c": "low"}}, {"x0": [{}]}, {"region": "ball"}, {"direction": "up"}):
        with pytest.raises(ValueError, match=r"center|x0|region|direction"):
            run(fun, SPACE, **options)
    assert not fun.x
