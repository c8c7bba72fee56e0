"""What ends a run before its budget does: time, patience and the callback."""

import itertools
import sys
import types

import pytest

import cylbo
from test_storage import bits, bowl, run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


@pytest.fixture
def clock(monkeypatch):
    """A clock that the objective moves."""
    now = [100.0]
    monkeypatch.setattr(sys.modules["cylbo.run.minimize"], "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_no_evaluation_begins_after_max_seconds_and_none_is_cut_off(clock):
    def slow(x):
        clock[0] += 4.0
        return bowl(x)

    result = run(slow, budget=9, max_seconds=10)
    assert (result.nfev, result.message) == (3, "stopped after max_seconds=10")
    assert result.success
    assert bits(result.trials) == bits(run(budget=3).trials)


def test_patience_counts_successful_evaluations_since_the_best_value_improved():
    values = iter([5.0, 4.0, 6.0, None, 6.0, 3.0, 7.0, 3.0, None, 8.0, 1.0])

    def fun(x):
        value = next(values)
        if value is None:
            raise ZeroDivisionError
        return value

    result = run(fun, budget=20, patience=3, on_error="fail")
    assert result.nfev == 10
    assert result.message == "stopped after 3 evaluations without a better value"
    assert (result.fun, result.success) == (3.0, True)


def test_patience_waits_for_a_first_value():
    values = itertools.chain([float("nan")] * 5, [1.0, 2.0, 2.0], itertools.repeat(0.0))
    assert run(lambda x: next(values), budget=20, patience=2).nfev == 8


def test_patience_goes_on_where_it_was(path):
    for budget in (2, 3, 4, 20, 20):
        result = run(lambda x: 1.0, budget=budget, patience=3, storage=path, resume=True)
    assert result.nfev == 4
    assert result.message.startswith("stopped after 3 evaluations without")


@pytest.mark.parametrize("maximise", [False, True])
def test_earlier_evaluations_may_be_the_best_and_count_for_nothing_else(maximise):
    x0 = [[0.1, 12.0, -4.9], [0.2, 13.0, -4.8]]
    direction = "maximize" if maximise else "minimize"
    best = 9.0 if maximise else -9.0
    result = run(lambda x: 0.0, budget=20, patience=3, x0=x0, y0=[best, 0.0], direction=direction)
    assert (result.nfev, result.fun) == (3, best)


CALLBACKS = {
    "returns True": lambda trial: trial.id == 2,
    "with the optimizer": lambda trial, optimizer: len(optimizer.trials) == 3,
    "by another name": lambda trial, opt: opt.best is not None and trial.id == 2,
    "with an option": lambda trial, verbose=False: trial.id == 2 and not verbose,
    "that takes the optimizer or not": lambda trial, optimizer=None: optimizer is not None and trial.id == 2,
}


@pytest.mark.parametrize("callback", CALLBACKS.values(), ids=CALLBACKS)
def test_a_callback_ends_the_run_by_returning_true(callback):
    result = run(budget=9, callback=callback)
    assert (result.nfev, result.message) == (3, "stopped by the callback")
    assert result.success


def test_a_callback_that_returns_something_else_ends_nothing():
    for value in (None, False, 1, "stop", 0.0, [True]):
        assert run(budget=3, callback=lambda trial, value=value: value).nfev == 3


def test_what_any_function_may_be_called_back():
    seen = []
    run(budget=3, callback=seen.append)
    assert [trial.id for trial in seen] == [0, 1, 2]

    def stop(*arguments):
        raise StopIteration

    assert run(budget=3, callback=stop).nfev == 1

    class Watcher:
        def method(self, trial, optimizer):
            assert isinstance(optimizer, cylbo.Optimizer)
            return True

    assert run(budget=3, callback=Watcher().method).nfev == 1


def test_a_stop_iteration_of_the_objective_is_an_error_and_no_stop():
    def fun(x):
        raise StopIteration

    with pytest.raises(StopIteration):
        run(fun, budget=3)
