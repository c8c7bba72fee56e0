"""A run that begins with the evaluations of another: nothing that was expensive to learn is lost."""

import math

import numpy as np
import pytest

import cylbo
from cylbo import Real, Space
from cylbo.record.trial import Trial
from test_storage import BOX, CHEAP, bits, bowl, make, run

NAMED = Space(lr=Real(1e-4, 1e-1, log=True), w=Real(-1, 1, shape=2))


def fragile(x):
    if x[1] > 20.0:
        raise ZeroDivisionError("folded")
    return {"value": bowl(x), "std": 0.1, "constraints": [0.5 - x[0]], "metadata": {"mass": float(x[2])}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


def told(trials):
    """What a model can learn from trials."""
    return [
        (t.x.tobytes(), repr(t.value), t.status, repr(t.std), t.constraints, t.reason, dict(t.metadata)) for t in trials
    ]


@pytest.mark.parametrize("suffix", ["csv", "json", None])
def test_failures_noise_constraints_and_metadata_come_along(tmp_path, suffix):
    first = run(fragile, budget=9, on_error="fail")
    assert {trial.status for trial in first.trials} == {"done", "failed"}
    earlier = first.trials
    if suffix is not None:
        getattr(first, f"to_{suffix}")(tmp_path / f"runs.{suffix}")
        earlier = cylbo.earlier(tmp_path / f"runs.{suffix}", BOX)
    opt = cylbo.Optimizer(BOX, seed=1, method=CHEAP, trials=earlier)
    assert told(opt.trials) == told(first.trials)
    assert {trial.origin for trial in opt.trials} == {"told"}
    known = opt._known()
    assert len(known.failed) == sum(trial.status == "failed" for trial in first.trials) > 0
    assert (known.constraints.shape, set(known.noise)) == ((len(known.y), 1), {0.1})
    result = run(fragile, budget=3, seed=1, on_error="fail", trials=earlier)
    assert (result.nfev, len(result.trials)) == (3, 12)


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_any_reason_comes_along(tmp_path, suffix):
    reasons = ["", "mesh\nfolded", "=1+1", "5", "nan", "true", '"quoted"', 'say "no"', " padded ", "\u00fc\u2028"]
    opt = cylbo.Optimizer([(0, 1)], seed=0)
    for i, reason in enumerate(reasons):
        opt.add_failed([i / 16], reason)
    result = cylbo.minimize(lambda x: 1.0, [(0, 1)], budget=1, seed=0, trials=opt.trials)
    getattr(result, f"to_{suffix}")(tmp_path / f"runs.{suffix}")
    earlier = cylbo.earlier(tmp_path / f"runs.{suffix}", [(0, 1)])
    assert [trial.reason for trial in earlier if trial.status == "failed"] == reasons


def test_x0_and_y0_are_trials_without_the_rest():
    points, values = [[0.1, 12.0, -4.9], [0.2, 13.0, -4.8]], [3.0, 1.0]
    trials = [Trial(i, np.array(x), y, "done") for i, (x, y) in enumerate(zip(points, values, strict=True))]
    a = cylbo.Optimizer(BOX, seed=1, method=CHEAP, x0=points, y0=values)
    b = cylbo.Optimizer(BOX, seed=1, method=CHEAP, trials=iter(trials))
    assert bits([*a.trials, *a.ask(3)]) == bits([*b.trials, *b.ask(3)])


@pytest.mark.parametrize("failure", [math.nan, math.inf, -math.inf])
def test_a_value_of_y0_that_is_not_finite_is_a_failure(path, failure):
    options = {"x0": [[0.1, 12.0, -4.9], [0.2, 13.0, -4.8]], "y0": [3.0, failure]}
    with make(path, **options) as opt:
        assert [trial.status for trial in opt.trials] == ["done", "failed"]
        assert opt.trials[1].reason == f"y0 was {failure}"
        assert len(opt._known().failed) == 1
        before = bits(opt.trials)
    with make(path, **options) as opt:
        assert bits(opt.trials) == before


def test_earlier_trials_may_be_in_another_space_with_new_parameters():
    first = cylbo.minimize(lambda p: p["lr"], NAMED, budget=4, seed=0, method=CHEAP)
    wider = Space({**NAMED.parameters, "bias": cylbo.Boolean(default=True)})
    opt = cylbo.Optimizer(wider, seed=0, method=CHEAP, trials=first.trials)
    assert [trial.params["bias"] for trial in opt.trials] == [True] * 4
    assert [trial.params["lr"] for trial in opt.trials] == [trial.params["lr"] for trial in first.trials]
    strict = Space({**NAMED.parameters, "bias": cylbo.Boolean()})
    with pytest.raises(ValueError, match=r"trials\[0\] must have lr, w, bias; missing \['bias'\]"):
        cylbo.Optimizer(strict, trials=first.trials)


HERE = np.array([0.0, 20.0, -4.5])
BAD = {
    "a text": ("runs.csv", TypeError, "trials must be a list of cylbo.Trial, got 'runs.csv'"),
    "a number": (3, TypeError, "trials must be a list of cylbo.Trial, got 3"),
    "points": ([[0.0, 20.0, -4.5]], TypeError, r"got \[0.0, 20.0, -4.5\] at 0; pass points and values as x0 and y0"),
    "open": ([Trial(4, np.array([0.0, 20.0, -4.5]))], ValueError, r"got trial 4, which is open; leave it out"),
    "outside": ([Trial(0, np.array([9.0, 20.0, -4.5]), 1.0, "done")], ValueError, r"trials\[0\] must lie inside the"),
    "of another size": ([Trial(0, np.zeros(2), 1.0, "done")], ValueError, r"trials\[0\] must have shape \(3,\), got"),
    "another number of constraints": (
        [Trial(i, np.array([0.0, 20.0, -4.5]), 1.0, "done", constraints=(0.0,) * i) for i in range(3)],
        ValueError, r"as many constraints each, got 1 in trials\[1\] and 2 in trials\[2\]",
    ),
    "made by hand without a value": ([Trial(0, HERE, status="done")], ValueError, "finite number, got nan for trial 0"),
    "made by hand with a text": ([Trial(0, HERE, "1", "done")], TypeError, "one real number, got str '1' for trial 0"),
    "made by hand with negative noise": (
        [Trial(0, HERE, 1.0, "done", std=-1.0)], ValueError, "std >= 0, got -1.0 for trial 0"
    ),
    "made by hand with a broken constraint": (
        [Trial(0, HERE, 1.0, "done", constraints=(math.nan,))], ValueError, r"constraints\[0\] to be a finite number"
    ),
}  # fmt: skip


def test_trials_made_by_hand_are_stored_as_those_of_a_run(path):
    trials = [
        Trial(0, HERE, 1, "done", metadata={"loads": np.arange(2)}),
        Trial(1, HERE, status="failed", reason=ValueError("folded")),
    ]
    make(path, trials=trials).close()
    done, failed = cylbo.load(path).trials
    assert (done.value, done.metadata, failed.reason) == (1.0, {"loads": [0, 1]}, "folded")


@pytest.mark.parametrize(("trials", "error", "message"), BAD.values(), ids=BAD)
def test_trials_that_cannot_be_used_get_a_clear_error(path, trials, error, message):
    with pytest.raises(error, match=message):
        make(path, trials=trials)
    assert not path.exists()


def test_trials_of_plain_bounds_have_no_names():
    with pytest.raises(ValueError, match=r"trials\[0\] must be of a cylbo.Space, got one of plain bounds"):
        cylbo.Optimizer(NAMED, trials=run(budget=2).trials)


def test_a_stored_run_knows_the_trials_that_it_began_with(path):
    first = run(fragile, budget=6, on_error="fail").trials
    with make(path, trials=first) as opt:
        asked = bits(opt.ask(2))
    # They may be given again, or left out, but not others
    for trials in (first, ()):
        with make(path, trials=trials) as opt:
            assert bits(opt.trials[6:]) == asked
    with pytest.raises(cylbo.StorageError, match="holds a run with another trials"):
        make(path, trials=first[:5])
    calm = cylbo.Optimizer(BOX, seed=0, method=CHEAP, trials=first)
    calm.ask(2)
    with make(path) as opt:
        assert bits(opt.ask(2)) == bits(calm.ask(2))


def test_constraints_that_were_told_earlier_set_the_number_of_those_to_come():
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP, trials=run(fragile, budget=3, on_error="fail").trials)
    with pytest.raises(ValueError, match="expected 1 constraints as with trial 0, got 0"):
        opt.tell(opt.ask(), 1.0)
    opt.tell(opt.pending[0], 1.0, constraints=[0.0])
