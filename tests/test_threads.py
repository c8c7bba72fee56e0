"""BLAS keeps to the threads it is given while a point is suggested, and to the caller's before and after."""

import dataclasses
import os
import threading

import numpy as np
import pytest
import threadpoolctl

import cylbo
from cylbo.numerics.threads import blas_threads, in_parallel

QUICK = {"n_sobol": 64, "sweeps": 1, "first_sweeps": 2, "max_steps": 3}
CHEAP = dataclasses.replace(cylbo.DEFAULT, **QUICK)


def pools(of_blas):
    info = threadpoolctl.threadpool_info()
    return {pool["filepath"]: pool["num_threads"] for pool in info if (pool["user_api"] == "blas") == of_blas}


def limits():
    """Library -> number of threads, of every BLAS in this process."""
    return pools(True)


def others():
    """The same for OpenMP, where there is one."""
    return pools(False)


@pytest.fixture(params=[1, 3], autouse=True)
def callers(request):
    """The limits as the caller has set them, to one and to more; put back after the test."""
    with threadpoolctl.threadpool_limits(request.param, user_api="blas"):
        found = limits()
        assert found
        assert set(found.values()) == {request.param}
        yield found


@pytest.mark.parametrize("n", [1, 2])
def test_inside_the_context_blas_has_that_many_threads_and_after_it_what_it_had(callers, n):
    elsewhere = others()
    with blas_threads(n):
        assert set(limits().values()) == {n}
        assert limits().keys() == callers.keys()
        assert others() == elsewhere
    assert limits() == callers
    assert others() == elsewhere


def test_limits_are_put_back_when_the_body_raises(callers):
    def body():
        with blas_threads(1):
            assert set(limits().values()) == {1}
            raise ZeroDivisionError("forced")

    with pytest.raises(ZeroDivisionError, match="forced"):
        body()
    assert limits() == callers


def test_contexts_may_be_nested_and_used_one_after_the_other(callers):
    for _ in range(2):
        with blas_threads(2):
            with blas_threads(1):
                assert set(limits().values()) == {1}
            assert set(limits().values()) == {2}
        assert limits() == callers


def watched(monkeypatch, then=None):
    """What `suggest` sees of the limits, call by call."""
    seen = []
    suggest = cylbo.run.optimizer.suggest

    def watch(*args):
        seen.append(limits())
        if then is not None:
            raise then
        return suggest(*args)

    monkeypatch.setattr("cylbo.run.optimizer.suggest", watch)
    return seen


@pytest.mark.parametrize("name", cylbo.METHODS)
def test_a_point_is_suggested_in_one_thread(monkeypatch, callers, name):
    seen = watched(monkeypatch)
    opt = cylbo.Optimizer([(0, 1)] * 3, seed=0, method=dataclasses.replace(cylbo.METHODS[name], **QUICK))
    for _ in range(4):
        trial = opt.ask()
        assert limits() == callers
        opt.tell(trial, float(trial.x.sum()))
    assert len(seen) == 3  # the first point is the centre
    assert all(set(found.values()) == {1} for found in seen)


def test_the_configured_number_of_threads_reaches_blas(monkeypatch, callers):
    seen = watched(monkeypatch)
    opt = cylbo.Optimizer([(0, 1)] * 3, seed=0, method=dataclasses.replace(CHEAP, threads=2))
    for _ in range(4):
        trial = opt.ask()
        assert limits() == callers
        opt.tell(trial, float(trial.x.sum()))
    assert len(seen) == 3
    assert all(set(found.values()) == {2} for found in seen)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_limits_are_put_back_when_a_suggestion_is_interrupted(monkeypatch, callers, error):
    seen = watched(monkeypatch, then=error("now"))
    opt = cylbo.Optimizer([(0, 1)] * 3, seed=0, method=CHEAP)
    opt.tell(opt.ask(), 1.0)
    with pytest.raises(error, match="now"):
        opt.ask()
    assert set(seen[0].values()) == {1}
    assert limits() == callers


def test_the_objective_runs_with_the_callers_threads(callers):
    seen = []
    cylbo.minimize(lambda x: seen.append(limits()) or 1.0, [(0, 1)] * 2, budget=4, seed=0, method=CHEAP)
    assert seen == [callers] * 4


@pytest.mark.parametrize("n", [0, 1, 2, 7, 100])
def test_pieces_of_work_come_back_in_their_order(n):
    assert in_parallel(lambda i: i * i, list(range(n))) == [i * i for i in range(n)]


def test_an_error_in_one_piece_of_work_comes_through():
    def one(i):
        return 1.0 / (3 - i)

    with pytest.raises(ZeroDivisionError):
        in_parallel(one, list(range(6)))
    assert threading.active_count() < 50  # no threads are left behind


@pytest.mark.parametrize("mode", ["raise", "ignore"])
def test_threads_have_the_callers_floating_point_error_mode(mode):
    def one(i):
        return float(np.exp(np.array([1000.0 + i]))[0])

    with np.errstate(all=mode):
        if mode == "raise":
            with pytest.raises(FloatingPointError):
                in_parallel(one, [0, 1, 2])
        else:
            assert in_parallel(one, [0, 1, 2]) == [np.inf] * 3


def test_no_threads_outlive_the_call():
    before = threading.active_count()
    in_parallel(lambda i: i, list(range(20)))
    assert threading.active_count() == before


@pytest.mark.parametrize("name", cylbo.METHODS)
def test_points_do_not_depend_on_the_number_of_cores(monkeypatch, name):
    monkeypatch.setattr("cylbo.model.gp.LARGE", 2)
    monkeypatch.setattr("cylbo.search.suggest.CHUNK_ELEMENTS", 64)
    method = dataclasses.replace(cylbo.METHODS[name], **{**QUICK, "sweeps": 3})
    runs = []
    for workers in (1, 2, 4):
        monkeypatch.setattr("cylbo.numerics.threads.MAX_WORKERS", workers)
        if hasattr(os, "sched_getaffinity"):
            monkeypatch.setattr("os.sched_getaffinity", lambda _, n=workers: set(range(n)))
        runs.append(cylbo.minimize(lambda x: float(x @ x), [(-1, 2)] * 3, budget=6, seed=0, method=method).x_iters)
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0], runs[2])


def test_overlapping_contexts_restore_the_limits_found_by_the_first(callers):
    first, second = blas_threads(1), blas_threads(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(limits().values()) == {1}
    second.__exit__(None, None, None)
    assert limits() == callers
