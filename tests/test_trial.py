"""Trials and their record, without an optimizer around them."""

import copy
import dataclasses
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch

import cylbo
from cylbo.record.history import History, checked_value


@pytest.fixture
def history():
    history = History()
    for i in range(3):
        history.keep(history.new(np.array([float(i), -1.0]), origin="random"))
    return history


def close(history, trial, **outcome):
    """As the optimizer does it, with nothing to store between."""
    return history.keep(history.closed(trial, **outcome))


def test_ids_count_from_zero(history):
    assert [trial.id for trial in history.all] == [0, 1, 2]
    assert len(history) == 3


def test_metadata_cannot_be_changed(history):
    given = {"predicted": 1.0}
    trial = history.keep(history.new(np.zeros(2), metadata=given))
    given["predicted"] = 2.0
    for change in (
        lambda kept: kept.__setitem__("predicted", 3.0),
        lambda kept: kept.__delitem__("predicted"),
        lambda kept: kept.__ior__({"predicted": 3.0}),
        lambda kept: kept.update(predicted=3.0),
        lambda kept: kept.setdefault("other", 3.0),
        lambda kept: kept.pop("predicted"),
        lambda kept: kept.popitem(),
        lambda kept: kept.clear(),
    ):
        with pytest.raises(TypeError, match="cannot be changed; work on a copy"):
            change(trial.metadata)
    for other in (
        trial,
        copy.deepcopy(trial),
        pickle.loads(pickle.dumps(trial)),
        dataclasses.replace(trial, value=1.0),
    ):
        assert other.metadata == {"predicted": 1.0}
        with pytest.raises(TypeError, match="cannot be changed"):
            other.metadata["predicted"] = 3.0


def test_the_former_name_of_a_suggestion_says_what_it_is_called_now(history):
    trial = history[0]
    assert trial.suggestion == cylbo.Suggestion()
    with pytest.raises(AttributeError, match=r"Trial\.info is called Trial\.suggestion since 0\.2"):
        trial.info  # noqa: B018
    with pytest.raises(AttributeError, match="'Trial' object has no attribute 'velue'"):
        trial.velue  # noqa: B018


def test_a_suggestion_is_numbers_that_come_back():
    said = cylbo.Suggestion(predicted=1.5, probability=0.25, points=3)
    assert said.to_json() == {"predicted": 1.5, "probability": 0.25, "points": 3}
    assert cylbo.Suggestion.from_json(said.to_json()) == said
    # As release 0.1 wrote it
    assert cylbo.Suggestion.from_json({"chance": 0.25, "reach": 0.3}) == cylbo.Suggestion(
        probability=0.25, trust_radius=0.3
    )
    for wrong in ({"luck": 1.0}, {"predicted": "1"}, {"predicted": True}):
        with pytest.raises(ValueError, match="expected numbers called acquisition"):
            cylbo.Suggestion.from_json(wrong)


def test_a_trial_keeps_its_own_read_only_point(history):
    x = np.array([1.0, 2.0])
    trial = history.keep(history.new(x))
    x[0] = 99.0
    assert trial.x.tolist() == [1.0, 2.0]
    assert x.flags.writeable  # the caller's array is left alone
    with pytest.raises(ValueError, match="read-only"):
        trial.x[0] = 0.0


def test_a_trial_is_a_snapshot(history):
    before = history[1]
    closed = close(history, before, value=2.0, status="done")
    assert (before.status, before.value) == ("open", pytest.approx(math.nan, nan_ok=True))
    assert (closed.status, closed.value, closed.id) == ("done", 2.0, 1)
    assert history[before] is history[1] is history[closed] is closed
    with pytest.raises(dataclasses.FrozenInstanceError):
        closed.value = 3.0


def test_what_is_new_or_closed_changes_nothing_until_it_is_kept(history):
    before = history.all
    fresh = history.new(np.array([7.0, 7.0]), origin="random")
    outcome = history.closed(1, value=2.0, status="done")
    assert (fresh.id, outcome.id, outcome.value) == (3, 1, 2.0)
    assert all(a is b for a, b in zip(history.all, before, strict=True))
    assert history.keep(fresh) is history[3] is fresh
    assert history.keep(outcome) is history[1] is outcome
    assert [trial.id for trial in history.all] == [0, 1, 2, 3]


def test_a_history_may_begin_with_trials_and_leaves_their_list_alone(history):
    trials = close(history, 0, value=4.0, status="done"), *history.all[1:]
    twin = History(list(trials))
    close(twin, 2, value=-1.0, status="done")
    assert twin.best.id == 2
    assert history[2].status == "open"
    assert twin.new(np.zeros(2)).id == 3


def test_the_list_of_trials_is_a_copy(history):
    history.all.clear()
    history.of("open").clear()
    assert len(history) == len(history.all) == 3


@pytest.mark.parametrize(
    "unknown",
    [-1, 3, 10**20, pytest.param(10**5000, id="unspeakable"), True, False, 0.0, "0", None, (0,), np.array([0])],
)
def test_an_unknown_id_is_named_with_the_known_ones(history, unknown):
    with pytest.raises(cylbo.UnknownTrialError, match="has ids 0 to 2; got"):
        history[unknown]


def test_an_id_may_be_a_numpy_integer(history):
    assert history[np.int64(2)].id == 2


def test_an_empty_history_says_so():
    with pytest.raises(cylbo.UnknownTrialError, match="no trials yet; got 0"):
        History()[0]


def test_a_trial_of_another_history_is_refused(history):
    other = History().new(np.array([0.0, -2.0]))
    assert other.id in {trial.id for trial in history.all}  # the id alone would pass
    with pytest.raises(cylbo.UnknownTrialError, match="trial 0 comes from another optimizer"):
        close(history, other, value=1.0, status="done")
    assert history[0].status == "open"


@pytest.mark.parametrize("outcome", [{"value": 1.5, "status": "done"}, {"status": "failed", "reason": "diverged"}])
def test_a_trial_is_closed_once(history, outcome):
    first = close(history, 1, **outcome)
    with pytest.raises(cylbo.TrialClosedError, match=r"trial 1 was already (told \(1.5\)|reported .*'diverged')"):
        close(history, 1, value=0.0, status="done")
    assert history[1] is first


def test_trials_are_sorted_by_outcome(history):
    close(history, 2, value=1.0, status="done")
    close(history, 0, status="failed")
    assert [[trial.id for trial in history.of(s)] for s in ("open", "done", "failed")] == [[1], [2], [0]]


def test_best_is_the_least_value_and_the_earliest_of_equals(history):
    assert history.best is None
    for i, value in ((2, -3.0), (1, -3.0), (0, 5.0)):
        close(history, i, value=value, status="done")
    assert history.best.id == 1


def test_a_failed_trial_is_never_the_best(history):
    close(history, 0, status="failed")
    assert history.best is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0),
        (-2.5, -2.5),
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3.0),
        (np.array(4.0), 4.0),
        (np.array([4.0]), 4.0),
        (np.array([[4]]), 4.0),
        (np.array([Fraction(1, 4)]), 0.25),
        (np.ma.array([4.0]), 4.0),
        (torch.tensor(4.0), 4.0),
        (torch.tensor([[4.0]], requires_grad=True), 4.0),
        (pd.Series([4.0], index=["loss"]), 4.0),
        (Fraction(1, 4), 0.25),
        (1e308, 1e308),
        (5e-324, 5e-324),
    ],
)
def test_every_kind_of_real_number_is_a_value(history, value, expected):
    checked = checked_value(value, history[0])
    assert checked == expected
    assert type(checked) is float


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.float32("nan"),
        np.array(np.inf),
        np.array([np.inf]),
        torch.tensor([math.nan]),
        np.array(np.nan),
        np.array(-np.inf, dtype=np.float32),
        pytest.param(10**400, id="huge integer"),
        pytest.param(-(10**400), id="huge negative integer"),
        pytest.param(Fraction(10**400), id="huge fraction"),
    ],
)
def test_a_value_that_is_not_finite_is_refused_with_advice(history, value):
    with pytest.raises(ValueError, match=r"expected a finite number, got .* for trial 2; .*fail\(trial, reason\)"):
        checked_value(value, history[2])


@pytest.mark.parametrize(
    "value",
    [
        "1.0",
        b"1",
        1j,
        [1.0],
        (1.0,),
        {},
        np.ones((2, 2)),
        np.ones(2),
        np.empty(0),
        torch.ones(2),
        torch.tensor([1j]),
        pd.Series([1.0, 2.0]),
        pd.Series(["1"]),
        np.array(["1"]),
        np.array([5], "m8[ns]"),
        np.timedelta64(5, "ns"),
        np.ma.array([1.0], mask=[True]),
        np.array("a"),
        np.array(1j),
        np.ma.masked,
    ],
)
def test_a_value_that_is_no_number_is_refused_with_its_type(history, value):
    with pytest.raises(TypeError, match=r"expected one real number, got \w+ .* for trial 2; .*fail\(trial, reason\)"):
        checked_value(value, history[2])


@pytest.mark.parametrize("value", [None, np.array(None), np.array([None])])
def test_none_is_asked_whether_the_function_returned(history, value):
    with pytest.raises(TypeError) as caught:
        checked_value(value, history[2])
    assert str(caught.value) == (
        "expected one real number, got None for trial 2; did your function return a number? If the evaluation gave "
        "nothing, call fail(trial, reason), or return NaN to minimize."
    )


@pytest.mark.parametrize("kind", [bool, np.bool_, np.array, lambda v: np.array([v]), torch.tensor, pd.Series])
def test_true_and_false_are_no_values(history, kind):
    for truth in (True, False):
        with pytest.raises(TypeError) as caught:
            checked_value(kind(truth), history[2])
        assert str(caught.value) == (
            f"expected one real number, got {truth} for trial 2; say which number is meant, e.g. float(value)."
        )


def test_the_shape_of_an_array_that_is_no_number_is_named(history):
    for value in (np.ones((2, 3)), torch.ones(2, 3)):
        with pytest.raises(TypeError, match=rf"got {type(value).__name__} of shape \(2, 3\) for trial 2"):
            checked_value(value, history[2])


def test_noise_and_constraints_may_be_arrays_of_one(history):
    trial = history[0]
    assert history.checked_std(torch.tensor([0.5]), trial) == 0.5
    assert math.isnan(history.checked_std(np.array([math.nan]), trial))
    assert history.checked_constraints([np.array([1.0]), torch.tensor(-2.0)], trial) == (1.0, -2.0)
    assert history.checked_constraints(np.array([[1.0], [-2.0]]), trial) == (1.0, -2.0)
    for truth in (True, np.True_, np.array([True])):
        with pytest.raises(TypeError, match=r"expected std to be one real number, got bool True"):
            history.checked_std(truth, trial)
        with pytest.raises(TypeError, match=r"expected constraints\[0\] to be a number that is .*, got True"):
            history.checked_constraints([truth], trial)


@pytest.mark.parametrize(
    "constraints", [{1.0, -1.0}, {0: 1.0}, "12", b"12", 1.0, frozenset([2.0]), {0: 1.0}.keys()], ids=str
)
def test_constraints_without_an_order_are_refused(history, constraints):
    with pytest.raises(TypeError, match=r"constraints must be a list of numbers, got .* for trial 2"):
        history.checked_constraints(constraints, history[2])


def test_trials_print_what_matters(history):
    assert repr(history[0]) == "Trial(id=0, status='open', x=[0, -1], origin='random')"
    assert repr(close(history, 0, value=0.25, status="done")) == "Trial(id=0, value=0.25, x=[0, -1], origin='random')"


def test_a_copied_history_goes_on_by_itself(history):
    twin = copy.deepcopy(history)
    close(twin, twin[0], value=1.0, status="done")
    assert (twin[0].status, history[0].status) == ("done", "open")


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, lambda trial: pickle.loads(pickle.dumps(trial))])
def test_a_copy_of_a_trial_is_as_good_as_the_trial(history, twin_of):
    """From another process, for one: the id and the point say which it is."""
    twin = twin_of(history[1])
    assert history[twin] is history[1]
    assert close(history, twin, value=2.0, status="done").value == 2.0
    assert history[1].status == "done"


def test_a_trial_with_another_point_under_a_known_id_is_refused(history):
    moved = dataclasses.replace(history[1], x=history[1].x + 1e-16 * np.array([4.0, 0.0]))
    assert not np.array_equal(moved.x, history[1].x)
    for x in (moved.x, np.append(history[1].x, 0.0), history[1].x[:1]):
        with pytest.raises(cylbo.UnknownTrialError, match="trial 1 comes from another optimizer"):
            history[dataclasses.replace(history[1], x=x)]


@pytest.mark.parametrize("truth", [True, False, np.True_])
def test_a_constraint_is_a_number_and_no_truth(truth):
    opt = cylbo.Optimizer([(0, 1)], seed=0)
    with pytest.raises(
        TypeError, match=r"expected constraints\[1\] to be a number that is <= 0 where .* got (True|False)"
    ):
        opt.tell(opt.ask(), 1.0, constraints=[0.0, truth])


def test_an_array_without_a_length_is_no_list_of_constraints():
    opt = cylbo.Optimizer([(0, 1)], seed=0)
    with pytest.raises(TypeError, match=r"constraints must be a list of numbers, got array\(1.\) for trial 0"):
        opt.tell(opt.ask(), 1.0, constraints=np.array(1.0))


def test_true_and_false_are_no_values_of_y0():
    with pytest.raises(TypeError, match="y0 must be numbers, got"):
        cylbo.Optimizer([(0, 1)], x0=[[0.5]], y0=[True])
