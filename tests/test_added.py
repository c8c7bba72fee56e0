"""Evaluations that nobody asked for, points of the user's own, and trials that are withdrawn or were lost."""

import math
import warnings

import numpy as np
import pytest

import cylbo
from cylbo import Integer, Real, Space
from test_storage import BOX, CHEAP, METHODS, bits, bowl, make, run

NAMED = Space(lr=Real(1e-4, 1e-1, log=True), depth=Integer(1, 9, default=3), w=Real(-1, 1, shape=2))
POINT, OTHER = [0.25, 25.0, -4.75], [1.5, 11.0, -4.25]

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def begun(n, storage=None, **options):
    """An optimizer after n evaluations."""
    opt = cylbo.Optimizer(BOX, **{"seed": 0, "method": CHEAP, "storage": storage, **options})
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, bowl(trial.x))
    return opt


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


# ---- add


@every_method
@pytest.mark.parametrize("n", [0, 1, 6])
def test_an_added_evaluation_is_known_to_the_model_and_costs_nothing_else(n, method):
    plain, opt = (begun(n, method=method, direction="maximize") for _ in range(2))
    trial = opt.add(POINT, 1e3, std=0.1)
    assert (trial.id, trial.status, trial.origin, trial.value, trial.std) == (n, "done", "added", 1e3, 0.1)
    assert opt.best is opt.trials[n]
    before, known = plain._known(), opt._known()
    assert known.y.tolist() == [*before.y, -1e3]
    assert (known.n_unguided, known.failed_lately) == (before.n_unguided, before.failed_lately)
    assert len(known.surprises) == len(before.surprises)
    assert opt.ask().origin == ("center" if n == 0 else "random" if n == 1 and len(known.y) < 2 else "model")


def test_an_added_failure_is_a_place_to_avoid_and_no_recent_one():
    opt = begun(5)
    for i in range(6):
        failed = opt.add_failed(OTHER, f"licence {i}", metadata={"host": "a"})
    assert (failed.status, failed.origin, failed.reason, failed.metadata) == (
        "failed",
        "added",
        "licence 5",
        {"host": "a"},
    )
    known = opt._known()
    assert (len(known.failed), known.failed_lately, known.n_unguided) == (6, 0.0, begun(5)._known().n_unguided)
    opt.fail(opt.ask())
    assert opt._known().failed_lately == pytest.approx(1 / 6)


def test_an_added_centre_is_not_asked_again():
    opt = begun(0)
    opt.add([0.5, 20.0, -4.5], 1.0)
    assert opt.ask().origin == "random"


def test_added_points_have_names_in_a_space():
    opt = cylbo.Optimizer(NAMED, seed=0, method=CHEAP)
    trial = opt.add({"lr": 1e-2, "depth": 9, "w": [0.5, -0.5]}, 1.0, metadata={"accuracy": np.float32(0.5)})
    assert trial.params["depth"] == 9
    assert trial.metadata == {"accuracy": 0.5}
    with pytest.raises(ValueError, match=r"point must have lr, depth, w; missing \['w'\]"):
        opt.add({"lr": 1e-2, "depth": 9}, 1.0)


@pytest.mark.parametrize(
    ("point", "error", "message"),
    [
        ([0.25, 25.0], ValueError, r"point must have shape \(3,\), got \(2,\)"),
        ([0.25, 31.0, -4.5], ValueError, r"point must lie inside the bounds; it does not: \[ 0.25 31"),
        ([0.25, math.nan, -4.5], ValueError, "point must be finite"),
        ("abc", TypeError, "point must be an array of numbers, got 'abc'"),
        (None, TypeError, "point must be an array of numbers, got None"),
        ([POINT], ValueError, r"point must have shape \(3,\), got \(1, 3\)"),
    ],
)
def test_a_point_that_is_none_is_refused_and_changes_nothing(path, point, error, message):
    opt = begun(2, path)
    before = bits(opt.trials)
    for call in (lambda: opt.add(point, 1.0), lambda: opt.add_failed(point), lambda: opt.enqueue(point)):
        with pytest.raises(error, match=message):
            call()
    for value in ("1", None, math.nan, True):
        with pytest.raises((TypeError, ValueError), match="expected"):
            opt.add(POINT, value)
    with pytest.raises(TypeError, match="metadata must be a dict"):
        opt.add(POINT, 1.0, metadata=[1])
    assert bits(opt.trials) == before == bits(cylbo.load(path).trials)
    assert opt.ask().origin == "model"


def test_what_was_added_costs_no_budget_and_is_in_the_result(path):
    with begun(3, path) as opt:
        opt.add(OTHER, -5.0)
        opt.add_failed(POINT)
    result = run(storage=path, budget=6, resume=True)
    assert (result.nfev, len(result.x_iters), len(result.trials)) == (6, 6, 8)
    assert (result.fun, result.x.tolist()) == (-5.0, OTHER)
    assert np.isfinite(result.func_vals).all()


def test_a_callback_may_add_what_it_finds_elsewhere():
    def callback(trial, optimizer):
        if trial.id == 2:
            optimizer.add(POINT, -7.0)

    result = run(budget=5, callback=callback)
    assert (result.nfev, result.fun) == (5, -7.0)


def test_the_constraints_of_an_added_evaluation_are_as_many_as_of_others():
    opt = begun(0)
    opt.tell(opt.ask(), 1.0, constraints=[-1.0, 0.5])
    with pytest.raises(ValueError, match="expected 2 constraints as with trial 0, got 1 for trial 1"):
        opt.add(POINT, 1.0, constraints=[0.0])
    opt.add(POINT, 1.0, constraints=[0.0, -1.0])
    assert opt.best.id == 1


# ---- enqueue


@every_method
@pytest.mark.parametrize("n", [0, 6])
def test_points_that_wait_come_first_in_their_order_also_before_the_centre_and_in_a_batch(n, method):
    opt = begun(n, method=method)
    opt.enqueue(POINT)
    opt.enqueue(np.array(OTHER))
    batch = opt.ask(4)
    assert [trial.x.tolist() for trial in batch[:2]] == [POINT, OTHER]
    assert [trial.origin for trial in batch[:2]] == ["enqueued"] * 2
    assert batch[2].origin == ("center" if n == 0 else "model")
    assert len({trial.x.tobytes() for trial in opt.trials}) == n + 4


def test_points_given_at_the_start_come_before_those_that_wait():
    opt = begun(0, x0=[OTHER])
    opt.enqueue(POINT)
    assert [trial.origin for trial in opt.ask(3)] == ["given", "enqueued", "center"]


def test_what_a_dict_leaves_out_is_at_its_default_or_where_the_centre_is():
    centre = {"lr": 1e-3, "depth": 7, "w": [0.5, 0.25]}
    opt = cylbo.Optimizer(NAMED, seed=0, method=CHEAP, center=centre)
    opt.enqueue({"lr": 1e-2})
    opt.enqueue({})
    first, second = opt.ask(2)
    assert (first.params["lr"], first.params["depth"], first.params["w"].tolist()) == (1e-2, 3, [0.5, 0.25])
    assert (second.params["lr"], second.params["depth"]) == (1e-3, 3)
    with pytest.raises(ValueError, match=r"unknown \['learning_rate'\]"):
        opt.enqueue({"learning_rate": 1e-2})
    with pytest.raises(ValueError, match=r"point\['depth'\] must lie within \(1, 9\), got 10"):
        opt.enqueue({"depth": 10})
    with pytest.raises(TypeError, match="point must be a dict of lr, depth, w"):
        opt.enqueue([1e-2, 3, 0, 0])


@pytest.mark.parametrize(
    ("state", "message"),
    [("done", "trial 2 gave its value, 7; say noisy=True"), ("open", "trial 2 is open there; tell, fail or cancel"),
     ("waiting", "it waits already")],
)  # fmt: skip
def test_a_point_that_need_not_be_asked_is_skipped_with_a_warning(path, state, message):
    opt = begun(2, path)
    opt.enqueue(POINT)
    if state != "waiting":
        trial = opt.ask()
    if state == "done":
        opt.tell(trial, 7.0)
    with pytest.warns(UserWarning, match=f"enqueue.. skipped a point: {message}"):
        opt.enqueue(POINT)
    expected = ["enqueued", "model"] if state == "waiting" else ["model", "model"]
    assert [trial.origin for trial in opt.ask(2)] == expected


def test_a_point_that_failed_or_was_cancelled_may_be_tried_again():
    for close in ("fail", "cancel"):
        opt = begun(2)
        opt.enqueue(POINT)
        getattr(opt, close)(opt.ask())
        opt.enqueue(POINT)
        assert opt.ask().x.tolist() == POINT


@pytest.mark.parametrize("known", [True, False], ids=["said", "seen"])
def test_a_point_is_asked_again_if_values_are_noisy(known):
    opt = begun(2, noisy=True if known else None)
    if not known:
        opt.add(OTHER, 1.0)
        opt.add(OTHER, 2.0)
    opt.add(POINT, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opt.enqueue(POINT)
        assert opt.ask().x.tolist() == POINT


@pytest.mark.parametrize("n", [(), (1,)], ids=["one", "batch"])
def test_a_warning_names_the_line_of_the_user(n):
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP)
    opt.enqueue([0.1, 12.0, -4.9])
    with pytest.warns(UserWarning, match="enqueue.. skipped") as at_enqueue:
        opt.enqueue([0.1, 12.0, -4.9])
    opt.add([0.1, 12.0, -4.9], 1.0)
    with pytest.warns(UserWarning, match="ask.. skipped") as at_ask:
        opt.ask(*n)
    assert [warning.filename for warning in [*at_enqueue, *at_ask]] == [__file__] * 2


def test_a_point_that_was_evaluated_while_it_waited_is_skipped(path):
    opt = begun(2, path)
    opt.enqueue(POINT)
    opt.enqueue(OTHER)
    opt.add(POINT, 7.0)
    with pytest.warns(UserWarning, match=r"ask\(\) skipped a point that was enqueued: trial 2 gave its value, 7"):
        assert opt.ask().x.tolist() == OTHER
    opt.close()
    with make(path) as again:
        assert again.ask().origin == "model"


def test_a_warning_that_is_an_error_loses_nothing(path):
    opt = begun(2, path)
    opt.enqueue(POINT)
    opt.add(POINT, 7.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            opt.ask()
    assert len(opt.pending) == 0
    assert opt.ask().origin == "model"


# ---- cancel and pending


@every_method
@pytest.mark.parametrize("n", [1, 6])
def test_a_cancelled_trial_teaches_the_model_nothing(n, method):
    opt = begun(n, method=method)
    known = opt._known()
    trial = opt.cancel(opt.ask())
    assert (trial.status, opt.pending, opt.trials[-1]) == ("cancelled", [], trial)
    for name, value in vars(opt._known()).items():
        np.testing.assert_array_equal(value, getattr(known, name))
    assert opt.ask().status == "open"


def test_a_cancelled_centre_is_asked_again():
    opt = begun(0)
    first = opt.ask()
    opt.cancel(first.id)
    again = opt.ask()
    assert (again.origin, again.id, again.x.tolist()) == ("center", 1, first.x.tolist())


def test_a_cancelled_point_of_a_finite_space_is_left_to_be_asked():
    opt = cylbo.Optimizer(Space(a=Integer(0, 3)), seed=0, method=CHEAP)
    batch = opt.ask(10)
    assert len(batch) == 4
    opt.cancel(batch[2])
    (again,) = opt.ask(10)
    assert again.params == batch[2].params
    with pytest.raises(cylbo.SpaceExhaustedError):
        opt.ask()


def test_a_cancelled_trial_is_closed_and_a_late_value_has_a_way_in():
    opt = begun(2)
    trial = opt.cancel(opt.ask())
    for call in (lambda: opt.tell(trial, 1.0), lambda: opt.fail(trial), lambda: opt.cancel(trial)):
        with pytest.raises(cylbo.TrialClosedError, match=r"trial 2 was already cancelled; add\(\) its point with the"):
            call()
    opt.add(trial.x, -1.0)
    assert opt.best.value == -1.0
    with pytest.raises(cylbo.UnknownTrialError):
        opt.cancel(99)


def test_what_a_kill_left_open_is_pending_and_health_says_what_to_do(path):
    opt = begun(3, path)
    opt.ask(2)
    opt.close()
    with make(path) as again:
        assert [trial.id for trial in again.pending] == [3, 4]
        assert again.health().pending == (3, 4)
        assert "trial 3, 4: tell, fail or cancel() those that were lost" in str(again.health())
        again.cancel(again.pending[0])
        again.tell(again.pending[0], 1.0)
        assert again.pending == []
        assert "lost" not in str(again.health())
    assert [trial.status for trial in cylbo.load(path).trials[3:]] == ["cancelled", "done"]


def test_cancelled_trials_cost_no_budget(path):
    with begun(3, path) as opt:
        for trial in opt.ask(4):
            opt.cancel(trial)
    result = run(storage=path, budget=5, resume=True)
    assert (result.nfev, [trial.status for trial in result.trials].count("cancelled")) == (5, 4)


# ---- exact on resume


@every_method
def test_a_run_with_all_of_it_resumed_after_every_step_is_the_run_left_alone(path, method):
    def steps(opt):
        yield opt.enqueue(POINT)
        yield opt.tell(opt.ask(), 1.0, metadata={"step": [1, {"of": None}]})
        yield opt.tell(opt.ask(), 2.0)
        yield opt.add(OTHER, 0.5, std=0.0, metadata={"host": "a"})
        yield opt.enqueue([0.1, 12.0, -4.9])
        yield opt.enqueue([0.2, 13.0, -4.8])
        yield opt.cancel(opt.ask())
        yield opt.add_failed([0.3, 14.0, -4.7], "licence")
        yield opt.ask()
        yield opt.tell(opt.ask(), 3.0)
        yield opt.cancel(opt.ask())
        yield opt.fail(opt.ask(), "diverged", metadata={"path": "/tmp"})
        yield opt.enqueue([0.4, 15.0, -4.6])
        yield opt.tell(opt.ask(), 2.5)
        yield opt.tell(opt.ask(), 2.25)

    class Resumed:
        """Passes each call on to an optimizer that has just been made from the file."""

        def __getattr__(self, name):
            def call(*arguments, **options):
                with make(path, method=method) as opt:
                    return getattr(opt, name)(*arguments, **options)

            return call

    calm = begun(0, method=method)
    list(steps(calm))
    list(steps(Resumed()))
    stored = cylbo.load(path).trials
    assert bits(stored) == bits(calm.trials)
    assert [trial.metadata for trial in stored] == [trial.metadata for trial in calm.trials]
    assert {trial.origin for trial in stored} >= {"enqueued", "added", "center", "model"}
    with make(path, method=method) as opt:
        assert bits(opt.ask(3)) == bits(calm.ask(3))


def test_points_that_wait_go_along_into_a_wider_space(path):
    with cylbo.Optimizer(NAMED, seed=0, method=CHEAP, storage=path) as opt:
        opt.enqueue({"lr": 1e-2, "depth": 9, "w": [0.5, -0.5]})
    wider = Space({**NAMED.parameters, "bias": cylbo.Boolean(default=True)})
    with cylbo.Optimizer(wider, method=CHEAP, storage=path, resume=True) as opt:
        trial = opt.ask()
        assert (trial.origin, trial.params["depth"], trial.params["bias"]) == ("enqueued", 9, True)
