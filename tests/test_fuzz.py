"""A share of `make fuzz`: hostile calls, none of which raises what it should not or leaves a trace."""

import json
import math
import numbers
import random
import sys
import tempfile
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import cylbo
import fuzz
from cylbo.record.history import History
from cylbo.run.optimizer import Optimizer
from cylbo.space.box import Box
from cylbo.store.file import Store

CALLS = 250
bounded = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.mark.parametrize("seed", range(6))
def test_hostile_calls_are_refused_and_change_nothing(seed, tmp_path):
    tally = Counter()
    fuzz.play(random.Random(seed), tmp_path, CALLS, tally)
    accepted = sum(count for (_, outcome), count in tally.items() if outcome == "accepted")
    assert tally.total() >= CALLS
    assert CALLS // 5 < accepted < 4 * CALLS // 5  # hostile, and not only


@pytest.mark.parametrize("seed", range(4))
def test_a_run_in_a_file_goes_on_in_a_wider_space(seed, tmp_path):
    for attempt in range(100):  # half of the sessions have a file, most no region
        (folder := tmp_path / str(attempt)).mkdir()
        session = fuzz.Session(random.Random(f"{seed} {attempt}"), folder)
        if session.path is not None and "region" not in session.options:
            break
        session.finish()
    session.hostility = 0.0
    for _ in range(3):
        session.ask()
        session.tell()
    session._widen()
    assert session.tally["widen", "accepted"] == 1
    session.finish()


class HostileCaller(RuleBasedStateMachine):
    """Hypothesis chooses what comes next and every argument, and makes what fails as short as it can."""

    @initialize(rng=st.randoms(use_true_random=False))
    def begin(self, rng):
        self.folder = tempfile.TemporaryDirectory()
        self.session = fuzz.Session(rng, self.folder.name)

    @rule()
    def get_further(self):
        hostility, self.session.hostility = self.session.hostility, 0.0
        self.session.ask()
        self.session.tell()
        self.session.hostility = hostility

    def teardown(self):
        if hasattr(self, "session"):
            self.session.finish()
            self.folder.cleanup()


def _rule(operation):
    return rule()(lambda machine: getattr(machine.session, operation)())


for _operation in fuzz.OPERATIONS:
    setattr(HostileCaller, _operation, _rule(_operation))


def test_no_order_of_calls_that_hypothesis_finds_does_harm():
    run_state_machine_as_test(HostileCaller, settings=settings(bounded, max_examples=40, stateful_step_count=30))


# ---- that harm would be seen


def _keep_first(self, trial):
    kept = self.history.keep(trial)
    if self._store is not None:
        self._store.kept(trial)
    return kept


def _forget_queue(self, *, ask=Optimizer._ask):
    queue, self._given = self._given, self._given[1:]
    trial = ask(self)
    self._given = queue[1:]
    return trial


def _learn_from_refusals(self, trial, value, *, tell=Optimizer.tell, **options):
    try:
        return tell(self, trial, value, **options)
    except TypeError:
        self.seed += 1
        raise


def _lose_constraints(self, constraints, trial, *, checked=History.checked_constraints):
    return checked(self, constraints, trial)[:1]


def _write_nothing(self, trial):
    return None


def _leak(self, *, health=Optimizer.health):
    raise ArithmeticError


PLANTED = {
    "memory before the file": (Optimizer, "_closed", _keep_first),
    "a queue that refused asks shorten": (Optimizer, "_ask", _forget_queue),
    "a seed that refusals change": (Optimizer, "tell", _learn_from_refusals),
    "constraints that get lost": (History, "checked_constraints", _lose_constraints),
    "outcomes that are not stored": (Store, "kept", _write_nothing),
    "an undocumented error": (Optimizer, "health", _leak),
    "points outside": (Box, "to_user", lambda self, z: np.nextafter(self.high, math.inf)),
    "points that come twice": (
        sys.modules[Optimizer.__module__],
        "_taken",
        lambda history: {tuple(trial.x.tolist()) for trial in history.all[1:]},
    ),
    "cancelled trials that are learnt": (
        sys.modules[Optimizer.__module__],
        "_taken",
        lambda history: {tuple(trial.x.tolist()) for trial in history.all},
    ),
    "points that wait and are not stored": (Store, "enqueued", _write_nothing),
    "points that wait and are not forgotten": (Store, "dropped", _write_nothing),
}


@pytest.mark.parametrize(("owner", "name", "bug"), PLANTED.values(), ids=PLANTED)
def test_a_planted_bug_is_found(owner, name, bug, tmp_path, monkeypatch):
    monkeypatch.setattr(owner, name, bug)

    def play():
        for seed in range(100):
            folder = tmp_path / str(seed)
            folder.mkdir()
            fuzz.play(random.Random(seed), folder)

    with pytest.raises(fuzz.WrongError):
        play()


# ---- single arguments, as Hypothesis imagines them

anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.fractions(),
    st.decimals(),
    st.complex_numbers(),
    st.text(),
    st.binary(),
    st.dates(),
    npst.arrays(npst.scalar_dtypes(), npst.array_shapes(min_dims=0, min_side=0, max_side=2)),
    st.lists(st.floats()),
)


def finite(value):
    """The float that a real number is, None if it is none: NumPy's arrays of one number are numbers, dates are not."""
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind not in "mM":
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


@settings(bounded, max_examples=300)
@given(anything)
def test_a_value_is_told_exactly_if_it_is_a_finite_real_number(value):
    opt = cylbo.Optimizer([(0, 1)], seed=0)
    trial = opt.ask()
    if finite(value) is None:
        with pytest.raises((ValueError, TypeError)):
            opt.tell(trial, value)
        assert opt.trials[0] is trial
    else:
        assert opt.tell(trial, value).value == finite(value)


@settings(bounded, max_examples=300)
@given(npst.arrays(np.float64, st.tuples(st.integers(0, 3), st.integers(1, 3))))
def test_bounds_are_taken_exactly_if_they_are_finite_and_apart(bounds):
    smallest = np.finfo(float).tiny
    with np.errstate(all="ignore"):
        good = bounds.shape[1] == 2 and len(bounds) > 0
        for pair in bounds.tolist() if good else []:
            width = pair[1] - pair[0]
            good &= math.isfinite(width) and width > 1e-9 * max(abs(pair[0]), abs(pair[1]), smallest)
    if good:
        x = cylbo.Optimizer(bounds, seed=0).ask().x
        assert ((x >= bounds[:, 0]) & (x <= bounds[:, 1])).all()
    else:
        with pytest.raises(ValueError, match="bounds"):
            cylbo.Optimizer(bounds, seed=0)


FIELDS = ["parameters", "kind", "low", "high", "log", "shape", "choices", "default"]
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**9)
    | st.floats()
    | st.sampled_from(["real", "integer", "low", "a", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=12,
)
parameters = st.fixed_dictionaries(
    {"kind": st.sampled_from(["real", "integer", "categorical", "boolean", "other"])},
    optional={name: st.integers(-3, 3) | json_values for name in FIELDS[2:]},
)


@settings(bounded, max_examples=300)
@given(
    st.fixed_dictionaries({"parameters": st.lists(st.tuples(st.sampled_from("abc"), parameters), max_size=2)})
    | json_values
)
def test_a_space_comes_from_json_whole_or_not_at_all(stored):
    try:
        space = cylbo.Space.from_json(stored)
    except ValueError:
        return
    assert cylbo.Space.from_json(json.loads(json.dumps(space.to_json()))) == space
    assert len(space.params(space.middle)) == len(stored["parameters"])
