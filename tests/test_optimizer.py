"""Ask, tell, fail, best: the contract, and what bad input leaves untouched."""

import copy
import dataclasses
import itertools
import math
import pickle
import random
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
import threadpoolctl
import torch

import cylbo

# Nothing is evaluated twice to find out about noise: that is for test_noise.py
QUICK = {
    "n_sobol": 128, "sweeps": 2, "first_sweeps": 3, "max_steps": 6, "fit_steps": 5, "warm_steps": 2, "repeats": False,
}  # fmt: skip
CHEAP = dataclasses.replace(cylbo.DEFAULT, **QUICK)
METHODS = {name: dataclasses.replace(config, **QUICK) for name, config in cylbo.METHODS.items()}
BOX = [(-1.0, 2.0), (10.0, 30.0), (-5.0, -4.0)]

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def make(bounds=BOX, seed=0, method=CHEAP, **options):
    return cylbo.Optimizer(bounds, seed=seed, method=method, **options)


def bowl(x):
    return float(np.sum((x - 0.3) ** 2))


def played(opt, n, fun=bowl):
    """The optimizer after n evaluations."""
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, fun(trial.x))
    return opt


def numbers(learned):
    """What a chain or the fits of all forms hand on, entry by entry."""
    parts = [*vars(learned).values(), *getattr(learned, "thetas", {}).values()]
    return [part.tobytes() if isinstance(part, np.ndarray) else repr(part) for part in parts]


def state(opt):
    """Everything the next ask depends on, and everything that is shown."""
    learned = opt._memory.state
    return (
        [(t.id, t.x.tobytes(), repr(t.value), t.status, t.origin, t.reason) for t in opt.trials],
        None if learned is None else numbers(learned),
        [x.tobytes() for x in opt._given],
        None if opt.best is None else opt.best.id,
    )


def inside(x, bounds=BOX):
    low, high = np.array(bounds, dtype=float).T
    return bool(np.all((x >= low) & (x <= high)))


def pairwise_different(trials):
    return all(not np.array_equal(a.x, b.x) for a, b in itertools.combinations(trials, 2))


# ---- ask, tell, fail, best


@every_method
def test_a_run_by_hand(method):
    opt = make(method=method)
    assert opt.best is None
    values = {}
    for i in range(7):
        trial = opt.ask()
        assert trial.id == i
        assert trial.status == "open"
        assert isinstance(trial.x, np.ndarray)
        assert trial.x.dtype == np.float64
        assert trial.x.shape == (3,)
        assert inside(trial.x)
        assert trial.seconds >= 0.0
        with pytest.raises(ValueError, match="read-only"):
            trial.x[0] = 0.0
        if i == 3:
            told = opt.fail(trial, "diverged")
            assert (told.status, told.reason) == ("failed", "diverged")
            assert math.isnan(told.value)
        else:
            values[i] = bowl(trial.x)
            told = opt.tell(trial if i % 2 else trial.id, values[i])  # by object and by id
            assert (told.status, told.value) == ("done", values[i])
        assert told.id == i
        assert np.array_equal(told.x, trial.x)
        assert opt.best.id == min(values, key=values.get)
    assert [t.id for t in opt.trials] == list(range(7))
    assert pairwise_different(opt.trials)
    assert [t.origin for t in opt.trials] == ["center", "random"] + ["model"] * 5


def test_told_in_any_order_the_trials_keep_their_values():
    opt = make()
    trials = [opt.ask() for _ in range(5)]
    for trial in reversed(trials):
        opt.tell(trial, 10.0 * trial.id)
    assert [t.value for t in opt.trials] == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert opt.best.id == 0


def test_a_trial_may_be_failed_by_id_and_without_a_reason():
    opt = make()
    opt.ask()
    assert opt.fail(0).reason == ""
    assert opt.best is None


def test_the_reason_of_a_failure_may_be_an_exception():
    opt = make()
    assert opt.fail(opt.ask(), ValueError("negative mass")).reason == "negative mass"


def test_the_first_point_is_the_middle_of_the_box():
    trial = make().ask()
    assert trial.x.tolist() == [0.5, 20.0, -4.5]
    assert trial.origin == "center"


@pytest.mark.parametrize("center", [[0.1, 10.7, -4.9], [-1.0, 10.0, -5.0], [2.0, 30.0, -4.0], (2, 10, -5)])
@every_method
def test_the_users_centre_is_asked_first_exactly(center, method):
    opt = make(center=center, method=method)
    trial = opt.ask()
    assert trial.x.tolist() == [float(c) for c in center]
    assert trial.origin == "center"
    opt.tell(trial, 1.0)
    played(opt, 4)
    assert [t.origin for t in opt.trials].count("center") == 1
    assert all(inside(t.x) for t in opt.trials)
    assert pairwise_different(opt.trials)


@every_method
def test_the_climb_may_end_at_the_centre_in_a_corner(method):
    # All starts of the climb end in the corner, which is the centre: the one point without a direction
    method = dataclasses.replace(method, n_sobol=256, first_sweeps=5, max_steps=10)
    opt = make(method=method, center=[2.0, 30.0, -4.0])
    opt.tell(opt.ask(), 1.0)
    played(opt, 4)
    assert opt.best.id == 0
    assert pairwise_different(opt.trials)


# ---- open trials


@every_method
@pytest.mark.parametrize("d", [1, 4])
def test_all_asks_open_from_the_start_differ(method, d):
    opt = make([(0, 1)] * d, method=method)
    trials = [opt.ask() for _ in range(12)]
    assert pairwise_different(trials)
    assert all(inside(t.x, [(0, 1)] * d) for t in trials)
    for trial in trials:
        opt.tell(trial, bowl(trial.x))
    assert opt.best.value == min(bowl(t.x) for t in trials)


@every_method
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("n_told", [1, 2, 5])
def test_open_asks_differ_from_each_other_and_from_the_data(method, d, n_told):
    bounds = [(0, 1)] * d
    opt = played(make(bounds, method=method), n_told, fun=lambda x: float(x.sum()))  # the minimum is a corner
    for _ in range(10):
        opt.ask()
    assert len(opt.trials) == n_told + 10
    assert pairwise_different(opt.trials)
    assert all(inside(t.x, bounds) for t in opt.trials)


@pytest.mark.parametrize("name", ["default", "cylinder"])
def test_open_asks_differ_when_the_bounds_leave_few_numbers_between_them(name):
    # Five million floats from end to end, and points a billionth of the box apart still count as different
    bounds = [(1.0, 1.0 + 1.1e-9)]
    for seed in range(3):
        opt = make(bounds, seed=seed, method=METHODS[name])
        trials = [opt.ask() for _ in range(100)]
        assert pairwise_different(trials)
        assert all(inside(t.x, bounds) for t in trials)


@pytest.mark.parametrize(
    "bounds", [[(0.0, 1e-316)], cylbo.Space(x=cylbo.Real(5e-324, 1e-316, log=True))], ids=["box", "log"]
)
def test_open_asks_differ_next_to_the_smallest_number(bounds):
    assert pairwise_different(make(bounds).ask(30))


@pytest.mark.parametrize("region", ["box", "ball"])
def test_points_that_only_rounding_makes_equal_are_drawn_anew(monkeypatch, region):
    # In units of the box the suggestion differs from the last trial, in those of the user it does not
    suggest = cylbo.run.optimizer.suggest
    bounds = [(1.0, 1.0 + 1.1e-9)]
    opt = make(bounds, region=region)
    played(opt, 3)

    def next_to_the_last(known, *rest):
        return dataclasses.replace(suggest(known, *rest), x=known.x[-1] + 3e-9)

    monkeypatch.setattr("cylbo.run.optimizer.suggest", next_to_the_last)
    for _ in range(5):
        last = opt.trials[-1].x
        trial = opt.ask()
        assert trial.origin == "space-filling"
        # What was predicted was so of another point
        assert trial.suggestion.predicted is trial.suggestion.predicted_sd is None
        assert np.abs(trial.x - last).max() < 1.1e-9
        opt.tell(trial, 1.0)
    assert pairwise_different(opt.trials)
    assert all(inside(t.x, bounds) for t in opt.trials)


def test_a_round_is_told_what_is_done_open_and_failed(monkeypatch):
    seen = []
    suggest = cylbo.run.optimizer.suggest
    monkeypatch.setattr("cylbo.run.optimizer.suggest", lambda known, *rest: seen.append(known) or suggest(known, *rest))
    opt = make([(0, 4)] * 2)
    trials = [opt.ask() for _ in range(6)]
    opt.tell(trials[4], 4.0)
    opt.fail(trials[1])
    opt.tell(trials[0], -1.0)
    opt.ask()

    def in_ball(*ids):
        return [(trials[i].x / 2.0 - 1.0).tolist() for i in ids]  # [0, 4] to [-1, 1]

    known = seen[-1]
    assert np.allclose(known.x, in_ball(0, 4), atol=1e-15)
    assert known.y.tolist() == [-1.0, 4.0]
    assert np.allclose(known.pending, in_ball(2, 3, 5), atol=1e-15)
    assert np.allclose(known.failed, in_ball(1), atol=1e-15)


@every_method
def test_the_centre_may_be_open_while_others_are_told(method):
    opt = make(method=method)
    first = opt.ask()
    played(opt, 3)
    assert opt.trials[-1].origin == "model"
    opt.tell(first, 5.0)
    assert opt.ask().origin == "model"


@every_method
def test_the_centre_may_fail(method):
    opt = make(method=method)
    opt.fail(opt.ask(), "singular")
    played(opt, 5)
    assert [t.origin for t in opt.trials][2:] == ["random", "model", "model", "model"]
    assert pairwise_different(opt.trials)


@every_method
def test_failed_points_are_not_proposed_again(method):
    opt = played(make([(0, 1)] * 2, method=method), 3, fun=lambda x: float(x.sum()))
    for _ in range(8):
        opt.fail(opt.ask(), "diverged")
    assert pairwise_different(opt.trials)
    assert len(opt.history.of("failed")) == 8


@pytest.mark.parametrize("name", ["default", "cylinder"])
def test_failures_drive_the_search_away(name):
    # Left of 0.5 everything fails; a search that forgot its failures would follow the slope there for ever
    method = dataclasses.replace(cylbo.METHODS[name], n_sobol=256, first_sweeps=20, max_steps=20)
    opt = make([(0, 1)], method=method, center=[0.9])
    for _ in range(12):
        trial = opt.ask()
        if trial.x[0] < 0.5:
            opt.fail(trial, "diverged")
        else:
            opt.tell(trial, float(trial.x[0]))
    assert opt.best.value < 0.6


@every_method
def test_nothing_but_failures_keeps_working(method):
    opt = make(method=method)
    for _ in range(6):
        opt.fail(opt.ask())
    assert opt.best is None
    assert pairwise_different(opt.trials)
    assert all(inside(t.x) for t in opt.trials)


# ---- batches


@every_method
@pytest.mark.parametrize("n_told", [0, 1, 4])
def test_a_batch_is_as_many_asks_one_by_one(method, n_told):
    together, one_by_one = (played(make(method=method), n_told) for _ in range(2))
    batch = together.ask(4)
    assert type(batch) is list
    assert [type(trial) for trial in batch] == [cylbo.Trial] * 4
    assert [trial.status for trial in batch] == ["open"] * 4
    assert [trial.id for trial in batch] == list(range(n_told, n_told + 4))
    assert pairwise_different(together.trials)
    assert all(inside(trial.x) for trial in batch)
    for _ in range(4):
        one_by_one.ask()
    assert state(together) == state(one_by_one)
    for opt in (together, one_by_one):  # and in any order what comes after
        for trial in reversed(opt.history.of("open")):
            opt.tell(trial, bowl(trial.x))
    assert together.ask().x.tobytes() == one_by_one.ask().x.tobytes()


@pytest.mark.parametrize("n", [1, np.int64(1), np.uint8(1), 1.0])
def test_a_batch_of_one_is_a_list_too(n):
    [trial] = make().ask(n)
    assert trial.origin == "center"


@pytest.mark.parametrize("asked", [lambda opt: opt.ask(), lambda opt: opt.ask(None)])
def test_without_a_number_an_ask_is_one_trial(asked):
    assert asked(make()).id == 0


def test_a_batch_begins_with_the_points_that_were_given():
    x0 = [[0.0, 11.0, -4.2], [1.0, 12.0, -4.4]]
    opt = make(x0=x0)
    assert [trial.origin for trial in opt.ask(4)] == ["given", "given", "center", "random"]


@pytest.mark.parametrize("n", [0, -1, True, False, 2.5, -2.0, "3", math.nan, [2], np.int64(0)])
def test_a_batch_of_no_size_gets_a_clear_error_and_changes_nothing(n):
    opt = played(make(), 3)
    before = state(opt)
    with pytest.raises(ValueError, match=r"n must be an integer of at least 1, got .*ask\(\) without it"):
        opt.ask(n)
    assert state(opt) == before


@pytest.mark.parametrize("name", ["default", "cylinder"])
def test_a_batch_ends_where_a_finite_space_does(name):
    space = cylbo.Space(k=cylbo.Integer(0, 4), b=cylbo.Boolean())
    opt = make(space, method=METHODS[name])
    first = opt.ask(4)
    assert len(first) == 4
    opt.fail(first[0])
    opt.tell(first[1], 1.0)
    assert len(opt.ask(3)) == 3
    assert len(opt.ask(100)) == 3
    assert len({(t.params["k"], t.params["b"]) for t in opt.trials}) == 10
    before = state(opt)
    for n in (1, 7, None):
        with pytest.raises(cylbo.SpaceExhaustedError, match="all 10 points of the space"):
            opt.ask(n)
    assert state(opt) == before


def test_an_error_in_the_middle_of_a_batch_leaves_what_was_asked_open(monkeypatch):
    opt = played(make(), 3)
    suggest, calls = cylbo.run.optimizer.suggest, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return suggest(*args)

    monkeypatch.setattr("cylbo.run.optimizer.suggest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        opt.ask(5)
    assert [trial.id for trial in opt.history.of("open")] == [3, 4]
    twin = played(make(), 3)
    twin.ask(5)
    opt.ask(3)
    assert state(opt) == state(twin)


# ---- bad values, ids and trials change nothing

BAD_VALUES = {
    "nan": (math.nan, ValueError, "expected a finite number, got nan for trial"),
    "inf": (math.inf, ValueError, "expected a finite number, got inf for trial"),
    "-inf": (-math.inf, ValueError, "expected a finite number, got -inf for trial"),
    "numpy nan": (np.float64("nan"), ValueError, "expected a finite number, got nan"),
    "0-d nan": (np.array(np.nan), ValueError, "expected a finite number, got nan"),
    "0-d inf": (np.array(-np.inf), ValueError, "expected a finite number, got -inf"),
    "huge integer": (10**400, ValueError, "expected a finite number"),
    "huge negative integer": (-(10**400), ValueError, "expected a finite number"),
    "str": ("1.0", TypeError, "expected one real number, got str '1.0' for trial"),
    "array": (
        np.array([1.0, 2.0]),
        TypeError,
        r"expected one real number, got ndarray of shape \(2,\) for trial",
    ),
    "truth": (True, TypeError, "expected one real number, got True for trial 3; say which number is meant"),
    "list": ([1.0], TypeError, r"got list \[1.0\]"),
    "none": (None, TypeError, "expected one real number, got None for trial 3; did your function return"),
    "complex": (1 + 0j, TypeError, r"expected one real number, got complex \(1\+0j\) for trial"),
}


@pytest.mark.parametrize(("value", "error", "message"), BAD_VALUES.values(), ids=BAD_VALUES)
@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("name", ["default", "cylinder"])
def test_a_bad_value_is_refused_and_changes_nothing(value, error, message, by_id, name):
    opt, twin = (played(make(method=METHODS[name]), 3) for _ in range(2))
    trial, _ = opt.ask(), twin.ask()
    before = state(opt)
    with pytest.raises(error, match=message):
        opt.tell(trial.id if by_id else trial, value)
    assert state(opt) == before == state(twin)
    opt.tell(trial, 1.0)  # the trial is still open
    twin.tell(3, 1.0)
    assert np.array_equal(opt.ask().x, twin.ask().x)


@pytest.mark.parametrize("unknown", [5, -1, True, 1.0, "0", None])
@pytest.mark.parametrize("call", ["tell", "fail"])
def test_an_unknown_id_is_refused_and_changes_nothing(unknown, call):
    opt = played(make(), 2)
    opt.ask()
    before = state(opt)
    with pytest.raises(cylbo.UnknownTrialError, match=f"has ids 0 to 2; got {unknown!r}"):
        opt.tell(unknown, 1.0) if call == "tell" else opt.fail(unknown, "no")
    assert state(opt) == before


@pytest.mark.parametrize("call", ["tell", "fail"])
def test_a_trial_of_another_optimizer_is_refused_and_changes_nothing(call):
    opt, other = make(seed=0), make(seed=1)  # the first point is the centre for both, the second is not shared
    for each in (opt, other):
        each.ask(), each.ask()
    foreign = other.trials[1]
    before = state(opt), state(other)
    with pytest.raises(cylbo.UnknownTrialError, match="trial 1 comes from another optimizer"):
        opt.tell(foreign, 1.0) if call == "tell" else opt.fail(foreign)
    assert (state(opt), state(other)) == before


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, lambda trial: pickle.loads(pickle.dumps(trial))])
@pytest.mark.parametrize("call", ["tell", "fail"])
def test_a_copied_trial_is_as_good_as_the_trial(twin_of, call):
    # A worker process hands back a copy
    opt = played(make(), 2)
    twin = twin_of(opt.ask())
    closed = opt.tell(twin, 1.5) if call == "tell" else opt.fail(twin, "diverged")
    assert (closed.id, closed.status) == (2, "done" if call == "tell" else "failed")
    assert opt.trials[2] is closed
    with pytest.raises(cylbo.TrialClosedError, match="trial 2 was already"):
        opt.tell(twin, 1.0)


@pytest.mark.parametrize("again", ["tell", "fail"])
@pytest.mark.parametrize("first", ["tell", "fail"])
@pytest.mark.parametrize("by_id", [True, False])
def test_a_trial_closed_twice_is_refused_and_keeps_its_first_outcome(first, again, by_id):
    opt = make()
    trial = opt.ask()
    key = trial.id if by_id else trial

    def close(how, value):
        return opt.tell(key, value) if how == "tell" else opt.fail(key, f"crash {value}")

    close(first, 2.5)
    before = state(opt)
    with pytest.raises(cylbo.TrialClosedError, match=r"trial 0 was already (told \(2.5\)|reported .*'crash 2.5')"):
        close(again, 1.0)
    assert state(opt) == before


def test_a_closed_trial_object_is_as_good_as_the_open_one_for_saying_so():
    opt = make()
    closed = opt.tell(opt.ask(), 1.0)
    with pytest.raises(cylbo.TrialClosedError, match="already told"):
        opt.tell(closed, 2.0)


def test_changing_what_trials_returns_changes_nothing():
    opt = played(make(), 2)
    opt.trials.clear()
    assert len(opt.trials) == 2


# ---- earlier evaluations


def test_earlier_evaluations_are_known_and_not_asked():
    x0, y0 = np.array([[0.0, 11.0, -4.2], [1.0, 12.0, -4.4]]), np.array([3.0, -7.0])
    opt = make(x0=x0, y0=y0)
    assert opt.best.value == -7.0
    assert opt.best.x.tolist() == x0[1].tolist()
    assert [t.origin for t in opt.trials] == ["told", "told"]
    x0[:], y0[:] = 0.0, 0.0
    assert [t.value for t in opt.trials] == [3.0, -7.0]
    assert opt.trials[0].x.tolist() == [0.0, 11.0, -4.2]
    trial = opt.ask()
    assert (trial.id, trial.origin) == (2, "center")
    opt.tell(trial, 0.0)
    assert opt.ask().origin == "model"
    with pytest.raises(cylbo.TrialClosedError, match="trial 0 was already told"):
        opt.tell(0, 1.0)


def test_points_without_values_are_asked_first_in_order():
    x0 = [[0.0, 11.0, -4.2], [1.0, 12.0, -4.4]]
    opt = make(x0=x0)
    assert opt.best is None
    assert opt.trials == []
    trials = [opt.ask() for _ in range(4)]
    assert [t.origin for t in trials] == ["given", "given", "center", "random"]
    assert [t.x.tolist() for t in trials[:2]] == x0
    assert pairwise_different(trials)


def test_the_centre_among_the_earlier_points_is_not_asked_again():
    opt = make(x0=[[0.5, 20.0, -4.5]], y0=[1.0])
    assert opt.ask().origin == "random"


def test_no_earlier_points_at_all_are_fine():
    opt = make(x0=np.empty((0, 3)), y0=[])
    assert opt.ask().origin == "center"


@pytest.mark.parametrize("excess", [1e-15, 1e-12, 1e-10, 1e-6])
@pytest.mark.parametrize("y0", [None, [1.0]])
def test_given_points_a_hair_outside_of_the_bounds_are_refused(excess, y0):
    for x0 in ([[1.0 + excess]], [[-excess]]):
        with pytest.raises(ValueError, match="x0 must lie inside the bounds; row 0 does not"):
            make([(0.0, 1.0)], x0=x0, y0=y0)


@pytest.mark.parametrize("x", [0.0, 1.0])
def test_given_points_may_lie_on_the_bounds(x):
    opt = make([(0.0, 1.0)], x0=[[x]])
    assert opt.ask().x.tolist() == [x]
    assert make([(0.0, 1.0)], x0=[[x]], y0=[1.0]).best.x.tolist() == [x]


@pytest.mark.parametrize(
    ("x0", "y0", "error", "message"),
    [
        (None, [1.0], ValueError, "y0 was given without x0"),
        ([[0, 20, -4.5]], [1.0, 2.0], ValueError, r"y0 must have shape \(1,\).*got \(2,\)"),
        ([[0, 20, -4.5]], [[1.0]], ValueError, r"y0 must have shape \(1,\).*got \(1, 1\)"),
        ([[0, 20, -4.5]], 1.0, ValueError, r"y0 must have shape \(1,\).*got \(\)"),
        ([[0, 20, -4.5]], [None], (ValueError, TypeError), "y0 must be"),
        ([[0, 20, -4.5]], ["a"], TypeError, "y0 must be an array of numbers"),
        ([[0, 20, -4.5]], ["1.0"], TypeError, "y0 must be an array of numbers"),
        ([[0, 20, -4.5]], [1j], TypeError, "y0 must be an array of numbers"),
        ([[0, 20, -4.5]], np.array([1j]), TypeError, "y0 must be an array of numbers"),
        ([[0, 20, -4.5]], np.ma.array([1.0], mask=[True]), TypeError, "y0 must be an array of numbers"),
        ([0, 20, -4.5], [1.0], ValueError, r"x0 must have shape \(k, 3\), got \(3,\)"),
        ([[0, 20]], [1.0], ValueError, r"x0 must have shape \(k, 3\), got \(1, 2\)"),
        ([[0, 20, math.nan]], [1.0], ValueError, "x0 must be finite"),
        ([[0, 20, 0]], [1.0], ValueError, "x0 must lie inside the bounds; row 0 does not"),
        ([[0, 20, 0]], None, ValueError, "x0 must lie inside the bounds; row 0 does not"),
        ("points", [1.0], TypeError, "x0 must be an array of numbers"),
        ([["0", "20", "-4.5"]], [1.0], TypeError, "x0 must be an array of numbers"),
    ],
)
def test_bad_earlier_evaluations_get_a_clear_error(x0, y0, error, message):
    with pytest.raises(error, match=message):
        make(x0=x0, y0=y0)


# ---- seeds and global state


@pytest.mark.parametrize("seed", [-1, 1.5, -1.0, "0", True, [1], math.nan, math.inf])
def test_a_bad_seed_gets_a_clear_error(seed):
    with pytest.raises((ValueError, TypeError), match="seed must be a non-negative integer or None, got"):
        make(seed=seed)


@pytest.mark.parametrize("seed", [0, 2**70, np.int64(3), np.uint8(3), 3.0])
def test_any_nonnegative_integer_is_a_seed(seed):
    assert make(seed=seed).seed == int(seed)
    assert played(make(seed=seed), 3).best is not None


@pytest.mark.parametrize("name", ["max_suggest_seconds", "max_memory"])
@pytest.mark.parametrize("limit", [0, -1.0, math.nan, True, "1", 1j])
def test_a_bad_limit_gets_a_clear_error(name, limit):
    with pytest.raises(ValueError, match=f"{name} must be a positive number or None, got"):
        make(**{name: limit})


@pytest.mark.parametrize("name", ["max_suggest_seconds", "max_memory"])
@pytest.mark.parametrize(
    "limit", [5e-324, Fraction(1, 3), np.float32(2.0), 10**20, sys.float_info.max, math.inf], ids=str
)
def test_any_positive_number_is_a_limit(name, limit):
    assert played(make(**{name: limit}), 4).best is not None


def points_of(opt):
    return np.stack([t.x for t in opt.trials])


@every_method
def test_the_same_seed_gives_the_same_run_whatever_the_global_generators_do(method):
    quiet = points_of(played(make(method=method), 6))

    def noisy(x):
        np.random.seed(int(1e6 * abs(x[0])) % 2**31)  # noqa: NPY002 - the legacy generator is the point
        np.random.rand(3)  # noqa: NPY002
        torch.manual_seed(int(1e6 * abs(x[0])))
        torch.rand(3)
        random.random()
        return bowl(x)

    before = np.random.get_state(), torch.get_rng_state(), random.getstate()  # noqa: NPY002
    try:
        disturbed = points_of(played(make(method=method), 6, fun=noisy))
    finally:
        np.random.set_state(before[0])  # noqa: NPY002
        torch.set_rng_state(before[1])
        random.setstate(before[2])
    assert np.array_equal(quiet, disturbed)


@every_method
def test_two_interleaved_optimizers_do_not_disturb_each_other(method):
    alone = points_of(played(make(method=method), 6))
    first, second = make(method=method), make(seed=1, method=method)
    for _ in range(6):
        played(first, 1)
        played(second, 1)
    assert np.array_equal(points_of(first), alone)


@every_method
def test_different_seeds_differ(method):
    runs = [points_of(played(make(seed=seed, method=method), 5)) for seed in range(3)]
    for a, b in itertools.combinations(runs, 2):
        assert np.array_equal(a[0], b[0])  # the centre
        assert not (a[1] == b[1]).any()  # a uniform point
        assert not (a[1:] == b[1:]).all(-1).any()  # single coordinates may meet on the bounds


@every_method
def test_a_run_without_a_seed_can_be_repeated_from_the_seed_it_drew(method):
    opt = played(make(seed=None, method=method), 4)
    assert np.array_equal(points_of(opt), points_of(played(make(seed=opt.seed, method=method), 4)))
    assert make(seed=None).seed != make(seed=None).seed


@every_method
def test_no_global_state_is_touched(method):
    def snapshot():
        return (
            torch.get_default_dtype(),
            torch.get_num_threads(),
            torch.is_grad_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_rng_state().tolist(),
            [part.tolist() if isinstance(part, np.ndarray) else part for part in np.random.get_state()],  # noqa: NPY002
            random.getstate(),
            list(warnings.filters),
            np.geterr(),
            [(pool["filepath"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()],
        )

    torch.rand(1), np.random.rand(), random.random()  # noqa: NPY002 - off any state that a seed would give
    before = snapshot()
    played(make(seed=None, method=method), 5)
    assert snapshot() == before


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_the_default_dtype_of_torch_does_not_matter(dtype):
    expected = points_of(played(make(), 5))
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        assert np.array_equal(points_of(played(make(), 5)), expected)
    finally:
        torch.set_default_dtype(before)


@every_method
def test_the_floating_point_error_mode_of_the_caller_does_not_matter(method):
    expected = points_of(played(make(method=method), 6))
    with np.errstate(all="raise"):
        assert np.array_equal(points_of(played(make(method=method), 6)), expected)


# ---- difficult data: the search goes on, with the model where there is one


def goes_on(opt, n=2):
    """Ask, tell and ask again; every new point new, inside and from the model."""
    for _ in range(n):
        trial = opt.ask()
        assert trial.origin in ("center", "model")
        assert inside(trial.x)
        opt.tell(trial, 1.0)
    fresh = [t for t in opt.trials if t.origin != "told"]
    told = {t.x.tobytes() for t in opt.trials if t.origin == "told"}
    assert pairwise_different(fresh)
    assert all(t.x.tobytes() not in told for t in fresh)
    assert fresh[-1].origin == "model"


DIFFICULT_VALUES = {
    "constant": [3.0] * 6,
    "zero": [0.0] * 6,
    "huge": [1e300, 2e300, 3e300, 4e300],
    "hugely negative": [-1e300, -2e300, -3e300],
    "both signs": [1e300, -1e300, 1e300, -1e300, 0.0],
    "the largest": [1.7e308, -1.7e308, 0.0],
    "constant and huge": [1e300] * 4,
    "tiny": [1e-300, 2e-300, 3e-300],
    "constant and tiny": [1e-300] * 4,
    "subnormal": [5e-324, 0.0, 1e-320],
    "huge and tiny": [1e300, 1e-300, 1e300, 1e-300],
    "just squarable": [1e99, -1e99, 1e-300],
    "300 decades": [10.0**k for k in range(-150, 151, 30)],
    "300 decades, both signs": [(-1.0) ** k * 10.0 ** (30 * k - 150) for k in range(11)],
    "three of five equal": [1.0, 2.0, 1.0, 3.0, 1.0],
    "all but one equal": [0.0, 0.0, 0.0, 0.0, -1.0],
    "far from zero": [1e12 + k for k in range(6)],
    "far from zero and close": [1e12, 1e12 + 2e-4, 1e12 - 2e-4, 1e12],
    "one outlier": [0.0, 0.1, 0.2, 1e18],
}


@pytest.mark.parametrize("values", DIFFICULT_VALUES.values(), ids=DIFFICULT_VALUES)
@pytest.mark.parametrize(
    "method", [METHODS[name] for name in ("default", "cylinder", "paper", "matern")], ids=lambda c: c.name
)
def test_difficult_values(values, method):
    rng = np.random.default_rng(0)
    low, high = np.array(BOX).T
    x0 = rng.uniform(low, high, (len(values), 3))
    x0[0] = 0.5 * (low + high)
    opt = make(x0=x0, y0=values, method=method)
    assert opt.best.value == min(values)
    goes_on(opt)


@pytest.mark.parametrize("values", [[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [0.0, 1e-300], [-1e300, 1e300]])
@every_method
def test_two_points_are_enough(values, method):
    goes_on(make(x0=[[0.0, 11.0, -4.2], [0.5, 20.0, -4.5]], y0=values, method=method))


@pytest.mark.parametrize("values", [[1.0, 2.0, 1.0, 3.0, 1.0], [10.0**k for k in range(-150, 151, 75)], [2.0] * 5])
@every_method
def test_difficult_values_with_open_and_failed_trials(values, method):
    low, high = np.array(BOX).T
    x0 = np.random.default_rng(3).uniform(low, high, (5, 3))
    x0[2] = 0.5 * (low + high)
    opt = make(x0=x0, y0=values, method=method)
    for i in range(6):
        trial = opt.ask()
        assert trial.origin == "model"
        assert inside(trial.x)
        if i % 3:
            opt.fail(trial, "diverged")
    assert pairwise_different(opt.trials)
    goes_on(opt)


def on_one_ray(rng):
    return np.array([0.5, 20.0, -4.5]) + rng.uniform(0.05, 1.0, (6, 1)) * np.array([1.5, 10.0, 0.5])


def on_opposite_rays(rng):
    return np.array([0.5, 20.0, -4.5]) + rng.uniform(-1.0, 1.0, (6, 1)) * np.array([1.5, 10.0, 0.5])


DIFFICULT_POINTS = {
    "all on one ray": lambda rng: on_one_ray(rng),
    "all on two opposite rays": lambda rng: on_opposite_rays(rng),
    "all on one ray with the centre": lambda rng: np.vstack([on_one_ray(rng), [[0.5, 20.0, -4.5]]]),
    "two equal": lambda rng: np.repeat(on_one_ray(rng), 2, axis=0)[:7],
    "all equal": lambda rng: np.tile([[0.0, 12.0, -4.1]], (6, 1)),
    "all at the centre": lambda rng: np.tile([[0.5, 20.0, -4.5]], (6, 1)),
    "the centre several times": lambda rng: np.vstack([np.tile([[0.5, 20.0, -4.5]], (4, 1)), on_opposite_rays(rng)]),
    "a hair's breadth from the centre": lambda rng: np.array([[0.5, 20.0, -4.5]]) + 1e-13 * rng.normal(size=(6, 3)),
    "corners only": lambda rng: np.array([[a, b, c] for a in (-1, 2) for b in (10, 30) for c in (-5, -4)], dtype=float),
}


@pytest.mark.parametrize("points", DIFFICULT_POINTS.values(), ids=DIFFICULT_POINTS)
@pytest.mark.parametrize("equal_values", [True, False])
@pytest.mark.parametrize(
    "method", [METHODS[name] for name in ("default", "cylinder", "paper+b", "matern")], ids=lambda c: c.name
)
def test_difficult_points(points, equal_values, method):
    rng = np.random.default_rng(1)
    x0 = points(rng)
    y0 = np.ones(len(x0)) if equal_values else rng.standard_normal(len(x0))
    goes_on(make(x0=x0, y0=y0, method=method))


@every_method
@pytest.mark.parametrize("region", ["box", "ball"])
def test_one_parameter(method, region):
    opt = played(make([(-3.0, 5.0)], method=method, region=region), 8)
    assert all(inside(t.x, [(-3.0, 5.0)]) for t in opt.trials)  # in one dimension the ball is the box
    assert pairwise_different(opt.trials)


@pytest.mark.parametrize("region", ["box", "ball"])
@pytest.mark.parametrize("name", ["default", "cylinder", "paper"])
def test_a_thousand_parameters(name, region):
    bounds = [(-1.0, 1.0)] * 1000
    opt = played(make(bounds, method=METHODS[name], region=region), 5)
    assert [t.origin for t in opt.trials] == ["center", "random", "model", "model", "model"]
    assert pairwise_different(opt.trials)
    assert region == "ball" or all(inside(t.x, bounds) for t in opt.trials)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e300])
@pytest.mark.parametrize("name", ["default", "cylinder"])
def test_the_unit_of_a_parameter_does_not_matter(scale, name):
    method = METHODS[name]
    reference = played(make([(-1.0, 3.0)] * 2, method=method), 6)
    scaled = played(make([(-scale, 3.0 * scale)] * 2, method=method), 6, fun=lambda x: bowl(x / scale))
    assert np.allclose(points_of(scaled) / scale, points_of(reference), rtol=0, atol=1e-6)


# ---- region


@every_method
def test_the_box_is_never_left(method):
    bounds = [(-1.0, 1.0)] * 4
    opt = played(make(bounds, method=method), 8, fun=lambda x: -float(np.sum(x**2)))  # the best places are the corners
    assert all(inside(t.x, bounds) for t in opt.trials)


def ball_radii(opt):
    return np.linalg.norm(opt.frame.to_ball(points_of(opt)), axis=-1)


@every_method
@pytest.mark.parametrize("center", [None, [0.5, -0.9, 0.0, 1.0]])
def test_the_ball_is_never_left(method, center):
    opt = make([(-1.0, 1.0)] * 4, method=method, region="ball", center=center)
    played(opt, 8, fun=lambda x: -float(np.sum(x**2)))
    assert ball_radii(opt).max() <= opt.frame.domain.radius * (1 + 1e-12)


@pytest.mark.parametrize("method", ["default", "cylinder", "paper"])
def test_the_ball_may_leave_the_box(method):
    bounds = [(-1.0, 1.0)] * 3
    opt = make(bounds, method=dataclasses.replace(cylbo.METHODS[method], n_sobol=256, max_steps=100), region="ball")
    played(opt, 8, fun=lambda x: float(x[0]))  # at its least at (-sqrt 3, 0, 0), outside the box
    assert opt.best.value < -1.0
    assert not inside(opt.best.x, bounds)


def test_earlier_points_of_the_ball_are_taken_with_region_ball_only():
    outside = [[2.5, 20.0, -4.5]]
    assert make(region="ball", x0=outside, y0=[1.0]).best.x.tolist() == outside[0]
    with pytest.raises(ValueError, match="inside the bounds"):
        make(x0=outside, y0=[1.0])


# ---- large values may be good


SPACE = cylbo.Space(r=cylbo.Real(0, 1), k=cylbo.Integer(0, 9), c=cylbo.Categorical(["a", "b", "c"]))


@every_method
@pytest.mark.parametrize("bounds", [BOX, SPACE], ids=["box", "space"])
def test_to_maximise_is_to_minimise_the_negative_bit_for_bit(bounds, method):
    down, up = make(bounds, method=method), make(bounds, method=method, direction="maximize")
    for i in range(8):
        trials = [opt.ask() for opt in (down, up)]
        assert trials[0].x.tobytes() == trials[1].x.tobytes()
        assert trials[0].origin == trials[1].origin
        if i == 4:
            down.fail(trials[0])
            up.fail(trials[1])
            continue
        value = float(np.sin(3.0 * trials[0].x).sum())
        down.tell(trials[0], -value)
        assert up.tell(trials[1], value).value == value
    assert up.best.id == down.best.id
    assert up.best.value == -down.best.value == max(t.value for t in up.history.of("done"))


def test_earlier_evaluations_are_kept_as_they_were_told_whatever_the_direction():
    x0, y0 = [[0.0, 11.0, -4.2], [1.0, 12.0, -4.3], [2.0, 13.0, -4.4]], [1.0, 5.0, 3.0]
    up, down = make(x0=x0, y0=y0, direction="maximize"), make(x0=x0, y0=[-y for y in y0])
    assert [t.value for t in up.trials] == y0
    assert up.best.value == 5.0
    assert np.array_equal(points_of(played(up, 4, lambda x: -bowl(x))), points_of(played(down, 4)))


def test_of_equal_values_the_earliest_is_the_best_whatever_the_direction():
    for direction in ("minimize", "maximize"):
        assert played(make(direction=direction), 4, lambda x: 1.0).best.id == 0


@pytest.mark.parametrize("direction", ["max", "Maximize", "", None, True, 1, -1])
def test_an_unknown_direction_is_named_with_the_known_ones(direction, tmp_path):
    path = tmp_path / "run.db"
    for call in (make, lambda **options: cylbo.minimize(bowl, BOX, budget=1, **options)):
        with pytest.raises(ValueError, match=f"direction must be 'minimize' or 'maximize', got {direction!r}"):
            call(direction=direction, storage=path)
    assert not path.exists()
